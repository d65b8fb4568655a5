"""The Gram matrices of the folds at one γ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.gram import gather_block
from ..kernels import Kernel, Points, make_kernel
from ..operators import CachedKernel, HeldKernel, KernelOperator
from ..operators.base import CHUNK_BYTES
from ..solvers.many import Predictor, Stop
from .task import Fold, Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class FoldMatrices:
    """The matrices of some folds at one γ.

    Attributes
    ----------
    task : Task
    gamma : float
    folds : range
    matrix : array or None
        Where it is held.
    """

    task: Task
    gamma: float
    folds: range
    matrix: Floats | None

    def double(self, k: int) -> Array:
        """The kernel values of a fold, rows to validate with below, computed in float64."""
        task, fold = self.task, self.task.folds[self.folds[k]]
        out = np.empty((len(fold.rows), len(fold.train)))
        points = task.points_of(self.folds[k])
        kernel = make_kernel(task.kernel, self.gamma, task.degree, task.coef0)
        _fill(kernel, points.take(fold.rows), points.take(fold.train), out, task.stop)
        return out


@dataclass(frozen=True)
class WholeMatrix(FoldMatrices):
    """One matrix of all rows, of which those of the folds are parts."""

    def operator(self, k: int) -> KernelOperator:
        return HeldKernel(self._part(k, self.task.folds[self.folds[k]].train))

    def values(self, k: int) -> Predictor:
        return HeldValues(self._part(k, self.task.folds[self.folds[k]].validation))

    def _part(self, k: int, rows: Index) -> Floats:
        """The kernel values of some rows with the training rows of a fold."""
        assert self.matrix is not None
        train = self.task.folds[self.folds[k]].train
        out = np.empty((len(rows), len(train)), dtype=self.matrix.dtype)
        gather_block(self.matrix, rows, train, out)
        return out


@dataclass(frozen=True)
class OneMatrix(FoldMatrices):
    """The matrix of one fold: its training rows, then those to validate with."""

    gram: KernelOperator
    predict: Predictor

    def operator(self, k: int) -> KernelOperator:
        return self.gram

    def values(self, k: int) -> Predictor:
        return self.predict


def fold_matrices(task: Task, gamma: float, folds: range) -> Iterator[WholeMatrix | OneMatrix]:
    """The matrices of some folds, several at a time where they are parts of one.

    A matrix is good until the next one is asked for. Raises :class:`OutOfTime` when time is up.
    """
    whole = _whole(task, gamma)
    if whole is not None:
        yield WholeMatrix(task, gamma, folds, whole)
        return
    for k, _, gram, predict in fold_grams(task, gamma, folds):
        held, one = predict.both if isinstance(predict, HeldValues) else None, range(k, k + 1)
        yield OneMatrix(task, gamma, one, held, gram, predict)


def fold_grams(
    task: Task, gamma: float, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, KernelOperator, Predictor]]:
    """For each fold its Gram matrix, and a function from rows of β to validation values.

    A matrix is good until the next one is asked for. Where memory does not allow for it whole, it
    is one that computes rows as they are needed. Raises :class:`OutOfTime` when time is up.
    """
    precomputed = isinstance(task.kernel, str) and task.kernel == "precomputed"
    largest = max(len(task.folds[k].train) * len(task.folds[k].rows) for k in folds)
    dtype = task.X.dtype if precomputed else np.dtype(task.precision)
    if not precomputed and dtype.itemsize * largest > task.megabytes * 2**20:
        yield from _by_rows(task, make_kernel(task.kernel, gamma, task.degree, task.coef0), folds)
        return
    kernel = None if precomputed else make_kernel(task.kernel, gamma, task.degree, task.coef0)
    whole = _whole(task, gamma)
    held = task.memory.take(largest, dtype)
    try:
        for k in folds:
            fold = task.folds[k]
            size = len(fold.train)
            both = held[: len(fold.rows) * size].reshape(len(fold.rows), size)
            if whole is not None:
                gather_block(whole, fold.rows, fold.train, both)
            else:
                assert kernel is not None
                points = task.points_of(k)
                _fill(kernel, points.take(fold.rows), points.take(fold.train), both, task.stop)
            yield k, fold, HeldKernel(both[:size]), HeldValues(both[size:], both)
    finally:
        task.memory.give(held)


def _whole(task: Task, gamma: float) -> Floats | None:
    """The matrix of all rows, where those of the folds are parts of it and it is not large."""
    if isinstance(task.kernel, str) and task.kernel == "precomputed":
        return np.ascontiguousarray(task.X)
    n, dtype = len(task.y), np.dtype(task.precision)
    most = min(task.settings.whole_bytes, int(task.megabytes * 2**20) // 2)
    if task.maps is not None or n * n * dtype.itemsize > most:
        return None

    def make() -> Floats:
        out = np.empty((n, n), dtype=dtype)
        points = task.points_of(0)
        kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
        task.stop.pause()
        kernel.fill(points, points, out, np.arange(n))  # some milliseconds for so few
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
    """Validation values from kernel values held, (n_validation, n_train).

    ``both`` has those of the training rows before them, where they lie together.
    """

    def __init__(self, rows: Floats, both: Floats | None = None) -> None:
        self.rows, self.both = rows, both

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
