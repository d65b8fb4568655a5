"""The blocks of Newton's equations, and the barriers that make them up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..._core.cones import LONGEST, Bounds, Halves, Norms, block_inverses, block_matrices
from ...losses.group import GroupTerms
from .settings import Cones

Array = NDArray[np.float64]


class Part(Protocol):
    """What the method asks of a barrier; ``tausvm._core.cones`` says what each method does."""

    whole: float

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

    def times(self, v: Array) -> Array:
        """Dᵢvᵢ, for v of shape (n, p)."""
        out = self.d * v
        if len(self.share):
            along = np.einsum("ij,ij->i", self.w, v)
            along /= 0.5 + np.einsum("ij,ij->i", self.w, self.w)
            out += self.share[:, None] * (v - along[:, None] * self.w)
        return out

    def inverses(self) -> Array:
        """Dᵢ⁻¹, shape (n, p, p)."""
        return self._filled(block_inverses)


@dataclass(frozen=True)
class Barriers:
    """The barriers of some terms, and where they start."""

    parts: list[Part]
    #: α to begin with, strictly within its bounds
    alpha: Array
    #: the curvature of entries whose terms need no barrier for it
    ridge: Array


def barriers(terms: GroupTerms, size: float, cones: Cones) -> Barriers:
    """The barriers of these terms, with multipliers of about ``size`` to begin with.

    A side of an entry is a bound, a ridge or both. Where both sides have the same ridge it is
    curvature, and each finite bound a barrier. Where the ridges differ, or there is a kink, α is
    split into halves.
    A side that reaches nowhere, next to the widest of all, is closed: the entry lives on the
    other side alone, or stays at 0.
    """
    shape = terms.shape
    numbers = terms.outputs.numbers.reshape(5, -1)
    lower, upper, kink, ridge_minus, ridge_plus = numbers
    minus, plus = (side.ravel() for side in terms.reaches(size))
    negligible = cones.negligible_reach * max(float(plus.max()), float(minus.max()))
    rises, falls = plus > negligible, minus > negligible
    split = rises & falls & ((ridge_plus != ridge_minus) | (kink > 0))

    stiff = size / max(negligible, np.finfo(np.float64).tiny)
    ridge = np.where(rises, ridge_plus, np.where(falls, ridge_minus, stiff))
    ridge[split] = 0.0
    alpha = np.where(rises & falls, 0.0, 0.5 * (np.where(rises, plus, 0.0) - falls * minus))

    parts: list[Part] = []
    alive = (rises | falls) & ~split
    for sign, ends in ((1.0, upper), (-1.0, -lower)):
        held = np.flatnonzero(alive & np.isfinite(ends))
        if len(held):
            parts.append(Bounds(held, sign, ends[held], alpha[held], size))
    at = np.flatnonzero(split)
    if len(at):
        halves = Halves(at, numbers[:, at], size)
        alpha[at] = halves.values
        parts.append(halves)
    alpha = alpha.reshape(shape)
    if terms.epsilon > cones.negligible_epsilon * size:
        reach = 0.5 * (plus + minus).reshape(shape).mean(axis=1)
        parts.append(Norms(alpha, terms.epsilon, np.maximum(reach, negligible) * size))
    return Barriers(parts, alpha, ridge.reshape(shape))


__all__ = ["LONGEST", "Barriers", "Blocks", "Bounds", "Halves", "Part", "barriers"]
