"""The benchmark data: where it lies, and how it is scaled.

One CSV a data set, all numeric, the last column the target. The folder is the environment
variable ``TAUSVM_DATA``, or ``shared/data`` beside the repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALINGS = ("standard", "unit", "raw")


def data_folder() -> Path:
    """The folder of the data sets; a FileNotFoundError that says what to do without one."""
    named = os.environ.get("TAUSVM_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no benchmark data at {folder}: set TAUSVM_DATA to the folder of the CSV files "
            "(see benchmarks/README.md)"
        )
    return folder


def find(name: str) -> Path:
    """The file of a data set."""
    folder = data_folder()
    files = [folder / f"{name}.csv", folder / f"{name}.csv.gz"]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"no data set {name!r} in {folder}")
    return found


def load(
    name: str, scaling: str = "standard", max_rows: int | None = None, seed: int = 0
) -> tuple[Array, Array]:
    """Features and target of a data set.

    Parameters
    ----------
    name : str
        File name without ``.csv`` or ``.csv.gz``.
    scaling : {"standard", "unit", "raw"}
        Every column, the target too: mean 0 and variance 1, or onto [−1, 1], or as it is.
    max_rows : int or None
        Keep at most this many rows, drawn at random.
    seed : int
        Of that draw.
    """
    table = scale(pd.read_csv(find(name)).to_numpy(np.float64), scaling)
    if max_rows is not None and len(table) > max_rows:
        table = table[np.random.default_rng(seed).permutation(len(table))[:max_rows]]
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def scale(table: Array, scaling: str) -> Array:
    """Every column by ``scaling``; a constant column becomes 0."""
    match scaling:
        case "raw":
            return table
        case "standard":
            centre, spread = table.mean(axis=0), table.std(axis=0)
        case "unit":
            low, high = table.min(axis=0), table.max(axis=0)
            centre, spread = 0.5 * (low + high), 0.5 * (high - low)
        case _:
            raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
    return (table - centre) / np.where(spread > 0, spread, 1.0)
