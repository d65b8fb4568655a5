"""Progress on a terminal, silence elsewhere, and Ctrl-C."""

from __future__ import annotations

import io
import logging
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from sklearn.model_selection import GridSearchCV

from tausvm import SVR, QuantileSVR
from tausvm.cli.progress import watched

from ..shared_data import data_file


def fit_on(console: Console, machine) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    with watched(machine, console):
        machine.fit(X, X[:, 0] + rng.normal(size=400))


def test_a_terminal_sees_the_gap_close() -> None:
    shown = io.StringIO()
    machine = QuantileSVR(tau=[0.1, 0.9], tol=1e-3)
    fit_on(Console(file=shown, force_terminal=True, width=100), machine)
    assert "fitting" in shown.getvalue()
    assert "of 0.001" in shown.getvalue()
    assert machine.verbose is False
    assert logging.getLogger("tausvm").handlers == []


def test_a_search_shows_that_it_works() -> None:
    shown = io.StringIO()
    search = GridSearchCV(SVR(), {"C": [1.0, 2.0]}, cv=2)
    fit_on(Console(file=shown, force_terminal=True, width=100), search)
    assert "trying 2 points" in shown.getvalue()


def test_elsewhere_nothing_is_shown() -> None:
    shown = io.StringIO()
    fit_on(Console(file=shown), QuantileSVR())
    assert shown.getvalue() == ""


def test_ctrl_c_ends_a_fit(tmp_path: Path) -> None:
    model = tmp_path / "m.skops"
    hard = ["--target", "motor_UPDRS", "--kind", "svr", "--C", "1e6", "--tol", "1e-12"]
    fit = ["fit", str(data_file("updrs_motor.csv")), *hard, "--save", str(model)]
    code = "import sys, tausvm.cli\nsys.exit(tausvm.cli.main(sys.argv[1:]))"
    command = subprocess.Popen(
        [sys.executable, "-c", code, *fit],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = [command.stderr.readline() for _ in range(3)]
    assert "expected: " in said[2]  # the fit begins
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    _, heard = command.communicate()
    assert command.returncode == 130
    assert heard == "tausvm: interrupted\n"
    assert not model.exists()
