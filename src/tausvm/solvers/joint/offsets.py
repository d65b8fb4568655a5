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
from .settings import Cones, Equations
from .systems import BlockSystem

Array = NDArray[np.float64]


def best_offsets(
    terms: GroupTerms,
    residual: Array,
    hurry: Callable[[], bool] = lambda: False,
    exact: float = 1e-12,
    most_steps: int = 100,
) -> Array:
    """The b that minimises Σᵢ hᵢ*(rᵢ − b).

    Without ε each output has its own, found exactly. With it they are the multipliers of the
    joint problem without a kernel, whose equations are p×p: found to a complementarity of
    ``exact``, relative to the loss. Where ``hurry()`` says so, or rounding lets it get no further
    in ``most_steps``, they are the best so far.
    """
    p = residual.shape[1]
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
    iterate = Iterate(residual, terms, True, BlockSystem(Equations()), Cones())
    for _ in range(most_steps):
        try:
            iterate.step()
        except LinAlgError:
            break
        now = loss(iterate.b)
        if now < value:
            best, value = iterate.b, now
        if value == 0.0 or iterate.complementarity() <= exact * value or hurry():
            break
    return best
