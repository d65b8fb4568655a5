"""Levels along one feature, the others held still: the fans of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..cuts import categories, column_values, cut_through, feature_label, is_text
from ..inspection import as_columns, predictions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FanSettings:
    """How much is drawn along a feature."""

    #: features with a fan, those first along which the model moves most: a list that is read
    features: int = 12
    #: points of a curve: one every few pixels on a phone
    points: int = 80
    #: points of the curves over the rows in order
    ordered: int = 320
    #: categories shown of a column: more have no place on an axis
    categories: int = 30
    #: smallest difference that is kept of what is drawn, in spreads: less than a thousandth of a
    #: pixel, in half the letters
    resolution: float = 1e-6


def rounded(values: Array, spread: float) -> Array:
    """Values that are drawn to a scale of this spread, without digits that nobody sees.

    Rounding keeps their order.
    """
    step = FanSettings().resolution * spread
    return np.round(values, int(-np.floor(np.log10(step)))) if step > 0 else values


def describe_columns(X: Any, names: list[str] | None) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the columns, and what is in them; nothing is described of sparse data."""
    if sp.issparse(X):
        return [], []
    if names is not None and not hasattr(X, "columns"):
        given = list(names)
    else:
        given = [feature_label(X, k) for k in range(X.shape[1])]
    if len(given) != X.shape[1]:
        raise ValueError(f"feature_names must have {X.shape[1]} names, got {len(given)}")
    return given, [_describe(name, column_values(X, k)) for k, name in enumerate(given)]


def _describe(name: str, values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype == object:
        labels, counts = categories(values)
        most = FanSettings().categories
        return {
            "name": name,
            "type": "category",
            "missing": int(sum(not is_text(v) for v in values)),
            "values": [[label, count] for label, count in zip(labels[:most], counts, strict=False)],
            "distinct": len(labels),
        }
    numbers = _numbers(values)
    given = numbers[np.isfinite(numbers)]
    return {
        "name": name,
        "type": _type(values),
        "missing": int(len(values) - len(given)),
        "quartiles": np.quantile(given, [0, 0.25, 0.5, 0.75, 1]),
        "mean": given.mean(),
    }


def _type(values: NDArray[Any]) -> str:
    if values.dtype == object:
        return "category"
    return "date" if values.dtype.kind == "M" else "number"


def _numbers(values: NDArray[Any]) -> Array:
    """Numbers as they are; times in milliseconds since 1970, as browsers count them."""
    if values.dtype.kind != "M":
        return values.astype(np.float64)
    found = values.astype("datetime64[ms]").astype(np.int64).astype(np.float64)
    return np.where(np.isnat(values), np.nan, found)


def order_fan(y: Array, levels: Array) -> dict[str, Any]:
    """The rows in the order of their middle prediction: a fan that every model has."""
    middle = levels[:, levels.shape[1] // 2]
    order = np.argsort(middle, kind="stable")
    most = min(len(order), FanSettings().ordered)
    points = order[np.linspace(0, len(order) - 1, most).astype(int)]
    rank = np.empty(len(y), dtype=np.int64)
    rank[order] = np.arange(len(y))
    return {
        "name": "rows in order of prediction",
        "type": "order",
        "grid": rank[points] + 1,
        "curves": levels[points].T,
        "x": rank + 1,
    }


def fans(
    model: Any,
    X: Any,
    kept: NDArray[np.int64],
    names: list[str],
    rising: NDArray[np.int64],
) -> list[dict[str, Any]]:
    """One fan a feature, the others held at their median or most frequent value."""
    drawn = []
    for k, name in enumerate(names):
        values = column_values(X, k)
        grid = _grid(values)
        if len(grid) < 2 or grid[0] == grid[-1]:
            continue
        levels = as_columns(predictions(model, cut_through(X, {k: grid})))[:, rising]
        if values.dtype == object:
            place = {label: j for j, label in enumerate(grid)}
            at = np.array([place.get(v, -1) for v in values[kept]], dtype=np.float64)
        else:
            at, grid = _numbers(values[kept]), _numbers(grid)
            at, grid = (rounded(part, float(np.ptp(grid))) for part in (at, grid))
        fan = {
            "name": name,
            "type": _type(values),
            "grid": list(grid),
            "curves": levels.T,
            "x": at,
        }
        drawn.append((float(np.ptp(levels, axis=0).max()), k, fan))
    drawn.sort(key=lambda item: (-item[0], item[1]))
    return [fan for _, _, fan in drawn[: FanSettings().features]]


def _grid(values: NDArray[Any]) -> NDArray[Any]:
    """The values along which a fan is drawn."""
    if values.dtype == object:
        return categories(values)[0][: FanSettings().categories]
    numbers = _numbers(values)
    given = numbers[np.isfinite(numbers)]
    grid = np.linspace(given.min(), given.max(), FanSettings().points)
    if values.dtype.kind == "M":
        return grid.astype(np.int64).astype("datetime64[ms]").astype(values.dtype)
    return grid
