"""The free offset of one level: the zero of a decreasing piecewise linear function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.terms import offset_slope
from ..losses.terms import DualTerms
from .onedim import NOTHING, best_offset, middle, residual_range, smooth_offset

Array = NDArray[np.float64]

#: up to this many rows the offset is found by sorting, which takes many vectors of that length
SORTED = 20_000


def best_free_offset(terms: DualTerms, y: Array, fitted: Array, held: float) -> float:
    """The b that minimises Σ cᵢ ℓ(yᵢ − fᵢ − b) − h·b: the middle where an interval does."""
    if len(y) <= SORTED and held == 0.0:
        return best_offset(terms, y - fitted)
    if terms.smooth:
        return smooth_offset(terms.numbers, y, fitted, held)
    return middle(*offset_interval(terms.numbers, y, fitted, held))


def offset_interval(numbers: Array, y: Array, fitted: Array, held: float) -> tuple[float, float]:
    """Where Σ β(y − f − b) + h passes 0 as b rises: its last point above and first point below."""

    def excess(b: float) -> float:
        return float(offset_slope(numbers, y, fitted, 0.0, NOTHING, b)[0]) + held

    low, high = residual_range(y, fitted)
    # where all residuals are 0 and there is no tube, any unit will do
    reach = float(numbers[2].max()) + (high - low or abs(low)) or 1.0
    low, high = low - reach, high + reach
    while excess(low) < 0 and np.isfinite(low):
        low -= 2.0 * (abs(low) + reach)
    while excess(high) > 0 and np.isfinite(high):
        high += 2.0 * (abs(high) + reach)
    slack = 1e-12 * abs(excess(low) - excess(high))
    fine = 1e-14 * (high - low)

    def crossing(level: float, below: float, above: float) -> float:
        """Where the function ceases to be above this level."""
        while above - below > fine:
            middle = 0.5 * (below + above)
            if not below < middle < above:  # residuals of one value but for rounding
                break
            if excess(middle) > level:
                below = middle
            else:
                above = middle
        return 0.5 * (below + above)

    first = crossing(slack, low, high)
    after = first + 2.0 * fine
    return first, first if excess(after) <= -slack else crossing(-slack, after, high)
