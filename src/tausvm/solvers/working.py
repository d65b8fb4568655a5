"""The dual's one-sided derivatives at a point, and the variables worth working on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .problem import Point, Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def starting_point(problem: Problem, start: Point | None) -> tuple[Array, Array]:
    """β and the gradient Kβ − y to start from: zero, or those of a point with its values."""
    if start is None:
        return np.zeros(problem.n), -problem.y
    fitted = problem.values(start.beta) if start.fitted is None else start.fitted
    return start.beta.copy(), fitted - problem.y


@dataclass
class Derivatives:
    """up = −gradient − g′₊(β), down = −gradient − g′₋(β), and what follows from them.

    Attributes
    ----------
    up, down : arrays (n,)
    inside : bool array
        Variables strictly inside a smooth piece of the dual, where up = down.
    violation : float
        max up − min down with an offset, max(up, −down) without; ≤ 0 at an optimum.
    offset : float
        b from the inside variables (their median), or the middle of its interval.
    paired : bool
        Whether Σβ is fixed, so that variables move in pairs.
    """

    up: Array
    down: Array
    inside: NDArray[np.bool_]
    violation: float
    offset: float
    paired: bool

    @classmethod
    def at(cls, problem: Problem, beta: Array, gradient: Array) -> Derivatives:
        up = -gradient - problem.terms.slope_up(beta)
        down = -gradient - problem.terms.slope_down(beta)
        inside = up == down
        if not problem.offset:
            return cls(up, down, inside, max(float(up.max()), -float(down.min())), 0.0, False)
        top, bottom = float(up.max()), float(down.min())
        if inside.any():
            offset = float(np.median(up[inside]))
        else:
            ends = [end for end in (top, bottom) if np.isfinite(end)]
            offset = sum(ends) / len(ends) if ends else 0.0
        return cls(up, down, inside, top - bottom, offset, True)

    @property
    def pulling(self) -> NDArray[np.bool_]:
        """The variables at an end of a smooth piece that pull away from it."""
        return ~self.inside & ((self.up > self.offset) | (self.down < self.offset))

    def unsettled(self, size: int) -> Index:
        """The ``size`` variables to work on: those inside a piece and those that pull most.

        An inside variable pulls little but will move with the others. With an offset, half
        of the rest are the best to raise and half the best to lower, so that there are pairs
        among them even where many values tie.
        """
        n = len(self.up)
        if size >= n:
            return np.arange(n)
        inside = np.flatnonzero(self.inside)
        if len(inside) > size - 2:
            inside = inside[:0]  # too many: those that pull
        half = (size - len(inside)) // 2
        chosen = np.zeros(n, dtype=bool)
        chosen[inside] = True
        if not self.paired:
            chosen[_largest(np.maximum(self.up, -self.down), 2 * half)] = True
            return np.flatnonzero(chosen)
        chosen[_largest(self.up, half)] = True
        chosen[_largest(-self.down, half)] = True
        return np.flatnonzero(chosen)


def _largest(values: Array, count: int) -> Index:
    return np.argpartition(values, -count)[-count:]
