"""X as the linear solvers see it: rows, dense or CSR, never copied and never densified."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._core import linear as core
from ...threads import thread_count
from .dual_systems import InnerProducts

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: entries of X in one call of the core: some ten milliseconds, so that Ctrl-C is soon seen
BATCH = 4_000_000
#: products of fewer entries are not shared out between threads
SHARED = 1_000_000
#: parts into which a large product is cut. It does not depend on the number of threads, so
#: neither do the sums
PARTS = 4
#: entries of X for one of an output of a part's own, and where memory matters less
OUTPUT_SHARE = 32
ROOMY_SHARE = 8
#: numbers in the block of rows that is multiplied with itself at a time: a core's own cache; zeros
#: of CSR rows counted in
BLOCK = 100_000
SPARSE_BLOCK = 1_000_000
#: seconds an entry of X takes in a product until that has been timed, and the entries from which
#: on it is: fewer take less than a millisecond
SECONDS_AN_ENTRY = 5e-9
TIMED = 100_000

T = TypeVar("T")
S = TypeVar("S")

ALL = np.empty(0, dtype=np.int64)


def in_threads(work: Callable[[S, Callable[[], bool]], T], parts: list[S], workers: int) -> list[T]:
    """``work(part, halted)`` of all parts; an exception in one, or Ctrl-C, halts the others."""
    halted = threading.Event()
    if workers < 2 or len(parts) < 2:
        return [work(part, halted.is_set) for part in parts]
    with ThreadPoolExecutor(workers) as pool:
        try:
            return list(pool.map(lambda part: work(part, halted.is_set), parts))
        except BaseException:
            halted.set()
            raise


@dataclass
class Common:
    """What a matrix and all its parts have in common."""

    #: called between parts of long work; ends it by an exception
    watch: Callable[[], None] | None = None
    #: inner products of rows, once they are asked for
    inner: InnerProducts | None = None
    #: seconds an entry, by the kind of product
    pace: dict[str, float] = field(default_factory=dict)


class Rows:
    """Some rows of a matrix, or all of them.

    Parameters
    ----------
    X : array (C-contiguous) or CSR matrix, float32 or float64
        CSR without duplicate entries, sorted or not.
    chosen : int64 array or None
        The rows that take part; None for all.
    """

    def __init__(self, X: Any, chosen: Index | None = None) -> None:
        self.X = X
        self.sparse = bool(sp.issparse(X))
        self.common = Common()
        self.chosen = chosen
        self._matrix: tuple[Any, ...] = (X.data, X.indices, X.indptr) if self.sparse else (X,)
        #: what the core takes: the matrix, and the rows, none for all
        self.arguments = (*self._matrix, ALL if chosen is None else chosen)
        if not self.sparse:
            self.entries = len(self) * X.shape[1]
        elif chosen is None:
            self.entries = int(X.indptr[-1])
        else:
            lengths = X.indptr[chosen + 1] - X.indptr[chosen]
            self.entries = int(lengths.sum(dtype=np.int64))

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self.chosen is None else len(self.chosen)

    def _of(self, index: Index) -> Index:
        """The numbers in X of some of these rows."""
        return index if self.chosen is None else self.chosen[index]

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def take(self, index: Index) -> Rows:
        """Some of these rows."""
        part = Rows(self.X, self._of(index))
        part.common = self.common
        return part

    def pause(self) -> None:
        """A moment at which long work may be ended."""
        if self.common.watch is not None:
            self.common.watch()

    def product_seconds(self) -> float:
        """About how long Xw and Σ βᵢxᵢ take together."""
        pace = self.common.pace
        usual = max(pace.values(), default=SECONDS_AN_ENTRY)
        return self.entries * sum(pace.get(kind, usual) for kind in ("dot", "sum"))

    def inner_products(self, index: Index) -> Array:
        """The matrix of inner products of a few rows; they are kept, for all parts of X."""
        if self.common.inner is None:
            self.common.inner = InnerProducts(self.X)
        return self.common.inner.of(self._of(index), self.pause)

    def batch(self) -> int:
        """How many rows make a short call of the core."""
        return max(1, int(BATCH * len(self) / max(self.entries, 1)))

    def dot(self, w: Array) -> Array:
        """x·w for every row."""
        out = np.empty(len(self))
        kind = core.sparse_dots if self.sparse else core.dense_dots
        self._share(lambda begin, end, _: kind(*self.arguments, w, out, begin, end), name="dot")
        return out

    def sum(self, weight: Array, roomy: bool = False) -> Array:
        """Σ weightᵢ xᵢ; ``roomy`` where time matters more than memory."""
        kind = core.sparse_sum if self.sparse else core.dense_sum
        return self._gather(kind, weight, ROOMY_SHARE if roomy else OUTPUT_SHARE, "sum")

    def column_squares(self, weight: Array) -> Array:
        """Σ weightᵢ xᵢⱼ² for every column j."""
        kind = core.sparse_column_squares if self.sparse else core.dense_column_squares
        return self._gather(kind, weight, OUTPUT_SHARE)

    def squares(self) -> Array:
        """‖x‖² for every row."""
        out = np.empty(len(self))
        kind = core.sparse_squares if self.sparse else core.dense_squares
        self._share(lambda begin, end, _: kind(*self.arguments, out, begin, end))
        return out

    def outer(self, weight: Array) -> Array:
        """Σ weightᵢ xᵢ xᵢᵀ, for few features; rows of weight 0 cost nothing."""
        plus, minus = np.flatnonzero(weight > 0), np.flatnonzero(weight < 0)
        total = self._squared(plus, weight)
        if len(minus) > 0:
            total -= self._squared(minus, weight)
        return total

    def _squared(self, index: Index, weight: Array) -> Array:
        """Σ |weightᵢ| xᵢ xᵢᵀ over some rows, block by block."""
        d = self.n_features
        step = max(1, (SPARSE_BLOCK if self.sparse else BLOCK) // d)
        starts = range(0, len(index), step)

        def part(starts: range, halted: Callable[[], bool]) -> Array:
            total = np.zeros((d, d))
            room = np.empty((0 if self.sparse else min(step, len(index)), d))
            for start in starts:
                if halted():
                    break
                self.pause()
                some = index[start : start + step]
                if self.sparse:
                    block = self.X[self._of(some)]
                    total += (block.T @ block.multiply(np.abs(weight[some])[:, None])).toarray()
                    continue
                block = room[: len(some)]
                core.dense_gather(*self.arguments, some, weight, block)
                total += block.T @ block  # NumPy sees the symmetry
            return total

        halves = [range(k * step, len(index), 2 * step) for k in range(2)]
        first, second = in_threads(part, halves, min(len(starts), thread_count()))
        return first + second

    def _gather(
        self, kind: Callable[..., None], weight: Array, share: int, name: str = ""
    ) -> Array:
        """A sum over rows, in parts that are added in order.

        A part has its own output, and ``share`` times as many entries of X.
        """
        parts = int(min(self._parts(), max(1, self.entries // (share * self.n_features))))
        outputs = [np.zeros(self.n_features) for _ in range(parts)]
        self._share(
            lambda begin, end, k: kind(*self.arguments, weight, outputs[k], begin, end),
            parts,
            name,
        )
        for other in outputs[1:]:
            outputs[0] += other
        return outputs[0]

    def _parts(self) -> int:
        return PARTS if self.entries >= SHARED else 1

    def _share(
        self, work: Callable[[int, int, int], None], parts: int | None = None, name: str = ""
    ) -> None:
        """Call ``work(begin, end, part)`` over all rows in short batches, parts in threads.

        A kind of product that has a name is timed.
        """
        parts = self._parts() if parts is None else parts
        edges = [len(self) * k // parts for k in range(parts + 1)]
        step = self.batch()
        started = time.perf_counter()

        def part(k: int, halted: Callable[[], bool]) -> None:
            for begin in range(edges[k], edges[k + 1], step):
                if halted():
                    break
                self.pause()
                work(begin, min(begin + step, edges[k + 1]), k)

        in_threads(part, list(range(parts)), min(parts, thread_count()))
        if name and self.entries >= TIMED:
            self.common.pace[name] = (time.perf_counter() - started) / self.entries
