"""What is said before a fit, rows without targets, rows held out, and what a script reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from tausvm.cli import main
from tausvm.cli.estimates import CostSettings, estimate
from tausvm.cli.kinds import KINDS
from tausvm.cli.settings import Settings
from tausvm.persistence import load


@pytest.fixture
def cars(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    n = 40
    frame = pandas.DataFrame(
        {
            "hp": rng.integers(50, 90, n).astype(str),
            "weight": rng.normal(size=n),
            "make": np.where(rng.random(n) > 0.5, "vw", "bmw"),
            "built": pandas.date_range("2020-01-01", periods=n, freq="20D").strftime("%Y-%m-%d"),
            "mpg": rng.normal(size=n).round(3),
            "sold": np.where(rng.random(n) > 0.4, "yes", "no"),
        }
    )
    frame.loc[[1, 5, 8, 11, 30], "hp"] = "?"
    frame.to_csv(tmp_path / "cars.csv", index=False)
    return tmp_path / "cars.csv"


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_three_lines_before_a_fit(cars: Path, tmp_path: Path, capsys) -> None:
    fit = ["fit", cars, "--target", "mpg", "--tau", "0.5", "--holdout", "0.25"]
    code, said, heard = run(capsys, *fit, "--dry-run")
    assert (code, said) == (0, "")
    rows, columns, expected = heard.splitlines()[:3]
    assert "40 rows read, 30 to fit and 10 held out" in rows
    for words in ("1 of numbers (weight)", "3 of categories (hp", "1 of dates (built)"):
        assert words in columns
    assert "because of '?'" in columns
    assert "--numeric hp treats them as missing" in columns
    assert "expected: seconds" in expected
    assert "memory" in expected
    assert list(tmp_path.iterdir()) == [cars]
    facts = json.loads(run(capsys, *fit, "--dry-run", "--json")[1])
    assert facts["rows_read"] == 40
    assert facts["expected"]["seconds"] > 0


def test_words_in_a_column_of_numbers(cars: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "m.skops"
    fit = ["fit", cars, "--target", "mpg", "--tau", "0.5", "--numeric", "hp", "--save", model]
    code, said, _ = run(capsys, *fit, "--json")
    assert code == 0
    types = {c["name"]: c["type"] for c in json.loads(said)["columns"]}
    assert types["hp"] == "number"
    assert "hp_missing" in load(model)[:-1].get_feature_names_out()
    code, said, heard = run(capsys, "predict", model, cars)
    assert code == 0
    assert len(said.splitlines()) == 41
    assert "'?'" in heard
    frame = pandas.read_csv(cars)
    frame.loc[3, "weight"] = np.nan  # which was not allowed to be missing
    frame.to_csv(cars, index=False)
    code, _, heard = run(capsys, "predict", model, cars)
    assert code == 2
    assert "'weight' (row 4)" in heard


def test_missing_targets(cars: Path, tmp_path: Path, capsys) -> None:
    frame = pandas.read_csv(cars)
    frame.loc[[0, 7], "mpg"] = np.nan
    frame.to_csv(cars, index=False)
    fit = ["fit", cars, "--target", "mpg", "--tau", "0.5", "--save", tmp_path / "m.skops"]
    code, _, heard = run(capsys, *fit)
    assert code == 2
    assert heard.count("\n") == 1
    assert "rows 1, 8; give --drop-missing-target" in heard
    code, _, heard = run(capsys, *fit, "--drop-missing-target")
    assert code == 0
    assert "40 rows read, 2 dropped without a target, 38 to fit" in heard
    # rows are counted as the file has them
    frame.loc[9, "weight"] = np.nan
    frame.to_csv(cars, index=False)
    code, _, heard = run(capsys, *fit, "--drop-missing-target", "--force")
    assert code == 2
    assert "'weight' (row 10)" in heard


def test_rows_held_out_and_rows_fitted(cars: Path, tmp_path: Path, capsys) -> None:
    model, rest, page = tmp_path / "m.skops", tmp_path / "rest.csv", tmp_path / "r.html"
    fit = ["fit", cars, "--target", "mpg", "--tau", "0.1,0.9", "--save", model]
    code, _, heard = run(capsys, *fit, "--holdout-out", rest)
    assert code == 2
    assert "--holdout" in heard
    assert run(capsys, *fit, "--holdout", "0.25", "--holdout-out", cars)[0] == 2
    assert run(capsys, *fit, "--holdout", "0.25", "--holdout-out", rest)[0] == 0
    whole, held = pandas.read_csv(cars), pandas.read_csv(rest)
    assert len(held) == 10
    assert len(whole.merge(held)) == 10
    for file, fitted, words in (
        (rest, 0, "None of these 10 rows was seen"),
        (cars, 30, "30 of these 40 rows were fitted"),
    ):
        code, said, _ = run(capsys, "report", model, file, "-o", page, "--json", "--force")
        assert code == 0
        assert json.loads(said)["fitted"] == fitted
        assert words in page.read_text(encoding="utf-8")
        code, said, _ = run(capsys, "report", model, file, "-o", page, "--force")
        assert words in said
    assert "fingerprints" not in run(capsys, "info", model, "--json")[1]


@pytest.mark.parametrize("kind", ["svc", "path"])
def test_classifiers_say_which_class_is_positive(kind: str, cars, tmp_path, capsys) -> None:
    fit = ["fit", cars, "--target", "sold", "--kind", kind, "--save", tmp_path / "m.skops"]
    code, said, heard = run(capsys, *fit)
    assert code == 0
    assert "positive is 'yes', negative 'no'" in heard
    assert "positive class: yes, negative: no" in said


def test_predictions_as_json(cars: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "m.skops"
    fit = ["fit", cars, "--target", "mpg", "--tau", "0.5", "--save", model]
    assert run(capsys, *fit)[0] == 0
    told = json.loads(run(capsys, "predict", model, cars, "--json")[1])
    assert (told["rows"], told["output"]) == (40, None)
    assert list(told["predictions"][0]) == told["columns"] == ["quantile_0.5"]
    out = tmp_path / "out.csv"
    told = json.loads(run(capsys, "predict", model, cars, "--json", "-o", out)[1])
    assert told["output"] == str(out)
    assert "predictions" not in told


def test_many_rows_go_by_landmarks() -> None:
    settings, costs = Settings(tau=(0.1, 0.9)), CostSettings()
    for name, kind in KINDS.items():
        few, many = (
            estimate(kind, settings, (n, 8), tune=False, costs=costs) for n in (20_000, 20_001)
        )
        assert not few.landmarks
        assert many.landmarks == kind.landmarks == (name in ("quantile", "expectile", "svr", "svc"))
        assert few.seconds > 0
        assert ("landmarks" in many.words(20_001)) == kind.landmarks
        if kind.landmarks:
            assert kind.make(settings).approximation == "auto"
            assert many.megabytes < few.megabytes  # no kernel matrix is kept
    tuned = estimate(KINDS["quantile"], settings, (1000, 8), tune=True)
    assert tuned.seconds > estimate(KINDS["quantile"], settings, (1000, 8), tune=False).seconds


def test_rows_of_landmarks_are_those_of_the_library() -> None:
    from tausvm.solvers.landmarks import Landmarks

    assert CostSettings().landmarks_from == Landmarks().full_rows


def test_the_readme_reports_on_rows_that_were_not_fitted(tmp_path, monkeypatch, capsys) -> None:
    """Its three commands, as they stand there, on a table with text."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"area": rng.uniform(20, 150, 60), "town": rng.choice(["a", "b"], 60)})
    frame["price"] = 3000 * frame["area"] + rng.normal(0, 2e4, 60)
    frame.to_csv(tmp_path / "houses.csv", index=False)
    frame.drop(columns="price").to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    commands = [line.split("#")[0].split() for line in readme.splitlines() if "    tausvm " in line]
    assert [command[1] for command in commands] == ["fit", "report", "predict"]
    for command in commands:
        assert main(command[1:]) == 0
    assert "None of these 15 rows was seen by the fit" in capsys.readouterr().out
    assert len(pandas.read_csv("prices.csv")) == 60


def test_missing_text_is_not_filled_by_the_most_frequent(tmp_path: Path, capsys) -> None:
    """A column that is 93 % empty: what is missing is a category of its own."""
    rng = np.random.default_rng(0)
    given = np.arange(300) % 15 == 0
    frame = pandas.DataFrame({"size": rng.normal(size=300), "pool": np.where(given, "yes", "")})
    frame["price"] = frame["size"] + 5.0 * given + 0.1 * rng.normal(size=300)
    data, model, out = tmp_path / "d.csv", tmp_path / "m.skops", tmp_path / "o.csv"
    frame.to_csv(data, index=False)
    fit = ["fit", data, "--target", "price", "--tau", "0.5", "--C", "100", "--impute"]
    assert run(capsys, *fit, "--save", model)[0] == 0
    assert run(capsys, "predict", model, data, "-o", out)[0] == 0
    predicted = pandas.read_csv(out)["quantile_0.5"] - frame["size"]
    assert predicted[given].median() > 4 > 1 > predicted[~given].median()
