"""The free offset of one level: the zero of a decreasing piecewise linear function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core import linear as core
from ..losses.terms import DualTerms
from .onedim import best_offset, middle

Array = NDArray[np.float64]

NOTHING = np.zeros(1)
#: up to this many rows the offset is found by sorting, which takes many vectors of that length
SORTED = 20_000
#: an offset is known when its bracket has shrunk to this share of the range of the residuals
FINEST = 1e-14


def best_free_offset(terms: DualTerms, residual: Array, held: float) -> float:
    """The b that minimises Σ cᵢ ℓ(rᵢ − b) − h·b: the middle where an interval does."""
    if len(residual) <= SORTED and held == 0.0:
        return best_offset(terms, residual)
    numbers = terms.numbers
    if np.isinf(numbers[:2]).all():
        return smooth_offset(numbers, residual, held)
    return middle(*offset_interval(numbers, residual, held))


def smooth_offset(
    numbers: Array, residual: Array, held: float, sigma: float = 0.0, centre: Array = NOTHING
) -> float:
    """The b at which Σ β(r − b) = −h, for terms with a ridge or σ > 0."""

    def excess(b: float) -> tuple[float, float]:
        total, bend = core.offset_slope(numbers, residual, sigma, centre, b)
        return total + held, bend

    b, (value, bend) = 0.0, excess(0.0)
    largest = max(float(residual.max()), -float(residual.min()))
    small = 1e-15 * (abs(held) + abs(value) + bend * largest)
    low, high, reach = -np.inf, np.inf, 0.0
    for _ in range(200):
        if abs(value) <= small:
            break
        if value > 0:
            low = b
        else:
            high = b
        step = b + value / bend if bend > 0 else np.nan
        if not low < step < high:
            if np.isfinite(low) and np.isfinite(high):
                step = 0.5 * (low + high)
            else:  # flat here: look further and further away
                reach = max(2.0 * reach, 1e-3 * _extent(numbers, largest, sigma, centre))
                step = b + (reach if value > 0 else -reach)
        if step in (low, high, b):
            break
        b = step
        value, bend = excess(b)
    return b


def _extent(numbers: Array, largest: float, sigma: float, centre: Array) -> float:
    """How far from 0 responses may cease to change, when no residual is larger than this."""
    bound = float(np.max(np.abs(numbers[:2]), initial=0.0, where=np.isfinite(numbers[:2])))
    ridge = float(numbers[3:].max()) + sigma
    return largest + float(numbers[2].max()) + ridge * bound + sigma * float(np.abs(centre).max())


def offset_interval(numbers: Array, residual: Array, held: float) -> tuple[float, float]:
    """Where Σ β(r − b) + h passes 0 as b rises: its last point above and first point below."""

    def excess(b: float) -> float:
        return float(core.offset_slope(numbers, residual, 0.0, NOTHING, b)[0]) + held

    low, high = float(residual.min()), float(residual.max())
    # where all residuals are 0 and there is no tube, any unit will do
    reach = float(numbers[2].max()) + (high - low or abs(low)) or 1.0
    low, high = low - reach, high + reach
    while excess(low) < 0 and np.isfinite(low):
        low -= 2.0 * (abs(low) + reach)
    while excess(high) > 0 and np.isfinite(high):
        high += 2.0 * (abs(high) + reach)
    slack = 1e-12 * abs(excess(low) - excess(high))
    fine = FINEST * (high - low)

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
