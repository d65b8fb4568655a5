"""Losses that grow quadratically: squared ε-insensitive and squared pinball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Loss, check_epsilon, check_tau, excess, reciprocal_cost, unbounded
from .terms import DualTerms

Array = NDArray[np.float64]


class SquaredPinball(Loss):
    """Asymmetric least squares at τ made ε-insensitive; its minimiser is the τ-expectile.

    ::

        ℓ(t) = τ·t² for t ≥ 0, (1 − τ)·t² for t < 0, at t = sign(r)·max(|r| − ε, 0)

    Dual: β unbounded, kink ε, ridge₋ = 1/(2c(1−τ)), ridge₊ = 1/(2cτ).

    Examples
    --------
    >>> import numpy as np
    >>> SquaredPinball(0.75).value(np.array([2.0, -2.0]))
    array([3., 1.])
    """

    def __init__(self, tau: float, epsilon: float = 0.0) -> None:
        self.tau = check_tau(tau)
        self.epsilon = check_epsilon(epsilon)
        self._rise = self.tau
        self._fall = 1.0 - self.tau

    def _weight(self, t: Array) -> Array:
        return np.where(t >= 0, self._rise, self._fall)

    def value(self, residual: Array, y: Array | None = None) -> Array:
        t = excess(residual, self.epsilon)
        return self._weight(t) * t**2

    def conjugate(self, beta: Array, y: Array | None = None) -> Array:
        return self.epsilon * np.abs(beta) + beta**2 / (4.0 * self._weight(beta))

    def dual_terms(self, y: Array, cost: Array) -> DualTerms:
        half = reciprocal_cost(cost)
        free = unbounded(cost)
        return DualTerms.build(
            len(y),
            lower=-free,
            upper=free,
            kink=self.epsilon,
            ridge_minus=half / self._fall,
            ridge_plus=half / self._rise,
        )


class SquaredEpsilonInsensitive(SquaredPinball):
    """The square of what is outside the ε-tube; least squares at ε = 0.

    ::

        ℓ(r) = max(|r| − ε, 0)²

    Dual: β unbounded, kink ε, ridge 1/(2c) on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredEpsilonInsensitive(0.5).value(np.array([2.0, -0.25]))
    array([2.25, 0.  ])
    """

    def __init__(self, epsilon: float = 0.0) -> None:
        super().__init__(0.5, epsilon)
        self._rise = self._fall = 1.0
