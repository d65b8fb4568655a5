"""``tausvm fit --dask`` on a folder of Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from tausvm.cli import main
from tausvm.cli.options import with_address
from tausvm.persistence import load

pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files of flats: size, quarter, rent and a weight."""
    rng = np.random.default_rng(0)
    files = tmp_path / "flats"
    files.mkdir()
    for k in range(4):
        size = rng.uniform(20, 120, size=250)
        quarter = rng.choice(["north", "south", "west"], size=250)
        rent = 8.0 * size + 100.0 * (quarter == "south") + 0.5 * size * rng.normal(size=250)
        frame = pd.DataFrame({"size": size, "quarter": quarter, "rent": rent, "count": 1 + k})
        frame.to_parquet(files / f"part{k}.parquet")
    return files


def fit(capsys: Any, *arguments: object) -> tuple[int, Any, str]:
    code = main(["fit", *(str(a) for a in arguments), "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code in (0, 3) else None, said.err


LINEAR = ("--target", "rent", "--kind", "linear", "--weight", "count")


def test_a_folder_is_fitted_as_its_rows_are(folder: Path, tmp_path: Path, capsys: Any) -> None:
    levels = ("--tau", "0.1,0.5,0.9")
    lazy, whole = tmp_path / "lazy.skops", tmp_path / "whole.skops"
    pattern = f"{folder}/*.parquet"
    code, card, _ = fit(capsys, pattern, *LINEAR, *levels, "--dask", "--save", lazy)
    assert code == 0
    assert card["rows"] == 1000
    assert card["passes"] >= 2
    table = tmp_path / "all.parquet"
    frame = pd.concat(pd.read_parquet(file) for file in sorted(folder.iterdir()))
    frame.reset_index(drop=True).to_parquet(table)
    _, other, _ = fit(capsys, table, *LINEAR, *levels, "--save", whole)
    for ours, theirs in zip(card["scores"]["levels"], other["scores"]["levels"], strict=True):
        assert ours["gap"] <= 1e-4
        # weights are in the scores of neither, and in the preparation of the whole table alone
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=0.02)
        assert ours["coverage"] == pytest.approx(theirs["coverage"], abs=0.02)
    assert type(load(lazy)[-1]).__module__ == "tausvm.estimators.linear"
    out = tmp_path / "out.csv"
    assert main(["predict", str(lazy), str(table), "-o", str(out)]) == 0
    assert list(pd.read_csv(out).columns) == ["quantile_0.1", "quantile_0.5", "quantile_0.9"]


def test_a_cluster_by_its_address(folder: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "model.skops"
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as cluster:
        address = cluster.scheduler_address
        given = ("--loss", "svr", "--tune", "--grid", "2", "--folds", "2")
        code, card, _ = fit(capsys, folder, *LINEAR, *given, "--dask", address, "--save", model)
    assert code == 0
    assert card["tuned"]
    assert card["scores"]["levels"][0]["C"] > 0


KERNEL = ("--target", "rent", "--weight", "count", "--tau", "0.1,0.5,0.9")


@pytest.mark.parametrize("kind", ["quantile", "expectile", "svr"])
@pytest.mark.parametrize("tune", [False, True], ids=["given", "tuned"])
def test_kernel_machines(folder: Path, tmp_path: Path, capsys: Any, kind: str, tune: bool) -> None:
    """By landmarks on partitions, and as well as on all rows at once."""
    given = [*(KERNEL if kind != "svr" else KERNEL[:4]), "--kind", kind]
    if tune:
        given += ["--tune", "--grid", "3", "--folds", "2"]
    model = tmp_path / "model.skops"
    code, card, _ = fit(capsys, folder, *given, "--dask", "--save", model)
    assert code == 0
    assert card["rows"] == 1000
    table = tmp_path / "all.parquet"
    frame = pd.concat(pd.read_parquet(file) for file in sorted(folder.iterdir()))
    frame.reset_index(drop=True).to_parquet(table)
    _, other, _ = fit(capsys, table, *given, "--save", tmp_path / "whole.skops")
    for ours, theirs in zip(card["scores"]["levels"], other["scores"]["levels"], strict=True):
        assert ours["landmark_gap"] <= 1e-4
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=0.15)
        assert ("C" in ours) == tune
    assert type(load(model)[-1]).__module__.startswith("tausvm.")
    assert not type(load(model)[-1]).__module__.startswith("tausvm.dask")
    out = tmp_path / "out.csv"
    assert main(["predict", str(model), str(table), "-o", str(out)]) == 0
    assert len(pd.read_csv(out)) == 1000


def test_levels_of_linear_machines_are_tuned(folder: Path, tmp_path: Path, capsys: Any) -> None:
    given = ("--tau", "0.2,0.8", "--tune", "--grid", "2", "--folds", "2")
    model = tmp_path / "model.skops"
    code, card, _ = fit(capsys, folder, *LINEAR, *given, "--dask", "--save", model)
    assert code == 0
    assert all(level["C"] > 0 and level["gap"] <= 1e-4 for level in card["scores"]["levels"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("--target", "rent", "--kind", "joint"),
            "--dask: fits --kind linear, quantile, expectile, svr only, got --kind joint",
        ),
        ((*LINEAR, "--holdout", "0.2"), "--dask: does not work with --holdout"),
        (("--kind", "linear"), "--target: name the column to predict"),
        (("--kind", "linear", "--target", "none"), "has no column 'none'"),
    ],
)
def test_bad_options(folder: Path, tmp_path: Path, capsys: Any, arguments: Any, told: str) -> None:
    code, _, heard = fit(capsys, folder, *arguments, "--dask", "--save", tmp_path / "m.skops")
    assert code == 2
    assert told in heard
    assert heard.count("\n") == 1


def test_bad_files(folder: Path, tmp_path: Path, capsys: Any) -> None:
    model = tmp_path / "m.skops"
    code, _, heard = fit(capsys, tmp_path / "no*.parquet", *LINEAR, "--dask", "--save", model)
    assert code == 2
    assert "no such Parquet files" in heard
    frame = pd.read_parquet(folder / "part2.parquet")
    frame.loc[5, "size"] = np.nan
    frame.to_parquet(folder / "part2.parquet")
    code, _, heard = fit(capsys, folder, *LINEAR, "--dask", "--save", model)
    assert code == 2
    assert "partition 2: missing values in column 'size' (row 6)" in heard
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        code, _, heard = fit(capsys, folder, *LINEAR, "--dask", "localhost:1", "--save", model)
    assert code == 2
    assert "--dask: no scheduler answers at localhost:1" in heard


def test_a_file_unlike_the_others_is_named(folder: Path, tmp_path: Path, capsys: Any) -> None:
    model, file = tmp_path / "m.skops", folder / "part2.parquet"
    whole = pd.read_parquet(file)
    first = folder / "part0.parquet"
    for changed, told in (
        (whole.drop(columns="size"), f"{file}: has no column 'size', which {first} has"),
        (whole.assign(size="large"), f"{file}: column 'size' holds text, in {first} numbers"),
        (whole.assign(quarter=3), f"{file}: column 'quarter' holds numbers, in {first} text"),
        (
            whole.assign(rent=pd.Timestamp(0)),
            f"{file}: column 'rent' holds dates, in {first} numbers",
        ),
    ):
        changed.to_parquet(file)
        code, _, heard = fit(capsys, folder, *LINEAR, "--dask", "--save", model)
        assert code == 2
        assert told in heard
    # numbers of another size, a column more, and columns in another order are no matter
    other = whole[["rent", "count", "size", "quarter"]].assign(more=1)
    other.astype({"size": np.float32, "rent": np.int32}).to_parquet(file)
    assert fit(capsys, folder, *LINEAR, "--dask", "--save", model)[0] == 0
    whole.assign(size="large").to_parquet(file)
    given = (*LINEAR, "--drop", "size", "--dask", "--save", model, "--force")
    assert fit(capsys, folder, *given)[0] == 0


def test_what_follows_the_option() -> None:
    assert with_address(["fit", "--dask", "a.parquet"]) == ["fit", "--dask", "local", "a.parquet"]
    assert with_address(["fit", "x", "--dask"]) == ["fit", "x", "--dask", "local"]
    for address in ("tcp://10.0.0.1:8786", "host:8786"):
        assert with_address(["--dask", address, "x"]) == ["--dask", address, "x"]
