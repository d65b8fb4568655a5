"""Records of a walk while it is walked, and one path from the two directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.path import PathCore
from .moving_box import MovingBox
from .tau_path import Chain, TauPath

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]


class PathLog:
    """The records of one leg, from its start on."""

    def __init__(self, offset: float, free: Index, values: Array) -> None:
        self.t = [np.zeros(1)]
        self.offset = [np.array([offset])]
        self.index = [np.array([-1], dtype=np.int32)]
        self.status = [np.zeros(1, dtype=np.int8)]
        self.size = [np.array([len(free)], dtype=np.int64)]
        self.members = [free.astype(np.int32)]
        self.values = [values]

    def add(self, core: PathCore, window: Index, kinks: int) -> None:
        """The first kinks that a batch logged; its points are those of the window."""
        index = np.asarray(core.log_index)[:kinks]
        size = np.array(core.log_size[:kinks], dtype=np.int64)
        values = int(size.sum())
        self.t.append(np.array(core.log_t[:kinks]))
        self.offset.append(np.array(core.log_offset[:kinks]))
        self.index.append(np.where(index >= 0, window[index], -1).astype(np.int32))
        self.status.append(np.array(core.log_status[:kinks]))
        self.size.append(size)
        self.members.append(window[np.asarray(core.members)[:values]].astype(np.int32))
        self.values.append(np.array(core.values[:values]))

    def close(self, offset: float) -> None:
        """All β vanish at the end, where the boxes leave no other solution."""
        self.offset[-1][-1] = offset
        size = int(self.size[-1][-1])
        if size:
            self.values[-1][-size:] = 0.0

    def chain(self, tau: float, way: int) -> Chain:
        """The records as a chain that starts at a level and goes up or down."""
        size = np.concatenate(self.size)
        begin = np.zeros(len(size) + 1, dtype=np.int64)
        np.cumsum(size, out=begin[1:])
        return Chain(
            np.clip(tau + way * np.concatenate(self.t), 0.0, 1.0),
            np.concatenate(self.offset),
            np.concatenate(self.index),
            np.concatenate(self.status),
            begin,
            np.concatenate(self.members),
            np.concatenate(self.values),
        )


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
    before = _before(down, start)
    size = np.diff(down.begin)
    # values of a record stay in their order; the records are taken from the last to the first
    pieces = np.repeat(down.begin[:-1][::-1] - np.r_[0, np.cumsum(size[::-1])[:-1]], size[::-1])
    taken = pieces + np.arange(len(pieces))
    begin = np.zeros(len(size) + len(up.tau), dtype=np.int64)
    np.cumsum(np.r_[size[::-1], np.diff(up.begin)[1:]], out=begin[1:])
    rest = slice(up.begin[1], None)
    chain = Chain(
        np.r_[down.tau[::-1], up.tau[1:]],
        np.r_[down.offset[::-1], up.offset[1:]],
        # what changed on the way from a record down to the next is undone between them
        np.r_[np.int32(-1), down.index[:0:-1], up.index[1:]],
        np.r_[np.int8(0), before[:0:-1], up.status[1:]],
        begin,
        np.r_[down.members[taken], up.members[rest]],
        np.r_[down.values[taken], up.values[rest]],
    )
    return TauPath(box, lowest, chain, len(down.tau) - 1)


def _before(chain: Chain, start: Signs) -> Signs:
    """The set of each record's point before its change."""
    changes = np.flatnonzero(chain.index >= 0)
    index = chain.index[changes]
    # the change before of the same point: its neighbour in a stable sort by points
    order = np.argsort(index, kind="stable")
    previous = np.empty(len(index), dtype=np.int8)
    previous[order[1:]] = chain.status[changes][order[:-1]]
    first = np.r_[True, index[order[1:]] != index[order[:-1]]][: len(index)]
    previous[order[first]] = start[index[order[first]]]
    before = np.zeros(len(chain.index), dtype=np.int8)
    before[changes] = previous
    return before
