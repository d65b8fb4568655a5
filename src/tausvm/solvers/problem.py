"""The one dual problem: objectives, offset, gap and violation.

    primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)
    dual     min_β  ½ βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 when b is free]
    link     f = Σᵢ βᵢ k(xᵢ, ·)
    gap      ½βᵀKβ + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b) + ½βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)

``dual_objective`` is minus the dual's value, so that it bounds the primal from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms
from ..operators import KernelOperator
from .onedim import best_offset, project_onto_sum
from .result import relative_gap
from .units import Units

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: objectives up to this share of the best constant's primal count as 0
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

    @property
    def excess(self) -> float:
        """How far above the optimum the primal may be; ∞ where an objective is not finite."""
        excess = self.primal - self.dual
        return excess if math.isfinite(excess) else math.inf


@dataclass
class Problem:
    """The dual problem of one fit.

    Parameters
    ----------
    gram : KernelOperator
        The kernel matrix, by rows.
    y : array (n,)
    terms : DualTerms
        The loss, as five numbers a sample.
    offset : bool
        Whether b is free, and so Σβ = 0.
    clip : float or None
        Stop by the paper's clipped gap: the primal loss at predictions clipped to ±clip. The
        certificate is of the function that was not clipped.
    units : Units
        What y and the terms were divided by and moved; results are taken back.
    """

    gram: KernelOperator
    y: Array
    terms: DualTerms
    offset: bool
    clip: float | None = None
    units: Units = field(default_factory=Units)

    @classmethod
    def posed(
        cls, gram: KernelOperator, y: Array, terms: DualTerms, offset: bool, units: Units
    ) -> Problem:
        """The problem of targets and terms in the user's units, posed in units of its own."""
        return cls(
            gram, units.targets(y), terms.in_units(units.scale), offset, clip=None, units=units
        )

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

    def dual_rounding(self, beta: Array, fitted: Array) -> float:
        """What the sums of :meth:`dual_value` may round: less says nothing about progress."""
        terms = np.abs(beta) @ np.abs(self.y) + 0.5 * np.abs(beta) @ np.abs(fitted)
        return float(EPS * (terms + self.terms.value(beta).sum()))

    def _rounded(self, objective: float) -> float:
        """An objective, 0 where it is what rounding leaves of a perfect fit.

        That is a share of the best constant's primal, which is looked for only where the primal
        at 0, an upper bound of it, does not decide.
        """
        if abs(objective) > ROUNDING * self._primal_at_zero:
            return objective
        return 0.0 if abs(objective) <= ROUNDING * self._best_constant_primal else objective

    @cached_property
    def _primal_at_zero(self) -> float:
        return float(self.terms.conjugate(self.y).sum())

    @cached_property
    def _best_constant_primal(self) -> float:
        constant = self.best_intercept(np.zeros(self.n))
        return float(self.terms.conjugate(self.y - constant).sum())

    def primal_value(self, beta: Array, fitted: Array, intercept: float) -> float:
        """½ βᵀKβ + Σ cᵢ ℓ(yᵢ − fᵢ − b)."""
        losses = self.terms.conjugate(self.y - intercept - fitted)
        return self._rounded(float(0.5 * (beta @ fitted) + losses.sum()))

    def stopping_primal(self, beta: Array, fitted: Array, intercept: float) -> float:
        """The primal that decides when to stop: at clipped predictions where that is asked for."""
        if self.clip is None:
            return self.primal_value(beta, fitted, intercept)
        losses = self.terms.conjugate(self.y - np.clip(fitted + intercept, -self.clip, self.clip))
        return self._rounded(float(0.5 * (beta @ fitted) + losses.sum()))

    def best_intercept(self, fitted: Array) -> float:
        """The b that minimises the primal at this f: the middle where an interval does.

        It is one that predictions can have, rounded as it is in the user's units.
        """
        if not self.offset:
            return 0.0
        return float(self.units.settled(best_offset(self.terms, self.y - fitted)))

    def gap_from(self, beta: Array, gradient: Array) -> float:
        """The relative gap at β by a gradient Kβ − y that a solver has in hand."""
        fitted = gradient + self.y
        primal = self.primal_value(beta, fitted, self.best_intercept(fitted))
        return relative_gap(primal, self.dual_value(beta, fitted))

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
