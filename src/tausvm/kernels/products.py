"""Blocks of a kernel matrix and products with it, in float64, without holding it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .gram import CHUNK_BYTES
from .points import Points, dense
from .scalar import Kernel

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Products(ABC):
    """A kernel matrix K + constant·11ᵀ of which blocks and products are asked for.

    A constant of 1 is a penalised offset: a feature that is 1 everywhere.
    """

    def __init__(self, constant: float = 0.0) -> None:
        self.constant = constant

    @abstractmethod
    def __len__(self) -> int:
        """How many samples there are."""

    @abstractmethod
    def diagonal(self) -> Array:
        """kᵢᵢ, with the constant."""

    @abstractmethod
    def _block(self, i: Index, j: Index) -> Array:
        """K[i][:, j] without the constant."""

    @abstractmethod
    def _product(self, beta: Array) -> Array:
        """Kβ without the constant, for a vector or a matrix of columns."""

    @abstractmethod
    def take(self, rows: Index) -> Products:
        """The products of some of the samples."""

    def block(self, i: Index, j: Index) -> Array:
        """K[i][:, j], C-ordered."""
        block = np.ascontiguousarray(self._block(i, j))
        if self.constant:
            block += self.constant
        return block

    def through(self, rows: Index, points: Index, columns: Array) -> Array:
        """K[rows][:, points] @ columns."""
        return self.block(rows, points) @ columns

    def roughly_through(self, points: Index, columns: Array) -> NDArray[np.float32]:
        """K[:, points] @ columns in float32, for a first look."""
        return self.through(np.arange(len(self)), points, columns).astype(np.float32)

    def product(self, beta: Array) -> Array:
        """Kβ for a vector or a matrix of columns."""
        values = self._product(beta)
        return values + self.constant * beta.sum(axis=0) if self.constant else values


class LinearProducts(Products):
    """⟨xᵢ, xⱼ⟩ of dense or CSR rows; a product goes through the d weights of the features."""

    def __init__(self, X: Any, constant: float = 0.0) -> None:
        super().__init__(constant)
        self.points = Points(X)
        self._transposed = sp.csr_matrix(X.T) if self.points.sparse else None

    def __len__(self) -> int:
        return len(self.points)

    def diagonal(self) -> Array:
        return self.points.squared_norms + self.constant

    def take(self, rows: Index) -> LinearProducts:
        return LinearProducts(self.points.X[rows], self.constant)

    def weights(self, beta: Array) -> Array:
        """Xᵀβ."""
        if self._transposed is not None:
            return np.asarray(self._transposed @ beta)
        return np.asarray(self.points.X.T @ beta)

    def _block(self, i: Index, j: Index) -> Array:
        X = self.points.X
        left = X if len(i) == len(self) else X[i]
        right = left if i is j else X[j]
        return dense(left @ right.T)

    def _product(self, beta: Array) -> Array:
        return np.asarray(self.points.X @ self.weights(beta))

    def through(self, rows: Index, points: Index, columns: Array) -> Array:
        if self.points.sparse:  # columns of weights would be dense
            return super().through(rows, points, columns)
        X = self.points.X
        values = np.asarray(X[rows] @ (X[points].T @ columns))
        return values + self.constant * columns.sum(axis=0) if self.constant else values

    def roughly_through(self, points: Index, columns: Array) -> NDArray[np.float32]:
        if self.points.sparse:
            return super().roughly_through(points, columns)
        weights = (self.points.X[points].T @ columns).astype(np.float32)
        values: NDArray[np.float32] = self._rough @ weights
        if self.constant:
            values += (self.constant * columns.sum(axis=0)).astype(np.float32)
        return values

    @cached_property
    def _rough(self) -> NDArray[np.float32]:
        return np.asarray(self.points.X, dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_rough"}


class KernelProducts(Products):
    """k(xᵢ, xⱼ), computed where it is asked for."""

    def __init__(self, kernel: Kernel, points: Points, constant: float = 0.0) -> None:
        super().__init__(constant)
        self.kernel = kernel
        self.points = points

    def __len__(self) -> int:
        return len(self.points)

    def diagonal(self) -> Array:
        return self.kernel.diagonal(self.points) + self.constant

    def take(self, rows: Index) -> KernelProducts:
        return KernelProducts(self.kernel, self.points.take(rows), self.constant)

    def _block(self, i: Index, j: Index) -> Array:
        columns = self.points.take(j)
        out = np.empty((len(i), len(j)))
        step = max(1, CHUNK_BYTES // (8 * max(len(j), 1)))
        for start in range(0, len(i), step):
            part = self.points.take(i[start : start + step])
            out[start : start + step] = self.kernel.between(part, columns)
        return out

    def _product(self, beta: Array) -> Array:
        rows = np.flatnonzero(beta if beta.ndim == 1 else beta.any(axis=1))
        out = np.zeros((len(self), *beta.shape[1:]))
        step = max(1, CHUNK_BYTES // (8 * len(self)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            out += self.kernel.between(self.points.take(part), self.points).T @ beta[part]
        return out


class MatrixProducts(Products):
    """A kernel matrix that was given."""

    def __init__(self, matrix: Array, constant: float = 0.0) -> None:
        super().__init__(constant)
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix) + self.constant

    def take(self, rows: Index) -> MatrixProducts:
        return MatrixProducts(self.matrix[np.ix_(rows, rows)], self.constant)

    def _block(self, i: Index, j: Index) -> Array:
        return self.matrix[np.ix_(i, j)]

    def _product(self, beta: Array) -> Array:
        return np.asarray(self.matrix @ beta)


class HeldProducts(Products):
    """The matrix of other products, held whole; products of a linear kernel stay with it."""

    def __init__(self, products: Products) -> None:
        super().__init__()
        self.products = products
        everything = np.arange(len(products))
        self.matrix = products.block(everything, everything)

    def __len__(self) -> int:
        return len(self.matrix)

    def diagonal(self) -> Array:
        return self.products.diagonal()

    def take(self, rows: Index) -> Products:
        return self.products.take(rows)

    def _block(self, i: Index, j: Index) -> Array:
        return self.matrix[np.ix_(i, j)]

    def _product(self, beta: Array) -> Array:
        if isinstance(self.products, LinearProducts):
            return self.products.product(beta)
        return np.asarray(self.matrix @ beta)

    def roughly_through(self, points: Index, columns: Array) -> NDArray[np.float32]:
        return np.asarray(self._rough[points].T @ columns.astype(np.float32))

    @cached_property
    def _rough(self) -> NDArray[np.float32]:
        return self.matrix.astype(np.float32)
