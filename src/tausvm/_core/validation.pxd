"""Validation rows, for the loops that are judged by them while they run."""
from libc.stdint cimport int64_t


cdef class Judged:
    cdef readonly int64_t m, losses
    cdef const double[::1] y
    cdef const double[:, :, ::1] terms
    cdef double low, high


cdef class Validation:
    cdef Judged judged
    cdef double[:, :, ::1] table
    cdef double errors
    cdef readonly object losses
    cdef void judge(self, int64_t loss, int64_t cost, const float* rows, const double* beta,
                    int64_t n, double b) noexcept nogil
    cdef void note(self, int64_t loss, int64_t cost, int64_t row, double value) noexcept nogil
    cdef bint over(self, int64_t loss, int64_t cost) noexcept nogil
