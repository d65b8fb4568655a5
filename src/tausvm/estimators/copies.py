"""Rows that occur more than once, as one row with the sum of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .data import Array, Matrix, TrainingSet


def merge_copies(data: TrainingSet) -> tuple[TrainingSet, NDArray[np.intp]]:
    """The distinct rows (equal X and y) in the order of their first, and the row of each.

    A weight of k and k copies then are one and the same problem.
    """
    key = _row_keys(data.X)
    _, label = np.unique(data.y, return_inverse=True)
    order = np.lexsort((np.arange(len(data)), label, key))
    same = (key[order[1:]] == key[order[:-1]]) & (label[order[1:]] == label[order[:-1]])
    for place in np.flatnonzero(same):  # equal keys may belong to different rows
        same[place] = _equal_rows(data.X, order[place], order[place + 1])
    if not same.any():
        return data, np.arange(len(data))
    group = np.empty(len(data), dtype=np.intp)
    group[order] = np.cumsum(np.r_[True, ~same]) - 1
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    first, group = np.sort(first), rank[group]
    weight: Any = np.bincount(group, weights=data.weight)
    return TrainingSet(data.X[first], data.y[first], weight, data.rows[first], data.n_given), group


def _row_keys(X: Matrix) -> Array:
    """A number a row, equal for equal rows: summed entry by entry in a fixed order."""
    direction = np.random.default_rng(0).uniform(1.0, 2.0, size=X.shape[1])
    if sp.issparse(X):
        return np.asarray(X @ direction)
    keys = np.zeros(X.shape[0])
    for column, factor in zip(X.T, direction, strict=True):
        keys += factor * column
    return keys


def _equal_rows(X: Matrix, i: Any, j: Any) -> bool:
    if not sp.issparse(X):
        return bool((X[i] == X[j]).all())
    a, b = slice(X.indptr[i], X.indptr[i + 1]), slice(X.indptr[j], X.indptr[j + 1])
    return np.array_equal(X.indices[a], X.indices[b]) and np.array_equal(X.data[a], X.data[b])
