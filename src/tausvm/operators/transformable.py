"""K(x, x')ᵢⱼ = k(Tᵢ(x), Tⱼ(x')): p² blocks of n×n, one piece at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..kernels import Kernel, Points
from .matrix import Index, MatrixOperator

Array = NDArray[np.float64]


class TransformedKernel(MatrixOperator):
    """k(Tᵢ(x), Tⱼ(x')), computed as it is needed.

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

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.images[0]), len(self.images)

    def scaled(self, factor: float) -> TransformedKernel:
        if factor == 1.0:
            return self
        other = TransformedKernel(self.kernel, self.images, self.factor * factor)
        other.room = self.room
        return other

    def _between(self, a: Points, b: Points) -> Array:
        """Kernel values; a ValueError that names the kernel where they are not finite."""
        values = np.asarray(self.kernel.between(a, b), dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("kernel must have finite values, got inf or NaN for rows of X")
        return values * self.factor if self.factor != 1.0 else values

    def certificate_seconds(self, support: int) -> float:
        return self._seconds_a_product

    @cached_property
    def _seconds_a_product(self) -> float:
        n, p = self.shape
        few = self.images[0].take(slice(0, self.chunk_rows(n)))
        started = time.perf_counter()
        self._between(few, self.images[0])
        return (time.perf_counter() - started) * p * p * n / len(few)

    def product(self, beta: Array) -> Array:
        n, p = self.shape
        out = np.zeros((n, p))
        step = self.chunk_rows(n)
        for i, rows in enumerate(self.images):
            for start in range(0, n, step):
                part = rows.take(slice(start, start + step))
                for j, columns in enumerate(self.images):
                    self.pause()
                    out[start : start + step, i] += self._between(part, columns) @ beta[:, j]
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


__all__ = ["TransformedKernel"]
