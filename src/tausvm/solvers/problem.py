"""The one dual problem: objectives, offset, gap and violation.

    primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)
    dual     min_β  ½ βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 when b is free]
    link     f = Σᵢ βᵢ k(xᵢ, ·)
    gap      ½βᵀKβ + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b) + ½βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)

``dual_objective`` is minus the dual's value, so that it bounds the primal from below.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..kernels.gram import Gram
from ..losses.terms import DualTerms
from .onedim import best_offset, project_onto_sum
from .result import relative_gap

Array = NDArray[np.float64]

#: objectives up to this fraction of the primal at f = 0 count as 0
ROUNDING = 1e-14


@dataclass(frozen=True)
class Certificate:
    """Both objectives at a point, and how far it is from optimal."""

    primal: float
    dual: float
    violation: float
    intercept: float
    fitted: Array

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


@dataclass
class Problem:
    """The dual problem of one fit.

    Parameters
    ----------
    gram : Gram
        The kernel matrix, by rows.
    y : array (n,)
    terms : DualTerms
        The loss, as five numbers a sample.
    offset : bool
        Whether b is free, and so Σβ = 0.
    clip : float or None
        Evaluate the primal loss at predictions clipped to ±clip.
    """

    gram: Gram
    y: Array
    terms: DualTerms
    offset: bool
    clip: float | None = None

    @property
    def n(self) -> int:
        return len(self.y)

    def feasible(self, beta: Array) -> Array:
        """The point of the dual's domain nearest to β (a warm start from another C or τ)."""
        lower, upper = self.terms.lower, self.terms.upper
        if not self.offset:
            return np.clip(beta, lower, upper)
        return project_onto_sum(beta, lower, upper, 0.0)

    def starting_point(self, start: tuple[Array, Array] | None) -> tuple[Array, Array]:
        """β and the gradient Kβ − y to start from: zero, or a feasible β with its Kβ."""
        if start is None:
            return np.zeros(self.n), -self.y
        beta, fitted = start
        return beta.copy(), fitted - self.y

    def dual_value(self, beta: Array, fitted: Array) -> float:
        """−(½ βᵀKβ − yᵀβ + Σ g(β)) with fitted = Kβ."""
        gain = beta @ self.y - 0.5 * (beta @ fitted) - self.terms.value(beta).sum()
        return self._rounded(float(gain))

    def _rounded(self, objective: float) -> float:
        """An objective, 0 where it is what rounding leaves of a perfect fit."""
        return 0.0 if abs(objective) <= self._negligible else objective

    @cached_property
    def _negligible(self) -> float:
        """The rounding of the primal at f = 0: at an optimum of 0 it would be the whole gap."""
        return ROUNDING * float(self.terms.conjugate(self.y).sum())

    def primal_value(self, beta: Array, fitted: Array, intercept: float) -> float:
        """½ βᵀKβ + Σ cᵢ ℓ(yᵢ − fᵢ − b)."""
        prediction = fitted + intercept
        if self.clip is not None:
            prediction = np.clip(prediction, -self.clip, self.clip)
        losses = self.terms.conjugate(self.y - prediction)
        return self._rounded(float(0.5 * (beta @ fitted) + losses.sum()))

    def best_intercept(self, fitted: Array) -> float:
        """The b that minimises the primal at this f: the middle where an interval does."""
        if not self.offset:
            return 0.0
        return best_offset(self.terms, self.y - fitted)

    def violation(self, beta: Array, fitted: Array) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum.

        With up = y − f − g′₊(β) and down = y − f − g′₋(β): max up − min down with an
        offset, max(up, −down) without.
        """
        residual = self.y - fitted
        up = residual - self.terms.slope_up(beta)
        down = residual - self.terms.slope_down(beta)
        worst = up.max() - down.min() if self.offset else max(up.max(), -down.min())
        return max(float(worst), 0.0)

    def certificate(self, beta: Array) -> Certificate:
        """Primal, dual, violation and offset at β, from the data: Kβ is computed afresh."""
        fitted = self.gram.product(beta)
        intercept = self.best_intercept(fitted)
        return Certificate(
            primal=self.primal_value(beta, fitted, intercept),
            dual=self.dual_value(beta, fitted),
            violation=self.violation(beta, fitted),
            intercept=intercept,
            fitted=fitted,
        )
