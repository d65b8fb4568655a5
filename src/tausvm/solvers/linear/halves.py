"""Coordinate descent on long sparse rows by two threads, each with half of the columns.

Steps of coordinate descent come one after another, and each needs the weights that the last one
left. But a row of a thousand entries can be cut at a column: either thread adds up its half of
xᵢᵀw, they tell each other, both compute the same step, and each moves its half of w. The result is
that of one thread, bit by bit, whoever is first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..._core.sweeps import (
    BOTH,
    FIRST,
    SECOND,
    can_exchange,
    halve,
    sparse_sweep,
    table_size,
)
from ...threads import thread_count
from .rows import Rows

#: entries a row has on average where two threads gain more than they lose by waiting
LONG_ROW = 500
#: entries of X below which it is not worth a thread
MANY_ENTRIES = 2_000_000
#: entries that are looked at for the column at which to cut
SAMPLE = 100_000

#: sweeps in which one thread may have waited too long for the other, and as a share of all: where
#: there are more, the machine is busy
PATIENCE = 3
BROKEN_OFF = 0.25

WHOLE = np.empty(0, dtype=np.int64)
#: the last arguments of a sweep over whole rows
UNCUT = (WHOLE, BOTH, WHOLE)


def worth_halving(rows: Rows) -> bool:
    """Whether rows are long, sparse and sorted, and there are many of them."""
    long = rows.entries >= max(MANY_ENTRIES, LONG_ROW * len(rows))
    return rows.sparse and long and can_exchange and bool(rows.X.has_sorted_indices)


class Halves:
    """Sweeps by one thread or two, whichever is quicker.

    Parameters
    ----------
    rows : Rows
        For which :func:`worth_halving` holds.
    """

    def __init__(self, rows: Rows) -> None:
        indices = rows.X.indices
        cut = int(np.median(indices[:: max(1, len(indices) // SAMPLE)]))
        self.middle = np.empty(len(rows), dtype=np.int64)
        halve(indices, rows.X.indptr, rows.arguments[-1], cut, self.middle)
        self.table = np.zeros(table_size, dtype=np.int64)
        self.pool = ThreadPoolExecutor(1)
        #: seconds a visit when last tried, by the number of threads
        self.pace: dict[int, float] = {}
        self.count = 0
        #: sweeps that two threads did not come to the end of, and whether the last one is such
        self.broken_off = 0
        self.resting = False

    def sweep(
        self, begin: int, end: int, arguments: Sequence[Any], written: Sequence[Any]
    ) -> tuple[float, int]:
        """``sparse_sweep`` with these arguments, visits ``begin`` to ``end``, or its beginning.

        Of these, ``written`` are written to, beside w, of which a thread writes to its half only.
        """
        threads = self._threads()
        started = time.perf_counter()
        if threads == 1:
            usual, ended = sparse_sweep(*arguments, self.middle, BOTH, self.table)
        else:
            usual, ended = self._by_two(arguments, written)
        self.count += 1
        self.resting = ended < end
        if self.resting:
            self.broken_off += 1
        else:
            self.pace[threads] = (time.perf_counter() - started) / max(end - begin, 1)
        return usual, ended

    def _threads(self) -> int:
        """Two, unless one is quicker or has to go on where two have been held up."""
        busy = self.broken_off > PATIENCE + BROKEN_OFF * self.count
        if thread_count() < 2 or busy or self.resting or 1 not in self.pace:
            return 1
        return 2 if self.pace.get(2, 0.0) < self.pace[1] else 1

    def _by_two(self, arguments: Sequence[Any], written: Sequence[Any]) -> tuple[float, int]:
        copies = {id(array): array.copy() for array in written}
        others = [copies.get(id(value), value) for value in arguments]
        self.table[:] = 0
        other = self.pool.submit(lambda: sparse_sweep(*others, self.middle, SECOND, self.table))
        found: tuple[float, int] = sparse_sweep(*arguments, self.middle, FIRST, self.table)
        other.result()
        return found
