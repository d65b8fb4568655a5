"""The blocks of Newton's equations, and the barriers that make them up."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..._core.cones import LONGEST, Box, Halves, Norms, block_inverses, block_matrices
from ...losses.group import GroupTerms

Array = NDArray[np.float64]

#: how much of the way to the boundary a step may go
BOUNDARY = 0.995


class Part(Protocol):
    """What the method asks of a barrier; ``tausvm._core.cones`` says what each method does."""

    degree: int

    def complementarity(self) -> float: ...

    def add_gradient(self, out: Array) -> None: ...

    def aim(self, centre: float, out: Array) -> None: ...

    def follow(self, dalpha: Array) -> None: ...

    def longest(self) -> float: ...

    def after(self, length: float) -> float: ...

    def step(self, length: float) -> None: ...


class Blocks:
    """Dᵢ = diag(dᵢ) + shareᵢ·(I − 2wᵢwᵢᵀ/(1 + 2‖wᵢ‖²)), p×p and positive definite.

    The diagonals come from the losses, the rest from the norms, where there are any.
    """

    def __init__(self, parts: list[Part], d: Array) -> None:
        n, p = d.shape
        self.d = d
        self.share, self.w = np.empty(0), np.empty((0, p))
        for part in parts:
            if isinstance(part, Norms):
                self.share, self.w = np.empty(n), np.empty((n, p))
                part.prepare(self.share, self.w)
            else:
                part.prepare(self.d)  # type: ignore[attr-defined]

    def _filled(self, fill: object) -> Array:
        n, p = self.d.shape
        out = np.empty((n, p, p))
        fill(self.d, self.share, self.w, out)  # type: ignore[operator]
        return out

    def matrices(self) -> Array:
        """Dᵢ, shape (n, p, p)."""
        return self._filled(block_matrices)

    def inverses(self) -> Array:
        """Dᵢ⁻¹, shape (n, p, p)."""
        return self._filled(block_inverses)


def barriers(terms: GroupTerms, size: float) -> list[Part]:
    """The barriers of these terms, with multipliers of about ``size`` to begin with.

    Losses with the same ridge on both sides and no bounds need none.
    """
    outputs = terms.outputs
    parts: list[Part] = []
    bounded = bool(np.isfinite(outputs.upper).all() and np.isfinite(outputs.lower).all())
    if bounded:
        parts.append(Box(outputs.lower, outputs.upper, outputs.ridge_plus, size))
        reach = float(0.5 * (outputs.upper - outputs.lower).mean())
    else:
        if not np.array_equal(outputs.ridge_plus, outputs.ridge_minus):
            parts.append(Halves(outputs.ridge_minus, outputs.ridge_plus, size))
        reach = size / float(outputs.ridge_plus.mean())
    if terms.epsilon > 0:
        parts.append(Norms(*terms.shape, terms.epsilon, reach * size))
    return parts


__all__ = ["BOUNDARY", "LONGEST", "Blocks", "Box", "Norms", "Part", "barriers"]
