"""Few samples: from rough solutions to rounding, by steps in float64.

Scores of small tables often tie, and a choice among ties is one of rounding unless fits are exact.
With so few samples steps cost next to nothing, and no factorisation is needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._core.coordinates import HALVES, CoordinateState
from ..._core.pairs import PairState
from ...losses.terms import DualTerms
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
        terms = family.terms_at(place)
        beta = _within(work.result.beta[place], terms, family.offset)
        gradient = rows @ beta - y
        if family.offset:
            state = PairState(beta, gradient, terms.numbers, diagonal)
        else:
            state = CoordinateState(beta, gradient, terms.numbers, diagonal, HALVES)
        state.run(rows, slots, None, tol, int(work.settings.few_steps * n))
        intercept = 0.0
        if isinstance(state, PairState):  # what may still rise and what may still fall bound b
            intercept = 0.5 * (state.up + state.down)
        losses = float(terms.conjugate(-gradient - intercept).sum())
        norm = float(beta @ (gradient + y))
        primal = 0.5 * norm + losses
        gap = primal - (float(beta @ y) - 0.5 * norm - float(terms.value(beta).sum()))
        if np.isfinite(gap):
            work.result.note(place, beta, intercept, gap, primal)
            work.ended(([loss], [k]), beta[None], np.array([intercept]))


def _within(beta: Array, terms: DualTerms, offset: bool) -> Array:
    """β without what float32 has rounded: within its bounds, and of sum 0 where b is free."""
    lower, upper = terms.lower, terms.upper
    beta = np.clip(beta, lower, upper)
    excess = float(beta.sum()) if offset else 0.0
    if excess == 0:
        return beta
    room = beta - lower if excess > 0 else upper - beta
    share = room / room.sum() if np.isfinite(room).all() else 1.0 / len(beta)
    return np.asarray(beta - excess * share)
