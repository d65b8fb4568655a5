"""The Gram matrices of the folds at one γ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.gram import gather_block
from ..kernels import Gram, HeldGram, Kernel, KernelGram, Points, make_kernel
from ..kernels.gram import CHUNK_BYTES
from .judge import Predictor
from .task import Fold, Task

Array = NDArray[np.float64]

#: up to this many samples the Gram matrix is held in float64
SMALL = 300


def fold_grams(
    task: Task, gamma: float, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, Gram, Predictor]]:
    """For each fold its Gram matrix, and a function from rows of β to validation values.

    The matrix of all rows is computed once and cut to the folds, if memory allows.
    """
    if isinstance(task.kernel, str) and task.kernel == "precomputed":
        yield from _cut(task, task.X, folds)
        return
    kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
    points = Points(task.X)
    n = len(points)
    dtype = np.float64 if n <= SMALL else np.float32
    largest = max(len(task.folds[k].train) for k in folds)
    needed = np.dtype(dtype).itemsize * (n * n + largest**2)
    if needed <= task.megabytes * 2**20:
        whole = np.empty((n, n), dtype=dtype)
        step = max(1, CHUNK_BYTES // (8 * n))
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            kernel.fill(points.take(rows), points, whole, rows)
        yield from _cut(task, whole, folds)
        return
    for k in folds:
        fold = task.folds[k]
        train, validation = points.take(fold.train), points.take(fold.validation)
        gram = KernelGram(kernel, train, task.megabytes)
        yield k, fold, gram, _kernel_values(kernel, validation, train)


def _kernel_values(kernel: Kernel, validation: Points, train: Points) -> Predictor:
    """Validation values from kernel values computed in pieces."""

    def predict(beta: NDArray[np.floating]) -> Array:
        out = np.empty((len(beta), len(validation)))
        step = max(1, CHUNK_BYTES // (8 * len(train)))
        for start in range(0, len(validation), step):
            part = slice(start, start + step)
            out[:, part] = beta @ kernel.between(validation.take(part), train).T
        return out

    return predict


def _held_values(values: NDArray[np.floating]) -> Predictor:
    """Validation values from kernel values held, (n_train, n_validation)."""

    def predict(beta: NDArray[np.floating]) -> NDArray[np.floating]:
        return beta.astype(values.dtype, copy=False) @ values

    return predict


def _cut(
    task: Task, whole: Any, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, Gram, Predictor]]:
    """The folds' parts of the matrix of all rows."""
    for k in folds:
        fold = task.folds[k]
        matrix = np.empty((len(fold.train), len(fold.train)), dtype=whole.dtype)
        gather_block(whole, fold.train, fold.train, matrix)
        values = np.empty((len(fold.train), len(fold.validation)), dtype=whole.dtype)
        gather_block(whole, fold.train, fold.validation, values)
        yield k, fold, HeldGram(matrix), _held_values(values)
