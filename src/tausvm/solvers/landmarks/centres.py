"""The choice of centres: a Cholesky factorisation of K with pivots drawn at random.

    K ≈ F Fᵀ,   F = K(X, Z) L⁻ᵀ,   L Lᵀ = K(Z, Z)

A row becomes the next pivot with a probability proportional to its weight times what the centres
so far leave of it, Rᵢᵢ = Kᵢᵢ − Σⱼ Fᵢⱼ². Several are proposed at a time, and each is taken with the
share of its Rᵢᵢ that the ones taken before it in the block leave: the pivots are distributed as if
they had been drawn one by one.

References
----------
- Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky" (2023).
- E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection" (2024): the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...kernels import Kernel, Points
from ...threads import share_out, thread_count

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Pivoting:
    """The numbers of the choice of centres."""

    #: pivots proposed at a time: products of matrices, and steps short enough for Ctrl-C
    block: int = 100
    #: no pivot is taken that leaves less than this share of the largest k(x, x): L would be too
    #: ill-conditioned, and what is left of the matrix is rounding
    floor: float = 1e-12
    #: rows whose factor is computed at a time
    rows: int = 8192


class PivotedCholesky:
    """Pivots among some points, block by block: fewer are always the first of more.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    weight : array (n,)
        How often each of them counts.
    rng : Generator
    settings : Pivoting
    pause : callable
        Called between parts of long work, which it ends by an exception.

    Attributes
    ----------
    pivots : list of int
        In the order of their choice.
    left : array (n,)
        Rᵢᵢ, what the pivots leave of k(x, x).
    exhausted : bool
        Whether nothing but rounding is left.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        weight: Array,
        rng: np.random.Generator,
        settings: Pivoting,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self.kernel, self.points, self.weight = kernel, points, weight / weight.max()
        self.rng, self.settings, self.pause = rng, settings, pause
        self.left = np.maximum(kernel.diagonal(points), 0.0)
        self.least = settings.floor * float(self.left.max(initial=0.0))
        self.pivots: list[int] = []
        self.exhausted = False
        #: Fᵀ, with room for more rows than there are pivots
        self._factor = np.empty((0, len(points)))

    @property
    def factor(self) -> Array:
        """Fᵀ, (pivots, n)."""
        return self._factor[: len(self.pivots)]

    def first(self, count: int, hurry: Callable[[], bool] = lambda: False) -> tuple[Index, Array]:
        """The first pivots, so many or all there are, and L: the factor of their kernel matrix.

        Those there are by then will do where time is short.
        """
        self._take(count, hurry)
        pivots = np.array(self.pivots[:count], dtype=np.int64)
        return pivots, np.tril(self.factor[: len(pivots), pivots].T)

    def _take(self, count: int, hurry: Callable[[], bool]) -> None:
        """Choose until there are so many pivots, or no more to be had."""
        count = min(count, len(self.points))
        self._reserve(min(count + self.settings.block, len(self.points)))
        while len(self.pivots) < count and not self.exhausted:
            if self.pivots and hurry():
                break
            chance = np.where(self.left > self.least, self.weight * self.left, 0.0)
            total = float(chance.sum())
            if not total > 0:
                self.exhausted = True
                break
            proposed = self.rng.choice(len(chance), size=self.settings.block, p=chance / total)
            self._add(*self._accepted(proposed))

    def _reserve(self, count: int) -> None:
        if count > len(self._factor):
            room = np.empty((count, len(self.points)))
            room[: len(self.pivots)] = self.factor
            self._factor = room

    def _accepted(self, proposed: Index) -> tuple[Index, Array]:
        """Those of the proposals that are taken, and the lower factor of what is left of them."""
        some = self.points.take(proposed)
        before = self.factor[:, proposed]
        left = self.kernel.between(some, some) - before.T @ before
        first = np.diagonal(left).copy()
        luck = self.rng.random(len(proposed))
        taken: list[int] = []
        columns: list[Array] = []
        for i in range(len(proposed)):
            share = float(left[i, i])
            if share > self.least and luck[i] * first[i] < share:
                column = left[:, i] / np.sqrt(share)
                left -= np.outer(column, column)
                taken.append(i)
                columns.append(column)
        if not taken:  # rounding: what is left of these rows is less than it seemed
            self.left[proposed] = np.minimum(self.left[proposed], np.maximum(first, 0.0))
            self.left[proposed[first <= self.least]] = 0.0
            return proposed[:0], np.empty((0, 0))
        return proposed[taken], np.tril(np.stack(columns, axis=1)[taken])

    def _add(self, pivots: Index, lower: Array) -> None:
        """The rows of Fᵀ for these pivots, and what is left of the diagonal after them."""
        if len(pivots) == 0:
            return
        old, new = len(self.pivots), len(self.pivots) + len(pivots)
        centres, before = self.points.take(pivots), self._factor[:old, pivots].T.copy()
        n, step = len(self.points), self.settings.rows

        def part(begin: int, halted: Callable[[], bool]) -> None:
            if halted():
                return
            self.pause()
            rows = slice(begin, min(begin + step, n))
            values = self.kernel.between(centres, self.points.take(rows))
            values -= before @ self._factor[:old, rows]
            fresh = solve_triangular(lower, values, lower=True, check_finite=False)
            self._factor[old:new, rows] = fresh
            self.left[rows] -= np.einsum("ji,ji->i", fresh, fresh)

        share_out(part, list(range(0, n, step)), thread_count())
        self.left[pivots] = 0.0
        np.maximum(self.left, 0.0, out=self.left)
        self.pivots.extend(int(i) for i in pivots)


__all__ = ["PivotedCholesky", "Pivoting"]
