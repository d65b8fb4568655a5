"""Lazy predictions of any model on Dask collections, partition by partition."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed

from .. import inspection
from .partitions import collection_kind


def predict(model: Any, X: Any, *, method: str = "predict", **given: Any) -> Any:
    """What a model predicts at the rows of a Dask collection, as a lazy one.

    Parameters
    ----------
    model : fitted estimator or pipeline, or str or path
        Any model of the library, kernel machines and pipelines included, or the file of a saved
        one.
    X : dask array or dask dataframe
    method : str
        What to call: "predict", "predict_interval", "decision_function", …
    **given
        For that method, such as ``coverage=0.8``.

    Returns
    -------
    dask array for an array; dask series, or dask dataframe with a column a level, for a dataframe

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from tausvm import QuantileSVR
    >>> from tausvm.dask import predict
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = QuantileSVR(tau=[0.05, 0.5, 0.95]).fit(X, np.sin(6 * X[:, 0]))
    >>> rows = da.from_array(X, chunks=(20, 1))
    >>> predict(model, rows)
    dask.array<...
    >>> predict(model, rows, method="predict_interval", coverage=0.9).compute().shape
    (60, 2)
    """
    kind = collection_kind(X)
    if kind not in ("array", "frame"):
        raise TypeError(
            f"X must be a dask array or a dask dataframe, got {type(X).__name__}; data in memory "
            "are for the model's own methods"
        )
    if isinstance(model, str | PathLike):
        from ..persistence import load

        model = load(model)
    single = getattr(model, "single", None)
    model = single() if callable(single) else model
    if not callable(getattr(model, method, None)):
        raise ValueError(
            f"method must be one that the model has, got {method!r} for a {type(model).__name__}"
        )
    if kind == "frame":
        return _of_frame(model, X, method, given)
    return _of_array(model, X, method, given)


def _of_array(model: Any, X: Any, method: str, given: dict[str, Any]) -> Any:
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    # two rows, as some checks want: what their predictions look like, all do
    small = np.zeros((2, int(X.shape[1])), dtype=np.float64)
    rows: Any = sp.csr_matrix(small) if sp.issparse(X._meta) else small
    like = _called(rows, model, method, given, None)
    options: dict[str, Any] = {"dtype": like.dtype, "meta": like[:0]}
    if like.ndim == 1:
        options["drop_axis"] = 1
    else:
        options["chunks"] = (X.chunks[0], (like.shape[1],))
    return X.map_blocks(
        _called, delayed(model, traverse=False), method, given, _empty(like), **options
    )


def _of_frame(model: Any, X: Any, method: str, given: dict[str, Any]) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows need not look like real ones
        like = _called(X._meta_nonempty, model, method, given, None)
    names = None if like.ndim == 1 else _names(model, method, like.shape[1])
    index = X._meta.index
    empty: Any
    if names is None:
        empty = pd.Series(_empty(like), index=index, name="prediction")
    else:
        empty = pd.DataFrame(_empty(like), index=index, columns=names)
    return X.map_partitions(
        _framed, delayed(model, traverse=False), method, given, empty, meta=empty
    )


def _names(model: Any, method: str, width: int) -> list[str]:
    """What the columns of predictions are called."""
    if method == "predict_interval" and width == 2:
        return ["lower", "upper"]
    levels = inspection.levels(model)
    if len(levels) == width:
        return [f"{inspection.functional(model)}_{tau:g}" for tau in levels]
    return [f"prediction_{k}" for k in range(width)]


def _empty(like: Any) -> Any:
    return like[:0]


def _called(rows: Any, model: Any, method: str, given: dict[str, Any], empty: Any) -> Any:
    """The predictions of one partition; none for one without rows."""
    if rows.shape[0] == 0 and empty is not None:
        return empty
    return np.asarray(getattr(model, method)(rows, **given))


def _framed(rows: Any, model: Any, method: str, given: dict[str, Any], empty: Any) -> Any:
    import pandas as pd

    if len(rows) == 0:
        return empty
    values = _called(rows, model, method, given, None)
    if values.ndim == 1:
        return pd.Series(values, index=rows.index, name=empty.name)
    return pd.DataFrame(values, index=rows.index, columns=empty.columns)
