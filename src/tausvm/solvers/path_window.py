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

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .._core.path import PathCore
from ..kernels.products import HeldProducts, LinearProducts, Products

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: up to this many points, all are in the window
WHOLE = 1000
#: points in a window: so many, and so many for every free point
WINDOW, WINDOW_PER_FREE = 400, 1.5
#: kinks between two at which the residuals of points near the margin are computed
SEGMENT = 64
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
        through_features = isinstance(products, LinearProducts) and not products.points.sparse
        held = isinstance(products, HeldProducts) or self.whole or through_features
        if not held and 8.0 * n * n <= cache_size * 2**20:
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
        if self._window is not None and not self._window.whole:
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
        if self._window is not None and self._window.whole:
            return self._window
        n = len(residual)
        count = int(WINDOW + WINDOW_PER_FREE * len(free)) + len(self._forced)
        if self.whole or 2 * count > n:
            index = np.arange(n)
        else:
            assert self.trend is not None
            rate = self.trend
            towards = np.maximum(-np.sign(residual) * rate, 0.0)
            root = np.maximum(self.root, 1e-300)
            usual = np.median(np.abs(rate) / root) or 1.0
            arrival = np.abs(residual) / (towards + usual * root)
            arrival[free] = arrival[self._forced] = -1.0
            others = np.sort(np.argpartition(arrival, count)[:count])
            index = np.r_[free, others[self._outside(free)[others]]]
        place = np.full(n, -1)
        place[index] = np.arange(len(index))
        self._window = Window(index, self._matrix_of(index), place, len(index) == n)
        return self._window

    def _outside(self, points: Index) -> NDArray[np.bool_]:
        outside = np.ones(len(self.root), dtype=bool)
        outside[points] = False
        return outside

    def _matrix_of(self, index: Index) -> Array:
        """The kernel matrix of a new window; what the one before has of it is taken from there."""
        old = self._window
        if old is None:
            return self.products.block(index, index) + self.shift
        before = old.place[index]
        new, known = np.flatnonzero(before < 0), np.flatnonzero(before >= 0)
        K = np.empty((len(index), len(index)))
        K[np.ix_(known, known)] = old.K[np.ix_(before[known], before[known])]
        if len(new):
            K[new] = self.products.block(index[new], index) + self.shift
            K[:, new] = K[new].T
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
        wrong: Index = np.empty(0, np.intp)
        if len(near):
            residuals = _Residuals(self.products, core, window, start, end)
            near = self._come_near(near, residuals, side)
        if len(near):
            paths = residuals.at(near, np.arange(1, kinks + 1)) * side[near, None]
            wrong = np.flatnonzero(paths.min(axis=0) < -1e-13 * np.abs(start.residual).max())
        first = int(wrong[0]) if len(wrong) else kinks
        if first > 0:  # what was missed before is behind
            self._forced = np.empty(0, dtype=np.intp)
        if len(wrong):
            missed = near[paths[:, first] < 0]
            self._forced = np.union1d(self._forced, missed)
        return first

    def _come_near(self, near: Index, residuals: _Residuals, side: Array) -> Index:
        """Those of some points that come near the margin between kinks at which they are known:
        each piece between two such kinks is halved while there are some."""
        core = residuals.core
        stops = np.array([0, core.n_kinks])
        ends = residuals.start.residual, residuals.end.residual
        values = np.column_stack([end[near] * side[near] for end in ends])
        while len(near) and np.diff(stops).max() > SEGMENT:
            middle = (stops[:-1] + stops[1:]) // 2
            both = np.r_[stops, middle]
            values = np.column_stack([values, residuals.at(near, middle) * side[near, None]])
            stops, order = np.unique(both, return_index=True)
            values = values[:, order]
            least = np.minimum(values[:, 1:], values[:, :-1])
            sizes, shifts = np.array([core.bend(a, b) for a, b in pairwise(stops)]).T
            kept = (least < self.root[near, None] * sizes + shifts).any(axis=1)
            near, values = near[kept], values[kept]
        return near


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
