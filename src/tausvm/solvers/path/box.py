"""Bounds of the dual that move with τ on straight lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LOWER, LOWER_SLOPE, UPPER, UPPER_SLOPE = range(4)


@dataclass(frozen=True)
class MovingBox:
    """lower₀ + τ·lower₁ ≤ β ≤ upper₀ + τ·upper₁, one box a sample.

    Parameters
    ----------
    numbers : array (4, n)
        Rows lower₀, lower₁, upper₀, upper₁.
    """

    numbers: Array

    @classmethod
    def hinge(cls, y: Array, cost: Array) -> MovingBox:
        """β between 0 and 2(1−τ)c for y = 1, between −2τc and 0 for y = −1: equation (4)."""
        numbers = np.zeros((4, len(y)))
        positive = y > 0
        numbers[UPPER] = np.where(positive, 2.0 * cost, 0.0)
        numbers[UPPER_SLOPE] = np.where(positive, -2.0 * cost, 0.0)
        numbers[LOWER_SLOPE] = np.where(positive, 0.0, -2.0 * cost)
        return cls(numbers)

    @classmethod
    def pinball(cls, cost: Array) -> MovingBox:
        """β in [−(1−τ)c, τc]."""
        numbers = np.zeros((4, len(cost)))
        numbers[LOWER] = -cost
        numbers[LOWER_SLOPE] = numbers[UPPER_SLOPE] = cost
        return cls(numbers)

    def times(self, factor: float | Array) -> MovingBox:
        """All bounds multiplied, by one factor or by one a sample."""
        return MovingBox(self.numbers * factor)

    def lower(self, tau: float, back: float | None = None) -> Array:
        return self._line(LOWER, tau, back)

    def upper(self, tau: float, back: float | None = None) -> Array:
        return self._line(UPPER, tau, back)

    def _line(self, row: int, tau: float, back: float | None) -> Array:
        """From the nearer end: where a box closes, its width keeps its digits. ``back`` is τ − 1,
        for those who know it better than τ tells."""
        start, slope = self.numbers[row], self.numbers[row + 1]
        if tau <= 0.5:
            return start + tau * slope
        return (start + slope) + (tau - 1.0 if back is None else back) * slope

    def bounds(self, status: NDArray[np.int8], tau: float, back: float | None = None) -> Array:
        """The upper bound where the status is positive, the lower one elsewhere."""
        return np.where(status > 0, self.upper(tau, back), self.lower(tau, back))

    def shrunk(self, tau: float) -> MovingBox:
        """The box at a fixed τ times t: a path in t from the trivial problem to that at τ."""
        numbers = np.zeros_like(self.numbers)
        numbers[LOWER_SLOPE], numbers[UPPER_SLOPE] = self.lower(tau), self.upper(tau)
        return MovingBox(numbers)

    def from_(self, tau: float, way: int) -> MovingBox:
        """The same box as a function of t, where the level is tau + way·t."""
        numbers = self.numbers.copy()
        numbers[LOWER], numbers[UPPER] = self.lower(tau), self.upper(tau)
        numbers[[LOWER_SLOPE, UPPER_SLOPE]] *= way
        return MovingBox(numbers)
