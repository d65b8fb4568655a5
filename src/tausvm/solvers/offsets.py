"""The free offset of one level: the zero of a decreasing piecewise linear function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.terms import offset_slope
from ..losses.terms import DualTerms
from .onedim import best_offset, increasing_zero, middle

Array = NDArray[np.float64]

NOTHING = np.zeros(1)
#: up to this many rows the offset is found by sorting, which takes many vectors of that length
SORTED = 20_000


def best_free_offset(terms: DualTerms, y: Array, fitted: Array, held: float) -> float:
    """The b that minimises Σ cᵢ ℓ(yᵢ − fᵢ − b) − h·b: the middle where an interval does."""
    if len(y) <= SORTED and held == 0.0:
        return best_offset(terms, y - fitted)
    if terms.smooth:
        return smooth_offset(terms.numbers, y, fitted, held)
    return middle(*offset_interval(terms.numbers, y, fitted, held))


def _range(y: Array, fitted: Array | None) -> tuple[float, float]:
    """Between which numbers all residuals y − f lie, without a vector of them."""
    if fitted is None:
        return float(y.min()), float(y.max())
    return float(y.min() - fitted.max()), float(y.max() - fitted.min())


def smooth_offset(
    numbers: Array,
    y: Array,
    fitted: Array | None,
    held: float,
    sigma: float = 0.0,
    centre: Array = NOTHING,
) -> float:
    """The b at which Σ β(y − f − b) = −h, for terms with a ridge or σ > 0; f may be None for 0."""

    def excess(b: float) -> tuple[float, float]:
        total, bend = offset_slope(numbers, y, fitted, sigma, centre, b)
        return -total - held, bend

    value, bend = excess(0.0)
    low, high = _range(y, fitted)
    largest = max(high, -low)
    small = 1e-15 * (abs(held) + abs(value) + bend * largest)
    # responses cease to change no further away than this
    lower, upper = numbers[:2]
    bound = max(
        float(np.max(upper, initial=0.0, where=np.isfinite(upper))),
        -float(np.min(lower, initial=0.0, where=np.isfinite(lower))),
    )
    ridge = float(numbers[3:].max()) + sigma
    extent = largest + float(numbers[2].max()) + ridge * bound + sigma * float(np.abs(centre).max())
    return increasing_zero(excess, 0.0, small, reach=1e-3 * extent)


def offset_interval(numbers: Array, y: Array, fitted: Array, held: float) -> tuple[float, float]:
    """Where Σ β(y − f − b) + h passes 0 as b rises: its last point above and first point below."""

    def excess(b: float) -> float:
        return float(offset_slope(numbers, y, fitted, 0.0, NOTHING, b)[0]) + held

    low, high = _range(y, fitted)
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
            if excess(middle) > level:
                below = middle
            else:
                above = middle
        return 0.5 * (below + above)

    first = crossing(slack, low, high)
    after = first + 2.0 * fine
    return first, first if excess(after) <= -slack else crossing(-slack, after, high)
