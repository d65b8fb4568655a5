"""Levels along one feature, the others held still: the fans of a report."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..inspection import as_columns, predictions

Array = NDArray[np.float64]

#: features with a fan, those first along which the model moves most
MAX_FANS = 12
#: points of a curve
GRID = 80
#: categories shown of a column
MAX_CATEGORIES = 30


def describe_columns(X: Any, names: list[str] | None) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the columns, and what is in them; nothing is described of sparse data."""
    if sp.issparse(X):
        return [], []
    found = getattr(X, "columns", None)
    if found is not None:
        given = [str(name) for name in found]
    elif names is not None:
        given = list(names)
    else:
        given = [f"feature {k}" for k in range(X.shape[1])]
    if len(given) != X.shape[1]:
        raise ValueError(f"feature_names must have {X.shape[1]} names, got {len(given)}")
    return given, [_describe(name, column(X, k)) for k, name in enumerate(given)]


def column(X: Any, k: int) -> NDArray[Any]:
    """A column as an array: of floats where it has numbers, else of objects; dates are text."""
    found = getattr(X, "columns", None)
    values = np.asarray(X[:, k] if found is None else X[found[k]])
    if values.dtype.kind == "M":
        text = np.datetime_as_string(values, "auto").astype(object)
        text[np.isnat(values)] = None
        return text
    if values.dtype.kind in "fiub" and not np.isnan(values).all():
        return values.astype(np.float64)
    return values.astype(object)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _describe(name: str, values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype == object:
        labels, counts = np.unique([str(v) for v in values], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
        return {
            "name": name,
            "type": "category",
            "missing": int(sum(not _is_text(v) for v in values)),
            "values": [[labels[k], counts[k]] for k in order],
            "distinct": len(labels),
        }
    given = values[np.isfinite(values)]
    low, first, middle, third, high = np.quantile(given, [0, 0.25, 0.5, 0.75, 1])
    return {
        "name": name,
        "type": "number",
        "missing": int(len(values) - len(given)),
        "quartiles": [low, first, middle, third, high],
        "mean": given.mean(),
    }


def order_fan(y: Array, levels: Array) -> dict[str, Any]:
    """The rows in the order of their middle prediction: a fan that every model has."""
    middle = levels[:, levels.shape[1] // 2]
    order = np.argsort(middle, kind="stable")
    points = order[np.linspace(0, len(order) - 1, min(len(order), 4 * GRID)).astype(int)]
    rank = np.empty(len(y), dtype=np.int64)
    rank[order] = np.arange(len(y))
    return {
        "name": "rows, in the order of their prediction",
        "type": "order",
        "grid": rank[points] + 1,
        "curves": levels[points].T,
        "x": rank + 1,
    }


def fans(
    model: Any,
    X: Any,
    y: Array,
    kept: NDArray[np.int64],
    names: list[str],
    rising: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """One fan a feature, the others held at their median or most frequent value."""
    if not names:
        return []
    columns = [column(X, k) for k in range(len(names))]
    still = [_middle(values) for values in columns]
    drawn = []
    for k, (name, values) in enumerate(zip(names, columns, strict=True)):
        text = values.dtype == object
        grid: NDArray[Any]
        if text:
            labels, counts = np.unique([v for v in values if _is_text(v)], return_counts=True)
            grid = labels[np.argsort(-counts, kind="stable")][:MAX_CATEGORIES].astype(object)
        else:
            given = values[np.isfinite(values)]
            grid = np.linspace(given.min(), given.max(), GRID)
        if len(grid) < 2 or grid[0] == grid[-1]:
            continue
        levels = as_columns(predictions(model, _cut(X, columns, still, k, grid)))[:, rising]
        at = values[kept]
        if text:
            place = {label: j for j, label in enumerate(grid)}
            at = np.array([place.get(v, -1) for v in at], dtype=np.float64)
        fan = {
            "name": name,
            "type": "category" if text else "number",
            "grid": list(grid),
            "curves": levels.T,
            "x": at,
        }
        drawn.append((float(np.ptp(levels, axis=0).max()), k, fan))
    drawn.sort(key=lambda item: (-item[0], item[1]))
    return [fan for _, _, fan in drawn[:MAX_FANS]]


def _middle(values: NDArray[Any]) -> Any:
    """The median, or the most frequent category."""
    if values.dtype != object:
        return float(np.nanmedian(values))
    labels, counts = np.unique([v for v in values if _is_text(v)], return_counts=True)
    return labels[np.argmax(counts)] if len(labels) else np.nan


def _cut(X: Any, columns: list[NDArray[Any]], still: list[Any], k: int, grid: Any) -> Any:
    """Rows that differ in one feature alone, in the container that the model was fitted to."""
    parts = [
        np.asarray(grid, dtype=values.dtype)
        if j == k
        else np.full(len(grid), still[j], dtype=values.dtype)
        for j, values in enumerate(columns)
    ]
    found = getattr(X, "columns", None)
    if found is None:
        return np.column_stack(parts)
    return type(X)({name: part for name, part in zip(found, parts, strict=True)})
