"""``tausvm report``: the rows of a file with their targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import InputError
from .predicting import model_input
from .tables import check_missing, column, numbers


def report_rows(file: Path, card: dict[str, Any]) -> tuple[Any, Any, list[str]]:
    """Features and targets of a file as a model reads them, and what to say about them."""
    table, X, told = model_input(file, card)
    if table.frame is None:
        target = pd.Series(table.targets, name="target")
    else:
        target = column(table, card["target"], "the model's target")
        check_missing(target.to_frame(), file, ", the target; drop these rows")
    if not card.get("classes"):
        return X, numbers(target, file, str(target.name)).to_numpy(np.float64), told
    negative, positive = card["classes"]
    labels = target.map(lambda value: _same(value, positive)).to_numpy(bool)
    if not labels.any() and not any(_same(value, negative) for value in target):
        raise InputError(
            f"{file}: column {target.name!r} has neither {positive!r} nor {negative!r}, the "
            "model's classes"
        )
    return X, labels.astype(int), told


def _same(value: Any, label: Any) -> bool:
    """Whether a cell is this label; 1.0 is 1."""
    if isinstance(label, int | float) and not isinstance(label, bool):
        try:
            return float(value) == float(label)
        except (TypeError, ValueError):
            return False
    return str(value) == str(label)
