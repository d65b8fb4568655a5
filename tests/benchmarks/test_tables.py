"""The comparison of default calls: splits, measures, searches, resumption and summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import table_data, table_methods, table_report, table_search, table_worker, tables
from benchmarks.table_data import Split, Table
from benchmarks.tables import Results, Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tiny tables, one with categories and a hole."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(60, 2))
    y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=60)
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}).to_csv(tmp_path / "curve.csv", index=False)
    kinds = np.where(np.arange(60) < 25, "red", np.where(np.arange(60) < 55, "blue", None))
    frame = pd.DataFrame({"a": x[:, 0], "kind": kinds, "same": 1.0, "y": y})
    frame.loc[3, "a"] = np.nan
    frame.to_csv(tmp_path / "kinds.csv", index=False)
    monkeypatch.setenv("TAUSVM_DATA", str(tmp_path))
    table_data.matrix.cache_clear()
    yield tmp_path
    table_data.matrix.cache_clear()


# ------------------------------------------------------------------------ tables


def test_categories_become_columns_and_holes_are_left_out(folder: Path) -> None:
    X, y = table_data.matrix("kinds")
    assert X.shape == (59, 5) and y.shape == (59,)
    # blue, red, and the five rows without a kind are too few for a column of their own name
    np.testing.assert_array_equal(X[:, 1:4].sum(axis=1), 1.0)
    assert X[:, 1:4].sum(axis=0).tolist() == [30, 5, 24]


def test_splits_are_drawn_again_alike_and_drop_constant_columns(folder: Path) -> None:
    first, again = (table_data.split("kinds", 1, 30) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    assert first.X.shape == (30, 4) and len(first.y_test) == 59 - round(0.7 * 59)
    X, new = first.standardised()
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert new.shape == first.X_test.shape
    other = table_data.split("kinds", 2, 30)
    assert not np.array_equal(first.y, other.y)


def test_what_is_not_there_is_told(folder: Path) -> None:
    assert table_data.missing("curve") == ""
    assert "no data set 'nothing'" in table_data.missing("nothing")


def test_lists_agree() -> None:
    assert len(table_data.TABLES) >= 30
    assert set(table_data.FULL) <= set(table_data.TABLES)
    for table in table_data.TABLES.values():
        assert bool(table.source) == bool(table.target)
    assert isinstance(table_data.TABLES["flights"], Table)


# ---------------------------------------------------------------------- measures


def test_constant_quantiles_have_loss_one() -> None:
    rng = np.random.default_rng(0)
    split = Split(np.ones((50, 1)), rng.normal(size=50), np.ones((40, 1)), rng.normal(size=40))
    constant = np.tile(np.quantile(split.y, table_methods.TAUS), (40, 1))
    measures = table_worker.judged(split, constant)
    assert measures["loss"] == pytest.approx(1.0)
    assert measures["interval"] == pytest.approx(1.0)
    assert measures["crossing"] == 0.0
    np.testing.assert_allclose(measures["levels"], 1.0)
    assert 0.0 < measures["cover50"] < measures["cover90"] <= 1.0
    assert table_worker.judged(split, constant[:, ::-1])["crossing"] == 1.0
    with pytest.raises(ValueError, match="predictions of shape"):
        table_worker.judged(split, constant[:, :3])
    mean = np.full(40, split.y_test.mean())
    assert table_worker.judged_mean(split, mean)["loss"] == pytest.approx(1.0)


# ------------------------------------------------------------------------ search


class Ticks:
    """A clock that goes on by one second a look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def task(n: int = 30) -> table_methods.Task:
    y = np.arange(float(n))
    return table_methods.Task(np.zeros((n, 1)), y, np.zeros((5, 1)), (0.25, 0.75), 1)


def shifted(task: table_methods.Task, parameters: dict[str, Any]) -> np.ndarray:
    """The levels' quantiles of y, off by what a parameter says."""
    off = parameters.get("off", 50.0)
    return np.tile(np.quantile(task.y, task.taus) + off, (len(task.new), 1))


def losses(y: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.abs(found - np.quantile(y, (0.25, 0.75))).mean(axis=0)


def test_a_search_ends_with_its_budget_and_takes_the_best() -> None:
    method = table_methods.Method(shifted, space={"off": [0.0, 10.0], "width": (0.1, 1.0)})
    search = table_search.Search(method, losses, budget=10.0, clock=Ticks())
    found = search.run(task(), {})
    # candidates of a second: the last begins when one more and a last fit of half of it still fit
    assert search.tried == 9
    np.testing.assert_allclose(found[0], np.quantile(np.arange(30.0), (0.25, 0.75)))


def test_without_time_the_defaults_are_the_choice() -> None:
    method = table_methods.Method(shifted, space={"off": [0.0]})
    search = table_search.Search(method, losses, budget=0.0, clock=Ticks())
    found = search.run(task(), {"off": 1.0})
    assert search.tried == 1
    np.testing.assert_allclose(found[0], np.quantile(np.arange(30.0), (0.25, 0.75)) + 1.0)


@pytest.mark.parametrize("mean", [False, True])
def test_spaces_can_be_drawn_from(mean: bool) -> None:
    for method in table_methods.methods(mean).values():
        drawn = table_search.draw(method.space, np.random.default_rng(0))
        assert set(drawn) == set(method.space)


@pytest.mark.parametrize("name", table_methods.QUANTILES)
def test_methods_predict_every_level(name: str) -> None:
    method = table_methods.QUANTILES[name]
    if table_methods.missing(method):
        pytest.skip(f"not installed: {', '.join(table_methods.missing(method))}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    asked = table_methods.Task(X, X[:, 0] + rng.normal(size=40), X[:7], (0.25, 0.75), 1)
    few = {"lightgbm": "n_estimators", "sklearn boosting": "max_iter", "catboost": "iterations"}
    count = few.get(name.removesuffix(" by level"))
    found = method.run(asked, {count: 3} if count else {})
    assert found.shape == (7, 2) and np.isfinite(found).all()


@pytest.mark.parametrize("name", table_methods.MEANS)
def test_methods_predict_the_mean(name: str) -> None:
    method = table_methods.MEANS[name]
    if table_methods.missing(method):
        pytest.skip(f"not installed: {', '.join(table_methods.missing(method))}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    asked = table_methods.Task(X, X[:, 0], X[:7], (), 1)
    found = method.run(asked, {"iterations": 3} if name == "catboost" else {})
    assert found.shape == (7,) and np.isfinite(found).all()


# -------------------------------------------------------------------- statistics


def measures(loss: float, **others: Any) -> dict[str, Any]:
    shares = dict.fromkeys(("interval", "cover90", "cover50", "crossing"), 0.5)
    return {"loss": loss, "seconds": 1.0, "n": 70, "d": 3, **shares, **others}


def ended(losses: dict[str, list[float]]) -> list[tuple[Run, dict[str, Any]]]:
    """Two splits of as many tables as there are losses, one a little above the other."""
    return [
        (Run(f"table {k}", split, 100, method), measures(loss * (1 + 0.1 * split)))
        for method, each in losses.items()
        for k, loss in enumerate(each)
        for split in range(2)
    ]


def test_ranks_wins_and_means() -> None:
    (found,) = table_report.compare(
        ended({"tausvm": [0.2, 0.4, 0.6], "lightgbm": [0.4, 0.2, 1.2], "linear": [0.9, 0.9, 0.9]})
    )
    assert found.labels == ["tausvm", "lightgbm", "linear"]
    np.testing.assert_allclose(found.values["loss"][:, 0], [0.21, 0.42, 0.63])
    ranks = table_report.ranks(table_report.complete(found, range(3)))
    np.testing.assert_array_equal(ranks, [[1, 2, 3], [2, 1, 3], [1, 3, 2]])
    ratio, error = table_report.against(found, 1)
    assert ratio == pytest.approx((2.0 * 0.5 * 2.0) ** (1 / 3))
    assert error == pytest.approx(np.std(np.log([2.0, 0.5, 2.0]), ddof=1) / np.sqrt(3))
    page = table_report.markdown(found)
    assert "| tausvm | 3 | 0.3816 ± " in page
    assert "| table 1 | 70 | 3 | 0.4200 | **0.2100** | 0.9450 |" in page


def test_the_critical_difference_is_the_books() -> None:
    # Demšar (2006): q = 2.569 for four methods, 14 data sets
    assert table_report.critical_difference(4, 14) == pytest.approx(
        2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3
    )


def test_only_common_splits_count_and_who_has_no_result_is_last() -> None:
    runs = ended({"tausvm": [0.2, 0.4], "linear": [0.4, 0.8]})
    runs = [pair for pair in runs if pair[0] != Run("table 0", 1, 100, "linear")]
    runs.append((Run("table 2", 0, 100, "tausvm"), measures(0.5)))
    runs.append((Run("table 2", 0, 100, "linear"), {"over": 600.0}))
    (found,) = table_report.compare(runs)
    np.testing.assert_allclose(found.values["loss"][0], [0.2, 0.4])
    assert found.splits == [1, 2, 1]
    ranks = table_report.ranks(table_report.complete(found, range(2)))
    np.testing.assert_array_equal(ranks[2], [1, 2])
    assert "- table 2, split 0, linear: more than 600 s" in table_report.markdown(found)


def test_ranks_are_of_tables_that_all_were_run_on() -> None:
    runs = ended({"tausvm": [0.2, 0.4, 0.3], "linear": [0.4, 0.3], "lightgbm": [0.5]})
    (found,) = table_report.compare(runs)
    assert len(table_report.complete(found, range(3))) == 1
    assert "| lightgbm | 1 | 0.5250 ± " in table_report.markdown(found)
    (apart,) = table_report.compare([*runs[:2], (Run("other", 0, 100, "linear"), measures(0.5))])
    assert "| – | – | 0 |" in table_report.markdown(apart)


def test_tuned_runs_and_variants_are_no_defaults() -> None:
    runs = ended({"tausvm": [0.2, 0.4], "lightgbm": [0.4, 0.3]})
    runs += [
        (Run(f"table {k}", 0, 100, "lightgbm", tuned=True), measures(0.1, tried=4))
        for k in range(2)
    ]
    runs += [
        (Run(f"table {k}", 0, 100, "tausvm", variant="new", arguments={"cv": 3}), measures(0.15))
        for k in range(2)
    ]
    (found,) = table_report.compare(runs)
    assert found.labels == ["tausvm", "tausvm new", "lightgbm", "lightgbm tuned"]
    assert found.defaults == [True, False, True, False]


def test_groups_of_methods_that_are_not_told_apart() -> None:
    pytest.importorskip("matplotlib")
    from benchmarks.table_figure import cliques

    assert cliques([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert cliques([1.0, 1.5, 1.9], 1.0) == [(0, 2)]
    assert cliques([1.0, 3.0], 1.0) == []


# -------------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_stopped_and_sums_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = folder / "out.jsonl"
    few = {"Cs": 2, "gammas": 2, "cv": 2}
    small = ["--methods", "linear", "--ours", f"few={json.dumps(few)}"]
    common = ["--splits", "1", "--jobs", "1", "--out", str(out)]
    tables.main(["--tables", "curve", "nothing", *small, *common])
    told = capsys.readouterr().out
    assert "left out: nothing: no data set" in told
    assert "2 runs, 0 of them known" in told and "2/2, about" in told
    lines = out.read_text().splitlines()
    assert len(lines) == 3 and "about" in json.loads(lines[0])
    # one more table, and a variant that fails: only these are run
    tables.main(["--tables", "curve", "kinds", *small, 'bad={"no_such": 1}', *common])
    told = capsys.readouterr().out
    assert "6 runs, 2 of them known" in told
    assert "unexpected keyword argument 'no_such'" in told
    results = Results(out)
    bad = Run("curve", 0, 2000, "tausvm", variant="bad", arguments={"no_such": 1})
    assert not results.known(bad)
    assert results.known(Run("curve", 0, 2000, "tausvm", variant="few", arguments=few))
    assert sum("loss" in each for _, each in results.ended()) == 4
    # nothing is run by a summary
    before = out.read_text()
    tables.main(["--summary", "--out", str(out)])
    assert out.read_text() == before
    page = (folder / "out.md").read_text()
    assert "## Quantiles, at most 2,000 training rows" in page and "| tausvm few |" in page
    for what in ("ranks", "losses"):
        assert (folder / f"out_quantiles_2000_{what}.png").stat().st_size > 5_000


def test_unknown_names_are_refused() -> None:
    for wrong, words in (
        (["--methods", "nobody"], "'nobody' is none of tausvm"),
        (["--ours", "a=5"], "an object of parameters"),
        (["--ours", "a={"], "is not NAME=JSON"),
    ):
        with pytest.raises(SystemExit, match=words):
            tables.sides(tables.parser().parse_args(wrong))


def test_a_tuned_run_gets_the_seconds_that_ours_took(tmp_path: Path) -> None:
    results = Results(tmp_path / "out.jsonl")
    tuned = Run("curve", 0, 100, "lightgbm", tuned=True)
    assert tables.budget_of(results, tuned) is None
    results.note(Run("curve", 0, 100, "tausvm"), measures(0.3, seconds=7.0))
    assert tables.budget_of(results, tuned) == 7.0
    assert tables.budget_of(results, Run("curve", 0, 100, "linear")) == 0.0


def test_expected_time() -> None:
    results = Results(Path("nowhere.jsonl"))
    expected = tables.Expected(results)
    expected.add(Run("a", 0, 100, "tausvm"), 2.0)
    expected.add(Run("b", 0, 100, "tausvm"), 4.0)
    expected.add(Run("b", 0, 100, "linear"), 6.0)
    rest = [Run("c", 0, 100, name) for name in ("tausvm", "linear", "catboost")]
    assert expected.seconds(rest) == pytest.approx(3.0 + 6.0 + 4.0)
    assert [tables.span(each) for each in (5, 600, 9000)] == ["5 s", "10 min", "2.5 h"]
