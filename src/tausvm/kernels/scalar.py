"""Scalar kernels k(x, x'): values between two sets of points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.metrics.pairwise import manhattan_distances

from .._core.gram import distance_kernel, distance_product, rbf_from_products
from .points import Points, dense

FloatArray = NDArray[np.float64] | NDArray[np.float32]

#: up to this many features, distances by differences beat a matrix product
FEW_FEATURES = 24


class Kernel(ABC):
    """A positive semidefinite kernel.

    Subclasses give the values between two sets of points, as float64 or float32, and the
    values k(x, x).
    """

    @abstractmethod
    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        """k(aᵢ, bⱼ), shape (len(a), len(b))."""

    @abstractmethod
    def diagonal(self, a: Points) -> NDArray[np.float64]:
        """k(aᵢ, aᵢ)."""

    def fill(self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]) -> None:
        """out[places] = k(aᵢ, bⱼ)."""
        out[places] = self.between(a, b, out.dtype)

    def product(self, a: Points, b: Points, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σᵢ βᵢ k(aᵢ, bⱼ), in float64."""
        return beta @ self.between(a, b)


class Linear(Kernel):
    """k(x, x') = ⟨x, x'⟩."""

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        return a.products(b).astype(dtype, copy=False)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return a.squared_norms.copy()


class Polynomial(Kernel):
    """k(x, x') = (γ⟨x, x'⟩ + coef0)^degree."""

    def __init__(self, gamma: float, degree: int, coef0: float) -> None:
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        values = (self.gamma * a.products(b) + self.coef0) ** self.degree
        return values.astype(dtype, copy=False)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return (self.gamma * a.squared_norms + self.coef0) ** self.degree


class Sigmoid(Kernel):
    """k(x, x') = tanh(γ⟨x, x'⟩ + coef0); not positive semidefinite for every γ and coef0."""

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        return np.tanh(self.gamma * a.products(b) + self.coef0).astype(dtype, copy=False)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return np.tanh(self.gamma * a.squared_norms + self.coef0)


class _Distance(Kernel):
    """exp(−γ·d(x, x')): in one fused pass over differences, exact near zero distance."""

    squared: bool

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    @abstractmethod
    def _fused(self, a: Points, b: Points) -> bool:
        """Whether the pass over differences is the way for these points."""

    @abstractmethod
    def _fill_unfused(
        self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]
    ) -> None:
        """Values where the fused pass does not apply."""

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        out: FloatArray = np.empty((len(a), len(b)), dtype=dtype)
        self.fill(a, b, out, np.arange(len(a)))
        return out

    def fill(self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]) -> None:
        _check_width(a, b)
        if not self._fused(a, b):
            self._fill_unfused(a, b, out, places)
        elif out.dtype == np.float32:
            rows = np.ascontiguousarray(a.X, dtype=np.float32)
            distance_kernel(b.features32, rows, self.gamma, self.squared, out, places)
        else:
            rows = np.ascontiguousarray(a.X)
            distance_kernel(b.features64, rows, self.gamma, self.squared, out, places)

    def product(self, a: Points, b: Points, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        _check_width(a, b)
        if not self._fused(a, b):
            return super().product(a, b, beta)
        out = np.zeros(len(b))
        rows = np.ascontiguousarray(a.X)
        distance_product(b.features64, rows, self.gamma, self.squared, beta, out)
        return out

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return np.ones(len(a))


def _check_width(a: Points, b: Points) -> None:
    """The compiled passes trust their shapes."""
    if a.n_features != b.n_features:
        raise ValueError(f"points have {a.n_features} and {b.n_features} features")


class RBF(_Distance):
    """k(x, x') = exp(−γ‖x − x'‖²)."""

    squared = True

    def _fused(self, a: Points, b: Points) -> bool:
        return not a.sparse and not b.sparse and a.n_features <= FEW_FEATURES

    def _fill_unfused(
        self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]
    ) -> None:
        products = a.products(b)
        rbf_from_products(products, a.squared_norms, b.squared_norms, self.gamma, out, places)


class Laplacian(_Distance):
    """k(x, x') = exp(−γ‖x − x'‖₁)."""

    squared = False

    def _fused(self, a: Points, b: Points) -> bool:
        return not a.sparse and not b.sparse

    def _fill_unfused(
        self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]
    ) -> None:
        distances = manhattan_distances(sp.csr_matrix(a.X), sp.csr_matrix(b.X))
        out[places] = np.exp(-self.gamma * distances)


class FromCallable(Kernel):
    """k given by a function of two arrays of points that returns the matrix of values."""

    def __init__(self, function: Callable[..., NDArray[np.float64]]) -> None:
        self.function = function

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        values = dense(self.function(a.X, b.X))
        if values.shape != (len(a), len(b)):
            raise ValueError(
                f"kernel: the callable returned shape {values.shape} for {len(a)} and {len(b)} "
                f"points, expected ({len(a)}, {len(b)})"
            )
        return np.ascontiguousarray(values, dtype=dtype)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        step = 64
        parts = [
            np.diagonal(self.between(piece, piece))
            for piece in (a.take(slice(s, s + step)) for s in range(0, len(a), step))
        ]
        return np.concatenate(parts).astype(np.float64)


KERNELS = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")


def make_kernel(
    kernel: str | Callable[..., NDArray[np.float64]],
    gamma: float,
    degree: int = 3,
    coef0: float = 0.0,
) -> Kernel:
    """The kernel of a name or a callable.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid"} or callable
        A callable is given two arrays of points, and returns the matrix of their kernel values.
    gamma, degree, coef0
        Parameters of the named kernels that have them.
    """
    if callable(kernel):
        return FromCallable(kernel)
    match kernel:
        case "linear":
            return Linear()
        case "poly":
            return Polynomial(gamma, degree, coef0)
        case "rbf":
            return RBF(gamma)
        case "laplacian":
            return Laplacian(gamma)
        case "sigmoid":
            return Sigmoid(gamma, coef0)
    raise ValueError(f"kernel must be one of {', '.join(KERNELS)} or a callable, got {kernel!r}")
