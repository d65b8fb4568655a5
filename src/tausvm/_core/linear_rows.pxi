# Rows of X and terms of samples, for the cores of the linear solvers.
#
# X is dense (C-contiguous) or CSR, in float32 or float64, CSR indices in 32 or 64 bits; sums are
# in float64. A row of a CSR matrix has no column twice. The terms are a (5, n) table, which may
# have a column stride of 0: the same term for all.
from libc.stdint cimport int32_t, int64_t

include "checks.pxi"

cdef extern from "linear.h" nogil:
    ctypedef struct Term:
        double lower
        double upper
        double kink
        double ridge_minus
        double ridge_plus
    double dense_dot_f32(const float*, const double*, int64_t)
    double dense_dot_f64(const double*, const double*, int64_t)
    void dense_add_f32(const float*, double, double*, int64_t)
    void dense_add_f64(const double*, double, double*, int64_t)
    Term load_term(const double*, int64_t, int64_t, int64_t)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

ctypedef fused place:  # where a row begins
    int32_t
    int64_t


# ---- one row ----

cdef inline double dense_dot(const real* x, const double* w, int64_t d) noexcept nogil:
    if real is float:
        return dense_dot_f32(x, w, d)
    else:
        return dense_dot_f64(x, w, d)


cdef inline void dense_add(const real* x, double step, double* w, int64_t d) noexcept nogil:
    if real is float:
        dense_add_f32(x, step, w, d)
    else:
        dense_add_f64(x, step, w, d)


cdef inline double sparse_dot(const real* x, const index* at, int64_t m, const double* w
                              ) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef int64_t k = 0
    while k + 4 <= m:
        a += <double>x[k] * w[at[k]]
        b += <double>x[k + 1] * w[at[k + 1]]
        c += <double>x[k + 2] * w[at[k + 2]]
        e += <double>x[k + 3] * w[at[k + 3]]
        k += 4
    while k < m:
        a += <double>x[k] * w[at[k]]
        k += 1
    return (a + b) + (c + e)


cdef inline void sparse_add(const real* x, const index* at, int64_t m, double step, double* w
                            ) noexcept nogil:
    # columns differ, so that four may be read before one is written
    cdef double a, b, c, e
    cdef int64_t k = 0
    while k + 4 <= m:
        a = w[at[k]] + step * <double>x[k]
        b = w[at[k + 1]] + step * <double>x[k + 1]
        c = w[at[k + 2]] + step * <double>x[k + 2]
        e = w[at[k + 3]] + step * <double>x[k + 3]
        w[at[k]] = a
        w[at[k + 1]] = b
        w[at[k + 2]] = c
        w[at[k + 3]] = e
        k += 4
    while k < m:
        w[at[k]] += step * <double>x[k]
        k += 1


cdef inline double squared(const real* x, int64_t m) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef int64_t k = 0
    while k + 4 <= m:
        a += <double>x[k] * <double>x[k]
        b += <double>x[k + 1] * <double>x[k + 1]
        c += <double>x[k + 2] * <double>x[k + 2]
        e += <double>x[k + 3] * <double>x[k + 3]
        k += 4
    while k < m:
        a += <double>x[k] * <double>x[k]
        k += 1
    return (a + b) + (c + e)


cdef inline int64_t row_at(const int64_t[::1] rows, int64_t k) noexcept nogil:
    return rows[k] if rows.shape[0] > 0 else k


# ---- what a call relies on ----

cdef int check_span(int64_t begin, int64_t end, Py_ssize_t n_rows, const int64_t[::1] rows,
                    Py_ssize_t room) except -1:
    """Rows [begin, end) of those that take part, with a number each in arrays of ``room``."""
    if rows.shape[0] > 0:
        n_rows = rows.shape[0]
    return check(0 <= begin and end <= n_rows and end <= room,
                 "begin and end must be within the rows and the numbers of the rows")


cdef int check_terms(const double[:, :] terms, Py_ssize_t n) except -1:
    return check(terms.shape[0] == 5 and terms.shape[1] == n and terms.strides[0] % 8 == 0
                 and terms.strides[1] % 8 == 0, "terms must have five numbers for each sample")


# g is made g + sigma/2 (b − centre)² where sigma > 0
cdef inline Term smoothed(const double[:, :] terms, int64_t i, double sigma) noexcept nogil:
    cdef Term t = load_term(&terms[0, 0], terms.strides[0] // 8, terms.strides[1] // 8, i)
    t.ridge_minus += sigma
    t.ridge_plus += sigma
    return t
