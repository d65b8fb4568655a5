"""What all fits of a selection share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.data import Matrix
from ..kernels import Points, mapped
from ..losses import Loss
from ..losses.terms import DualTerms
from ..solvers import SolverOptions
from ..solvers.many import Goal, Many, Stop
from ..solvers.onedim import best_offset
from ..solvers.units import Units, spread
from .memory import Memory
from .scoring import OwnLoss, Score
from .settings import SelectionSettings

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to validate with.

    Attributes
    ----------
    spread : float
        The standard deviation of the training targets, in the user's units.
    known : dict
        The problems on the training rows, once they were asked for.
    """

    train: Index
    validation: Index
    spread: float
    known: dict[Any, Any] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, train: Index, validation: Index, y: Array, weight: Array) -> Fold:
        return cls(train, validation, spread(y[train], weight[train]))

    def __reduce__(self) -> tuple[Any, ...]:
        # what is known is compiled data, and soon known again elsewhere
        return Fold, (self.train, self.validation, self.spread)

    @cached_property
    def rows(self) -> Index:
        """Those to train on, and then those to validate with."""
        return np.concatenate([self.train, self.validation])


@dataclass(frozen=True)
class Task:
    """What all fits of a selection share.

    The fits are of problems in units of the selection's own: ``y`` is ``targets`` in ``units``,
    and so are offsets, predictions and objectives. C and scores are the user's.

    Attributes
    ----------
    X : array or CSR matrix
        The points, or their Gram matrix where ``kernel`` is "precomputed".
    targets, weight : arrays (n,)
        As they were given.
    units : Units
    scale_C : bool
        Whether C counts in spreads of the training targets.
    folds : sequence of Fold
    losses, scores : sequences, one a level
    offset : bool
    clip : float, "range" or None
        As in the estimators.
    solver : str
    options : SolverOptions
    megabytes : float
        For kernel values, of one worker.
    keep_models : bool
        Whether the coefficients of every fit are wanted.
    prune : bool
        Whether a path along C may end where it clearly overfits.
    maps : sequence of arrays or None
        One a fold: the linear map under which the kernel sees the features.
    """

    X: Matrix
    targets: Array
    units: Units
    scale_C: bool
    weight: Array
    folds: Sequence[Fold]
    losses: Sequence[Loss]
    scores: Sequence[Score]
    kernel: str | Callable[..., Array]
    degree: int
    coef0: float
    offset: bool
    clip: float | str | None
    solver: str
    options: SolverOptions
    megabytes: float
    keep_models: bool
    prune: bool
    stop: Stop
    settings: SelectionSettings = field(default_factory=SelectionSettings)
    maps: Sequence[Array] | None = None
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def y(self) -> Array:
        return self.units.targets(self.targets)

    @cached_property
    def _points(self) -> dict[int, Points]:
        return {}

    def points_of(self, fold: int) -> Points:
        """All points as the kernel sees them in a fold."""
        key = 0 if self.maps is None else fold
        if key not in self._points:
            weights = None if self.maps is None else self.maps[fold]
            self._points[key] = Points(mapped(self.X, weights))
        return self._points[key]

    @cached_property
    def squared(self) -> bool:
        """Whether the losses grow like squares, so that the dual has no bounds."""
        return bool(np.isinf(self.losses[0].dual_terms(np.ones(1), np.ones(1)).upper).all())

    @property
    def precision(self) -> type[np.floating[Any]]:
        """How kernel matrices are held."""
        return np.float64 if len(self.y) <= self.settings.double_rows else np.float32

    @cached_property
    def by_own_losses(self) -> bool:
        """Whether the levels are judged by their own losses, row by row."""
        return all(isinstance(score, OwnLoss) for score in self.scores)

    @cached_property
    def validation_weight(self) -> tuple[Array, Array]:
        """The largest weight among the validation rows of every fold, and their sum."""
        weights = [self.weight[fold.validation] for fold in self.folds]
        return np.array([w.max() for w in weights]), np.array([w.sum() for w in weights])

    def terms(self, level: int, fold: Fold, C: float) -> DualTerms:
        """The loss of a level on the training rows of a fold."""
        cost = C * self.weight[fold.train]
        terms = self.losses[level].dual_terms(self.targets[fold.train], cost)
        if self.scale_C:
            terms = terms.widened(fold.spread)
        return terms.in_units(self.units.scale)

    def goal(self, rough: bool) -> Goal:
        """How well fits are solved, in the race and after it."""
        tol = self.options.tol * (self.race_gap if rough else 1.0)
        if self.squared:
            return Goal(self.settings.squared_gap * tol, self.settings.squared_share * tol)
        return Goal(tol, self.settings.linear_share * tol)

    @property
    def few(self) -> bool:
        """Whether rows are so few that all fits are solved to rounding."""
        return max(len(fold.train) for fold in self.folds) <= self.settings.many.few

    @property
    def race_gap(self) -> float:
        """The gap of the fits in the race, against the one asked for."""
        race = self.settings.race
        return 1.0 if self.squared and len(self.y) <= race.exact_rows else race.rough

    @property
    def refines(self) -> bool:
        """Whether the points that may win are fitted better after the race."""
        return self.race_gap > 1.0 and not self.few

    def many(self, rough: bool) -> Many:
        """What fits may cost, in the race and after it."""
        race, many = self.settings.race, self.settings.many
        if self.options.max_iter >= 0 or self.solver != "auto":
            limit = self.options.max_iter if self.options.max_iter >= 0 else many.max_iter
            many = replace(many, shared=False, solver=self.solver, max_iter=limit)
        if not rough:
            return many
        # a squared loss is solved directly in a few linear systems; others take much longer
        finish = self.squared and len(self.y) <= race.hard_rows
        return replace(
            many, finish=finish, steps=race.steps, iterations=race.iterations, faces_order=0
        )

    def constant_loss(self, level: int) -> float:
        """The mean loss of the best constant on all rows, as scores count; 0 for other scores."""
        score = self.scores[level]
        if not isinstance(score, OwnLoss):
            return 0.0
        share = self.weight / self.weight.max()
        unit = score.loss.dual_terms(self.targets, share).in_units(self.units.scale)
        residual = self.units.coefficients(self.y - best_offset(unit, self.y))
        return float(share @ score.loss.value(residual) / share.sum())

    def fitted_by_constant(self, fold: Fold) -> bool:
        """Whether a machine without any f fits the training rows of a fold perfectly."""
        y = self.y[fold.train]
        return bool((y == (y[0] if self.offset else 0.0)).all())

    def clip_bounds(self, fold: Fold) -> tuple[float, float]:
        """The range of a fold's predictions."""
        if self.clip is None:
            return -np.inf, np.inf
        if isinstance(self.clip, str):
            y = self.y[fold.train]
            return float(y.min()), float(y.max())
        low, high = self.units.offset_into(np.array([-self.clip, self.clip], dtype=np.float64))
        return float(low), float(high)
