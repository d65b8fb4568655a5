# distutils: language = c
"""Loops of the linear solvers: products with rows of X, passes over the terms, sweeps.

X is dense (C-contiguous) or CSR, in float32 or float64, CSR indices in 32 or 64 bits; sums are
in float64. ``rows`` names the rows that take part, in order; empty, it names all. Every function
works on a range of them, [begin, end), so that a caller can stop or share out the work between
calls. A row of a CSR matrix has no column twice.

The terms are a (5, n) table, which may have a column stride of 0: the same term for all.
"""
cimport cython
from libc.math cimport fabs, INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "linear.h" nogil:
    ctypedef struct Term:
        double lower
        double upper
        double kink
        double ridge_minus
        double ridge_plus
    ctypedef struct Met:
        double total
        double largest
        double gap
        double gained
        double gain
    double dense_dot_f32(const float*, const double*, long)
    double dense_dot_f64(const double*, const double*, long)
    void dense_add_f32(const float*, double, double*, long)
    void dense_add_f64(const double*, double, double*, long)
    Term load_term(const double*, long, long, long)
    double term_response(const Term*, double, double*)
    double term_value(const Term*, double)
    double term_conjugate(const Term*, double)
    double coordinate_step(const Term*, double, double, double, double, Met*, int*)
    float adapted(float, double, double)
    int64_t random_below(uint64_t*, int64_t)
    void fetch_early(const void*)

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t

ctypedef fused place:  # where a row begins
    int32_t
    int64_t

#: weights more than this, 4 MB, lie beyond the caches near the processor: a row's are fetched early
cdef long MANY_WEIGHTS = 500_000


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


def has_duplicates(const index[::1] indices, const place[::1] indptr, int64_t[::1] last):
    """Whether a row names a column twice; ``last`` holds −1 for every column."""
    cdef int64_t i, k
    with nogil:
        for i in range(indptr.shape[0] - 1):
            for k in range(indptr[i], indptr[i + 1]):
                if last[indices[k]] == i:
                    with gil:
                        return True
                last[indices[k]] = i
    return False


# ---- products ----

def dense_dots(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] w,
               double[::1] out, long begin, long end):
    """out[k] = x_rows[k] · w."""
    cdef long k, d = X.shape[1]
    with nogil:
        for k in range(begin, end):
            out[k] = dense_dot(&X[row_at(rows, k), 0], &w[0], d)


def sparse_dots(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                const int64_t[::1] rows, const double[::1] w, double[::1] out, long begin, long end):
    """out[k] = x_rows[k] · w."""
    cdef long k
    cdef int64_t i, first
    with nogil:
        for k in range(begin, end):
            i = row_at(rows, k)
            first = indptr[i]
            out[k] = sparse_dot(&data[0] + first, &indices[0] + first, indptr[i + 1] - first, &w[0])


def dense_sum(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] weight,
              double[::1] out, long begin, long end):
    """out += Σ weight[k] x_rows[k]."""
    cdef long k, d = X.shape[1]
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                dense_add(&X[row_at(rows, k), 0], weight[k], &out[0], d)


def sparse_sum(const real[::1] data, const index[::1] indices, const place[::1] indptr,
               const int64_t[::1] rows, const double[::1] weight, double[::1] out,
               long begin, long end):
    """out += Σ weight[k] x_rows[k]."""
    cdef long k
    cdef int64_t i, first
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                first = indptr[i]
                sparse_add(&data[0] + first, &indices[0] + first, indptr[i + 1] - first, weight[k],
                           &out[0])


def dense_squares(const real[:, ::1] X, const int64_t[::1] rows, double[::1] out,
                  long begin, long end):
    """out[k] = ‖x_rows[k]‖²."""
    cdef long k
    with nogil:
        for k in range(begin, end):
            out[k] = squared(&X[row_at(rows, k), 0], X.shape[1])


def sparse_squares(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                   const int64_t[::1] rows, double[::1] out, long begin, long end):
    """out[k] = ‖x_rows[k]‖²."""
    cdef long k
    cdef int64_t i, first
    with nogil:
        for k in range(begin, end):
            i = row_at(rows, k)
            first = indptr[i]
            out[k] = squared(&data[0] + first, indptr[i + 1] - first)


def dense_column_squares(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] weight,
                         double[::1] out, long begin, long end):
    """out[j] += Σ weight[k] x_rows[k],j²."""
    cdef long k, j
    cdef int64_t i
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                for j in range(X.shape[1]):
                    out[j] += weight[k] * <double>X[i, j] * <double>X[i, j]


def sparse_column_squares(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                          const int64_t[::1] rows, const double[::1] weight, double[::1] out,
                          long begin, long end):
    """out[j] += Σ weight[k] x_rows[k],j²."""
    cdef long k
    cdef int64_t i, j
    with nogil:
        for k in range(begin, end):
            if weight[k] != 0:
                i = row_at(rows, k)
                for j in range(indptr[i], indptr[i + 1]):
                    out[indices[j]] += weight[k] * <double>data[j] * <double>data[j]


# ---- passes over the terms; g is made g + sigma/2 (b − centre)² where sigma > 0 ----

cdef inline Term smoothed(const double[:, :] terms, long i, double sigma) noexcept nogil:
    cdef Term t = load_term(&terms[0, 0], terms.strides[0] // 8, terms.strides[1] // 8, i)
    t.ridge_minus += sigma
    t.ridge_plus += sigma
    return t


def responses(const double[:, :] terms, const double[::1] residual, double sigma,
              const double[::1] centre, double[::1] beta, double[::1] slope):
    """β = argmax (rβ − g(β)) and its derivative; returns the sum of the maxima.

    ``centre`` is read where sigma > 0 only, as in all of these.
    """
    cdef long i, n = residual.shape[0]
    cdef double total = 0, r, s
    cdef Term t
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
    cdef long i, n = residual.shape[0]
    cdef double total = 0, bend = 0, r, s, b
    cdef Term t
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
    cdef long i, n = residual.shape[0]
    cdef double total = 0, bend = 0, r, s
    cdef Term t
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
    cdef long i, n = y.shape[0]
    cdef double total = 0
    cdef Term t
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, 0)
            total += term_conjugate(&t, y[i] - fitted[i] - offset)
    return total


def values(const double[:, :] terms, const double[::1] beta):
    """Σ g(β)."""
    cdef long i, n = beta.shape[0]
    cdef double total = 0
    cdef Term t
    with nogil:
        for i in range(n):
            t = smoothed(terms, i, 0)
            total += term_value(&t, beta[i])
    return total


def one_sided(const double[:, :] terms, const double[::1] beta, const double[::1] y,
              const double[::1] fitted, double offset):
    """max (r − g′₊(β)) and min (r − g′₋(β)): what moving a β up or down would gain at most."""
    cdef long i, n = beta.shape[0]
    cdef double up = -INFINITY, down = INFINITY, b, r, rest
    cdef Term t
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
    cdef long i, widest = 0, n = beta.shape[0]
    cdef double total = 0, most = 0, share, low, high, b
    cdef Term t
    cdef int moving
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


# ---- Algorithm 4 ----

def shuffle(const int32_t[::1] active, long count, long block, int32_t[::1] blocks,
            int32_t[::1] order, uint64_t[::1] state):
    """A random order of active[:count]: blocks of neighbours at random, and each inside itself.

    Rows of a block lie side by side in memory, which a wholly random order could not use.
    ``blocks`` is room for the numbers of the blocks.
    """
    cdef long k, at = 0, first, size, n_blocks = (count + block - 1) // block
    cdef int64_t other
    cdef int32_t held
    with nogil:
        for k in range(n_blocks):
            blocks[k] = k
        for k in range(n_blocks - 1, 0, -1):
            other = random_below(&state[0], k + 1)
            held = blocks[k]
            blocks[k] = blocks[other]
            blocks[other] = held
        for k in range(n_blocks):
            first = blocks[k] * block
            size = min(block, count - first)
            for other in range(size):
                order[at + other] = active[first + other]
            for size in range(size - 1, 0, -1):
                other = random_below(&state[0], size + 1)
                held = order[at + size]
                order[at + size] = order[at + other]
                order[at + other] = held
            at += min(block, count - first)


def schedule(const float[::1] preference, double scale, float[::1] due, int32_t[::1] visits):
    """The visits of a pass, as many to a row as are due; returns how many these are.

    A row's second visits come after everybody's first, which keeps them apart in a random order
    of blocks. There are at most 2n where the preferences times ``scale`` add up to n.
    """
    cdef long i, k, begin = 0, end = 0, count = 0, n = due.shape[0]
    with nogil:
        for i in range(n):
            due[i] += <float>(scale * preference[i])
            if due[i] >= 1 and count < visits.shape[0]:
                due[i] -= 1
                visits[count] = i
                count += 1
        while end < count:
            begin, end = end, count
            for k in range(begin, end):
                i = visits[k]
                if due[i] >= 1 and count < visits.shape[0]:
                    due[i] -= 1
                    visits[count] = i
                    count += 1
    return count


def leave_out(int32_t[::1] active, long count, const unsigned char[::1] settled):
    """active[:count] without the settled, in place; returns how many remain."""
    cdef long k, kept = 0
    with nogil:
        for k in range(count):
            active[kept] = active[k]
            kept += not settled[active[k]]
    return kept


def dense_sweep(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] y,
                const double[:, :] terms, double[::1] squares, double column,
                double[::1] beta, double[::1] w, double[::1] offset, const int32_t[::1] order,
                long begin, long end, double threshold, unsigned char[::1] settled,
                float[::1] preference, double usual, double[::1] met):
    """Steps 6.2 on order[begin:end]; those that shall leave are marked in ``settled``.

    ``squares`` are the squared rows with column² added; a negative one is computed and put there.
    ``offset`` holds (b, Σβ): predictions are x·w + b with b = offset[0], which a step of β changes
    by column² times the step. ``preference``, unless empty, is adapted to what a step gains beside
    the ``usual`` gain. ``met`` gathers (Σ violation, largest, gap, gain, number settled).
    """
    cdef long s, i, d = X.shape[1]
    cdef double gradient, next_beta, step
    cdef const real* x
    cdef int leaves
    cdef long n_settled = 0
    cdef double pace = 1.0 / beta.shape[0]
    cdef bint adapting = preference.shape[0] > 0
    cdef Term t
    cdef Met seen
    seen.total, seen.largest, seen.gap, seen.gained = met[0], met[1], met[2], met[3]
    with nogil:
        for s in range(begin, end):
            i = order[s]
            x = &X[row_at(rows, i), 0]
            gradient = dense_dot(x, &w[0], d) + offset[0] - y[i]
            if squares[i] < 0:
                squares[i] = squared(x, d) + column * column
            t = smoothed(terms, i, 0)
            next_beta = coordinate_step(&t, beta[i], gradient, squares[i], threshold, &seen, &leaves)
            if adapting:
                preference[i] = adapted(preference[i], seen.gain, usual)
                usual += pace * (seen.gain - usual)
            if leaves:
                settled[i] = 1
                n_settled += 1
                continue
            step = next_beta - beta[i]
            if step != 0:
                beta[i] = next_beta
                dense_add(x, step, &w[0], d)
                offset[0] += column * column * step
                offset[1] += step
    met[0], met[1], met[2], met[3] = seen.total, seen.largest, seen.gap, seen.gained
    met[4] += n_settled
    return usual


def sparse_sweep(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                 const int64_t[::1] rows, const double[::1] y, const double[:, :] terms,
                 double[::1] squares, double column, double[::1] beta, double[::1] w,
                 double[::1] offset, const int32_t[::1] order, long begin, long end,
                 double threshold, unsigned char[::1] settled, float[::1] preference, double usual,
                 double[::1] met):
    """As :func:`dense_sweep`."""
    cdef long s, i, m
    cdef int64_t row, first, k
    cdef double gradient, next_beta, step
    cdef const real* x
    cdef const index* at
    cdef int leaves, early = w.shape[0] > MANY_WEIGHTS
    cdef long n_settled = 0
    cdef double pace = 1.0 / beta.shape[0]
    cdef bint adapting = preference.shape[0] > 0
    cdef Term t
    cdef Met seen
    seen.total, seen.largest, seen.gap, seen.gained = met[0], met[1], met[2], met[3]
    with nogil:
        for s in range(begin, end):
            if early and s + 1 < end:
                row = row_at(rows, order[s + 1])
                for k in range(indptr[row], indptr[row + 1]):
                    fetch_early(&w[0] + indices[k])
            if early and s + 2 < end:
                row = row_at(rows, order[s + 2])
                fetch_early(&data[0] + indptr[row])
                fetch_early(&indices[0] + indptr[row])
            i = order[s]
            row = row_at(rows, i)
            first = indptr[row]
            x, at, m = &data[0] + first, &indices[0] + first, indptr[row + 1] - first
            gradient = sparse_dot(x, at, m, &w[0]) + offset[0] - y[i]
            if squares[i] < 0:
                squares[i] = squared(x, m) + column * column
            t = smoothed(terms, i, 0)
            next_beta = coordinate_step(&t, beta[i], gradient, squares[i], threshold, &seen, &leaves)
            if adapting:
                preference[i] = adapted(preference[i], seen.gain, usual)
                usual += pace * (seen.gain - usual)
            if leaves:
                settled[i] = 1
                n_settled += 1
                continue
            step = next_beta - beta[i]
            if step != 0:
                beta[i] = next_beta
                sparse_add(x, at, m, step, &w[0])
                offset[0] += column * column * step
                offset[1] += step
    met[0], met[1], met[2], met[3] = seen.total, seen.largest, seen.gap, seen.gained
    met[4] += n_settled
    return usual
