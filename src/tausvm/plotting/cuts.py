"""Cuts through a model: some features vary, the others are held at their medians."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def cut_through(X: Any, varied: Mapping[int, Array]) -> Any:
    """Rows with the features ``varied`` (column and its values) and medians elsewhere.

    An array for an array X, a DataFrame of the same columns for a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> cut_through(np.array([[0.0, 1.0], [2.0, 5.0]]), {0: np.array([7.0, 8.0])})
    array([[7., 3.],
           [8., 3.]])
    """
    length = len(next(iter(varied.values())))
    rows = np.tile(np.median(np.asarray(X, dtype=np.float64), axis=0), (length, 1))
    for column, values in varied.items():
        rows[:, column] = values
    return type(X)(rows, columns=X.columns) if hasattr(X, "columns") else rows


def feature_label(X: Any, column: int) -> str:
    """The name of a feature: that of a DataFrame's column, or its number."""
    columns = getattr(X, "columns", None)
    return f"feature {column}" if columns is None else str(columns[column])
