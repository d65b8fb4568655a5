"""``tausvm plot`` and ``tausvm export``: a picture of a model, and a graph that runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import inspection
from ..cuts import cut_through
from .errors import InputError, listed, similar

#: endings of pictures
PICTURES = (".png", ".svg", ".pdf")
#: points along the horizontal axis
GRID = 200


def check_ending(output: Path, endings: tuple[str, ...], what: str) -> None:
    """Refuse a file name that does not say what is in the file."""
    if output.suffix.lower() not in endings:
        raise InputError(
            f"-o: the name of {what} must end with {' or '.join(endings)}, got {output}"
        )


def draw(model: Any, X: Any, y: Any, *, feature: str | None, target: str | None) -> Any:
    """The figure of a model on some rows.

    Levels and typical values are drawn along a feature, a path by its rates of errors. Other
    classifiers have no picture.
    """
    import matplotlib

    matplotlib.use("Agg")  # files only, no windows
    from ..plotting import FanDisplay, PathDisplay

    estimated = inspection.functional(model)
    if estimated == inspection.CLASS:
        raise InputError("plot: a model of --kind svc has no picture; 'tausvm report' shows it")
    if estimated == inspection.PATH:
        if feature is not None:
            raise InputError("--feature: a path is drawn along τ, not along a feature")
        return PathDisplay.from_estimator(model, X, y).figure_
    taus = inspection.levels(model)
    name = _feature(X, feature)
    x = X[name].to_numpy(np.float64)
    grid = np.linspace(np.nanmin(x), np.nanmax(x), GRID)
    rows = cut_through(X, {X.columns.get_loc(name): grid})
    levels = inspection.as_columns(inspection.predictions(model, rows))
    seen = ~np.isnan(x)
    return FanDisplay.from_predictions(
        grid, levels, tau=taus or [0.5], x=x[seen], y=np.asarray(y)[seen], feature_name=name,
        target_name=target, **({} if taus else {"level_format": "typical"}),
    ).figure_  # fmt: skip


def _feature(X: Any, wanted: str | None) -> str:
    """The feature to draw along: a number, by default the first one."""
    if not isinstance(X, pd.DataFrame):
        raise InputError("plot: a model of an svmlight file has no named columns to draw along")
    numbers = [str(name) for name in X if pd.api.types.is_float_dtype(X[name])]
    if wanted is None and numbers:
        return numbers[0]
    if wanted is None or wanted not in numbers:
        raise InputError(
            f"--feature: must be a column of numbers that the model reads, one of "
            f"{listed(numbers, 8)}{similar(wanted or '', numbers)}"
        )
    return wanted


def write_whole(output: Path, write: Callable[[Path], Any]) -> None:
    """Write a file whole or not at all."""
    part = output.with_name(f".{output.stem}.part{output.suffix}")
    try:
        write(part)
        part.replace(output)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def export(model: Any, taus: tuple[float, ...], output: Path) -> list[str]:
    """Write the ONNX graph of a model; the names of its inputs."""
    from ..export import to_onnx

    tau: Any = None
    if taus:
        tau = taus[0] if len(taus) == 1 else list(taus)
    try:
        graph = to_onnx(model, tau=tau)
    except ImportError as error:
        raise InputError(f"export: {error}") from error
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InputError(f"export: {str(error).splitlines()[0]}") from error
    write_whole(output, lambda part: part.write_bytes(graph.SerializeToString()))
    return [str(value.name) for value in graph.graph.input]
