"""The process of :mod:`benchmarks.tables`: fits one method on one split and says how well it did.

request   {"table", "split", "rows", "method", "arguments", "mean", "tuned", "jobs", "budget"}
answer    measures, or {"failed": why}
"""

from __future__ import annotations

import gc
import importlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_pinball_loss, r2_score
from threadpoolctl import threadpool_limits

from tausvm.metrics import crossing_rate, mean_interval_score

from . import table_data
from .table_methods import TAUS, Task, methods
from .table_search import Search
from .worker import serve

Array = NDArray[np.float64]


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The measures of a request; whatever a method raises is told, and the process goes on."""
    try:
        return measured(asked)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """Fit, predict, judge; the seconds are those of fit and prediction, all threads' for "cpu"."""
    method = methods(asked["mean"])[asked["method"]]
    for module in method.modules:
        if module != "liquidSVM":  # its loader has to be prepared first
            importlib.import_module(module)  # an import is not what is measured
    split = table_data.split(asked["table"], asked["split"], asked["rows"])
    X, new = split.standardised() if method.scaled else (split.X, split.X_test)
    task = Task(X, split.y, new, () if asked["mean"] else TAUS, asked["jobs"])
    losses = squares if asked["mean"] else pinballs
    search = Search(method, losses, asked["budget"]) if asked["tuned"] else None
    gc.collect()
    with threadpool_limits({"openmp": asked["jobs"], "blas": 1}):
        wall, cpu = time.perf_counter(), time.process_time()
        found = (search or method).run(task, asked["arguments"])
        spent = time.perf_counter() - wall, time.process_time() - cpu
    judge = judged_mean if asked["mean"] else judged
    tried = {} if search is None else {"tried": search.tried}
    shape = {"n": len(split.y), "d": X.shape[1], "n_test": len(split.y_test), "jobs": asked["jobs"]}
    return {**judge(split, found), "seconds": spent[0], "cpu": spent[1], **tried, **shape}


def squares(y: Array, predictions: Array) -> Array:
    """The mean squared error."""
    return np.asarray(np.mean((y - predictions) ** 2))


def pinballs(y: Array, predictions: Array) -> Array:
    """The mean loss of each level."""
    columns = zip(TAUS, predictions.T, strict=True)
    return np.array([mean_pinball_loss(y, column, alpha=tau) for tau, column in columns])


def judged(split: table_data.Split, found: Array) -> dict[str, Any]:
    """Measures of levels; losses are shares of what the quantiles of the training targets lose."""
    if found.shape != (len(split.y_test), len(TAUS)) or not np.isfinite(found).all():
        raise ValueError(f"predictions of shape {found.shape}, or not finite")
    constant = np.tile(np.quantile(split.y, TAUS), (len(split.y_test), 1))
    levels = pinballs(split.y_test, found) / pinballs(split.y_test, constant)
    return {
        "loss": float(levels.mean()),
        "levels": levels.tolist(),
        "interval": interval(split.y_test, found) / interval(split.y_test, constant),
        "cover90": inside(split.y_test, found, 0, 4),
        "cover50": inside(split.y_test, found, 1, 3),
        "crossing": crossing_rate(found, tau=TAUS),
    }


def interval(y: Array, found: Array) -> float:
    """The score of the 90 % interval."""
    return mean_interval_score(y, found[:, 0], found[:, -1], share=TAUS[-1] - TAUS[0])


def inside(y: Array, found: Array, low: int, high: int) -> float:
    """The share of targets between two levels."""
    return float(np.mean((found[:, low] <= y) & (y <= found[:, high])))


def judged_mean(split: table_data.Split, found: Array) -> dict[str, Any]:
    """1 − R²: the share of the variance that is left."""
    if found.shape != split.y_test.shape or not np.isfinite(found).all():
        raise ValueError(f"predictions of shape {found.shape}, or not finite")
    return {"loss": 1.0 - float(r2_score(split.y_test, found))}


if __name__ == "__main__":
    serve(answer)
