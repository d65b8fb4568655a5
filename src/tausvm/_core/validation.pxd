"""Validation rows, for the loops that are judged by them while they run."""
from libc.stdint cimport int64_t


cdef class Validation:
    cdef const float[:, ::1] rows
    cdef const double[::1] y
    cdef const double[:, :, ::1] terms
    cdef double low, high, errors
    cdef double[:, :, ::1] table
    cdef readonly object predict, losses
    cdef void judge(self, int64_t loss, int64_t cost, const double* beta, double b) noexcept nogil
    cdef void note(self, int64_t loss, int64_t cost, int64_t row, double value) noexcept nogil
    cdef bint over(self, int64_t loss, int64_t cost) noexcept nogil
