"""Machines beside a line: where most of a target is linear, f learns the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm import SVRCV, ExpectileSVRCV, QuantileSVR, QuantileSVRCV
from tausvm.estimators.data import TrainingSet
from tausvm.estimators.trend import Trend
from tausvm.persistence import ModelFileError, load, save
from tausvm.selection.settings import LargeSettings

RNG = np.random.default_rng(0)
N = 900
X = RNG.normal(size=(N, 4)) * [1.0, 5.0, 1.0, 1.0]
LINE = 10.0 * X[:, 1]
Y = LINE + np.sin(3 * X[:, 0]) + 0.2 * RNG.normal(size=N)
NEW = RNG.normal(size=(400, 4)) * [1.0, 5.0, 1.0, 1.0]
TRUTH = 10.0 * NEW[:, 1] + np.sin(3 * NEW[:, 0])
LEVELS = [0.1, 0.5, 0.9]


def made(kind=QuantileSVRCV, trend_rows=400, **parameters):
    """A selection that chooses on few rows, and learns a line from others."""
    levels = {} if kind is SVRCV else {"tau": LEVELS}
    grid = {"Cs": 4, "gammas": 4, "cv": 3, "approximation": "landmarks", "landmarks": 80}
    model = kind(**{**levels, **grid, **parameters})
    large = LargeSettings(200, held_out_rows=100, trend_rows=trend_rows)
    model._settings = replace(model._settings, large=large)
    return model


@pytest.fixture(scope="module")
def fitted():
    return made().fit(X, Y)


def training(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return TrainingSet(X, y, weight, np.arange(len(y)), len(y))


def test_a_line_is_found_and_helps(fitted):
    assert fitted.linear_trend_[1] == pytest.approx(10.0, rel=0.05)
    without = made(trend_rows=0).fit(X, Y)
    assert without.linear_trend_ is None
    errors = [np.abs(m.predict(NEW)[:, 1] - TRUTH).mean() for m in (fitted, without)]
    assert errors[0] < 0.7 * errors[1]


def test_the_rest_is_what_features_are_learned_from(fitted):
    assert fitted.feature_importances_.argmax() == 0


@pytest.mark.parametrize("kind", [SVRCV, ExpectileSVRCV])
def test_other_machines(kind):
    model = made(kind).fit(X, Y)
    assert model.linear_trend_ is not None
    values = model.predict(NEW)
    middle = values if kind is SVRCV else values[:, 1]
    assert np.abs(middle - TRUTH).mean() < 0.5


def test_no_line_where_the_target_owes_nothing_to_one():
    """Scores decide: beside a line that explains little, nothing is better."""
    curved = X[:, 0] ** 2 + 0.05 * RNG.normal(size=N)
    model = made().fit(X, curved)
    plain = made(trend_rows=0).fit(X, curved)
    losses = [np.abs(m.predict(NEW)[:, 1] - NEW[:, 0] ** 2).mean() for m in (model, plain)]
    assert losses[0] < 1.3 * losses[1]


def test_the_certificate_is_of_what_is_fitted_beside_it(fitted):
    """½‖f‖² + C Σ ℓ(y − t(x) − f(x) − b), by the data, and certify says the same of all rows."""
    order = np.random.default_rng(0).permutation(N)
    rows = np.sort(order[100:])  # the first hundred are held out
    member = fitted.best_estimator_[1].machines[0]
    centres = member._points(member.support_vectors_)
    K = member._kernel.between(centres, centres)
    alpha, rest = member.dual_coef_[0], Y[rows] - member._trend(X[rows])
    residual = Y[rows] - member.predict(X[rows], raw=True)
    (loss,) = member._losses()
    primal = 0.5 * alpha @ K @ alpha + member.C * rest.std() * loss.value(residual).sum()
    np.testing.assert_allclose(member.result_.primal_objective, primal, rtol=1e-7)
    fitted_to = np.isin(np.arange(N), rows).astype(float)
    np.testing.assert_allclose(member.certify(X, Y, fitted_to), member.dual_gap_, rtol=1e-6)


def test_predictions_are_the_sum(fitted):
    member = fitted.best_estimator_[0].machines[0]
    alone = QuantileSVR(tau=0.1)
    vars(alone).update({k: v for k, v in vars(member).items() if k != "_trend"})
    np.testing.assert_allclose(
        member.predict(NEW), alone.predict(NEW) + member._trend(NEW), atol=1e-10
    )
    far = NEW.copy()
    far[:, 1] = 1e9  # where a line leads anywhere
    assert np.abs(fitted.predict(far)).max() < 10 * np.abs(Y).max()


def test_models_with_a_line_are_saved_exported_and_made_sparse(fitted, tmp_path):
    model = made().fit(X, Y)
    del model._settings  # of these tests
    save(model, tmp_path / "model.tausvm")
    np.testing.assert_array_equal(load(tmp_path / "model.tausvm").predict(NEW), model.predict(NEW))
    member = model.best_estimator_[1].machines[0]
    short = member.sparsify(0.05)
    assert np.abs(short.predict(NEW) - member.predict(NEW)).max() <= 0.05 * Y.std()
    member._trend = replace(member._trend, weights=np.ones(3))
    save(model, tmp_path / "bad.tausvm")
    with pytest.raises(ModelFileError, match="the trend does not fit the features"):
        load(tmp_path / "bad.tausvm")


def test_the_graph_has_the_line():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from tausvm.export import to_onnx

    model = made().fit(X, Y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    rows = np.vstack([NEW, NEW[:3] * 1e4])
    (found,) = session.run(None, {session.get_inputs()[0].name: rows})[:1]
    np.testing.assert_allclose(found, model.predict(rows), atol=1e-6)


@pytest.mark.parametrize(
    "parameters", [{"kernel": "poly"}, {"clip": "range"}, {"scoring": "r2"}], ids=str
)
def test_no_line_where_it_could_not_be_judged(parameters):
    assert made(**parameters).fit(X, Y).linear_trend_ is None


def test_sparse_rows_have_no_line():
    assert made(kernel="rbf").fit(sp.csr_array(X), Y).linear_trend_ is None


def test_a_line_by_itself():
    found = Trend.learned(training(X, Y))
    values = X @ found.weights
    assert (found.low, found.high) == (values.min(), values.max())
    outliers = Y.copy()
    outliers[:30] = 1e6
    robust = Trend.learned(training(X, outliers))
    assert robust.weights[1] == pytest.approx(10.0, rel=0.02)
    scaled = Trend.learned(training(X * [1.0, 1e-6, 1.0, 1e6], Y))
    np.testing.assert_allclose(scaled(X * [1.0, 1e-6, 1.0, 1e6]), found(X), atol=0.05 * Y.std())
    weight = RNG.integers(1, 3, size=N)
    copies = np.repeat(np.arange(N), weight)
    weighted, copied = (
        Trend.learned(training(X, Y, weight.astype(float))),
        Trend.learned(training(X[copies], Y[copies])),
    )
    np.testing.assert_allclose(weighted(NEW), copied(NEW), atol=0.05 * Y.std())


def test_nothing_is_learned_from_constants():
    assert Trend.learned(training(np.ones((50, 2)), RNG.normal(size=50))) is None
    assert Trend.learned(training(X[:50], np.zeros(50))) is None
