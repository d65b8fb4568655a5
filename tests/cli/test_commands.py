"""Every command on real files: fit, predict, report, info, demo."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.metrics import mean_pinball_loss

from tausvm.cli import main
from tausvm.cli.kinds import KINDS
from tausvm.persistence import load

from ..shared_data import data_file


@pytest.fixture
def rent(tmp_path: Path) -> Path:
    """Six hundred flats in Munich with a text column, as an analyst would have them."""
    frame = pandas.read_csv(data_file("munich_rent_sqm.csv")).iloc[:600]
    frame["quarter"] = np.where(frame.iloc[:, 0] > frame.iloc[:, 0].median(), "north", "south")
    file = tmp_path / "rent.csv"
    frame.to_csv(file, index=False)
    return file


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """The exit code and what a command prints; it may replace what an earlier one wrote."""
    writes = arguments[0] in ("fit", "predict", "report") and "--help" not in arguments
    code = main([str(argument) for argument in (*arguments, *["--force"] * writes)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_fit_predict_report_info(rent: Path, tmp_path: Path, capsys) -> None:
    model, out, page = tmp_path / "rent.skops", tmp_path / "out.csv", tmp_path / "report.html"
    code, said, _ = run(
        capsys, "fit", rent, "--target", "rentsqm", "--tau", "0.05,0.5,0.95", "--save", model
    )
    assert code == 0
    for word in ("level", "loss", "coverage", "support", "gap", "seconds", "crossing levels"):
        assert word in said
    assert str(model) in said.replace("\n", "")
    code, said, heard = run(capsys, "predict", model, rent, "-o", out)
    assert (code, said) == (0, "")
    assert "600 rows" in heard
    predicted = pandas.read_csv(out)
    assert list(predicted.columns) == ["quantile_0.05", "quantile_0.5", "quantile_0.95"]
    frame = pandas.read_csv(rent)
    features = frame.drop(columns="rentsqm")
    np.testing.assert_allclose(predicted, load(model).predict(features), rtol=1e-12)
    shares = (frame[["rentsqm"]].to_numpy() <= predicted.to_numpy()).mean(axis=0)
    np.testing.assert_allclose(shares, [0.05, 0.5, 0.95], atol=0.02)
    code, said, _ = run(capsys, "report", model, rent, "-o", page)
    assert code == 0
    assert str(page) in said
    assert "Quantiles of rentsqm" in page.read_text(encoding="utf-8")
    code, said, _ = run(capsys, "info", model)
    assert code == 0
    for word in ("QuantileSVR", "quarter", "north, south", "scikit-learn", "rentsqm"):
        assert word in said
    assert load(model).named_steps["model"].verbose is False


def test_json_says_what_the_table_says(rent: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "rent.skops"
    code, said, _ = run(
        capsys, "fit", rent, "--target", "rentsqm", "--tau", "0.1,0.9", "--holdout", "0.25",
        "--json", "--save", model,
    )  # fmt: skip
    card = json.loads(said)
    assert code == 0
    assert (card["rows"], card["held_out"]) == (450, 150)
    assert [row["tau"] for row in card["scores"]["levels"]] == [0.1, 0.9]
    assert all(row["gap"] <= 1e-4 for row in card["scores"]["levels"])
    told = json.loads(run(capsys, "info", model, "--json")[1])
    assert told["scores"] == card["scores"]
    assert told["estimator"] == "QuantileSVR"


def test_held_out_scores_are_of_rows_not_fitted(rent: Path, tmp_path: Path, capsys) -> None:
    from sklearn.model_selection import train_test_split

    model = tmp_path / "rent.skops"
    card = json.loads(
        run(
            capsys, "fit", rent, "--target", "rentsqm", "--tau", "0.5", "--holdout", "0.25",
            "--json", "--save", model,
        )[1]
    )  # fmt: skip
    frame = pandas.read_csv(rent)
    _, test = train_test_split(np.arange(600), test_size=0.25, random_state=0)
    rows = frame.iloc[np.sort(test)]
    loss = mean_pinball_loss(rows["rentsqm"], load(model).predict(rows.drop(columns="rentsqm")))
    assert card["scores"]["levels"][0]["loss"] == pytest.approx(loss)


#: what each kind is fitted with on the data below, and what its predictions are called
CASES = {
    "quantile": (["--tau", "0.1,0.9"], ["quantile_0.1", "quantile_0.9"]),
    "expectile": (["--tau", "0.1,0.9"], ["expectile_0.1", "expectile_0.9"]),
    "svr": ([], ["prediction"]),
    "svc": (["--tau", "0.3"], ["label", "decision"]),
    "path": (["--tau", "0.3"], ["label", "decision", "probability"]),
    "linear": (["--tau", "0.1,0.9"], ["quantile_0.1", "quantile_0.9"]),
    "joint": (["--tau", "0.1,0.9", "--loss", "expectile"], ["expectile_0.1", "expectile_0.9"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_on_a_real_file(kind: str, tmp_path: Path, capsys) -> None:
    options, columns = CASES[kind]
    classifies = KINDS[kind].classifies
    file = data_file("pima.csv" if classifies else "mpg.csv")
    target = "label" if classifies else "mpg"
    model, out, page = tmp_path / "m.skops", tmp_path / "out.parquet", tmp_path / "r.html"
    arguments = ["fit", file, "--target", target, "--kind", kind, *options, "--save", model]
    code, said, _ = run(capsys, *arguments)
    assert code == 0, said
    assert run(capsys, "predict", model, file, "-o", out)[0] == 0
    predicted = pandas.read_parquet(out)
    assert list(predicted.columns) == columns
    assert len(predicted) == len(pandas.read_csv(file))
    if classifies:
        right = predicted["label"].astype(int) == pandas.read_csv(file)[target]
        assert right.mean() > 0.65
    assert run(capsys, "report", model, file, "-o", page)[0] == 0
    assert run(capsys, "info", model)[0] == 0


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS.values() if kind.tune is not None])
def test_every_kind_that_tunes(kind: str, tmp_path: Path, capsys) -> None:
    options, _ = CASES[kind]
    file, target = data_file("geyser.csv"), "duration"
    if KINDS[kind].classifies:
        file, target = tmp_path / "pima.csv", "label"
        pandas.read_csv(data_file("pima.csv")).iloc[:200].to_csv(file, index=False)
    model = tmp_path / "m.skops"
    code, said, heard = run(
        capsys, "fit", file, "--target", target, "--kind", kind, *options, "--tune", "--grid", "3",
        "--folds", "3", "--save", model, "--json",
    )  # fmt: skip
    assert code == 0, heard
    rows = json.loads(said)["scores"]["levels"]
    assert all(row["C"] > 0 for row in rows)
    assert run(capsys, "predict", model, file, "-o", tmp_path / "o.csv")[0] == 0


@pytest.mark.parametrize("metric", ["auto", "none", "diagonal", "full"])
def test_features_are_learned_where_they_are_tuned(metric: str, tmp_path: Path, capsys) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.uniform(-1, 1, size=(120, 3)), columns=["a", "b", "c"])
    frame["y"] = np.sin(4 * frame["b"]) + 0.05 * rng.normal(size=120)
    file, model, page = tmp_path / "d.csv", tmp_path / "m.skops", tmp_path / "r.html"
    frame.to_csv(file, index=False)
    fit = ["fit", file, "--target", "y", "--kind", "expectile", "--tau", "0.5", "--tune"]
    code, said, heard = run(
        capsys, *fit, "--feature-metric", metric, "--grid", "3", "--folds", "3", "--save", model
    )
    assert code == 0, heard
    assert "kernel" in said  # which one won
    machine = load(model)[-1]
    assert machine.learned_ == (metric != "none")
    assert run(capsys, "report", model, file, "-o", page)[0] == 0
    assert ("A share says what the model looks at" in page.read_text()) == (metric != "none")
    assert run(capsys, "info", model)[0] == 0


def test_linear_typical_values(tmp_path: Path, capsys) -> None:
    file, model = data_file("mpg.csv"), tmp_path / "m.skops"
    for more in ([], ["--tune", "--grid", "3"]):
        fit = ["fit", file, "--target", "mpg", "--kind", "linear", "--loss", "svr", *more]
        assert run(capsys, *fit, "--save", model)[0] == 0
        code, said, _ = run(capsys, "predict", model, file)
        assert code == 0
        assert said.splitlines()[0] == "prediction"
    code, _, heard = run(capsys, *fit, "--tau", "0.5", "--save", model)
    assert code == 2
    assert "--tau" in heard


def test_parquet_and_text_give_the_same_model(rent: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    frame = pandas.read_csv(rent)
    frame.to_parquet(tmp_path / "rent.parquet")
    frame.to_csv(tmp_path / "rent.tsv.gz", sep="\t", index=False)
    predictions = []
    for name in ("rent.csv", "rent.parquet", "rent.tsv.gz"):
        model, out = tmp_path / f"{name}.skops", tmp_path / f"{name}.out.csv"
        file = tmp_path / name
        assert run(capsys, "fit", file, "--target", "rentsqm", "--save", model)[0] == 0
        assert run(capsys, "predict", model, rent, "-o", out)[0] == 0
        predictions.append(out.read_text())
    assert predictions[0] == predictions[1] == predictions[2]


def test_svmlight_files(tmp_path: Path, capsys) -> None:
    train, new = data_file("ecml2006_spam_a_u00.svm.gz"), data_file("ecml2006_spam_a_u01.svm.gz")
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    small = []
    for name, file in (("train.svm", train), ("new.svm", new)):
        X, y = load_svmlight_file(str(file), n_features=106780)
        dump_svmlight_file(X[::5], y[::5], str(tmp_path / name), zero_based=False)
        small.append(tmp_path / name)
    model = tmp_path / "spam.skops"
    fit = ["fit", small[0], "--kind", "svc", "--kernel", "linear", "--C", "10", "--save", model]
    assert run(capsys, *fit)[0] == 0
    code, said, heard = run(capsys, "predict", model, small[0])
    assert code == 0, heard
    labels = [int(line.split(",")[0]) for line in said.splitlines()[1:]]
    _, y = load_svmlight_file(str(small[0]))
    assert np.mean(labels == y) > 0.95
    assert run(capsys, "report", model, small[0], "-o", tmp_path / "r.html")[0] == 0


def test_missing_values_need_permission(rent: Path, tmp_path: Path, capsys) -> None:
    frame = pandas.read_csv(rent)
    frame["area"] = frame["area"].astype(float)
    frame.loc[3, "area"] = np.nan
    frame.loc[5, "quarter"] = None
    holes = tmp_path / "holes.csv"
    frame.to_csv(holes, index=False)
    model = tmp_path / "m.skops"
    code, _, heard = run(capsys, "fit", holes, "--target", "rentsqm", "--save", model)
    assert code == 2
    assert "'area' (row 4)" in heard
    assert "'quarter' (row 6)" in heard
    assert not model.exists()
    fit = ["fit", holes, "--target", "rentsqm", "--impute", "--save", model]
    assert run(capsys, *fit)[0] == 0
    code, said, _ = run(capsys, "predict", model, holes)
    assert code == 0
    assert len(said.splitlines()) == 601
    prepare = load(model)[:-1]
    features = frame.drop(columns="rentsqm")
    whole = features.iloc[[3]].assign(area=features["area"].median())
    told = list(prepare.get_feature_names_out())
    moved = (prepare.transform(features.iloc[[3]]) - prepare.transform(whole)).ravel()
    assert [told[k] for k in np.flatnonzero(moved)] == ["area_missing"]
    assert "quarter_missing" in told


def test_a_model_without_permission_refuses_at_predict(rent: Path, tmp_path: Path, capsys) -> None:
    model, holes = tmp_path / "m.skops", tmp_path / "holes.csv"
    assert run(capsys, "fit", rent, "--target", "rentsqm", "--save", model)[0] == 0
    frame = pandas.read_csv(rent).iloc[:6].astype({"area": float})
    frame.loc[1, "area"] = np.nan
    frame.to_csv(holes, index=False)
    for command in (["predict", model, holes], ["report", model, holes, "-o", tmp_path / "r.html"]):
        code, said, heard = run(capsys, *command)
        assert (code, said) == (2, "")
        assert "'area' (row 2); give --impute at fit" in heard
        assert heard.count("\n") == 1


def test_other_columns_in_another_order(rent: Path, tmp_path: Path, capsys) -> None:
    model, new = tmp_path / "m.skops", tmp_path / "new.csv"
    assert run(capsys, "fit", rent, "--target", "rentsqm", "--save", model)[0] == 0
    frame = pandas.read_csv(rent)
    frame[frame.columns[::-1]].assign(more="x").to_csv(new, index=False)
    assert run(capsys, "predict", model, rent)[1] == run(capsys, "predict", model, new)[1]
    loaded = load(model)
    names = loaded.feature_names_in_
    other = loaded.predict(pandas.read_csv(new)[names])
    np.testing.assert_array_equal(loaded.predict(frame[names]), other)


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """Flats with a name each, dates, numbers with words among them, many towns and one currency."""
    rng = np.random.default_rng(0)
    n = 120
    days = pandas.Timestamp("2021-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), "D")
    frame = pandas.DataFrame(
        {
            "flat": [f"flat {k}" for k in range(n)],
            "size": rng.uniform(20, 120, n).round(1),
            "built": rng.integers(1900, 2020, n).astype(str),
            "let": days.strftime("%Y-%m-%d"),
            "town": [f"town {k % 30}" for k in range(n)],
            "currency": "EUR",
        }
    )
    rent = 9 * frame["size"] + 250 * np.sin(frame["size"] / 8) + rng.normal(0, 20, n)
    frame["rent"] = rent.round(1)
    frame.loc[[2, 9], "built"] = "?"
    frame.to_csv(tmp_path / "messy.csv", index=False)
    return tmp_path / "messy.csv"


def test_a_messy_table(messy: Path, tmp_path: Path, capsys) -> None:
    model, page, out = tmp_path / "m.skops", tmp_path / "r.html", tmp_path / "out.csv"
    fit = ["fit", messy, "--target", "rent", "--max-categories", "20", "--save", model]
    code, _, heard = run(capsys, *fit)
    assert code == 2
    assert "column 'built' has '?' in row 3, which is not a number" in heard
    code, said, heard = run(capsys, *fit, "--impute", "--tau", "0.1,0.9", "--json")
    assert code == 0
    heard = heard.replace("\n", " ")
    assert "column 'flat': left out: 120 different texts" in heard
    assert "--categorical flat takes it in" in heard
    assert "column 'currency': left out: 'EUR' in all rows" in heard
    assert "column 'built' has '?' in rows 3, 10, which is not a number" in heard
    assert "column 'town': 30 categories; more than max_categories=20, so coded by" in heard
    columns = {c["name"]: c for c in json.loads(said)["columns"]}
    types = {name: c["type"] for name, c in columns.items()}
    assert types == {"size": "number", "built": "number", "let": "date", "town": "category"}
    assert 1900 <= columns["built"]["low"] <= columns["built"]["median"] <= 2020
    assert len(columns["town"]["values"]) == 30
    # what is left out need not be there
    frame = pandas.read_csv(messy).drop(columns=["flat", "currency"])
    frame.to_csv(messy, index=False)
    assert run(capsys, "predict", model, messy, "-o", out)[0] == 0
    predicted = load(model).predict(frame.drop(columns="rent"))
    np.testing.assert_allclose(pandas.read_csv(out), predicted, rtol=1e-12)
    assert run(capsys, "report", model, messy, "-o", page)[0] == 0
    frame.assign(size=np.nan).to_csv(messy, index=False)  # a column of which nothing is known
    assert run(capsys, "report", model, messy, "-o", page)[0] == 0
    code, said, _ = run(capsys, "info", model)
    assert code == 0
    for word in ("town 0, town 1", "place in the year"):
        assert word in " ".join(said.split())


def test_a_selection_weighs_the_features_of_a_column_together(
    messy: Path, tmp_path: Path, capsys
) -> None:
    model = tmp_path / "m.skops"
    fit = ["fit", messy, "--target", "rent", "--impute", "--features", "size,let", "--tau", "0.5"]
    tune = ["--tune", "--grid", "4", "--folds", "3", "--feature-metric", "diagonal"]
    assert run(capsys, *fit, *tune, "--save", model)[0] == 0
    prepare, machine = (step for _, step in load(model).steps)
    size, *let = machine.feature_importances_
    np.testing.assert_allclose(let, let[0], rtol=1e-9)
    assert len(let) == len(prepare.get_feature_names_out()) - 1 > 1
    assert size > 10 * let[0]


OLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "data"), [("svc", "whole.csv"), ("quantile", "holes.csv"), ("linear", "words.svm")]
)
def test_models_of_earlier_versions(name: str, data: str, tmp_path: Path, capsys) -> None:
    """Pipelines of scikit-learn's transformers, which earlier versions saved."""
    model, out = OLDER / f"{name}.skops", tmp_path / "out.csv"
    code, _, heard = run(capsys, "predict", model, OLDER / data, "-o", out)
    assert (code, "warning" in heard) == (0, False), heard
    before, after = pandas.read_csv(OLDER / f"{name}.out.csv"), pandas.read_csv(out)
    pandas.testing.assert_frame_equal(after, before, rtol=1e-12)
    assert run(capsys, "report", model, OLDER / data, "-o", tmp_path / "r.html")[0] == 0
    assert run(capsys, "info", model)[0] == 0


def test_models_of_earlier_versions_know_what_they_cannot_read(tmp_path: Path, capsys) -> None:
    new = pandas.read_csv(OLDER / "holes.csv").iloc[:3].astype({"size": object})
    new.loc[0, "quarter"] = "harbour"
    new.to_csv(tmp_path / "new.csv", index=False)
    code, _, heard = run(capsys, "predict", OLDER / "quantile.skops", tmp_path / "new.csv")
    assert code == 0
    assert "'quarter' has 'harbour' in row 1, which the model has not seen" in heard
    code, _, heard = run(capsys, "predict", OLDER / "svc.skops", OLDER / "holes.csv")
    assert code == 2
    assert "'size' (row 3)" in heard


def test_unknown_categories_are_told(rent: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "m.skops"
    assert run(capsys, "fit", rent, "--target", "rentsqm", "--save", model)[0] == 0
    frame = pandas.read_csv(rent).iloc[:4]
    frame.loc[1, "quarter"] = "[bold]west"
    frame.to_csv(tmp_path / "new.csv", index=False)
    code, said, heard = run(capsys, "predict", model, tmp_path / "new.csv", "--keep")
    assert code == 0
    assert "'quarter' has '[bold]west' in row 2" in heard
    assert said.splitlines()[0].startswith(",".join(frame.columns))


def test_weights_are_costs(rent: Path, tmp_path: Path, capsys) -> None:
    frame = pandas.read_csv(rent)
    frame.assign(w=2.0).to_csv(tmp_path / "weighted.csv", index=False)
    common = ["--target", "rentsqm", "--tau", "0.5", "--tol", "1e-8"]
    models = []
    for file, more in (
        (tmp_path / "weighted.csv", ["--weight", "w", "--C", "3"]),
        (rent, ["--C", "6"]),
    ):
        assert run(capsys, "fit", file, *common, *more, "--save", tmp_path / "m.skops")[0] == 0
        models.append(load(tmp_path / "m.skops"))
    features = frame.drop(columns="rentsqm")
    np.testing.assert_allclose(*(model.predict(features) for model in models), atol=1e-4)


def test_numbers_can_be_codes(rent: Path, tmp_path: Path, capsys) -> None:
    fit = ["fit", rent, "--target", "rentsqm", "--categorical", "rooms,district"]
    code, said, _ = run(capsys, *fit, "--json", "--save", tmp_path / "m.skops")
    assert code == 0
    types = {c["name"]: c["type"] for c in json.loads(said)["columns"]}
    assert types["rooms"] == types["district"] == types["quarter"] == "category"
    assert types["area"] == "number"
    # codes have no order: a room more is as far as two rooms more
    frame = pandas.read_csv(rent).drop(columns="rentsqm")
    rooms = [frame.iloc[:1].assign(rooms=count) for count in (2, 3, 4)]
    two, three, four = (load(tmp_path / "m.skops")[:-1].transform(row) for row in rooms)
    assert np.linalg.norm(two - three) == pytest.approx(np.linalg.norm(two - four))
    assert np.linalg.norm(two - three) > 1


def test_a_fit_cut_short_is_saved_and_says_so(tmp_path: Path, capsys) -> None:
    file, model = data_file("updrs_motor.csv"), tmp_path / "m.skops"
    code, said, heard = run(
        capsys, "fit", file, "--target", "motor_UPDRS", "--kind", "svr", "--C", "1000", "--gamma",
        "0.1", "--time-limit", "0.05", "--save", model,
    )  # fmt: skip
    assert code == 3
    assert "warning" in heard
    assert "duality gap" in heard
    assert "gap" in said
    assert model.exists()


def test_the_demo_command(tmp_path: Path, capsys, monkeypatch) -> None:
    from tausvm import demo

    called = []
    monkeypatch.setattr(demo, "show", lambda output: called.append(output) or 0)
    assert run(capsys, "demo", "-o", tmp_path / "fan.png")[0] == 0
    assert called == [tmp_path / "fan.png"]


def test_help_teaches(capsys) -> None:
    code, said, _ = run(capsys, "--help")
    assert code == 0
    for word in ("fit", "predict", "report", "info", "demo", "Exit codes"):
        assert word in said
    code, said, _ = run(capsys, "fit", "--help")
    assert code == 0
    for word in ("Examples", "--tune", "missed positive", *KINDS):
        assert word in said
    assert run(capsys, "--version")[1].startswith("tausvm 0.")


def test_without_its_extra_the_command_says_so(monkeypatch, capsys) -> None:
    imported = builtins.__import__

    def without_typer(name, *rest, **more):
        if name.split(".")[0] == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return imported(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "tausvm.cli.app")
    monkeypatch.setattr(builtins, "__import__", without_typer)
    code, _, heard = run(capsys, "--help")
    assert code == 2
    assert "pip install 'tausvm[cli]'" in heard


def test_the_command_in_a_process_of_its_own(rent: Path, tmp_path: Path) -> None:
    """Tables on stdout, messages on stderr, and the exit code, as a shell sees them."""
    command = [sys.executable, "-m", "tausvm.cli"]
    model = tmp_path / "m.skops"
    done = subprocess.run(
        [*command, "fit", rent, "--target", "rentsqm", "--json", "--save", model],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "quantile"
    assert done.stderr == ""
    done = subprocess.run(
        [*command, "fit", rent, "--target", "price", "--force", "--save", model],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "'price'" in done.stderr
