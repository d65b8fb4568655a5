"""What all fits of a selection share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..estimators.data import Matrix
from ..kernels import Points
from ..losses import Loss
from ..losses.terms import DualTerms
from ..solvers import SolverOptions
from ..solvers.monitor import OutOfTime
from ..solvers.onedim import best_offset
from ..solvers.units import Units, spread
from .memory import Memory
from .scoring import OwnLoss, Score

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to validate with.

    Attributes
    ----------
    spread : float
        The standard deviation of the training targets, in the user's units.
    risks : dict
        By level: what the best constant costs, once it is known.
    """

    train: Index
    validation: Index
    spread: float
    risks: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, train: Index, validation: Index, y: Array, weight: Array) -> Fold:
        return cls(train, validation, spread(y[train], weight[train]))


@dataclass
class Stop:
    """Tells the fits of this process to stop: on demand, or when their time is up.

    Attributes
    ----------
    clock : callable
        Seconds.
    deadline : float
        When time is up, as the clock counts.
    """

    clock: Callable[[], float]
    deadline: float = np.inf
    raised: bool = False

    def __call__(self, progress: object = None) -> bool:
        return self.raised or self.clock() >= self.deadline

    @property
    def left(self) -> float | None:
        """Seconds until then; None without a limit."""
        return max(self.deadline - self.clock(), 0.0) if np.isfinite(self.deadline) else None

    def pause(self) -> None:
        """A moment at which long work is ended."""
        if self():
            raise OutOfTime


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
    order : sequence of int
        The levels in the order in which one is a good start for the next.
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
    """

    X: Matrix
    targets: Array
    units: Units
    scale_C: bool
    weight: Array
    folds: Sequence[Fold]
    losses: Sequence[Loss]
    scores: Sequence[Score]
    order: Sequence[int]
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
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def y(self) -> Array:
        return self.units.targets(self.targets)

    @cached_property
    def points(self) -> Points:
        return Points(self.X)

    @cached_property
    def squared(self) -> bool:
        """Whether the losses grow like squares, so that the dual has no bounds."""
        return bool(np.isinf(self.losses[0].dual_terms(np.ones(1), np.ones(1)).upper).all())

    @cached_property
    def by_own_losses(self) -> bool:
        """Whether the levels are judged by their own losses, row by row."""
        return all(isinstance(score, OwnLoss) for score in self.scores)

    def rows(self, fold: int) -> Index:
        """Those of a fold, to train on and then to validate with."""
        return np.concatenate([self.folds[fold].train, self.folds[fold].validation])

    def terms(self, level: int, fold: Fold, C: float) -> DualTerms:
        """The loss of a level on the training rows of a fold."""
        cost = C * self.weight[fold.train]
        terms = self.losses[level].dual_terms(self.targets[fold.train], cost)
        if self.scale_C:
            terms = terms.widened(fold.spread)
        return terms.in_units(self.units.scale)

    def risk(self, level: int, fold: Fold) -> float:
        """What the best constant costs on the training rows of a fold, at C = 1.

        Where that is nothing, what f = 0 costs: without an offset there is no other constant.
        """
        if level not in fold.risks:
            y = self.y[fold.train]
            unit = self.terms(level, fold, 1.0)
            risk = float(unit.conjugate(y - best_offset(unit, y)).sum())
            fold.risks[level] = risk if risk > 0 else float(unit.conjugate(y).sum())
        return fold.risks[level]

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

    def clip_bounds(self, fold: Fold) -> tuple[float, float] | None:
        """The range of a fold's predictions, None without one."""
        if self.clip is None:
            return None
        if isinstance(self.clip, str):
            y = self.y[fold.train]
            return float(y.min()), float(y.max())
        low, high = self.units.offset_into(np.array([-self.clip, self.clip], dtype=np.float64))
        return float(low), float(high)
