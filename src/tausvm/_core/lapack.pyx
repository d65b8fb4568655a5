# distutils: language = c
"""LAPACK's Cholesky routines, and a product of matrices, without the interpreter's lock.

SciPy's wrappers hold the lock while they work, so that threads factorise one after another. The
routines behind them are the same; SciPy hands them out to compiled code.

Matrices are Fortran-ordered, float32 or float64, and only lower triangles are read.
"""
import re

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from scipy.linalg import cython_blas, cython_lapack

ctypedef void (*Factorise)(char*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*Solve)(char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*SolveTriangular)(
    char*, char*, char*, int*, int*, void*, int*, void*, int*, int*) noexcept nogil
ctypedef void (*SolveVector)(
    char*, char*, char*, int*, const void*, int*, void*, int*) noexcept nogil
ctypedef void (*Multiply)(char*, char*, int*, int*, int*, float*, const void*, int*, const void*, int*,
                          float*, void*, int*) noexcept nogil
ctypedef void (*SolveRight)(char*, char*, char*, char*, int*, int*, float*, const void*, int*, void*,
                            int*) noexcept nogil
ctypedef void (*Square)(char*, char*, int*, int*, float*, const void*, int*, float*, void*,
                        int*) noexcept nogil
ctypedef void (*Eigen)(char*, char*, int*, void*, int*, void*, void*, int*, int*, int*,
                       int*) noexcept nogil


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
cdef SolveVector strsv = <SolveVector>routine("strsv", "ccciriri", cython_blas)
cdef SolveVector dtrsv = <SolveVector>routine("dtrsv", "ccciriri", cython_blas)
cdef Eigen ssyevd = <Eigen>routine("ssyevd", "ccirirriiii")
cdef Multiply sgemm = <Multiply>routine("sgemm", "cciiirririrri", cython_blas)
cdef SolveRight strsm = <SolveRight>routine("strsm", "cccciirriri", cython_blas)
cdef Square ssyrk = <Square>routine("ssyrk", "cciirrirri", cython_blas)


#: up to so many columns are solved as vectors: routines for matrices take four to eight times as
#: long for one column of order 300 to 3,000, and as long for four
cdef enum:
    FEW_COLUMNS = 4


cdef void multiply(bint transposed, int rows, int columns, int inner, float factor, const float* A,
                   const float* B, float keep, float* out) noexcept nogil:
    """out ← factor·A·B + keep·out, or Aᵀ for A where ``transposed``."""
    cdef char plain = b"N", first = b"T" if transposed else b"N"
    cdef int long_side = inner if transposed else rows
    sgemm(&first, &plain, &rows, &columns, &inner, &factor, A, &long_side, B, &inner, &keep, out,
          &rows)


cdef int factorise_at(real* A, int n, int stride) noexcept nogil:
    """A ← its Cholesky factor; 0, or the order at which A is not positive definite.

    Columns lie ``stride`` numbers apart.
    """
    cdef int info = 0
    cdef char lower = b"L"
    (spotrf if real is float else dpotrf)(&lower, &n, A, &stride, &info)
    return info


cdef void solve_at(const real* factor, int n, int stride, real* B, int count) noexcept nogil:
    """B ← A⁻¹B, from the Cholesky factor of A."""
    cdef int info = 0, k
    cdef char lower = b"L"
    if count > FEW_COLUMNS:
        (spotrs if real is float else dpotrs)(
            &lower, &n, &count, <void*>factor, &stride, B, &n, &info)
        return
    for k in range(count):
        substitute(False, factor, n, stride, B + <Py_ssize_t>k * n)
        substitute(True, factor, n, stride, B + <Py_ssize_t>k * n)


cdef void substitute(bint transposed, const real* factor, int n, int stride, real* b) noexcept nogil:
    """b ← L⁻¹b with L the lower triangle of ``factor``, or L⁻ᵀb where ``transposed``."""
    cdef int one = 1
    cdef char lower = b"L", plain = b"N", way = b"T" if transposed else b"N"
    (strsv if real is float else dtrsv)(&lower, &way, &plain, &n, factor, &stride, b, &one)


cdef void forward_at(const double* factor, int n, int stride, double* b) noexcept nogil:
    """b ← L⁻¹b with L the lower triangle of ``factor``."""
    substitute(False, factor, n, stride, b)


cdef void solve_right(const float* factor, int n, float* B, int rows) noexcept nogil:
    """B ← B·L⁻ᵀ with L the lower triangle of ``factor``, of order n, and B of so many rows."""
    cdef char right = b"R", lower = b"L", transposed = b"T", plain = b"N"
    cdef float one = 1
    strsm(&right, &lower, &transposed, &plain, &rows, &n, &one, factor, &n, B, &rows)


cdef void square(const float* A, int rows, int n, float* out) noexcept nogil:
    """The lower triangle of out ← AᵀA for A of so many rows and n columns."""
    cdef char lower = b"L", transposed = b"T"
    cdef float one = 1, zero = 0
    ssyrk(&lower, &transposed, &n, &rows, &one, A, &rows, &zero, out, &n)


cdef int eigen_size(int n) noexcept nogil:
    """How many numbers :func:`eigen` works with, and how many integers at most."""
    return 2 * n * n + 6 * n + 3


cdef int eigen(float* A, int n, float* values, float* work, int* integers) noexcept nogil:
    """A ← its eigenvectors, one a column, for ascending values; 0 where they were found."""
    cdef char vectors = b"V", lower = b"L"
    cdef int size = eigen_size(n), info = 0
    ssyevd(&vectors, &lower, &n, A, &n, values, work, &size, integers, &size, &info)
    return info


cdef int check_square(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t n) except -1:
    if rows != n or columns != n:
        raise ValueError(f"the matrix must be {n} × {n}, got {rows} × {columns}")
    return 0


def factorise(real[::1, :] A):
    """A ← its Cholesky factor; returns 0, or the order at which A is not positive definite."""
    cdef int n = A.shape[0], info = 0
    check_square(A.shape[0], A.shape[1], n)
    if n > 0:
        with nogil:
            info = factorise_at(&A[0, 0], n, n)
    return info


def solve(const real[::1, :] factor, real[::1, :] B):
    """B ← A⁻¹B, from the Cholesky factor of A."""
    cdef int n = B.shape[0], count = B.shape[1]
    check_square(factor.shape[0], factor.shape[1], n)
    if n > 0 and count > 0:
        with nogil:
            solve_at(&factor[0, 0], n, n, &B[0, 0], count)


def solve_lower(const real[::1, :] factor, real[::1, :] B):
    """B ← L⁻¹B with L the lower triangle of ``factor``."""
    cdef int n = B.shape[0], count = B.shape[1], info = 0, k
    cdef char lower = b"L", plain = b"N"
    check_square(factor.shape[0], factor.shape[1], n)
    if n == 0:
        return
    if count <= FEW_COLUMNS:
        for k in range(count):
            substitute(False, &factor[0, 0], n, n, &B[0, k])
    else:
        with nogil:
            (strtrs if real is float else dtrtrs)(
                &lower, &plain, &plain, &n, &count, <void*>&factor[0, 0], &n, &B[0, 0], &n, &info)
