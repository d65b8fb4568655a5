"""Tuned kernel machines on partitions, against the selection and the fits of the single machine."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

import tausvm
import tausvm.dask as lazy
from tausvm.dask.partitions import BadPartition
from tausvm.persistence import load, save
from tausvm.selection.calibration import conformal_quantile, shifts
from tausvm.selection.settings import LargeSettings

RNG = np.random.default_rng(0)
N = 1200
X = RNG.uniform(-1, 1, size=(N, 3))
Y = np.sin(3 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0)) * RNG.normal(size=N)
ROWS = da.from_array(X, chunks=(300, 3))
TARGETS = da.from_array(Y, chunks=300)
#: in the order of the random numbers that the rows of all partitions are drawn by
ORDER = np.argsort(np.concatenate([np.random.default_rng([0, k, 0]).random(300) for k in range(4)]))
GRID = {"Cs": [1.0, 10.0], "gammas": [0.3, 1.0, 3.0], "cv": 3}
CHOSEN, HELD = 250, 100
LEVELS = [0.1, 0.5, 0.9]
KINDS = [
    ("SVRCV", {}),
    ("QuantileSVRCV", {"tau": LEVELS}),
    ("ExpectileSVRCV", {"tau": [0.8, 0.3]}),
]


def made(name: str = "QuantileSVRCV", **given: Any) -> Any:
    """A selection that chooses on few rows and holds few out."""
    levels = {"tau": LEVELS} if name == "QuantileSVRCV" else {}
    model = getattr(lazy, name)(**{**levels, **GRID, "landmarks": 60, **given})
    model._settings = replace(model._settings, large=LargeSettings(CHOSEN, held_out_rows=HELD))
    return model


@pytest.fixture(autouse=True)
def in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def fitted() -> Any:
    with dask.config.set(scheduler="synchronous"):
        return made().fit(ROWS, TARGETS)


@pytest.mark.parametrize(("name", "given"), KINDS)
def test_the_choice_is_that_of_the_single_machine(name: str, given: dict[str, Any]) -> None:
    """On the same rows to the last bit; those held out are not among them."""
    model = made(name, **given).fit(ROWS, TARGETS)
    held = HELD if name == "QuantileSVRCV" else 0
    rows = ORDER[held : held + CHOSEN]
    single = getattr(tausvm, name)(**given, **GRID, refit=False).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(model.scores_, single.scores_)
    np.testing.assert_array_equal(model.feature_metric_, single.feature_metric_)
    assert model.kernel_ == single.kernel_ and model.learned_ == single.learned_
    points = model.best_params_ if isinstance(model.best_params_, list) else [model.best_params_]
    assert len({point["gamma"] for point in points}) == 1


@pytest.mark.parametrize(("name", "given"), KINDS)
def test_the_fit_is_the_best_function_of_its_landmarks(name: str, given: dict[str, Any]) -> None:
    """The objective is that of a linear machine on the features of all rows, to both tolerances."""
    whole = {"calibrate": None} if name == "QuantileSVRCV" else {}  # no row is held out
    model = made(name, **given, **whole, refit=True).fit(ROWS, TARGETS)
    assert np.max(model.landmark_gap_) <= model.tol
    for machine in np.atleast_1d(model.best_estimator_):
        centres = machine._points(machine.support_vectors_)
        K = machine._kernel.between(centres, centres)
        features = (
            machine._kernel.between(machine._points(X), centres)
            @ np.linalg.inv(np.linalg.cholesky(K)).T
        )
        parameters = {"C": machine.C, "tol": 1e-6, "epsilon": machine.epsilon}
        kind = getattr(tausvm, "Linear" + type(machine).__name__)
        level = {} if name == "SVRCV" else {"tau": machine.tau}
        best = kind(**level, **parameters).fit(features, Y)
        ours, theirs = machine.result_.primal_objective, best.result_.primal_objective
        assert abs(ours - theirs) <= (model.tol + 1e-6) * theirs
        alpha = machine.dual_coef_[0]
        unit = Y.std() if machine.scale_C and name == "QuantileSVRCV" else 1.0
        (loss,) = machine._losses()
        losses = loss.value(Y - machine.predict(X, raw=True))
        by_hand = 0.5 * alpha @ K @ alpha + machine.C * unit * losses.sum()
        np.testing.assert_allclose(ours, by_hand, rtol=1e-7)


def test_rows_held_out_calibrate(fitted: Any) -> None:
    """By the rule of split-conformal intervals, on rows that neither choice nor fit has seen."""
    held = ORDER[:HELD]
    raw = np.stack([m.predict(X[held]) for m in fitted.best_estimator_], axis=1)
    values = np.sort(raw, axis=1)
    wanted = shifts(np.array(LEVELS), Y[held], values, np.ones(HELD), conformal_quantile)
    np.testing.assert_allclose(fitted.calibration_, wanted, atol=1e-12)
    plain = made(calibrate=None).fit(ROWS, TARGETS)
    assert not hasattr(plain, "calibration_")
    split = made(calibrate="split").fit(ROWS, TARGETS)
    np.testing.assert_array_equal(split.calibration_, fitted.calibration_)


def test_rows_held_out_are_not_fitted(fitted: Any) -> None:
    """The same fit as on the other rows alone: what the held ones are does not matter."""
    other = Y.copy()
    other[ORDER[:HELD]] = np.clip(0.5, Y.min(), Y.max())
    model = made().fit(ROWS, da.from_array(other, chunks=300))
    np.testing.assert_allclose(model.predict(X, raw=True), fitted.predict(X, raw=True), atol=1e-6)
    assert (model.calibration_ != fitted.calibration_).any()


def test_predictions_are_lazy_ordered_and_those_of_the_single_one(
    fitted: Any, tmp_path: Any
) -> None:
    lazily = fitted.predict(ROWS)
    assert isinstance(lazily, da.Array) and lazily.shape == (N, 3)
    values = lazily.compute()
    np.testing.assert_allclose(values, fitted.predict(X), atol=1e-12)
    assert (np.diff(values, axis=1) >= 0).all()
    assert np.abs((Y[:, None] <= values).mean(axis=0) - LEVELS).max() < 0.05
    alone = fitted.single()
    assert type(alone) is tausvm.QuantileSVRCV
    del alone._settings  # of these tests
    save(alone, tmp_path / "model.tausvm")
    np.testing.assert_array_equal(load(tmp_path / "model.tausvm").predict(X), fitted.predict(X))
    interval = lazy.predict(fitted, ROWS, method="predict_interval", coverage=0.8).compute()
    np.testing.assert_allclose(interval, values[:, [0, 2]], atol=1e-12)
    assert clone(fitted).get_params() == fitted.get_params()


def test_what_is_told_of_certificates(fitted: Any) -> None:
    assert fitted.landmark_gap_.shape == (3,) and (fitted.landmark_gap_ <= fitted.tol).all()
    np.testing.assert_array_equal(fitted.dual_gap_, np.ones(3))
    assert fitted.n_passes_ >= 2
    assert [len(entries) for entries in fitted.members_] == [1, 1, 1]
    assert max(rows.max() for rows in fitted.fold_rows_) == CHOSEN - 1


def test_pieces_of_partitions_are_partitions() -> None:
    """Features in pieces of some rows have the sums of those of all rows."""
    model = lazy.QuantileSVR(tau=0.7, landmarks=40, gamma=1.0)
    whole = model.fit(ROWS, TARGETS).predict(X)
    small = model.fit(ROWS, TARGETS, plan=lazy.Plan(piece_megabytes=0.002))
    assert small.landmark_gap_ <= small.tol
    np.testing.assert_allclose(small.predict(X), whole, atol=1e-9)


def test_a_line_beside_which_levels_err_less_is_taken() -> None:
    """Learned on the client, taken off the targets of all partitions, and part of predictions."""
    line = 20.0 * X[:, 2]
    model = made(calibrate=None).fit(ROWS, da.from_array(Y + line, chunks=300))
    assert model.linear_trend_[2] == pytest.approx(20.0, rel=0.05)
    assert (model.landmark_gap_ <= model.tol).all()
    member = model.best_estimator_[1].machines[0]
    rest = Y + line - member._trend(X)
    K = member._kernel.between(*[member._points(member.support_vectors_)] * 2)
    (loss,) = member._losses()
    losses = loss.value(Y + line - member.predict(X, raw=True)).sum()
    primal = 0.5 * member.dual_coef_[0] @ K @ member.dual_coef_[0] + member.C * rest.std() * losses
    np.testing.assert_allclose(member.result_.primal_objective, primal, rtol=1e-6)
    lazily = model.predict(ROWS).compute()
    np.testing.assert_allclose(lazily, model.single().predict(X), atol=1e-9)
    plain = made(calibrate=None).fit(ROWS, TARGETS)
    assert np.abs(lazily[:, 1] - line - plain.predict(X)[:, 1]).mean() < 0.2 * Y.std()


def test_frames_weights_sparse_and_single_precision() -> None:
    names = ["a", "b", "c"]
    frame = dd.from_pandas(pd.DataFrame({**dict(zip(names, X.T, strict=True)), "y": Y}), 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # rows of the client have names too
        model = made().fit(frame[names], frame["y"])
    assert list(model.feature_names_in_) == names
    assert list(model.predict(frame[names]).columns) == [f"quantile_{tau:g}" for tau in LEVELS]
    weight = RNG.integers(0, 3, size=N).astype(float)
    weighted = made(calibrate=None).fit(ROWS, TARGETS, sample_weight=weight)
    assert (weighted.landmark_gap_ <= weighted.tol).all()
    assert np.isfinite(made().fit(ROWS.map_blocks(sp.csr_matrix), TARGETS).predict(X)).all()
    single = made(calibrate=None).fit(ROWS.astype(np.float32), TARGETS)
    double = made(calibrate=None).fit(ROWS, TARGETS)
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=0.02)


def test_partitions_of_any_size() -> None:
    """Empty ones, and one that has nearly all rows, so that the sample is short of rows."""
    sizes = (0, 5, 1190, 0, 5)
    rows = da.from_array(X, chunks=(1200, 3)).rechunk((sizes, 3))
    model = made().fit(rows, TARGETS.rechunk((sizes,)))
    assert (model.landmark_gap_ <= model.tol).all()
    short = lazy.Plan(sample_excess=0.05, sample_fewest=20, sample_megabytes=0.001)
    few = made().fit(ROWS, TARGETS, plan=short)
    assert max(part.max() for part in few.fold_rows_) < CHOSEN - 1
    assert (few.landmark_gap_ <= few.tol).all()


def test_no_machine_is_fitted_without_refit() -> None:
    model = made(refit=False).fit(ROWS, TARGETS)
    assert model.n_passes_ == 1
    assert not hasattr(model, "best_estimator_") and not hasattr(model, "landmark_gap_")


def test_a_splitter_and_a_kernel_of_ones_own() -> None:
    def kernel(a: Any, b: Any) -> Any:
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2))

    model = made("SVRCV", cv=KFold(3), kernel=kernel).fit(ROWS, TARGETS)
    assert np.mean((Y - model.predict(X)) ** 2) < 0.5 * Y.var()


def test_time_is_shared_as_on_one_machine() -> None:
    ticks = iter(np.arange(0.0, 1e6, 0.3))
    model = made(time_limit=5.0, calibrate=None)
    model._clock = lambda: float(next(ticks))
    with pytest.warns(ConvergenceWarning, match="reached time_limit=5.0 s before the search"):
        model.fit(ROWS, TARGETS)
    assert np.isfinite(model.predict(X)).all()


def test_words_beforehand(caplog: Any) -> None:
    with caplog.at_level(logging.INFO, logger="tausvm"):
        made(verbose=True).fit(ROWS, TARGETS)
    assert any(
        "1,200 rows in 4 partitions: choose on 250 of them, 1 jobs at a time" in line
        and "functions of 60 landmarks to 1,100 rows in some passes, 100 held out" in line
        for line in caplog.messages
    )
    assert any(line.startswith("pass 2") for line in caplog.messages)


def test_faults_and_parameters() -> None:
    bad = X.copy()
    bad[700, 1] = np.nan
    with pytest.raises(BadPartition, match=r"partition 2: X must be finite, got nan in row 100"):
        made().fit(da.from_array(bad, chunks=(300, 3)), TARGETS)
    for given, told in (
        ({"approximation": None, "landmarks": None}, "approximation must be 'auto' or 'landmarks'"),
        ({"landmark_tol": 0.1}, "landmark_tol must be None on partitions"),
        ({"cv": [([0, 1], [2])]}, "cv must be an integer or a splitter"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"calibrate": "all"}, "calibrate must be"),
        ({"landmarks": 0}, "landmarks must be"),
    ):
        with pytest.raises(ValueError, match=told):
            made(**given).fit(ROWS, TARGETS)
    with pytest.raises(ValueError, match="landmark_tol must be None on partitions"):
        lazy.SVR(landmark_tol=0.1, approximation="landmarks").fit(ROWS, TARGETS)
    with pytest.raises(TypeError, match="X must be a dask array"):
        made().fit(X, Y)
