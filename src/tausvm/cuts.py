"""Cuts through a model: some features vary, the others are held still; for pictures and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_values(X: Any, k: int) -> NDArray[Any]:
    """A column as floats (NaN where missing), as times, or else as objects.

    A column of numbers without a single one of them is of objects, as text is.
    """
    if hasattr(X, "iloc"):
        values = np.asarray(X.iloc[:, k])
    else:
        found = getattr(X, "columns", None)
        values = np.asarray(X[:, k] if found is None else X[found[k]])
    if values.dtype.kind == "M":
        return values if not np.isnat(values).all() else values.astype(object)
    if values.dtype.kind in "fiub" and not np.isnan(values).all():
        return values.astype(np.float64)
    return values.astype(object)


def is_text(value: Any) -> bool:
    """Whether a cell among objects is there; what is missing comes in several forms."""
    return isinstance(value, str)


def categories(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The texts in a column and how often they occur, the most frequent first."""
    given = [value for value in values if is_text(value)]
    labels, counts = np.unique(np.array(given, dtype=object), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return labels[order], counts[order]


def middle(values: NDArray[Any]) -> Any:
    """The median, the time in the middle, or the most frequent category."""
    if values.dtype.kind == "M":
        given = np.sort(values[~np.isnat(values)])
        return given[len(given) // 2]
    if values.dtype != object:
        return float(np.nanmedian(values))
    labels, _ = categories(values)
    return labels[0] if len(labels) else np.nan


def cut_through(X: Any, varied: Mapping[int, NDArray[Any]]) -> Any:
    """Rows with the features ``varied`` (column and its values) and their middle elsewhere.

    Numbers are held at their median, times at the one in the middle, categories at the most
    frequent one. An array for an array X, a DataFrame of the same columns for a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> cut_through(np.array([[0.0, 1.0], [2.0, 5.0]]), {0: np.array([7.0, 8.0])})
    array([[7., 3.],
           [8., 3.]])
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    length = len(next(iter(varied.values())))
    parts = []
    for k in range(X.shape[1]):
        values = column_values(X, k)
        if k in varied:
            parts.append(np.asarray(varied[k], dtype=values.dtype))
        else:
            parts.append(np.full(length, middle(values), dtype=values.dtype))
    found = getattr(X, "columns", None)
    if found is None:
        return np.column_stack(parts)
    return type(X)({name: part for name, part in zip(found, parts, strict=True)})


def feature_label(X: Any, column: int) -> str:
    """The name of a feature: that of a DataFrame's column, or its number."""
    columns = getattr(X, "columns", None)
    return f"feature {column}" if columns is None else str(columns[column])
