"""The hinge with a cost level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Loss, check_tau
from .terms import DualTerms

Array = NDArray[np.float64]


class Hinge(Loss):
    """Hinge loss of labels y = ±1 with cost 2(1−τ) for y = +1 and 2τ for y = −1.

    ::

        ℓ(r) = c_y·max(0, y·r) = c_y·max(0, 1 − y·f),   r = y − f

    Dual: β between 0 and y·c·c_y, no kink, no ridge. At τ = ½ it is the ordinary hinge.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.array([1.0, -1.0]), np.array([0.5, 0.5])
    >>> Hinge(0.25).value(y - f, y)
    array([0.75, 0.75])
    """

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = check_tau(tau)

    def label_cost(self, y: Array) -> Array:
        """2(1−τ) for positive, 2τ for negative labels."""
        return np.where(y > 0, 2.0 * (1.0 - self.tau), 2.0 * self.tau)

    def value(self, residual: Array, y: Array | None = None) -> Array:
        y = _labels(y)
        return self.label_cost(y) * np.maximum(0.0, y * residual)

    def conjugate(self, beta: Array, y: Array | None = None) -> Array:
        y = _labels(y)
        end = y * self.label_cost(y)
        inside = (beta >= np.minimum(0.0, end)) & (beta <= np.maximum(0.0, end))
        return np.where(inside, 0.0, np.inf)

    def dual_terms(self, y: Array, cost: Array) -> DualTerms:
        end = y * self.label_cost(y) * cost
        return DualTerms.build(len(y), lower=np.minimum(0.0, end), upper=np.maximum(0.0, end))


def _labels(y: Array | None) -> Array:
    if y is None:
        raise ValueError("the hinge loss needs y, the labels ±1")
    return y
