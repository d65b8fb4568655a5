# distutils: language = c
"""LAPACK's Cholesky routines without the interpreter's lock.

SciPy's wrappers hold the lock while they work, so that threads factorise one after another. The
routines behind them are the same; SciPy hands them out to compiled code.

Matrices are Fortran-ordered, float32 or float64, and only lower triangles are read.
"""
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from scipy.linalg import cython_lapack

ctypedef fused real:
    float
    double

ctypedef void (*Factorise)(char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*Solve)(char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*SolveTriangular)(
    char*, char*, char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil


cdef void* routine(name) except NULL:
    capsule = cython_lapack.__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef Factorise spotrf = <Factorise>routine("spotrf"), dpotrf = <Factorise>routine("dpotrf")
cdef Solve spotrs = <Solve>routine("spotrs"), dpotrs = <Solve>routine("dpotrs")
cdef SolveTriangular strtrs = <SolveTriangular>routine("strtrs")
cdef SolveTriangular dtrtrs = <SolveTriangular>routine("dtrtrs")


def factorise(real[::1, :] A):
    """A ← its Cholesky factor; returns 0, or the order at which A is not positive definite."""
    cdef int n = A.shape[0], info = 0
    cdef char lower = b"L"
    if n > 0:
        with nogil:
            (spotrf if real is float else dpotrf)(&lower, &n, &A[0, 0], &n, &info)
    return info


def solve(const real[::1, :] factor, real[::1, :] B):
    """B ← A⁻¹B, from the Cholesky factor of A."""
    cdef int n = B.shape[0], count = B.shape[1], info = 0
    cdef char lower = b"L"
    if n > 0 and count > 0:
        with nogil:
            (spotrs if real is float else dpotrs)(
                &lower, &n, &count, <void*>&factor[0, 0], &n, &B[0, 0], &n, &info)


def solve_lower(const real[::1, :] factor, real[::1, :] B):
    """B ← L⁻¹B with L the lower triangle of ``factor``."""
    cdef int n = B.shape[0], count = B.shape[1], info = 0
    cdef char lower = b"L", plain = b"N"
    if n > 0 and count > 0:
        with nogil:
            (strtrs if real is float else dtrtrs)(
                &lower, &plain, &plain, &n, &count, <void*>&factor[0, 0], &n, &B[0, 0], &n, &info)
