"""The kernel matrix by rows: computed in blocks when first needed, kept within a budget."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.blas import dsymv, ssymv

from .._core.gram import accumulate_rows, gather_block
from ..kernels.points import Points
from ..kernels.scalar import Kernel
from .base import SECONDS_AN_ENTRY, Operator

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: rows kept however small the budget: a step of SMO needs three at once
FEWEST_ROWS = 3
#: bytes for blocks and factors where the rows leave none of the budget
FACTOR_BYTES = 1 << 26


def kernel_block(operator: Operator, kernel: Kernel, points: Points, i: Index, j: Index) -> Array:
    """k(xᵢ, xⱼ) in float64, in the operator's chunks."""
    columns = points.take(j)
    out = np.empty((len(i), len(j)))

    def some(rows: slice) -> None:
        out[rows] = kernel.between(points.take(i[rows]), columns)

    shared = kernel.in_threads and out.size >= operator.shared_values
    operator.share(some, len(i), operator.chunk_rows(len(j)), shared)
    return out


class KernelOperator(Operator):
    """An n×n kernel matrix of which a solver sees rows.

    Attributes
    ----------
    rows : array (capacity, n)
        Rows held now; row i of K is ``rows[slots[i]]``.
    slots : int64 array (n,)
        Where row i is held, −1 where it is not.
    diagonal : array (n,)
        K's diagonal as the rows hold it: a core must see one matrix, or copies of a point
        seem to gain by passing weight to each other.
    """

    rows: NDArray[np.float32] | NDArray[np.float64]
    slots: Index
    diagonal: Array
    #: the memory of blocks
    _room: NDArray[np.float32] | NDArray[np.float64] = np.empty(0)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.diagonal), 1

    def certificate_seconds(self, support: int) -> float:
        return SECONDS_AN_ENTRY * support * len(self)

    @property
    def rounded(self) -> bool:  # type: ignore[override]
        return bool(self.rows.dtype == np.float32)

    @property
    def capacity(self) -> int:
        """How many rows can be held at once."""
        return int(self.rows.shape[0])

    @property
    def whole(self) -> bool:
        """Whether all rows fit."""
        return self.capacity >= len(self)

    @property
    def spare_bytes(self) -> float:
        """Bytes for blocks and factors beside the rows: what the budget leaves, or a few."""
        return FACTOR_BYTES

    @abstractmethod
    def require(self, index: Index) -> None:
        """Make sure that these rows (at most ``capacity``) are held."""

    @abstractmethod
    def block(self, i: Index, j: Index) -> Array:
        """K[i][:, j] in float64, from the data."""

    def held_block(self, index: Index) -> NDArray[np.float32] | NDArray[np.float64]:
        """K[index][:, index] in the precision of the rows held, until the next one is asked for."""
        self.require(index)
        out = self._room_for(len(index))
        slots = self.slots[index]

        def some(part: slice) -> None:
            gather_block(self.rows, slots[part], index, out[part])

        self.share(some, len(index), self.strip // 4, out.size >= self.shared_entries)
        return out

    def _room_for(self, size: int) -> NDArray[np.float32] | NDArray[np.float64]:
        """A matrix of this size to write to, always in one memory: to touch memory for the first
        time costs more than the values."""
        if len(self._room) < size * size:
            self._room = np.empty(int(1.5 * size * size), dtype=self.rows.dtype)
        return self._room[: size * size].reshape(size, size)

    def held_product(self, v: Array) -> Array:
        """Kv from the rows held, in their precision; symmetry halves the memory traffic."""
        if self.whole:
            self.require(np.arange(len(self)))
        if not self.whole or (np.diff(self.slots) != 1).any():
            out = np.zeros(len(self))
            support = np.flatnonzero(v)
            self.add_rows(support, v[support], out)
            return out
        symv = ssymv if self.rows.dtype == np.float32 else dsymv
        return symv(1.0, self.rows.T, v.astype(self.rows.dtype), lower=1).astype(np.float64)

    def add_rows(self, index: Index, delta: Array, out: Array) -> None:
        """out += Σ delta[r]·K[index[r]], through the rows held, in groups that fit."""
        for start in range(0, len(index), self.capacity):
            part = index[start : start + self.capacity]
            self.pause()
            self.require(part)
            self._accumulate(self.slots[part], delta[start : start + len(part)], out)

    def _accumulate(self, slots: Index, delta: Array, out: Array) -> None:
        """out += Σ delta[r]·rows[slots[r]], by columns."""

        def some(columns: slice) -> None:
            accumulate_rows(self.rows[:, columns], slots, delta, out[columns])

        shared = len(slots) * len(out) >= self.shared_entries
        self.share(some, len(out), 2 * self.strip if shared else len(out), shared)


class CachedKernel(KernelOperator):
    """Rows of k(xᵢ, xⱼ), computed in blocks and kept, least recently used out first.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    cache_size : float
        Megabytes for rows. Memory is touched only as rows are computed.
    dtype : float32 or float64
        How rows are stored, float64 where float32 would not tell them apart. Certificates
        and direct solves use float64 values from the data either way.
    """

    #: how often a row of cheap values is added to a sum before it is kept: half of the rows of an
    #: easy problem are needed once or twice
    uses_unheld: int = 2
    #: stripes of an exact product of points with each other: the fewest columns of one, and how
    #: many there are at most, each with sums of its own for all rows below it
    side: int = 256
    most_stripes: int = 32

    def __init__(
        self,
        kernel: Kernel,
        points: Points,
        cache_size: float = 2000.0,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.kernel = kernel
        self.points = points
        n = len(points)
        diagonal = kernel.diagonal(points)
        dtype = dtype if kernel.fits_single(points, diagonal) else np.float64
        self.diagonal = diagonal.astype(dtype).astype(np.float64)
        fits = int(cache_size * 2**20 / (n * np.dtype(dtype).itemsize))
        capacity = min(n, max(fits, FEWEST_ROWS))
        self.rows = np.empty((capacity, n), dtype=dtype)
        self.slots = np.full(n, -1, dtype=np.int64)
        self._holder = np.full(capacity, -1, dtype=np.int64)
        self._last_use = np.zeros(capacity, dtype=np.int64)
        self._budget = cache_size * 2**20
        self._clock = 0
        self._filled = 0
        #: of an exact product, once one was timed
        self._seconds_a_row: float | None = None
        self._cheap = kernel.cheap(points)
        #: how often each row was added to a sum
        self._uses = np.zeros(n, dtype=np.int64)
        #: kernel rows computed so far
        self.rows_computed = 0

    @property
    def spare_bytes(self) -> float:
        return max(self._budget - self.rows.nbytes, FACTOR_BYTES)

    def require(self, index: Index) -> None:
        self._clock += 1
        held = self.slots[index]
        self._last_use[held[held >= 0]] = self._clock
        missing = np.unique(index[held < 0])
        if len(missing) == 0:
            return
        # side by side in the order of their coming: rows spread over all places would touch
        # more memory than they fill
        places = self._places(len(missing))

        def some(rows: slice) -> None:
            part, where = missing[rows], places[rows]
            self.kernel.fill(self.points.take(part), self.points, self.rows, where)
            # only now: a fill that was interrupted holds no row
            self._holder[where] = part
            self.slots[part] = where
            self._last_use[where] = self._clock

        shared = self._shared(len(missing) * len(self))
        self.share(some, len(missing), self.chunk_rows(len(self)), shared)
        self.rows_computed += len(missing)

    def _places(self, count: int) -> Index:
        """Free places, then those used longest ago; their rows are given up."""
        in_use = self._last_use == self._clock
        if count > self.capacity - np.count_nonzero(in_use):
            raise ValueError(f"{count} rows do not fit a cache of {self.capacity} rows")
        fresh = min(count, self.capacity - self._filled)
        places = np.arange(self._filled, self._filled + fresh)
        if fresh < count:
            age = np.where(in_use, np.inf, self._last_use)
            age[self._filled :] = np.inf
            oldest = np.argsort(age, kind="stable")[: count - fresh]
            given_up = self._holder[oldest]
            self.slots[given_up[given_up >= 0]] = -1
            self._holder[oldest] = -1
            places = np.concatenate([places, oldest])
        self._filled += fresh
        return places

    def held_block(self, index: Index) -> NDArray[np.float32] | NDArray[np.float64]:
        # long rows are worth computing only for the variables of a block that move, and to gather
        # columns from them takes longer than to compute cheap values once more
        missing = np.count_nonzero(self.slots[index] < 0)
        if not self._cheap and missing * len(self) <= 4 * len(index) ** 2:
            return super().held_block(index)
        points = self.points.take(index)
        out = self._room_for(len(index))

        def some(rows: slice) -> None:
            where = np.arange(rows.start, rows.stop)
            self.kernel.fill(points.take(rows), points, out, where)

        self.share(some, len(index), self.chunk_rows(len(index)), self._shared(out.size))
        return out

    def _shared(self, values: int) -> bool:
        """Whether so many kernel values are worth threads."""
        return self.kernel.in_threads and values >= self.shared_values

    def block(self, i: Index, j: Index) -> Array:
        return kernel_block(self, self.kernel, self.points, i, j)

    def add_rows(self, index: Index, delta: Array, out: Array) -> None:
        # memory that is touched for the first time costs as much as several rows of cheap values,
        # and many rows are needed only when their variable goes to its bound, and perhaps back
        if self._cheap:
            self._uses[index] += 1
            once = (self.slots[index] < 0) & (self._uses[index] <= self.uses_unheld)
            unheld = self.points.take(index[once])
            self._add_sums(unheld, delta[once], self.points, out, self.rows.dtype)
            self.rows_computed += int(np.count_nonzero(once))
            index, delta = index[~once], delta[~once]
        super().add_rows(index, delta, out)

    def product(self, beta: Array) -> Array:
        support = np.flatnonzero(beta)
        out = np.zeros(len(self))
        if len(support) == 0:
            return out
        with self._timed(len(support)):
            every = len(support) == len(self)
            rows, weights = (self.points if every else self.points.take(support)), beta[support]
            if not self.kernel.symmetric:
                self._add_sums(rows, weights, self.points, out, np.float64)
                return out
            out[support] = self._own_sums(rows, weights)
            if not every:
                others = np.flatnonzero(beta == 0)
                there = np.zeros(len(others))
                self._add_sums(rows, weights, self.points.take(others), there, np.float64)
                out[others] = there
        return out

    @contextmanager
    def _timed(self, rows: int) -> Iterator[None]:
        """Note how long a row of an exact product takes."""
        started = time.perf_counter()
        yield
        self._seconds_a_row = (time.perf_counter() - started) / rows

    def _add_sums(
        self, rows: Points, weights: Array, columns: Points, out: Array, dtype: DTypeLike
    ) -> None:
        """out[j] += Σᵢ wᵢ k(xᵢ, zⱼ), of values computed in a precision and not kept."""
        strip = self.strip if self.kernel.in_threads else len(columns)
        step = self.chunk_rows(strip)
        parts = [slice(start, start + step) for start in range(0, len(rows), step)]
        chunks = [(rows.take(part), weights[part]) for part in parts]

        def some(strip: slice) -> None:
            for part, its_weights in chunks:
                self.pause()
                out[strip] += self.kernel.product(part, columns, its_weights, strip, dtype)

        self.share(some, len(columns), strip, self._shared(len(rows) * len(columns)))

    def _own_sums(self, points: Points, weights: Array) -> Array:
        """Σᵢ wᵢ k(xᵢ, xⱼ) for every one of the points: each value off the diagonal's blocks is
        computed once, for its row and its column."""
        n = len(points)
        stripes = min(max(n // self.side, 1), self.most_stripes)
        side = -(-n // stripes)
        step = self.chunk_rows(side)
        out = np.zeros(n)
        below = [np.zeros(max(n - start - side, 0)) for start in range(0, n, side)]

        def some(columns: slice) -> None:
            here, at_here = points.take(columns), weights[columns]
            for start in range(columns.start, columns.stop, step):
                self.pause()
                own = slice(start, min(start + step, columns.stop))
                out[columns] += self.kernel.product(points.take(own), here, weights[own])
            for start in range(columns.stop, n, step):
                self.pause()
                rows = slice(start, min(start + step, n))
                to_here, to_rows = self.kernel.both_products(
                    points.take(rows), here, weights[rows], at_here
                )
                out[columns] += to_here
                below[columns.start // side][start - columns.stop :][: len(to_rows)] = to_rows

        self.share(some, n, side, self._shared(n * n // 2))
        for k, sums in enumerate(below):
            out[(k + 1) * side :] += sums
        return out

    def certificate_seconds(self, support: int) -> float:
        if self._seconds_a_row is None:
            few = np.arange(min(self.chunk_rows(len(self)), len(self)))
            with self._timed(len(few)):  # by this thread, unwatched: whoever watches may ask
                self.kernel.product(self.points.take(few), self.points, np.ones(len(few)))
        assert self._seconds_a_row is not None
        return support * self._seconds_a_row


class HeldKernel(KernelOperator):
    """A kernel matrix held whole, from which everything is computed.

    Its certificates are those of the matrix as it is held: in float32 that is another matrix
    than the exact one, by rounding. Good enough to choose among models.
    """

    def __init__(self, matrix: NDArray[np.float32] | NDArray[np.float64]) -> None:
        self.rows = matrix if matrix.flags.c_contiguous else matrix.copy()
        self.slots = np.arange(len(matrix), dtype=np.int64)
        self.diagonal = np.diagonal(self.rows).astype(np.float64)

    def require(self, index: Index) -> None:
        pass

    def block(self, i: Index, j: Index) -> Array:
        if len(i) == len(j) == len(self):
            return self.rows.astype(np.float64)
        return np.asarray(self.rows[np.ix_(i, j)], dtype=np.float64)

    def product(self, beta: Array) -> Array:
        if not self.rounded:
            return np.asarray(self.rows @ beta)
        out = np.zeros(len(self))
        support = np.flatnonzero(beta)
        self.add_rows(support, beta[support], out)
        return out


class GivenKernel(HeldKernel):
    """A kernel matrix given whole.

    Parameters
    ----------
    matrix : array (n, n)
        Not copied where it is in float64 and C order.
    cache_size : float
        Megabytes for factors beside it.
    """

    def __init__(self, matrix: Array, cache_size: float = 2000.0) -> None:
        super().__init__(np.asarray(matrix, dtype=np.float64))
        self._budget = cache_size * 2**20

    @property
    def spare_bytes(self) -> float:
        return max(self._budget, FACTOR_BYTES)
