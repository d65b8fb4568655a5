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
from ..solvers import SolverOptions
from ..solvers.onedim import best_offset
from .memory import Memory
from .scoring import Score

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to validate with; the risks of constants once they are known."""

    train: Index
    validation: Index
    risks: dict[int, float] = field(default_factory=dict)


@dataclass
class StopFlag:
    """Tells the solvers of this process to stop."""

    raised: bool = False

    def __call__(self, progress: object = None) -> bool:
        return self.raised


@dataclass(frozen=True)
class Task:
    """What all fits of a selection share.

    Attributes
    ----------
    X : array or CSR matrix
        The points, or their Gram matrix where ``kernel`` is "precomputed".
    y, weight : arrays (n,)
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
    y: Array
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
    stop: StopFlag = field(default_factory=StopFlag)
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def points(self) -> Points:
        return Points(self.X)

    @cached_property
    def squared(self) -> bool:
        """Whether the losses grow like squares, so that the dual has no bounds."""
        return bool(np.isinf(self.losses[0].dual_terms(np.ones(1), np.ones(1)).upper).all())

    def rows(self, fold: int) -> Index:
        """Those of a fold, to train on and then to validate with."""
        return np.concatenate([self.folds[fold].train, self.folds[fold].validation])

    def risk(self, level: int, fold: Fold) -> float:
        """What the best constant costs on the training rows of a fold, at C = 1."""
        if level not in fold.risks:
            y = self.y[fold.train]
            unit = self.losses[level].dual_terms(y, self.weight[fold.train])
            fold.risks[level] = float(unit.conjugate(y - best_offset(unit, y)).sum())
        return fold.risks[level]

    def clip_bounds(self, fold: Fold) -> tuple[float, float] | None:
        """The range of a fold's predictions, None without one."""
        if self.clip is None:
            return None
        if isinstance(self.clip, str):
            y = self.y[fold.train]
            return float(y.min()), float(y.max())
        return -float(self.clip), float(self.clip)
