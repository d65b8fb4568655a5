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


def test_pictures_and_reports_cut_tables_alike(folder: Path, tmp_path: Path, capsys) -> None:
    """Along a feature, other numbers at their median and text at its most frequent value."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from tausvm.cli.drawing import draw
    from tausvm.persistence import load

    model, data = folder / "quantile.skops", folder / "rent.csv"
    page = tmp_path / "r.html"
    assert main(["report", str(model), str(data), "-o", str(page)]) == 0
    content = json.loads(page.read_text("utf-8").split('"report-data">')[1].split("</script>")[0])
    (fan,) = [fan for fan in content["fans"] if fan["name"] == "area"]
    frame = pandas.read_csv(data)
    X, y = frame[["area", "age", "town"]], frame["rent"]
    axes = draw(load(model), X, y, feature="area", target="rent").axes[0]
    curves = [line for line in axes.lines if len(line.get_xdata()) > 100]
    still = X.assign(age=X["age"].median(), town=X["town"].mode()[0])
    expected = load(model).predict(still)
    for k, curve in enumerate(fan["curves"]):
        np.testing.assert_allclose(
            np.interp(frame["area"], fan["grid"], curve), expected[:, k], atol=0.02
        )
        drawn = [np.interp(frame["area"], *line.get_data()) for line in curves]
        assert min(np.abs(line - expected[:, k]).max() for line in drawn) < 0.02


@pytest.mark.parametrize("costs", [["-3", "1"], ["1", "0"], ["nan", "1"], ["2", None], [None, "2"]])
def test_costs_are_refused_before_any_work(costs, folder: Path, tmp_path: Path, capsys) -> None:
    given = [
        f"{name}={value}"
        for name, value in zip(("--cost-miss", "--cost-alarm"), costs, strict=True)
        if value is not None
    ]
    report = ["report", str(folder / "svc.skops"), str(folder / "not there.csv")]
    assert main([*report, "-o", str(tmp_path / "r.html"), *given]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tausvm: error: --cost-") and said.count("\n") == 1
    assert "above 0" in said or "give both" in said
    assert not (tmp_path / "r.html").exists()


def test_a_report_begins_with_given_costs(folder: Path, tmp_path: Path, capsys) -> None:
    page, data = tmp_path / "r.html", str(folder / "rent.csv")
    costs = ["--cost-miss", "9", "--cost-alarm", "0.5", "-o", str(page)]
    assert main(["report", str(folder / "path.skops"), data, *costs]) == 0
    assert '"costs":[9.0,0.5]' in page.read_text("utf-8")
    capsys.readouterr()
    assert main(["report", str(folder / "svr.skops"), data, *costs, "--force"]) == 2
    assert "is for classifiers" in capsys.readouterr().err


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
