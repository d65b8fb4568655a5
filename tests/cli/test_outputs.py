"""What a command writes never replaces what it reads, nor data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from tausvm.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"])
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_csv(folder / "other.csv", index=False)
    (folder / "link.csv").symlink_to(folder / "data.csv")
    (folder / "notes.html").write_text("notes")
    fit = ["fit", str(folder / "data.csv"), "--target", "y", "--tau", "0.5"]
    assert main([*fit, "--save", str(folder / "m.skops")]) == 0
    return folder


FIT = ["fit", "{data.csv}", "--target", "y", "--tau", "0.5", "--save"]
PREDICT = ["predict", "{m.skops}", "{data.csv}", "-o"]
REPORT = ["report", "{m.skops}", "{data.csv}", "-o"]
#: a command, the file it is not to write, and whether --force could make it
CASES = {
    "fit over its data": (FIT, "data.csv", False),
    "predict over its data": (PREDICT, "data.csv", False),
    "report over its data": (REPORT, "data.csv", False),
    "by a link": (PREDICT, "link.csv", False),
    "report over its model": (REPORT, "m.skops", False),
    "fit over other data": (FIT, "other.csv", False),
    "fit to a new file that is named as data": (FIT, "new.csv", False),
    "report over other data": (REPORT, "other.csv", False),
    "predict over what may be data": (PREDICT, "other.csv", True),
    "report over a page": (REPORT, "notes.html", True),
    "fit over a model": (FIT, "m.skops", True),
}


def given(folder: Path, arguments: list[str]) -> list[str]:
    return [str(folder / a[1:-1]) if a.startswith("{") else a for a in arguments]


@pytest.mark.parametrize("name", CASES)
def test_files_that_are_not_replaced(name: str, folder: Path, capsys) -> None:
    command, output, forced = CASES[name]
    file = folder / output
    before = file.read_bytes() if file.exists() else None
    for force in [[]] if forced else [[], ["--force"]]:
        assert main([*given(folder, command), str(file), *force]) == 2
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert output in said.err
        assert ("--force" in said.err) == forced
    assert (file.read_bytes() if file.exists() else None) == before


def test_force_replaces(folder: Path, capsys) -> None:
    out = folder / "again.csv"
    for force in ([], ["--force"]):
        assert main([*given(folder, PREDICT), str(out), *force]) == 0
    assert len(pandas.read_csv(out)) == 30


def test_a_namesake_of_the_fitted_data_is_not_replaced(folder: Path, tmp_path, capsys) -> None:
    (tmp_path / "data.csv").write_text("precious")
    command = ["predict", "{m.skops}", "{other.csv}", "--force", "-o"]
    assert main([*given(folder, command), str(tmp_path / "data.csv")]) == 2
    assert "fitted to" in capsys.readouterr().err
    assert (tmp_path / "data.csv").read_text() == "precious"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, tausvm.cli\n"
        "tausvm.cli.main(['fit', '--help'])\n"
        "print([m for m in ('numpy', 'pandas', 'sklearn', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
