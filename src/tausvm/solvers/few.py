"""Few samples: from rough solutions to rounding, by steps in float64.

Scores of small tables often tie, and a choice among ties is one of rounding unless fits are exact.
With so few samples steps cost next to nothing, and no factorisation is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import HALVES, CoordinateState
from .._core.pairs import PairState
from .family import Mask, Work

Array = NDArray[np.float64]

#: the violation, as a share of y's size, that rounding leaves
ROUNDED = 1e-12


def polish(work: Work, wanted: Mask) -> None:
    """Solve to rounding from where the problems are, within ``few_steps`` steps a variable."""
    family = work.family
    operator, y, n = family.operator, family.y, len(family.y)
    rows = np.ascontiguousarray(operator.rows, dtype=np.float64)
    diagonal, slots = np.diagonal(rows).copy(), np.arange(n)
    tol = ROUNDED * float(np.abs(y).max())
    state: PairState | CoordinateState
    for loss, k in np.argwhere(wanted):
        if work.stop():
            return
        place = (int(loss), int(k))
        problem = family.problem(place)
        numbers = problem.terms.numbers
        beta = problem.feasible(work.result.beta[place])
        gradient = rows @ beta - y
        if family.offset:
            state = PairState(beta, gradient, numbers, diagonal)
        else:
            state = CoordinateState(beta, gradient, numbers, diagonal, HALVES)
        state.run(rows, slots, None, tol, int(work.settings.few_steps * n))
        fitted = gradient + y
        intercept = float(problem.best_intercept(fitted))
        primal = problem.primal_value(beta, fitted, intercept)
        gap = primal - problem.dual_value(beta, beta, fitted)
        if np.isfinite(gap):
            work.result.note(place, beta, intercept, gap, primal)
