"""The parameter ``tau`` of the machines for levels: one, or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..losses import Loss
from .parameters import refuse


def listed_levels(tau: Any, wanted: str) -> list[Any]:
    """The levels as a list; a ValueError for what is neither a number nor a list."""
    if np.ndim(tau) > 1 or np.size(tau) == 0:
        raise refuse("tau", wanted, tau)
    return [tau] if np.ndim(tau) == 0 else list(tau)


class SeparateLevels:
    """Mixin of the regressors that fit each level on its own."""

    tau: float | Sequence[float]
    epsilon: float
    #: the loss of a level: a function of τ and ε
    _loss: Callable[[float, float], Loss]

    @property
    def _single_level(self) -> bool:
        return np.ndim(self.tau) == 0

    def _losses(self) -> list[Loss]:
        """One loss a level; a ValueError for a τ or ε that cannot be used."""
        taus = listed_levels(self.tau, "a number in (0, 1) or a list of them")
        return [type(self)._loss(tau, self.epsilon) for tau in taus]

    def _order(self) -> list[int]:
        """Ascending: neighbours are alike."""
        return [int(k) for k in np.argsort(np.atleast_1d(self.tau), kind="stable")]
