"""Approximations of (K + ridge)⁻¹, for loops without the interpreter's lock."""
from libc.stdint cimport int64_t


cdef class Inverse:
    cdef int n
    cdef void times(self, const int64_t* order, int live, const float* vectors,
                    float* out) noexcept nogil


cdef class LowRankInverse(Inverse):
    cdef readonly int rank
    cdef float[:, ::1] half, basis, weights, coordinates, turned
    cdef double[:, ::1] core
    cdef float[::1] values, scale, work
    cdef int[::1] integers
    cdef void of(self, const float* rows) noexcept nogil
    cdef bint with_floor(self, const float* rows, double floor) noexcept nogil
    cdef void serve(self, const double* ridges, int64_t count) noexcept nogil


cdef class FactorInverse(Inverse):
    cdef float[:, :, ::1] factors
    cdef float[:, ::1] gathered
    cdef int64_t[::1] group
    cdef int groups, stride
    cdef bint add(self, const float* rows, double ridge) noexcept nogil
