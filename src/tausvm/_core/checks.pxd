"""Lengths and indices that a core relies on, looked at once a call: what does not fit is a ValueError
and not a read beyond an array."""
from libc.stdint cimport int64_t


cdef inline int check(bint holds, str what) except -1:
    if not holds:
        raise ValueError(what)
    return 0


cdef inline int check_places(const int64_t[::1] places, Py_ssize_t bound, str what) except -1:
    """All below ``bound``, and none negative."""
    cdef Py_ssize_t k
    cdef int64_t least = 0, most = -1
    for k in range(places.shape[0]):
        least = min(least, places[k])
        most = max(most, places[k])
    return check(least >= 0 and most < bound, what)


cdef inline int check_rows(Py_ssize_t width, Py_ssize_t stride, Py_ssize_t item, Py_ssize_t count,
                           const int64_t[::1] slots, const int64_t[::1] gather,
                           Py_ssize_t m) except -1:
    """Rows of a cache of ``count`` rows for m working variables, as PairState.run has them; a
    negative slot is a row that is not there."""
    cdef Py_ssize_t k
    cdef int64_t most = -1
    check(slots.shape[0] == m, "slots must have an entry for each variable")
    for k in range(m):
        most = max(most, slots[k])
    check(most < count, "slots must be smaller than the number of rows")
    check(stride == item or width <= 1, "rows must be contiguous")
    if gather is None:
        return check(width >= m, "rows must have a column for each variable")
    check(gather.shape[0] == m, "gather must have an entry for each variable")
    return check_places(gather, width, "gather must name columns of rows")


ctypedef fused single_or_double:
    float
    double


cdef inline const single_or_double* working_row(
        const single_or_double[:, :] rows, const int64_t[::1] slots, const int64_t[::1] gather,
        bint gathering, Py_ssize_t i, single_or_double[::1] scratch) noexcept nogil:
    """Row i of a working problem: where it lies, or its columns ``gather`` in ``scratch``."""
    cdef Py_ssize_t k
    if not gathering:
        return &rows[slots[i], 0]
    for k in range(scratch.shape[0]):
        scratch[k] = rows[slots[i], gather[k]]
    return &scratch[0]
