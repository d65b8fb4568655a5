"""A solution path as it is kept: what changes at each kink, and how β is recovered from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .box import MovingBox

Array = NDArray[np.float64]

#: changes between two full copies of the sets
STRIDE = 1024


@dataclass
class Chain:
    """Records along one direction of τ, the first of them the start.

    Attributes
    ----------
    tau, offset : arrays (n_records,)
    begin : int64 array (n_records + 1,)
        Where the free points of a record stand in ``members`` and ``values``.
    members : int32 array
    values : array
        The β of the free points.
    at : int64 array (n_changes,)
        The record to which a change leads from the record before, ascending.
    index : int32 array (n_changes,)
        The point whose set changed.
    status : int8 array (n_changes,)
        Its new set: −1 at its lower bound, 0 free, 1 at its upper bound.
    back : array (n_records,) or None
        τ − 1, with the digits that τ cannot hold near 1; None where nothing but τ is known.
    """

    tau: Array
    offset: Array
    begin: NDArray[np.int64]
    members: NDArray[np.int32]
    values: Array
    at: NDArray[np.int64]
    index: NDArray[np.int32]
    status: NDArray[np.int8]
    back: Array | None = None

    @property
    def nbytes(self) -> int:
        arrays: list[NDArray[Any]] = [self.tau, self.offset, self.begin, self.members]
        arrays += [self.values, self.at, self.index, self.status]
        arrays += [] if self.back is None else [self.back]
        return sum(array.nbytes for array in arrays)


class TauPath:
    """β(τ), exact at every record and on the straight line between two of them.

    Memory: 12 bytes for every free point of a record, 32 bytes for every record, 13 for every
    change of a point's set, and a copy of the sets (n bytes) for every 1,024 changes.

    Parameters
    ----------
    box : MovingBox
    start : int8 array (n,)
        The sets at the first record.
    chain : Chain
        Records in ascending τ.
    middle : int
        Up to this record the sets between two records are those of the second, from it on
        those of the first.
    """

    def __init__(
        self, box: MovingBox, start: NDArray[np.int8], chain: Chain, middle: int = 0
    ) -> None:
        self.box = box
        self.chain = chain
        self.middle = middle
        copies = [start]
        for begin in range(0, len(chain.at) - STRIDE + 1, STRIDE):
            copy = copies[-1].copy()
            part = slice(begin, begin + STRIDE)
            copy[chain.index[part]] = chain.status[part]
            copies.append(copy)
        self._copies = copies

    def __len__(self) -> int:
        return len(self.chain.tau)

    @property
    def nbytes(self) -> int:
        """Memory of the records and the copies of the sets."""
        return self.chain.nbytes + sum(copy.nbytes for copy in self._copies)

    def status(self, record: int) -> NDArray[np.int8]:
        """The sets at a record: −1 lower bound, 0 free, 1 upper bound."""
        chain = self.chain
        count = int(np.searchsorted(chain.at, record, side="right"))
        base = count // STRIDE
        status = self._copies[base].copy()
        part = slice(base * STRIDE, count)
        # of several changes of a point the last one stays
        status[chain.index[part]] = chain.status[part]
        return status

    def at_record(self, record: int) -> Array:
        """β at a record."""
        chain = self.chain
        back = None if chain.back is None else float(chain.back[record])
        beta = self.box.bounds(self.status(record), float(chain.tau[record]), back)
        part = slice(chain.begin[record], chain.begin[record + 1])
        beta[chain.members[part]] = chain.values[part]
        return beta

    def _locate(self, tau: float) -> tuple[int, float]:
        """The record before τ, and how far τ is from it to the next, in [0, 1]."""
        places, wanted = self.chain.tau, tau
        if tau > 0.5 and self.chain.back is not None:
            places, wanted = self.chain.back, tau - 1.0
        record = int(np.searchsorted(places, wanted, side="right")) - 1
        record = min(max(record, 0), len(places) - 2)
        width = places[record + 1] - places[record]
        part = float((wanted - places[record]) / width) if width > 0 else 0.0
        return record, min(max(part, 0.0), 1.0)

    def solution(self, tau: float) -> tuple[Array, float]:
        """β and the offset at τ, in O(n)."""
        record, part = self._locate(tau)
        offset = self.chain.offset
        beta = self.at_record(record)
        if part > 0:
            beta *= 1.0 - part
            beta += part * self.at_record(record + 1)
        b = (1.0 - part) * offset[record] + part * offset[record + 1]
        return beta, float(b)

    def sets(self, tau: float) -> NDArray[np.int8]:
        """Where β is at τ: −1 at its lower bound, 0 free, 1 at its upper bound."""
        record, _ = self._locate(tau)
        return self.status(record if record >= self.middle else record + 1)
