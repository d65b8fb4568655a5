"""The validation part of a fold: the losses and scores of fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.validation import Judged
from ..solvers.many import ManyResult, Predictor
from .scoring import OwnLoss
from .task import Fold, Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]


def judged_rows(task: Task, fold: Fold) -> Judged | None:
    """The validation rows that solutions are judged by; None for scores of another kind."""
    if not task.by_own_losses:
        return None
    terms = np.array([_terms(task, fold, level) for level in range(len(task.losses))])
    return Judged(task.y[fold.validation], terms, task.clip_bounds(fold))


def _terms(task: Task, fold: Fold, level: int) -> Array:
    """What residuals of a fold's rows cost by a level's own loss, in units of the task."""
    score, weight = task.scores[level], task.weight[fold.validation]
    assert isinstance(score, OwnLoss)
    terms = score.loss.dual_terms(task.targets[fold.validation], weight / weight.max())
    return np.array(terms.in_units(task.units.scale).numbers)


class Judge:
    """The validation rows of one fold."""

    def __init__(self, task: Task, fold: Fold, predict: Predictor) -> None:
        self.task = task
        self.predict = predict
        self.rows = fold.validation
        self.weight = task.weight[self.rows]
        self.bounds = task.clip_bounds(fold)

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
