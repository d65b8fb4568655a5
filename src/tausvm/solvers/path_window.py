"""Windows: the few points that may reach the margin soon, and a check of all others.

A kink moves all residuals, but only a point near the margin can cause the next one. The core
walks on the kernel matrix of a window of such points. Afterwards the residuals of all other
points at all kinks of the batch are computed in one matrix product; between kinks they are on
straight lines, so that nothing is missed. Where one of them has changed its sign, the walk is
cut before that kink and goes on with a window that holds the point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.path import PathCore, least_distances
from ..kernels.products import HeldProducts, LinearProducts, Products

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: up to this many points, all are in the window
WHOLE = 1000
#: points in a window: so many, and so many for every free point
WINDOW, WINDOW_PER_FREE = 250, 1.5
#: batches after which a window is chosen anew
AGE = 4
#: what rounding to single precision may change, as a share of the terms
SINGLE = 1e-6
#: bytes of residuals checked at a time
CHECK_BYTES = 64 << 20


@dataclass
class Window:
    """Points in ascending order, and their kernel matrix with the shift of a free offset."""

    index: Index
    K: Array
    whole: bool
    age: int = 0


class Windows:
    """Chooses windows and checks what is outside them."""

    def __init__(self, products: Products, shift: float, cache_size: float) -> None:
        n = len(products)
        self.shift = shift
        self.whole = n <= WHOLE
        through_features = isinstance(products, LinearProducts) and not products.points.sparse
        if not self.whole and not through_features and 8.0 * n * n <= cache_size * 2**20:
            products = HeldProducts(products)
        self.products = products
        self.root = np.sqrt(products.diagonal())
        self._window: Window | None = None
        self.restart()

    def restart(self) -> None:
        """Another walk begins: the window in use says nothing about it."""
        self._forced = np.empty(0, dtype=np.intp)
        if self._window is not None and not self._window.whole:
            self._window = None

    @property
    def most_kinks(self) -> int:
        """How many kinks a check can take at a time."""
        return max(16, CHECK_BYTES // (8 * len(self.root)))

    def current(self, free: Index, residual: Array, rate: Array) -> Window:
        """The window in use, or a new one where that is old or has missed a point."""
        window = self._window
        fresh = window is not None and (window.whole or window.age < AGE)
        if window is None or not fresh or len(self._forced):
            self._window = window = self._choose(free, residual, rate)
        window.age += 1
        return window

    def _choose(self, free: Index, residual: Array, rate: Array) -> Window:
        """The points with the earliest arrivals, if rates vary about their present values."""
        n = len(residual)
        count = int(WINDOW + WINDOW_PER_FREE * len(free)) + len(self._forced)
        if self.whole or 2 * count > n:
            index = np.arange(n)
        else:
            towards = np.maximum(-np.sign(residual) * rate, 0.0)
            root = np.maximum(self.root, 1e-300)
            usual = np.median(np.abs(rate) / root) or 1.0
            arrival = np.abs(residual) / (towards + usual * root)
            arrival[free] = arrival[self._forced] = -1.0
            index = np.sort(np.argpartition(arrival, count)[:count])
        return Window(index, self.products.block(index, index) + self.shift, len(index) == n)

    def valid_kinks(
        self, core: PathCore, window: Window, beta: Array, residual: Array, status: Signs,
        offset: float, drive: Array, slopes: Array, t: float,
    ) -> int:  # fmt: skip
        """How many of the logged kinks hold for the points outside the window too."""
        kinks = core.n_kinks
        if window.whole or kinks == 0:
            return kinks
        size = int(np.asarray(core.log_size)[:kinks].sum())
        at_first = np.flatnonzero(status[window.index] == 0)
        moved = np.union1d(np.asarray(core.members)[:size], at_first)
        points = window.index[moved]
        snapshots = np.asarray(core.snapshots)[:kinks]
        change = np.empty((len(points), kinks + 1))
        change[:, :kinks] = (snapshots[:, moved] - beta[points]).T
        change[:, kinks] = slopes[points]
        times = np.asarray(core.log_t)[:kinks] - t
        shifts = np.asarray(core.log_offset)[:kinks] - offset
        # in single precision first: few points come near enough to need the exact values
        rough = self.products.roughly_through(points, change)
        least = least_distances(
            rough, times.astype(np.float32), shifts.astype(np.float32), status, residual,
            drive - rough[:, kinks],
        )  # fmt: skip
        least[window.index] = np.inf
        size_of_terms = (np.abs(change) * self.root[points, None]).sum(axis=0).max()
        near = np.flatnonzero(least < SINGLE * (np.abs(residual) + self.root * size_of_terms))
        if len(near) == 0:
            self._forced = np.empty(0, dtype=np.intp)
            return kinks
        values = self.products.through(near, points, change)
        # points that were never free stay at their bounds and move with them
        others = drive[near] - values[:, kinks]
        paths = residual[near, None] - values[:, :kinks] - others[:, None] * times - shifts
        paths *= status[near, None]
        wrong = np.flatnonzero(paths.min(axis=0) < -1e-13 * np.abs(residual).max())
        first = int(wrong[0]) if len(wrong) else kinks
        if first > 0:  # what was missed before is behind
            self._forced = np.empty(0, dtype=np.intp)
        if len(wrong):
            missed = near[paths[:, first] < 0]
            self._forced = np.union1d(self._forced, missed)
        return first
