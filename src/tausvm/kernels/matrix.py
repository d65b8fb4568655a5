"""Matrix-valued kernels K(x, x') ∈ Rᵖˣᵖ and their products, without the np×np matrix.

======================  =====================================================
:class:`SeparableGram`      K(x, x') = k(x, x')·B: an n×n and a p×p matrix
:class:`TransformableGram`  K(x, x')ᵢⱼ = k(Tᵢ(x), Tⱼ(x')): p² blocks, one at a time
======================  =====================================================
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..operators.base import CHUNK_BYTES, SECONDS_AN_ENTRY
from .points import Points
from .scalar import Kernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: eigenvalues of B up to this share of the largest are rounding
NEGLIGIBLE = 1e-14
#: entries of the matrix between two moments at which a product may be ended
PIECE = 1 << 25
#: a given B may be asymmetric or indefinite by this share of its largest entry
ROUNDING = 1e-10


def level_kernel(tau: Array, gamma_tau: float) -> Array:
    """B = exp(−gamma_tau·(τᵢ − τⱼ)²): near levels have near curves."""
    values: Array = np.exp(-gamma_tau * np.square(np.subtract.outer(tau, tau)))
    return values


def check_output_matrix(B: Any, p: int, name: str = "output_kernel") -> Array:
    """A given B as a float64 array; a ValueError unless it is (p, p), symmetric and PSD."""
    try:
        matrix = np.array(B, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a ({p}, {p}) matrix of numbers, got {B!r}") from None
    if matrix.shape != (p, p):
        raise ValueError(f"{name} must be of shape ({p}, {p}), got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got {B!r}")
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > ROUNDING * scale:
        raise ValueError(f"{name} must be symmetric, got {B!r}")
    matrix = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -ROUNDING * scale or scale == 0.0:
        raise ValueError(
            f"{name} must be positive semidefinite and not zero, got one whose smallest "
            f"eigenvalue is {smallest:.3g}"
        )
    return matrix


@dataclass(frozen=True)
class TransformableKernel:
    """K(x, x')ᵢⱼ = k(Tᵢ(x), Tⱼ(x')): one transformation of the features an output.

    With a polynomial k it is the transformable kernel of the paper's Example 1. Outputs that
    should look at the features in different ways, some of them only or on other scales, can
    do so and still share what they learn.

    Parameters
    ----------
    transformations : sequence of callables
        Tⱼ takes the rows of X and returns as many rows; all give the same number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm.kernels import TransformableKernel
    >>> kernel = TransformableKernel([lambda X: X, lambda X: 2 * X])
    >>> [image.shape for image in kernel.images(np.ones((3, 2)))]
    [(3, 2), (3, 2)]
    """

    transformations: Sequence[Callable[[Any], Any]]

    def __len__(self) -> int:
        return len(self.transformations)

    def images(self, X: Any) -> list[Any]:
        """Tⱼ(X) for every j: arrays, or CSR matrices where one of them is sparse."""
        images = [T(X) for T in self.transformations]
        sparse = any(sp.issparse(image) for image in images)
        try:
            images = [
                sp.csr_matrix(image, dtype=np.float64)
                if sparse
                else np.ascontiguousarray(image, dtype=np.float64)
                for image in images
            ]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"output_kernel: the transformations must return arrays of numbers: {error}"
            ) from None
        shapes = {image.shape for image in images}
        if len(shapes) != 1 or images[0].ndim != 2 or images[0].shape[0] != X.shape[0]:
            raise ValueError(
                "output_kernel: the transformations must return arrays of one shape with "
                f"{X.shape[0]} rows, got shapes {sorted(shapes)}"
            )
        for image in images:
            if not np.isfinite(image.data if sparse else image).all():
                raise ValueError(
                    "output_kernel: the transformations must return finite numbers, got inf or NaN"
                )
        return images


class MatrixGram(ABC):
    """The Gram matrix of a matrix-valued kernel as an operator on coefficients (n, p)."""

    #: n and p
    shape: tuple[int, int]
    #: bytes that solvers may use beside what the matrix holds
    room: float = np.inf
    #: called between parts of long work; ends it by an exception
    watch: Callable[[], None] | None = None

    def pause(self) -> None:
        """A moment at which long work may be ended."""
        if self.watch is not None:
            self.watch()

    @abstractmethod
    def scaled(self, factor: float) -> MatrixGram:
        """The matrix times a positive number, for the same room."""

    @property
    @abstractmethod
    def product_seconds(self) -> float:
        """About how long a product takes."""

    @abstractmethod
    def product(self, alpha: Array) -> Array:
        """f(xᵢ) = Σⱼ K(xᵢ, xⱼ) αⱼ, shape (n, p)."""

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K(xᵢ, xᵢ), shape (n, p, p)."""

    @abstractmethod
    def column(self, i: int, k: int) -> Array:
        """K(x, xᵢ)eₖ at all x, shape (n, p)."""

    @abstractmethod
    def entries(self, i: Index, j: Index) -> Array:
        """K(xᵢ, xᵢ')ⱼⱼ' between the entries (i, j) of some outputs of some samples."""

    @abstractmethod
    def rows(self, index: Index) -> tuple[Array, Index]:
        """Rows for coordinate steps at some samples, and where the row of each is.

        n numbers k(xᵢ, ·) where the kernel is k·B, else the p columns of the sample's block.
        """


class UnknownGram(MatrixGram):
    """A matrix for which there was no time: α = 0 is the only point that can be judged."""

    product_seconds = np.inf

    def __init__(self, n: int, p: int) -> None:
        self.shape = n, p

    def scaled(self, factor: float) -> UnknownGram:
        return self

    def product(self, alpha: Array) -> Array:
        raise self._unknown

    @property
    def diagonal(self) -> Array:
        raise self._unknown

    def column(self, i: int, k: int) -> Array:
        raise self._unknown

    def entries(self, i: Index, j: Index) -> Array:
        raise self._unknown

    def rows(self, index: Index) -> tuple[Array, Index]:
        raise self._unknown

    @property
    def _unknown(self) -> RuntimeError:
        return RuntimeError("the Gram matrix was not computed")


class SeparableGram(MatrixGram):
    """k(x, x')·B with the n×n matrix of k held in float64.

    Parameters
    ----------
    K : array (n, n)
    B : array (p, p)
    features : array or CSR matrix (n, d), or None
        Where k(x, x') = ⟨x, x'⟩: products then are those of the weights, as predictions are,
        and round like them.
    """

    def __init__(self, K: Array, B: Array, features: Any = None) -> None:
        self.features = features
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.B = np.ascontiguousarray(B, dtype=np.float64)
        self.shape = len(self.K), len(self.B)

    def scaled(self, factor: float) -> SeparableGram:
        if factor == 1.0:
            return self
        other = SeparableGram(self.K, self.B * factor, self.features)
        other.room = self.room
        return other

    @property
    def product_seconds(self) -> float:
        n, p = self.shape
        return SECONDS_AN_ENTRY * n * n * p

    def product(self, alpha: Array) -> Array:
        if self.features is not None:
            support = np.flatnonzero(alpha.any(axis=1))
            weights = self.B @ np.ascontiguousarray(alpha[support].T)
            return np.asarray(self.features @ np.asarray(weights @ self.features[support]).T)
        n = len(self.K)
        mixed = alpha @ self.B
        step = max(1, PIECE // max(n, 1))
        if step >= n:
            return np.asarray(self.K @ mixed)
        out = np.empty(alpha.shape)
        for start in range(0, n, step):
            self.pause()
            np.matmul(self.K[start : start + step], mixed, out=out[start : start + step])
        return out

    @property
    def diagonal(self) -> Array:
        return np.diagonal(self.K)[:, None, None] * self.B

    def column(self, i: int, k: int) -> Array:
        return np.outer(self.K[i], self.B[k])

    def entries(self, i: Index, j: Index) -> Array:
        return np.asarray(self.K[np.ix_(i, i)] * self.B[np.ix_(j, j)])

    def rows(self, index: Index) -> tuple[Array, Index]:
        return self.K, np.arange(len(self.K))

    @cached_property
    def output_factor(self) -> Array:
        """M (p, q) with B = MMᵀ, q its rank."""
        values, vectors = np.linalg.eigh(self.B)
        kept = values > NEGLIGIBLE * max(float(values[-1]), 0.0)
        kept[-1] = True
        values = np.maximum(values, 0.0)
        return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


class TransformableGram(MatrixGram):
    """k(Tᵢ(x), Tⱼ(x')), its p² blocks of n×n computed in pieces as they are needed.

    Parameters
    ----------
    kernel : Kernel
    images : sequence of Points
        Tⱼ of the training points.
    factor : float
        What all values are multiplied with.
    """

    def __init__(self, kernel: Kernel, images: Sequence[Points], factor: float = 1.0) -> None:
        self.kernel = kernel
        self.images = images
        self.factor = factor
        self.shape = len(images[0]), len(images)

    def scaled(self, factor: float) -> TransformableGram:
        if factor == 1.0:
            return self
        other = TransformableGram(self.kernel, self.images, self.factor * factor)
        other.room = self.room
        return other

    def _between(self, a: Points, b: Points) -> Array:
        """Kernel values; a ValueError that names the kernel where they are not finite."""
        values = np.asarray(self.kernel.between(a, b), dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("kernel must have finite values, got inf or NaN for rows of X")
        return values * self.factor if self.factor != 1.0 else values

    @cached_property
    def product_seconds(self) -> float:
        n, p = self.shape
        few = self.images[0].take(slice(0, self._step))
        started = time.perf_counter()
        self._between(few, self.images[0])
        return (time.perf_counter() - started) * p * p * n / len(few)

    @property
    def _step(self) -> int:
        """Rows of a piece."""
        return max(1, CHUNK_BYTES // (8 * self.shape[0]))

    def product(self, alpha: Array) -> Array:
        n, p = self.shape
        out = np.zeros((n, p))
        step = self._step
        for i, rows in enumerate(self.images):
            for start in range(0, n, step):
                part = rows.take(slice(start, start + step))
                for j, columns in enumerate(self.images):
                    self.pause()
                    out[start : start + step, i] += self._between(part, columns) @ alpha[:, j]
        return out

    @cached_property
    def diagonal(self) -> Array:
        n, p = self.shape
        out = np.empty((n, p, p))
        step = 64
        for start in range(0, n, step):
            part = slice(start, start + step)
            for i, a in enumerate(self.images):
                for j, b in enumerate(self.images):
                    values = self._between(a.take(part), b.take(part))
                    out[part, i, j] = np.diagonal(values)
        return out

    def column(self, i: int, k: int) -> Array:
        point = self.images[k].take(slice(i, i + 1))
        values = [self._between(point, image)[0] for image in self.images]
        return np.ascontiguousarray(np.stack(values, axis=1), dtype=np.float64)

    def entries(self, i: Index, j: Index) -> Array:
        n = self.shape[0]
        images = [image.X for image in self.images]
        if self.images[0].sparse:
            points = Points(sp.csr_matrix(sp.vstack(images, format="csr")[j * n + i]))
        else:
            points = Points(np.ascontiguousarray(np.stack(images)[j, i]))
        return self._between(points, points)

    def rows(self, index: Index) -> tuple[Array, Index]:
        n, p = self.shape
        needed = np.unique(index)
        slots = np.full(n, -1, dtype=np.int64)
        slots[needed] = np.arange(len(needed))
        blocks = np.empty((len(needed), p, n, p))
        for k, image in enumerate(self.images):
            points = image.take(needed)
            for j, other in enumerate(self.images):
                self.pause()
                blocks[:, k, :, j] = self._between(points, other)
        return blocks.reshape(len(needed), -1), slots


__all__ = [
    "MatrixGram",
    "SeparableGram",
    "TransformableGram",
    "TransformableKernel",
    "UnknownGram",
    "check_output_matrix",
    "level_kernel",
]
