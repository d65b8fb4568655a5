"""The kernel matrix by rows: computed in blocks when first needed, kept within a budget."""

from __future__ import annotations

import time
from abc import abstractmethod

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
    step = operator.chunk_rows(len(j))
    for start in range(0, len(i), step):
        operator.pause()
        out[start : start + step] = kernel.between(points.take(i[start : start + step]), columns)
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
        """K[index][:, index] in the precision of the rows held."""
        self.require(index)
        out = np.empty((len(index), len(index)), dtype=self.rows.dtype)
        gather_block(self.rows, self.slots[index], index, out)
        return out

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
            accumulate_rows(self.rows, self.slots[part], delta[start : start + len(part)], out)


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
        step = self.chunk_rows(len(self))
        for start in range(0, len(missing), step):
            self.pause()
            part = missing[start : start + step]
            where = places[start : start + step]
            self.kernel.fill(self.points.take(part), self.points, self.rows, where)
            # only now: a fill that was interrupted holds no row
            self._holder[where] = part
            self.slots[part] = where
            self._last_use[where] = self._clock
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
        # long rows are worth computing only for the variables of a block that move
        missing = np.count_nonzero(self.slots[index] < 0)
        if missing * len(self) <= 4 * len(index) ** 2:
            return super().held_block(index)
        points = self.points.take(index)
        out = np.empty((len(index), len(index)), dtype=self.rows.dtype)
        step = self.chunk_rows(len(index))
        for start in range(0, len(index), step):
            self.pause()
            where = np.arange(start, min(start + step, len(index)))
            self.kernel.fill(points.take(where), points, out, where)
        return out

    def block(self, i: Index, j: Index) -> Array:
        return kernel_block(self, self.kernel, self.points, i, j)

    def product(self, beta: Array) -> Array:
        support = np.flatnonzero(beta)
        out = np.zeros(len(self))
        step = self.chunk_rows(len(self))
        for start in range(0, len(support), step):
            self.pause()
            part = support[start : start + step]
            out += self._timed_product(part, beta[part])
        return out

    def _timed_product(self, index: Index, coefficients: Array) -> Array:
        """Σ coefficients·K[index], which also shows how long a row takes."""
        started = time.perf_counter()
        out = self.kernel.product(self.points.take(index), self.points, coefficients)
        self._seconds_a_row = (time.perf_counter() - started) / len(index)
        return out

    def certificate_seconds(self, support: int) -> float:
        if self._seconds_a_row is None:
            few = np.arange(min(self.chunk_rows(len(self)), len(self)))
            self._timed_product(few, np.ones(len(few)))
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
