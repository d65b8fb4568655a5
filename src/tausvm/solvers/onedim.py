"""Zeros of monotone piecewise linear functions: the offset, and sums held constant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._core.terms import offset_slope
from ..losses.terms import RIDGE_MINUS, RIDGE_PLUS, DualTerms

Array = NDArray[np.float64]

NOTHING = np.zeros(1)


def zero_interval(
    function: Callable[[float], float], knots: Array, jumps: Array, bends: Array, slack: float
) -> tuple[float, float]:
    """The interval where a non-increasing piecewise linear function is 0, within ``slack``.

    Parameters
    ----------
    function : callable
        The function itself; it is called where its value is not known from the rest.
    knots, jumps, bends : arrays
        At each knot the function jumps and its slope changes by so much. The slope after
        the last knot is 0 or follows from the others and the slope before the first.
    slack : float
        Values up to this size count as 0.

    Returns
    -------
    low, high : float
        Infinite where the function is 0 all the way.
    """
    order = np.argsort(knots, kind="stable")
    knots, jumps, bends = knots[order], jumps[order], bends[order]
    # any distance before the first knot serves that can be told from it
    reach = max(float(knots[-1] - knots[0]), 1e-6 * float(np.abs(knots).max())) or 1.0
    before = float(knots[0]) - reach
    anchor = function(before)
    first_slope = min((function(before + 0.5 * reach) - anchor) / (0.5 * reach), 0.0)
    slopes = np.minimum(first_slope + np.cumsum(bends), 0.0)
    slopes[np.abs(slopes) <= 1e-13 * np.abs(bends).sum()] = 0.0
    starts = np.concatenate([[before], knots])
    slopes = np.concatenate([[first_slope], slopes])
    # values at the left and right of every knot
    falls = slopes[:-1] * np.diff(starts)
    left = anchor + np.cumsum(falls) + np.concatenate([[0.0], np.cumsum(jumps)[:-1]])
    right = left + jumps
    slack += 1e-13 * max(abs(anchor), float(np.abs(left).max()))  # what these sums may round

    def zero_from(stretch: int, value: float) -> float:
        """The zero of the stretch that begins at ``starts[stretch]`` with this value."""
        slope = float(slopes[stretch])
        if slope == 0.0:
            return np.inf if value > 0 else -np.inf
        zero = float(starts[stretch]) - value / slope
        # cumulated sums round: correct by the function itself
        return zero - function(zero) / slope

    below = np.flatnonzero(right <= slack)
    if len(below) == 0:
        low = zero_from(len(knots), float(right[-1]))
    elif left[below[0]] > slack:
        low = float(knots[below[0]])
    else:
        k = int(below[0])
        low = zero_from(k, anchor if k == 0 else float(right[k - 1]))
        low = min(low, float(knots[k]))
    above = np.flatnonzero(left >= -slack)
    if len(above) == 0:
        high = zero_from(0, anchor)
    elif right[above[-1]] < -slack:
        high = float(knots[above[-1]])
    else:
        k = int(above[-1])
        high = np.inf if slopes[k + 1] == 0.0 else zero_from(k + 1, float(right[k]))
        high = max(high, float(knots[k]))
    return low, max(low, high)


def middle(low: float, high: float) -> float:
    """The middle of an interval, its finite end where it has one only, 0 where none."""
    ends = [end for end in (low, high) if np.isfinite(end)]
    return sum(ends) / len(ends) if ends else 0.0


def increasing_zero(
    function: Callable[[float], tuple[float, float]],
    start: float,
    small: float,
    low: float = -np.inf,
    reach: float = 1.0,
) -> float:
    """A zero of a nondecreasing, continuous and piecewise linear function, or a point just below.

    Newton's method inside the bracket known so far; where it leaves that, the middle. It finds the
    least point of a piecewise quadratic function on a line, and the best offset of a loss without
    corners.

    Parameters
    ----------
    function : callable
        Of t: the value there, and the slope.
    start : float
        The first t.
    small : float
        Values up to this size count as 0.
    low : float
        A point known to lie below the zero.
    reach : float
        How far to look where the function is flat and nothing is known beyond; it doubles.
    """
    t, high = start, np.inf
    for _ in range(200):
        value, slope = function(t)
        if abs(value) <= small:
            return t
        if value < 0:
            low = t
        else:
            high = t
        step = t - value / slope if slope > 0 else np.nan
        if not low < step < high:
            if np.isfinite(low) and np.isfinite(high):
                step = 0.5 * (low + high)
            else:
                step = t - np.sign(value) * reach
                reach *= 2.0
        if step in (low, high, t):
            break
        t = step
    return low if np.isfinite(low) else t


def residual_range(y: Array, fitted: Array | None) -> tuple[float, float]:
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

    y = np.ascontiguousarray(y)  # that of one level may be a column

    def excess(b: float) -> tuple[float, float]:
        total, bend = offset_slope(numbers, y, fitted, sigma, centre, b)
        return -total - held, bend

    value, bend = excess(0.0)
    low, high = residual_range(y, fitted)
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


def best_offset(terms: DualTerms, residual: Array) -> float:
    """The b that minimises Σ cᵢ ℓ(rᵢ − b), the middle of the interval where not unique.

    Without a corner anywhere it is the zero of a smooth function.
    """
    if terms.smooth and not terms.kink.any():
        low, high = residual_range(residual, None)
        return low if low == high else smooth_offset(terms.numbers, residual, None, 0.0)
    active = np.flatnonzero(terms.upper > terms.lower)
    if len(active) == 0:
        return 0.0
    if len(active) < len(residual):
        terms = terms.take(active)
        residual = residual[active]
    return middle(*sorted_interval(terms, residual, 0.0, 1e-12 * terms.room))


def sorted_interval(
    terms: DualTerms, residual: Array, held: float, slack: float
) -> tuple[float, float]:
    """Where Σ response(rᵢ − b) + h passes 0 within ``slack`` as b rises.

    As b rises past r − kink the response of a sample leaves its upper side, past r + kink it enters
    its lower side; without a ridge it jumps there, with one it bends, and bends again where it
    reaches a bound.
    """
    if not terms.numbers[[RIDGE_MINUS, RIDGE_PLUS]].any():
        return _flat_interval(terms, residual, held, slack)
    events = [
        _side_events(residual - terms.kink, terms.upper, terms.ridge_plus, -1.0),
        _side_events(residual + terms.kink, -terms.lower, terms.ridge_minus, 1.0),
    ]
    knots, jumps, bends = (np.concatenate(part) for part in zip(*events, strict=True))
    pull = lambda b: float(terms.response(residual - b).sum()) + held  # noqa: E731
    return zero_interval(pull, knots, jumps, bends, slack)


def _flat_interval(
    terms: DualTerms, residual: Array, held: float, slack: float
) -> tuple[float, float]:
    """The same for responses that jump and are flat elsewhere."""
    knots = np.concatenate([residual - terms.kink, residual + terms.kink])
    falls = np.concatenate([terms.upper, -terms.lower])
    order = np.argsort(knots)
    knots, falls = knots[order], falls[order]
    right = held + float(terms.upper.sum()) - np.cumsum(falls)
    return float(knots[np.argmax(right <= slack)]), float(
        knots[len(knots) - 1 - np.argmax((right + falls)[::-1] >= -slack)]
    )


def _side_events(
    knot: Array, bound: Array, ridge: Array, direction: float
) -> tuple[Array, Array, Array]:
    """Knots, jumps and bends of the responses of one side, which begins at ``knot``.

    ``direction`` is −1 for the upper side, left as b rises, and 1 for the lower one.
    """
    smooth = ridge > 0
    inverse = np.divide(1.0, ridge, out=np.zeros_like(ridge), where=smooth)
    jump = np.where(smooth, 0.0, -np.where(smooth, 0.0, bound))
    bend = -direction * inverse
    saturates = smooth & np.isfinite(bound)
    far = knot[saturates] + direction * ridge[saturates] * bound[saturates]
    zeros = np.zeros(len(far))
    return (
        np.concatenate([knot, far]),
        np.concatenate([jump, zeros]),
        np.concatenate([bend, -bend[saturates]]),
    )


def project_onto_sum(point: Array, lower: Array, upper: Array, total: float) -> Array:
    """The nearest point of the box with a given sum: clip(point − s) for the right s."""
    clipped = np.clip(point, lower, upper)
    # a sum that is right but for rounding must not move variables that lie at 0
    if abs(clipped.sum() - total) <= 1e-15 * np.abs(clipped).sum():
        return clipped
    falling, resting = np.isfinite(upper), np.isfinite(lower)
    knots = np.concatenate([(point - upper)[falling], (point - lower)[resting]])
    if len(knots) == 0:
        return point - (point.sum() - total) / len(point)
    bends = np.concatenate([np.full(falling.sum(), -1.0), np.full(resting.sum(), 1.0)])
    excess = lambda s: float(np.clip(point - s, lower, upper).sum()) - total  # noqa: E731
    shift = middle(*zero_interval(excess, knots, np.zeros(len(knots)), bends, 0.0))
    projected = np.clip(point - shift, lower, upper)
    # the shift may be much larger than what is left: correct its rounding
    free = (projected > lower) & (projected < upper)
    if free.any():
        missing = (total - projected.sum()) / np.count_nonzero(free)
        projected[free] = np.clip(projected[free] + missing, lower[free], upper[free])
    return projected
