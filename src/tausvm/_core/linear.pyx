# distutils: language = c
"""Products with rows of X, and passes over the terms of the samples, for the linear solvers.

``rows`` names the rows that take part, in order; empty, it names all. Every function works on a
range of them, [begin, end), so that a caller can stop or share out the work between calls.
"""
from libc.math cimport fabs, INFINITY, isfinite, sqrt

include "linear_rows.pxi"

cdef extern from "linear.h" nogil:
    double term_response(const Term*, double, double*)
    double term_value(const Term*, double)
    double term_conjugate(const Term*, double)


def has_duplicates(const index[::1] indices, const place[::1] indptr, int64_t[::1] last):
    """Whether a row names a column twice; ``last`` holds −1 for every column.

    Entries that are not there and columns beyond ``last`` are a ValueError.
    """
    cdef int64_t i, k, before = 0, d = last.shape[0]
    cdef bint valid = True, twice = False
    with nogil:
        for i in range(indptr.shape[0]):
            valid = valid and before <= indptr[i] <= indices.shape[0]
            before = indptr[i]
        for i in range(indptr.shape[0] - 1 if valid else 0):
            for k in range(indptr[i], indptr[i + 1]):
                valid = 0 <= indices[k] < d
                if not valid:
                    break
                twice = twice or last[indices[k]] == i
                last[indices[k]] = i
            if twice or not valid:
                break
    check(valid, "X must be a valid CSR matrix: its indptr must rise from 0 to its number of entries "
                 "at most, and its indices lie between 0 and its number of columns")
    return twice


# ---- products ----

def dense_dots(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] w,
               double[::1] out, int64_t begin, int64_t end):
    """out[k] = x_rows[k] · w."""
    cdef int64_t k, d = X.shape[1]
    check_span(begin, end, X.shape[0], rows, out.shape[0])
    check(w.shape[0] == d, "w must have an entry for each column")
    if d == 0:
        out[begin:end] = 0
        return
    with nogil:
        for k in range(begin, end):
            out[k] = dense_dot(&X[row_at(rows, k), 0], &w[0], d)


def sparse_dots(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                const int64_t[::1] rows, const double[::1] w, double[::1] out,
                int64_t begin, int64_t end):
    """out[k] = x_rows[k] · w."""
    cdef int64_t k
    cdef int64_t i, first
    check_span(begin, end, indptr.shape[0] - 1, rows, out.shape[0])
    with nogil:
        for k in range(begin, end):
            i = row_at(rows, k)
            first = indptr[i]
            out[k] = sparse_dot(&data[0] + first, &indices[0] + first, indptr[i + 1] - first, &w[0])


def dense_sum(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] weight,
              double[::1] out, int64_t begin, int64_t end):
    """out += Σ weight[k] x_rows[k]."""
    cdef int64_t k, d = X.shape[1]
    check_span(begin, end, X.shape[0], rows, weight.shape[0])
    check(out.shape[0] == d, "out must have an entry for each column")
    if d == 0:
        return
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                dense_add(&X[row_at(rows, k), 0], weight[k], &out[0], d)


def sparse_sum(const real[::1] data, const index[::1] indices, const place[::1] indptr,
               const int64_t[::1] rows, const double[::1] weight, double[::1] out,
               int64_t begin, int64_t end):
    """out += Σ weight[k] x_rows[k]."""
    cdef int64_t k
    cdef int64_t i, first
    check_span(begin, end, indptr.shape[0] - 1, rows, weight.shape[0])
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                first = indptr[i]
                sparse_add(&data[0] + first, &indices[0] + first, indptr[i + 1] - first, weight[k],
                           &out[0])


def dense_squares(const real[:, ::1] X, const int64_t[::1] rows, double[::1] out,
                  int64_t begin, int64_t end):
    """out[k] = ‖x_rows[k]‖²."""
    cdef int64_t k
    check_span(begin, end, X.shape[0], rows, out.shape[0])
    with nogil:
        for k in range(begin, end):
            out[k] = squared(&X[row_at(rows, k), 0], X.shape[1])


def sparse_squares(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                   const int64_t[::1] rows, double[::1] out, int64_t begin, int64_t end):
    """out[k] = ‖x_rows[k]‖²."""
    cdef int64_t k
    cdef int64_t i, first
    check_span(begin, end, indptr.shape[0] - 1, rows, out.shape[0])
    with nogil:
        for k in range(begin, end):
            i = row_at(rows, k)
            first = indptr[i]
            out[k] = squared(&data[0] + first, indptr[i + 1] - first)


def dense_column_squares(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] weight,
                         double[::1] out, int64_t begin, int64_t end):
    """out[j] += Σ weight[k] x_rows[k],j²."""
    cdef int64_t k, j
    cdef int64_t i
    check_span(begin, end, X.shape[0], rows, weight.shape[0])
    check(out.shape[0] == X.shape[1], "out must have an entry for each column")
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                for j in range(X.shape[1]):
                    out[j] += weight[k] * <double>X[i, j] * <double>X[i, j]


def sparse_column_squares(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                          const int64_t[::1] rows, const double[::1] weight, double[::1] out,
                          int64_t begin, int64_t end):
    """out[j] += Σ weight[k] x_rows[k],j²."""
    cdef int64_t k
    cdef int64_t i, j
    check_span(begin, end, indptr.shape[0] - 1, rows, weight.shape[0])
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                for j in range(indptr[i], indptr[i + 1]):
                    out[indices[j]] += weight[k] * <double>data[j] * <double>data[j]


def dense_gather(const real[:, ::1] X, const int64_t[::1] rows, const int64_t[::1] index,
                 const double[::1] weight, double[:, ::1] out):
    """out[k] = √|weight[i]| x_rows[i] with i = index[k]."""
    cdef int64_t k, j
    cdef int64_t i
    cdef double scale
    cdef const real* x
    check(out.shape[0] == index.shape[0] and out.shape[1] == X.shape[1],
          "out must have a row for each of index, and a column for each of X")
    check_places(index, min(rows.shape[0] if rows.shape[0] > 0 else X.shape[0], weight.shape[0]),
                 "index must name rows")
    with nogil:
        for k in range(index.shape[0]):
            i = index[k]
            scale = sqrt(fabs(weight[i]))
            x = &X[row_at(rows, i), 0]
            for j in range(X.shape[1]):
                out[k, j] = scale * <double>x[j]


# ---- passes over the terms ----

def responses(const double[:, :] terms, const double[::1] residual, double sigma,
              const double[::1] centre, double[::1] beta, double[::1] slope):
    """β = argmax (rβ − g(β)) and its derivative; returns the sum of the maxima.

    ``centre`` is read where sigma > 0 only, as in all of these.
    """
    cdef int64_t i, n = residual.shape[0]
    cdef double total = 0, r, s
    cdef Term t
    check_terms(terms, n)
    check(beta.shape[0] == n and slope.shape[0] == n and (sigma <= 0 or centre.shape[0] == n),
          "beta, slope and centre must have an entry for each residual")
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, sigma)
            r = residual[i]
            if sigma > 0:
                r += sigma * centre[i]
                total -= 0.5 * sigma * centre[i] * centre[i]
            beta[i] = term_response(&t, r, &s)
            slope[i] = s
            total += term_conjugate(&t, r)
    return total


def line_slope(const double[:, :] terms, const double[::1] residual, double sigma,
               const double[::1] centre, const double[::1] change, double at):
    """Σ βᵢ changeᵢ at the residuals r − at·change, and Σ β′ᵢ changeᵢ²."""
    cdef int64_t i, n = residual.shape[0]
    cdef double total = 0, bend = 0, r, s, b
    cdef Term t
    check_terms(terms, n)
    check(change.shape[0] == n and (sigma <= 0 or centre.shape[0] == n),
          "change and centre must have an entry for each residual")
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, sigma)
            r = residual[i] - at * change[i]
            if sigma > 0:
                r += sigma * centre[i]
            b = term_response(&t, r, &s)
            total += b * change[i]
            bend += s * change[i] * change[i]
    return total, bend


def offset_slope(const double[:, :] terms, const double[::1] residual, double sigma,
                 const double[::1] centre, double at):
    """Σ βᵢ at the residuals r − at, and Σ β′ᵢ."""
    cdef int64_t i, n = residual.shape[0]
    cdef double total = 0, bend = 0, r, s
    cdef Term t
    check_terms(terms, n)
    check(sigma <= 0 or centre.shape[0] == n, "centre must have an entry for each residual")
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, sigma)
            r = residual[i] - at
            if sigma > 0:
                r += sigma * centre[i]
            total += term_response(&t, r, &s)
            bend += s
    return total, bend


def conjugates(const double[:, :] terms, const double[::1] y, const double[::1] fitted,
               double offset):
    """The sum of the primal losses at the residuals y − fitted − offset."""
    cdef int64_t i, n = y.shape[0]
    cdef double total = 0, lost = 0
    cdef Term t
    check_terms(terms, n)
    check(fitted.shape[0] == n, "fitted must have an entry for each y")
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, 0)
            add_exactly(&total, &lost, term_conjugate(&t, y[i] - fitted[i] - offset))
    return total + lost


def values(const double[:, :] terms, const double[::1] beta):
    """Σ g(β)."""
    cdef int64_t i, n = beta.shape[0]
    cdef double total = 0, lost = 0
    cdef Term t
    check_terms(terms, n)
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, 0)
            add_exactly(&total, &lost, term_value(&t, beta[i]))
    return total + lost


cdef inline void add_exactly(double* total, double* lost, double value) noexcept nogil:
    """total += value; what rounding takes from it is kept in ``lost`` (sums of no sign alike)."""
    cdef double s = total[0] + value
    if isfinite(s):  # an overflow stays one
        lost[0] += (total[0] - s) + value if fabs(total[0]) >= fabs(value) else (value - s) + total[0]
    total[0] = s


def one_sided(const double[:, :] terms, const double[::1] beta, const double[::1] y,
              const double[::1] fitted, double offset):
    """max (r − g′₊(β)) and min (r − g′₋(β)): what moving a β up or down would gain at most."""
    cdef int64_t i, n = beta.shape[0]
    cdef double up = -INFINITY, down = INFINITY, b, r, rest
    cdef Term t
    check_terms(terms, n)
    check(y.shape[0] == n and fitted.shape[0] == n, "y and fitted must have an entry for each beta")
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, 0)
            b = beta[i]
            rest = y[i] - fitted[i] - offset
            if b < t.upper:
                r = rest - (t.kink + t.ridge_plus * b if b >= 0 else t.ridge_minus * b - t.kink)
                up = max(up, r)
            if b > t.lower:
                r = rest - (t.kink + t.ridge_plus * b if b > 0 else t.ridge_minus * b - t.kink)
                down = min(down, r)
    return up, down


def balance(const double[:, :] terms, const double[::1] beta, double excess, double[::1] out):
    """out = β with its sum lower by ``excess``, moved where g is smooth.

    Returns the share of the room there that it took, 0.5 or more where β was left as it is, and
    the index with the most room.
    """
    cdef int64_t i, widest = 0, n = beta.shape[0]
    cdef double total = 0, most = 0, share, low, high, b
    cdef Term t
    cdef int moving
    check_terms(terms, n)
    check(out.shape[0] == n, "out must have an entry for each beta")
    with nogil:
        for moving in range(2):
            share = fabs(excess) / total if moving and total > 0 else INFINITY
            for i in range(n):
                t = smoothed(terms, i, 0)
                b = beta[i]
                out[i] = b
                if b == 0:
                    continue
                low = 0 if b > 0 else t.lower
                high = 0 if b < 0 else t.upper
                if not moving:
                    total += min(b - low, high - b)
                    if min(b - low, high - b) > most:
                        most = min(b - low, high - b)
                        widest = i
                elif share < 0.5:
                    out[i] = b - (excess / total) * min(b - low, high - b)
    return share, widest
