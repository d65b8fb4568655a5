"""What a newcomer runs first: the demo, the README's example, the example scripts."""

from __future__ import annotations

import builtins
import runpy
from pathlib import Path

import numpy as np
import pytest

from .blocks import ROOT, python_blocks, run_blocks

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

PNG = b"\x89PNG"


def test_demo_prints_tables_and_writes_picture_and_report(tmp_path: Path, capsys) -> None:
    from tausvm import demo

    picture = tmp_path / "new" / "fan.png"
    assert demo.main(["--output", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert picture.read_bytes().startswith(PNG)
    assert lines[-2].endswith(str(picture))
    assert str(picture.with_name("report.html")) in lines[-1]
    assert "<h1>Progression of diabetes" in picture.with_name("report.html").read_text()
    rows = [line.split() for line in lines if line.strip()[:2] == "0."]
    assert [float(row[0]) for row in rows] == 2 * list(demo.TAUS)
    for row in rows:
        assert len(row) == len(demo.COLUMNS)
        assert float(row[demo.COLUMNS.index("gap")]) <= demo.TOL
    quantiles = rows[: len(demo.TAUS)]
    covered = [float(row[demo.COLUMNS.index("coverage")].rstrip("%")) / 100 for row in quantiles]
    np.testing.assert_allclose(covered, demo.TAUS, atol=0.1)


def test_demo_without_matplotlib_says_so(tmp_path: Path, capsys, monkeypatch) -> None:
    from tausvm import demo

    imported = builtins.__import__

    def without_matplotlib(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    assert demo.main(["--output", str(tmp_path / "fan.png")]) == 1
    assert "pip install 'tausvm[plot]'" in capsys.readouterr().err


def test_readme_example_writes_its_picture(tmp_path: Path, monkeypatch, capsys) -> None:
    assert len(python_blocks(ROOT / "README.md")) == 2
    monkeypatch.chdir(tmp_path)
    names = run_blocks(ROOT / "README.md")
    assert (tmp_path / "fan.png").read_bytes().startswith(PNG)
    assert (names["levels"].dual_gap_ <= 1e-3).all()
    assert (names["model"].dual_gap_ <= 1e-3).all()  # the last one, of the call that does all
    assert (ROOT / "docs" / "images" / "fan.png").stat().st_size < 150_000


#: examples that show another package, by its name
SHOWS = {"conformal": "mapie", "frames": "polars", "save_and_export": "onnxruntime"}


@pytest.mark.parametrize(
    "script", sorted((ROOT / "examples").rglob("*.py")), ids=lambda path: path.stem
)
def test_example_runs(script: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    if script.stem in SHOWS:
        package = SHOWS[script.stem]
        pytest.importorskip(package, reason=f"the example shows {package}: pip install {package}")
    pytest.importorskip("matplotlib").use("Agg")  # no windows
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    if script.stem == "conformal":  # the nominal share, on data held out
        inside = np.mean([share for share, _, _ in names["results"]["conformalised"]])
        assert inside == pytest.approx(names["SHARE"], abs=0.01)


def test_examples_stand_on_three_shelves() -> None:
    shelves = {path.parent.name for path in (ROOT / "examples").rglob("*.py")}
    assert shelves == {"start", "deeper", "papers"}
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").rglob("*.py"):
        assert f"{path.parent.name}/{path.name}" in listed
