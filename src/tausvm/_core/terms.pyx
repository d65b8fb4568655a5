# distutils: language = c
"""Passes over the terms of the samples, for the linear solvers.

With σ > 0 a term g is g + σ/2 (β − centre)², which gives every side a ridge.
"""
from libc.math cimport fabs, INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t

from .checks cimport check
from .terms cimport Term, TermTable, smoothed_term, term_conjugate, term_of, term_response, \
    term_table, term_value


def responses(const double[:, :] terms, const double[::1] residual, double sigma,
              const double[::1] centre, double[::1] beta, double[::1] slope):
    """β = argmax (rβ − g(β)) and its derivative; returns the sum of the maxima.

    ``centre`` is read where sigma > 0 only, as in all of these.
    """
    cdef int64_t i, n = residual.shape[0]
    cdef double total = 0, r, s
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    check(beta.shape[0] == n and slope.shape[0] == n and (sigma <= 0 or centre.shape[0] == n),
          "beta, slope and centre must have an entry for each residual")
    with nogil:
        for i in range(n):
            t = smoothed_term(&table, i, sigma)
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
    cdef TermTable table = term_table(terms, n)
    check(change.shape[0] == n and (sigma <= 0 or centre.shape[0] == n),
          "change and centre must have an entry for each residual")
    with nogil:
        for i in range(n):
            t = smoothed_term(&table, i, sigma)
            r = residual[i] - at * change[i]
            if sigma > 0:
                r += sigma * centre[i]
            b = term_response(&t, r, &s)
            total += b * change[i]
            bend += s * change[i] * change[i]
    return total, bend


def offset_slope(const double[:, :] terms, const double[::1] y, const double[::1] fitted,
                 double sigma, const double[::1] centre, double at):
    """Σ βᵢ at the residuals y − fitted − at, and Σ β′ᵢ; ``fitted`` may be None for 0."""
    cdef int64_t i, n = y.shape[0]
    cdef bint moved = fitted is not None
    cdef double total = 0, bend = 0, r, s
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    check((sigma <= 0 or centre.shape[0] == n) and (not moved or fitted.shape[0] == n),
          "centre and fitted must have an entry for each y")
    with nogil:
        for i in range(n):
            t = smoothed_term(&table, i, sigma)
            r = y[i] - at
            if moved:
                r -= fitted[i]
            if sigma > 0:
                r += sigma * centre[i]
            total += term_response(&t, r, &s)
            bend += s
    return total, bend


def moving_rows(const double[:, :] terms, const double[::1] y, const double[::1] fitted,
                double low, double high, int32_t[::1] places):
    """Whose β changes as b goes from ``low`` to ``high``, at the residuals y − fitted − b; ``fitted`` may be
    None for 0.

    Returns how many do, Σ βᵢ of the others, and Σ βᵢ of all at ``low`` and at ``high``;
    ``places`` gets as many of those rows as it has room for.
    """
    cdef int64_t i, count = 0, n = y.shape[0], room = places.shape[0]
    cdef bint moved = fitted is not None
    cdef double rest = 0, first = 0, last = 0, before, after, r, s
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    check(not moved or fitted.shape[0] == n, "fitted must have an entry for each y")
    with nogil:
        for i in range(n):
            t = term_of(&table, i)
            r = y[i] - fitted[i] if moved else y[i]
            before = term_response(&t, r - low, &s)
            after = term_response(&t, r - high, &s)
            first += before
            last += after
            if before == after:
                rest += before
            else:
                if count < room:
                    places[count] = <int32_t>i
                count += 1
    return count, rest, first, last


cdef inline void add_exactly(double* total, double* lost, double value) noexcept nogil:
    """total += value; what rounding takes from it is kept in ``lost`` (sums of no sign alike)."""
    cdef double s = total[0] + value
    if isfinite(s):  # an overflow stays one
        lost[0] += (total[0] - s) + value if fabs(total[0]) >= fabs(value) else (value - s) + total[0]
    total[0] = s


def conjugates(const double[:, :] terms, const double[::1] y, const double[::1] fitted,
               double offset):
    """The sum of the primal losses at the residuals y − fitted − offset."""
    cdef int64_t i, n = y.shape[0]
    cdef double total = 0, lost = 0
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    check(fitted.shape[0] == n, "fitted must have an entry for each y")
    with nogil:
        for i in range(n):
            t = term_of(&table, i)
            add_exactly(&total, &lost, term_conjugate(&t, y[i] - fitted[i] - offset))
    return total + lost


def values(const double[:, :] terms, const double[::1] beta):
    """Σ g(β)."""
    cdef int64_t i, n = beta.shape[0]
    cdef double total = 0, lost = 0
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    with nogil:
        for i in range(n):
            t = term_of(&table, i)
            add_exactly(&total, &lost, term_value(&t, beta[i]))
    return total + lost


def one_sided(const double[:, :] terms, const double[::1] beta, const double[::1] y,
              const double[::1] fitted, double offset):
    """max (r − g′₊(β)) and min (r − g′₋(β)): what moving a β up or down would gain at most."""
    cdef int64_t i, n = beta.shape[0]
    cdef double up = -INFINITY, down = INFINITY, b, r, rest
    cdef Term t
    cdef TermTable table = term_table(terms, n)
    check(y.shape[0] == n and fitted.shape[0] == n, "y and fitted must have an entry for each beta")
    with nogil:
        for i in range(n):
            t = term_of(&table, i)
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
    cdef TermTable table = term_table(terms, n)
    cdef int moving
    check(out.shape[0] == n, "out must have an entry for each beta")
    with nogil:
        for moving in range(2):
            share = fabs(excess) / total if moving and total > 0 else INFINITY
            for i in range(n):
                t = term_of(&table, i)
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
