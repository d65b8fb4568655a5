"""Routines of LAPACK and BLAS for loops without the interpreter's lock, in single precision.

Matrices are Fortran-ordered: a C-ordered matrix of rows is one of columns to these.
"""
cdef void multiply(bint transposed, int rows, int columns, int inner, float factor, const float* A,
                   const float* B, float keep, float* out) noexcept nogil
cdef int factorise_single(float* A, int n) noexcept nogil
cdef void solve_single(const float* factor, int n, float* B, int count) noexcept nogil
