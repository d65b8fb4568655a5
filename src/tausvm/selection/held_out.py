"""Predictions for rows that a fit has not seen: those of the fold that held them out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernels import Points, make_kernel
from .search import Search
from .task import Task

Array = NDArray[np.float64]


def held_out_predictions(search: Search, level: int) -> Array:
    """For every row the prediction, at the best point, of the folds that have it for validation.

    In units of the task; their mean where a row is held out more than once, NaN where it never is.
    """
    task, place = search.task, search.best(level)
    assert place is not None
    models = search.models.get(search.point(level, *place), {})
    total, times = np.zeros(len(task.y)), np.zeros(len(task.y))
    for k, (beta, intercept) in models.items():
        fold = task.folds[k]
        total[fold.validation] += _values(task, k, beta, float(search.gammas.values[place[0]]))
        total[fold.validation] += intercept
        times[fold.validation] += 1.0
    return np.divide(total, times, out=np.full(len(times), np.nan), where=times > 0)


def _values(task: Task, k: int, beta: NDArray[np.floating], gamma: float) -> Array:
    """Σ βᵢ k(xᵢ, x) at the validation rows of a fold."""
    fold = task.folds[k]
    if isinstance(task.kernel, str) and task.kernel == "precomputed":
        return np.asarray(task.X[np.ix_(fold.validation, fold.train)] @ beta)
    kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
    support = np.flatnonzero(beta)
    points: Points = task.points_of(k)
    weights = np.asarray(beta, dtype=np.float64)[support]
    train, validation = fold.train[support], fold.validation
    return kernel.product(points.take(train), points.take(validation), weights)
