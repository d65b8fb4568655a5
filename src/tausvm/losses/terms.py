"""The five numbers per sample that a solver sees of a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.terms import conjugates, one_sided, values

Array = NDArray[np.float64]

LOWER, UPPER, KINK, RIDGE_MINUS, RIDGE_PLUS = range(5)

#: between these a number of a term, and its square, can be computed with
LEAST, MOST = 1e-100, 1e100


def _shared(numbers: Array) -> bool:
    """Whether one column stands for all samples."""
    return numbers.ndim == 2 and numbers.shape[1] > 1 and numbers.strides[1] == 0


@dataclass(frozen=True)
class DualTerms:
    """The separable part of the dual, one term a sample.

    ::

        gᵢ(β) = kink·|β| + ½·(ridge₊ if β > 0 else ridge₋)·β²   on [lowerᵢ, upperᵢ]

    It holds everything about a loss that the dual problem needs, and, through its
    conjugate, the primal loss too: cᵢ ℓ(r) = sup_β (rβ − gᵢ(β)).

    Parameters
    ----------
    numbers : array of shape (5, n)
        Rows lower ≤ 0, upper ≥ 0, kink ≥ 0, ridge₋ ≥ 0, ridge₊ ≥ 0. A side with an
        infinite bound has a positive ridge.
    """

    numbers: Array

    @classmethod
    def build(
        cls,
        n: int,
        lower: ArrayLike,
        upper: ArrayLike,
        kink: ArrayLike = 0.0,
        ridge_minus: ArrayLike = 0.0,
        ridge_plus: ArrayLike = 0.0,
    ) -> DualTerms:
        """Broadcast scalars and arrays to the (5, n) table."""
        numbers = np.empty((5, n))
        for row, value in enumerate((lower, upper, kink, ridge_minus, ridge_plus)):
            numbers[row] = value
        return cls(numbers)

    @property
    def lower(self) -> Array:
        return self.numbers[LOWER]

    @property
    def upper(self) -> Array:
        return self.numbers[UPPER]

    @property
    def kink(self) -> Array:
        return self.numbers[KINK]

    @property
    def ridge_minus(self) -> Array:
        return self.numbers[RIDGE_MINUS]

    @property
    def ridge_plus(self) -> Array:
        return self.numbers[RIDGE_PLUS]

    def in_units(self, scale: float) -> DualTerms:
        """The terms for targets divided by ``scale``, objectives divided by its square.

        A ValueError where their numbers are so large or small that squares of them overflow.
        """
        terms = self._times(1.0 / scale, 1.0 / scale)
        sizes = np.abs(terms.numbers[[LOWER, UPPER, RIDGE_MINUS, RIDGE_PLUS], ...])
        sizes = sizes[:, :1] if _shared(terms.numbers) else sizes
        wrong = sizes[np.isfinite(sizes) & (sizes > 0) & ~((sizes > LEAST) & (sizes < MOST))]
        nothing = not sizes[:2].any()  # costs that underflowed altogether
        if nothing or len(wrong) > 0 or np.isnan(sizes).any() or np.isinf(sizes[2:]).any():
            got = 0.0 if nothing else float(wrong[0]) if len(wrong) > 0 else np.inf
            raise ValueError(
                f"C times sample_weight and the shares of tau must lie between {LEAST:g} and "
                f"{MOST:g} in units of y's spread, as must their inverses for squared losses, "
                f"got {got:.3g}"
            )
        return terms

    def widened(self, factor: float) -> DualTerms:
        """The terms with both bounds multiplied: those of a C that has the unit of y."""
        return self._times(factor, 1.0)

    def _times(self, bounds: float, kink: float) -> DualTerms:
        """Bounds and kinks multiplied; one column for all samples stays one."""
        numbers = self.numbers
        shared = _shared(numbers)
        out = np.array(numbers[:, :1] if shared else numbers)
        with np.errstate(over="ignore", under="ignore"):
            out[[LOWER, UPPER]] *= bounds
            out[KINK] *= kink
        return DualTerms(np.broadcast_to(out, numbers.shape) if shared else out)

    def take(self, index: NDArray[np.int64] | NDArray[np.int32]) -> DualTerms:
        """The terms of some samples."""
        if _shared(self.numbers):
            return DualTerms(np.broadcast_to(self.numbers[:, :1], (5, len(index))))
        return DualTerms(np.ascontiguousarray(self.numbers[:, index]))

    def shared(self, n: int) -> DualTerms:
        """The first sample's term for n samples, without a table of n columns."""
        return DualTerms(np.broadcast_to(self.numbers[:, :1], (5, n)))

    @property
    def smooth(self) -> bool:
        """Whether the loss has no corners: no β has a bound."""
        numbers = self.numbers[:, :1] if _shared(self.numbers) else self.numbers
        return bool(np.isinf(numbers[[LOWER, UPPER]]).all())

    @property
    def room(self) -> float:
        """Σ |lower| + |upper|, of bounds that are finite."""
        columns = self.numbers.shape[1]
        bounds = np.abs(self.numbers[LOWER : UPPER + 1, : 1 if _shared(self.numbers) else columns])
        return float(bounds.sum(where=np.isfinite(bounds))) * columns / bounds.shape[1]

    def ridge(self, beta: Array) -> Array:
        """The curvature of g on the side where β lies (the minus side at 0)."""
        return np.where(beta > 0, self.ridge_plus, self.ridge_minus)

    def value(self, beta: Array) -> Array:
        """gᵢ(βᵢ) for β within its bounds."""
        return self.kink * np.abs(beta) + 0.5 * self.ridge(beta) * beta**2

    def slope_up(self, beta: Array) -> Array:
        """The right derivative of g, +∞ at the upper bound."""
        slope = np.where(
            beta >= 0, self.kink + self.ridge_plus * beta, -self.kink + self.ridge_minus * beta
        )
        return np.where(beta >= self.upper, np.inf, slope)

    def slope_down(self, beta: Array) -> Array:
        """The left derivative of g, −∞ at the lower bound."""
        slope = np.where(
            beta > 0, self.kink + self.ridge_plus * beta, -self.kink + self.ridge_minus * beta
        )
        return np.where(beta <= self.lower, -np.inf, slope)

    def _sides(self, residual: Array) -> tuple[Array, Array, Array, Array]:
        """Per sample: how far the residual is past the kink, and that side's sign, end, ridge."""
        plus = residual > 0
        excess = np.abs(residual) - self.kink
        end = np.where(plus, self.upper, -self.lower)
        ridge = np.where(plus, self.ridge_plus, self.ridge_minus)
        return np.where(plus, 1.0, -1.0), np.maximum(excess, 0.0), end, ridge

    def response(self, residual: Array) -> Array:
        """argmax_β (rβ − g(β)), the smallest in size where several are: the derivative of cℓ."""
        sign, excess, end, ridge = self._sides(residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(excess > 0, np.where(ridge > 0, excess / ridge, end), 0.0)
        return sign * np.minimum(size, end)

    def conjugate(self, residual: Array) -> Array:
        """sup_β (rβ − g(β)), which is the primal loss cᵢ ℓ_ε(rᵢ)."""
        _, excess, end, ridge = self._sides(residual)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(excess > 0, np.where(ridge > 0, excess / ridge, end), 0.0)
        size = np.minimum(size, end)
        with np.errstate(over="ignore"):  # infinite where float64 ends, and never NaN
            return np.asarray(size * (excess - 0.5 * ridge * size))

    def total_value(self, beta: Array) -> float:
        """Σ gᵢ(βᵢ), without a vector in between."""
        return float(values(self.numbers, np.ascontiguousarray(beta)))

    def total_loss(self, y: Array, fitted: Array, intercept: float) -> float:
        """Σ cᵢ ℓ(yᵢ − fᵢ − b), without a vector in between."""
        return float(conjugates(self.numbers, y, fitted, intercept))

    def violation(
        self, beta: Array, y: Array, fitted: Array, intercept: float, offset: bool
    ) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum.

        With up = y − f − b − g′₊(β) and down = y − f − b − g′₋(β): max up − min down where b is
        free, so that β move in pairs, max(up, −down) where it is not.
        """
        up, down = one_sided(self.numbers, beta, y, fitted, intercept)
        return max(float(up - down if offset else max(up, -down)), 0.0)
