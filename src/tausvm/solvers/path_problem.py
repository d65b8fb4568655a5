"""The dual problem of every τ, and what following its path takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..kernels.products import Products
from ..losses import DualTerms
from .moving_box import MovingBox
from .onedim import best_offset
from .result import Progress, Status, relative_gap
from .tau_path import TauPath

Array = NDArray[np.float64]

#: objectives up to this share of the primal at f = 0 count as 0
ROUNDING = 1e-14
#: and differences of two up to this share
DIFFERENCE = 2e-16


@dataclass
class PathProblem:
    """The dual problem of every τ.

    Parameters
    ----------
    products : Products
        The kernel matrix, with its constant where the offset is penalised.
    y : array (n,)
    box : MovingBox
    offset : bool
        Whether b is free, and so Σβ = 0.
    """

    products: Products
    y: Array
    box: MovingBox
    offset: bool

    @property
    def n(self) -> int:
        return len(self.y)

    def objectives(self, beta: Array, fitted: Array, b: float, tau: float) -> tuple[float, float]:
        """Primal and dual at τ: ½βᵀKβ + Σ sup_β (rβ) over the box, and yᵀβ − ½βᵀKβ."""
        residual = self.y - fitted - b
        quadratic = 0.5 * float(beta @ fitted)
        loss = residual * np.where(residual > 0, self.box.upper(tau), self.box.lower(tau))
        primal, dual = quadratic + float(loss.sum()), float(self.y @ beta) - quadratic
        # where all boxes are closed both are zero up to rounding
        negligible = ROUNDING * self._size
        return primal if primal > negligible else 0.0, dual if dual > negligible else 0.0

    def gap(self, primal: float, dual: float) -> float:
        """The relative gap; what rounding may make of a difference of zero counts as none, which
        matters where boxes close and the objectives vanish."""
        if primal - dual <= DIFFERENCE * self._size:
            return 0.0
        return relative_gap(primal, dual)

    def settled_offset(self, fitted: Array, b: float, tau: float) -> float:
        """The offset, without the rounding of Σβ in it where that matters.

        An offset is exact in the walk up to rounding of Σβ times the kernel's size; where C is
        huge that costs. The best offset for this f is taken if it lowers the primal.
        """
        if not self.offset:
            return b
        lower, upper = np.minimum(self.box.lower(tau), 0.0), np.maximum(self.box.upper(tau), 0.0)
        terms = DualTerms.build(self.n, lower=lower, upper=upper)
        losses = [terms.conjugate(self.y - fitted - b).sum()]
        best = best_offset(terms, self.y - fitted)
        losses.append(terms.conjugate(self.y - fitted - best).sum())
        return best if losses[1] < losses[0] else b

    @cached_property
    def _size(self) -> float:
        """The primal at f = 0, for the costs of all τ together."""
        widest = np.maximum(self.box.upper(0.0), self.box.upper(1.0))
        widest = np.maximum(widest, -np.minimum(self.box.lower(0.0), self.box.lower(1.0)))
        return float(widest @ np.abs(self.y))

    def violation(self, beta: Array, fitted: Array, tau: float) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum."""
        residual = self.y - fitted
        rounding = 1e-8 * (self.box.upper(tau) - self.box.lower(tau))
        up = residual[beta < self.box.upper(tau) - rounding].max(initial=-np.inf)
        down = residual[beta > self.box.lower(tau) + rounding].min(initial=np.inf)
        return max(float(up - down if self.offset else max(up, -down)), 0.0)

    def closing_offset(self, tau: float) -> float:
        """The offset at τ = 0 or 1 where Σβ = 0 leaves β = 0 alone: no residual may cost."""
        costly = self.box.upper(tau) > 0
        if costly.any():
            return float(self.y[costly].max())
        return float(self.y[self.box.lower(tau) < 0].min())


@dataclass(frozen=True)
class PathOptions:
    """How to work.

    Parameters
    ----------
    tol : float
        The relative duality gap that every check on the way must meet.
    cache_size : float
        Megabytes for kernel values.
    memory_limit : float
        Megabytes for the records of the path.
    callback : callable or None
        Called with a :class:`Progress` at every check.
    """

    tol: float = 1e-6
    cache_size: float = 2000.0
    memory_limit: float = 1000.0
    callback: Callable[[Progress], object] | None = None


@dataclass
class PathResult:
    """A path with its certificate.

    Attributes
    ----------
    path : TauPath
    status : Status
        SOLVED where every check met the tolerance, else NUMERICAL_ERROR.
    n_kinks : int
        Kinks in τ, those on the way to the first solution not counted.
    n_start : int
        Kinks on the way to the first solution.
    checked, gaps : arrays
        The τ at which the path was checked on the way, and the relative duality gaps there,
        from the data.
    thinned : int
        Of how many kinks one was kept: 1 unless the memory limit made it more.
    resolved : tuple of float or None
        The levels between which the kinks could not be followed and solutions were computed one
        by one instead.
    seconds : float
    """

    path: TauPath
    status: Status
    n_kinks: int
    n_start: int
    checked: Array
    gaps: Array
    thinned: int
    resolved: tuple[float, float] | None
    seconds: float

    @property
    def dual_gap(self) -> float:
        """The largest gap seen."""
        return float(self.gaps.max(initial=0.0))


class PathError(Exception):
    """A path that could not be followed any further."""

    def __init__(self, indefinite: bool) -> None:
        super().__init__("the path could not be followed any further")
        self.indefinite = indefinite
