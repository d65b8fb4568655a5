"""Losses that grow linearly: ε-insensitive and pinball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .base import Loss, check_epsilon, check_tau, excess
from .terms import DualTerms

Array = NDArray[np.float64]


class Pinball(Loss):
    """Pinball loss at τ made ε-insensitive; its minimiser is the τ-quantile.

    ::

        ℓ(t) = τ·t for t ≥ 0, (τ − 1)·t for t < 0, at t = sign(r)·max(|r| − ε, 0)

    Dual: β in [−(1−τ)c, τc], kink ε, no ridge.

    Examples
    --------
    >>> import numpy as np
    >>> Pinball(0.9).value(np.array([2.0, -2.0]))
    array([1.8, 0.2])
    """

    def __init__(self, tau: float, epsilon: float = 0.0) -> None:
        self.tau = check_tau(tau)
        self.epsilon = check_epsilon(epsilon)
        self._rise = self.tau
        self._fall = 1.0 - self.tau

    def value(self, residual: Array, y: Array | None = None) -> Array:
        t = excess(residual, self.epsilon)
        return np.where(t >= 0, self._rise * t, -self._fall * t)

    def conjugate(self, beta: Array, y: Array | None = None) -> Array:
        inside = (beta >= -self._fall) & (beta <= self._rise)
        return np.where(inside, self.epsilon * np.abs(beta), np.inf)

    def dual_terms(self, y: Array, cost: Array) -> DualTerms:
        return DualTerms.build(
            len(y), lower=-self._fall * cost, upper=self._rise * cost, kink=self.epsilon
        )


class EpsilonInsensitive(Pinball):
    """What is outside a tube of half-width ε: the loss of support vector regression.

    ::

        ℓ(r) = max(|r| − ε, 0)

    Dual: β in [−c, c], kink ε, no ridge. Twice the ε-insensitive pinball loss at ½.

    Examples
    --------
    >>> import numpy as np
    >>> EpsilonInsensitive(0.5).value(np.array([2.0, -0.25]))
    array([1.5, 0. ])
    """

    def __init__(self, epsilon: float = 0.1) -> None:
        super().__init__(0.5, epsilon)
        self._rise = self._fall = 1.0
