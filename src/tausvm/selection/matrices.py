"""The Gram matrices of the folds at one γ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.gram import gather_block
from ..kernels import Kernel, Points, make_kernel
from ..operators import CachedKernel, HeldKernel, KernelOperator
from ..operators.base import CHUNK_BYTES
from ..solvers.many import Stop
from .judge import Predictor
from .task import Fold, Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]


def fold_grams(
    task: Task, gamma: float, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, KernelOperator, Predictor]]:
    """For each fold its Gram matrix, and a function from rows of β to validation values.

    A matrix is good until the next one is asked for. Where memory does not allow for it whole, it
    is one that computes rows as they are needed. Raises :class:`OutOfTime` when time is up.
    """
    precomputed = isinstance(task.kernel, str) and task.kernel == "precomputed"
    largest = max(len(task.folds[k].train) * len(task.rows(k)) for k in folds)
    dtype = task.X.dtype if precomputed else np.dtype(task.precision)
    if not precomputed and dtype.itemsize * largest > task.megabytes * 2**20:
        yield from _by_rows(task, make_kernel(task.kernel, gamma, task.degree, task.coef0), folds)
        return
    kernel = None if precomputed else make_kernel(task.kernel, gamma, task.degree, task.coef0)
    whole = task.X if kernel is None else _whole(task, kernel, gamma, dtype)
    held = task.memory.take(largest, dtype)
    try:
        for k in folds:
            fold, rows = task.folds[k], task.rows(k)
            size = len(fold.train)
            both = held[: len(rows) * size].reshape(len(rows), size)
            if whole is not None:
                gather_block(whole, rows, fold.train, both)
            else:
                assert kernel is not None
                points = task.points_of(k)
                _fill(kernel, points.take(rows), points.take(fold.train), both, task.stop)
            yield k, fold, HeldKernel(both[:size]), HeldValues(both[size:])
    finally:
        task.memory.give(held)


def _whole(task: Task, kernel: Kernel, gamma: float, dtype: np.dtype[Any]) -> Floats | None:
    """The matrix of all rows, where those of the folds are parts of it and it is not large."""
    n = len(task.y)
    most = min(task.settings.whole_bytes, int(task.megabytes * 2**20))
    if task.maps is not None or n * n * dtype.itemsize > most // 10:
        return None
    points = task.points_of(0)

    def make() -> Floats:
        out = np.empty((n, n), dtype=dtype)
        _fill(kernel, points, points, out, task.stop)
        return out

    return task.memory.matrix(gamma, make, most)


def _fill(kernel: Kernel, rows: Points, columns: Points, out: Floats, stop: Stop) -> None:
    """Kernel values in pieces, between which Ctrl-C is seen, and whether time is up."""
    step = max(1, CHUNK_BYTES // (8 * len(columns)))
    for start in range(0, len(rows), step):
        stop.pause()
        places = np.arange(start, min(start + step, len(rows)))
        kernel.fill(rows.take(places), columns, out, places)


class HeldValues:
    """Validation values from kernel values held, (n_validation, n_train)."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows

    def __call__(self, beta: Floats) -> Floats:
        return beta.astype(self.rows.dtype, copy=False) @ self.rows.T


def _by_rows(
    task: Task, kernel: Kernel, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, KernelOperator, Predictor]]:
    for k in folds:
        fold = task.folds[k]
        train, validation = (task.points_of(k).take(part) for part in (fold.train, fold.validation))
        gram = CachedKernel(kernel, train, task.megabytes)
        yield k, fold, gram, ComputedValues(kernel, validation, train, task.stop)


class ComputedValues:
    """Validation values from kernel values computed in pieces."""

    rows = None

    def __init__(self, kernel: Kernel, validation: Points, train: Points, stop: Stop) -> None:
        self.kernel, self.validation, self.train, self.stop = kernel, validation, train, stop

    def __call__(self, beta: Floats) -> Array:
        out = np.empty((len(beta), len(self.validation)))
        step = max(1, CHUNK_BYTES // (8 * len(self.train)))
        for start in range(0, len(self.validation), step):
            self.stop.pause()
            part = slice(start, start + step)
            out[:, part] = beta @ self.kernel.between(self.validation.take(part), self.train).T
        return out
