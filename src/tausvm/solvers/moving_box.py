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

    def lower(self, tau: float) -> Array:
        return self.numbers[LOWER] + tau * self.numbers[LOWER_SLOPE]

    def upper(self, tau: float) -> Array:
        return self.numbers[UPPER] + tau * self.numbers[UPPER_SLOPE]

    def bounds(self, status: NDArray[np.int8], tau: float) -> Array:
        """The upper bound where the status is positive, the lower one elsewhere."""
        return np.where(status > 0, self.upper(tau), self.lower(tau))

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
