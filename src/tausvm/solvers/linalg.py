"""Dense factorisations cut into pieces short enough to interrupt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

Array = NDArray[np.float64]

#: a factorisation up to this order is one LAPACK call (a tenth of a second)
ONE_CALL = 1536
PANEL = 512


def cholesky(A: Array) -> Array:
    """The lower Cholesky factor of a Fortran-ordered matrix, in place.

    Large matrices go panel by panel, so that Python sees Ctrl-C in between.
    Raises LinAlgError where A is not positive definite.
    """
    n = len(A)
    if n <= ONE_CALL:
        factor, info = dpotrf(A, lower=1, overwrite_a=1, clean=0)
        if info:
            raise LinAlgError(f"not positive definite at order {info}")
        return factor
    for k in range(0, n, PANEL):
        e = min(k + PANEL, n)
        if k:
            for r in range(k, n, 4 * PANEL):
                s = min(r + 4 * PANEL, n)
                A[r:s, k:e] -= A[r:s, :k] @ A[k:e, :k].T
        A[k:e, k:e] = cholesky(np.asfortranarray(A[k:e, k:e]))
        if e < n:
            A[e:, k:e] = solve_triangular(
                A[k:e, k:e], A[e:, k:e].T, lower=True, check_finite=False
            ).T
    return A


def copy_symmetric(A: Array) -> Array:
    """A Fortran-ordered copy of a symmetric C-ordered matrix, in pieces.

    Memory that is touched for the first time can be slow to get: Ctrl-C is seen in between.
    """
    out = np.empty(A.shape, order="F")
    step = max(1, 2**20 // max(len(A), 1))
    for start in range(0, len(A), step):
        out.T[start : start + step] = A[start : start + step]
    return out


def cholesky_solve(factor: Array, b: Array) -> Array:
    """Solve A x = b for a lower Cholesky factor of A."""
    x, info = dpotrs(factor, b, lower=1)
    if info:
        raise LinAlgError(f"argument {-info} of potrs")
    return x


__all__ = ["LinAlgError", "cholesky", "cholesky_solve", "copy_symmetric"]
