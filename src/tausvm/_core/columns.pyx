# distutils: language = c
"""Conjugate gradients on many columns at a time, without the interpreter's lock.

Column c is the dual of a squared loss without ε,

    min_β  ½ βᵀKβ − yᵀβ + ½ Σ (rise_c if βᵢ > 0 else fall_c) βᵢ² / weightᵢ    [Σβ = 0 if b is free]

A column is a row of float32 matrices of shape (columns, n). The ``live`` ones, which the passes
work on, are the first rows; ``order`` tells which column a row is of.
"""
from libc.math cimport fabs, isfinite
from libc.string cimport memcpy
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check, check_places
from .lapack cimport factorise_single, multiply, solve_single

cdef extern from "columns.h" nogil:
    void column_pull(const float*, const float*, const float*, float, float, float, int64_t,
                     double*, double*)
    void column_gap(const float*, const float*, const float*, const float*, float, float, float,
                    int64_t, float*, double*, double*)
    double column_dot(const float*, const float*, int64_t)
    void column_descent(const float*, const float*, float*, int64_t, double*, double*)
    void column_turn(float*, const float*, float, int64_t)
    void column_slope(const float*, const float*, const float*, float, float, float, int64_t,
                      double*, double*)
    void column_add(float*, const float*, float, int64_t)

#: Newton steps on one variable end at this share of the first slope
cdef double ENOUGH = 1e-3
cdef int MOST_STEPS = 20

#: the numbers of a column, rows of a table
cdef enum:
    RISE, FALL, ALLOWED, OFFSET, GAP, PRIMAL, DESCENT, LENGTH, FLAT_SUM, NUMBERS
#: and its vectors
cdef enum:
    BETA, FITTED, GRADIENT, PREVIOUS, DIRECTION, PRODUCT, Z, FLAT, VECTORS


cdef class Inverse:
    """An approximation of (K + ridge)⁻¹ for the ridges of the columns."""

    cdef int n, count

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        """out ← the product with a row of vectors for each of the columns ``order[:live]``."""
        pass


cdef class LowRankInverse(Inverse):
    """(U Λ Uᵀ + ridge)⁻¹ for UᵀU = I.

    Parameters
    ----------
    vectors : float32 array (n, rank)
        U.
    shrink : float32 array (columns, rank)
        Λ / (Λ + ridge).
    scale : float32 array (columns,)
        1 / ridge.
    """

    cdef const float[:, ::1] vectors, shrink
    cdef const float[::1] scale
    cdef float[:, ::1] coordinates

    def __init__(self, const float[:, ::1] vectors, const float[:, ::1] shrink,
                 const float[::1] scale):
        check(shrink.shape[0] == scale.shape[0] and shrink.shape[1] == vectors.shape[1],
              "shrink must have a number for each column and each vector")
        self.n, self.count = vectors.shape[0], scale.shape[0]
        self.vectors, self.shrink, self.scale = vectors, shrink, scale
        self.coordinates = np.empty_like(shrink)

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        cdef int c, k, n = self.n, rank = self.shrink.shape[1]
        if rank > 0:
            multiply(False, rank, live, n, 1, &self.vectors[0, 0], vectors, 0,
                     &self.coordinates[0, 0])
            for c in range(live):
                for k in range(rank):
                    self.coordinates[c, k] *= self.shrink[order[c], k]
        memcpy(out, vectors, <size_t>live * n * sizeof(float))
        if rank > 0:
            multiply(True, n, live, rank, -1, &self.vectors[0, 0], &self.coordinates[0, 0], 1, out)
        for c in range(live):
            for k in range(n):
                out[<int64_t>c * n + k] *= self.scale[order[c]]


cdef class FactorInverse(Inverse):
    """(K + ridge)⁻¹ for groups of columns with similar ridges, by Cholesky factors in float32.

    Parameters
    ----------
    matrix : float32 array (n, n)
        K.
    ridges : array (groups,)
    group : int64 array (columns,)
        To which a column belongs; those that are not asked for may have any number.
    """

    cdef float[:, :, ::1] factors
    cdef float[:, ::1] gathered
    cdef int64_t[::1] group
    #: whether rounding has left a matrix its definiteness
    cdef readonly bint definite

    def __init__(self, const float[:, ::1] matrix, const double[::1] ridges, int64_t[::1] group):
        cdef Py_ssize_t g, k, n = matrix.shape[0]
        check(n > 0 and matrix.shape[1] == n, "matrix must be square")
        self.n, self.count = n, group.shape[0]
        self.group = group
        self.definite = True
        self.factors = np.empty((ridges.shape[0], n, n), dtype=np.float32)
        self.gathered = np.empty((group.shape[0], n), dtype=np.float32)
        with nogil:
            for g in range(ridges.shape[0]):
                memcpy(&self.factors[g, 0, 0], &matrix[0, 0], n * n * sizeof(float))
                for k in range(n):
                    self.factors[g, k, k] += <float>ridges[g]
                if factorise_single(&self.factors[g, 0, 0], n) != 0:
                    self.definite = False
                    break

    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil:
        cdef int64_t g, n = self.n
        cdef int c, count
        for g in range(self.factors.shape[0]):
            count = 0
            for c in range(live):
                if self.group[order[c]] == g:
                    memcpy(&self.gathered[count, 0], vectors + c * n, n * sizeof(float))
                    count += 1
            if count == 0:
                continue
            solve_single(&self.factors[g, 0, 0], n, &self.gathered[0, 0], count)
            count = 0
            for c in range(live):
                if self.group[order[c]] == g:
                    memcpy(out + c * n, &self.gathered[count, 0], n * sizeof(float))
                    count += 1


cdef class Columns:
    """The columns of one matrix.

    Parameters
    ----------
    matrix : float32 array (n, n)
        K.
    y, weight : float32 arrays (n,)
    ridges : array (columns, 2)
        Rise and fall at a weight of 1.
    allowed : array (columns,)
    share : float
        A column is done at a duality gap of ``allowed`` and of ``share`` times its primal
        objective.
    offset : bool

    Attributes
    ----------
    beta, fitted : float32 arrays (columns, n)
        ``fitted`` is Kβ: where β does not begin at 0, both are the caller's to fill.
    """

    cdef const float[:, ::1] matrix
    cdef const float[::1] y, weight
    cdef float[:, :, ::1] vectors
    cdef double[:, ::1] numbers
    cdef int64_t[::1] orders
    cdef bint offset
    cdef double share
    cdef readonly int64_t live
    cdef readonly object order, beta, fitted
    cdef readonly object intercept, gap, primal

    def __init__(self, const float[:, ::1] matrix, const float[::1] y, const float[::1] weight,
                 const double[:, ::1] ridges, const double[::1] allowed, double share, bint offset):
        cdef Py_ssize_t n = y.shape[0], count = ridges.shape[0]
        check(matrix.shape[0] == n and matrix.shape[1] == n, "matrix must have a row for each y")
        check(weight.shape[0] == n, "weight must have a number for each y")
        check(ridges.shape[1] == 2 and allowed.shape[0] == count,
              "ridges and allowed must have a row for each column")
        self.matrix, self.y, self.weight = matrix, y, weight
        self.offset, self.share = offset, share
        self.live = count
        vectors = np.zeros((VECTORS, count, n), dtype=np.float32)
        numbers = np.ones((NUMBERS, count))
        numbers[RISE], numbers[FALL] = np.transpose(ridges)
        numbers[ALLOWED], numbers[OFFSET] = allowed, 0.0
        self.order = np.arange(count, dtype=np.int64)
        self.vectors, self.numbers, self.orders = vectors, numbers, self.order
        self.beta, self.fitted = vectors[BETA], vectors[FITTED]
        self.intercept, self.gap, self.primal = numbers[OFFSET], numbers[GAP], numbers[PRIMAL]

    def select(self, const int64_t[::1] columns):
        """Bring these columns to the front."""
        cdef Py_ssize_t k, row, count = self.orders.shape[0]
        check_places(columns, count, "columns must be numbers of columns")
        check(len(np.unique(columns)) == columns.shape[0], "columns must be different ones")
        for k in range(columns.shape[0]):
            row = k
            while self.orders[row] != columns[k]:
                row += 1
                check(row < count, "columns must be different ones")
            self.swap(k, row)
        self.live = columns.shape[0]

    cdef void swap(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Exchange two rows."""
        cdef Py_ssize_t v, k
        cdef float kept
        cdef double number
        cdef int64_t order = self.orders[i]
        if i == j:
            return
        self.orders[i] = self.orders[j]
        self.orders[j] = order
        for v in range(NUMBERS):
            number = self.numbers[v, i]
            self.numbers[v, i] = self.numbers[v, j]
            self.numbers[v, j] = number
        for v in range(VECTORS):
            for k in range(self.y.shape[0]):
                kept = self.vectors[v, i, k]
                self.vectors[v, i, k] = self.vectors[v, j, k]
                self.vectors[v, j, k] = kept

    def begin(self, const int64_t[::1] columns, Inverse inverse):
        """Work on these columns from now on, with another inverse."""
        cdef Py_ssize_t c, k, n = self.y.shape[0]
        cdef double total
        self.select(columns)
        if n == 0:
            self.live = 0
        self.check_inverse(inverse)
        with nogil:
            for c in range(self.live):
                self.numbers[DESCENT, c] = 0
                for k in range(n):
                    self.vectors[Z, c, k] = 1
            if self.offset and self.live > 0:
                inverse.times(&self.orders[0], <int>self.live, &self.vectors[Z, 0, 0],
                              &self.vectors[FLAT, 0, 0])
                for c in range(self.live):
                    total = 0
                    for k in range(n):
                        total += self.vectors[FLAT, c, k]
                    self.numbers[FLAT_SUM, c] = total
            self.assess()

    def run(self, Inverse inverse, int64_t steps):
        """Up to so many steps of the columns that are not done."""
        cdef int64_t step
        cdef int n = <int>self.y.shape[0]
        self.check_inverse(inverse)
        with nogil:
            for step in range(steps):
                if self.live == 0:
                    break
                inverse.times(&self.orders[0], <int>self.live, &self.vectors[GRADIENT, 0, 0],
                              &self.vectors[Z, 0, 0])
                self.turn()
                multiply(False, n, <int>self.live, n, 1, &self.matrix[0, 0],
                         &self.vectors[DIRECTION, 0, 0], 0, &self.vectors[PRODUCT, 0, 0])
                self.advance()
                self.assess()

    def check_inverse(self, Inverse inverse):
        """Whether an inverse is of these columns."""
        check(inverse.n == self.y.shape[0] and inverse.count == self.orders.shape[0],
              "inverse must be of these columns")

    cdef void assess(self) noexcept nogil:
        """Offsets that minimise the primal, the dual's gradient, the gap and the primal objective.

        Columns that are done, or that rounding leaves no descent, are moved behind the live ones.
        """
        cdef Py_ssize_t c, n = self.y.shape[0]
        for c in range(self.live):
            if self.offset:
                self.settle(c)
            column_gap(&self.y[0], &self.vectors[FITTED, c, 0], &self.weight[0],
                       &self.vectors[BETA, c, 0], <float>self.numbers[OFFSET, c],
                       <float>self.numbers[RISE, c], <float>self.numbers[FALL, c], n,
                       &self.vectors[GRADIENT, c, 0], &self.numbers[GAP, c],
                       &self.numbers[PRIMAL, c])
        for c in range(self.live - 1, -1, -1):
            if self.is_done(c):
                self.live -= 1
                self.swap(c, self.live)

    cdef bint is_done(self, Py_ssize_t c) noexcept nogil:
        cdef double gap = self.numbers[GAP, c]
        if not isfinite(gap) or self.numbers[LENGTH, c] == 0:
            return True
        return gap <= min(self.numbers[ALLOWED, c], self.share * self.numbers[PRIMAL, c])

    cdef void settle(self, Py_ssize_t c) noexcept nogil:
        """The offset of a column, by Newton steps from where it was."""
        cdef double pull, bend, first = 0
        cdef int step
        for step in range(MOST_STEPS):
            column_pull(&self.y[0], &self.vectors[FITTED, c, 0], &self.weight[0],
                        <float>self.numbers[OFFSET, c], <float>self.numbers[RISE, c],
                        <float>self.numbers[FALL, c], self.y.shape[0], &pull, &bend)
            self.numbers[OFFSET, c] += pull / bend
            if step == 0:
                first = fabs(pull)
            if fabs(pull) <= ENOUGH * first:
                break

    cdef void turn(self) noexcept nogil:
        """New directions from ``z``, by the rule of Polak and Ribière.

        A multiple of ``flat`` keeps their sum at 0 where b is free.
        """
        cdef Py_ssize_t c, n = self.y.shape[0]
        cdef double shift, now, before, keep
        for c in range(self.live):
            if self.offset:
                shift = column_dot(&self.vectors[GRADIENT, c, 0], &self.vectors[FLAT, c, 0], n)
                shift /= self.numbers[FLAT_SUM, c]
                column_add(&self.vectors[Z, c, 0], &self.vectors[FLAT, c, 0], <float>(-shift), n)
            column_descent(&self.vectors[Z, c, 0], &self.vectors[GRADIENT, c, 0],
                           &self.vectors[PREVIOUS, c, 0], n, &now, &before)
            keep = 0
            if self.numbers[DESCENT, c] > 0 and now > before:
                keep = (now - before) / self.numbers[DESCENT, c]
            self.numbers[DESCENT, c] = now
            column_turn(&self.vectors[DIRECTION, c, 0], &self.vectors[Z, c, 0], <float>keep, n)

    cdef void advance(self) noexcept nogil:
        """To the minimum of the dual along the directions, whose products with K are there."""
        cdef Py_ssize_t c, n = self.y.shape[0]
        cdef double t
        for c in range(self.live):
            t = self.length(c)
            self.numbers[LENGTH, c] = t
            column_add(&self.vectors[BETA, c, 0], &self.vectors[DIRECTION, c, 0], <float>t, n)
            column_add(&self.vectors[FITTED, c, 0], &self.vectors[PRODUCT, c, 0], <float>t, n)

    cdef double length(self, Py_ssize_t c) noexcept nogil:
        """The step of a column, 0 where rounding leaves no descent."""
        cdef Py_ssize_t n = self.y.shape[0]
        cdef float rise = <float>self.numbers[RISE, c], fall = <float>self.numbers[FALL, c]
        cdef float* beta = &self.vectors[BETA, c, 0]
        cdef float* direction = &self.vectors[DIRECTION, c, 0]
        cdef double curvature, linear, slope, bend, first, here, t
        cdef int step
        curvature = column_dot(direction, &self.vectors[PRODUCT, c, 0], n)
        column_slope(beta, direction, &self.weight[0], 0, rise, fall, n, &slope, &bend)
        first = column_dot(&self.vectors[GRADIENT, c, 0], direction, n)
        if not (first < 0 and curvature + bend > 0):
            return 0
        linear = first - slope
        t = -first / (curvature + bend)
        for step in range(MOST_STEPS):
            column_slope(beta, direction, &self.weight[0], <float>t, rise, fall, n, &slope, &bend)
            here = linear + t * curvature + slope
            if fabs(here) <= -ENOUGH * first:
                break
            t -= here / (curvature + bend)
        return max(t, 0.0)
