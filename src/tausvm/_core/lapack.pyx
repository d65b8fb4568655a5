# distutils: language = c
"""LAPACK's Cholesky routines, and a product of matrices, without the interpreter's lock.

SciPy's wrappers hold the lock while they work, so that threads factorise one after another. The
routines behind them are the same; SciPy hands them out to compiled code.

Matrices are Fortran-ordered, float32 or float64, and only lower triangles are read.
"""
import re

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from scipy.linalg import cython_blas, cython_lapack

ctypedef fused real:
    float
    double

ctypedef void (*Factorise)(char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*Solve)(char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*SolveTriangular)(
    char*, char*, char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*Multiply)(char*, char*, int*, int*, int*, float*, const void*, int*, const void*, int*,
                          float*, void*, int*) noexcept nogil


def check_signature(name, signature, str arguments):
    """Refuse a routine that does not take these arguments; ImportError.

    ``signature`` is the C type that SciPy gives it. ``arguments`` has a letter for each: ``c`` for
    characters, ``i`` for C's int, ``r`` for real numbers of the kind that the name begins with. A
    SciPy with 64-bit integers (ILP64) would read and write beyond ours.
    """
    kind = name[0]
    real_name = "float" if kind == "s" else "double"
    # SciPy's names for float and double end in _s and _d
    types = {"c": "char", "i": "int", "r": rf"(?:{real_name}|\w+_{kind})"}
    wanted = ", ".join(types[letter] + r" \*" for letter in arguments)
    if not re.fullmatch(rf"void \({wanted}\)", signature):
        raise ImportError(
            f"tausvm needs a SciPy whose LAPACK takes 32-bit integers (LP64): {name} of this SciPy "
            f"has the signature {signature!r}"
        )


cdef void* routine(name, str arguments, library=cython_lapack) except NULL:
    capsule = library.__pyx_capi__[name]
    cdef const char* signature = PyCapsule_GetName(capsule)
    check_signature(name, signature.decode(), arguments)
    return PyCapsule_GetPointer(capsule, signature)


cdef Factorise spotrf = <Factorise>routine("spotrf", "cirii")
cdef Factorise dpotrf = <Factorise>routine("dpotrf", "cirii")
cdef Solve spotrs = <Solve>routine("spotrs", "ciiririi")
cdef Solve dpotrs = <Solve>routine("dpotrs", "ciiririi")
cdef SolveTriangular strtrs = <SolveTriangular>routine("strtrs", "ccciiririi")
cdef SolveTriangular dtrtrs = <SolveTriangular>routine("dtrtrs", "ccciiririi")
cdef Multiply sgemm = <Multiply>routine("sgemm", "cciiirririrri", cython_blas)


cdef void multiply(bint transposed, int rows, int columns, int inner, float factor, const float* A,
                   const float* B, float keep, float* out) noexcept nogil:
    """out ← factor·A·B + keep·out, or Aᵀ for A where ``transposed``."""
    cdef char plain = b"N", first = b"T" if transposed else b"N"
    cdef int long_side = inner if transposed else rows
    sgemm(&first, &plain, &rows, &columns, &inner, &factor, A, &long_side, B, &inner, &keep, out,
          &rows)


cdef int factorise_single(float* A, int n) noexcept nogil:
    """A ← its Cholesky factor; 0, or the order at which A is not positive definite."""
    cdef int info = 0
    cdef char lower = b"L"
    spotrf(&lower, &n, A, &n, &info)
    return info


cdef void solve_single(const float* factor, int n, float* B, int count) noexcept nogil:
    """B ← A⁻¹B, from the Cholesky factor of A."""
    cdef int info = 0
    cdef char lower = b"L"
    spotrs(&lower, &n, &count, <void*>factor, &n, B, &n, &info)


cdef int check_square(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t n) except -1:
    if rows != n or columns != n:
        raise ValueError(f"the matrix must be {n} × {n}, got {rows} × {columns}")
    return 0


def factorise(real[::1, :] A):
    """A ← its Cholesky factor; returns 0, or the order at which A is not positive definite."""
    cdef int n = A.shape[0], info = 0
    cdef char lower = b"L"
    check_square(A.shape[0], A.shape[1], n)
    if n > 0:
        with nogil:
            (spotrf if real is float else dpotrf)(&lower, &n, &A[0, 0], &n, &info)
    return info


def solve(const real[::1, :] factor, real[::1, :] B):
    """B ← A⁻¹B, from the Cholesky factor of A."""
    cdef int n = B.shape[0], count = B.shape[1], info = 0
    cdef char lower = b"L"
    check_square(factor.shape[0], factor.shape[1], n)
    if n > 0 and count > 0:
        with nogil:
            (spotrs if real is float else dpotrs)(
                &lower, &n, &count, <void*>&factor[0, 0], &n, &B[0, 0], &n, &info)


def solve_lower(const real[::1, :] factor, real[::1, :] B):
    """B ← L⁻¹B with L the lower triangle of ``factor``."""
    cdef int n = B.shape[0], count = B.shape[1], info = 0
    cdef char lower = b"L", plain = b"N"
    check_square(factor.shape[0], factor.shape[1], n)
    if n > 0 and count > 0:
        with nogil:
            (strtrs if real is float else dtrtrs)(
                &lower, &plain, &plain, &n, &count, <void*>&factor[0, 0], &n, &B[0, 0], &n, &info)
