"""Scalar kernels k(x, x'): values between two sets of points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances

from .._core.gram import distance_kernel, distance_product, rbf_from_products
from .points import FloatArray, Points, dense

#: up to this many features, distances by differences beat a matrix product
FEW_FEATURES = 24
#: the largest k(x, x) is between these for values held in float32: far from where it runs out
SINGLE_RANGE = 1e-25, 1e37
#: coordinates up to so many widths of a kernel have distances in float32 that are right to a
#: hundredth of its width
RESOLVED = 2.0**17
#: coordinates up to so many units have squared distances within range
UNITS = {np.dtype(np.float32): 2.0**60, np.dtype(np.float64): 2.0**490}

#: squared distances below this share of the squared norms come by differences
NEAR = 1e-3
#: so many pairs at a time
PAIRS = 2**14

#: all features
EVERY = slice(None)


class Kernel(ABC):
    """A positive semidefinite kernel.

    Subclasses give the values between two sets of points, as float64 or float32, and the
    values k(x, x).
    """

    #: whether values may be computed in several threads at once
    in_threads: bool = False
    #: whether k(x, x') and k(x', x) are the same for certain
    symmetric: bool = True

    @abstractmethod
    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        """k(aᵢ, bⱼ), shape (len(a), len(b))."""

    @abstractmethod
    def diagonal(self, a: Points) -> NDArray[np.float64]:
        """k(aᵢ, aᵢ)."""

    def fits_single(self, points: Points, diagonal: NDArray[np.float64]) -> bool:
        """Whether float32 can hold the values between these points, which have these k(x, x)."""
        largest = float(diagonal.max(initial=0.0))
        return largest == 0.0 or SINGLE_RANGE[0] < largest < SINGLE_RANGE[1]

    def fill(self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]) -> None:
        """out[places] = k(aᵢ, bⱼ)."""
        out[places] = self.between(a, b, out.dtype)

    def cheap(self, points: Points) -> bool:
        """Whether a value takes about as long to compute as to read from a matrix."""
        return False

    def product(
        self,
        a: Points,
        b: Points,
        beta: NDArray[np.float64],
        columns: slice = EVERY,
        dtype: DTypeLike = np.float64,
    ) -> NDArray[np.float64]:
        """Σᵢ βᵢ k(aᵢ, bⱼ) for some bⱼ: values in a precision, their sum in float64."""
        return beta @ self.between(a, b if columns == EVERY else b.take(columns), dtype)

    def both_products(
        self, a: Points, b: Points, alpha: NDArray[np.float64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Σᵢ αᵢ k(aᵢ, bⱼ) for every bⱼ, and Σⱼ βⱼ k(aᵢ, bⱼ) for every aᵢ, from the same values."""
        values = self.between(a, b)
        return alpha @ values, values @ beta

    def gradients(
        self, a: Points, b: Points, beta: NDArray[np.float64], columns: slice = EVERY
    ) -> NDArray[np.float64]:
        """∇f(aᵢ) of f = Σⱼ βⱼ k(·, bⱼ) with respect to some features, (len(a), features)."""
        raise ValueError(f"{self!r} has no gradients")


class _OfProducts(Kernel):
    """A function of ⟨x, x'⟩."""

    in_threads = True

    def _slope(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """The derivative with respect to the inner product."""
        raise ValueError(f"{self!r} has no gradients")

    def gradients(
        self, a: Points, b: Points, beta: NDArray[np.float64], columns: slice = EVERY
    ) -> NDArray[np.float64]:
        """Σⱼ βⱼ k'(⟨aᵢ, bⱼ⟩) bⱼ."""
        return np.asarray((self._slope(a.products(b)) * beta) @ b.X[:, columns])

    @abstractmethod
    def _of(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values for inner products."""

    @abstractmethod
    def _largest(self, product: float) -> float:
        """The largest size of a value where no product is larger; infinite if it overflows."""

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        return self._checked(a.products(b), a, b, dtype)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return self._checked(a.squared_norms, a, a, np.float64).astype(np.float64)

    def _checked(
        self, products: NDArray[np.float64], a: Points, b: Points, dtype: DTypeLike
    ) -> FloatArray:
        """The values in a precision; a ValueError where they are not finite in it."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            values: FloatArray = self._of(products).astype(dtype, copy=False)
            safe = self._largest(a.longest * b.longest) < np.finfo(dtype).max
        if not safe and not np.isfinite(values).all():
            raise _overflow(self, max(a.longest, b.longest), dtype)
        return values


def _overflow(kernel: Kernel, longest: float, dtype: DTypeLike) -> ValueError:
    """The error for values that are out of range."""
    return ValueError(
        f"kernel values must be finite, got an overflow of {np.dtype(dtype)} in {kernel!r} for "
        f"rows of X with norms up to {longest:.3g}; scale X, for instance by StandardScaler"
    )


class Linear(_OfProducts):
    """k(x, x') = ⟨x, x'⟩."""

    def __repr__(self) -> str:
        return "kernel='linear'"

    def _of(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        return products

    def _slope(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones_like(products)

    def _largest(self, product: float) -> float:
        return product

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return super().diagonal(a).copy()


class Polynomial(_OfProducts):
    """k(x, x') = (γ⟨x, x'⟩ + coef0)^degree."""

    def __init__(self, gamma: float, degree: int, coef0: float) -> None:
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __repr__(self) -> str:
        return (
            f"kernel='poly' (gamma={self.gamma:.3g}, degree={self.degree}, coef0={self.coef0:.3g})"
        )

    def _of(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        return _power(self.gamma * products + self.coef0, self.degree)

    def _slope(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.degree == 0:
            return np.zeros_like(products)
        lower = _power(self.gamma * products + self.coef0, self.degree - 1)
        return self.gamma * self.degree * lower

    def _largest(self, product: float) -> float:
        return float(np.float64(self.gamma * product + abs(self.coef0)) ** self.degree)


def _power(base: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """base^degree by squaring, which takes a twentieth of NumPy's time from the third degree on."""
    if degree < 2:
        return base if degree else np.ones_like(base)
    half = _power(base, degree // 2)
    square = half * half
    return square * base if degree % 2 else square


class Sigmoid(_OfProducts):
    """k(x, x') = tanh(γ⟨x, x'⟩ + coef0); not positive semidefinite for every γ and coef0."""

    def __init__(self, gamma: float, coef0: float) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def __repr__(self) -> str:
        return f"kernel='sigmoid' (gamma={self.gamma:.3g}, coef0={self.coef0:.3g})"

    def _of(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        # where a sum of products overflows, its sign depends on the order of its terms
        values = np.tanh(self.gamma * products + self.coef0)
        return np.where(np.isfinite(products), values, np.nan)

    def _slope(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.gamma * (1.0 - self._of(products) ** 2)

    def _largest(self, product: float) -> float:
        return self.gamma * product  # tanh itself is at most 1


class _Distance(Kernel):
    """exp(−γ·d(x, x')): in one fused pass over differences, exact near zero distance.

    Points are measured in widths of the kernel, to a power of two. That rounds nothing, and
    neither float32 nor squares run out of range where kernel values do not.
    """

    in_threads = True
    squared: bool

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    @property
    def _width(self) -> float:
        """The distance at which the kernel falls off, to a power of two."""
        exponent = math.log2(self.gamma) / (2.0 if self.squared else 1.0)
        return float(2.0 ** min(max(-round(exponent), -1000), 1000))

    def _unit(self, a: Points, b: Points, dtype: DTypeLike) -> tuple[float, float]:
        """What points are measured in, and γ for that: the width, unless that is much too small
        for them."""
        most = UNITS[np.dtype(dtype)]
        size = max(a.size, b.size)
        unit = self._width
        if size / most > unit:
            unit = float(2.0 ** math.ceil(math.log2(size / most)))
        gamma = self.gamma * unit
        return unit, min(gamma * unit if self.squared else gamma, most * most)

    def fits_single(self, points: Points, diagonal: NDArray[np.float64]) -> bool:
        return not self._fused(points, points) or points.size <= RESOLVED * self._width

    def __repr__(self) -> str:
        return f"kernel={type(self).__name__.lower()!r} (gamma={self.gamma:.3g})"

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
        else:
            unit, gamma = self._unit(a, b, out.dtype)
            rows, features = a.rows(unit, out.dtype), b.features(unit, out.dtype)
            distance_kernel(features, rows, gamma, self.squared, out, places)

    def cheap(self, points: Points) -> bool:
        return points.n_features <= FEW_FEATURES and self._fused(points, points)

    def product(
        self,
        a: Points,
        b: Points,
        beta: NDArray[np.float64],
        columns: slice = EVERY,
        dtype: DTypeLike = np.float64,
    ) -> NDArray[np.float64]:
        _check_width(a, b)
        if not self._fused(a, b):
            return super().product(a, b, beta, columns, dtype)
        unit, gamma = self._unit(a, b, dtype)
        rows, features = a.rows(unit, dtype), b.features(unit, dtype)[:, columns]
        out = np.zeros(features.shape[1])
        distance_product(features, rows, gamma, self.squared, beta, out)
        return out

    def both_products(
        self, a: Points, b: Points, alpha: NDArray[np.float64], beta: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        _check_width(a, b)
        if not self._fused(a, b):
            return super().both_products(a, b, alpha, beta)
        unit, gamma = self._unit(a, b, np.float64)
        rows, features = a.rows(unit, np.float64), b.features(unit, np.float64)
        to_b, to_a = np.zeros(len(b)), np.zeros(len(a))
        distance_product(features, rows, gamma, self.squared, alpha, to_b, beta, to_a)
        return to_b, to_a

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
        if not np.isfinite(a.squared_norms.sum() + b.squared_norms.sum()):
            raise _overflow(self, max(a.longest, b.longest), np.float64)
        products = a.kept_products(b)
        rbf_from_products(products, a.squared_norms, b.squared_norms, self.gamma, out, places)

    def gradients(
        self, a: Points, b: Points, beta: NDArray[np.float64], columns: slice = EVERY
    ) -> NDArray[np.float64]:
        """−2γ Σⱼ βⱼ k(aᵢ, bⱼ)(aᵢ − bⱼ)."""
        weights = self.between(a, b) * beta
        return -2.0 * self.gamma * _weighted_differences(a, b, weights, columns)


def _weighted_differences(
    a: Points, b: Points, weights: NDArray[np.float64], columns: slice
) -> NDArray[np.float64]:
    """Σⱼ weightsᵢⱼ(aᵢ − bⱼ) for some features, one product of matrices."""
    here = weights.sum(axis=1)[:, None] * dense(a.X[:, columns])
    return np.asarray(here - weights @ b.X[:, columns])


def _euclidean(a: Points, b: Points) -> NDArray[np.float64]:
    """‖aᵢ − bⱼ‖₂ to a few roundings of itself, (len(a), len(b))."""
    if not (a.sparse or b.sparse):
        return np.asarray(cdist(a.X, b.X))  # by differences
    x, y = a.narrow, b.narrow
    squares = np.asarray(euclidean_distances(x, y, squared=True))
    # inner products round with the squares of the norms; points close to each other are apart by
    # little of that, and come by differences too
    near = np.argwhere(squares < NEAR * (a.squared_norms[:, None] + b.squared_norms))
    for start in range(0, len(near), PAIRS):
        rows, columns = near[start : start + PAIRS].T
        apart = x[rows] - y[columns]
        squares[rows, columns] = np.asarray(apart.multiply(apart).sum(axis=1)).ravel()
    return np.sqrt(squares)


class Exponential(Kernel):
    """k(x, x') = exp(−γ‖x − x'‖₂): the rough kernel that rotations leave as it is."""

    in_threads = True

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def __repr__(self) -> str:
        return f"kernel='exponential' (gamma={self.gamma:.3g})"

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        _check_width(a, b)
        distances = _euclidean(a, b)
        np.multiply(distances, -self.gamma, out=distances)
        values: FloatArray = distances.astype(dtype, copy=False)
        return np.exp(values, out=values)

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        return np.ones(len(a))

    def gradients(
        self, a: Points, b: Points, beta: NDArray[np.float64], columns: slice = EVERY
    ) -> NDArray[np.float64]:
        """−γ Σⱼ βⱼ k(aᵢ, bⱼ)(aᵢ − bⱼ)/‖aᵢ − bⱼ‖, without the points that coincide."""
        distances = _euclidean(a, b)
        values = np.exp(-self.gamma * distances) * beta
        weights = np.divide(values, distances, out=np.zeros_like(values), where=distances > 0)
        return -self.gamma * _weighted_differences(a, b, weights, columns)


class Laplacian(_Distance):
    """k(x, x') = exp(−γ‖x − x'‖₁)."""

    squared = False

    def _fused(self, a: Points, b: Points) -> bool:
        return not a.sparse and not b.sparse

    def _fill_unfused(
        self, a: Points, b: Points, out: FloatArray, places: NDArray[np.int64]
    ) -> None:
        distances = manhattan_distances(a.narrow, b.narrow)
        out[places] = np.exp(-self.gamma * distances)

    def gradients(
        self, a: Points, b: Points, beta: NDArray[np.float64], columns: slice = EVERY
    ) -> NDArray[np.float64]:
        """−γ Σⱼ βⱼ k(aᵢ, bⱼ) sign(aᵢ − bⱼ), feature by feature."""
        values = self.between(a, b) * beta
        here, there = dense(a.X[:, columns]), dense(b.X[:, columns])
        sides = [
            np.einsum("ij,ij->i", values, np.sign(feature[:, None] - other))
            for feature, other in zip(here.T, there.T, strict=True)
        ]
        return -self.gamma * np.stack(sides, axis=1)


class FromCallable(Kernel):
    """k given by a function of two arrays of points that returns the matrix of values."""

    symmetric = False

    def __init__(self, function: Callable[..., NDArray[np.float64]]) -> None:
        self.function = function

    def between(self, a: Points, b: Points, dtype: DTypeLike = np.float64) -> FloatArray:
        values = dense(self.function(a.X, b.X))
        if values.shape != (len(a), len(b)):
            raise ValueError(
                f"kernel: the callable returned shape {values.shape} for {len(a)} and {len(b)} "
                f"points, expected ({len(a)}, {len(b)})"
            )
        if values.dtype.kind not in "fiub":
            raise ValueError(
                f"kernel: the callable returned values of type {values.dtype}, expected real "
                "numbers"
            )
        with np.errstate(over="ignore"):
            out: FloatArray = np.ascontiguousarray(values, dtype=dtype)
        if not np.isfinite(out).all():
            wrong = values[tuple(np.argwhere(~np.isfinite(out))[0])]
            raise ValueError(
                f"kernel values must be finite, got {wrong} from the callable as {out.dtype}"
            )
        return out

    def diagonal(self, a: Points) -> NDArray[np.float64]:
        step = 64
        parts = [
            np.diagonal(self.between(piece, piece))
            for piece in (a.take(slice(s, s + step)) for s in range(0, len(a), step))
        ]
        return np.concatenate(parts).astype(np.float64)


KERNELS = ("linear", "poly", "rbf", "laplacian", "exponential", "sigmoid", "precomputed")


def make_kernel(
    kernel: str | Callable[..., NDArray[np.float64]],
    gamma: float,
    degree: int = 3,
    coef0: float = 0.0,
) -> Kernel:
    """The kernel of a name or a callable.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "exponential", "sigmoid"} or callable
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
        case "exponential":
            return Exponential(gamma)
        case "sigmoid":
            return Sigmoid(gamma, coef0)
    raise ValueError(f"kernel must be one of {', '.join(KERNELS)} or a callable, got {kernel!r}")
