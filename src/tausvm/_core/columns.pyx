# distutils: language = c
"""The passes between the matrix products of conjugate gradients on many columns.

Column c is the dual of a squared loss without ε,

    min_β  ½ βᵀKβ − yᵀβ + ½ Σ (rise_c if βᵢ > 0 else fall_c) βᵢ² / weightᵢ    [Σβ = 0 if b is free]

A column is a row of float32 matrices of shape (columns, n). The ``live`` ones, which the passes
work on, are the first rows; ``order`` tells which column a row is of.
"""
from libc.math cimport fabs, isfinite
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check, check_places

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


cdef class Columns:
    """The columns of one matrix.

    Parameters
    ----------
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
    beta, fitted, gradient, direction, product, z, flat : float32 arrays (columns, n)
        ``fitted`` is Kβ, ``product`` K·direction, ``z`` the preconditioned gradient and ``flat``
        the preconditioned vector of ones: these four are the caller's to fill.
    """

    cdef const float[::1] y, weight
    cdef float[:, :, ::1] vectors
    cdef double[:, ::1] numbers
    cdef int64_t[::1] orders
    cdef bint offset
    cdef double share
    cdef readonly int64_t live
    cdef readonly object order, beta, fitted, gradient, direction, product, z, flat
    cdef readonly object intercept, gap, primal

    def __init__(self, const float[::1] y, const float[::1] weight, const double[:, ::1] ridges,
                 const double[::1] allowed, double share, bint offset):
        cdef Py_ssize_t n = y.shape[0], count = ridges.shape[0]
        check(weight.shape[0] == n, "weight must have a number for each y")
        check(ridges.shape[1] == 2 and allowed.shape[0] == count,
              "ridges and allowed must have a row for each column")
        self.y, self.weight = y, weight
        self.offset, self.share = offset, share
        self.live = count
        vectors = np.zeros((VECTORS, count, n), dtype=np.float32)
        numbers = np.ones((NUMBERS, count))
        numbers[RISE], numbers[FALL] = np.transpose(ridges)
        numbers[ALLOWED], numbers[OFFSET] = allowed, 0.0
        self.order = np.arange(count, dtype=np.int64)
        self.vectors, self.numbers, self.orders = vectors, numbers, self.order
        self.beta, self.fitted, self.gradient = vectors[BETA], vectors[FITTED], vectors[GRADIENT]
        self.direction, self.product = vectors[DIRECTION], vectors[PRODUCT]
        self.z, self.flat = vectors[Z], vectors[FLAT]
        self.intercept, self.gap, self.primal = numbers[OFFSET], numbers[GAP], numbers[PRIMAL]

    def select(self, const int64_t[::1] columns):
        """Work on these columns from now on."""
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

    def flatten(self):
        """Take the sums of ``flat``, and restart the directions."""
        cdef Py_ssize_t c, k
        cdef double total
        for c in range(self.live):
            total = 0
            for k in range(self.y.shape[0]):
                total += self.vectors[FLAT, c, k]
            self.numbers[FLAT_SUM, c] = total
            self.numbers[DESCENT, c] = 0

    def assess(self):
        """Offsets that minimise the primal, the dual's gradient, the gap and the primal objective.

        Columns that are done, or that rounding leaves no descent, are moved behind the live ones.
        """
        cdef Py_ssize_t c, n = self.y.shape[0]
        if n == 0:
            self.live = 0
        with nogil:
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

    def turn(self):
        """New directions from ``z``, by the rule of Polak and Ribière.

        A multiple of ``flat`` keeps their sum at 0 where b is free.
        """
        cdef Py_ssize_t c, n = self.y.shape[0]
        cdef double shift, now, before, keep
        with nogil:
            for c in range(self.live):
                if self.offset:
                    shift = column_dot(&self.vectors[GRADIENT, c, 0], &self.vectors[FLAT, c, 0], n)
                    shift /= self.numbers[FLAT_SUM, c]
                    column_add(&self.vectors[Z, c, 0], &self.vectors[FLAT, c, 0], <float>(-shift),
                               n)
                column_descent(&self.vectors[Z, c, 0], &self.vectors[GRADIENT, c, 0],
                               &self.vectors[PREVIOUS, c, 0], n, &now, &before)
                keep = 0
                if self.numbers[DESCENT, c] > 0 and now > before:
                    keep = (now - before) / self.numbers[DESCENT, c]
                self.numbers[DESCENT, c] = now
                column_turn(&self.vectors[DIRECTION, c, 0], &self.vectors[Z, c, 0], <float>keep, n)

    def advance(self):
        """To the minimum of the dual along the directions, whose products with K are there."""
        cdef Py_ssize_t c, n = self.y.shape[0]
        cdef double t
        with nogil:
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
