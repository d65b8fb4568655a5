"""The dual problem of every τ, and what following its path takes and gives."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..kernels.products import Products
from ..losses import DualTerms
from .moving_box import MovingBox
from .onedim import best_offset, project_onto_sum
from .result import Progress, Status
from .tau_path import TauPath
from .units import Units

Array = NDArray[np.float64]

#: objectives up to this share of the best constant's primal at τ = ½ count as 0, and differences
#: of two up to this one: towards the ends of a path the objectives vanish, and what rounding makes
#: of residuals does not
ROUNDING, DIFFERENCE = 1e-14, 1e-15

#: a sum of β up to this share of their sizes is the rounding of a sum that is zero
UNBALANCED = 1e-14


@dataclass(frozen=True)
class PathCertificate:
    """Both objectives of a solution at one level, and how far it is from optimal."""

    primal: float
    dual: float
    gap: float
    violation: float
    fitted: Array


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
    units : Units
        What y and the box were divided by and moved; results are taken back.
    """

    products: Products
    y: Array
    box: MovingBox
    offset: bool
    units: Units = field(default_factory=Units)

    @classmethod
    def posed(
        cls, products: Products, y: Array, box: MovingBox, offset: bool, units: Units
    ) -> PathProblem:
        """The problem of targets and a box in the user's units, posed in units of its own."""
        return cls(products, units.targets(y), box.times(1.0 / units.scale), offset, units)

    @property
    def n(self) -> int:
        return len(self.y)

    def terms(self, tau: float) -> DualTerms:
        """The loss at τ, as five numbers a sample."""
        lower, upper = np.minimum(self.box.lower(tau), 0.0), np.maximum(self.box.upper(tau), 0.0)
        return DualTerms.build(self.n, lower=lower, upper=upper)

    # ---- the certificate ----

    @cached_property
    def rounds_offsets(self) -> bool:
        """Whether an offset in the user's units is rounded more than one in the problem's own."""
        return bool(self.units.shift != 0)

    def certificate(self, beta: Array, b: float, tau: float) -> PathCertificate:
        """Objectives, relative gap and violation at τ for this very β and b, from the data."""
        fitted = self.products.product(beta)
        residual = self.y - fitted - b
        lower, upper = self.box.lower(tau), self.box.upper(tau)
        quadratic = 0.5 * float(beta @ fitted)
        loss = residual * np.where(residual > 0, upper, lower)
        primal = quadratic + float(loss.sum())
        dual = float(self.y @ beta) - quadratic
        difference = float(gap_sums(lower, upper, beta, residual)) + abs(b * float(beta.sum()))
        if self.offset and abs(float(beta.sum())) > UNBALANCED * float(np.abs(beta).sum()):
            # no bound for a free offset: the nearest β that is one
            balanced = self.feasible(beta, tau)
            product = self.products.product(balanced)
            dual = float(self.y @ balanced) - 0.5 * float(balanced @ product)
            difference = max(primal - dual, 0.0)
        return PathCertificate(
            primal=primal,
            dual=dual,
            gap=float(self.relative(np.array(difference), np.array(dual))),
            violation=self._violation(beta, fitted, tau),
            fitted=fitted,
        )

    def relative(self, difference: Array, dual: Array) -> Array:
        """primal − dual, as a share of the larger of both in size."""
        primal = dual + difference
        # what is not a number counts
        counts = ~((primal <= ROUNDING * self._size) | (difference <= DIFFERENCE * self._size))
        larger = np.maximum(np.abs(primal), np.abs(dual))
        return np.divide(difference, larger, out=np.zeros_like(difference), where=counts)

    @cached_property
    def _size(self) -> float:
        """The best constant's primal at τ = ½."""
        terms = self.terms(0.5)
        constant = best_offset(terms, self.y) if self.offset else 0.0
        return float(terms.conjugate(self.y - constant).sum())

    def _violation(self, beta: Array, fitted: Array, tau: float) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum."""
        residual = self.y - fitted
        rounding = 1e-8 * (self.box.upper(tau) - self.box.lower(tau))
        up = residual[beta < self.box.upper(tau) - rounding].max(initial=-np.inf)
        down = residual[beta > self.box.lower(tau) + rounding].min(initial=np.inf)
        return max(float(up - down if self.offset else max(up, -down)), 0.0)

    # ---- points that are feasible, and their offsets ----

    def feasible(self, beta: Array, tau: float, box: MovingBox | None = None) -> Array:
        """The point of the dual's domain at τ nearest to β."""
        box = self.box if box is None else box
        lower, upper = box.lower(tau), box.upper(tau)
        upper = np.maximum(lower, upper)
        if not self.offset:
            return np.clip(beta, lower, upper)
        return project_onto_sum(beta, lower, upper, 0.0)

    def settled_offset(self, fitted: Array, b: float, tau: float) -> float:
        """The best offset for this f, unless b is as good.

        An offset of a walk is exact up to rounding of Σβ times the kernel's size; where C is
        huge that costs.
        """
        if not self.offset:
            return b
        terms = self.terms(tau)
        best = best_offset(terms, self.y - fitted)
        losses = [terms.conjugate(self.y - fitted - c).sum() for c in (b, best)]
        return best if losses[1] < losses[0] else b

    def closing_offset(self, tau: float) -> float:
        """The offset at τ = 0 or 1 where Σβ = 0 leaves β = 0 alone: no residual may cost."""
        costly = self.box.upper(tau) > 0
        if costly.any():
            return float(self.y[costly].max())
        return float(self.y[self.box.lower(tau) < 0].min())


def gap_sums(lower: Array, upper: Array, beta: Array, residual: Array) -> Array:
    """Σ (u − β)r⁺ + (β − l)r⁻ over the last axis: primal − dual where Σβ = 0 or b is not free."""
    above, below = np.maximum(upper - beta, 0.0), np.maximum(beta - lower, 0.0)
    plus, minus = np.maximum(residual, 0.0), np.maximum(-residual, 0.0)
    sums = np.einsum("...v,...v->...", above, plus) + np.einsum("...v,...v->...", below, minus)
    return np.asarray(sums)


@dataclass(frozen=True)
class PathOptions:
    """How to work.

    Parameters
    ----------
    tol : float
        The relative duality gap that every piece must meet.
    cache_size : float
        Megabytes for kernel values.
    memory_limit : float
        Megabytes for the records of the path.
    callback : callable or None
        Called with a :class:`Progress` after every batch of kinks.
    max_iter : int
        Bound on the kinks, those on the way to the first solution too; −1 for none.
    time_limit : float or None
        Bound in seconds.
    clock : callable
        Seconds, as ``time_limit`` counts them; tests inject one.
    """

    tol: float = 1e-6
    cache_size: float = 2000.0
    memory_limit: float = 1000.0
    callback: Callable[[Progress], object] | None = None
    max_iter: int = -1
    time_limit: float | None = None
    clock: Callable[[], float] = time.perf_counter


@dataclass
class PathResult:
    """A path with its certificate.

    Attributes
    ----------
    path : TauPath
    status : Status
        SOLVED where every piece meets the tolerance.
    n_kinks : int
        Kinks in τ, those on the way to the first solution not counted.
    n_start : int
        Kinks on the way to the first solution.
    checked : array (n_pieces + 1,)
        The τ between which the pieces are, all from 0 to 1: each was checked as a whole.
    gaps : array (n_pieces,)
        On each piece a bound on the relative duality gap of ``path.solution``, from the data.
    thinned : int
        Of how many kinks one was kept: 1 unless the memory limit made it more.
    resolved : tuple of float or None
        The levels between which some kinks could not be followed and solutions were computed
        one by one instead.
    reached : tuple of float
        The levels between which the path was found before a limit ended the work.
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
    reached: tuple[float, float]
    seconds: float

    @property
    def dual_gap(self) -> float:
        """The largest bound on the gap of a piece."""
        return float(self.gaps.max())

    def above(self, tol: float) -> list[tuple[float, float, float]]:
        """The intervals of τ on which gaps may exceed ``tol``, each with its largest gap."""
        beyond = np.r_[False, self.gaps > tol, False]
        steps = np.diff(beyond.astype(int))
        begins, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        return [
            (float(self.checked[a]), float(self.checked[b]), float(self.gaps[a:b].max()))
            for a, b in zip(begins, ends, strict=True)
        ]


class PathError(Exception):
    """A path that could not be followed any further."""

    def __init__(self, indefinite: bool) -> None:
        super().__init__("the path could not be followed any further")
        self.indefinite = indefinite


class PathStopped(Exception):
    """A limit ended the walk."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"the walk was ended: {status.value}")
        self.status = status
