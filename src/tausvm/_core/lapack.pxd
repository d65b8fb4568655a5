"""Routines of LAPACK and BLAS for loops without the interpreter's lock.

Matrices are Fortran-ordered: a C-ordered matrix of rows is one of columns to these.
"""
ctypedef fused real:
    float
    double

cdef void multiply(bint transposed, int rows, int columns, int inner, float factor, const float* A,
                   const float* B, float keep, float* out) noexcept nogil
cdef int factorise_at(real* A, int n, int stride) noexcept nogil
cdef void solve_at(const real* factor, int n, int stride, real* B, int count) noexcept nogil
cdef void forward_at(const double* factor, int n, int stride, double* b) noexcept nogil
cdef void solve_right(const float* factor, int n, float* B, int rows) noexcept nogil
cdef void square(const float* A, int rows, int n, float* out) noexcept nogil
cdef int eigen_size(int n) noexcept nogil
cdef int eigen(float* A, int n, float* values, float* work, int* integers) noexcept nogil
