"""Reading data files: CSV, Parquet and svmlight, with errors that name file, row and column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from .errors import InputError, listed
from .formats import format_of


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
    """

    file: Path
    frame: pd.DataFrame | None = None
    matrix: Any = None
    targets: Any = None

    @property
    def n_rows(self) -> int:
        return len(self.frame) if self.frame is not None else int(self.matrix.shape[0])


def read_table(file: Path, n_features: int | None = None) -> Table:
    """Read a data file.

    Parameters
    ----------
    file : Path
    n_features : int or None
        Of an svmlight file, where a model says how many it wants.
    """
    kind = format_of(file)
    if not file.exists():
        raise InputError(f"{file}: no such file")
    if file.is_dir():
        raise InputError(f"{file}: is a folder, not a file")
    try:
        match kind:
            case "svmlight":
                matrix, targets = load_svmlight_file(str(file), n_features=n_features)
                table = Table(file, matrix=sp.csr_matrix(matrix), targets=targets)
            case "parquet":
                table = Table(file, frame=_read_parquet(file))
            case _:
                table = Table(file, frame=_read_text(file, "\t" if kind == "tsv" else ","))
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"{file}: may not be read") from error
    except Exception as error:  # whatever a parser says about what it could not parse
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{file}: cannot be read as {kind}: {reason}") from error
    if table.n_rows == 0:
        raise InputError(f"{file}: has no rows")
    return table


def _read_text(file: Path, separator: str) -> pd.DataFrame:
    try:
        header = pd.read_csv(file, sep=separator, header=None, nrows=1, dtype=str)
    except pd.errors.EmptyDataError as error:
        raise InputError(f"{file}: is empty") from error
    names = header.iloc[0].fillna("").astype(str).str.strip()
    if (names == "").any():
        place = int(np.flatnonzero(names == "")[0]) + 1
        raise InputError(f"{file}: column {place} has no name in the first line")
    twice = names[names.duplicated()]
    if len(twice):
        raise InputError(f"{file}: column {twice.iloc[0]!r} occurs twice")
    frame = pd.read_csv(file, sep=separator, skipinitialspace=True, index_col=False)
    frame.columns = list(names)
    return frame


def _read_parquet(file: Path) -> pd.DataFrame:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{file}: Parquet files need pyarrow, which is not installed: pip install pyarrow"
        ) from error
    frame = pd.read_parquet(file)
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)


def column(table: Table, name: str, option: str) -> pd.Series:
    """A column by name; the error names the option and what there is."""
    assert table.frame is not None
    if name not in table.frame.columns:
        raise InputError(
            f"{table.file}: has no column {name!r} ({option}); its columns are "
            f"{listed(list(table.frame.columns), 8)}"
        )
    return table.frame[name]


def rows_where(mask: Any) -> list[int]:
    """Row numbers as a reader counts them: from 1, the header not counted."""
    return [int(k) + 1 for k in np.flatnonzero(np.asarray(mask))]


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
            f"{file}: column {name!r} must be numeric, but has {str(values.iloc[wrong[0] - 1])!r} "
            f"in row {wrong[0]}"
        )
    return converted.astype(np.float64)


def check_finite(frame: pd.DataFrame, file: Path) -> None:
    """Refuse infinite numbers, naming columns and rows."""
    for name in frame.columns:
        if pd.api.types.is_float_dtype(frame[name]):
            rows = rows_where(np.isinf(frame[name].to_numpy(np.float64, na_value=np.nan)))
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
