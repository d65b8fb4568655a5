# distutils: language = c
"""Coordinate descent on the dual of a linear machine: who is visited, and the steps.

``rows`` names the rows that take part, in order; empty, it names all.
"""
from libc.stdint cimport uint64_t

include "linear_rows.pxi"

cdef extern from "linear.h" nogil:
    ctypedef struct Met:
        double total
        double largest
        double gap
        double gained
        double gain
    double coordinate_step(const Term*, double, double, double, double, Met*, int*)
    float adapted(float, double, double)
    int64_t random_below(uint64_t*, int64_t)
    void fetch_early(const void*)

cdef extern from "exchange.h" nogil:
    int CAN_EXCHANGE
    int TABLE_SIZE
    double exchanged(int64_t*, int, int64_t, double, int*)

cdef enum:
    FIRST_HALF = 0
    SECOND_HALF = 1
    BOTH_HALVES = 2

#: which half of a row a thread works on
FIRST, SECOND, BOTH = FIRST_HALF, SECOND_HALF, BOTH_HALVES
#: whether two threads can work on the halves of rows, and what they need for that
can_exchange, table_size = bool(CAN_EXCHANGE), TABLE_SIZE

#: weights more than this, 4 MB, lie beyond the caches near the processor: a row's are fetched early
cdef int64_t MANY_WEIGHTS = 500_000


# ---- who is visited ----

def shuffle(const int32_t[::1] active, int64_t count, int64_t block, int32_t[::1] blocks,
            int32_t[::1] order, uint64_t[::1] state):
    """A random order of active[:count]: blocks of neighbours at random, and each inside itself.

    Rows of a block lie side by side in memory, which a wholly random order could not use.
    ``blocks`` is room for the numbers of the blocks; blocks of one row need none.
    """
    cdef int64_t k, at = 0, first, size, n_blocks = (count + block - 1) // block
    cdef int64_t other
    cdef int32_t held
    with nogil:
        if block == 1:
            for k in range(count):
                order[k] = active[k]
            for k in range(count - 1, 0, -1):
                other = random_below(&state[0], k + 1)
                held = order[k]
                order[k] = order[other]
                order[other] = held
            n_blocks = 0
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
    of blocks. Where ``visits``, which has room for n at least, is full, the rest stays due.
    """
    cdef int64_t i, k, begin = 0, end = 0, count = 0, n = due.shape[0]
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


def leave_out(int32_t[::1] active, int64_t count, const unsigned char[::1] settled):
    """active[:count] without the settled, in place; returns how many remain."""
    cdef int64_t k, kept = 0
    with nogil:
        for k in range(count):
            active[kept] = active[k]
            kept += not settled[active[k]]
    return kept


# ---- the steps of Algorithm 4 ----

cdef int check_sweep(int64_t begin, int64_t end, Py_ssize_t n_rows, const int64_t[::1] rows,
                     const double[:, :] terms, const int32_t[::1] order, Py_ssize_t n_y,
                     Py_ssize_t n, Py_ssize_t n_others, Py_ssize_t n_preferences,
                     Py_ssize_t n_sums) except -1:
    """The order names samples, which have all that a step reads and writes."""
    cdef Py_ssize_t s
    cdef int32_t least = 0, most = -1
    check_terms(terms, n)
    check(0 <= begin and end <= order.shape[0], "begin and end must be within the order")
    check((rows.shape[0] if rows.shape[0] > 0 else n_rows) >= n and n_y == n and n_others >= n
          and n_preferences in (0, n) and n_sums >= 2,
          "all arrays must have an entry for each beta")
    for s in range(begin, end):
        least = min(least, order[s])
        most = max(most, order[s])
    return check(least >= 0 and most < n, "order must name samples")


def dense_sweep(const real[:, ::1] X, const int64_t[::1] rows, const double[::1] y,
                const double[:, :] terms, double[::1] squares, double column,
                double[::1] beta, double[::1] w, double[::1] offset, const int32_t[::1] order,
                int64_t begin, int64_t end, double threshold, unsigned char[::1] settled,
                float[::1] preference, double usual, double[::1] met):
    """Steps 6.2 on order[begin:end]; those that shall leave are marked in ``settled``.

    ``squares`` are the squared rows with column² added; a negative one is computed and put there.
    ``offset`` holds (b, Σβ): predictions are x·w + b with b = offset[0], which a step of β changes
    by column² times the step. ``preference``, unless empty, is adapted to what a step gains beside
    the ``usual`` gain. ``met`` gathers (Σ violation, largest, gap, gain, number settled). Returns
    the usual gain and ``end``.
    """
    cdef int64_t s, i, d = X.shape[1]
    cdef double gradient, next_beta, step
    cdef const real* x
    cdef int leaves
    cdef int64_t n_settled = 0
    cdef double pace = 1.0 / beta.shape[0]
    cdef bint adapting = preference.shape[0] > 0
    cdef Term t
    cdef Met seen
    seen.total, seen.largest, seen.gap, seen.gained = met[0], met[1], met[2], met[3]
    check_sweep(begin, end, X.shape[0], rows, terms, order, y.shape[0], beta.shape[0],
                min(squares.shape[0], settled.shape[0]), preference.shape[0],
                min(offset.shape[0], met.shape[0] - 3))
    check(w.shape[0] == d, "w must have an entry for each column")
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
    return usual, end


def halve(const index[::1] indices, const place[::1] indptr, const int64_t[::1] rows, int64_t cut,
          int64_t[::1] middle):
    """middle[k] ← where the columns from ``cut`` on begin in row k, whose columns are sorted."""
    cdef int64_t k
    cdef int64_t row, low, high, at
    with nogil:
        for k in range(middle.shape[0]):
            row = row_at(rows, k)
            low, high = indptr[row], indptr[row + 1]
            while low < high:
                at = (low + high) // 2
                if indices[at] < cut:
                    low = at + 1
                else:
                    high = at
            middle[k] = low


def sparse_sweep(const real[::1] data, const index[::1] indices, const place[::1] indptr,
                 const int64_t[::1] rows, const double[::1] y, const double[:, :] terms,
                 double[::1] squares, double column, double[::1] beta, double[::1] w,
                 double[::1] offset, const int32_t[::1] order, int64_t begin, int64_t end,
                 double threshold, unsigned char[::1] settled, float[::1] preference, double usual,
                 double[::1] met, const int64_t[::1] middle, int half, int64_t[::1] table):
    """As :func:`dense_sweep`.

    Where ``middle`` is not empty, rows are cut there. FIRST and SECOND are for two threads that
    share w and ``table`` (zeros), and have all else that is written for their own: each adds up
    its half of x·w, both take the step, and each moves its half of w. Both end before ``end`` where
    one has to wait for long. BOTH is one thread, with the same sums. Returns the usual gain and
    where the sweep ended.
    """
    cdef int64_t s, i, m
    cdef int64_t row, first, last, k
    cdef double gradient, next_beta, step
    cdef const real* x
    cdef const index* at
    cdef int leaves, ended = 0, early = w.shape[0] > MANY_WEIGHTS
    cdef bint cut = middle.shape[0] > 0
    cdef int64_t n_settled = 0
    cdef double pace = 1.0 / beta.shape[0]
    cdef bint adapting = preference.shape[0] > 0
    cdef Term t
    cdef Met seen
    seen.total, seen.largest, seen.gap, seen.gained = met[0], met[1], met[2], met[3]
    check_sweep(begin, end, indptr.shape[0] - 1, rows, terms, order, y.shape[0], beta.shape[0],
                min(squares.shape[0], settled.shape[0]), preference.shape[0],
                min(offset.shape[0], met.shape[0] - 3))
    check(not cut or (middle.shape[0] >= beta.shape[0] and table.shape[0] >= TABLE_SIZE),
          "middle must have an entry for each beta, and table room for two threads")
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
            first, last = indptr[row], indptr[row + 1]
            if squares[i] < 0:
                squares[i] = squared(&data[0] + first, last - first) + column * column
            if cut and half == SECOND_HALF:
                first = middle[i]
            elif cut and half == FIRST_HALF:
                last = middle[i]
            x, at, m = &data[0] + first, &indices[0] + first, last - first
            if cut and half == BOTH_HALVES:
                k = middle[i] - first
                gradient = sparse_dot(x, at, k, &w[0]) + sparse_dot(x + k, at + k, m - k, &w[0])
            else:
                gradient = sparse_dot(x, at, m, &w[0])
                if cut:
                    gradient = exchanged(&table[0], half, s - begin + 1, gradient, &ended)
                    if ended:
                        end = s
                        break
            gradient = gradient + offset[0] - y[i]
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
    return usual, end
