# distutils: language = c
"""Approximations of (K + ridge)⁻¹ for many ridges, to precondition conjugate gradients with.

Columns are problems with a ridge of their own each, see ``columns``; a vector of theirs is a row.
"""
from libc.math cimport fabs, isfinite
from libc.string cimport memcpy
import numpy as np

from libc.stdint cimport int64_t
from .lapack cimport eigen, eigen_size, factorise_at, multiply, solve_at, solve_right, square

#: what is added to the diagonal of the landmarks' matrix, as a share of its largest entry, against
#: the rounding of float32; a hundred times more as often as that is not enough, up to the second
cdef double FLOOR = 1e-5, HIGHEST_FLOOR = 1.0
#: eigenvalues below this share of the largest one are rounding
cdef float SMALLEST = 1e-6
#: numbers between two columns of a factor
cdef int PADDING = 24


cdef class Inverse:
    """An approximation of (K + ridge)⁻¹ for the ridges of columns."""

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        """out ← the product with a row of vectors for each of the columns ``order[:live]``."""
        pass


cdef class LowRankInverse(Inverse):
    """(HᵀH + ridge)⁻¹ with K ≈ HᵀH, Nyström's approximation from landmarks among the rows.

    H Hᵀ = B Λ Bᵀ is small, and

        (HᵀH + ridge)⁻¹ = (1 − Hᵀ B (Λ + ridge)⁻¹ Bᵀ H) / ridge

    Parameters
    ----------
    n, rank : int
        Samples and landmarks, which are spread evenly over them.
    count : int
        Columns.
    """

    def __init__(self, int n, int rank, int64_t count):
        self.n, self.rank = n, rank
        self.half = np.empty((rank, n), dtype=np.float32)
        self.basis = np.empty((rank, rank), dtype=np.float32)
        self.core = np.empty((rank, rank))
        self.values = np.empty(rank, dtype=np.float32)
        self.weights, self.coordinates, self.turned = np.empty((3, count, rank), dtype=np.float32)
        self.scale = np.empty(count, dtype=np.float32)
        self.work = np.empty(eigen_size(rank), dtype=np.float32)
        self.integers = np.empty(eigen_size(rank), dtype=np.intc)

    cdef void of(self, const float* rows) noexcept nogil:
        """Take K, whose rows are given; without any landmarks where rounding leaves none of it."""
        cdef double floor = FLOOR
        while floor <= HIGHEST_FLOOR:
            if self.with_floor(rows, floor):
                square(&self.half[0, 0], self.n, self.rank, &self.basis[0, 0])
                if eigen(&self.basis[0, 0], self.rank, &self.values[0], &self.work[0],
                         &self.integers[0]) == 0 and isfinite(self.values[self.rank - 1]):
                    return
            floor *= 100
        self.rank = 0

    cdef bint with_floor(self, const float* rows, double floor) noexcept nogil:
        """H = L⁻¹ K[landmarks] with L the factor of K[landmarks, landmarks], if it has one."""
        cdef int64_t i, j, row, n = self.n, step = max(self.rank - 1, 1)
        cdef double largest = 0
        for i in range(self.rank):
            row = i * (n - 1) // step
            memcpy(&self.half[i, 0], rows + row * n, n * sizeof(float))
            for j in range(self.rank):
                self.core[i, j] = rows[row * n + j * (n - 1) // step]
                largest = max(largest, fabs(self.core[i, j]))
        for i in range(self.rank):
            self.core[i, i] += floor * (largest if largest > 0 else 1.0)
        if factorise_at(&self.core[0, 0], self.rank, self.rank) != 0:
            return False
        for i in range(self.rank):
            for j in range(self.rank):
                self.basis[i, j] = <float>self.core[i, j]
        solve_right(&self.basis[0, 0], self.rank, &self.half[0, 0], self.n)
        return True

    cdef void serve(self, const double* ridges, int64_t count) noexcept nogil:
        """The ridges of the columns."""
        cdef int64_t c, k
        cdef float least = SMALLEST * self.values[self.rank - 1] if self.rank > 0 else 0
        for c in range(count):
            self.scale[c] = <float>(1 / ridges[c])
            for k in range(self.rank):
                self.weights[c, k] = (<float>(1 / (ridges[c] + self.values[k]))
                                      if self.values[k] > least else 0)

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        cdef int c, k, n = self.n, rank = self.rank
        memcpy(out, vectors, <size_t>live * n * sizeof(float))
        if rank > 0:
            multiply(True, rank, live, n, 1, &self.half[0, 0], vectors, 0, &self.coordinates[0, 0])
            multiply(True, rank, live, rank, 1, &self.basis[0, 0], &self.coordinates[0, 0], 0,
                     &self.turned[0, 0])
            for c in range(live):
                for k in range(rank):
                    self.turned[c, k] *= self.weights[order[c], k]
            multiply(False, rank, live, rank, 1, &self.basis[0, 0], &self.turned[0, 0], 0,
                     &self.coordinates[0, 0])
            multiply(False, n, live, rank, -1, &self.half[0, 0], &self.coordinates[0, 0], 1, out)
        for c in range(live):
            for k in range(n):
                out[<int64_t>c * n + k] *= self.scale[order[c]]


cdef class FactorInverse(Inverse):
    """(K + ridge)⁻¹ for groups of columns with similar ridges, by Cholesky factors in float32.

    Parameters
    ----------
    n : int
    most : int
        Groups at most.
    count : int
        Columns.
    """

    def __init__(self, int n, int64_t most, int64_t count):
        self.n = n
        # columns that lie a power of two apart would meet in the processor's cache
        self.stride = n + PADDING
        self.factors = np.empty((most, n, self.stride), dtype=np.float32)
        self.gathered = np.empty((count, n), dtype=np.float32)
        #: to which a column belongs
        self.group = np.zeros(count, dtype=np.int64)
        self.groups = 0

    cdef bint add(self, const float* rows, double ridge) noexcept nogil:
        """The factor of one more group; whether rounding leaves K + ridge its definiteness."""
        cdef int64_t k, n = self.n, g = self.groups
        for k in range(n):
            memcpy(&self.factors[g, k, 0], rows + k * n, n * sizeof(float))
            self.factors[g, k, k] += <float>ridge
        self.groups += 1
        return factorise_at(&self.factors[g, 0, 0], self.n, self.stride) == 0

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        cdef int64_t g, n = self.n
        cdef int c, count
        for g in range(self.groups):
            count = 0
            for c in range(live):
                if self.group[order[c]] == g:
                    memcpy(&self.gathered[count, 0], vectors + c * n, n * sizeof(float))
                    count += 1
            if count == 0:
                continue
            solve_at(&self.factors[g, 0, 0], self.n, self.stride, &self.gathered[0, 0], count)
            count = 0
            for c in range(live):
                if self.group[order[c]] == g:
                    memcpy(out + c * n, &self.gathered[count, 0], n * sizeof(float))
                    count += 1
