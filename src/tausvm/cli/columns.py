"""The columns of a file that a model reads: what they were taken for, and what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..tabular import FramePreparation
from ..tabular.codes import CategoryCode, NumberCode, OrderedCode, TargetCode
from ..tabular.kinds import CATEGORY, DATE, DROP, IDENTIFIER, NUMBER, ORDERED
from ..tabular.values import as_numbers, as_texts, as_times, series_values
from .cells import texts
from .errors import InputError, listed, similar
from .tables import Table, check_finite, check_missing, column, row_words, rows_where

#: what a cell must be in a column where not every text will do
WANTED = {NUMBER: "a number", DATE: "a date", ORDERED: "one of its categories"}
#: what a column is of
PLURALS = {NUMBER: "numbers", CATEGORY: "categories", ORDERED: "ordered categories", DATE: "dates"}


@dataclass(frozen=True)
class Column:
    """A column that a model reads: numbers by their range, categories by their values.

    ``why`` it is taken for that is empty in the files of earlier versions. ``form`` is that of
    dates which are not as ISO 8601 writes them, and ``holes`` whether cells may be missing although
    missing values are refused elsewhere.
    """

    name: str
    type: str
    low: float = 0.0
    median: float = 0.0
    high: float = 0.0
    values: tuple[str, ...] = ()
    why: str = ""
    form: str = ""
    holes: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Any) -> Column:
        """A column as a model's card tells it."""
        try:
            return cls(**{**told, "values": tuple(told["values"])})
        except (TypeError, KeyError) as error:
            raise InputError("the model's card does not describe its columns") from error

    def read(self, cells: pd.Series) -> tuple[Any, Any]:
        """Its cells as the model is to see them, and which are not what they must be.

        These are missing to the model, but for categories that it has not seen.
        """
        values = series_values(self.name, self._dated(cells))
        if self.type in (NUMBER, DATE):
            part: Any = (as_numbers if self.type == NUMBER else as_times)(values)[0]
            return part, pd.isna(part) & ~values.missing
        text = as_texts(values)
        if not self.why:  # earlier versions wrote the code 3 as "3.0" where numbers were missing
            text = np.array([None if pd.isna(cell) else str(cell) for cell in cells], dtype=object)
        known = {None, *self.values}
        odd = np.array([t not in known for t in text], dtype=bool)
        gone = values.missing | (odd & (self.type == ORDERED))
        return np.where(gone, np.array(np.nan, dtype=object), text), odd

    def _dated(self, cells: pd.Series) -> pd.Series:
        """Text in the form of the fit as dates; what is not in it stays as it is."""
        if not self.form or not texts(cells):
            return cells
        times = pd.to_datetime(cells.str.strip(), format=self.form, errors="coerce")
        written = times.dt.strftime("%Y-%m-%dT%H:%M:%S")
        return written.where(times.notna(), cells)


def choose_columns(
    table: Table,
    *,
    without: Iterable[str],
    features: Sequence[str],
    drop: Sequence[str],
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> list[str]:
    """The names of the columns that a model may read."""
    assert table.frame is not None
    for option, names in (
        ("--features", features),
        ("--drop", drop),
        ("--categorical", categorical),
        ("--numeric", numeric),
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
    check_finite(table.frame[chosen], table.file)
    return chosen


def learned_columns(
    table: Table, prepare: FramePreparation, holes: Sequence[str] = ()
) -> tuple[list[Column], list[str]]:
    """The columns that have features, and what to say about those that may surprise.

    Those in ``holes`` may have missing cells.
    """
    columns, said = [], []
    for told, code in zip(prepare.columns_, prepare._codes, strict=True):
        name, kind, why = (str(told[key]) for key in ("name", "kind", "why"))
        if code is None or isinstance(code, TargetCode):
            more = f"; --categorical {name} takes it in" if kind == IDENTIFIER else ""
            said.append(f"{table.file}: column {name!r}: {why}{more}")
        seen: dict[str, Any] = {}
        match code:
            case None:
                continue
            case NumberCode():
                high = code.low if code.constant else code.low + code.half_range + code.half_range
                seen = {"low": code.low, "median": code.fill, "high": high}
            case OrderedCode():
                seen = {"values": code.order}
            case CategoryCode() | TargetCode():
                seen = {"values": tuple(text for text in code.table()[0] if text)}
        form = table.dates.get(name, "") if kind == DATE else ""
        columns.append(Column(name, kind, **seen, why=why, form=form, holes=name in holes))
    if not columns:
        raise InputError(f"no column is left to predict from; {said[0]}")
    return columns, said


def column_words(prepare: FramePreparation, table: Table) -> str:
    """What the columns were taken for, in a line, and why where that may surprise."""
    if table.frame is None:
        return f"columns: {prepare_words(table)}"
    count: dict[str, list[str]] = {}
    because = []
    for told in prepare.columns_:
        name, kind, why = (str(told[key]) for key in ("name", "kind", "why"))
        count.setdefault(kind if told["features"] else DROP, []).append(name)
        if kind == CATEGORY and ", because of " in why:
            because.append(f"{name}: {why}; --numeric {name} treats them as missing")
    words = [
        f"{len(names)} of {plural} ({listed(names, 3)})"
        for kind, plural in PLURALS.items()
        if (names := count.get(kind))
    ]
    if DROP in count:
        words.append(f"{len(count[DROP])} left out ({listed(count[DROP], 3)})")
    return f"columns: {', '.join(words)}" + "".join(f"; {line}" for line in because[:3])


def prepare_words(table: Table) -> str:
    """What a sparse file holds."""
    return f"{table.matrix.shape[1]} numbers, of which {table.matrix.nnz} are not 0"


def read_features(
    table: Table, columns: Sequence[Column], *, impute: bool
) -> tuple[pd.DataFrame, list[str]]:
    """The columns of a model as it reads them, and what to say about cells that it cannot read."""
    names = [c.name for c in columns]
    if table.frame is None:
        raise InputError(
            f"{table.file}: is svmlight, but the model reads the columns {listed(names, 8)}"
        )
    there = list(table.frame.columns)
    lost = [f"{name!r}{similar(name, there)}" for name in names if name not in there]
    if lost:
        raise InputError(f"{table.file}: has no column {listed(lost)}, which the model reads")
    check_finite(table.frame[names], table.file)
    told = []
    parts: dict[str, Any] = {}
    for c in columns:
        cells = table.frame[c.name]
        parts[c.name], odd = c.read(cells)
        rows = rows_where(pd.Series(odd, index=cells.index))
        if not rows:
            continue
        what = f"{table.file}: column {c.name!r} has {str(cells.loc[rows[0] - 1])!r} in "
        if c.type == CATEGORY:
            means = "the model has not seen; it counts as none of its categories"
        elif impute or c.holes:
            means = f"is not {WANTED[c.type]}; it counts as missing"
        else:
            raise InputError(
                f"{what}row {rows[0]}, which is not {WANTED[c.type]}; at fit give --impute, or "
                f"--numeric {c.name}, to count it as missing, or --categorical {c.name}"
            )
        told.append(f"{what}{row_words(rows)}, which {means}")
    frame = pd.DataFrame(parts, index=table.frame.index)
    if not impute:
        whole = [c.name for c in columns if not c.holes]
        check_missing(
            frame[whole], table.file, "; give --impute at fit to fill them, or drop the rows"
        )
    return frame, told
