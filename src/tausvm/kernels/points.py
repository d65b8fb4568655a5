"""Samples as the kernels read them: dense or CSR, with norms and transposes kept."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Points:
    """A set of points.

    Parameters
    ----------
    X : float64 array or CSR matrix of shape (n, d)
    """

    def __init__(self, X: NDArray[np.float64] | sp.csr_matrix) -> None:
        self.X = X
        self.sparse = sp.issparse(X)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def take(self, index: NDArray[np.int64] | slice) -> Points:
        """Some of the points."""
        return Points(self.X[index])

    @cached_property
    def squared_norms(self) -> NDArray[np.float64]:
        if self.sparse:
            return np.asarray(sp.csr_matrix(self.X).power(2).sum(axis=1)).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    @cached_property
    def features64(self) -> NDArray[np.float64]:
        """(d, n): one contiguous row a feature."""
        return np.ascontiguousarray(self.X.T)

    @cached_property
    def features32(self) -> NDArray[np.float32]:
        return np.ascontiguousarray(self.X.T, dtype=np.float32)

    def products(self, other: Points) -> NDArray[np.float64]:
        """Inner products, (len(self), len(other))."""
        product = self.X @ other.X.T
        return np.ascontiguousarray(dense(product), dtype=np.float64)


def dense(values: Any) -> NDArray[np.float64]:
    """A sparse matrix as an array, an array as it is."""
    return values.toarray() if sp.issparse(values) else np.asarray(values)
