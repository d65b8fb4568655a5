"""The page: what the model says, as JSON inside HTML that draws it."""

from __future__ import annotations

import html
import json
import os
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .content import Telling, collect

#: what the page's script is made of, in this order
SCRIPTS = ("numbers.js", "charts.js", "regression.js", "classification.js", "page.js")
#: significant digits of the numbers in the page: all but what rounding leaves
DIGITS = 15


def write_report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    **options: Any,
) -> None:
    """Write a page about a fitted model on some rows, best rows it has not seen.

    Parameters
    ----------
    model : fitted estimator
        Of tausvm, alone or at the end of a pipeline.
    X : array, DataFrame or CSR matrix (n, d)
    y : array (n,)
        Targets; for a classifier the labels, or 0 and 1 where ``classes`` are given.
    path : path
        The HTML file.
    **options
        As in :func:`render_report`.
    """
    page = render_report(model, X, y, **options)
    Path(path).write_text(page, encoding="utf-8")


def render_report(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    title: str | None = None,
    target_name: str | None = None,
    feature_names: list[str] | None = None,
    classes: list[Any] | None = None,
    data_name: str | None = None,
    versions: dict[str, str] | None = None,
    fitted_rows: int | None = None,
    costs: tuple[float, float] | None = None,
) -> str:
    """The page as text.

    Parameters
    ----------
    model, X, y
        As in :func:`write_report`.
    title : str, optional
        The heading.
    target_name : str, optional
        By default the name of a Series.
    feature_names : list of str, optional
        By default the names of a DataFrame's columns.
    classes : list, optional
        Names of the negative and the positive class, where y is 0 and 1.
    data_name : str, optional
        Where the rows come from.
    versions : dict, optional
        What wrote the model.
    fitted_rows : int, optional
        How many of the rows the model was fitted to: 0 for rows that it has not seen. By default
        the page tells what can be told: rows that are support vectors were fitted.
    costs : (float, float), optional
        What a missed positive and a false alarm cost, both above 0, for a classifier. The page
        begins with them, and its reader may enter others.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import QuantileSVR
    >>> from tausvm.report import render_report
    >>> X = np.linspace(0, 1, 30)[:, None]
    >>> y = X.ravel() ** 2
    >>> page = render_report(QuantileSVR(tau=[0.1, 0.9]).fit(X, y), X, y, title="Squares")
    >>> "<h1>Squares</h1>" in page
    True
    """
    telling = Telling(
        target_name=target_name or getattr(y, "name", None),
        feature_names=feature_names,
        classes=classes,
        fitted_rows=fitted_rows,
        costs=costs,
    )
    content = collect(model, X, y, telling)
    content["data"]["name"] = data_name
    content["versions"] = versions or {}
    content["created"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    heading = title or content["heading"]
    page = _asset("page.html")
    for mark, text in {
        "{{title}}": html.escape(heading),
        "{{style}}": _asset("page.css"),
        "{{script}}": "\n".join(map(_asset, SCRIPTS)),
        # a closing tag inside a name must not end the script
        "{{data}}": json.dumps(_plain(content), separators=(",", ":")).replace("<", "\\u003c"),
    }.items():
        page = page.replace(mark, text)
    return page


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plain(value: Any) -> Any:
    """As JSON takes it: lists for arrays, null for what is no number, few digits."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value if value is None else str(value)
