"""The joint dual problem: objectives, offsets, gap and violation.

    primal   min_{f, b}  ½‖f‖² + Σᵢ hᵢ*(yᵢ − f(xᵢ) − b),    hᵢ* = cᵢ-weighted group loss
    dual     min_α  ½ Σᵢⱼ ⟨αᵢ, K(xᵢ, xⱼ)αⱼ⟩ − Σᵢ ⟨αᵢ, yᵢ⟩ + Σᵢ hᵢ(αᵢ)     [Σᵢ αᵢ = 0 when b is free]
    link     f = Σᵢ K(·, xᵢ)αᵢ
    terms    hᵢ(a) = ε‖a‖₂ + Σⱼ gᵢⱼ(aⱼ)

``dual_objective`` is minus the dual's value, so that it bounds the primal from below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...kernels.matrix import MatrixGram
from ...losses.group import GroupTerms
from ..onedim import project_onto_sum
from ..problem import ROUNDING
from ..result import Progress, Status, relative_gap

Array = NDArray[np.float64]


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
    """

    gram: MatrixGram
    y: Array
    terms: GroupTerms
    offset: bool

    @property
    def shape(self) -> tuple[int, int]:
        """n and p."""
        return self.gram.shape

    def feasible(self, alpha: Array) -> Array:
        """A point of the dual's domain near α, with zero rows and entries at bounds left alone.

        What Σα = 0 lacks is spread over the entries between their bounds; where they do not
        have the room, others move too.
        """
        lower, upper = self.terms.outputs.lower, self.terms.outputs.upper
        clipped = np.clip(alpha, lower, upper)
        if not self.offset:
            return clipped
        held = ~np.any(clipped, axis=1, keepdims=True)
        inside = (clipped > lower) & (clipped < upper) & ~held
        excess = clipped.sum(axis=0)
        moved = clipped - inside * (excess / np.maximum(inside.sum(axis=0), 1))
        # once more, for the rounding of the first sum
        moved -= inside * (moved.sum(axis=0) / np.maximum(inside.sum(axis=0), 1))
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
        gain = np.vdot(alpha, self.y) - 0.5 * np.vdot(alpha, fitted) - self.terms.value(alpha)
        return self._rounded(float(gain))

    def _rounded(self, objective: float) -> float:
        """An objective, 0 where it is what rounding leaves of a perfect fit."""
        return 0.0 if abs(objective) <= self._negligible else objective

    @cached_property
    def _negligible(self) -> float:
        return ROUNDING * float(self.terms.conjugate(self.y).sum())

    def primal_value(self, alpha: Array, fitted: Array, intercept: Array) -> float:
        """½‖f‖² + Σ hᵢ*(yᵢ − fᵢ − b)."""
        losses = self.terms.conjugate(self.y - fitted - intercept)
        return self._rounded(float(0.5 * np.vdot(alpha, fitted) + losses.sum()))

    def fits_without_kernel(self, intercept: Array) -> bool:
        """Whether f = 0 with these offsets costs nothing, and so is optimal."""
        return float(self.terms.conjugate(self.y - intercept).sum()) <= self._negligible

    def certificate(self, alpha: Array, intercept: Array) -> JointCertificate:
        """Primal, dual and violation at a feasible α with these offsets, from the data."""
        fitted = self.gram.product(alpha)
        return JointCertificate(
            primal=self.primal_value(alpha, fitted, intercept),
            dual=self.dual_value(alpha, fitted),
            violation=self.terms.violation(alpha, self.y - fitted - intercept),
            intercept=intercept,
            fitted=fitted,
        )

    def certified_gap(self, alpha: Array, intercept: Array) -> float:
        """The relative gap at the feasible point next to α."""
        return self.certificate(self.feasible(alpha), intercept).gap
