"""A process that runs places and is killed where it takes too long.

The parent writes one JSON line a request and reads one JSON line an answer, so the two may be
different interpreters with different versions of tausvm: nothing here but public estimators of
tausvm is used.

    request   {"place": …, "side": "auto" | a solver | a peer, "fields": {…}, "least": seconds}
    answer    {"wall": seconds, "cpu": seconds, "count": runs inside, "gap": …, "solved": …}
              or {"refused": why}
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: BLAS on one thread, whoever brings it
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR")}
#: a run that is shorter than these seconds is repeated inside until they are over
LEAST = 0.02
#: the first answer waits for imports too
STARTING = 300.0


class TooLong(Exception):
    """The run was ended at its limit."""


class Died(Exception):
    """The process ended by itself: a crash, or no memory."""


class Worker:
    """The parent's end: starts the process, asks, and kills it when it is late.

    Parameters
    ----------
    tree : Path or None
        A folder whose ``src/tausvm`` is built, or an interpreter that has tausvm installed;
        None is the tausvm of this process.
    module : str
        What the process runs; it answers by :func:`serve`.
    """

    def __init__(self, tree: Path | None = None, module: str = "benchmarks.worker") -> None:
        self.tree = tree
        self.module = module
        self.process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        """The answer; TooLong after ``limit`` seconds, Died where there is none."""
        if self.process is None:
            self._start()
        process = self.process
        assert process is not None and process.stdin is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        return self._answer(limit)

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self.process is not None and self.process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.process.stdout, selectors.EVENT_READ)
            if not waiting.select(limit):
                self.close()
                raise TooLong
        line = self.process.stdout.readline()
        if not line:
            self.close()
            raise Died
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> None:
        python, paths = sys.executable, [str(ROOT), *sys.path]
        if self.tree is not None and self.tree.is_dir():
            paths = [str(self.tree / "src"), str(ROOT)]
        elif self.tree is not None:
            python, paths = str(self.tree), [str(ROOT)]
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(paths)}
        self.process = subprocess.Popen(
            [python, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        try:
            self._answer(STARTING)
        except TooLong:  # of the imports: that says nothing about the run
            raise Died from None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def request(
    place: Any, side: str = "auto", fields: dict[str, Any] | None = None, least: float = LEAST
) -> dict[str, Any]:
    """What to ask a worker. ``fields`` are parameters of the estimator; see :func:`settings`."""
    return {"place": asdict(place), "side": side, "fields": fields or {}, "least": least}


# ------------------------------------------------------------- the process's end


class Bench:
    """Keeps the data and the prepared runs of the last place."""

    def __init__(self) -> None:
        self.key = ""
        self.parts: Any = None
        self.runs: dict[str, Callable[[], Any]] = {}
        self.warm: set[str] = set()

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Prepare what is new about a request, run it, and say how long it took."""
        from . import places

        place = places.of_json(asked["place"])
        if place.key != self.key:
            self.key, self.parts, self.runs = place.key, places.data_of(place), {}
        name = json.dumps([asked["side"], asked["fields"]], sort_keys=True)
        try:
            self._warm_up(place, asked["side"])
            if name not in self.runs:
                self.runs[name] = prepared(place, asked["side"], asked["fields"], self.parts)
            return timed(self.runs[name], asked["least"])
        except (ValueError, TypeError, AttributeError, ImportError) as error:
            return {"refused": f"{type(error).__name__}: {error}"}

    def _warm_up(self, place: Any, side: str) -> None:
        """A tiny run of each kind before its first: what is loaded once is not measured."""
        from . import places

        kind = json.dumps([place.estimator, side])
        if kind not in self.warm:
            tiny = places.Place(place.estimator, n=40, d=2, levels=place.levels, task=place.task)
            prepared(tiny, side, {}, places.data_of(tiny))()
            self.warm.add(kind)
            gc.collect()
            gc.freeze()  # what was imported stays, and need not be looked through again


def prepared(place: Any, side: str, fields: dict[str, Any], parts: Any) -> Callable[[], Any]:
    """The call that is timed."""
    from . import peers

    if side in peers.MODULES:
        return peers.build(side, place, parts)
    X, y, new = parts
    solver = {} if side == "auto" else {"solver": side}
    model = estimator(
        place, {**solver, **{name: settings(value) for name, value in fields.items()}}
    )
    if place.task == "predict":
        model.fit(X, y)
        return lambda: model.predict(new)
    return lambda: model.fit(X, y)


def estimator(place: Any, changes: dict[str, Any]) -> Any:
    """Our machine at a place."""
    import tausvm

    from .machines import MACHINES, class_name, plain_parameters

    machine = MACHINES[place.estimator]
    parameters: dict[str, Any] = {"C": place.C} if machine.takes_C else {}
    made = getattr(tausvm, class_name(place.estimator))
    parameters |= plain_parameters(made)
    if not machine.outputs and machine.levels != (1,):
        parameters["tau"] = place.taus if place.levels > 1 else place.taus[0]
    inner = {name: changes.pop(name) for name in list(changes) if name.startswith("_")}
    model = made(**{**parameters, **json.loads(place.params), **changes})
    for name, value in inner.items():  # settings that are no parameter of the estimator
        if not hasattr(model, name):
            raise AttributeError(f"{type(model).__name__} has no {name}")
        setattr(model, name, value)
    return model


def settings(value: Any) -> Any:
    """A parameter from JSON; {"class": "tausvm.solvers.Block", …fields} is such an object."""
    if not (isinstance(value, dict) and "class" in value):
        return value
    module, name = value["class"].rsplit(".", 1)
    arguments = {key: settings(field) for key, field in value.items() if key != "class"}
    return getattr(importlib.import_module(module), name)(**arguments)


def timed(run: Callable[[], Any], least: float) -> dict[str, Any]:
    """Seconds a run: of one, or the mean of as many as it takes to fill ``least``."""
    gc.collect()  # the matrix of a run before must not cost this one its memory
    count = 0
    wall, cpu = time.perf_counter(), time.process_time()
    while True:
        result = run()
        count += 1
        spent = time.perf_counter() - wall, time.process_time() - cpu
        if min(spent) >= least or spent[0] >= 10 * least:  # a busy machine gives little of itself
            break
    return {"wall": spent[0] / count, "cpu": spent[1] / count, "count": count, **judged(result)}


def judged(model: Any) -> dict[str, Any]:
    """The worst gap that a fitted machine of ours reports, and whether it got to its ``tol``."""
    import numpy as np

    gap = getattr(model, "dual_gap_", None)
    tol = getattr(model, "tol", None)
    if gap is None:
        return {}
    worst = float(np.max(np.asarray(gap, dtype=float)))
    return {"gap": worst, "solved": tol is None or worst <= tol}


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer requests until there are no more."""
    import tausvm  # loaded before the first request: an import is not what is measured

    warnings.simplefilter("ignore")  # unsolved fits show in their gap
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is not an answer
    print(json.dumps({"tausvm": tausvm.__file__}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    serve(Bench().answer)
