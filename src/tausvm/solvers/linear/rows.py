"""X as the linear solvers see it: rows, dense or CSR, never copied and never densified."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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


ALL = np.empty(0, dtype=np.int64)


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
        #: one object for X and all its parts, once it is asked for
        self._inner: list[InnerProducts] = []
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
        part._inner = self._inner
        return part

    def inner_products(self, index: Index) -> Array:
        """The matrix of inner products of a few rows; they are kept, for all parts of X."""
        if not self._inner:
            self._inner.append(InnerProducts(self.X))
        return self._inner[0].of(self._of(index))

    def batch(self) -> int:
        """How many rows make a short call of the core."""
        return max(1, int(BATCH * len(self) / max(self.entries, 1)))

    def dot(self, w: Array) -> Array:
        """x·w for every row."""
        out = np.empty(len(self))
        kind = core.sparse_dots if self.sparse else core.dense_dots
        self._share(lambda begin, end, _: kind(*self.arguments, w, out, begin, end))
        return out

    def sum(self, weight: Array, roomy: bool = False) -> Array:
        """Σ weightᵢ xᵢ; ``roomy`` where time matters more than memory."""
        kind = core.sparse_sum if self.sparse else core.dense_sum
        return self._gather(kind, weight, ROOMY_SHARE if roomy else OUTPUT_SHARE)

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

        def part(starts: range) -> Array:
            total = np.zeros((d, d))
            room = np.empty((0 if self.sparse else min(step, len(index)), d))
            for start in starts:
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
        if len(starts) < 2 or thread_count() < 2:
            return part(halves[0]) + part(halves[1])
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(part, halves)
        return first + second

    def _gather(self, kind: Callable[..., None], weight: Array, share: int) -> Array:
        """A sum over rows, in parts that are added in order.

        A part has its own output, and ``share`` times as many entries of X.
        """
        parts = int(min(self._parts(), max(1, self.entries // (share * self.n_features))))
        outputs = [np.zeros(self.n_features) for _ in range(parts)]
        self._share(
            lambda begin, end, k: kind(*self.arguments, weight, outputs[k], begin, end),
            parts,
        )
        for other in outputs[1:]:
            outputs[0] += other
        return outputs[0]

    def _parts(self) -> int:
        return PARTS if self.entries >= SHARED else 1

    def _share(self, work: Callable[[int, int, int], None], parts: int | None = None) -> None:
        """Call ``work(begin, end, part)`` over all rows in short batches, parts in threads."""
        parts = self._parts() if parts is None else parts
        edges = [len(self) * k // parts for k in range(parts + 1)]
        step = self.batch()

        def part(k: int) -> None:
            for begin in range(edges[k], edges[k + 1], step):
                work(begin, min(begin + step, edges[k + 1]), k)

        workers = min(parts, thread_count()) if parts > 1 else 1
        if workers == 1:
            for k in range(parts):
                part(k)
            return
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(part, range(parts)))
