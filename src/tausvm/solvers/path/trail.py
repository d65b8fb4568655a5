"""The kinks of one batch on a window, and what the points are at each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._core.path import KinkLog, largest_bends
from .box import MovingBox
from .state import State
from .window import Window

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: of a squared norm that is a sum of products with differences, as a share of its terms
BEND_ROUNDING = 1e-10


@dataclass
class Trail:
    """Records of a batch, numbered from 0, its start; record k is that after the k-th kink.

    Attributes
    ----------
    log : KinkLog
        What the core wrote down; its points are places in the window.
    window : Window
    box : MovingBox
    start : State
    """

    log: KinkLog
    window: Window
    box: MovingBox
    start: State

    def __len__(self) -> int:
        return int(self.log.count)

    def status(self, record: int) -> Signs:
        """The sets of all points at a record."""
        status = self.start.status.copy()
        changed = self.log.index[:record]
        known = changed >= 0
        # of several changes of a point the last one stays
        status[self.window.index[changed[known]]] = self.log.status[:record][known]
        return status

    def state(self, record: int) -> State:
        """All points at a record, not evaluated."""
        if record == 0:
            return self.start
        log, k = self.log, record - 1
        t, status = float(log.t[k]), self.status(record)
        part = slice(log.begin[k], log.begin[record])
        free = self.window.index[log.members[part]]
        beta = self.box.bounds(status, t)
        beta[free] = log.values[part]
        return State(t, beta, status, float(log.offset[k]), free)

    def moved(self, first: int, last: int) -> Index:
        """The places of points that are free at some record between two."""
        changed = self.log.index[first:last]
        at_first = np.flatnonzero(self.status(first)[self.window.index] == 0)
        return np.union1d(changed[changed >= 0], at_first)

    def beta(self, first: int, last: int, places: Index) -> Array:
        """β of points, which must be all that moved, at the records after ``first`` up to
        ``last``: one row a record."""
        points = self.window.index[places]
        column = np.full(len(self.window.index), -1)
        column[places] = np.arange(len(places))
        numbers = np.ascontiguousarray(self.box.numbers[:, points])
        sets = self.status(first)[points]
        return np.asarray(self.log.beta_after(first, last, column, sets, numbers))


class Bends:
    """How far the points of a whole batch leave straight lines between its records.

    The core must have kept the residuals.
    """

    def __init__(self, trail: Trail) -> None:
        self.trail = trail
        count = len(trail)
        self.places = trail.moved(0, count)
        self.points = trail.window.index[self.places]
        start = trail.start
        self.t = np.r_[start.t, trail.log.t]
        self.offset = np.r_[start.offset, trail.log.offset]
        self.beta = np.vstack([start.beta[self.points], trail.beta(0, count, self.places)])

    @cached_property
    def residual(self) -> Array:
        start = self.trail.start.residual[self.points]
        return np.vstack([start, self.trail.log.residual.take(self.places, axis=1)])

    def part(self, records: slice | Index, first: int, last: int) -> Array:
        """How far records are from the first to the last, in [0, 1]."""
        length = self.t[last] - self.t[first]
        way = self.t[records] - self.t[first]
        return way / length if length > 0 else np.zeros(len(way))

    def away(self, records: slice | Index, first: int, last: int) -> tuple[Array, Array, Array]:
        """The parts of records, and how far β and b are from the lines between two others."""
        part = self.part(records, first, last)
        beta, b = self.beta, self.offset
        line = beta[first] + part[:, None] * (beta[last] - beta[first])
        return part, beta[records] - line, b[records] - b[first] - part * (b[last] - b[first])

    def largest(self, first: Index, last: Index) -> tuple[Array, Array]:
        """Between pairs of records: the norm of what β adds to f at the most, and the most that b
        adds to its line.

        With g the way of β from its line, Kg is minus that of the residuals and of b, so that
        gᵀKg needs the residuals of the points that moved alone.
        """
        sizes, shifts = largest_bends(
            self.t, self.offset, self.beta, self.residual, first, last, BEND_ROUNDING
        )
        return sizes, shifts
