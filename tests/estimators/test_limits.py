"""When a fit stops early: warnings, log lines and Ctrl-C."""

import logging
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC
from tausvm.solvers import Status

from .data import ESTIMATORS, targets, wave

X, Y = wave(400)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["smo", "block"])
def test_max_iter(estimator, solver):
    model = estimator(solver=solver, C=100.0, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, targets(estimator, Y))
    message = str(caught[0].message)
    assert f"{estimator.__name__} did not converge" in message
    assert f"gap is {model.dual_gap_:.2e}, above tol=1e-09" in message
    assert "it reached max_iter=1. Raise max_iter" in message
    assert caught[0].filename == __file__
    assert model.result_.status is Status.MAX_ITER
    assert model.dual_gap_ > 1e-9


@pytest.mark.parametrize("solver", ["smo", "block", "interior_point"])
def test_time_limit(solver):
    model = SVR(solver=solver, C=100.0, tol=1e-12, time_limit=1e-6)
    with pytest.warns(ConvergenceWarning, match="it reached time_limit=1e-06 s. Raise time_limit"):
        model.fit(X, Y)
    assert model.result_.status is Status.TIME_LIMIT


def test_time_limit_covers_all_levels():
    X, Y = wave(3000, 4)
    taus = np.linspace(0.05, 0.95, 19)
    with pytest.warns(ConvergenceWarning, match="did not converge for .* of 19 levels"):
        QuantileSVR(tau=taus, C=100.0, gamma=0.5, tol=1e-9, time_limit=0.5).fit(X, Y)


def test_no_warning_when_solved():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in ESTIMATORS:
            estimator().fit(X, targets(estimator, Y))
        ExpectileSVR(tau=[0.1, 0.9], max_iter=1000, time_limit=100.0).fit(X, Y)


def test_a_tolerance_below_rounding():
    with pytest.warns(ConvergenceWarning, match=r"rounding let it get no further.* Raise tol"):
        model = TauSVC(tol=1e-300, C=100.0).fit(X, Y > 0)
    assert model.dual_gap_ < 1e-8


def test_verbose_goes_to_the_log(caplog):
    SVR(verbose=True, solver="smo", tol=1e-8).fit(X, Y)
    records = [record for record in caplog.records if record.name == "tausvm"]
    assert len(records) > 1
    assert all("relative gap" in record.getMessage() for record in records)
    assert all(record.levelno == logging.INFO for record in records)
    caplog.clear()
    SVR().fit(X, Y)
    assert not caplog.records


def test_verbose_is_seen_without_logging_set_up():
    code = (
        "import numpy as np; from tausvm import SVR; "
        "x = np.linspace(0, 9, 50); SVR(verbose=True).fit(x[:, None], np.sin(x))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "relative gap" in done.stderr
    assert done.stdout == ""


LONG_FIT = """
import signal, sys, threading, time
import numpy as np
import tausvm

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 4))
y = np.sin(X[:, 0]) + rng.normal(size=6000)
model = tausvm.{name}(C=1e5, tol=1e-10, **{parameters})
for attempt in range(3):
    sent = []

    def interrupt():
        time.sleep(1.5)
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        model.fit(X, y {labels})
    except KeyboardInterrupt:
        print(time.perf_counter() - sent[0], flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
@pytest.mark.parametrize("parameters", [{}, {"approximation": "landmarks", "landmarks": 2500}])
@pytest.mark.parametrize(("name", "labels"), [("SVR", ""), ("ExpectileSVR", ""), ("TauSVC", "> 0")])
def test_ctrl_c(name, labels, parameters):
    code = LONG_FIT.format(name=name, labels=labels, parameters=parameters)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    waits = [float(line) for line in done.stdout.split()]
    assert len(waits) == 3, "the fit was over before the interrupt"
    assert min(waits) < 1.0  # a machine may be busy at the wrong moment, but not every time
