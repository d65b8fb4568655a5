"""``sparsify``: fewer centres for the same functions, within a bound."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC
from tausvm.persistence import load, save

from .data import ESTIMATORS, output, targets, wave

X, Y = wave(500, 2)
NEW = np.random.default_rng(5).uniform(-3, 3, size=(2000, 2))


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("tol", [0.1, 0.001])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_difference_is_within_its_bound(estimator, tol, everywhere):
    model = estimator().fit(X, targets(estimator, Y))
    short = model.sparsify(tol, everywhere=everywhere)
    told = short.sparsification_
    assert told.centres_before == len(model.support_)
    assert told.centres_after == len(short.support_) < len(model.support_)
    unit = 1.0 if estimator is TauSVC else Y.std()
    assert (told.bound if everywhere else told.at_centres).max() <= tol * unit
    assert np.abs(output(short, NEW) - output(model, NEW)).max() <= told.bound.max() + 1e-9
    there = np.abs(output(short, X[model.support_]) - output(model, X[model.support_]))
    np.testing.assert_allclose(there.max(), told.at_centres.max(), atol=1e-8)
    np.testing.assert_array_equal(short.support_vectors_, X[short.support_])
    assert np.isnan(short.dual_gap_) and model.dual_gap_ <= model.tol


def test_levels_share_the_centres_that_are_left():
    model = QuantileSVR(tau=[0.9, 0.1, 0.5]).fit(X, Y)
    short = model.sparsify(0.02)
    assert short.dual_coef_.shape == (3, len(short.support_))
    change = np.abs(short.predict(NEW, raw=True) - model.predict(NEW, raw=True))
    assert (change.max(axis=0) <= short.sparsification_.bound + 1e-9).all()
    assert short.sparsification_.bound.max() <= 0.02 * Y.std()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_with_the_rows_of_the_fit_the_copy_has_a_certificate(estimator):
    y = targets(estimator, Y)
    model = estimator().fit(X, y)
    short = model.sparsify(0.05, X, y)
    told = short.sparsification_
    assert model.dual_gap_ <= short.dual_gap_ * (1 + 1e-6) + 1e-7 < 0.1
    np.testing.assert_allclose(short.certify(X, y), short.dual_gap_, rtol=1e-6, atol=1e-9)
    assert np.abs(told.loss_after - told.loss_before).max() < 0.1
    residual = {
        SVR: lambda r: np.maximum(np.abs(r) - 0.1, 0.0),
        QuantileSVR: lambda r: 0.5 * np.abs(r),
        ExpectileSVR: lambda r: 0.5 * r**2,
    }
    if estimator in residual:
        expected = residual[estimator](Y - short.predict(X)).mean()
        np.testing.assert_allclose(told.loss_after, expected, rtol=1e-9)


def test_landmarks_can_be_thinned_too():
    model = ExpectileSVR(tau=0.8, approximation="landmarks", landmarks=150).fit(X, Y)
    short = model.sparsify(0.01, X, Y)
    assert len(short.support_) < len(model.support_) <= 150
    np.testing.assert_array_equal(short.result_.landmarks, short.support_)
    assert short.dual_gap_ < 0.1


def test_weights_count_in_the_loss():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=500)
    model = QuantileSVR(tau=0.3).fit(X, Y, sample_weight=weight)
    short = model.sparsify(0.05, X, Y, sample_weight=weight)
    r = Y - short.predict(X)
    expected = np.average(np.where(r > 0, 0.3 * r, -0.7 * r), weights=weight)
    np.testing.assert_allclose(short.sparsification_.loss_after, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "exponential"])
@pytest.mark.parametrize("sparse", [False, True])
def test_kernels(kernel, sparse):
    rows = sp.csr_matrix(X) if sparse else X
    model = SVR(kernel=kernel, C=0.1).fit(rows, Y)
    short = model.sparsify(0.2, rows, Y, everywhere=False)
    assert len(short.support_) < len(model.support_)
    assert np.abs(short.predict(rows) - model.predict(rows))[model.support_].max() <= 0.2 * Y.std()
    if kernel == "linear":
        assert len(short.support_) <= 2


def test_a_function_that_has_no_shorter_form_stays():
    model = SVR(gamma=1e6, epsilon=0.0).fit(X[:50], Y[:50])
    short = model.sparsify(1e-9)
    np.testing.assert_array_equal(short.dual_coef_, model.dual_coef_)
    assert short.sparsification_.bound.tolist() == [0.0]


def test_copies_are_kept(tmp_path):
    short = QuantileSVR(tau=[0.2, 0.8]).fit(X, Y).sparsify(0.05)
    save(short, tmp_path / "model.skops")
    for again in (pickle.loads(pickle.dumps(short)), load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(again.predict(NEW), short.predict(NEW))
        np.testing.assert_array_equal(again.sparsification_.bound, short.sparsification_.bound)


def test_a_fit_forgets_that_there_was_a_copy():
    short = SVR().fit(X, Y).sparsify(0.05)
    assert not hasattr(short.fit(X, Y), "sparsification_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0,), "tol must be a finite number > 0, got 0.0"),
        ((0.1, X), "X and y must be given both or neither"),
        ((0.1, X[1:], Y[1:]), "X must hold the 500 rows"),
    ],
)
def test_arguments_that_cannot_be_used(arguments, message):
    with pytest.raises(ValueError, match=message):
        SVR().fit(X, Y).sparsify(*arguments)


def test_a_given_matrix_has_no_centres():
    K = np.exp(-np.square(X[:, :1] - X[:, 0]))
    with pytest.raises(ValueError, match="sparsify must have the rows"):
        SVR(kernel="precomputed").fit(K, Y).sparsify()
