"""Files as people have them: each is read rightly, or refused in a line that says what to do."""

from __future__ import annotations

import gzip
import io
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from tausvm.cli import main
from tausvm.cli.errors import InputError
from tausvm.cli.formats import ReadOptions
from tausvm.cli.tables import read_table

#: what most of the files below say
NAMES = ["size", "town", "rent"]
SIZE, TOWN, RENT = [50.5, 20.25, 75.0, 1234.5], ["Köln", "Bonn", "Köln", "Aa"], [10, 20, 30, 40]
PLAIN = "size,town,rent\n50.5,Köln,10\n20.25,Bonn,20\n75.0,Köln,30\n1234.5,Aa,40\n"
GERMAN = "size;town;rent\n50,5;Köln;10\n20,25;Bonn;20\n75,0;Köln;30\n1.234,5;Aa;40\n"


RECORDS = [dict(zip(NAMES, row, strict=True)) for row in zip(SIZE, TOWN, RENT, strict=True)]


def quoted(mark: str) -> bytes:
    """All cells in quotes."""
    lines = [mark + line.replace(",", f"{mark},{mark}") + mark for line in PLAIN.splitlines()]
    return "\n".join(lines).encode()


def rows(text: str, before: str, sep: str = ",") -> str:
    """The same lines with a cell more in front of each row."""
    head, *body = text.splitlines()
    lines = [head, *(f"{before.format(k)}{sep}{line}" for k, line in enumerate(body))]
    return "\n".join(lines) + "\n"


#: file name, what is in it, and words of the note on it
READ: dict[str, tuple[str, bytes, list[str]]] = {
    "plain": ("d.csv", PLAIN.encode(), []),
    "utf-8 with a mark": ("d.csv", PLAIN.encode("utf-8-sig"), []),
    "latin-1": ("d.csv", PLAIN.encode("latin-1"), ["cp1252"]),
    "utf-16 with a mark": ("d.csv", PLAIN.encode("utf-16"), ["utf-16"]),
    "utf-16 without a mark": ("d.csv", PLAIN.encode("utf-16-le"), ["utf-16-le"]),
    "utf-16, the other end": ("d.csv", PLAIN.encode("utf-16-be"), ["utf-16-be"]),
    "semicolons and commas": ("d.csv", GERMAN.encode(), ["semicolons", "decimal commas"]),
    "German Excel": ("d.csv", GERMAN.encode("cp1252"), ["semicolons", "cp1252"]),
    "the separator in a line": ("d.csv", b"sep=;\n" + GERMAN.encode(), ["semicolons"]),
    "tabs": ("d.tsv", PLAIN.replace(",", "\t").encode(), ["tabs"]),
    "tabs in .txt": ("d.txt", PLAIN.replace(",", "\t").encode(), ["tabs"]),
    "tabs in .csv": ("d.csv", PLAIN.replace(",", "\t").encode(), ["tabs"]),
    "bars": ("d.txt", PLAIN.replace(",", "|").encode(), ["bars"]),
    "columns of blanks": ("d.txt", PLAIN.replace(",", "   ").encode(), ["spaces"]),
    "R's write.table": ("d.txt", rows(PLAIN.replace(",", " "), '"{}"', " ").encode(), ["column 1"]),
    "pandas' to_csv": ("d.csv", ("," + rows(PLAIN, "{}")).encode(), ["column 1 left out"]),
    "R's write.csv": ("d.csv", ('"",' + rows(PLAIN, '"{}"')).encode(), ["column 1 left out"]),
    "saved twice": ("d.csv", ("Unnamed: 0," + rows(PLAIN, "{}")).encode(), ["column 1 left out"]),
    "separators at the ends": ("d.csv", PLAIN.replace("\n", ",\n").encode(), ["column 4 left out"]),
    "separators at the ends of rows": (
        "d.csv", PLAIN.replace("\n", ",\n").replace("rent,", "rent").encode(), ["column 4"],
    ),
    "empty rows at the end": ("d.csv", (PLAIN + ",,\n,,\n\n").encode(), ["2 empty rows"]),
    "blank lines before": ("d.csv", ("\n  \n" + PLAIN).encode(), []),
    "Windows lines": ("d.csv", PLAIN.replace("\n", "\r\n").encode(), []),
    "lines of an old Macintosh": ("d.csv", PLAIN.replace("\n", "\r").encode(), []),
    "no end of the last line": ("d.csv", PLAIN.rstrip().encode(), []),
    "blanks around cells": ("d.csv", PLAIN.replace(",", " , ").encode(), []),
    "quotes": ("d.csv", quoted('"'), []),
    "single quotes": ("d.csv", quoted("'"), ["single quotes"]),
    "commas between thousands": (
        "d.csv", PLAIN.replace("1234.5", '"1,234.5"').encode(), ["thousands"],
    ),
    "packed": ("d.csv.gz", gzip.compress(PLAIN.encode()), []),
    "packed, not named so": ("d.csv", gzip.compress(PLAIN.encode()), []),
    "JSON lines": ("d.jsonl", "\n".join(json.dumps(r) for r in RECORDS).encode(), []),
    "a list of JSON": ("d.json", json.dumps(RECORDS).encode(), []),
}  # fmt: skip


def check(table, words: list[str]) -> None:
    assert list(table.frame.columns) == NAMES
    np.testing.assert_array_equal(table.frame["size"], SIZE)
    assert list(table.frame["town"]) == TOWN
    np.testing.assert_array_equal(table.frame["rent"], RENT)
    assert bool(table.notes) == bool(words), table.notes
    assert "\n" not in table.read_as
    for word in words:
        assert word in table.read_as


@pytest.mark.parametrize("name", READ)
def test_files_that_are_read(name: str, tmp_path: Path) -> None:
    file, data, words = READ[name]
    (tmp_path / file).write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(read_table(tmp_path / file), words)


def test_excel(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    frame = pandas.DataFrame({"size": SIZE, "town": TOWN, "rent": RENT})
    frame.to_excel(tmp_path / "d.xlsx")
    check(read_table(tmp_path / "d.xlsx"), ["column 1 left out"])


def test_standard_input(monkeypatch) -> None:
    for name in ("plain", "German Excel", "JSON lines"):
        _, data, words = READ[name]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        check(read_table(Path("-")), words)


#: file name, what is in it, and what the line must say
REFUSED = {
    "ragged": ("d.csv", b"a,y\n1,2\n1,2,3,4\n1,2\n", ["line 3 has 4 cells", "--sep"]),
    "a title above": ("d.csv", b"Rents of 2024\n\na,b,y\n1,2,3\n4,5,6\n", ["header", "line 3"]),
    "a name twice": ("d.csv", b"a,a,y\n1,2,3\n", ["'a'", "twice", "rename"]),
    "a column without a name": ("d.csv", b"a,,y\n1,x,3\n2,z,4\n", ["column 2", "name"]),
    "zeros": ("d.csv", bytes(range(256)) * 4, ["not text"]),
    "Excel by another name": ("d.csv", b"PK\x03\x04 and more", [".xlsx"]),
    "Parquet by another name": ("d.csv", b"PAR1 and more", [".parquet"]),
    "a web page": ("d.csv", b"<!DOCTYPE html><html></html>", ["web page"]),
    "blanks": ("d.csv", b" \n \n", ["empty"]),
    "only names": ("d.csv", b"a,b,y\n", ["no rows"]),
    "two decimal marks": ("d.txt", b"a;y\n1,5;2\n3.25;4\n7,5;8\n", ["--decimal"]),
    "an object cut short": ("d.jsonl", b'{"a": 1}\n{"a": \n', ["line 2"]),
    "lists in cells": ("d.jsonl", b'{"a": [1, 2]}\n', ["'a'", "several values"]),
    "an open quote": ("d.csv", b'a,y\n"1,2\n3,4\n', ["quote"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused(name: str, tmp_path: Path) -> None:
    file, data, words = REFUSED[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_table(tmp_path / file)
    line = str(refused.value)
    assert "\n" not in line
    assert file in line
    for word in words:
        assert word in line


def test_a_single_column_of_text_with_blanks(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("full name\nAda Lovelace\nEmmy Noether\n")
    table = read_table(tmp_path / "d.csv")
    assert list(table.frame["full name"]) == ["Ada Lovelace", "Emmy Noether"]
    assert table.notes == []


def test_there_are_thirty_dirty_files() -> None:
    assert len(READ) >= 30


def test_what_is_insisted_on(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes("a;y\n1,234;ä\n2,345;?\n".encode("cp850"))
    table = read_table(tmp_path / "d.csv", ReadOptions(";", ".", "cp850", ("?",)))
    assert list(table.frame["a"]) == [1234, 2345]
    assert table.frame["y"].isna().tolist() == [False, True]
    assert table.frame["y"][0] == "ä"
    assert list(read_table(tmp_path / "d.csv").frame["a"]) == [1.234, 2.345]
    for options in (ReadOptions(encoding="utf-9"), ReadOptions(encoding="utf-8")):
        with pytest.raises(InputError, match="encoding"):
            read_table(tmp_path / "d.csv", options)


@pytest.mark.parametrize(
    ("cells", "order", "form"),
    [
        (["31.12.2024", "01.02.2023"], None, "%d.%m.%Y"),
        (["01.02.2024", "03.04.2023"], None, "%d.%m.%Y"),
        (["12/31/2024", "01/02/2023"], None, "%m/%d/%Y"),
        (["31/12/2024", "01/02/2023"], None, "%d/%m/%Y"),
        (["31/12/24 10:30", "01/02/23 9:15"], None, "%d/%m/%y %H:%M"),
        (["2024/12/31", "2023/02/01"], None, "%Y/%m/%d"),
        (["01/02/2024", "03/04/2023"], "mdy", "%m/%d/%Y"),
        (["01/02/2024", "03/04/2023"], None, None),
        (["31.02.2024", "03.04.2023"], None, None),
    ],
)
def test_dates(cells: list[str], order: str | None, form: str | None, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("day,y\n" + "".join(f"{c},1\n" for c in cells))
    table = read_table(tmp_path / "d.csv", ReadOptions(dates=order))
    assert table.dates == ({} if form is None else {"day": form})
    assert "'day'" in table.read_as
    if form is not None:
        want = pandas.to_datetime(pandas.Series(cells), format=form)
        assert (table.frame["day"] == want).all()


@pytest.fixture
def let(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    days = pandas.Timestamp("2021-01-01") + pandas.to_timedelta(rng.integers(0, 900, 40), "D")
    frame = pandas.DataFrame({"day": days, "y": rng.normal(size=40)})
    frame.assign(day=days.strftime("%d/%m/%Y")).to_csv(tmp_path / "let.csv", index=False)
    return tmp_path / "let.csv"


def test_a_model_reads_dates_as_its_fit_did(let: Path, tmp_path: Path, capsys) -> None:
    model = str(tmp_path / "m.skops")
    fit = ["fit", str(let), "--target", "y", "--tau", "0.5", "--save", model]
    assert main(fit) == 0
    assert "day/month/year" in capsys.readouterr().err
    for text in ("03/04/2021", "2021-04-03"):  # the first alone could be two days
        (tmp_path / "new.csv").write_text(f"day\n{text}\n")
        assert main(["predict", model, str(tmp_path / "new.csv")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == said[3]
    (tmp_path / "new.csv").write_text("day\n04/30/2021\n")
    assert main(["predict", model, str(tmp_path / "new.csv")]) == 2
    assert "04/30/2021" in capsys.readouterr().err


def test_did_you_mean(let: Path, capsys) -> None:
    assert main(["fit", str(let), "--target", "Y", "--dry-run"]) == 2
    assert "did you mean 'y'?" in capsys.readouterr().err
    let.write_text("1,2\n3,4\n")
    assert main(["fit", str(let), "--target", "y", "--dry-run"]) == 2
    assert "the first line must have the names" in capsys.readouterr().err
