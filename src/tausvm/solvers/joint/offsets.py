"""The offsets b ∈ Rᵖ that minimise the group loss at given residuals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...losses.group import GroupTerms
from ...losses.terms import KINK, DualTerms
from ..linalg import LinAlgError
from ..onedim import best_offset
from .iterate import Iterate
from .systems import FactorSystem

Array = NDArray[np.float64]

#: steps that are always enough where rounding lets the method end at all
STEPS = 100
#: the complementarity, relative to the loss, at which offsets are as good as exact
EXACT = 1e-12


def best_offsets(
    terms: GroupTerms, residual: Array, hurry: Callable[[], bool] = lambda: False
) -> Array:
    """The b that minimises Σᵢ hᵢ*(rᵢ − b).

    Without ε each output has its own, found exactly. With it they are the multipliers of the
    joint problem without a kernel, whose equations are p×p. Where ``hurry()`` says so the
    best offsets so far are returned.
    """
    n, p = residual.shape
    if terms.epsilon == 0 or p == 1:
        numbers = terms.outputs.numbers.copy()
        numbers[KINK] = terms.epsilon
        return np.array(
            [
                best_offset(DualTerms(np.ascontiguousarray(numbers[:, :, j])), residual[:, j])
                for j in range(p)
            ]
        )

    def loss(b: Array) -> float:
        return float(terms.conjugate(residual - b).sum())

    best = np.median(residual, axis=0)
    value = loss(best)
    if value == 0.0 or hurry():
        return best
    iterate = Iterate(residual, terms, True, FactorSystem(None, None, (n, p), True), None)
    for _ in range(STEPS):
        try:
            iterate.step()
        except LinAlgError:
            break
        now = loss(iterate.b)
        if now < value:
            best, value = iterate.b, now
        if value == 0.0 or iterate.complementarity() <= EXACT * value or hurry():
            break
    return best
