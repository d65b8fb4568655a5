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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...operators.products import HeldProducts, LinearProducts, MatrixProducts, Products
from .settings import PathSettings
from .state import PathStopped, State

if TYPE_CHECKING:
    from .trail import Bends

Array = NDArray[np.float64]
Index = NDArray[np.intp]

NOBODY = np.empty(0, dtype=np.intp)


@dataclass
class Window:
    """Points, their kernel matrix with the shift of a free offset, and the place of every point
    among them, −1 for those outside."""

    index: Index
    K: Array
    place: Index

    @property
    def whole(self) -> bool:
        """Whether no point is outside."""
        return len(self.index) == len(self.place)


def held(products: Products, cache_size: float, settings: PathSettings) -> Products:
    """The products with their matrix in memory, where that is faster and fits.

    A linear kernel goes through its features instead, unless these are sparse and the kernel
    values of windows would be computed again and again.
    """
    n = len(products)
    through_features = isinstance(products, LinearProducts) and (
        n <= settings.whole or not products.points.sparse
    )
    at_hand = isinstance(products, MatrixProducts) or through_features
    if not at_hand and 8.0 * n * n <= cache_size * 2**20:
        with suppress(PathStopped):  # then the walk ends before it begins
            return HeldProducts(products)
    return products


class Windows:
    """Chooses windows and checks what is outside them.

    Attributes
    ----------
    trend : array (n,) or None
        The rates of all residuals, as they were over the last batch.
    """

    trend: Array | None

    def __init__(
        self, products: Products, shift: float, cache_size: float, settings: PathSettings
    ) -> None:
        self.products = products = held(products, cache_size, settings)
        self.shift, self.settings = shift, settings
        self.root = np.sqrt(products.diagonal())
        n = len(products)
        self.most_kinks = max(16, settings.window_bytes // (8 * n))
        kernel = products.products if isinstance(products, HeldProducts) else products
        # the window of all points is a second matrix, which must fit beside the first
        large = isinstance(products, MatrixProducts) and not isinstance(kernel, LinearProducts)
        large = large and 16.0 * n * n <= cache_size * 2**20
        self.whole = n <= (settings.whole_held if large else settings.whole)
        self._window: Window | None = None
        self.restart()

    def restart(self) -> None:
        """Another walk begins: the window in use says nothing about it."""
        self._forced = NOBODY
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
    def needs_trend(self) -> bool:
        return not self.whole and self.trend is None

    def next(self, state: State) -> Window:
        """A window for the next batch: the free points, and those with the earliest arrivals if
        rates vary about those of late."""
        if self._window is not None and self.whole:
            return self._window
        chosen = self._chosen(state)
        old = self._window
        if old is not None and np.count_nonzero(chosen) == len(old.index):
            self._window = self._exchanged(old, chosen)
            return self._window
        known = chosen & (old.place >= 0) if old is not None else np.zeros_like(chosen)
        # those whose kernel values are not known yet last
        index = np.r_[np.flatnonzero(known), np.flatnonzero(chosen & ~known)]
        place = np.full(len(chosen), -1)
        place[index] = np.arange(len(index))
        self._window = Window(index, self._matrix_of(index, known), place)
        return self._window

    def _exchanged(self, old: Window, chosen: NDArray[np.bool_]) -> Window:
        """A window of the same size: points that are new take the places, and the rows of the
        matrix, of those that have gone."""
        gone = np.flatnonzero(~chosen[old.index])
        fresh = np.flatnonzero(chosen & (old.place < 0))
        index, place, K = old.index.copy(), old.place.copy(), old.K
        place[index[gone]] = -1
        index[gone], place[fresh] = fresh, gone
        if len(gone):
            rows = self.products.block(fresh, index) + self.shift
            K[gone] = rows
            K[:, gone] = rows.T
        return Window(index, K, place)

    def _chosen(self, state: State) -> NDArray[np.bool_]:
        settings, n = self.settings, len(self.root)
        count = int(settings.window + settings.window_per_free * len(state.free))
        count += len(self._forced)
        held = 0 if self._window is None else len(self._window.index)
        # of the size that the window has, the matrix can be kept
        spare = settings.window_spare
        count = held if count <= held <= count + 2 * spare else count + spare
        if self.whole or count >= settings.most_of * n:
            return np.ones(n, dtype=bool)
        assert self.trend is not None
        rate, residual = self.trend, state.residual
        towards = np.maximum(-np.sign(residual) * rate, 0.0)
        root = np.maximum(self.root, 1e-300)
        usual = np.median(np.abs(rate) / root) or 1.0
        arrival = np.abs(residual) / (towards + usual * root)
        arrival[state.free] = arrival[self._forced] = -1.0
        chosen = np.zeros(n, dtype=bool)
        chosen[np.argpartition(arrival, count)[:count]] = True
        return chosen

    def _matrix_of(self, index: Index, known: NDArray[np.bool_]) -> Array:
        """The kernel matrix of a new window; the one before has that of the points ``known``, which
        come first."""
        old, count = self._window, int(np.count_nonzero(known))
        if old is None or count == 0:
            K = self.products.block(index, index)
            K += self.shift
            return K
        kept, first = old.place[index[:count]], slice(0, count)
        K = np.empty((len(index), len(index)))
        K[first, first] = old.K.take(kept, axis=0).take(kept, axis=1)
        if count < len(index):
            rows = self.products.block(index[count:], index) + self.shift
            K[count:] = rows
            K[:, count:] = rows.T
        return K

    # ---- the points outside ----

    def valid_kinks(self, bends: Bends, end: State) -> int:
        """How many of the kinks of a batch hold for the points outside the window too; ``end`` is
        its last record, evaluated."""
        trail = bends.trail
        start, kinks = trail.start, len(trail)
        if end.t > start.t:
            self.trend = (end.residual - start.residual) / (end.t - start.t)
        side = start.status.astype(np.float64)
        side[trail.window.index] = 0.0
        # on straight lines the nearest is at an end
        nearest = np.minimum(side * start.residual, side * end.residual)
        size, shift = bends.largest(np.array([0]), np.array([kinks]))
        near = np.flatnonzero((nearest < self.root * size + shift) & (side != 0))
        valid, missed = self._first_crossing(near, bends, end, side)
        if valid > 0:  # what was missed before is behind
            self._forced = NOBODY
        self._forced = np.union1d(self._forced, missed)
        return valid

    def _first_crossing(
        self, near: Index, bends: Bends, end: State, side: Array
    ) -> tuple[int, Index]:
        """How many kinks there are before the first of some points crosses the margin, and the
        points that do so then.

        Residuals are computed at both ends of a stretch of kinks, in its middle, in the middle
        of both halves and so on: in stretches where a point may come near the margin, for the
        points that may, and not beyond a kink at which one has crossed.
        """
        start, kinks = bends.trail.start, len(bends.trail)
        beyond = -1e-13 * np.abs(start.residual).max()
        left, right = np.array([0]), np.array([kinks])
        at_left = start.residual[near, None] * side[near, None]
        at_right = end.residual[near, None] * side[near, None]
        first, missed = kinks + 1, near[:0]
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
                return min(first - 1, kinks), missed
            at_left, at_right = at_left[:, ahead], at_right[:, ahead]
            sizes, shifts = bends.largest(left, right)
            may = np.minimum(at_left, at_right) < self.root[near, None] * sizes + shifts
            points, ahead = may.any(axis=1), may.any(axis=0)
            near, left, right = near[points], left[ahead], right[ahead]
            at_left, at_right = at_left[points][:, ahead], at_right[points][:, ahead]
            stops = (left + right) // 2
            values = self._residuals(near, stops, bends, end) * side[near, None]
            left, right = np.r_[left, stops], np.r_[stops, right]
            at_left, at_right = np.hstack([at_left, values]), np.hstack([values, at_right])

    def _residuals(self, points: Index, records: Index, bends: Bends, end: State) -> Array:
        """Of points outside at records: from the straight line and what bends it."""
        start, last = bends.trail.start, len(bends.trail)
        part, away, shift = bends.away(records, 0, last)
        first, change = start.residual[points, None], (end.residual - start.residual)[points, None]
        bent = self.products.through(points, bends.points, np.ascontiguousarray(away.T))
        return np.asarray(first + part * change - bent - shift)
