# distutils: language = c
"""The passes between the matrix products of conjugate gradients on many columns.

Column c is the dual of a squared loss without ε,

    min_β  ½ βᵀKβ − yᵀβ + ½ Σ (rise_c if βᵢ > 0 else fall_c) βᵢ² / weightᵢ    [Σβ = 0 if b is free]

All arrays of a column are rows of float32 matrices of shape (columns, n).
"""
from libc.math cimport fabs

include "checks.pxi"

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
cdef str UNEQUAL = "all arrays must have a row for each column of the problem, n numbers long"


cdef int check_shapes(Py_ssize_t count, Py_ssize_t n, const float[:, ::1] a, const float[:, ::1] b,
                      const float[:, ::1] c) except -1:
    return check(a.shape[0] == count and a.shape[1] == n and b.shape[0] == count
                 and b.shape[1] == n and c.shape[0] == count and c.shape[1] == n, UNEQUAL)


def assess(const float[::1] y, const float[::1] weight, const double[:, ::1] ridges,
           const float[:, ::1] beta, const float[:, ::1] fitted, bint offset, double[::1] b,
           float[:, ::1] gradient, double[::1] gap, double[::1] primal):
    """Offsets that minimise the primal, the dual's gradient, the gap and the primal objective.

    ``ridges`` is (columns, 2): rise and fall. ``b`` is where the search for offsets begins.
    """
    cdef Py_ssize_t c, n = y.shape[0], count = beta.shape[0]
    cdef double pull, bend, first
    cdef int step
    if count == 0 or n == 0:
        return
    check_shapes(count, n, beta, fitted, gradient)
    check(weight.shape[0] == n and ridges.shape[0] == count and ridges.shape[1] == 2
          and b.shape[0] == count and gap.shape[0] == count and primal.shape[0] == count, UNEQUAL)
    with nogil:
        for c in range(count):
            if offset:
                first = 0
                for step in range(MOST_STEPS):
                    column_pull(&y[0], &fitted[c, 0], &weight[0], <float>b[c],
                                <float>ridges[c, 0], <float>ridges[c, 1], n, &pull, &bend)
                    b[c] += pull / bend
                    if step == 0:
                        first = fabs(pull)
                    if fabs(pull) <= ENOUGH * first:
                        break
            column_gap(&y[0], &fitted[c, 0], &weight[0], &beta[c, 0], <float>b[c],
                       <float>ridges[c, 0], <float>ridges[c, 1], n, &gradient[c, 0], &gap[c],
                       &primal[c])


def turn(const float[:, ::1] gradient, float[:, ::1] previous, float[:, :] z,
         const float[:, ::1] flat, const double[::1] flat_sum, bint offset, bint first,
         double[::1] descent, float[:, ::1] direction):
    """New directions, by the rule of Polak and Ribière.

    ``z`` is the preconditioned gradient, ``flat`` the preconditioned vector of ones with its
    sum: a multiple of it keeps Σ direction = 0. ``descent`` is gradientᵀz of the step before
    and becomes that of this one.
    """
    cdef Py_ssize_t c, n = gradient.shape[1], count = gradient.shape[0]
    cdef double shift, now, before, keep
    if count == 0 or n == 0:
        return
    check_shapes(count, n, gradient, previous, direction)
    check(z.shape[0] == count and z.shape[1] == n and z.strides[1] == sizeof(float)
          and descent.shape[0] == count, UNEQUAL)
    check(not offset or (flat.shape[0] == count and flat.shape[1] == n
                         and flat_sum.shape[0] == count), UNEQUAL)
    with nogil:
        for c in range(count):
            if offset:
                shift = column_dot(&gradient[c, 0], &flat[c, 0], n) / flat_sum[c]
                column_add(&z[c, 0], &flat[c, 0], <float>(-shift), n)
            column_descent(&z[c, 0], &gradient[c, 0], &previous[c, 0], n, &now, &before)
            keep = 0
            if not first and descent[c] > 0 and now > before:
                keep = (now - before) / descent[c]
            descent[c] = now
            column_turn(&direction[c, 0], &z[c, 0], <float>keep, n)


def advance(const float[::1] y, const float[::1] weight, const double[:, ::1] ridges,
            const float[:, ::1] gradient, const float[:, ::1] direction,
            const float[:, ::1] product, float[:, ::1] beta, float[:, ::1] fitted,
            double[::1] length):
    """To the minimum of the dual along the directions; ``product`` is K·direction.

    ``length`` is the step taken, 0 where rounding leaves no descent.
    """
    cdef Py_ssize_t c, n = y.shape[0], count = beta.shape[0]
    cdef double curvature, linear, slope, bend, first, here, t
    cdef float rise, fall
    cdef int step
    if count == 0 or n == 0:
        return
    check_shapes(count, n, beta, fitted, gradient)
    check_shapes(count, n, direction, product, beta)
    check(weight.shape[0] == n and ridges.shape[0] == count and ridges.shape[1] == 2
          and length.shape[0] == count, UNEQUAL)
    with nogil:
        for c in range(count):
            rise = <float>ridges[c, 0]
            fall = <float>ridges[c, 1]
            curvature = column_dot(&direction[c, 0], &product[c, 0], n)
            column_slope(&beta[c, 0], &direction[c, 0], &weight[0], 0, rise, fall, n, &slope,
                         &bend)
            first = column_dot(&gradient[c, 0], &direction[c, 0], n)
            linear = first - slope
            t = 0
            if first < 0 and curvature + bend > 0:
                t = -first / (curvature + bend)
                for step in range(MOST_STEPS):
                    column_slope(&beta[c, 0], &direction[c, 0], &weight[0], <float>t, rise,
                                 fall, n, &slope, &bend)
                    here = linear + t * curvature + slope
                    if fabs(here) <= -ENOUGH * first:
                        break
                    t -= here / (curvature + bend)
                if t < 0:
                    t = 0
            length[c] = t
            column_add(&beta[c, 0], &direction[c, 0], <float>t, n)
            column_add(&fitted[c, 0], &product[c, 0], <float>t, n)
