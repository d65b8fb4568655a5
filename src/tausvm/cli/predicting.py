"""``tausvm predict``: a model's predictions at the rows of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import inspection
from ..persistence import ModelFileError, ModelInfo, load_with_info
from .columns import Column, read_features
from .errors import InputError
from .formats import ReadOptions, format_of
from .tables import Table, read_table

#: formats of tables that are written
WRITTEN = ("csv", "tsv", "parquet")


def load_model(file: Path) -> tuple[Any, ModelInfo]:
    """A model that ``fit`` saved."""
    if not file.exists():
        raise InputError(f"{file}: no such file")
    if file.is_dir():
        raise InputError(f"{file}: is a folder, not a model")
    try:
        model, info = load_with_info(file)
    except ModelFileError as error:
        raise InputError(str(error)) from error
    except PermissionError as error:
        raise InputError(f"{file}: may not be read") from error
    if "kind" not in info.card:
        raise InputError(f"{file}: was not written by 'tausvm fit'; use it from Python")
    return model, info


def model_input(
    file: Path, card: dict[str, Any], options: ReadOptions
) -> tuple[Table, Any, list[str]]:
    """A data file as a model reads it, and what to say about it."""
    if card.get("format") == "svmlight":
        if format_of(file) != "svmlight":
            raise InputError(f"{file}: the model was fitted to an svmlight file and reads no other")
        table = read_table(file, options, n_features=int(card["features"]))
        return table, table.matrix, []
    table = read_table(file, options, find_dates=False)
    columns = [Column.from_json(told) for told in card.get("columns", [])]
    X, told = read_features(table, columns, impute=bool(card.get("impute")))
    return table, X, told


def prediction_table(
    model: Any, card: dict[str, Any], X: Any, taus: tuple[float, ...]
) -> pd.DataFrame:
    """One column a level, named after it; for a classifier the label and its decision value."""
    estimated = inspection.functional(model)
    if estimated == inspection.PATH:
        return _path_table(model, card, X, taus)
    if taus:
        raise InputError("--tau: is for models of --kind path; others have the levels of their fit")
    if estimated == inspection.CLASS:
        return _class_table(model, card, X)
    values = inspection.as_columns(inspection.predictions(model, X))
    levels = inspection.levels(model)
    names = [f"{estimated}_{tau:g}" for tau in levels] or ["prediction"]
    return pd.DataFrame(values, columns=names)


def _class_table(model: Any, card: dict[str, Any], X: Any) -> pd.DataFrame:
    decision = model.decision_function(X)
    labels = np.array(card["classes"], dtype=object)
    return pd.DataFrame({"label": labels[(decision > 0).astype(int)], "decision": decision})


def _path_table(model: Any, card: dict[str, Any], X: Any, taus: tuple[float, ...]) -> pd.DataFrame:
    """Label and decision value at each level, and the probability, which has none."""
    labels = np.array(card["classes"], dtype=object)
    asked = taus or (float(card["scores"]["levels"][0]["tau"]),)
    values = inspection.decisions(model, X, asked)
    parts: dict[str, Any] = {}
    for tau, decision in zip(asked, values.T, strict=True):
        end = f"_{tau:g}" if len(asked) > 1 else ""
        parts[f"label{end}"] = labels[(decision > 0).astype(int)]
        parts[f"decision{end}"] = decision
    parts["probability"] = model.predict_proba(X)[:, 1]
    return pd.DataFrame(parts)


def write_table(frame: pd.DataFrame, output: Path | None) -> None:
    """Write CSV or Parquet, whole or not at all; to stdout without a file."""
    if output is None:
        frame.to_csv(sys.stdout, index=False)
        return
    kind = output_format(output)
    part = output.with_name(f".{output.name}.part")
    try:
        if kind == "parquet":
            frame.to_parquet(part, index=False)
        else:
            packed = "gzip" if output.suffix == ".gz" else None
            frame.to_csv(part, index=False, sep="\t" if kind == "tsv" else ",", compression=packed)
        part.replace(output)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def output_format(output: Path) -> str:
    """The format of a file to write."""
    kind = format_of(output)
    if kind not in WRITTEN:
        raise InputError(f"{output}: predictions are written as CSV or Parquet")
    return kind
