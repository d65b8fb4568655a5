"""``approximation="landmarks"``: kernel machines of a few centres, the loss over all rows."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC
from tausvm.persistence import load, save
from tausvm.solvers import Status

from .data import ESTIMATORS, REGRESSORS, output, targets, wave

X, Y = wave(600, 3)
FEW = {"approximation": "landmarks", "landmarks": 60}


@parametrize_with_checks([estimator(approximation="landmarks") for estimator in ESTIMATORS])
def test_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fitted_attributes(estimator):
    y = targets(estimator, Y)
    model = estimator(**FEW).fit(X, y)
    assert model.dual_coef_.shape == (1, 60) and model.n_support_ == [60]
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    result = model.result_
    assert result.status is Status.SOLVED and result.exact
    assert result.beta.shape == (600,) and result.fitted.shape == (600,)
    assert result.landmark_gap <= model.tol < model.dual_gap_ == result.dual_gap
    values = model.decision_function(X) if estimator is TauSVC else model.predict(X)
    np.testing.assert_allclose(values, result.fitted + result.intercept, atol=1e-9)
    np.testing.assert_allclose(model.certify(X, y), model.dual_gap_, rtol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_gap_wanted_is_met_and_bounds_the_full_fit(estimator):
    y = targets(estimator, Y)
    model = estimator(approximation="landmarks", landmark_tol=0.002).fit(X, y)
    assert model.dual_gap_ <= 0.002 and len(model.support_) < 600
    full = estimator(tol=1e-8).fit(X, y)
    primal, best = model.result_.primal_objective, full.result_.primal_objective
    assert 0 <= (primal - best) / primal <= model.dual_gap_
    assert model.result_.dual_objective <= best


def test_a_wish_that_is_not_met_is_told():
    with pytest.warns(ConvergenceWarning, match=r"gap to the full problem .* 20 landmarks, above"):
        SVR(approximation="landmarks", landmarks=20, landmark_tol=1e-6).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVR(approximation="landmarks", landmarks=20).fit(X, Y)


def test_levels_share_their_landmarks():
    taus = [0.9, 0.1, 0.5]
    model = QuantileSVR(tau=taus, **FEW).fit(X, Y)
    assert model.dual_coef_.shape == (3, 60) and len(model.result_) == 3
    assert model.dual_gap_.shape == model.certify(X, Y).shape == (3,)
    np.testing.assert_allclose(model.certify(X, Y), model.dual_gap_, rtol=1e-6)
    raw = model.predict(X, raw=True)
    for k, tau in enumerate(taus):
        alone = QuantileSVR(tau=tau, **FEW).fit(X, Y)
        np.testing.assert_array_equal(alone.support_, model.support_)
        ours, theirs = model.result_[k].primal_objective, alone.result_.primal_objective
        np.testing.assert_allclose(ours, theirs, rtol=2e-4)
        assert abs((raw[:, k] >= Y).mean() - tau) < 0.03


def test_classes_share_their_landmarks():
    labels = np.digitize(Y, [-0.5, 0.5])
    model = TauSVC(**FEW).fit(X, labels)
    assert model.dual_coef_.shape == (3, 60)
    assert (model.predict(X) == labels).mean() > 0.6


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_as_many_landmarks_as_rows_are_the_full_machine(estimator, fit_intercept):
    y = targets(estimator, Y[:200])
    common = {"tol": 1e-7, "fit_intercept": fit_intercept}
    full = estimator(**common).fit(X[:200], y)
    model = estimator(approximation="landmarks", landmarks=1000, **common).fit(X[:200], y)
    assert model.dual_gap_ <= 2e-7
    np.testing.assert_allclose(output(model, X), output(full, X), atol=2e-2)
    ours, theirs = model.result_.primal_objective, full.result_.primal_objective
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_are_repetitions(estimator):
    y = targets(estimator, Y[:150])
    weight = np.random.default_rng(0).integers(0, 4, size=150)
    weight[:4] = 1
    repeated = np.repeat(np.arange(150), weight)
    settings = {"approximation": "landmarks", "landmarks": 1000, "tol": 1e-7, "gamma": 0.5}
    one = estimator(**settings).fit(X[:150], y, sample_weight=weight)
    other = estimator(**settings).fit(X[repeated], y[repeated])
    ours, theirs = one.result_.primal_objective, other.result_.primal_objective
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(output(one, X), output(other, X), atol=2e-2)
    gap = one.certify(X[:150], y, sample_weight=weight)
    np.testing.assert_allclose(gap, one.dual_gap_, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential", "linear", "poly"])
def test_sparse_rows_are_as_good_as_dense_ones(estimator, kernel):
    thin = np.where(np.abs(X) < 0.7, 0.0, X)
    y = targets(estimator, Y)
    dense = estimator(kernel=kernel, **FEW).fit(thin, y)
    sparse = estimator(kernel=kernel, **FEW).fit(sp.csr_matrix(thin), y)
    assert sp.issparse(sparse.support_vectors_)
    ours, theirs = sparse.result_.primal_objective, dense.result_.primal_objective
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def test_a_callable_kernel():
    model = SVR(kernel=lambda a, b: np.exp(-np.abs(a[:, :1] - b[:, 0])), **FEW).fit(X, Y)
    assert model.result_.status is Status.SOLVED


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_units_and_mean_of_y_make_no_difference(estimator):
    """Features in float32 would lose all of y if the fit were not in units of its own."""
    base = estimator(epsilon=0.0, C=1.0, **FEW)
    here = base.fit(X, Y)
    predicted, gap = here.predict(X), here.dual_gap_
    # a squared loss and scaled C have no unit; SVR's C has that of y
    power = 2.0**20
    C = power if estimator is SVR else 1.0
    there = estimator(epsilon=0.0, C=C, **FEW).fit(X, power * Y + 1e7)
    np.testing.assert_allclose((there.predict(X) - 1e7) / power, predicted, atol=1e-6)
    np.testing.assert_allclose(there.dual_gap_, gap, rtol=1e-6)


def test_raw_columns_far_from_the_origin():
    raw = X * [1.0, 1e3, 1e-3] + [1e6, -1e7, 5.0]
    model = QuantileSVR(tau=0.3, gamma=1e-7, **FEW).fit(raw, Y)
    np.testing.assert_allclose(model.certify(raw, Y), model.dual_gap_, rtol=1e-6)
    values = model.predict(raw)
    np.testing.assert_allclose(values, model.result_.fitted + model.intercept_, atol=1e-9)


def test_float32_features_do_as_well():
    rng = np.random.default_rng(0)
    many = rng.uniform(-2, 2, size=(20_000, 2))
    y = np.sin(2 * many[:, 0]) + rng.normal(size=20_000) + 1e7
    model = QuantileSVR(tau=[0.1, 0.5], approximation="landmarks", landmarks=500).fit(many, y)
    assert all(result.status is Status.SOLVED for result in model.result_)
    for k, result in enumerate(model.result_):
        values = model.predict(many[:500], raw=True)[:, k]
        np.testing.assert_allclose(values, (result.fitted + result.intercept)[:500], atol=1e-8)


def test_features_that_do_not_fit_are_kept_in_a_file():
    held = ExpectileSVR(tau=0.8, tol=1e-8, **FEW).fit(X, Y)
    # half of it is for the choice of landmarks, from all rows
    mapped = ExpectileSVR(tau=0.8, tol=1e-8, cache_size=0.55, **FEW)
    mapped.fit(X, Y)
    assert mapped.result_.status is Status.SOLVED
    np.testing.assert_allclose(mapped.dual_gap_, held.dual_gap_, rtol=0.5)


def test_random_state_decides_on_the_landmarks():
    one = SVR(random_state=3, **FEW).fit(X, Y)
    same = SVR(random_state=3, **FEW).fit(X, Y)
    other = SVR(random_state=4, **FEW).fit(X, Y)
    np.testing.assert_array_equal(one.dual_coef_, same.dual_coef_)
    assert not np.array_equal(one.support_, other.support_)


def test_auto_solves_the_full_problem_of_few_rows():
    auto, full = SVR(approximation="auto").fit(X, Y), SVR().fit(X, Y)
    np.testing.assert_array_equal(auto.dual_coef_, full.dual_coef_)


def test_a_warm_start_takes_fewer_steps():
    model = QuantileSVR(tau=[0.2, 0.8], warm_start=True, tol=1e-6, **FEW).fit(X, Y)
    cold = model.n_iter_.sum()
    assert model.fit(X, Y).n_iter_.sum() < cold
    assert (model.certify(X, Y) <= model.dual_gap_ * (1 + 1e-6)).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_models_are_kept(estimator, tmp_path):
    model = estimator(**FEW).fit(X, targets(estimator, Y))
    save(model, tmp_path / "model.skops")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(output(again, X), output(model, X))
        assert again.result_.landmark_gap == model.result_.landmark_gap


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "cells"}, "approximation must be one of 'auto', 'landmarks' or None"),
        ({"approximation": "landmarks", "landmarks": 0}, "landmarks must be an integer >= 1"),
        ({"approximation": "auto", "landmark_tol": 0.0}, "landmark_tol must be a finite number"),
        ({"landmarks": 50}, "landmarks must be None where approximation=None, got 50"),
        ({"approximation": "landmarks", "solver": "smo"}, "solver must be 'auto' with"),
        ({"approximation": "landmarks", "kernel": "precomputed"}, "must have rows to compute"),
    ],
)
def test_parameters_that_cannot_be_used(parameters, message):
    with pytest.raises(ValueError, match=message):
        SVR(**parameters).fit(X, Y)


def test_certify_wants_the_rows_of_the_fit():
    model = SVR(**FEW).fit(X, Y)
    with pytest.raises(ValueError, match="X must hold the 600 rows"):
        model.certify(X[:-1], Y[:-1])


def test_a_time_limit_leaves_a_model_with_its_gap():
    model = QuantileSVR(tau=[0.2, 0.8], time_limit=1e-6, **FEW)
    with pytest.warns(ConvergenceWarning, match="it reached time_limit=1e-06 s"):
        model.fit(X, Y)
    assert np.isfinite(model.predict(X)).all() and (model.dual_gap_ > 0.1).all()


def test_certify_serves_machines_without_landmarks():
    model = QuantileSVR(tau=[0.2, 0.8]).fit(X, Y)
    np.testing.assert_allclose(model.certify(X, Y), model.dual_gap_, atol=1e-7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_kernel_that_is_zero_leaves_the_constant(estimator):
    y = targets(estimator, Y)
    model = estimator(kernel="linear", **FEW).fit(np.zeros((600, 3)), y)
    full = estimator(kernel="linear").fit(np.zeros((600, 3)), y)
    np.testing.assert_allclose(output(model, X), output(full, X), atol=1e-3)
    assert model.dual_gap_ <= model.tol


def test_a_gap_that_rounding_hides_is_not_told_as_none():
    """Kernel values of 1e24 cancel in βᵀKβ: what is left of the sum says nothing."""
    model = SVR(kernel="poly", degree=3, gamma=1.0, **FEW).fit(1e4 * X, Y)
    assert model.dual_gap_ >= model.result_.landmark_gap * (1 - 1e-9)
    assert model.certify(1e4 * X, Y) > 0.5


def test_a_loose_bound_is_told_with_its_estimate():
    """More rows than the gap is computed for: the settings of a fit, with a smaller number."""

    class Few(QuantileSVR):
        @property
        def _landmark_settings(self):
            return replace(super()._landmark_settings, exact_rows=100, first=30)

    model = Few(tau=0.5, approximation="landmarks", landmark_tol=0.01)
    with pytest.warns(ConvergenceWarning, match=r"loose bound; by a sample .* landmarks enough by"):
        model.fit(X, Y)
    result = model.result_
    assert not result.exact and result.gap_estimate <= 0.01 < result.dual_gap == model.dual_gap_
    assert model.certify(X, Y) <= 0.01
