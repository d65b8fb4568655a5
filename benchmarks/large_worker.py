"""The process of :mod:`benchmarks.large`: one fit, its time and memory, and what it predicts.

request   {"table", "rows", "method", "arguments", "tuned", "jobs", "budget"}
answer    measures, or {"failed": why}

Memory is the largest that the process had, and what it had before the fit: the data and the
libraries. A process fits once, so that nothing of another fit is in it.
"""

from __future__ import annotations

import gc
import importlib
import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from . import large_data
from .table_methods import OURS, QUANTILES, TAUS, Task
from .table_search import Search
from .table_worker import Array, judged, pinballs
from .worker import serve, settings


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """The measures of a request; what a method raises is told."""
    try:
        return measured(asked)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


def measured(asked: dict[str, Any]) -> dict[str, Any]:
    """Fit, predict, judge; the seconds are those of fit and prediction, all threads' for "cpu"."""
    method = QUANTILES[asked["method"]]
    for module in method.modules:
        if module != "liquidSVM":  # its loader has to be prepared first
            importlib.import_module(module)  # an import is not what is measured
    split = large_data.split(asked["table"], asked["rows"])
    X, new = split.standardised() if method.scaled else (split.X, split.X_test)
    task = Task(X, split.y, new, TAUS, asked["jobs"])
    search = Search(method, pinballs, asked["budget"]) if asked["tuned"] else None
    more: dict[str, Any] = {}
    gc.collect()
    before = peak()
    with threadpool_limits({"openmp": asked["jobs"], "blas": 1}):
        wall, cpu = time.perf_counter(), time.process_time()
        if asked["method"] == OURS:
            found, more = ours(task, asked["arguments"])
        else:
            found = (search or method).run(task, asked["arguments"])
        spent = time.perf_counter() - wall, time.process_time() - cpu
    return {
        **judged(split, found),
        "pinball": pinballs(split.y_test, found).tolist(),
        "seconds": spent[0],
        "cpu": spent[1],
        "megabytes": peak(),
        "megabytes_before": before,
        **more,
        **({} if search is None else {"tried": search.tried}),
        "n": len(split.y),
        "d": X.shape[1],
        "n_test": len(split.y_test),
        "jobs": asked["jobs"],
    }


def ours(task: Task, arguments: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
    """Predictions of our tuned machine, and its gaps to the full problem.

    An argument "large" has fields of its :class:`LargeSettings`.
    """
    fixed = {"class": "tausvm.QuantileSVRCV", "tau": list(task.taus), "n_jobs": task.jobs}
    given = dict(arguments)
    changes = given.pop("large", {})
    model = settings({**fixed, **given})
    model._settings = replace(model._settings, large=replace(model._settings.large, **changes))
    started = time.perf_counter(), time.process_time()
    model.fit(task.X, task.y)
    fit = time.perf_counter() - started[0], time.process_time() - started[1]
    more = {"fit_seconds": fit[0], "fit_cpu": fit[1], "gaps": np.ravel(model.dual_gap_).tolist()}
    results = [getattr(each.machines[0], "result_", None) for each in model.best_estimator_]
    if all(hasattr(result, "landmarks") for result in results):
        more |= {
            "gaps": [float(result.gap_estimate) for result in results],
            "exact": bool(results[0].exact),
            "landmarks": len(results[0].landmarks),
        }
    return np.asarray(model.predict(task.new)), more


def peak() -> float:
    """Megabytes that this process had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    serve(answer)
