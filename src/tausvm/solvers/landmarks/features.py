"""Landmark features Φ = K(X, Z) L⁻ᵀ, whose inner products are those of the approximate kernel.

They are computed in float64, and held in float32 where that is enough: in memory where they fit,
else in a file without a name that is mapped into memory and is gone with the process.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import solve_triangular

from ...operators import LinearOperator, Portions, StreamedKernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class LandmarkFeatures:
    """Φ of all rows, which grows with the landmarks.

    Parameters
    ----------
    gram : StreamedKernel
    dtype : float32 or float64
    megabytes : float
        For Φ in memory.
    hessian_rows : int
        Rows that are multiplied with themselves at a time.
    """

    def __init__(
        self, gram: StreamedKernel, dtype: DTypeLike, megabytes: float, hessian_rows: int
    ) -> None:
        self.gram = gram
        self.dtype = np.dtype(dtype)
        self.megabytes = megabytes
        self.hessian_rows = hessian_rows
        self.landmarks: Index = np.empty(0, dtype=np.int64)
        self.lower = np.empty((0, 0))
        self.values: NDArray[Any] = self._room(0)

    @property
    def operator(self) -> LinearOperator:
        """ΦΦᵀ, the approximate kernel matrix."""
        block = max(Portions.block, self.hessian_rows * self.values.shape[1])
        return LinearOperator(self.values, portions=Portions(block=block))

    def extend(self, landmarks: Index, lower: Array) -> None:
        """Take these landmarks, of which the ones before are the first."""
        old, new = self.values.shape[1], len(landmarks)
        inverse = solve_triangular(lower, np.eye(new), lower=True, check_finite=False)
        fresh = np.ascontiguousarray(inverse[old:].T)
        values = self._room(new)

        def fill(part: int, rows: slice, block: Array) -> None:
            values[rows, :old] = self.values[rows]
            # from kernel values, not from features that were rounded: the last pivots are small
            values[rows, old:] = block @ fresh

        self.gram.over_rows(self.gram.points.take(landmarks), fill)
        self.landmarks, self.lower, self.values = landmarks, lower, values

    def left(self, rounding: float) -> Array:
        """Rᵢᵢ = Kᵢᵢ − ‖φᵢ‖², raised by a share of Kᵢᵢ that the features may have rounded."""
        diagonal = self.gram.diagonal
        return np.maximum(diagonal - self.operator.squares(), 0.0) + rounding * diagonal

    def coefficients(self, weights: Array) -> Array:
        """α of Σⱼ αⱼ k(zⱼ, ·) from weights of the features."""
        return np.asarray(
            solve_triangular(self.lower, weights, lower=True, trans=1, check_finite=False)
        )

    def weights(self, values: Array) -> Array:
        """Weights of the features of the projection of a function with these values at Z."""
        return np.asarray(solve_triangular(self.lower, values, lower=True, check_finite=False))

    def _room(self, columns: int) -> NDArray[Any]:
        shape = len(self.gram), columns
        size = shape[0] * columns * self.dtype.itemsize
        if size <= self.megabytes * 2**20:
            return np.empty(shape, dtype=self.dtype)
        with tempfile.TemporaryFile() as file:  # its pages live on until the array is gone
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                raise MemoryError(
                    f"landmark features of {shape[0]:,} rows and {columns:,} landmarks take "
                    f"{size / 2**20:,.0f} MB, more than cache_size={self.megabytes:g}, and the "
                    f"folder for temporary files has no room for them: {error}"
                ) from error
            return np.asarray(np.memmap(file, dtype=self.dtype, mode="r+", shape=shape))


__all__ = ["LandmarkFeatures"]
