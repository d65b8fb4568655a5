"""Windows: the few points that may reach the margin soon, and a check of all others.

A kink moves all residuals, but only a point near the margin can cause the next one. The core
walks on the kernel matrix of a window of such points. Afterwards all others are checked. Points
at bounds move on straight lines, so between the exact residuals at both ends of a batch a
residual leaves the straight line only as far as the points that were free bend it:

    |rᵢ(t) − line(t)| ≤ √kᵢᵢ·‖Σⱼ gⱼ k(xⱼ, ·)‖ + |b − line|      g: how far β is from its line

Most points are further from the margin than that. For the few others residuals are computed at
some kinks, and for those that come near between two of these, at all. Where one has changed its
sign, the walk is cut before that kink and goes on with a window that holds the point.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.path import PathCore
from ..kernels.products import HeldProducts, LinearProducts, MatrixProducts, Products
from .path_problem import PathStopped

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: up to this many points, all are in the window
WHOLE = 1000
#: a window that would have this share of the points has all
MOST_OF = 0.7
#: points in a window: so many, and so many for every free point
WINDOW, WINDOW_PER_FREE = 500, 1.5
#: bytes of residuals checked at a time
CHECK_BYTES = 64 << 20


@dataclass
class Window:
    """Points, their kernel matrix with the shift of a free offset, and the place of every point
    among them, −1 for those outside."""

    index: Index
    K: Array
    place: Index
    whole: bool


class Windows:
    """Chooses windows and checks what is outside them."""

    def __init__(self, products: Products, shift: float, cache_size: float) -> None:
        n = len(products)
        self.shift = shift
        self.whole = n <= WHOLE
        through_features = isinstance(products, LinearProducts) and (
            self.whole or not products.points.sparse
        )
        held = isinstance(products, HeldProducts | MatrixProducts) or through_features
        if not held and 8.0 * n * n <= cache_size * 2**20:
            with suppress(PathStopped):  # then the walk ends before it begins
                products = HeldProducts(products)
        self.products = products
        self.root = np.sqrt(products.diagonal())
        #: the rates of all residuals, as they were over the last batch
        self.trend: Array | None = None
        self._window: Window | None = None
        self.restart()

    def restart(self) -> None:
        """Another walk begins: the window in use says nothing about it."""
        self._forced = np.empty(0, dtype=np.intp)
        self.trend = None
        if not self.whole:
            self._window = None

    def matrix(self, points: Index) -> Array:
        """The kernel matrix of some points, with the shift; from the window where it has them."""
        window = self._window
        if window is not None:
            places = window.place[points]
            if (places >= 0).all():
                return window.K[np.ix_(places, places)]
        return self.products.block(points, points) + self.shift

    @property
    def needs_rates(self) -> bool:
        """Whether nothing is known yet about how residuals change."""
        return not self.whole and self.trend is None

    @property
    def most_kinks(self) -> int:
        """How many kinks a check can take at a time."""
        return max(16, CHECK_BYTES // (8 * len(self.root)))

    def next(self, free: Index, residual: Array) -> Window:
        """A window for the next batch: the free points, and those with the earliest arrivals if
        rates vary about those of late."""
        if self._window is not None and self.whole:
            return self._window
        n, old = len(residual), self._window
        count = int(WINDOW + WINDOW_PER_FREE * len(free)) + len(self._forced)
        chosen = np.ones(n, dtype=bool)
        if not self.whole and count < MOST_OF * n:
            assert self.trend is not None
            rate = self.trend
            towards = np.maximum(-np.sign(residual) * rate, 0.0)
            root = np.maximum(self.root, 1e-300)
            usual = np.median(np.abs(rate) / root) or 1.0
            arrival = np.abs(residual) / (towards + usual * root)
            arrival[free] = arrival[self._forced] = -1.0
            chosen[np.argpartition(arrival, count)[count:]] = False
        chosen[free] = False
        known = chosen & (old.place >= 0) if old is not None else ~chosen & chosen
        # free points first, and those whose kernel values are not known yet last
        index = np.r_[free, np.flatnonzero(known), np.flatnonzero(chosen & ~known)]
        place = np.full(n, -1)
        place[index] = np.arange(len(index))
        self._window = Window(index, self._matrix_of(index), place, len(index) == n)
        return self._window

    def _matrix_of(self, index: Index) -> Array:
        """The kernel matrix of a new window; what the one before has of it is taken from there."""
        old = self._window
        before = np.full(len(index), -1) if old is None else old.place[index]
        if old is None or (before[np.argmin(before) :] >= 0).any():
            return self.products.block(index, index) + self.shift
        kept = before[before >= 0]
        known = slice(0, len(kept))
        K = np.empty((len(index), len(index)))
        K[known, known] = old.K.take(kept, axis=0).take(kept, axis=1)
        if len(kept) < len(index):
            rows = self.products.block(index[len(kept) :], index) + self.shift
            K[len(kept) :] = rows
            K[:, len(kept) :] = rows.T
        return K

    def valid_kinks(self, core: PathCore, window: Window, start: Ends, end: Ends) -> int:
        """How many of the logged kinks hold for the points outside the window too."""
        kinks = core.n_kinks
        if window.whole or kinks == 0:
            return kinks
        if end.t > start.t:
            self.trend = (end.residual - start.residual) / (end.t - start.t)
        side = start.status.astype(np.float64)
        side[window.index] = 0.0
        # on straight lines the nearest is at an end
        nearest = np.minimum(side * start.residual, side * end.residual)
        size, shift = core.bend(0, kinks)
        near = np.flatnonzero((nearest < self.root * size + shift) & (side != 0))
        residuals = _Residuals(self.products, core, window, start, end)
        first, missed = self._first_crossing(near, residuals, side)
        if first > 0:  # what was missed before is behind
            self._forced = np.empty(0, dtype=np.intp)
        self._forced = np.union1d(self._forced, missed)
        return first

    def _first_crossing(self, near: Index, residuals: _Residuals, side: Array) -> tuple[int, Index]:
        """How many kinks there are before the first of some points crosses the margin, and the
        points that do so then.

        Residuals are computed at both ends of a stretch of kinks, in its middle, in the middle
        of both halves and so on: in stretches where a point may come near the margin, for the
        points that may, and not beyond a kink at which one has crossed.
        """
        core, root = residuals.core, self.root
        beyond = -1e-13 * np.abs(residuals.start.residual).max()
        left, right = np.array([0]), np.array([core.n_kinks])
        at_left = residuals.start.residual[near, None] * side[near, None]
        at_right = residuals.end.residual[near, None] * side[near, None]
        first, missed = core.n_kinks + 1, near[:0]
        stops, values = right, at_right
        while True:
            crossed = values < beyond
            before = crossed.any(axis=0) & (stops < first)
            if before.any():
                column = before.argmax()
                first, missed = int(stops[column]), near[crossed[:, column]]
            ahead = (left < first) & (right - left > 1)
            left, right = left[ahead], right[ahead]
            if len(left) == 0:
                return min(first - 1, core.n_kinks), missed
            at_left, at_right = at_left[:, ahead], at_right[:, ahead]
            sizes, shifts = np.array([core.bend(a, b) for a, b in zip(left, right, strict=True)]).T
            may = np.minimum(at_left, at_right) < root[near, None] * sizes + shifts
            points, ahead = may.any(axis=1), may.any(axis=0)
            near, left, right = near[points], left[ahead], right[ahead]
            at_left, at_right = at_left[points][:, ahead], at_right[points][:, ahead]
            stops = (left + right) // 2
            values = residuals.at(near, stops) * side[near, None]
            left, right = np.r_[left, stops], np.r_[stops, right]
            at_left, at_right = np.hstack([at_left, values]), np.hstack([values, at_right])


@dataclass
class Ends:
    """All points at the start or at the end of a batch."""

    t: float
    beta: Array
    residual: Array
    status: Signs
    offset: float


class _Residuals:
    """Residuals of points outside the window at the kinks of a batch, counted from 1; 0 is its
    start."""

    def __init__(
        self, products: Products, core: PathCore, window: Window, start: Ends, end: Ends
    ) -> None:
        self.products, self.core, self.start, self.end = products, core, start, end
        kinks = core.n_kinks
        changed = np.asarray(core.log_index)[:kinks]
        at_first = np.flatnonzero(start.status[window.index] == 0)
        self._moved = np.union1d(changed[changed >= 0], at_first)
        self._points = window.index[self._moved]

    def at(self, points: Index, kinks: Index) -> Array:
        """Of these points at these kinks, from the straight line and what bends it."""
        start, end = self.start, self.end
        length = end.t - start.t
        times = np.asarray(self.core.snapshot_t)[kinks] - start.t
        part = times / length if length > 0 else np.zeros(len(kinks))
        line = start.beta[self._points] + part[:, None] * (end.beta - start.beta)[self._points]
        away = np.asarray(self.core.snapshots)[kinks][:, self._moved] - line
        offset = start.offset + part * (end.offset - start.offset)
        shift = np.asarray(self.core.snapshot_offset)[kinks] - offset
        first, change = start.residual[points, None], (end.residual - start.residual)[points, None]
        bent = self.products.through(points, self._points, np.ascontiguousarray(away.T))
        return np.asarray(first + part * change - bent - shift)
