"""Problems on parts of the data, for the loops that solve all of a part together."""
from libc.stdint cimport int64_t

from .validation cimport Judged, Validation


cdef class Part:
    cdef readonly int64_t n, losses
    cdef readonly bint offset
    cdef const int64_t[::1] rows
    cdef const double[::1] y, constants
    cdef const double[:, :, ::1] terms
    cdef readonly Judged judged
    #: of squared losses: None for others
    cdef const float[::1] weight, y32
    cdef const double[:, ::1] ridges


cdef class Shared:
    cdef const double[::1] costs
    cdef const unsigned char[:, ::1] wanted
    cdef double gap, share
    cdef object stop
    cdef readonly bint halted
    cdef int64_t room, spent
    # where solutions go, by part
    cdef double[:, :, :, ::1] betas
    cdef double[:, :, ::1] intercepts, gaps, primals
    cdef const unsigned char[:, :, ::1] begun
    # the part at hand
    cdef Part part
    cdef int64_t place
    cdef Validation validation
    cdef const float* rows
    cdef const float* judging
    #: the rows in float64 too, where they are at most so many
    cdef int64_t wide
    cdef const double* exact
    cdef float[::1] scratch
    cdef double[::1] scratch64
    cdef int hold(self, int64_t count, int64_t n) except -1
    cdef int run(self) except -1
    cdef bint look(self, int64_t work) except -1 nogil
    cdef void note(self, int64_t loss, int64_t cost, double b, double gap,
                   double primal) noexcept nogil
    cdef bint over(self, int64_t loss, int64_t cost) noexcept nogil
