"""``tausvm report``: the rows of a file with their targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import InputError
from .formats import ReadOptions
from .predicting import model_input
from .tables import Table, check_missing, column, numbers


@dataclass(frozen=True)
class Rows:
    """Features and targets of a file as a model reads them, and what to say about them."""

    table: Table
    X: Any
    y: Any
    told: list[str]


def report_rows(file: Path, card: dict[str, Any], options: ReadOptions) -> Rows:
    """The rows of a file with their targets; those of a classifier are 0 and 1."""
    table, X, told = model_input(file, card, options)
    if table.frame is None:
        target = pd.Series(table.targets, name="target")
    else:
        target = column(table, card["target"], "the model's target")
        check_missing(target.to_frame(), table.file, ", the target; drop these rows")
    if not card.get("classes"):
        y = numbers(target, table.file, str(target.name)).to_numpy(np.float64)
        return Rows(table, X, y, told)
    negative, positive = card["classes"]
    labels = target.map(lambda value: _same(value, positive)).to_numpy(bool)
    if not labels.any() and not any(_same(value, negative) for value in target):
        raise InputError(
            f"{table.file}: column {target.name!r} has neither {positive!r} nor {negative!r}, the "
            "model's classes"
        )
    return Rows(table, X, labels.astype(int), told)


def _same(value: Any, label: Any) -> bool:
    """Whether a cell is this label; 1.0 is 1."""
    if isinstance(label, int | float) and not isinstance(label, bool):
        try:
            return float(value) == float(label)
        except (TypeError, ValueError):
            return False
    return str(value) == str(label)
