"""Linear machines on partitions against the single machine, without a cluster."""

from __future__ import annotations

import subprocess
import sys
import warnings
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
from sklearn.exceptions import ConvergenceWarning

import tausvm
import tausvm.dask as lazy
from tausvm.losses import Pinball, SquaredPinball

from .data import SMALL, assert_same, chunked, objective, rows

MACHINES: dict[str, tuple[str, dict[str, Any]]] = {
    "quantiles": ("LinearQuantileSVR", {"tau": [0.1, 0.5, 0.9]}),
    "expectiles": ("LinearExpectileSVR", {"tau": [0.1, 0.5, 0.9]}),
    "tube": ("LinearSVR", {"epsilon": 0.3}),
    "squared tube": ("LinearSVR", {"epsilon": 0.3, "loss": "squared_epsilon_insensitive"}),
}
OFFSETS: dict[str, dict[str, Any]] = {
    "free": {},
    "none": {"fit_intercept": False},
    "column": {"intercept_scaling": 2.0},
}


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def both(kind: str, X: Any, y: Any, weight: Any = None, plan: Any = SMALL, **given: Any) -> Any:
    name, own = MACHINES[kind]
    single = getattr(tausvm, name)(**own, **given).fit(X, y, sample_weight=weight)
    model = getattr(lazy, name)(**own, **given)
    weights = None if weight is None else chunked(weight)
    return model.fit(chunked(X), chunked(y), sample_weight=weights, plan=plan), single


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_to_the_single_machine(kind: str, offset: str, weighted: bool) -> None:
    X, y, weight = rows()
    weight = weight if weighted else None
    model, single = both(kind, X, y, weight, tol=1e-5, **OFFSETS[offset])
    assert_same(model, single)
    assert 2 <= model.n_passes_ <= 12
    apart = np.sqrt(np.mean(np.square(model.predict(X) - single.predict(X))))
    assert apart <= 0.05 * y.std()


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("C", [1e-6, 1e4])
def test_small_and_large_costs(kind: str, C: float) -> None:
    X, y, _ = rows(seed=1)
    assert_same(*both(kind, X, y, C=C))


@pytest.mark.parametrize("kind", MACHINES)
def test_high_accuracy(kind: str) -> None:
    X, y, _ = rows(3000, seed=2)
    assert_same(*both(kind, X, y, tol=1e-9))


@pytest.mark.parametrize("kind", MACHINES)
def test_far_targets_in_any_unit(kind: str) -> None:
    X, y, _ = rows(3000, seed=3)
    assert_same(*both(kind, X, 1e-3 * y + 1e7, tol=1e-5))


@pytest.mark.parametrize("kind", MACHINES)
def test_targets_that_tie(kind: str) -> None:
    X, _, _ = rows(3000, seed=4)
    y = np.random.default_rng(4).poisson(0.7, size=3000).astype(float)
    assert_same(*both(kind, X, y))


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize("shape", ["leverage", "categories", "weights", "scales", "far"])
def test_rows_of_other_shapes(kind: str, shape: str) -> None:
    X, y, weight = rows(4000, seed=6)
    rng = np.random.default_rng(6)
    match shape:
        case "leverage":
            X = X * np.exp(2.0 * rng.normal(size=(4000, 1)))
        case "categories":
            X = np.eye(12)[rng.integers(12, size=4000)]
        case "weights":
            weight = 10.0 ** rng.uniform(-6, 0, size=4000)
        case "scales":
            X = X * 10.0 ** np.linspace(-3, 3, 6)
        case "far":
            X = X + 1000.0
    model, single = both(kind, X, y, weight)
    assert_same(model, single)
    assert model.n_passes_ <= 20


@pytest.mark.parametrize("kind", MACHINES)
def test_perfect_fits(kind: str) -> None:
    X, _, _ = rows(2000, seed=5)
    for y in (np.full(2000, 3.0), X.sum(axis=1)):
        model, single = both(kind, X, y, C=0.01)
        assert_same(model, single)


@pytest.mark.parametrize("kind", MACHINES)
def test_rows_of_the_sample_alone(kind: str) -> None:
    """Where all rows are in the sample, one more pass certifies its solution."""
    X, y, _ = rows(300)
    model, single = both(kind, X, y, plan=lazy.Plan())
    assert_same(model, single)
    assert model.n_passes_ == 2


@pytest.mark.parametrize("kind", MACHINES)
def test_sparse_chunks(kind: str) -> None:
    X = sp.random(2000, 40, density=0.1, format="csr", random_state=0)
    y = X @ np.linspace(-1, 1, 40) + 0.3 * np.random.default_rng(0).normal(size=2000)
    assert_same(*both(kind, X, y))


@pytest.mark.parametrize("kind", MACHINES)
def test_more_features_than_a_matrix_may_have(kind: str) -> None:
    X = sp.random(1500, 300, density=0.02, format="csr", random_state=1)
    y = X @ np.linspace(-1, 1, 300) + 0.3 * np.random.default_rng(1).normal(size=1500)
    plan = lazy.Plan(sample_megabytes=0.02, client_megabytes=4.0, direct=50)
    assert_same(*both(kind, X, y, plan=plan, C=0.1))


def test_float32_stays() -> None:
    X, y, _ = rows(2000)
    assert_same(*both("expectiles", X.astype(np.float32), y))


@pytest.mark.parametrize("kind", ["quantiles", "tube"])
def test_a_point_is_improved_where_the_band_would_not_fit(kind: str) -> None:
    """Room for a fortieth of the rows: Newton's steps come before the gathering."""
    X, y, _ = rows(20_000)
    plan = lazy.Plan(sample_megabytes=0.03, client_megabytes=0.03)
    model, single = both(kind, X, y, plan=plan)
    assert_same(model, single)
    assert model.n_passes_ > 4


def test_rows_that_do_not_fit_are_refused() -> None:
    X = sp.random(1500, 300, density=0.02, format="csr", random_state=1)
    y = np.random.default_rng(1).normal(size=1500)
    plan = lazy.Plan(sample_megabytes=0.02, client_megabytes=0.01, direct=50)
    with pytest.raises(MemoryError, match=r"rows lie near the corners .* client_megabytes=0\.01"):
        both("tube", X, y, plan=plan)


def test_the_certificate_is_that_of_the_machine_that_predicts() -> None:
    X, y, weight = rows(3000)
    for name, loss in (("LinearQuantileSVR", Pinball), ("LinearExpectileSVR", SquaredPinball)):
        model = getattr(lazy, name)(tau=0.3, scale_C=False, C=0.2)
        model.fit(chunked(X), chunked(y), sample_weight=chunked(weight), plan=SMALL)
        value = objective(model, loss(0.3, 0.0), X, y, 0.2 * weight)
        assert value == pytest.approx(model.result_.primal_objective, rel=1e-10)
        assert model.result_.dual_objective <= value
        gap = (value - model.result_.dual_objective) / value
        assert gap == pytest.approx(model.dual_gap_, abs=1e-9)


def test_weights_are_copies_and_zero_leaves_out() -> None:
    X, y, _ = rows(2000)
    weight = np.random.default_rng(0).integers(0, 3, size=2000).astype(float)
    repeated = np.repeat(np.arange(2000), weight.astype(int))
    model = lazy.LinearExpectileSVR(tau=0.7, tol=1e-8)
    one = model.fit(chunked(X), chunked(y), sample_weight=chunked(weight), plan=SMALL).coef_
    two = model.fit(chunked(X[repeated]), chunked(y[repeated]), plan=SMALL).coef_
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_dataframes() -> None:
    X, y, weight = rows(2000)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["y"], frame["weight"] = y, weight
    table = dd.from_pandas(frame, npartitions=4)
    features = list("abcdef")
    model = lazy.LinearQuantileSVR(tau=[0.2, 0.8])
    model.fit(table[features], table["y"], sample_weight=table["weight"], plan=SMALL)
    single = tausvm.LinearQuantileSVR(tau=[0.2, 0.8]).fit(X, y, sample_weight=weight)
    assert_same(model, single)
    assert list(model.feature_names_in_) == features
    predicted = model.predict(table[features])
    assert list(predicted.columns) == ["quantile_0.2", "quantile_0.8"]
    np.testing.assert_allclose(predicted.compute(), model.predict(frame[features]))


def test_one_column_of_many_files(tmp_path: Path) -> None:
    """Dask would read y from several files at once, and X from one at a time."""
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    X, y, weight = rows(3000, 30)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(30)]).assign(y=y, weight=weight)
    for k in range(10):
        frame.iloc[300 * k : 300 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    table = dd.read_parquet(str(tmp_path / "*.parquet"))
    features = list(frame.columns[:30])
    model = lazy.LinearExpectileSVR()
    model.fit(table[features], table["y"], sample_weight=table["weight"], plan=SMALL)
    single = tausvm.LinearExpectileSVR().fit(X, y, sample_weight=weight)
    assert_same(model, single)


def test_empty_partitions() -> None:
    X, y, _ = rows(2000)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, part=np.arange(2000) // 500)
    table = dd.from_pandas(frame, npartitions=4)
    table = table[table["part"] != 1]
    model = lazy.LinearExpectileSVR().fit(table[list("abcdef")], table["y"], plan=SMALL)
    kept = frame[frame["part"] != 1]
    assert_same(model, tausvm.LinearExpectileSVR().fit(kept[list("abcdef")], kept["y"]))
    assert len(model.predict(table[list("abcdef")]).compute()) == 1500


def test_arrays_beside_a_lazy_X_are_cut_like_it() -> None:
    X, y, weight = rows(2000)
    model = lazy.LinearExpectileSVR().fit(chunked(X), y, sample_weight=weight, plan=SMALL)
    other = da.from_array(y, chunks=77)
    again = lazy.LinearExpectileSVR().fit(chunked(X), other, sample_weight=weight, plan=SMALL)
    np.testing.assert_allclose(model.coef_, again.coef_)


def test_columns_in_several_chunks() -> None:
    X, y, _ = rows(2000)
    model = lazy.LinearExpectileSVR().fit(da.from_array(X, chunks=(500, 2)), y, plan=SMALL)
    assert_same(model, tausvm.LinearExpectileSVR().fit(X, y))


def broken(X: Any, at: int, change: Any, size: int = 500) -> Any:
    """X with another block in one place."""

    def block(part: Any, block_info: Any = None) -> Any:
        return change(part) if block_info[0]["chunk-location"][0] == at else part

    return da.from_array(X, chunks=(size, *X.shape[1:])).map_blocks(block, dtype=X.dtype)


def with_nan(part: Any) -> Any:
    part = part.copy()
    part[7] = np.nan
    return part


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (with_nan, "partition 2: X must be finite, got nan in row 7, column 0"),
        (lambda part: part[:, :3], "partition 2: X must have 6 columns, got 3"),
        (lambda part: part.astype(str), "partition 2: X must hold numbers, got the type <U32"),
        (lambda part: part.astype(object), "partition 2: X must hold numbers, got the type object"),
        (lambda part: part + 1j, "partition 2: X must hold numbers, got the type complex128"),
        (lambda part: part[:-1], "partition 2: y must have 499 entries"),
        (lambda part: part * 1e70, "partition 2: X must have entries of at most 1e\\+60"),
        (lambda part: part.ravel(), "partition 2: X must have 6 columns, got 1 dimensions"),
    ],
)
def test_a_bad_partition_of_X_is_named(change: Any, told: str) -> None:
    X, y, _ = rows(2000)
    with pytest.raises(ValueError, match=told):
        lazy.LinearSVR().fit(broken(X, 2, change), da.from_array(y, chunks=500))


def test_bad_partitions_of_targets_and_weights_are_named() -> None:
    X, y, weight = rows(2000)
    lazy_X = da.from_array(X, chunks=(500, 6))
    with pytest.raises(ValueError, match="partition 1: y must be finite, got nan in row 7"):
        lazy.LinearSVR().fit(lazy_X, broken(y, 1, with_nan))
    with pytest.raises(ValueError, match=r"partition 3: sample_weight must not be negative, got -"):
        lazy.LinearSVR().fit(lazy_X, y, sample_weight=broken(weight, 3, lambda part: -part))


def test_a_bad_column_of_a_dataframe_is_named() -> None:
    X, y, _ = rows(400)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    good = dd.from_pandas(frame, npartitions=2)
    bad = good.map_partitions(
        lambda part, at=None: part.assign(b="text") if part.index[0] >= 200 else part,
        meta=frame.iloc[:0],
    )
    targets = dd.from_pandas(pd.Series(y), npartitions=2)
    with pytest.raises(ValueError, match="partition 1: column 'b' of X must hold numbers"):
        lazy.LinearSVR().fit(bad, targets)


def test_bad_arguments() -> None:
    X, y, _ = rows(400)
    with pytest.raises(TypeError, match="X must be a dask array or a dask dataframe, got ndarray"):
        lazy.LinearSVR().fit(X, y)
    with pytest.raises(ValueError, match="y must have the partitions of X, got 2 where X has 4"):
        lazy.LinearSVR().fit(da.from_array(X, chunks=(100, 6)), da.from_array(y[:200], chunks=100))
    with pytest.raises(ValueError, match="tau must"):
        lazy.LinearQuantileSVR(tau=1.5).fit(chunked(X), chunked(y))
    with pytest.raises(ValueError, match="2 rows of positive weight at least, got n_samples = 0"):
        lazy.LinearSVR().fit(chunked(X), chunked(y), sample_weight=chunked(np.zeros(400)))


def test_data_that_change_between_passes_are_noticed() -> None:
    X, y, _ = rows(2000)
    calls = iter(range(1000))
    moving = da.from_array(y, chunks=500).map_blocks(lambda part: part + next(calls), dtype=float)
    with pytest.raises(RuntimeError, match="the data changed between two passes"):
        lazy.LinearExpectileSVR().fit(da.from_array(X, chunks=(500, 6)), moving, plan=SMALL)


def test_a_bounded_number_of_passes_ends_with_the_gap() -> None:
    X, y, _ = rows(3000)
    model = lazy.LinearExpectileSVR(tau=0.01, tol=1e-12)
    plan = lazy.Plan(sample_megabytes=0.01, most_passes=2)
    with pytest.warns(ConvergenceWarning, match=r"gap is .* after 2 passes .* most_passes=2"):
        model.fit(chunked(X), chunked(y), plan=plan)
    assert model.dual_gap_ > 1e-12
    assert model.n_passes_ == 2


def test_time_limits_are_told() -> None:
    X, y, _ = rows(3000)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = lazy.LinearQuantileSVR(time_limit=1e-3, tol=1e-9)
        model.fit(chunked(X), chunked(y), plan=SMALL)
    assert any("time_limit=0.001" in str(warning.message) for warning in told)
    assert np.isfinite(model.result_.primal_objective)


def test_the_single_machine_is_what_to_keep() -> None:
    X, y, _ = rows(1000)
    model = lazy.LinearQuantileSVR(tau=[0.1, 0.9]).fit(chunked(X), chunked(y), plan=SMALL)
    kept = model.single()
    assert type(kept) is tausvm.LinearQuantileSVR
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))
    np.testing.assert_array_equal(kept.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


def test_same_fit_twice() -> None:
    X, y, _ = rows(2000)
    model = lazy.LinearQuantileSVR(random_state=3)
    one = model.fit(chunked(X), chunked(y), plan=SMALL).coef_
    np.testing.assert_array_equal(one, model.fit(chunked(X), chunked(y), plan=SMALL).coef_)


def test_importing_the_library_does_not_import_dask() -> None:
    code = "import sys, tausvm, tausvm.solvers; tausvm.LinearSVR; print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_dask_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "try:\n    import tausvm.dask\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'tausvm[dask]'" in done.stdout
