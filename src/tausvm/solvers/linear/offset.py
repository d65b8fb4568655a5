"""The free offset of a smoothed problem: a zero of a decreasing piecewise linear function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._core import linear as core
from .problem import LinearProblem

Array = NDArray[np.float64]


def smooth_offset(problem: LinearProblem, residual: Array, sigma: float, centre: Array) -> float:
    """The b at which Σ β(r − b) = −h, for terms with a ridge or σ > 0."""
    numbers = problem.terms.numbers

    def excess(b: float) -> tuple[float, float]:
        total, bend = core.offset_slope(numbers, residual, sigma, centre, b)
        return total + problem.held, bend

    b, (value, bend) = 0.0, excess(0.0)
    small = 1e-15 * (abs(problem.held) + abs(value) + bend * float(np.abs(residual).max()))
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
                reach = max(2.0 * reach, 1e-3 * (1.0 + float(np.ptp(residual))))
                step = b + (reach if value > 0 else -reach)
        if step in (low, high, b):
            break
        b = step
        value, bend = excess(b)
    return b
