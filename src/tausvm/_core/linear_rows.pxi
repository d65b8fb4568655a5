# Rows of X and terms of samples, for the cores of the linear solvers.
#
# X is dense (C-contiguous) or CSR, in float32 or float64, CSR indices in 32 or 64 bits; sums are
# in float64. A row of a CSR matrix has no column twice. The terms are a (5, n) table, which may
# have a column stride of 0: the same term for all.
from libc.stdint cimport int32_t, int64_t

cdef extern from "linear.h" nogil:
    ctypedef struct Term:
        double lower
        double upper
        double kink
        double ridge_minus
        double ridge_plus
    double dense_dot_f32(const float*, const double*, long)
    double dense_dot_f64(const double*, const double*, long)
    void dense_add_f32(const float*, double, double*, long)
    void dense_add_f64(const double*, double, double*, long)
    Term load_term(const double*, long, long, long)

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

cdef inline double dense_dot(const real* x, const double* w, long d) noexcept nogil:
    if real is float:
        return dense_dot_f32(x, w, d)
    else:
        return dense_dot_f64(x, w, d)


cdef inline void dense_add(const real* x, double step, double* w, long d) noexcept nogil:
    if real is float:
        dense_add_f32(x, step, w, d)
    else:
        dense_add_f64(x, step, w, d)


cdef inline double sparse_dot(const real* x, const index* at, long m, const double* w) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef long k = 0
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


cdef inline void sparse_add(const real* x, const index* at, long m, double step, double* w) noexcept nogil:
    # columns differ, so that four may be read before one is written
    cdef double a, b, c, e
    cdef long k = 0
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


cdef inline double squared(const real* x, long m) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, e = 0
    cdef long k = 0
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


cdef inline int64_t row_at(const int64_t[::1] rows, long k) noexcept nogil:
    return rows[k] if rows.shape[0] > 0 else k


# g is made g + sigma/2 (b − centre)² where sigma > 0
cdef inline Term smoothed(const double[:, :] terms, long i, double sigma) noexcept nogil:
    cdef Term t = load_term(&terms[0, 0], terms.strides[0] // 8, terms.strides[1] // 8, i)
    t.ridge_minus += sigma
    t.ridge_plus += sigma
    return t
