"""Tables in one call: preparation and tuned machine as one estimator."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GroupKFold, KFold, cross_val_predict

import tausvm.tabular.estimators
from tausvm import (
    ExpectileSVRCV,
    QuantileSVRCV,
    TabularExpectileSVR,
    TabularQuantileSVR,
    inspection,
)
from tausvm.tabular import FramePreparation

from .tables import mixed_table

SMALL = {"Cs": 3, "gammas": 3, "cv": 3}
PAIRS = [(TabularQuantileSVR, QuantileSVRCV), (TabularExpectileSVR, ExpectileSVRCV)]


@pytest.fixture(scope="module")
def model() -> TabularQuantileSVR:
    return TabularQuantileSVR(tau=[0.1, 0.5, 0.9], **SMALL).fit(*mixed_table())


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.tabular.estimators).failed == 0


@pytest.mark.parametrize(("tabular", "machine"), PAIRS)
def test_it_is_the_preparation_and_the_tuned_machine(tabular, machine) -> None:
    frame, y = mixed_table()
    model = tabular(tau=0.7, **SMALL).fit(frame, y)
    preparation = FramePreparation()
    X = preparation.fit_transform(frame)
    by_hand = machine(tau=0.7, feature_groups=preparation.feature_groups_, **SMALL)
    by_hand.fit(X, y)
    np.testing.assert_array_equal(
        model.predict(frame), by_hand.predict(preparation.transform(frame))
    )
    assert model.best_params_ == by_hand.best_params_
    assert model.dual_gap_ == by_hand.dual_gap_ <= model.tol
    assert model.score(frame, y) == by_hand.score(preparation.transform(frame), y)
    np.testing.assert_array_equal(model.pipeline_.predict(frame), model.predict(frame))
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.columns_ == preparation.columns_


@pytest.mark.parametrize(("tabular", "machine"), PAIRS)
def test_it_has_the_parameters_of_the_machine(tabular, machine) -> None:
    own, of_machine = tabular().get_params(), machine().get_params()
    of_machine.pop("feature_groups", None)  # which the preparation knows
    assert {name: own[name] for name in own.keys() & of_machine.keys()} == of_machine
    assert own.keys() - of_machine.keys() == {"kinds", "max_categories"}


def test_every_column_helps() -> None:
    frame, y = mixed_table(200)
    new, truth = mixed_table(200, seed=1)
    taus = [0.25, 0.75]

    def loss(columns) -> float:
        model = TabularQuantileSVR(tau=taus, **SMALL).fit(frame[columns], y)
        predicted = model.predict(new[columns])
        return sum(mean_pinball_loss(truth, predicted[:, k], alpha=t) for k, t in enumerate(taus))

    everything = loss(["size", "quarter", "state", "let"])
    for left_out in ("size", "quarter", "let"):
        rest = [c for c in ("size", "quarter", "state", "let") if c != left_out]
        assert everything < loss(rest)


def test_intervals_where_the_machine_has_them(model) -> None:
    has = hasattr(QuantileSVRCV, "predict_interval")
    assert hasattr(model, "predict_interval") == has
    assert hasattr(model, "predict_interval") == hasattr(TabularQuantileSVR(), "predict_interval")


def test_new_rows_may_have_holes_and_new_categories(model) -> None:
    frame, _ = mixed_table()
    new = frame.iloc[:3].copy()
    new["quarter"] = ["harbour", None, "north"]
    new.loc[0, ["size", "let"]] = [np.nan, pd.NaT]
    predicted = model.predict(new)
    assert predicted.shape == (3, 3) and np.isfinite(predicted).all()


def test_another_order_of_columns_is_refused(model) -> None:
    frame, _ = mixed_table()
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[frame.columns[::-1]])


def test_nothing_is_learned_from_rows_held_out() -> None:
    """Predictions of a row are the same whatever else is predicted, and whatever its target is."""
    frame, y = mixed_table()
    machine = TabularExpectileSVR(**SMALL)
    folds = KFold(3)
    plain = cross_val_predict(machine, frame, y, cv=folds)
    _, test = next(iter(folds.split(frame)))
    changed, wrong = frame.copy(), y.copy()
    changed.loc[changed.index[test], "size"] *= 1000
    wrong.iloc[test] = 1e6
    train = np.setdiff1d(np.arange(len(y)), test)
    fitted = clone(machine).fit(changed.iloc[train], wrong.iloc[train])
    np.testing.assert_array_equal(fitted.predict(frame.iloc[test]), plain[test])


def test_weights_are_repetitions_where_folds_are() -> None:
    frame, y = mixed_table(60)
    weight = np.random.default_rng(2).integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    place = np.arange(60) % 3
    kinds = {"flat": "drop"}
    by_weight = TabularExpectileSVR(
        **{**SMALL, "cv": GroupKFold(3), "feature_metric": None},
        kinds=kinds,
        refit=True,
        tol=1e-8,
        prune=False,
    )
    splits = [(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(3)]
    again = [
        (np.flatnonzero(place[repeated] != k), np.flatnonzero(place[repeated] == k))
        for k in range(3)
    ]
    one = clone(by_weight).set_params(cv=splits).fit(frame, y, weight)
    two = clone(by_weight).set_params(cv=again).fit(frame.iloc[repeated], y.iloc[repeated])
    np.testing.assert_allclose(one.predict(frame), two.predict(frame), rtol=1e-4)


def test_groups_go_through() -> None:
    frame, y = mixed_table()
    groups = np.arange(120) // 10
    model = TabularQuantileSVR(**SMALL).fit(frame, y, groups=groups)
    for rows in model.fold_rows_:
        inside = np.isin(np.arange(120), rows)
        assert all(len(set(inside[groups == g])) == 1 for g in range(12))


def test_arrays_and_sparse_matrices_pass() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    dense = TabularQuantileSVR(**SMALL).fit(X, y)
    assert dense.predict(X).shape == (60,)
    sparse = TabularQuantileSVR(**SMALL).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), sparse.predict(X), rtol=1e-6)


def test_bad_parameters_are_named() -> None:
    frame, y = mixed_table(40)
    with pytest.raises(ValueError, match=r"kernel.*'precomputed'"):
        TabularQuantileSVR(kernel="precomputed").fit(frame, y)
    with pytest.raises(ValueError, match="tau"):
        TabularQuantileSVR(tau=1.5).fit(frame, y)
    with pytest.raises(ValueError, match="requires y"):
        TabularQuantileSVR().fit(frame, None)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        TabularQuantileSVR().fit(frame, y[:-1])


def test_feature_groups_reach_a_machine_that_takes_them() -> None:
    class Grouped(ExpectileSVRCV):
        def __init__(self, *, tau=0.5, Cs=10, gammas=10, cv=5, feature_groups=None):
            super().__init__(tau=tau, Cs=Cs, gammas=gammas, cv=cv)
            self.feature_groups = feature_groups

        def _machine(self, **parameters):
            return self._machine_class(**{"tau": self.tau, **parameters})

    class Tabular(TabularExpectileSVR):
        _machine_class = Grouped

    frame, y = mixed_table(60)
    model = Tabular(Cs=2, gammas=2, cv=2).fit(frame, y)
    np.testing.assert_array_equal(model.machine_.feature_groups, model.preparation_.feature_groups_)


def test_inspection_sees_through(model) -> None:
    frame, _ = mixed_table()
    assert inspection.functional(model) == inspection.QUANTILE
    assert inspection.levels(model) == [0.1, 0.5, 0.9]
    assert len(inspection.machines(model)) == 3
    np.testing.assert_array_equal(
        inspection.prepared(model, frame), model.preparation_.transform(frame)
    )


def test_a_round_trip_through_a_file(model, tmp_path: Path) -> None:
    persistence = pytest.importorskip("tausvm.persistence")
    pytest.importorskip("skops")
    frame, y = mixed_table()
    file = tmp_path / "model.skops"
    persistence.save(model, file)
    same = persistence.load(file)
    np.testing.assert_array_equal(same.predict(frame), model.predict(frame))
    assert same.columns_ == model.columns_
    many = TabularQuantileSVR(**SMALL, max_categories=2, kinds={"flat": "drop"}).fit(frame, y)
    persistence.save(many, file)
    np.testing.assert_array_equal(persistence.load(file).predict(frame), many.predict(frame))


def test_a_file_whose_parts_do_not_fit_is_refused(model, tmp_path: Path) -> None:
    persistence = pytest.importorskip("tausvm.persistence")
    pytest.importorskip("skops")
    frame, y = mixed_table()
    broken = TabularQuantileSVR(**SMALL).fit(frame, y)
    broken.preparation_ = FramePreparation().fit(frame[["size"]])
    persistence.save(broken, tmp_path / "model.skops")
    with pytest.raises(persistence.ModelFileError, match="does not fit its machine"):
        persistence.load(tmp_path / "model.skops")
    broken.preparation_ = FramePreparation().fit(frame)
    broken.preparation_._codes = broken.preparation_._codes[:-1]
    persistence.save(broken, tmp_path / "model.skops")
    with pytest.raises(persistence.ModelFileError, match="codes do not fit"):
        persistence.load(tmp_path / "model.skops")


def test_export_of_numbers_and_categories() -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from tausvm.export import to_onnx

    frame, y = mixed_table()
    frame = frame.assign(town=[f"t{k % 60}" for k in range(120)])
    model = TabularQuantileSVR(tau=[0.1, 0.9], **SMALL, kinds={"let": "drop"})
    model.fit(frame, y)
    exported = to_onnx(model)
    given = {}
    for column in model.columns_:
        name = column["name"]
        if column["kind"] == "number":
            numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(np.float64)
            given[name] = numbers[:, None]
        elif column["features"]:
            text = frame[name].astype(object).where(frame[name].notna(), "")
            given[name] = text.to_numpy(object, copy=True)[:, None]
    given["quarter"][0, 0] = "harbour"
    frame.loc[0, "quarter"] = "harbour"
    session = runtime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(["prediction"], given)
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)
    dated = TabularQuantileSVR(**SMALL).fit(frame, y)
    with pytest.raises(ValueError, match="column 'let' is a date"):
        to_onnx(dated)


def test_columns_count_by_the_sums_of_their_features(model: TabularQuantileSVR) -> None:
    shares, groups = model.machine_.feature_importances_, model.preparation_.feature_groups_
    of_columns = [shares[groups == k].sum() for k in range(model.n_features_in_)]
    np.testing.assert_allclose(model.feature_importances_, of_columns)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.kernel_ == model.machine_.kernel_
