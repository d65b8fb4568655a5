"""Columns as they come: numbers, times or text, with missing values marked as such."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Complex, Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ..estimators.data import validated

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: rows by which to learn, None for all of them
Rows: TypeAlias = Any

#: what a column holds
NUMBERS, TIMES, TEXT = "numbers", "times", "text"
#: times are kept to the microsecond
CLOCK = "datetime64[us]"


@dataclass(frozen=True)
class Values:
    """One column.

    Attributes
    ----------
    name : str
    type : {"numbers", "times", "text"}
    data : array
        float64 with NaN, datetime64 with NaT, or objects that are text or None.
    order : tuple of str or None
        The categories of an ordered categorical, the lowest first.
    boolean : bool
        Whether numbers are False and True.
    categorical : bool
        Whether the input itself calls it categories.
    """

    name: str
    type: str
    data: NDArray[Any]
    order: tuple[str, ...] | None = None
    boolean: bool = False
    categorical: bool = False

    def __len__(self) -> int:
        return len(self.data)

    @property
    def missing(self) -> Mask:
        if self.type == NUMBERS:
            return np.isnan(self.data)
        if self.type == TIMES:
            return np.isnat(self.data)
        return np.array([value is None for value in self.data], dtype=bool)

    def take(self, rows: Rows) -> Values:
        """The same column at some rows."""
        return replace(self, data=self.data[rows])


@dataclass(frozen=True)
class Table:
    """The columns of an input, or the sparse matrix that it is.

    Attributes
    ----------
    columns : list of Values
        Empty for a sparse matrix.
    sparse : CSR matrix or None
    names : array of str or None
        Where the input has names.
    """

    columns: list[Values]
    sparse: Any
    names: NDArray[Any] | None

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.sparse is None else int(self.sparse.shape[0])

    @property
    def n_columns(self) -> int:
        return len(self.columns) if self.sparse is None else int(self.sparse.shape[1])


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """What X holds. The estimator notes its columns, or compares them with those of its fit."""
    if hasattr(X, "to_pandas") and not _is_frame(X):
        X = X.to_pandas()
    if _is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        for size, what in zip(X.shape, ("sample", "feature"), strict=True):
            if size == 0:
                raise ValueError(
                    f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is "
                    f"required by {type(estimator).__name__}."
                )
        columns = [series_values(str(name), X.iloc[:, k]) for k, name in enumerate(X.columns)]
        for column in columns:
            _check_finite(column)
        return Table(columns, None, getattr(estimator, "feature_names_in_", None))
    sparse = sp.issparse(X)
    X = validated(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=np.float64 if sparse else None,
        ensure_all_finite=True if sparse else "allow-nan",
    )
    if sparse:
        return Table([], X, None)
    columns = _array_columns(X)
    for column in columns:
        _check_finite(column)
    return Table(columns, None, None)


def _is_frame(X: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _array_columns(X: NDArray[Any]) -> list[Values]:
    """The columns of an array of numbers, text or objects."""
    names = [f"x{k}" for k in range(X.shape[1])]
    if X.dtype.kind in "biuf":
        numbers, boolean = X.astype(np.float64), X.dtype.kind == "b"
        return [Values(n, NUMBERS, numbers[:, k], None, boolean) for k, n in enumerate(names)]
    if X.dtype.kind in "mM":
        return [_timed(name, X[:, k]) for k, name in enumerate(names)]
    return [_objects(name, X[:, k].astype(object)) for k, name in enumerate(names)]


def _timed(name: str, values: NDArray[Any]) -> Values:
    """Points in time as they are, durations in seconds."""
    if values.dtype.kind == "M":
        return Values(name, TIMES, values.astype(CLOCK))
    seconds = values / np.timedelta64(1, "s")
    return Values(name, NUMBERS, np.asarray(seconds, dtype=np.float64))


def series_values(name: str, series: Any) -> Values:
    """A column of a data frame."""
    from pandas.api import types

    dtype = series.dtype
    if isinstance(dtype, sys.modules["pandas"].CategoricalDtype):
        order = tuple(label(c) for c in dtype.categories) if dtype.ordered else None
        text = _texts(series.astype(object).to_numpy())
        return Values(name, TEXT, text, order=order, categorical=True)
    if types.is_complex_dtype(dtype):
        raise ValueError(f"Complex data not supported: column {name!r}")
    if types.is_bool_dtype(dtype):
        numbers = series.astype(object).to_numpy(object)
        return Values(name, NUMBERS, _floats(numbers), boolean=True)
    if types.is_numeric_dtype(dtype):
        return Values(name, NUMBERS, series.to_numpy(np.float64, na_value=np.nan))
    if types.is_datetime64_any_dtype(dtype):
        local = series.dt.tz_localize(None) if series.dt.tz is not None else series
        return _timed(name, local.to_numpy("datetime64[us]"))
    if types.is_timedelta64_dtype(dtype):
        return _timed(name, series.to_numpy("timedelta64[us]"))
    if isinstance(dtype, sys.modules["pandas"].PeriodDtype):
        return _timed(name, series.dt.to_timestamp().to_numpy("datetime64[us]"))
    return _objects(name, series.astype(object).to_numpy(object))


def _objects(name: str, values: NDArray[Any]) -> Values:
    """What Python objects are: all numbers, all points in time, or text."""
    given = [value for value in values if not _is_missing(value)]
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        return Values(name, NUMBERS, _floats(values), boolean=True)
    if given and all(isinstance(value, Real) for value in given):
        return Values(name, NUMBERS, _floats(values))
    if any(isinstance(value, Complex) and not isinstance(value, Real) for value in given):
        raise ValueError(f"Complex data not supported: column {name!r}")
    if given and all(isinstance(value, date | np.datetime64) for value in given):
        times = [np.datetime64("NaT") if _is_missing(v) else _instant(v) for v in values]
        return Values(name, TIMES, np.array(times, dtype=CLOCK))
    if not given:
        return Values(name, NUMBERS, np.full(len(values), np.nan))
    return Values(name, TEXT, _texts(values))


def _instant(value: Any) -> np.datetime64:
    """A date or time of day as the clock on the wall shows it."""
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    return np.datetime64(value).astype(CLOCK)


def _floats(values: NDArray[Any]) -> Array:
    return np.array([np.nan if _is_missing(v) else float(v) for v in values], dtype=np.float64)


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    text = np.empty(len(values), dtype=object)
    text[:] = [None if _is_missing(value) else label(value) for value in values]
    return text


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas' NA, and text without a letter."""
    if isinstance(value, str):
        return not value.strip()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def label(value: Any) -> str:
    """A category as text: whole numbers alike however they are stored."""
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_) and value == value // 1:
        return str(int(float(value)))
    return str(value)


def as_numbers(values: Values) -> tuple[Array, list[str]]:
    """A column read as numbers, and the texts in it that are none, one a row."""
    if values.type == NUMBERS:
        return values.data, []
    if values.type == TIMES:
        wrong = [str(value) for value in values.data[~values.missing]]
        return np.full(len(values), np.nan), wrong
    known: dict[str, float] = {text: _number(text) for text in {v for v in values.data if v}}
    numbers = np.array([known.get(v, np.nan) for v in values.data], dtype=np.float64)
    wrong = [v for v in values.data if v is not None and np.isnan(known[v])]
    return numbers, wrong


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def as_times(values: Values) -> tuple[NDArray[np.datetime64], list[str]]:
    """A column read as times, and the texts in it that are none, one a row.

    Text is read where it is written as ISO 8601 has it, 2024-03-31 or 2024-03-31T12:30: other
    forms are read differently in different places.
    """
    if values.type == TIMES:
        return values.data, []
    if values.type == NUMBERS:
        wrong = [f"{value:g}" for value in values.data[~values.missing]]
        return np.full(len(values), "NaT", dtype=CLOCK), wrong
    known = {text: _time(text) for text in {v for v in values.data if v}}
    nothing = np.datetime64("NaT")
    times = np.array([known.get(v, nothing) for v in values.data], dtype=CLOCK)
    wrong = [v for v in values.data if v is not None and np.isnat(known[v])]
    return times, wrong


def _time(text: str) -> np.datetime64:
    """A date as ISO 8601 writes it, to the day at least."""
    try:
        if "-" not in text:  # 20240331 is a number
            raise ValueError
        return np.datetime64(datetime.fromisoformat(text.strip()).replace(tzinfo=None)).astype(
            CLOCK
        )
    except ValueError:
        return np.datetime64("NaT")


def as_texts(values: Values) -> NDArray[Any]:
    """A column read as categories: text, None where it is missing."""
    if values.type == TEXT:
        return values.data
    data: NDArray[Any] = values.data.astype(object)
    if values.boolean:
        data = np.array([v if np.isnan(v) else bool(v) for v in values.data], dtype=object)
    text = np.empty(len(values), dtype=object)
    text[:] = [
        None if gone else label(value) for value, gone in zip(data, values.missing, strict=True)
    ]
    return text


def _check_finite(values: Values) -> None:
    """Refuse infinite numbers, naming column and row."""
    if values.type != NUMBERS:
        return
    rows = np.flatnonzero(np.isinf(values.data))
    if len(rows):
        raise ValueError(
            f"Input X contains infinity: column {values.name!r} must be finite or missing, "
            f"got {values.data[rows[0]]} in row {int(rows[0])}"
        )
