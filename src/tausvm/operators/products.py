"""Kernel matrices of which whole blocks are asked for: what a walk along a path needs.

Everything is in float64, and nothing is held unless that is said.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..kernels.points import Points, dense
from ..kernels.scalar import Kernel
from .base import SECONDS_AN_ENTRY, Operator
from .kernel import kernel_block

Array = NDArray[np.float64]
Index = NDArray[np.intp]


#: dense rows with fewer entries than this share are multiplied as sparse ones
SPARSE_SHARE = 0.3
#: up to this share of sparse rows it is faster to gather them than to use all
GATHERED_SHARE = 0.25


class Products(Operator):
    """A kernel matrix K + constant·11ᵀ of which blocks and products are asked for.

    A constant of 1 is a penalised offset: a feature that is 1 everywhere.
    """

    def __init__(self, constant: float = 0.0) -> None:
        self.constant = constant

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    def certificate_seconds(self, support: int) -> float:
        return SECONDS_AN_ENTRY * support * len(self)

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

    def product(self, beta: Array) -> Array:
        """Kβ for a vector or a matrix of columns."""
        values = self._product(beta)
        return values + self.constant * beta.sum(axis=0) if self.constant else values


def _finite(values: Any) -> Any:
    """An array of kernel values, unless one is not a finite number."""
    # their sum tells it, and large ones may overflow in it
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        raise ValueError(
            "kernel must give finite numbers, got "
            f"{values[~np.isfinite(values)].flat[0]} between two rows of X"
        )
    return values


class LinearProducts(Products):
    """⟨xᵢ − centre, xⱼ − centre⟩ of dense or CSR rows, the latter without a centre; a product goes
    through the d weights of the features."""

    #: entries of X, columns, and multiply-adds of dense rows that a thread takes at a time: some
    #: tenths of a millisecond
    part_entries: int = 1 << 19
    part_columns: int = 32
    part_products: int = 1 << 24

    def __init__(self, X: Any, constant: float = 0.0, centre: Array | None = None) -> None:
        super().__init__(constant)
        self.points = Points(X if centre is None else X - centre)

    @cached_property
    def _form(self) -> Any:
        """The rows for products: sparse where that is faster."""
        X = self.points.X
        if self.points.sparse or np.count_nonzero(X) > SPARSE_SHARE * X.size:
            return X
        return sp.csr_matrix(X)

    @cached_property
    def _parts(self) -> list[Any]:
        """The same in parts, a few at a time for every thread."""
        return self._in_parts(self._form)

    @cached_property
    def _transposed(self) -> list[Any]:
        """Xᵀ in parts."""
        form = self._form
        return self._in_parts(sp.csr_matrix(form.T) if sp.issparse(form) else form.T)

    def _in_parts(self, X: Any) -> list[Any]:
        """Rows of X, without copies of their entries."""
        # products of dense rows with a vector are as fast as memory
        count = X.size // self.part_entries if sp.issparse(X) else 1
        edges = np.unique(np.linspace(0, X.shape[0], max(1, count) + 1, dtype=int))
        if not sp.issparse(X):
            return [X[a:b] for a, b in pairwise(edges)]
        return [
            sp.csr_matrix(
                (
                    X.data[X.indptr[a] : X.indptr[b]],
                    X.indices[X.indptr[a] : X.indptr[b]],
                    X.indptr[a : b + 1] - X.indptr[a],
                ),
                shape=(b - a, X.shape[1]),
            )
            for a, b in pairwise(edges)
        ]

    def _by_parts(self, parts: list[Any], columns: Array) -> Array:
        """Their product with a vector or a matrix of columns, shared out to threads."""
        if len(parts) == 1:
            return np.asarray(parts[0] @ columns)
        found: list[Any] = [None] * len(parts)

        def work(some: slice) -> None:
            found[some.start] = parts[some.start] @ columns

        self.share(work, len(parts), 1, shared=True)
        return np.concatenate(found)

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_form", "_parts", "_transposed")
        kept = super().__getstate__().items()
        return {name: value for name, value in kept if name not in derived}

    def __len__(self) -> int:
        return len(self.points)

    def diagonal(self) -> Array:
        return self.points.squared_norms + self.constant

    def take(self, rows: Index) -> LinearProducts:
        return LinearProducts(self.points.X[rows], self.constant)

    def weights(self, beta: Array) -> Array:
        """Xᵀβ."""
        if beta.ndim == 1 and sp.issparse(self._form):
            rows = np.flatnonzero(beta)
            if len(rows) < GATHERED_SHARE * len(self):
                return np.asarray(self._form[rows].T @ beta[rows])
        return self._by_parts(self._transposed, beta)

    def _block(self, i: Index, j: Index) -> Array:
        X = self.points.X
        left = X[i]
        right = left if i is j else X[j]
        if self.points.sparse:
            return dense(left @ right.T)
        block = np.empty((len(left), len(right)))

        def work(some: slice) -> None:
            np.matmul(left[some], right.T, out=block[some])

        step = max(1, self.part_products // max(right.size, 1))
        self.share(work, len(left), step, shared=left.size * len(right) > self.part_products)
        return block

    def _product(self, beta: Array) -> Array:
        return self._by_parts(self._parts, self.weights(beta))

    def through(self, rows: Index, points: Index, columns: Array) -> Array:
        a_row = self._form.size / len(self)
        by_kernel = len(rows) * len(points) * (a_row + columns.shape[1])
        if by_kernel < self.cost_by_weights(len(rows), columns):
            return super().through(rows, points, columns)
        return self.through_weights(rows, points, columns)

    def cost_by_weights(self, n_rows: int, columns: Array) -> float:
        """How many operations :meth:`through_weights` takes."""
        n_points, n_columns = columns.shape
        a_row = self._form.size / len(self)  # entries
        return n_columns * (a_row * (n_points + n_rows) + self.points.X.shape[1])

    def through_weights(self, rows: Index, points: Index, columns: Array) -> Array:
        """K[rows][:, points] @ columns without kernel values."""
        form, n_columns = self._form, columns.shape[1]
        # gathering most of the rows costs more than a product with all
        many = 2 * len(rows) > len(self)
        of_points, of_rows = form[points].T, form if many else form[rows]
        values = np.empty((len(rows), n_columns))

        def work(some: slice) -> None:
            product = of_rows @ (of_points @ columns[:, some])
            values[:, some] = product[rows] if many else product

        least = self.shared_entries if sp.issparse(form) else self.part_products
        if self.cost_by_weights(len(rows), columns) > least:
            self.share(work, n_columns, self.part_columns, shared=True)
        else:
            work(slice(n_columns))
        return values + self.constant * columns.sum(axis=0) if self.constant else values


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
        return _finite(kernel_block(self, self.kernel, self.points, i, j))

    def _product(self, beta: Array) -> Array:
        rows = np.flatnonzero(beta if beta.ndim == 1 else beta.any(axis=1))
        out = np.zeros((len(self), *beta.shape[1:]))
        step = self.chunk_rows(len(self))
        for start in range(0, len(rows), step):
            self.pause()
            part = rows[start : start + step]
            values = _finite(self.kernel.between(self.points.take(part), self.points))
            out += values.T @ beta[part]
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
        return self.matrix.take(i, axis=0).take(j, axis=1)  # faster than both at once

    def _product(self, beta: Array) -> Array:
        return np.asarray(self.matrix @ beta)


class HeldProducts(MatrixProducts):
    """The matrix of other products, held whole; products of a linear kernel stay with it."""

    def __init__(self, products: Products, matrix: Array | None = None) -> None:
        everything = np.arange(len(products))
        super().__init__(products.block(everything, everything) if matrix is None else matrix)
        self.products = products

    def diagonal(self) -> Array:
        return self.products.diagonal()

    def take(self, rows: Index) -> HeldProducts:
        return HeldProducts(self.products.take(rows), self.matrix[np.ix_(rows, rows)])

    def _product(self, beta: Array) -> Array:
        linear = isinstance(self.products, LinearProducts)
        return self.products.product(beta) if linear else super()._product(beta)

    def through(self, rows: Index, points: Index, columns: Array) -> Array:
        products = self.products
        # gathering an entry of the matrix costs several operations, multiplying it less than one
        by_matrix = len(rows) * len(points) * (8 + 0.25 * columns.shape[1])
        if (
            isinstance(products, LinearProducts)
            and products.cost_by_weights(len(rows), columns) < by_matrix
        ):
            return products.through_weights(rows, points, columns)
        return super().through(rows, points, columns)
