"""K(x, x') = k(x, x')·B: an n×n and a p×p matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..threads import share_out, thread_count
from .base import SECONDS_AN_ENTRY
from .matrix import Index, MatrixOperator

Array = NDArray[np.float64]

#: eigenvalues of B up to this share of the largest are rounding
NEGLIGIBLE = 1e-14


class SeparableKernel(MatrixOperator):
    """k(x, x')·B with the n×n matrix of k held in float64.

    Parameters
    ----------
    K : array (n, n)
    B : array (p, p)
    features : array or CSR matrix (n, d), or None
        Where k(x, x') = ⟨x, x'⟩: products then are those of the weights, as predictions are,
        and round like them.
    """

    #: entries of the matrix that a thread takes at a time: a millisecond or two, after which a
    #: product may be ended
    piece: ClassVar[int] = 1 << 21

    def __init__(self, K: Array, B: Array, features: Any = None) -> None:
        self.features = features
        self.K = np.ascontiguousarray(K, dtype=np.float64)
        self.B = np.ascontiguousarray(B, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.K), len(self.B)

    def scaled(self, factor: float) -> SeparableKernel:
        if factor == 1.0:
            return self
        other = SeparableKernel(self.K, self.B * factor, self.features)
        other.room = self.room
        return other

    def certificate_seconds(self, support: int) -> float:
        n, p = self.shape
        return SECONDS_AN_ENTRY * n * support * p

    def product(self, beta: Array) -> Array:
        if self.features is not None:
            support = np.flatnonzero(beta.any(axis=1))
            weights = self.B @ np.ascontiguousarray(beta[support].T)
            return np.asarray(self.features @ np.asarray(weights @ self.features[support]).T)
        n = len(self.K)
        mixed = beta @ self.B
        step = max(1, self.piece // max(n, 1))
        if step >= n:
            return np.asarray(self.K @ mixed)
        out = np.empty(beta.shape)

        def part(start: int, halted: Callable[[], bool]) -> None:
            self.pause()
            np.matmul(self.K[start : start + step], mixed, out=out[start : start + step])

        share_out(part, range(0, n, step), thread_count())
        return out

    @property
    def diagonal(self) -> Array:
        return np.diagonal(self.K)[:, None, None] * self.B

    def column(self, i: int, k: int) -> Array:
        return np.outer(self.K[i], self.B[k])

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


__all__ = ["SeparableKernel"]
