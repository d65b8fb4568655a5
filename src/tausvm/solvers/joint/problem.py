"""The joint dual problem: objectives, offsets, gap and violation.

    primal   min_{f, b}  ½‖f‖² + Σᵢ hᵢ*(yᵢ − f(xᵢ) − b),    hᵢ* = cᵢ-weighted group loss
    dual     min_α  ½ Σᵢⱼ ⟨αᵢ, K(xᵢ, xⱼ)αⱼ⟩ − Σᵢ ⟨αᵢ, yᵢ⟩ + Σᵢ hᵢ(αᵢ)     [Σᵢ αᵢ = 0 when b is free]
    link     f = Σᵢ K(·, xᵢ)αᵢ
    terms    hᵢ(a) = ε‖a‖₂ + Σⱼ gᵢⱼ(aⱼ)

``dual_objective`` is minus the dual's value, so that it bounds the primal from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...kernels.matrix import MatrixGram
from ...losses.group import GroupTerms
from ..onedim import project_onto_sum
from ..problem import ROUNDING
from ..result import Progress, Status, relative_gap
from ..units import Units
from .offsets import best_offsets

Array = NDArray[np.float64]

#: a gap above this says that nothing good is known: the dual is less than half of the primal
VACUOUS = 0.5


def rank(gap: float, primal: float) -> tuple[float, float]:
    """Of two points the one with the smaller rank is kept.

    The gap decides, and the primal where neither gap says anything.
    """
    return min(gap, VACUOUS), primal if math.isfinite(primal) else math.inf


@dataclass(frozen=True)
class JointCertificate:
    """Both objectives at a point, and how far it is from optimal."""

    primal: float
    dual: float
    violation: float
    intercept: Array
    fitted: Array

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    @property
    def rank(self) -> tuple[float, float]:
        return rank(self.gap, self.primal)


@dataclass
class JointResult:
    """A solution of the joint problem with its certificate.

    As :class:`tausvm.solvers.SolverResult`, for p outputs at once.

    Attributes
    ----------
    alpha : array (n, p)
        The dual solution; f = Σ K(·, xᵢ)αᵢ.
    intercept : array (p,)
        The offsets b, 0 without them.
    fitted : array (n, p)
        f(xᵢ) without the offsets.
    """

    alpha: Array
    intercept: Array
    fitted: Array
    status: Status
    primal_objective: float
    dual_objective: float
    dual_gap: float
    kkt_violation: float
    n_iter: int
    seconds: float
    solver: str = ""
    trace: list[Progress] = field(default_factory=list)


@dataclass
class JointProblem:
    """The dual problem of one joint fit.

    Parameters
    ----------
    gram : MatrixGram
    y : array (n, p)
    terms : GroupTerms
    offset : bool
        Whether b ∈ Rᵖ is free, and so Σᵢ αᵢ = 0.
    units : Units
        What y and the terms were divided by and moved; results are taken back.
    cost : float
        What the costs were divided by and the Gram matrix multiplied with, a power of two:
        α and the objectives are those of the user's problem divided by it.
    """

    gram: MatrixGram
    y: Array
    terms: GroupTerms
    offset: bool
    units: Units = field(default_factory=Units)
    cost: float = 1.0
    #: the best offsets where f = 0, once they were asked for
    _constants: Array | None = field(default=None, repr=False)
    _rounding: float | None = field(default=None, repr=False)

    @classmethod
    def posed(
        cls,
        gram: MatrixGram,
        y: Array,
        terms: GroupTerms,
        offset: bool,
        units: Units,
        cost: float = 1.0,
    ) -> JointProblem:
        """The problem in units of its own: targets of size 1, the widest side of h of size 1.

        ``gram``, ``y`` and ``terms`` are in the user's units, the terms for costs divided by
        ``cost``, so that the largest is about 1.
        """
        targets = units.targets(y)
        own = terms.in_units(units.scale)
        # a tube wider than all targets is as good as one four times as wide as them
        widest_row = 4.0 * float(np.sqrt(np.square(targets).sum(axis=1)).max())
        if own.epsilon > widest_row:
            own = GroupTerms(own.outputs, widest_row)
        widest = own.widest
        power = math.frexp(cost)[1] + math.frexp(widest)[1]
        size = math.ldexp(1.0, power)
        return cls(
            gram.scaled(size),
            targets,
            own.costing(math.ldexp(cost, -power)),
            offset,
            units=units,
            cost=size,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """n and p."""
        n, p = self.y.shape
        return n, p

    def coefficients(self, alpha: Array) -> Array:
        """The user's α."""
        return self.units.coefficients(alpha) * self.cost

    def objective(self, value: float) -> float:
        """The user's primal or dual."""
        return self.units.objective(value) * self.cost

    def point_of(self, result: JointResult) -> tuple[Array, Array]:
        """α and offsets of a result, which has the user's units."""
        return self.units.into(result.alpha / self.cost), self.units.offset_into(result.intercept)

    def settle_constants(self, hurry: Callable[[], bool]) -> None:
        """Find the best offsets for f = 0, or good ones where time is short."""
        if self._constants is None:
            p = self.shape[1]
            free = best_offsets(self.terms, self.y, hurry) if self.offset else np.zeros(p)
            self._constants = np.asarray(self.units.settled(free))

    @property
    def constants(self) -> Array:
        """The best offsets where f = 0."""
        self.settle_constants(lambda: False)
        assert self._constants is not None
        return self._constants

    def feasible(self, alpha: Array) -> Array:
        """A point of the dual's domain near α, with zero rows and entries at bounds left alone.

        What Σα = 0 lacks is spread over the entries between their bounds, by how far they reach;
        where they do not have the room, others move too.
        """
        lower, upper = self.terms.outputs.lower, self.terms.outputs.upper
        clipped = np.clip(alpha, lower, upper)
        if not self.offset:
            return clipped
        held = ~np.any(clipped, axis=1, keepdims=True)
        inside = (clipped > lower) & (clipped < upper) & ~held
        falls, rises = self.terms.reaches()
        share = np.where(inside, falls + rises, 0.0)
        share /= np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)
        excess = clipped.sum(axis=0)
        moved = clipped - share * excess
        # once more, for the rounding of the first sum
        moved -= share * moved.sum(axis=0)
        for j in range(alpha.shape[1]):
            column = moved[:, j]
            within = bool(np.all((column >= lower[:, j]) & (column <= upper[:, j])))
            if within and (inside[:, j].any() or excess[j] == 0):
                continue
            low = np.where(held[:, 0], 0.0, lower[:, j])
            high = np.where(held[:, 0], 0.0, upper[:, j])
            moved[:, j] = project_onto_sum(clipped[:, j], low, high, 0.0)
        return moved

    def dual_value(self, alpha: Array, fitted: Array) -> float:
        """Minus the dual's objective at a feasible α, with fitted = Σ K(·, xᵢ)αᵢ."""
        gain = np.vdot(alpha, self.y) - 0.5 * np.vdot(alpha, fitted) - self.terms.total_value(alpha)
        return self._rounded(float(gain))

    def _rounded(self, objective: float) -> float:
        """An objective, 0 where it is what rounding leaves of a perfect fit."""
        return 0.0 if abs(objective) <= self._negligible else objective

    @property
    def _negligible(self) -> float:
        """The rounding of the best constant's primal: at an optimum of 0 it would be all."""
        if self._rounding is None:
            residual = self.y - self.constants
            loss = float(self.terms.conjugate(residual).sum())
            # constants that fit but for the rounding of residuals fit
            slack = 4.0 * np.finfo(np.float64).eps * float(np.abs(self.y).max())
            wider = GroupTerms(self.terms.outputs, self.terms.epsilon + slack)
            fits = not wider.conjugate(residual).any()
            self._rounding = loss if fits else ROUNDING * loss
        return self._rounding

    def primal_value(self, alpha: Array, fitted: Array, intercept: Array) -> float:
        """½‖f‖² + Σ hᵢ*(yᵢ − fᵢ − b)."""
        losses = self.terms.conjugate(self.y - fitted - intercept)
        return self._rounded(float(0.5 * np.vdot(alpha, fitted) + losses.sum()))

    def fits_without_kernel(self, intercept: Array) -> bool:
        """Whether f = 0 with these offsets costs nothing, and so is optimal."""
        return float(self.terms.conjugate(self.y - intercept).sum()) <= self._negligible

    def certificate(self, alpha: Array, intercept: Array) -> JointCertificate:
        """Primal, dual and violation at a feasible α with these offsets, from the data.

        The offsets are rounded as they are in the user's units.
        """
        if self.offset:
            intercept = np.asarray(self.units.settled(intercept))
        fitted = self.gram.product(alpha) if alpha.any() else np.zeros(self.shape)
        return JointCertificate(
            primal=self.primal_value(alpha, fitted, intercept),
            dual=self.dual_value(alpha, fitted),
            violation=self.terms.violation(alpha, self.y, fitted, intercept, self.offset),
            intercept=intercept,
            fitted=fitted,
        )

    def certified_gap(self, alpha: Array, intercept: Array) -> float:
        """The relative gap at the feasible point next to α."""
        return self.certificate(self.feasible(alpha), intercept).gap
