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
