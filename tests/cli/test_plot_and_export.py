"""Pictures and graphs of models, and completion."""

from __future__ import annotations

import json
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
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(40, 2)), columns=["area", "age"])
    frame["town"] = np.where(rng.random(40) > 0.5, "here", "there")
    frame["rent"] = frame["area"] + rng.normal(size=40)
    frame["let"] = np.where(frame["rent"] > 0, "yes", "no")
    frame["day"] = pandas.date_range("2024-01-01", periods=40).strftime("%Y-%m-%d")
    frame.to_csv(folder / "rent.csv", index=False)
    for kind in ("quantile", "svr", "path", "svc"):
        target = "let" if kind in ("path", "svc") else "rent"
        fit = ["fit", str(folder / "rent.csv"), "--target", target, "--kind", kind]
        more = ["--features", "area,age,town", "--save", str(folder / f"{kind}.skops")]
        assert main([*fit, *more]) == 0
    return folder


@pytest.mark.parametrize("kind", ["quantile", "svr", "path"])
def test_pictures(kind: str, folder: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    out = tmp_path / "p.png"
    plot = ["plot", str(folder / f"{kind}.skops"), str(folder / "rent.csv"), "-o", str(out)]
    assert main(plot) == 0
    assert out.read_bytes()[:4] == b"\x89PNG"
    assert main(plot) == 2
    assert "--force" in capsys.readouterr().err
    more = ["--feature", "age", "--force", "--json"]
    assert main([*plot, *more]) == (2 if kind == "path" else 0)
    said = capsys.readouterr()
    if kind != "path":
        assert json.loads(said.out)["rows"] == 40
        assert main([*plot, "--feature", "town", "--force"]) == 2
        assert "area, age" in capsys.readouterr().err


def test_pictures_that_are_not_drawn(folder: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    data = str(folder / "rent.csv")
    assert main(["plot", str(folder / "svc.skops"), data, "-o", str(tmp_path / "p.png")]) == 2
    assert "tausvm report" in capsys.readouterr().err
    assert main(["plot", str(folder / "svr.skops"), data, "-o", data]) == 2
    assert ".png" in capsys.readouterr().err


def test_graphs(folder: Path, tmp_path: Path, capsys) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="graphs are run by onnxruntime")
    out = tmp_path / "rent.onnx"
    assert main(["export", str(folder / "quantile.skops"), "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == ["area", "age", "town"]
    frame = pandas.read_csv(folder / "rent.csv")
    fed = {name: frame[[name]].to_numpy() for name in ("area", "age")}
    fed["town"] = frame[["town"]].to_numpy(dtype=object)
    session = runtime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    (got,) = session.run(["prediction"], fed)
    predict = ["predict", str(folder / "quantile.skops"), str(folder / "rent.csv")]
    assert main([*predict, "-o", str(tmp_path / "p.csv")]) == 0
    np.testing.assert_allclose(got, pandas.read_csv(tmp_path / "p.csv"), rtol=1e-9, atol=1e-12)
    capsys.readouterr()
    assert main(["export", str(folder / "svr.skops"), "-o", str(tmp_path / "m.csv")]) == 2
    assert ".onnx" in capsys.readouterr().err


def test_a_model_of_dates_is_not_exported(folder: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("onnx", reason="graphs need onnx")
    model, out = str(tmp_path / "m.skops"), tmp_path / "m.onnx"
    fit = ["fit", str(folder / "rent.csv"), "--target", "rent", "--features", "area,day"]
    assert main([*fit, "--tau", "0.5", "--save", model]) == 0
    capsys.readouterr()
    assert main(["export", model, "-o", str(out)]) == 2
    assert "'day' is a date" in capsys.readouterr().err
    assert not out.exists()


def test_a_shell_can_complete() -> None:
    asked = {"_TAUSVM_COMPLETE": "complete_bash", "COMP_WORDS": "tausvm p", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tausvm.cli"],
        capture_output=True, text=True, env={**os.environ, **asked},
    )  # fmt: skip
    assert done.stdout.split() == ["predict", "plot"], done.stderr
