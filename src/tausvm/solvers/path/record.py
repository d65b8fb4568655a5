"""Records of a walk while it is walked, and one path from the two directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._core.path import KinkLog
from .box import MovingBox
from .tau_path import Chain, TauPath

if TYPE_CHECKING:
    from .state import State

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]


class Recorder:
    """The records of a walk in one direction, from its start on.

    Where they outgrow ``limit`` bytes every second one is given up, and from then on only every
    second, fourth, … kink is recorded; changes of the sets are all kept.
    """

    def __init__(self, limit: float, tau: float, first: State) -> None:
        self.limit = limit
        self.begin_leg(tau, 0)
        #: of so many kinks one is kept
        self.every = 1
        self._seen = 0
        self._ends_with_kink = True
        self.tau, self.back = [np.array([tau])], [np.array([tau - 1.0])]
        #: bounds on the gap of the piece that leads to a record; not a number where none is known
        self.gap = [np.array([np.nan])]
        self.offset = [np.array([first.offset])]
        self.size = [np.array([len(first.free)], dtype=np.int64)]
        self.members = [first.free.astype(np.int32)]
        self.values = [first.beta[first.free]]
        self.at: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        self.index: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
        self.status: list[Signs] = [np.empty(0, np.int8)]
        self._records = 1
        self._bytes = 0

    def begin_leg(self, base: float, way: int) -> None:
        """From here on the level of a t is base + way·t."""
        self._base, self._way = base, way

    def add(self, log: KinkLog, window: Index, gaps: Array, last: bool) -> None:
        """The first kinks of a batch, with the bounds of the pieces that lead to them; its points
        are places in the window. ``last`` where they end the leg."""
        kinks = len(gaps)
        size = np.diff(log.begin[: kinks + 1])
        kept = (self._seen + np.arange(kinks)) % self.every == self.every - 1
        if last:
            kept[-1:] = True
        self._seen += kinks
        self._ends_with_kink = bool(kept[-1:].all())
        changed = log.index[:kinks] >= 0
        # a change belongs to the next record that is kept, perhaps one of a later batch
        leads_to = self._records + np.cumsum(kept) - kept
        self.at.append(leads_to[changed])
        self.index.append(window[log.index[:kinks][changed]].astype(np.int32))
        self.status.append(log.status[:kinks][changed])
        values = np.repeat(kept, size)
        part = slice(0, log.begin[kinks])
        self._add_records(
            log.t[:kinks][kept],
            log.offset[:kinks][kept],
            size[kept],
            window[log.members[part][values]].astype(np.int32),
            log.values[part][values],
            gaps if self.every == 1 else np.full(np.count_nonzero(kept), np.nan),
        )

    def correct_last(self, offset: float, values: Array) -> None:
        """The last kink that was added, with the free points put back onto the margin."""
        if self._ends_with_kink:
            self.offset[-1][-1] = offset
            if len(values):
                self.values[-1][-len(values) :] = values

    def add_solution(self, old: State, new: State, gap: float) -> None:
        """A solution that was found otherwise, and the bound of the piece that leads to it."""
        changed = np.flatnonzero(new.status != old.status)
        self.at.append(np.full(len(changed), self._records))
        self.index.append(changed.astype(np.int32))
        self.status.append(new.status[changed])
        self._add_records(
            np.array([new.t]),
            np.array([new.offset]),
            np.array([len(new.free)], dtype=np.int64),
            new.free.astype(np.int32),
            new.beta[new.free],
            np.array([gap if self._ends_with_kink else np.nan]),
        )
        self._ends_with_kink = True

    def _add_records(
        self,
        t: Array,
        offset: Array,
        size: Index,
        members: NDArray[np.int32],
        values: Array,
        gap: Array,
    ) -> None:
        self.tau.append(np.clip(self._base + self._way * t, 0.0, 1.0))
        self.back.append(np.clip((self._base - 1.0) + self._way * t, -1.0, 0.0))
        self.offset.append(offset)
        self.size.append(size)
        self.members.append(members)
        self.values.append(values)
        self.gap.append(gap)
        self._records += len(t)
        self._bytes += 12 * len(values) + 40 * len(t)
        if self._bytes > self.limit:
            self._thin()

    def _thin(self) -> None:
        """Give up every second record."""
        size = np.concatenate(self.size)
        kept = np.arange(self._records) % 2 == 0
        kept[-1] = True  # perhaps the end of the leg
        values = np.repeat(kept, size)
        # records that stay get new numbers, changes move on to the next of them
        number = np.cumsum(kept) - kept
        after = np.r_[number, kept.sum()]
        self.tau = [np.concatenate(self.tau)[kept]]
        self.back = [np.concatenate(self.back)[kept]]
        self.offset = [np.concatenate(self.offset)[kept]]
        gaps = np.concatenate(self.gap)[kept]
        gaps[~kept[np.maximum(np.flatnonzero(kept) - 1, 0)]] = np.nan  # two pieces became one
        self.gap = [gaps]
        self.size = [size[kept]]
        self.members = [np.concatenate(self.members)[values]]
        self.values = [np.concatenate(self.values)[values]]
        self.at = [after[np.concatenate(self.at)]]
        self._records = int(kept.sum())
        self._bytes = 12 * len(self.values[0]) + 40 * self._records
        self.every *= 2

    def close(self, offset: float) -> None:
        """All β vanish at the end, where the boxes leave no other solution."""
        self.offset[-1][-1] = offset
        self.gap[-1][-1] = np.nan
        size = int(self.size[-1][-1])
        if size:
            self.values[-1][-size:] = 0.0

    def gaps(self) -> Array:
        """The bounds of the pieces that lead to the records; none leads to the first."""
        return np.concatenate(self.gap)

    def chain(self) -> Chain:
        """The records as a chain."""
        size = np.concatenate(self.size)
        return Chain(
            np.concatenate(self.tau),
            np.concatenate(self.offset),
            np.r_[0, np.cumsum(size)],
            np.concatenate(self.members),
            np.concatenate(self.values),
            np.concatenate(self.at),
            np.concatenate(self.index),
            np.concatenate(self.status),
            np.concatenate(self.back),
        )


def joined_gaps(down: Array, up: Array) -> Array:
    """The bounds of all pieces in ascending τ from those of the two legs."""
    return np.r_[down[:0:-1], up[1:]]


def joined(box: MovingBox, lowest: Signs, down: Chain, up: Chain, start: Signs) -> TauPath:
    """One chain in ascending τ from the two legs; their common start is one record.

    Parameters
    ----------
    box : MovingBox
    lowest : int8 array (n,)
        The sets where the leg downwards ended.
    down, up : Chain
    start : int8 array (n,)
        The sets where both began.
    """
    if len(down.tau) == 1:
        return TauPath(box, lowest, up)
    assert down.back is not None
    assert up.back is not None
    size = np.diff(down.begin)
    # values of a record stay in their order; the records are taken from the last to the first
    pieces = np.repeat(down.begin[:-1][::-1] - np.r_[0, np.cumsum(size[::-1])[:-1]], size[::-1])
    taken = pieces + np.arange(len(pieces))
    rest = slice(up.begin[1], None)
    last = len(down.tau) - 1
    chain = Chain(
        np.r_[down.tau[::-1], up.tau[1:]],
        np.r_[down.offset[::-1], up.offset[1:]],
        np.r_[0, np.cumsum(np.r_[size[::-1], np.diff(up.begin)[1:]])],
        np.r_[down.members[taken], up.members[rest]],
        np.r_[down.values[taken], up.values[rest]],
        # what changed on the way from a record down to the next is undone on the way up
        np.r_[last + 1 - down.at[::-1], last + up.at],
        np.r_[down.index[::-1], up.index],
        np.r_[_before(down, start)[::-1], up.status],
        np.r_[down.back[::-1], up.back[1:]],
    )
    return TauPath(box, lowest, chain, last)


def _before(chain: Chain, start: Signs) -> Signs:
    """The set of each change's point before it."""
    index = chain.index
    # the change before of the same point: its neighbour in a stable sort by points
    order = np.argsort(index, kind="stable")
    before = np.empty(len(index), dtype=np.int8)
    before[order[1:]] = chain.status[order[:-1]]
    first = np.r_[True, index[order[1:]] != index[order[:-1]]][: len(index)]
    before[order[first]] = start[index[order[first]]]
    return before
