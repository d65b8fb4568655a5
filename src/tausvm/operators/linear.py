"""The matrix XXᵀ of a linear machine, which is never written out.

X is dense or CSR, and neither copied nor densified. A function is w·x, written by its weights w:
``function`` gives w = Σ βᵢxᵢ, ``values`` gives Xw, and both cost one pass over the entries of X.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._core.rows import Matrix
from ..threads import share_out, thread_count
from .base import Operator

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Portions:
    """Into which portions work on X is cut. No sum depends on the number of threads."""

    #: entries of X in one call of the core: some ten milliseconds, so that Ctrl-C is soon seen
    batch: int = 4_000_000
    #: products of fewer entries are not shared out between threads: they take a millisecond
    shared: int = 1_000_000
    #: parts into which a product is cut that is shared out
    parts: int = 4
    #: entries of X for each number of a part's own output, so that the outputs of all parts take
    #: little beside X
    entries_an_output: int = 16
    #: numbers in the block of dense rows that is multiplied with itself at a time: the cache of a
    #: processor core
    block: int = 100_000
    #: seconds an entry of X takes in a product until that has been timed
    seconds_an_entry: float = 5e-9
    #: entries from which on products are timed: fewer take less than a millisecond
    timed: int = 100_000


class InnerProducts:
    """Inner products of rows of X, which outlive a change of the rows asked for.

    Only those of rows not met before are computed. ``most`` rows at most are kept.
    """

    #: rows whose inner products are computed in one call: short, so that Ctrl-C is soon seen
    step = 100

    def __init__(self, X: Any, most: int) -> None:
        self.X, self.most = X, most
        self.place = np.full(X.shape[0], -1, dtype=np.int32)
        self._forget()

    def _forget(self) -> None:
        self.known = np.empty(0, dtype=np.int64)
        self.matrix = np.empty((0, 0))
        self.place[:] = -1

    def of(self, index: Index, pause: Callable[[], None]) -> Array:
        """The matrix of inner products of these rows, a copy; ``pause`` may end the work."""
        fresh = index[self.place[index] < 0]
        if len(self.known) + len(fresh) > self.most:
            self._forget()
            fresh = index
        if len(fresh) > 0:
            self._learn(fresh, pause)
        at = self.place[index]
        return self.matrix[np.ix_(at, at)]

    def _learn(self, fresh: Index, pause: Callable[[], None]) -> None:
        old, total = len(self.known), len(self.known) + len(fresh)
        known = np.concatenate([self.known, fresh])
        matrix = np.empty((total, total))
        matrix[:old, :old] = self.matrix
        rows = self.X[known]
        for start in range(old, total, self.step):
            pause()
            some = slice(start, min(start + self.step, total))
            product = rows[some] @ rows.T
            matrix[some] = product.toarray() if sp.issparse(product) else product
        matrix[:old, old:] = matrix[old:, :old].T
        # what was interrupted is not known
        self.known, self.matrix = known, matrix
        self.place[fresh] = np.arange(old, total)


@dataclass
class Tally:
    """What has been computed with a matrix, for those who have to foretell what is left.

    Attributes
    ----------
    entries : float
        Entries of X in products.
    pairs : float
        Pairs of entries multiplied in products of rows, or of columns.
    operations : float
        Those of factorisations.
    rows, steps : float
        Rows whose terms were looked at, and steps in which that was.
    """

    entries: float = 0.0
    pairs: float = 0.0
    operations: float = 0.0
    rows: float = 0.0
    steps: float = 0.0


@dataclass
class Common:
    """What a matrix and all its parts have in common."""

    #: called between parts of long work; ends it by an exception
    watch: Callable[[], None] | None = None
    #: inner products of rows, once they are asked for
    inner: InnerProducts | None = None
    #: seconds an entry, by the kind of product
    pace: dict[str, float] = field(default_factory=dict)
    #: what has been computed
    tally: Tally = field(default_factory=Tally)


class LinearOperator(Operator):
    """XXᵀ for some rows of a matrix, or for all of them.

    Parameters
    ----------
    X : array (C-contiguous) or CSR matrix, float32 or float64
        CSR without duplicate entries, sorted or not.
    chosen : int64 array or None
        The rows that take part; None for all.
    portions : Portions
    """

    def __init__(
        self, X: Any, chosen: Index | None = None, portions: Portions | None = None
    ) -> None:
        self.X = X
        self.sparse = bool(sp.issparse(X))
        self.common = Common()
        self.chosen = chosen
        self.portions = portions or Portions()
        given = (X.data, X.indices, X.indptr) if self.sparse else (X, None, None)
        #: the rows for the cores
        self.matrix = Matrix(*given, chosen, X.shape[1])
        if not self.sparse:
            self.entries = len(self) * X.shape[1]
        elif chosen is None:
            self.entries = int(X.indptr[-1])
        else:
            lengths = X.indptr[chosen + 1] - X.indptr[chosen]
            self.entries = int(lengths.sum(dtype=np.int64))

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self.chosen is None else len(self.chosen)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def watch(self) -> Callable[[], None] | None:
        """Who may end long work: the same for all parts of X."""
        return self.common.watch

    @watch.setter
    def watch(self, watch: Callable[[], None] | None) -> None:
        self.common.watch = watch

    @property
    def tally(self) -> Tally:
        """What has been computed with X, by all parts of it."""
        return self.common.tally

    def take(self, index: Index) -> LinearOperator:
        """Some of these rows."""
        chosen = index if self.chosen is None else self.chosen[index]
        part = LinearOperator(self.X, chosen, self.portions)
        part.common = self.common
        return part

    def certificate_seconds(self, support: int) -> float:
        """About how long Xw and Σ βᵢxᵢ take together."""
        pace = self.common.pace
        usual = max(pace.values(), default=self.portions.seconds_an_entry)
        return self.entries * sum(pace.get(kind, usual) for kind in ("values", "function"))

    def product(self, beta: Array) -> Array:
        return self.values(self.function(beta))

    def norm2(self, function: Array, values: Array | None = None) -> float:
        return float(function @ function)

    def inner(self, function: Array, other: Array) -> float:
        return float(function @ other)

    def inner_products(self, most: int) -> Array:
        """The matrix of inner products of these rows, a copy.

        They are kept, for up to ``most`` rows and for all parts of X.
        """
        if self.common.inner is None or self.common.inner.most != most:
            self.common.inner = InnerProducts(self.X, most)
        index = np.arange(len(self)) if self.chosen is None else self.chosen
        known = len(self.common.inner.known)
        found = self.common.inner.of(index, self.pause)
        fresh = max(len(self.common.inner.known) - known, 0) / max(len(self), 1)
        self.tally.pairs += min(fresh, 1.0) * self.pairs(True)
        return found

    def pairs(self, of_rows: bool) -> float:
        """Multiplications that XXᵀ takes, or XᵀX: squares of what columns, or rows, hold."""
        n, d = len(self), self.n_features
        if not self.sparse:
            return float(n) * d * (n if of_rows else d)
        begins = self.X.indptr
        if of_rows:
            # of all rows where some are chosen: their columns are alike
            held = np.bincount(self.X.indices[: begins[-1]], minlength=d) * (n / len(begins[1:]))
        elif self.chosen is None:
            held = np.diff(begins)
        else:
            held = begins[self.chosen + 1] - begins[self.chosen]
        return float(np.square(held, dtype=np.float64).sum())

    def batch(self) -> int:
        """How many rows make a short call of the core."""
        return max(1, int(self.portions.batch * len(self) / max(self.entries, 1)))

    def values(self, function: Array) -> Array:
        """Xw."""
        out = np.empty(len(self))
        self._share(
            lambda begin, end, _: self.matrix.dots(function, out, begin, end), name="values"
        )
        return out

    def function(self, beta: Array) -> Array:
        """Σ βᵢxᵢ; nothing is read of X where β is 0."""
        if not beta.any():
            return np.zeros(self.n_features)
        return self._gather(self.matrix.sum, beta, "function")

    def column_squares(self, weight: Array) -> Array:
        """Σ weightᵢ xᵢⱼ² for every column j."""
        return self._gather(self.matrix.column_squares, weight)

    def squares(self) -> Array:
        """‖x‖² for every row."""
        out = np.empty(len(self))
        self._share(lambda begin, end, _: self.matrix.squares(out, begin, end))
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
        step = self.batch() if self.sparse else max(1, self.portions.block // d)
        size = np.abs(weight)
        self.tally.pairs += self.pairs(False) * len(index) / max(len(self), 1)

        def part(starts: range, halted: Callable[[], bool]) -> Array:
            total = np.zeros((d, d))
            room = np.empty((0 if self.sparse else min(step, len(index)), d))
            for start in starts:
                if halted():
                    break
                self.pause()
                some = index[start : start + step]
                if self.sparse:
                    self.matrix.outer(some, size, total)
                    continue
                block = room[: len(some)]
                self.matrix.scaled(some, size, block)
                total += block.T @ block  # NumPy sees the symmetry
            return total

        halves = [range(k * step, len(index), 2 * step) for k in range(2)]
        workers = min(-(-len(index) // step), thread_count())
        first, second = share_out(part, halves, workers)
        return first + second

    def _gather(self, kind: Callable[..., None], weight: Array, name: str = "") -> Array:
        """A sum over rows, in parts that are added in order; each has an output of its own."""
        most = self.entries // (self.portions.entries_an_output * self.n_features)
        parts = max(1, min(self._parts(), most))
        outputs = [np.zeros(self.n_features) for _ in range(parts)]
        self._share(lambda begin, end, k: kind(weight, outputs[k], begin, end), parts, name)
        for other in outputs[1:]:
            outputs[0] += other
        return outputs[0]

    def _parts(self) -> int:
        return self.portions.parts if self.entries >= self.portions.shared else 1

    def _share(
        self, work: Callable[[int, int, int], None], parts: int | None = None, name: str = ""
    ) -> None:
        """Call ``work(begin, end, part)`` over all rows in short batches, parts in threads.

        A kind of product that has a name is timed.
        """
        self.tally.entries += self.entries
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

        # short products do not even ask for the threads there are
        share_out(part, range(parts), 1 if parts == 1 else min(parts, thread_count()))
        if name and self.entries >= self.portions.timed:
            self.common.pace[name] = (time.perf_counter() - started) / self.entries
