"""Reading data files, with errors that name file, row and column, and notes on what was found."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from .cells import date_form, texts
from .errors import InputError, listed, similar
from .formats import STDIN, ReadOptions, format_of
from .text import read_bytes, read_text

#: what a column is called by programs that write row numbers without a name
NAMELESS = ("", "Unnamed: 0", "...1")


@dataclass(frozen=True)
class Table:
    """A data file: named columns, or a sparse matrix with its targets.

    Attributes
    ----------
    file : Path
    frame : DataFrame or None
    matrix : CSR matrix or None
    targets : array or None
        The targets of an svmlight file.
    notes : list of str
        What was found out about the file by looking, or left out of it.
    dates : dict of str to str
        The forms of columns that were read as dates.
    """

    file: Path
    frame: pd.DataFrame | None = None
    matrix: Any = None
    targets: Any = None
    notes: list[str] = field(default_factory=list)
    dates: dict[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(self.frame) if self.frame is not None else int(self.matrix.shape[0])

    @property
    def read_as(self) -> str:
        """The notes in one line, empty where there are none."""
        return f"{self.file}: read with {'; '.join(self.notes)}" if self.notes else ""


def read_table(
    file: Path,
    options: ReadOptions | None = None,
    *,
    n_features: int | None = None,
    find_dates: bool = True,
) -> Table:
    """Read a data file.

    Parameters
    ----------
    file : Path
        "-" for standard input.
    options : ReadOptions or None
    n_features : int or None
        Of an svmlight file, where a model says how many it wants.
    find_dates : bool
        Whether text is looked at for dates; a model knows which columns are.
    """
    options = options or ReadOptions()
    kind = format_of(file)
    shown = Path("standard input") if file == STDIN else file
    if file != STDIN:
        if not file.exists():
            raise InputError(f"{file}: no such file")
        if file.is_dir():
            raise InputError(f"{file}: is a folder, not a file")
    try:
        if kind == "svmlight":
            matrix, targets = load_svmlight_file(str(file), n_features=n_features)
            table = Table(file, matrix=sp.csr_matrix(matrix), targets=targets)
        else:
            table = _frame_table(file, shown, kind, options, find_dates)
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"{file}: may not be read") from error
    except Exception as error:  # whatever a parser says about what it could not parse
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{shown}: cannot be read as {kind}: {reason}") from error
    if table.n_rows == 0:
        raise InputError(f"{shown}: has no rows")
    return table


def _frame_table(
    file: Path, shown: Path, kind: str, options: ReadOptions, find_dates: bool
) -> Table:
    """A file with named columns."""
    notes: list[str] = []
    match kind:
        case "parquet":
            frame = _read_parquet(file)
            names = [str(name) for name in frame.columns]
        case "excel":
            frame, names, notes = _read_excel(file)
        case _:
            data = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
            if kind == "json" or (file == STDIN and data.lstrip()[:1] in (b"{", b"[")):
                frame = _read_json(read_bytes(data, shown, options)[0], shown)
                names = [str(name) for name in frame.columns]
            else:
                read = read_text(data, shown, options)
                frame, names, notes = read.frame, list(read.names), read.notes
    frame = frame.set_axis(range(frame.shape[1]), axis=1)
    if options.na:
        frame = frame.mask(frame.astype(str).isin(options.na))
    frame, more = _named(frame, names, shown)
    dates: dict[str, str] = {}
    if find_dates:
        frame, dates, said = _dated(frame, options)
        more += said
    return Table(shown, frame=frame, notes=notes + more, dates=dates)


def _named(frame: pd.DataFrame, names: Sequence[str], file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Columns by their names, without numbers of rows, and without what is empty."""
    notes, kept = [], []
    for k, name in enumerate(str(name).strip() for name in names):
        if name not in NAMELESS and not name.startswith("Unnamed: "):
            kept.append((k, name))
        elif frame[k].isna().all():
            notes.append(f"column {k + 1} left out, which is empty and has no name")
        elif k == 0:
            notes.append("column 1 left out, which has no name: numbers or names of rows")
        else:
            raise InputError(f"{file}: column {k + 1} has no name; write one into the first line")
    twice = pd.Series([name for _, name in kept], dtype=object)
    twice = twice[twice.duplicated()]
    if len(twice):
        raise InputError(f"{file}: column {twice.iloc[0]!r} occurs twice; rename one of the two")
    frame = frame[[k for k, _ in kept]].set_axis([name for _, name in kept], axis=1)
    given = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
    last = int(given[-1]) + 1 if len(given) else 0
    if last < len(frame):
        notes.append(f"{len(frame) - last} empty rows at the end left out")
    return frame.iloc[:last].reset_index(drop=True), notes


def _dated(
    frame: pd.DataFrame, options: ReadOptions
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Columns of dates as such, their forms, and what to say about them."""
    forms, said = {}, []
    for name in frame.columns:
        cells = texts(frame[name])
        form, why = date_form(cells, options.dates)
        if why:
            said.append(f"column {name!r}: {why}")
        if not form:
            continue
        times = pd.to_datetime(frame[name].str.strip(), format=form, errors="coerce")
        wrong = rows_where(times.isna() & frame[name].notna())
        if wrong:
            cell = str(frame[name].iloc[wrong[0] - 1])
            said.append(f"column {name!r}: {cell} in row {wrong[0]} is no date, so it is text")
            continue
        frame = frame.assign(**{str(name): times})
        forms[str(name)] = form
        said.append(f"dates in column {name!r} as {_form_words(form)}")
    return frame, forms, said


def _form_words(form: str) -> str:
    """A form in words: day.month.year."""
    words = {"%d": "day", "%m": "month", "%Y": "year", "%y": "year"}
    words |= {"%H": "hour", "%M": "minute", "%S": "second"}
    for code, word in words.items():
        form = form.replace(code, word)
    return form


def _read_json(text: str, file: Path) -> pd.DataFrame:
    """Records, one a line or in a list."""
    records: list[Any] = []
    try:
        whole = json.loads(text) if text.lstrip().startswith("[") else None
    except ValueError as error:
        raise InputError(f"{file}: is not JSON: {error}") from error
    lines = enumerate(text.split("\n") if whole is None else whole, 1)
    for k, line in lines:
        if isinstance(line, str) and not line.strip():
            continue
        try:
            record = json.loads(line) if isinstance(line, str) else line
        except ValueError as error:
            raise InputError(f"{file}: line {k} is not a JSON object: {error}") from error
        if not isinstance(record, dict):
            raise InputError(f'{file}: record {k} must be an object, such as {{"a": 1}}')
        for name, value in record.items():
            if isinstance(value, dict | list):
                raise InputError(f"{file}: {name!r} in record {k} holds several values, not one")
        records.append(record)
    return pd.DataFrame.from_records(records)


def _read_excel(file: Path) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The first sheet."""
    if find_spec("openpyxl") is None:
        raise InputError(
            f"{file}: Excel files need openpyxl, which is not installed: pip install openpyxl, or "
            "save it as CSV"
        )
    with pd.ExcelFile(file, engine="openpyxl") as book:
        sheets = [str(name) for name in book.sheet_names]
        cells = pd.read_excel(book, sheet_name=0, header=None)
    if cells.empty:
        raise InputError(f"{file}: sheet {sheets[0]!r} is empty")
    notes = [f"sheet {sheets[0]!r} of {len(sheets)}"] if len(sheets) > 1 else []
    names = ["" if pd.isna(name) else str(name) for name in cells.iloc[0]]
    return cells.iloc[1:].reset_index(drop=True).infer_objects(), names, notes


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{file}: Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from error
    return pd.read_parquet(file).reset_index(drop=True)


def column(table: Table, name: str, option: str) -> pd.Series:
    """A column by name; the error names the option and what there is."""
    assert table.frame is not None
    if name not in table.frame.columns:
        names = list(table.frame.columns)
        raise InputError(
            f"{table.file}: has no column {name!r} ({option}){similar(name, names)}; its columns "
            f"are {listed(names, 8)}{_numbers_only(names)}"
        )
    return table.frame[name]


def _numbers_only(names: Sequence[str]) -> str:
    """What to say where a header looks like a row."""
    if len(names) and all(not pd.isna(pd.to_numeric(name, errors="coerce")) for name in names):
        return ", which look like a row: the first line must have the names"
    return ""


def rows_where(mask: Any) -> list[int]:
    """Row numbers as a reader counts them: from 1, the header not counted.

    The index of a Series counts them from 0, also where rows are left out.
    """
    places = np.flatnonzero(np.asarray(mask))
    if isinstance(mask, pd.Series):
        places = mask.index.to_numpy()[places]
    return [int(k) + 1 for k in places]


def row_words(rows: Sequence[int]) -> str:
    """Row numbers in words."""
    return f"row {rows[0]}" if len(rows) == 1 else f"rows {listed(rows)}"


def numbers(values: pd.Series, file: Path, name: str) -> pd.Series:
    """A column as floats; text in it is named with its row."""
    if pd.api.types.is_numeric_dtype(values):
        return pd.Series(values.to_numpy(np.float64, na_value=np.nan), index=values.index)
    converted = pd.to_numeric(values, errors="coerce")
    wrong = rows_where(converted.isna() & values.notna())
    if wrong:
        raise InputError(
            f"{file}: column {name!r} must be numeric, but has {str(values.loc[wrong[0] - 1])!r} "
            f"in row {wrong[0]}; --na names texts that stand for missing values"
        )
    return converted.astype(np.float64)


def check_finite(frame: pd.DataFrame, file: Path) -> None:
    """Refuse infinite numbers, naming columns and rows."""
    for name in frame.columns:
        if pd.api.types.is_float_dtype(frame[name]):
            numbers = frame[name].to_numpy(np.float64, na_value=np.nan)
            rows = rows_where(pd.Series(np.isinf(numbers), index=frame.index))
            if rows:
                raise InputError(f"{file}: column {name!r} is infinite in {row_words(rows)}")


def check_missing(frame: pd.DataFrame, file: Path, remedy: str) -> None:
    """Refuse missing values, naming columns and rows."""
    found = [
        f"column {str(name)!r} ({row_words(rows)})"
        for name in frame.columns
        if (rows := rows_where(frame[name].isna()))
    ]
    if found:
        raise InputError(f"{file}: missing values in {listed(found, 3)}{remedy}")
