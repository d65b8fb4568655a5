"""The columns of a file that a model reads: which are numbers, and which categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..tabular.kinds import CATEGORY, NUMBER
from .errors import InputError, listed
from .tables import Table, check_finite, check_missing, column, numbers, row_words, rows_where


@dataclass(frozen=True)
class Column:
    """A column that a model reads: numbers by their range, categories by their values."""

    name: str
    type: str
    low: float = 0.0
    median: float = 0.0
    high: float = 0.0
    values: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Any) -> Column:
        """A column as a model's card tells it."""
        try:
            return cls(**{**told, "values": tuple(told["values"])})
        except (TypeError, KeyError) as error:
            raise InputError("the model's card does not describe its columns") from error


def choose_columns(
    table: Table,
    *,
    without: Iterable[str],
    features: Sequence[str],
    drop: Sequence[str],
    categorical: Sequence[str],
    max_categories: int,
) -> list[Column]:
    """The columns that a model is to read, each with its type."""
    assert table.frame is not None
    for option, names in (
        ("--features", features),
        ("--drop", drop),
        ("--categorical", categorical),
    ):
        for name in names:
            column(table, name, option)
    taken = set(without)
    for name in features:
        if name in taken:
            raise InputError(f"--features: {name!r} is the target or the weight already")
    chosen = [
        str(name)
        for name in (features or table.frame.columns)
        if name not in taken and name not in drop
    ]
    if not chosen:
        raise InputError(f"{table.file}: no feature columns are left beside the target")
    return [_describe(table, name, name in categorical, max_categories) for name in chosen]


def _describe(table: Table, name: str, categorical: bool, max_categories: int) -> Column:
    assert table.frame is not None
    values = table.frame[name]
    if pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values):
        raise InputError(
            f"{table.file}: column {name!r} holds times, which a model cannot read; turn it into "
            "numbers, or leave it out with --drop"
        )
    if pd.api.types.is_numeric_dtype(values) and not categorical:
        given = numbers(values, table.file, name).dropna()
        if given.empty:
            raise InputError(f"{table.file}: column {name!r} is empty; leave it out with --drop")
        spread = given.to_numpy()
        return Column(
            name, NUMBER, float(spread.min()), float(np.median(spread)), float(spread.max())
        )
    seen = sorted({str(value) for value in values.dropna()})
    if len(seen) > max_categories:
        raise InputError(
            f"{table.file}: column {name!r} has {len(seen)} different values, more than "
            f"--max-categories {max_categories}; leave it out with --drop {name!r}, or raise that"
        )
    if not seen:
        raise InputError(f"{table.file}: column {name!r} is empty; leave it out with --drop")
    return Column(name, CATEGORY, values=tuple(seen))


def read_features(
    table: Table, columns: Sequence[Column], *, impute: bool
) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a model as it reads them, and what to say about unknown categories."""
    if table.frame is None:
        raise InputError(
            f"{table.file}: is svmlight, but the model reads the columns "
            f"{listed([c.name for c in columns], 8)}"
        )
    lost = [c.name for c in columns if c.name not in table.frame.columns]
    if lost:
        raise InputError(
            f"{table.file}: has no column {listed([repr(name) for name in lost])}, which the "
            "model reads"
        )
    told = []
    parts: dict[str, Any] = {}
    for c in columns:
        values = table.frame[c.name]
        if c.type == NUMBER:
            parts[c.name] = numbers(values, table.file, c.name).to_numpy(np.float64)
            continue
        text = np.array([np.nan if pd.isna(v) else str(v) for v in values], dtype=object)
        parts[c.name] = text
        unknown = rows_where([isinstance(v, str) and v not in c.values for v in text])
        if unknown:
            told.append(
                f"{table.file}: column {c.name!r} has {text[unknown[0] - 1]!r} in "
                f"{row_words(unknown)}, which the model has not seen; it counts as none of its "
                "categories"
            )
    frame = pd.DataFrame(parts)
    check_finite(frame, table.file)
    if not impute:
        check_missing(frame, table.file, "; give --impute at fit to fill them, or drop the rows")
    return frame, told
