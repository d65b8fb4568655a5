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

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._core import linear as core
from ...losses.terms import KINK, LOWER, RIDGE_MINUS, RIDGE_PLUS, UPPER, DualTerms
from ..onedim import best_offset, middle, project_onto_sum
from ..problem import ROUNDING
from ..result import relative_gap
from .offset import offset_interval, smooth_offset
from .rows import Rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]


#: up to this many rows the offset is found by sorting, which takes many vectors of that length
SORTED = 20_000


@dataclass(frozen=True)
class Certificate:
    """Both objectives at a point, and how far it is from optimal."""

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
    """

    rows: Rows
    y: Array
    terms: DualTerms
    offset: bool
    column: float = 0.0
    pull: Array | None = None
    held: float = 0.0

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
        """w = p + Σ βᵢxᵢ."""
        w = self.rows.sum(beta)
        return w if self.pull is None else w + self.pull

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
            value += 0.5 * (intercept / self.column) ** 2
        return value

    def primal_value(self, coef: Array, intercept: float, fitted: Array) -> float:
        """The primal with fitted = Xw."""
        loss = core.conjugates(self.terms.numbers, self.y, fitted, intercept)
        return self._rounded(self.regulariser(coef, intercept) + loss)

    def dual_value(self, beta: Array, coef: Array) -> float:
        """The dual with coef = p + Σ βᵢxᵢ."""
        value = float(beta @ self.y) - 0.5 * float(coef @ coef)
        if self.column > 0:
            value -= 0.5 * self.column**2 * (self.held + float(beta.sum())) ** 2
        return self._rounded(value - core.values(self.terms.numbers, beta))

    def _rounded(self, objective: float) -> float:
        return 0.0 if abs(objective) <= self._negligible else objective

    @cached_property
    def _negligible(self) -> float:
        """The rounding of the primal at w = 0, where that is all there is to an objective."""
        if self.pull is not None:
            return 0.0
        return ROUNDING * core.conjugates(self.terms.numbers, self.y, np.zeros(self.n), 0.0)

    def best_intercept(self, fitted: Array) -> float:
        """The free b that minimises the primal at this w: the middle where an interval does."""
        if not self.offset:
            return 0.0
        if self.n <= SORTED and self.held == 0.0:
            return best_offset(self.terms, self.y - fitted)
        residual = self.y - fitted
        if not self.bounded:
            return smooth_offset(self.terms.numbers, residual, self.held)
        return middle(*offset_interval(self.terms.numbers, residual, self.held))

    def feasible(self, beta: Array) -> Array:
        """The point of the dual's domain nearest to β."""
        lower, upper = self.terms.lower, self.terms.upper
        if not self.offset:
            return np.clip(beta, lower, upper)
        return project_onto_sum(beta, lower, upper, -self.held)

    def certificate(
        self,
        beta: Array,
        coef: Array,
        intercept: float,
        fitted: Array | None = None,
        pulled: Array | None = None,
    ) -> Certificate:
        """Both objectives from the data: the primal at (w, b), the dual at β.

        Xw and p + Σ βᵢxᵢ are computed where they are not given.
        """
        if fitted is None:
            fitted = self.rows.dot(coef)
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
