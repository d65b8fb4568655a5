"""The validation part of a fold: the losses and scores of fits."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..solvers.many import ManyResult, Validation
from .scoring import OwnLoss
from .task import Fold, Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]


class Predictor(Protocol):
    """From rows of β to values at the validation rows of a fold, (fits, rows)."""

    @property
    def rows(self) -> Floats | None:
        """Kernel values of the validation rows with the training rows, where they are held."""

    def __call__(self, beta: Floats) -> Floats: ...


class Judge:
    """The validation rows of one fold."""

    def __init__(self, task: Task, fold: Fold, predict: Predictor) -> None:
        self.task = task
        self.fold = fold
        self.predict = predict
        self.rows = fold.validation
        self.weight = task.weight[self.rows]
        self.bounds = task.clip_bounds(fold) or (-np.inf, np.inf)

    def validation(self, n_costs: int, prune: bool) -> Validation | None:
        """What solutions are judged by while others are solved; None for scores of another kind.

        With ``prune`` fits of large C are left out, where there are enough rows to tell.
        """
        task, race, known = self.task, self.task.settings.race, self.fold.known
        if not task.by_own_losses:
            return None
        if "judging" not in known:
            known["judging"] = np.array([self._terms(level) for level in range(len(task.losses))])
        return Validation(
            self.predict,
            self._single_rows(),
            task.y[self.rows],
            known["judging"],
            n_costs,
            self.bounds,
            race.standard_errors if prune and len(self.rows) >= race.path_rows else np.inf,
        )

    def _single_rows(self) -> NDArray[np.float32] | None:
        """Kernel values as compiled code takes them; None where float32 has no room for them."""
        held = self.predict.rows
        if held is None or held.dtype == np.float32:
            return held
        if np.abs(held).max(initial=0.0) > np.finfo(np.float32).max:
            return None
        return held.astype(np.float32)

    def _terms(self, level: int) -> Array:
        """What residuals of the rows cost by a level's own loss, in units of the task."""
        score = self.task.scores[level]
        assert isinstance(score, OwnLoss)
        share = self.weight / self.weight.max()
        terms = score.loss.dual_terms(self.task.targets[self.rows], share)
        return np.array(terms.in_units(self.task.units.scale).numbers)

    def losses(self, validation: Validation, fits: ManyResult) -> Array:
        """The weighted losses of the rows, in the user's units; NaN where there is no fit."""
        missing = np.nonzero(fits.solved & np.isnan(validation.losses[:, :, 0]))
        if len(missing[0]):
            validation.ended(missing, fits.beta[missing], fits.intercept[missing])
        losses: Array = validation.losses * (self.weight.max() * self.task.units.scale**2)
        losses[~fits.solved] = np.nan
        return losses

    def values(self, beta: Floats, intercept: Array) -> Array:
        """Predictions, (fits, rows), in units of the task, clipped as they are later."""
        values = np.asarray(self.predict(beta), dtype=np.float64)
        return np.clip(values + intercept[:, None], *self.bounds)

    def scores(self, fits: ManyResult) -> Array:
        """The scores of fits by a metric, (levels, costs); NaN where there is no fit."""
        task, scores = self.task, np.full(fits.intercept.shape, np.nan)
        given = task.targets[self.rows]
        places = np.nonzero(fits.solved)
        values = self.values(fits.beta[places], fits.intercept[places])
        for level, cost, row in zip(*places, values, strict=True):
            scores[level, cost] = task.scores[level](given, task.units.offset(row), self.weight)
        return scores
