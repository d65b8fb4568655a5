"""The problem of a linear machine: objectives, offset and certificate, from the rows of X.

    primal   min_{w, b}  ½‖w‖² − pᵀw − h·b + Σᵢ cᵢ ℓ_ε(yᵢ − xᵢᵀw − b)
    dual     max_β  yᵀβ − ½‖p + Σᵢ βᵢxᵢ‖² − Σᵢ gᵢ(βᵢ)      [Σβᵢ = −h when b is free]
    link     w = p + Σᵢ βᵢ xᵢ

p and h are zero for a whole data set. They hold what other rows pull, whose β are kept fixed
while the problem is solved on some rows alone: p = Σ βₖxₖ and h = Σ βₖ of those.

Without a free offset a constant column s may stand beside X (LIBLINEAR's bias): b = s·w₀ with w₀
penalised like the other weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._core import terms as core
from ...losses.terms import KINK, LOWER, RIDGE_MINUS, RIDGE_PLUS, UPPER, DualTerms
from ..offsets import offset_interval, smooth_offset
from ..onedim import best_offset, middle, project_onto_sum
from ..problem import ROUNDING
from ..result import relative_gap
from ..units import Units
from .rows import Rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]


#: up to this many rows the offset is found by sorting, which takes many vectors of that length
SORTED = 20_000


@dataclass(frozen=True)
class Certificate:
    """Both objectives at a point, from the data, and how far it is from optimal.

    ``fitted`` is Xw.
    """

    primal: float
    dual: float
    violation: float
    fitted: Array

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


@dataclass
class LinearProblem:
    """The problem of one fit.

    Parameters
    ----------
    rows : Rows
    y : array (n,)
    terms : DualTerms
        The loss; its table may be a broadcast view, one column for all.
    offset : bool
        Whether b is free.
    column : float
        The constant column s, 0 without; not together with ``offset``.
    pull : array (d,) or None
        p.
    held : float
        h.
    units : Units
        What y and the terms were divided by and moved; results are taken back.
    """

    rows: Rows
    y: Array
    terms: DualTerms
    offset: bool
    column: float = 0.0
    pull: Array | None = None
    held: float = 0.0
    units: Units = field(default_factory=Units)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        return self.rows.n_features

    @cached_property
    def bounded(self) -> bool:
        """Whether some β has a bound: the loss grows linearly there and has a corner."""
        columns = self.terms.numbers
        return bool(np.isfinite(columns[[LOWER, UPPER]]).any())

    def restrict(self, index: Index, beta: Array, coef: Array) -> LinearProblem:
        """The problem on some rows, the others held at β; ``coef`` is p + Σ βᵢxᵢ over all."""
        rows = self.rows.take(index)
        inside = beta[index]
        total = float(beta.sum() - inside.sum())
        return LinearProblem(
            rows=rows,
            y=self.y[index],
            terms=take_terms(self.terms, index),
            offset=self.offset,
            column=self.column,
            pull=coef - rows.sum(inside),
            held=self.held + total,
        )

    def sample(self, index: Index, factor: float) -> LinearProblem:
        """The problem on some rows that stand for all: costs are multiplied by ``factor``."""
        terms = take_terms(self.terms, index)
        scale = np.ones((5, 1))
        scale[[LOWER, UPPER]], scale[[RIDGE_MINUS, RIDGE_PLUS]] = factor, 1.0 / factor
        scaled = DualTerms(np.where(terms.numbers == 0, 0.0, terms.numbers * scale))
        return LinearProblem(self.rows.take(index), self.y[index], scaled, self.offset, self.column)

    def weights(self, beta: Array) -> Array:
        """w = p + Σ βᵢxᵢ; nothing is read of X where β is 0."""
        w = self.rows.sum(beta) if beta.any() else np.zeros(self.d)
        return w if self.pull is None else w + self.pull

    def values(self, coef: Array) -> Array:
        """Xw; nothing is read of X where w is 0."""
        return self.rows.dot(coef) if coef.any() else np.zeros(self.n)

    def constant(self, beta: Array) -> float:
        """The b of the constant column at β: s² (h + Σβ)."""
        return self.column**2 * (self.held + float(beta.sum()))

    def regulariser(self, coef: Array, intercept: float) -> float:
        """½‖w‖² − pᵀw − h·b, with the constant column's own weight where there is one."""
        value = 0.5 * float(coef @ coef)
        if self.pull is not None:
            value -= float(self.pull @ coef)
        value -= self.held * intercept
        if self.column > 0:
            weight = intercept / self.column
            value += 0.5 * weight * weight
        return value

    def primal_value(self, coef: Array, intercept: float, fitted: Array) -> float:
        """The primal with fitted = Xw."""
        loss = core.conjugates(self.terms.numbers, self.y, fitted, intercept)
        return self._rounded(self.regulariser(coef, intercept) + loss)

    def dual_value(self, beta: Array, coef: Array) -> float:
        """The dual with coef = p + Σ βᵢxᵢ."""
        value = float(beta @ self.y) - 0.5 * float(coef @ coef)
        if self.column > 0:
            weight = self.column * (self.held + float(beta.sum()))
            value -= 0.5 * weight * weight
        return self._rounded(value - core.values(self.terms.numbers, beta))

    def _rounded(self, objective: float) -> float:
        return 0.0 if abs(objective) <= self._negligible else objective

    @cached_property
    def _negligible(self) -> float:
        """The rounding of the best constant's primal: at an optimum of 0 it would be all."""
        if self.pull is not None:
            return 0.0
        nothing = np.zeros(self.n)
        constants = [self.best_constant]
        if self.column > 0:  # it is penalised: between 0 and the best free one
            constants.append(self._best_free(nothing))
        losses = (
            self.regulariser(np.zeros(0), b)
            + core.conjugates(self.terms.numbers, self.y, nothing, b)
            for b in constants
        )
        return ROUNDING * float(min(losses))

    @cached_property
    def best_constant(self) -> float:
        """The best b at w = 0."""
        return self.best_intercept(np.zeros(self.n))

    def best_intercept(self, fitted: Array) -> float:
        """The free b that minimises the primal at this w: the middle where an interval does.

        It is one that predictions can have, rounded as it is in the user's units.
        """
        if not self.offset:
            return 0.0
        return float(self.units.settled(self._best_free(fitted)))

    def _best_free(self, fitted: Array) -> float:
        residual = self.y - fitted
        if self.n <= SORTED and self.held == 0.0:
            return best_offset(self.terms, residual)
        if not self.bounded:
            return smooth_offset(self.terms.numbers, residual, self.held)
        return middle(*offset_interval(self.terms.numbers, residual, self.held))

    def feasible(self, beta: Array) -> Array:
        """The point of the dual's domain nearest to β."""
        lower, upper = self.terms.lower, self.terms.upper
        if not self.offset:
            return np.clip(beta, lower, upper)
        return project_onto_sum(beta, lower, upper, -self.held)

    def balanced(self, beta: Array) -> Array:
        """β with Σβ = −h, moved where the dual is smooth: its loss is then of second order."""
        excess = float(beta.sum()) + self.held
        if excess == 0:
            return beta.copy()
        terms, moved = self.terms, np.empty(self.n)
        share, widest = core.balance(terms.numbers, beta, excess, moved)
        if share < 0.5:
            # what the division rounded
            moved[widest] -= float(moved.sum()) + self.held
            return moved
        return project_onto_sum(beta, terms.lower, terms.upper, -self.held)

    def certificate(
        self,
        beta: Array,
        coef: Array,
        intercept: float,
        fitted: Array | None = None,
        pulled: Array | None = None,
    ) -> Certificate:
        """Both objectives from the data: the primal at (w, b), the dual at β.

        ``fitted`` and ``pulled`` are Xw and p + Σ βᵢxᵢ where the caller has just multiplied these
        very w and β with the data. They are computed where they are not given.
        """
        if fitted is None:
            fitted = self.values(coef)
        if pulled is None:
            pulled = self.weights(beta)
        up, down = core.one_sided(self.terms.numbers, beta, self.y, fitted, intercept)
        return Certificate(
            primal=self.primal_value(coef, intercept, fitted),
            dual=self.dual_value(beta, pulled),
            violation=max(float(up - down if self.offset else max(up, -down)), 0.0),
            fitted=fitted,
        )


def take_terms(terms: DualTerms, index: Index) -> DualTerms:
    """The terms of some samples; one column for all stays one."""
    numbers = terms.numbers
    if numbers.strides[1] == 0:
        return DualTerms(np.broadcast_to(numbers[:, :1], (5, len(index))))
    return terms.take(index)


def shared_terms(terms: DualTerms, n: int) -> DualTerms:
    """One sample's term for n samples, without a table of n columns."""
    return DualTerms(np.broadcast_to(terms.numbers[:, :1], (5, n)))


__all__ = ["KINK", "Certificate", "LinearProblem", "shared_terms", "take_terms"]
