"""Bad input to the command line: one line that names file, column or option, exit code 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

from tausvm.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A good file and many bad ones."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "a": rng.normal(size=30),
            "b": rng.normal(size=30),
            "kind": ["x", "y", "z"] * 10,
            "y": rng.normal(size=30),
        }
    )

    def write(name: str, **columns) -> None:
        frame.assign(**columns).to_csv(folder / name, index=False)

    write("good.csv")
    write("holes.csv", a=frame["a"].where(frame.index != 6))
    write("no_target.csv", y=frame["y"].where(frame.index != 2))
    write("text_target.csv", y=["high"] * 30)
    write("infinite.csv", b=frame["b"].where(frame.index != 4, np.inf))
    write("words.csv", a=frame["a"].astype(object).where(frame.index != 8, "unknown"))
    write("one_class.csv", y=[1] * 30)
    write("weights.csv", w=[-1.0] + [1.0] * 29)
    frame.drop(columns="b").to_csv(folder / "without_b.csv", index=False)
    frame.iloc[:3].to_csv(folder / "short.csv", index=False)
    frame.iloc[:0].to_csv(folder / "header.csv", index=False)
    frame.assign(a=["?"] * 30).to_csv(folder / "text_in_a.csv", index=False)
    pandas.DataFrame({"same": [1] * 30, "y": frame["y"]}).to_csv(folder / "same.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "twice.csv").write_text("a,a,y\n1,2,3\n")
    (folder / "broken.parquet").write_text("not parquet")
    (folder / "ragged.csv").write_text("a,y\n1,2\n1,2,3,4\n1,2\n")
    (folder / "words.svm").write_text("hello world\n")
    (folder / "data.docx").write_text("")
    (folder / "matrix.svm").write_text("".join(f"{k % 2} 1:{k} 2:1\n" for k in range(20)))
    (folder / "model.txt").write_text("not a model")
    fit = ["fit", str(folder / "good.csv"), "--target", "y", "--save", str(folder / "good.skops")]
    assert main(fit) == 0
    data = (folder / "good.skops").read_bytes()
    (folder / "cut.skops").write_bytes(data[: len(data) // 2])
    (folder / "folder.csv").mkdir()
    return folder


FIT = ["fit", "{good.csv}", "--target", "y", "--save", "{new.skops}"]


def fit(*more: str, file: str = "good.csv") -> list[str]:
    return [*FIT[:1], f"{{{file}}}", *FIT[2:], *more]


#: arguments, files in braces; and what the message must name
CASES = {
    "missing file": (fit(file="absent.csv"), ["absent.csv", "no such file"]),
    "folder": (fit(file="folder.csv"), ["folder.csv", "folder"]),
    "unknown type": (fit(file="data.docx"), ["data.docx", ".csv"]),
    "empty file": (fit(file="empty.csv"), ["empty.csv", "empty"]),
    "header only": (fit(file="header.csv"), ["header.csv", "no rows"]),
    "too few rows": (fit(file="short.csv"), ["short.csv", "3 rows"]),
    "ragged": (fit(file="ragged.csv"), ["ragged.csv", "line 3"]),
    "column twice": (fit(file="twice.csv"), ["twice.csv", "'a'"]),
    "broken parquet": (fit(file="broken.parquet"), ["broken.parquet"]),
    "broken svmlight": (
        ["fit", "{words.svm}", "--save", "{new.skops}"],
        ["words.svm", "svmlight"],
    ),
    "target of svmlight": (fit(file="matrix.svm"), ["--target", "matrix.svm"]),
    "no target": (["fit", "{good.csv}", "--save", "{new.skops}"], ["--target", "good.csv"]),
    "wrong target": (
        ["fit", "{good.csv}", "--target", "price", "--save", "{new.skops}"],
        ["'price'", "--target", "a, b, kind, y"],
    ),
    "target missing": (fit(file="no_target.csv"), ["'y'", "row 3"]),
    "text target": (fit(file="text_target.csv"), ["'y'", "'high'", "row 1"]),
    "missing values": (fit(file="holes.csv"), ["holes.csv", "'a'", "row 7", "--impute"]),
    "infinite values": (fit(file="infinite.csv"), ["'b'", "row 5"]),
    "words among numbers": (
        fit(file="words.csv"),
        ["'a'", "'unknown'", "row 9", "--impute", "--categorical"],
    ),
    "nothing varies": (fit(file="same.csv"), ["same.csv", "'same'", "1 in all rows"]),
    "wrong feature": (fit("--features", "a,c"), ["'c'", "--features"]),
    "target as feature": (fit("--features", "a,y"), ["'y'", "--features"]),
    "wrong drop": (fit("--drop", "c"), ["'c'", "--drop"]),
    "nothing left": (fit("--drop", "a,b,kind"), ["good.csv", "no feature columns"]),
    "negative weight": (fit("--weight", "w", file="weights.csv"), ["'w'", "--weight", "row 1"]),
    "level not a number": (fit("--tau", "0.1,x"), ["--tau", "'x'"]),
    "level out of range": (fit("--tau", "0.5,1.0"), ["--tau", "1.0"]),
    "level twice": (fit("--tau", "0.5,0.5"), ["--tau", "twice"]),
    "levels of svr": (fit("--kind", "svr", "--tau", "0.5"), ["--tau", "svr"]),
    "unknown kind": (fit("--kind", "forest"), ["--kind", "'forest'", "quantile"]),
    "unknown kernel": (fit("--kernel", "magic"), ["--kernel", "'magic'"]),
    "unknown metric": (fit("--feature-metric", "best"), ["--feature-metric", "'best'", "diagonal"]),
    "metric without tune": (fit("--feature-metric", "full"), ["--feature-metric", "--tune"]),
    "metric of a kind without": (
        fit("--kind", "joint", "--tune", "--feature-metric", "diagonal"),
        ["--feature-metric", "joint"],
    ),
    "full metric of sparse rows": (
        ["fit", "{matrix.svm}", "--save", "{new.skops}", "--tune", "--feature-metric", "full"],
        ["--feature-metric", "sparse"],
    ),
    "negative C": (fit("--C", "-1"), ["--C", "-1"]),
    "C not a number": (fit("--C", "much"), ["--C", "valid"]),
    "gamma": (fit("--gamma", "wide"), ["--gamma", "'wide'"]),
    "tolerance": (fit("--tol", "0"), ["--tol"]),
    "negative epsilon": (fit("--epsilon", "-0.1"), ["--epsilon"]),
    "holdout": (fit("--holdout", "1.5"), ["--holdout", "1.5"]),
    "loss": (fit("--loss", "huber"), ["--loss", "quantile"]),
    "zone of a classifier": (
        fit("--kind", "svc", "--epsilon", "0.1"),
        ["--epsilon", "--kind svc"],
    ),
    "kernel of a linear kind": (
        fit("--kind", "linear", "--kernel", "poly"),
        ["--kernel", "--kind linear"],
    ),
    "gamma of a linear kind": (
        fit("--kind", "linear", "--gamma", "1"),
        ["--gamma", "--kind linear"],
    ),
    "positive of a regression": (fit("--positive", "x"), ["--positive"]),
    "folds": (fit("--tune", "--folds", "1"), ["--folds"]),
    "unknown option": (fit("--speed", "11"), ["--speed"]),
    "unknown command": (["train", "{good.csv}"], ["train"]),
    "no save": (["fit", "{good.csv}", "--target", "y"], ["--save"]),
    "save nowhere": (
        ["fit", "{good.csv}", "--target", "y", "--save", "{nowhere/m.skops}"],
        ["nowhere"],
    ),
    "one class": (fit("--kind", "svc", file="one_class.csv"), ["'y'", "one class"]),
    "three classes": (
        ["fit", "{good.csv}", "--target", "kind", "--kind", "svc", "--save", "{new.skops}"],
        ["'kind'", "--positive"],
    ),
    "wrong positive": (
        [
            *["fit", "{good.csv}", "--target", "kind", "--kind", "svc", "--positive", "w"],
            *["--save", "{new.skops}"],
        ],
        ["--positive", "'w'"],
    ),
    "model missing": (["predict", "{absent.skops}", "{good.csv}"], ["absent.skops"]),
    "not a model": (["predict", "{model.txt}", "{good.csv}"], ["model.txt", "not a tausvm model"]),
    "half a model": (["info", "{cut.skops}"], ["cut.skops"]),
    "column gone": (["predict", "{good.skops}", "{without_b.csv}"], ["without_b.csv", "'b'"]),
    "text in a number": (["predict", "{good.skops}", "{text_in_a.csv}"], ["'a'", "'?'", "row 1"]),
    "svmlight for columns": (["predict", "{good.skops}", "{matrix.svm}"], ["matrix.svm"]),
    "output type": (
        ["predict", "{good.skops}", "{good.csv}", "-o", "{out.xlsx}"],
        ["out.xlsx", "CSV"],
    ),
    "output nowhere": (
        ["predict", "{good.skops}", "{good.csv}", "-o", "{nowhere/out.csv}"],
        ["nowhere"],
    ),
    "levels at predict": (
        ["predict", "{good.skops}", "{good.csv}", "--tau", "0.5"],
        ["--tau"],
    ),
    "report without target": (
        ["report", "{good.skops}", "{without_y.csv}", "-o", "{r.html}"],
        ["without_y.csv"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line_names_what_is_wrong(name: str, folder: Path, capsys) -> None:
    arguments, words = CASES[name]
    given = [
        str(folder / argument[1:-1]) if argument.startswith("{") else argument
        for argument in arguments
    ]
    assert main(given) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("tausvm: error: ")
    for word in words:
        assert word in said.err
    assert not (folder / "new.skops").exists()


def test_at_least_twenty_kinds_of_bad_input() -> None:
    assert len(CASES) >= 20


def test_ctrl_c_is_130(folder: Path, capsys, monkeypatch) -> None:
    from tausvm.cli import fitting

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "plan_fit", interrupted)
    fit = ["fit", str(folder / "good.csv"), "--target", "y", "--save", str(folder / "n.skops")]
    assert main(fit) == 130
    assert capsys.readouterr().err == "tausvm: interrupted\n"


def test_an_unexpected_error_is_one_line_too(folder: Path, capsys, monkeypatch) -> None:
    from tausvm.cli import fitting

    def broken(*_):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(fitting, "plan_fit", broken)
    fit = ["fit", str(folder / "good.csv"), "--target", "y", "--save", str(folder / "n.skops")]
    assert main(fit) == 1
    assert capsys.readouterr().err == "tausvm: error: RuntimeError: two lines\n"
