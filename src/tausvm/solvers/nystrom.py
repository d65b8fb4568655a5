"""Nyström approximations of K, from rows of it that are there anyway, to precondition with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..operators import KernelOperator
from .linalg import LinAlgError, Real, cholesky, cholesky_solve, solve_lower

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def landmark_factor(rows: NDArray[Real], core: Array, floor: float) -> NDArray[Real]:
    """Lᵀ, (landmarks, n), of K ≈ LLᵀ, from the rows of the landmarks and their own matrix.

    Its diagonal is raised by ``floor`` times its largest entry, and a hundred times more as often
    as rounding asks for it.
    """
    jitter = floor * (float(np.abs(core).max()) or 1.0)  # all landmarks may be zero rows
    while True:
        try:
            factor = cholesky(np.asfortranarray(core + jitter * np.eye(len(core))))
            return solve_lower(factor.astype(rows.dtype, copy=False), rows)
        except LinAlgError:
            jitter *= 100


class Nystrom:
    """K ≈ LLᵀ with L = K[:, landmarks] chol(K[landmarks, landmarks])⁻ᵀ.

    The factor L serves every diagonal, so it is built once for a path of C, τ and sign
    patterns; :meth:`prepare` then costs n·m² and :meth:`solve` 4·n·m operations.

    Parameters
    ----------
    gram : KernelOperator
    rank : int
        How many landmarks m; they are spread evenly over the rows.
    """

    def __init__(self, gram: KernelOperator, rank: int) -> None:
        n = len(gram)
        landmarks = np.unique(np.linspace(0, n - 1, min(rank, n)).astype(np.int64))
        gram.require(landmarks)
        rows = gram.rows[gram.slots[landmarks]].astype(np.float64)
        # rows may be float32: a ridge above their rounding keeps the factor meaningful
        floor = 1e-12 if gram.rows.dtype == np.float64 else 1e-6
        half = landmark_factor(rows, gram.block(landmarks, landmarks), floor)
        # single precision is enough to precondition with, and half the memory traffic
        self.L = np.asfortranarray(half.T, dtype=np.float32)
        self.rank = self.L.shape[1]

    def prepare(self, active: Index, diagonal: Array) -> None:
        """Set the system K[active, active] + diagonal that :meth:`solve` approximates."""
        self._L = self.L if len(active) == len(self.L) else self.L[active]
        self._inverse = 1.0 / diagonal
        scaled = self._L * np.sqrt(self._inverse).astype(np.float32)[:, None]
        small = np.asfortranarray(scaled.T @ scaled, dtype=np.float64)
        np.einsum("ii->i", small)[:] += 1.0
        self._factor = cholesky(small)

    def solve(self, v: Array) -> Array:
        """(L Lᵀ + diagonal)⁻¹ v, by Woodbury's formula."""
        scaled = self._inverse * v
        inner = cholesky_solve(self._factor, (self._L.T @ scaled.astype(np.float32)).astype(float))
        return scaled - self._inverse * (self._L @ inner.astype(np.float32))
