"""Samples as the kernels read them: dense or CSR, with norms and transposes kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

FloatArray = NDArray[np.float64] | NDArray[np.float32]

#: bytes of inner products that are kept: those of 2,900 points with each other
KEPT_BYTES = 64 << 20


class Points:
    """A set of points.

    Parameters
    ----------
    X : float64 array or CSR matrix of shape (n, d)
    """

    #: by unit and precision; replaced, never changed
    _features: Mapping[tuple[float, np.dtype[Any]], FloatArray] = MappingProxyType({})

    def __init__(self, X: NDArray[np.float64] | sp.csr_matrix) -> None:
        self.X = X
        self.sparse = sp.issparse(X)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was computed from the points."""
        return {"X": self.X, "sparse": self.sparse}

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
        """‖x‖², infinite where that overflows."""
        with np.errstate(over="ignore"):
            if self.sparse:
                return np.asarray(sp.csr_matrix(self.X).power(2).sum(axis=1)).ravel()
            return np.einsum("ij,ij->i", self.X, self.X)

    @cached_property
    def longest(self) -> float:
        """The largest norm of a point, without overflow."""
        largest = float(self.squared_norms.max(initial=0.0))
        if np.isfinite(largest):
            return float(np.sqrt(largest))
        return self.size * float(np.sqrt(Points(self.X / self.size).squared_norms.max()))

    @cached_property
    def size(self) -> float:
        """The largest coordinate, without its sign."""
        entries: Any = self.X.data if self.sparse else self.X
        return float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))

    def rows(self, unit: float, dtype: DTypeLike) -> FloatArray:
        """(n, d) in multiples of ``unit``."""
        return np.ascontiguousarray(self.X / unit, dtype=dtype)

    def features(self, unit: float, dtype: DTypeLike) -> FloatArray:
        """(d, n), one contiguous row a feature, in multiples of ``unit``; kept."""
        key = unit, np.dtype(dtype)
        features = self._features.get(key)
        if features is None:
            features = np.empty(self.X.shape[::-1], dtype=dtype)
            for feature, column in zip(features, self.X.T, strict=True):
                np.divide(column, unit, out=feature, casting="same_kind")
            # of one unit only, in either precision
            others = {k: v for k, v in self._features.items() if k[0] == unit}
            self._features = {key: features, **others}
        return features

    @cached_property
    def narrow(self) -> sp.csr_matrix:
        """CSR with 32-bit indices, which is all that some code takes."""
        X = sp.csr_matrix(self.X)
        if X.indices.dtype == X.indptr.dtype == np.int32:
            return X
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return sp.csr_matrix(parts, shape=X.shape)

    def products(self, other: Points) -> NDArray[np.float64]:
        """Inner products, (len(self), len(other))."""
        with np.errstate(over="ignore", invalid="ignore"):  # whoever asks looks at the values
            product = self.X @ other.X.T
        return np.ascontiguousarray(dense(product), dtype=np.float64)

    def kept_products(self, other: Points) -> NDArray[np.float64]:
        """The same to be read alone: those of not too many points with each other are kept, for
        kernels that differ in γ."""
        if other is not self or 8 * len(self) ** 2 > KEPT_BYTES:
            return self.products(other)
        return self._own_products

    @cached_property
    def _own_products(self) -> NDArray[np.float64]:
        return self.products(self)


def mapped(X: Any, weights: NDArray[np.float64] | None) -> Any:
    """The rows of X under a linear map: a weight a feature (d,), a matrix (d, d), or None for none.

    A sparse X stays sparse under weights; a matrix makes it dense.
    """
    if weights is None:
        return X
    if weights.ndim == 2:
        return np.asarray(X @ weights)
    return sp.csr_matrix(X @ sp.diags_array(weights)) if sp.issparse(X) else X * weights


def dense(values: Any) -> NDArray[np.float64]:
    """A sparse matrix as an array, an array as it is."""
    return values.toarray() if sp.issparse(values) else np.asarray(values)
