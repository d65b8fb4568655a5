"""Zeros of monotone functions of one number: the offset, and sums held constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms

Array = NDArray[np.float64]


class _Stretches:
    """A non-increasing function that is linear between sorted knots and may jump at them."""

    def __init__(self, function: Callable[[float], float], knots: Array) -> None:
        self.function = function
        self.knots = knots
        self.reach = 1.0 + float(knots[-1] - knots[0])

    def __len__(self) -> int:
        return len(self.knots) + 1

    def bounds(self, s: int) -> tuple[float, float]:
        """The ends of stretch s; the outer two are infinite."""
        left = -np.inf if s == 0 else float(self.knots[s - 1])
        right = np.inf if s == len(self.knots) else float(self.knots[s])
        return left, right

    def inner_line(self, s: int) -> tuple[float, float, float]:
        """A point inside stretch s, the value there and the slope."""
        left, right = self.bounds(s)
        if np.isinf(left):
            a, b = right - self.reach, right - 0.5 * self.reach
        elif np.isinf(right):
            a, b = left + 0.5 * self.reach, left + self.reach
        else:
            a, b = left + 0.25 * (right - left), left + 0.75 * (right - left)
        value = self.function(a)
        if not a < b:
            return a, value, 0.0
        return a, value, min((self.function(b) - value) / (b - a), 0.0)

    def ends(self, s: int) -> tuple[float, float]:
        """The limits of the function at both ends of stretch s."""
        left, right = self.bounds(s)
        a, value, slope = self.inner_line(s)
        if slope == 0:
            return value, value
        return value + slope * (left - a), value + slope * (right - a)

    def zero(self, s: int) -> float:
        """The zero of the line of stretch s, kept inside the stretch."""
        a, value, slope = self.inner_line(s)
        left, right = self.bounds(s)
        zero = min(max(a - value / slope, left), right)
        polished = zero - self.function(zero) / slope
        return polished if left < polished < right else zero

    def first(self, condition: Callable[[int], bool]) -> int:
        """The first stretch that meets a condition which, once true, stays true."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if condition(middle):
                high = middle
            else:
                low = middle + 1
        return low


def zero_interval(
    function: Callable[[float], float], knots: Array, slack: float
) -> tuple[float, float]:
    """The interval where a non-increasing function with these knots is 0 (within slack)."""
    line = _Stretches(function, knots)
    last = len(line) - 1
    s = min(line.first(lambda k: line.ends(k)[1] <= slack), last)
    start, end = line.ends(s)
    low = line.bounds(s)[0] if start <= slack or start == end else line.zero(s)
    t = max(line.first(lambda k: line.ends(k)[0] < -slack) - 1, 0)
    start, end = line.ends(t)
    high = line.bounds(t)[1] if end >= -slack or start == end else line.zero(t)
    return low, max(low, high)


def best_offset(terms: DualTerms, residual: Array) -> float:
    """The b that minimises Σ cᵢ ℓ(rᵢ − b), the middle of the interval where not unique.

    Its derivative is −Σ response(rᵢ − b), linear between the points where a residual
    passes its kink or its bound.
    """
    active = np.flatnonzero(terms.upper > terms.lower)
    if len(active) == 0:
        return 0.0
    if len(active) < len(residual):
        terms = terms.take(active)
        residual = residual[active]
    saturates_up = np.isfinite(terms.upper) & (terms.ridge_plus > 0)
    saturates_down = np.isfinite(terms.lower) & (terms.ridge_minus > 0)
    above, below = residual - terms.kink, residual + terms.kink
    knots = np.unique(
        np.concatenate(
            [
                above,
                below,
                (above - terms.ridge_plus * terms.upper)[saturates_up] if saturates_up.any()
                else above[:0],
                (below - terms.ridge_minus * terms.lower)[saturates_down] if saturates_down.any()
                else above[:0],
            ]
        )
    )
    bounds = np.concatenate([terms.upper, -terms.lower])
    slack = 1e-12 * bounds[np.isfinite(bounds)].sum()
    low, high = zero_interval(lambda b: float(terms.response(residual - b).sum()), knots, slack)
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(low):
        return high
    if np.isinf(high):
        return low
    return 0.5 * (low + high)


def project_onto_sum(point: Array, lower: Array, upper: Array, total: float) -> Array:
    """The nearest point of the box with a given sum: clip(point − s) for the right s."""
    clipped = np.clip(point, lower, upper)
    if clipped.sum() == total:
        return clipped
    knots = np.concatenate([point - lower, point - upper])
    knots = knots[np.isfinite(knots)]
    if len(knots) == 0:
        return point - (point.sum() - total) / len(point)
    low, high = zero_interval(
        lambda s: float(np.clip(point - s, lower, upper).sum()) - total, np.unique(knots), 0.0
    )
    shift = high if np.isinf(low) else low if np.isinf(high) else 0.5 * (low + high)
    projected = np.clip(point - shift, lower, upper)
    # the shift may be much larger than what is left: correct its rounding
    free = (projected > lower) & (projected < upper)
    if free.any():
        missing = (total - projected.sum()) / np.count_nonzero(free)
        projected[free] = np.clip(projected[free] + missing, lower[free], upper[free])
    return projected
