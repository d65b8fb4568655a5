"""Lazy predictions of every kind of model."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tausvm
import tausvm.dask as lazy
from tausvm.dask import predict
from tausvm.persistence import load, save

from .data import chunked


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = X[:, 0] + 0.3 * rng.normal(size=80)
LEVELS = [0.05, 0.5, 0.95]

MODELS: dict[str, Any] = {
    "kernel": lambda: tausvm.QuantileSVR(tau=LEVELS).fit(X, y),
    "one level": lambda: tausvm.ExpectileSVR(tau=0.3).fit(X, y),
    "joint": lambda: tausvm.JointQuantileSVR(tau=LEVELS).fit(X, y),
    "linear": lambda: tausvm.LinearQuantileSVR(tau=LEVELS).fit(X, y),
    "classes": lambda: tausvm.TauSVC().fit(X, np.where(y > 0, "yes", "no")),
    "pipeline": lambda: make_pipeline(StandardScaler(), tausvm.SVR()).fit(X, y),
    "tuned": lambda: tausvm.LinearSVRCV(Cs=[0.1, 1.0], cv=2).fit(X, y),
}


def assert_same(found: Any, expected: Any) -> None:
    """Equal but for the order in which rows of a block are summed up."""
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    else:
        assert list(found) == list(expected)


@pytest.mark.parametrize("name", MODELS)
def test_arrays(name: str) -> None:
    model = MODELS[name]()
    found = predict(model, chunked(X, 33))
    expected = model.predict(X)
    assert isinstance(found, da.Array)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert_same(found.compute(), expected)


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", MODELS)
def test_dataframes(name: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(100, 180))
    table = dd.from_pandas(frame, npartitions=3)
    model = MODELS[name]()
    found = predict(model, table)
    done = found.compute()
    assert list(done.index) == list(frame.index)
    assert_same(done.to_numpy(), model.predict(X))
    assert type(found._meta) is type(done)
    if done.ndim == 2:
        assert list(found.columns) == list(done.columns)


def test_intervals() -> None:
    model = MODELS["kernel"]()
    found = predict(model, chunked(X, 33), method="predict_interval", coverage=0.9)
    assert found.shape == (80, 2)
    assert_same(found.compute(), model.predict_interval(X, 0.9))
    table = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert list(predict(model, table, method="predict_interval").columns) == ["lower", "upper"]


def test_sparse_chunks_and_unknown_lengths() -> None:
    model = MODELS["linear"]()
    sparse = predict(model, chunked(sp.csr_matrix(X), 33))
    np.testing.assert_allclose(sparse.compute(), model.predict(X))
    rows = chunked(X, 40)
    positive = rows[rows[:, 0] > 0]
    np.testing.assert_allclose(predict(model, positive).compute(), model.predict(X[X[:, 0] > 0]))


def test_tables_with_text() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "new", "old")})
    model = tausvm.TabularQuantileSVR(tau=[0.2, 0.8], Cs=[1.0], cv=2).fit(frame, y)
    found = predict(model, dd.from_pandas(frame, npartitions=2)).compute()
    np.testing.assert_allclose(found.to_numpy(), model.predict(frame))
    assert list(found.columns) == ["quantile_0.2", "quantile_0.8"]


def test_saved_models(tmp_path: Path) -> None:
    model = MODELS["kernel"]()
    save(model, tmp_path / "model.skops")
    found = predict(tmp_path / "model.skops", chunked(X, 33)).compute()
    assert_same(found, model.predict(X))


@pytest.mark.parametrize("name", ["LinearQuantileSVR", "LinearSVR", "LinearSVRCV"])
def test_machines_of_partitions_are_saved_as_those_without(name: str, tmp_path: Path) -> None:
    model = getattr(lazy, name)().fit(chunked(X, 33), chunked(y, 33))
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert type(loaded) is getattr(tausvm, name)
    assert_same(loaded.predict(X), model.predict(X))
    assert_same(predict(model, chunked(X, 33)).compute(), model.predict(X))


def test_bad_arguments() -> None:
    model = MODELS["linear"]()
    with pytest.raises(TypeError, match="X must be a dask array or a dask dataframe, got ndarray"):
        predict(model, X)
    with pytest.raises(ValueError, match="method must be one that the model has, got 'nothing'"):
        predict(model, chunked(X), method="nothing")


@pytest.mark.parametrize("module", ["linear", "selection", "predicting"])
def test_docstrings(module: str) -> None:
    part = importlib.import_module(f"tausvm.dask.{module}")
    found = doctest.testmod(part, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0
