"""The one dual problem, and the certificate of a point.

    primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)
    dual     min_β  ½ βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 when b is free]
    link     f = Σᵢ βᵢ k(xᵢ, ·)
    gap      ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b) + ½βᵀKβ − yᵀβ + Σᵢ gᵢ(βᵢ)

It is the same for a kernel machine, for a linear one, whose f is w·x, and for several levels at
once, where yᵢ, βᵢ and b are vectors and gᵢ a term of all of βᵢ.

:func:`certificate` is the only place where objectives are computed for a person's eyes. The
function that predicts and the dual point need not belong together: the primal is taken at the one,
the dual at the other, and their difference bounds how far the function is from the best there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..losses.group import GroupTerms
from ..losses.terms import DualTerms
from ..operators import Operator
from .domain import nearest_feasible
from .joint.offsets import best_offsets
from .offsets import best_free_offset
from .result import rank, relative_gap
from .units import Units

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: objectives up to this share of the best constant's primal count as 0
ROUNDING = 1e-14


@dataclass(frozen=True)
class Held:
    """What rows that do not take part pull while the problem is solved on the others.

    Attributes
    ----------
    function : array
        Σ βₖ k(xₖ, ·) over them.
    total : float
        Σ βₖ over them.
    """

    function: Array
    total: float


@dataclass
class Point:
    """A function that predicts, and a dual point beside it.

    Attributes
    ----------
    beta : array (n,) or (n, p)
        Feasible for the dual.
    function : array
        f, as the operator writes functions; the very array ``beta`` where f is that of β.
    intercept : float, array (p,) or None
        b; None for the best one.
    fitted : array or None
        f(xᵢ), where they have just been computed from the data for this very f.
    pulled : array or None
        The function of β with that of the rows held, likewise.
    energy : float or None
        βᵀKβ, or a bound of it from above, where that has just been computed from the data.
    """

    beta: Array
    function: Array
    intercept: Any = None
    fitted: Array | None = None
    pulled: Array | None = None
    energy: float | None = None

    @classmethod
    def of(cls, beta: Array, intercept: Any = None, fitted: Array | None = None) -> Point:
        """The point whose function is that of β, where functions are written by β."""
        return cls(beta, beta, intercept, fitted)


@dataclass(frozen=True)
class Certificate:
    """Both objectives at a point, from the data, and how far it is from optimal.

    Attributes
    ----------
    primal, dual : float
        The dual is the value to be maximised, so it bounds every primal from below.
    violation : float
        The largest gain of the dual's one-sided derivatives, 0 at an optimum.
    intercept : float or array (p,)
        The b that predicts.
    fitted : array
        f(xᵢ) without it.
    """

    primal: float
    dual: float
    violation: float
    intercept: Any
    fitted: Array

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    @property
    def rank(self) -> tuple[float, float]:
        """Of two points the one with the smaller rank is kept."""
        return rank(self.gap, self.primal)


@dataclass
class Problem:
    """The dual problem of one fit.

    Parameters
    ----------
    operator : Operator
        K.
    y : array (n,) or (n, p)
    terms : DualTerms or GroupTerms
        The loss, as five numbers a sample; with groups of levels for targets (n, p).
    offset : bool
        Whether b is free, and so Σβ = 0.
    column : float
        Without a free b: the constant column s of a penalised one. b = s·w₀, with w₀ penalised as f
        is. 0 for none.
    held : Held or None
        What rows pull that do not take part: the primal gains −⟨p, f⟩ − h·b with p their function
        and h their Σβ, and Σβ = −h over the others.
    units : Units
        What y and the terms were divided by and moved; results are taken back.
    size : float or None
        An objective's size, of which a share of 1e-14 counts as nothing; None for that of the best
        constant.
    """

    operator: Any
    y: Array
    terms: Any
    offset: bool
    column: float = 0.0
    held: Held | None = None
    units: Units = field(default_factory=Units)
    size: float | None = None
    #: the best b where f = 0, once it was asked for
    _constant: Any = field(default=None, init=False, repr=False)

    @classmethod
    def posed(
        cls, operator: Operator, y: Array, terms: DualTerms, offset: bool, units: Units
    ) -> Problem:
        """The problem of targets and terms in the user's units, posed in units of its own."""
        return cls(operator, units.targets(y), terms.in_units(units.scale), offset, units=units)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def grouped(self) -> bool:
        """Whether there are several levels or outputs, coupled by their terms."""
        return isinstance(self.terms, GroupTerms)

    @property
    def repeats(self) -> bool:
        """Whether rows may stand for several: costs are unlike, or targets alike as copies' are."""
        terms = self.terms.outputs if self.grouped else self.terms
        if (terms.numbers != terms.numbers[:, :1]).any():
            return True
        return len(np.unique(self.y, axis=0)) < self.n

    # ---- points ----

    def feasible(self, beta: Array) -> Array:
        """A point of the dual's domain next to β (a warm start from another C or τ)."""
        return nearest_feasible(self.terms, beta, -self.total_held if self.offset else None)

    @property
    def total_held(self) -> float:
        return 0.0 if self.held is None else self.held.total

    def function(self, beta: Array) -> Array:
        """The function of β with that of the rows held."""
        own = self.operator.function(beta)
        return own if self.held is None else own + self.held.function

    def values(self, function: Array) -> Array:
        """f(xᵢ); nothing is read of the data for f = 0."""
        return self.operator.values(function) if function.any() else np.zeros(self.y.shape)

    def constant_point(self, hurry: Callable[[], bool] = lambda: False) -> Point:
        """f = 0 with the best offset; on some rows alone, what these may have of it."""
        beta = self.feasible(np.zeros(self.y.shape))
        function = self.function(beta)
        if self.held is not None or not self.offset:
            return Point(beta, function)
        self.settle_constant(hurry)
        return Point(beta, function, self.constant, np.zeros(self.y.shape))

    # ---- offsets ----

    def best_intercept(self, fitted: Array, hurry: Callable[[], bool] = lambda: False) -> Any:
        """The b that minimises the primal at this f: the middle where an interval does.

        It is one that predictions can have, rounded as it is in the user's units.
        """
        if not self.offset:
            return np.zeros(self.y.shape[1]) if self.grouped else 0.0
        return self.units.settled(self._best_free(fitted, hurry))

    def _best_free(self, fitted: Array, hurry: Callable[[], bool] = lambda: False) -> Any:
        if self.grouped:
            return best_offsets(self.terms, self.y - fitted, hurry)
        return best_free_offset(self.terms, self.y, fitted, self.total_held)

    def penalised_intercept(self, beta: Array) -> float:
        """The b of the constant column at β: s² (h + Σβ)."""
        return self.column**2 * (self.total_held + float(beta.sum()))

    def intercept_of(self, point: Point, fitted: Array) -> Any:
        """The b that predicts with a point."""
        if point.intercept is not None:
            return self.units.settled(point.intercept) if self.offset else point.intercept
        if self.column > 0:
            return self.penalised_intercept(point.beta)
        return self.best_intercept(fitted)

    def settle_constant(self, hurry: Callable[[], bool]) -> None:
        """Find the best b where f = 0, or a good one where time is short."""
        if self._constant is None:
            self._constant = self.best_intercept(np.zeros(self.y.shape), hurry)

    @property
    def constant(self) -> Any:
        """The best b where f = 0."""
        self.settle_constant(lambda: False)
        return self._constant

    # ---- objectives ----

    def regulariser(self, function: Array, fitted: Array | None, intercept: Any) -> float:
        """½‖f‖², with the penalty on b and the pull of rows held."""
        value = 0.5 * self.operator.norm2(function, fitted)
        if self.held is not None:
            value -= self.operator.inner(self.held.function, function) + self.held.total * intercept
        if self.column > 0:
            value += 0.5 * (intercept / self.column) ** 2
        return value

    def primal_value(self, function: Array, fitted: Array, intercept: Any) -> float:
        """½‖f‖² + Σ cᵢ ℓ(yᵢ − fᵢ − b), with the penalty on b and the pull of rows held."""
        value = self.regulariser(function, fitted, intercept)
        return self._rounded(value + self.terms.total_loss(self.y, fitted, intercept))

    def dual_value(
        self,
        beta: Array,
        pulled: Array,
        values: Array | None = None,
        energy: float | None = None,
    ) -> float:
        """yᵀβ − ½ βᵀKβ − Σ g(β), by the function of β and, where they are known, its values.

        An ``energy`` stands for βᵀKβ; one that is larger gives a smaller bound.
        """
        if energy is None:
            energy = self.operator.norm2(pulled, values)
        value = float(np.vdot(beta, self.y)) - 0.5 * energy
        if self.column > 0:
            value -= 0.5 * (self.column * (self.total_held + float(beta.sum()))) ** 2
        return self._rounded(value - self.terms.total_value(beta))

    def dual_rounding(self, beta: Array, fitted: Array) -> float:
        """What the sums of :meth:`dual_value` may round: less says nothing about progress."""
        terms = float(np.vdot(np.abs(beta), np.abs(self.y) + 0.5 * np.abs(fitted)))
        return EPS * (terms + self.terms.total_value(beta))

    def rounding_reach(self, beta: Array, fitted: Array, intercept: Any) -> float:
        """How much the primal may change where all kernel values do by the largest of them.

        That moves f by k Σ|βᵢ| at most, and a loss by its slope times that.
        """
        slopes = np.abs(self.terms.response(self.y - fitted - intercept)).sum()
        return float(self.operator.diagonal.max() * np.abs(beta).sum() * slopes)

    def gap_from(self, beta: Array, gradient: Array) -> float:
        """The relative gap at β by a gradient Kβ − y that a kernel solver has in hand."""
        fitted = gradient + self.y
        primal = self.primal_value(beta, fitted, self.best_intercept(fitted))
        return relative_gap(primal, self.dual_value(beta, beta, fitted))

    def _rounded(self, objective: float) -> float:
        """An objective, 0 where it is what rounding leaves of a perfect fit.

        That is a share of the best constant's primal, which is looked for only where the primal
        at 0, an upper bound of it, does not decide.
        """
        if abs(objective) > ROUNDING * self._primal_at_zero and not self.grouped:
            return objective
        return 0.0 if abs(objective) <= self.negligible else objective

    @cached_property
    def _primal_at_zero(self) -> float:
        if self.held is not None:
            return 0.0
        return self.size or self.terms.total_loss(self.y, np.zeros(self.y.shape), 0.0)

    @cached_property
    def negligible(self) -> float:
        """An objective up to this is rounding: at an optimum of 0 it would be all there is."""
        if self.held is not None:
            return 0.0
        if self.size is not None:
            return ROUNDING * self.size
        nothing = np.zeros(self.y.shape)
        # a penalised constant lies between 0 and the best free one
        constant = self._best_free(nothing) if self.column > 0 else self.constant
        loss = self.terms.total_loss(self.y, nothing, constant)
        if self.grouped:
            # constants that fit but for the rounding of residuals fit
            slack = 4.0 * EPS * float(np.abs(self.y).max())
            if not self.terms.wider(slack).conjugate(self.y - constant).any():
                return loss
        return ROUNDING * loss


def certificate(problem: Problem, point: Point) -> Certificate:
    """Primal, dual and violation at a point, from the data.

    ::

        primal    ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)        at the function that predicts
        dual      yᵀβ − ½βᵀKβ − Σᵢ gᵢ(βᵢ)                  at β
        violation max up − min down with a free b, max(up, −down) without, for
                  up = y − f − b − g′₊(β) and down = y − f − b − g′₋(β)
    """
    function, beta = point.function, point.beta
    fitted = problem.values(function) if point.fitted is None else point.fitted
    intercept = problem.intercept_of(point, fitted)
    if function is beta:
        dual = problem.dual_value(beta, beta, fitted)
    else:
        pulled = problem.function(beta) if point.pulled is None else point.pulled
        known = fitted if pulled is function else None
        dual = problem.dual_value(beta, pulled, known, point.energy)
    return Certificate(
        primal=problem.primal_value(function, fitted, intercept),
        dual=dual,
        violation=problem.terms.violation(beta, problem.y, fitted, intercept, problem.offset),
        intercept=intercept,
        fitted=fitted,
    )
