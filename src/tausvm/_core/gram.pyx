# distutils: language = c
"""Kernel rows and sums of kernel rows: the memory-bound part of every solver."""
cimport cython
from libc.stdint cimport int64_t

from .checks cimport check, check_places

cdef extern from "loops.h" nogil:
    # in the precision of the pointers whose type is not named
    void distance_rows(bint, const void*, int64_t, const void*, int64_t, int64_t, int64_t, double,
                       void*, int64_t, const int64_t*)
    void distance_sums(bint, const void*, int64_t, const void*, int64_t, int64_t, int64_t, double,
                       const double*, double*, const double*, double*)
    void rbf_of_products(const double*, const double*, double, int64_t, double, void*)
    void accumulate(const void*, int64_t, const int64_t*, const double*, int64_t, int64_t, double*)

ctypedef fused real:
    float
    double


def distance_kernel(const real[:, ::1] features, const real[:, ::1] points, double gamma,
                    bint squared, real[:, :] out, const int64_t[::1] places):
    """out[places[i], j] = exp(-gamma * d(points[i], j)): d the squared Euclidean distance,
    or the city-block distance where not ``squared``. ``features`` is (d, n), one row a
    feature, ``points`` is (m, d); the rows of ``out`` are contiguous."""
    cdef Py_ssize_t n = features.shape[1], d = features.shape[0], count = points.shape[0]
    if count == 0 or n == 0:
        return
    check(points.shape[1] == d, "points must have as many features as the columns")
    check(out.shape[1] >= n and out.strides[1] == sizeof(real), "rows of out must hold n numbers")
    check(places.shape[0] == count, "places must have an entry for each point")
    check_places(places, out.shape[0], "places must name rows of out")
    cdef Py_ssize_t stride = out.strides[0] // sizeof(real)
    with nogil:
        distance_rows(squared, &features[0, 0], n, &points[0, 0], count, d, n, gamma, &out[0, 0],
                      stride, &places[0])


def distance_product(const real[:, :] features, const real[:, ::1] points, double gamma,
                     bint squared, const double[::1] beta, double[::1] out,
                     const double[::1] at=None, double[::1] back=None):
    """out[j] += sum over i of beta[i] * exp(-gamma * d(points[i], j)); no row is stored.
    The rows of ``features`` are contiguous. With ``at``, from the same values,
    back[i] += sum over j of at[j] * exp(-gamma * d(points[i], j))."""
    cdef Py_ssize_t n = features.shape[1], d = features.shape[0], count = points.shape[0]
    if count == 0 or n == 0:
        return
    check(points.shape[1] == d, "points must have as many features as the columns")
    check(beta.shape[0] == count, "beta must have an entry for each point")
    check(out.shape[0] == n, "out must have an entry for each column")
    check(n == 1 or features.strides[1] == sizeof(real), "rows of features must be contiguous")
    cdef Py_ssize_t stride = features.strides[0] // sizeof(real)
    cdef const double* weights = NULL
    cdef double* to = NULL
    if at is not None:
        check(at.shape[0] == n, "at must have an entry for each column")
        check(back is not None and back.shape[0] == count, "back must have an entry for each point")
        weights, to = &at[0], &back[0]
    with nogil:
        distance_sums(squared, &features[0, 0], stride, &points[0, 0], count, d, n, gamma, &beta[0],
                      &out[0], weights, to)


def rbf_from_products(const double[:, ::1] products, const double[::1] row_norms,
                      const double[::1] column_norms, double gamma, real[:, :] out,
                      const int64_t[::1] places):
    """out[places] = exp(-gamma * max(row_norms[:, None] + column_norms - 2 * products, 0))."""
    cdef Py_ssize_t i, n = products.shape[1], m = products.shape[0]
    if n == 0:
        return
    check(row_norms.shape[0] == m and column_norms.shape[0] == n,
          "norms must have an entry for each row and column of products")
    check(out.shape[1] >= n and out.strides[1] == sizeof(real), "rows of out must hold n numbers")
    check(places.shape[0] == m, "places must have an entry for each row of products")
    check_places(places, out.shape[0], "places must name rows of out")
    with nogil:
        for i in range(m):
            rbf_of_products(&products[i, 0], &column_norms[0], row_norms[i], n, gamma,
                            &out[places[i], 0])


def accumulate_rows(const real[:, :] rows, const int64_t[::1] slots, const double[::1] delta,
                    double[::1] out):
    """out += sum over r of delta[r] * rows[slots[r]]; rows are read where they lie."""
    cdef Py_ssize_t count = slots.shape[0], n = out.shape[0]
    if count == 0 or n == 0:
        return
    check(delta.shape[0] == count, "delta must have an entry for each slot")
    check(rows.shape[1] >= n and (n == 1 or rows.strides[1] == sizeof(real)),
          "rows must be as long as out, and contiguous")
    check_places(slots, rows.shape[0], "slots must name rows")
    cdef Py_ssize_t stride = rows.strides[0] // sizeof(real)
    with nogil:
        accumulate(&rows[0, 0], stride, &slots[0], &delta[0], count, n, &out[0])


def gather_block(const real[:, :] rows, const int64_t[::1] slots, const int64_t[::1] columns,
                 real[:, ::1] out):
    """out[r, k] = rows[slots[r], columns[k]]: the small Gram matrix of a block."""
    cdef Py_ssize_t r, k, m = columns.shape[0]
    cdef const real* row
    check(out.shape[0] == slots.shape[0] and out.shape[1] == m,
          "out must have a row for each slot and a column for each of columns")
    check(rows.shape[1] <= 1 or rows.strides[1] == sizeof(real), "rows must be contiguous")
    check_places(slots, rows.shape[0], "slots must name rows")
    check_places(columns, rows.shape[1], "columns must name columns of rows")
    with nogil:
        for r in range(slots.shape[0]):
            row = &rows[slots[r], 0]
            for k in range(m):
                out[r, k] = row[columns[k]]
