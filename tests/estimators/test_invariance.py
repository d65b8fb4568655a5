"""Changes of the data whose effect on the model is known."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tausvm import SVR, ExpectileSVR, QuantileSVR

from .data import ESTIMATORS, output, targets, wave, weighted_problems

X, Y = wave(70)
NEW = wave(40, seed=1)[0]


@pytest.mark.parametrize("factor", [1e-4, 1e5])
@pytest.mark.parametrize(
    ("estimator", "power"),
    [
        (SVR(epsilon=0.1), 1),
        (SVR(epsilon=0.1, loss="squared_epsilon_insensitive"), 0),
        (QuantileSVR(tau=0.3), 0),
        (QuantileSVR(tau=0.3, scale_C=False), 1),
        (ExpectileSVR(tau=0.3), 0),
    ],
)
def test_scale_of_y(estimator, power, factor):
    """s·y with ε·s, and C·s where the loss is linear and C is taken as it is, gives s·f."""
    estimator.set_params(C=3.0, tol=1e-9)
    expected = estimator.fit(X, Y).predict(NEW)
    epsilon = estimator.epsilon
    estimator.set_params(C=3.0 * factor**power, epsilon=factor * epsilon)
    scaled = estimator.fit(X, factor * Y).predict(NEW)
    estimator.set_params(epsilon=epsilon)
    np.testing.assert_allclose(scaled, factor * expected, atol=1e-6 * factor)


@pytest.mark.parametrize("estimator", [SVR, QuantileSVR, ExpectileSVR])
def test_shift_of_y(estimator):
    expected = estimator(tol=1e-9).fit(X, Y).predict(NEW)
    moved = estimator(tol=1e-9).fit(X, Y + 100).predict(NEW)
    np.testing.assert_allclose(moved, expected + 100, atol=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["auto", "block", "smo"])
def test_order_of_rows(estimator, solver):
    order = np.random.default_rng(0).permutation(70)
    y = targets(estimator, Y)
    model = estimator(solver=solver, tol=1e-9).fit(X, y)
    permuted = estimator(solver=solver, tol=1e-9).fit(X[order], y[order])
    np.testing.assert_allclose(output(permuted, NEW), output(model, NEW), atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["auto", "block", "smo", "interior_point"])
def test_equal_bits(estimator, solver):
    y = targets(estimator, Y)
    first, second = (estimator(solver=solver, random_state=s).fit(X, y) for s in (0, 1))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    np.testing.assert_array_equal(first.intercept_, second.intercept_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_of_weight_zero_are_not_there(estimator, kernel):
    weight = np.arange(70) % 3
    kept = np.flatnonzero(weight)
    y = targets(estimator, Y)
    if kernel == "precomputed":
        K, K_new = X @ X.T, NEW @ X.T
        model = estimator(kernel=kernel).fit(K, y, weight)
        removed = estimator(kernel=kernel).fit(K[np.ix_(kept, kept)], y[kept], weight[kept])
        np.testing.assert_array_equal(output(model, K_new), output(removed, K_new[:, kept]))
    else:
        model = estimator().fit(X, y, weight)
        removed = estimator().fit(X[kept], y[kept], weight[kept])
        np.testing.assert_array_equal(output(model, NEW), output(removed, NEW))
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.support_, kept[removed.support_])


@settings(max_examples=20, deadline=None)
@given(
    problem=weighted_problems(),
    estimator=st.sampled_from(ESTIMATORS),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    fit_intercept=st.booleans(),
    sparse=st.booleans(),
)
def test_a_weight_is_a_repetition(problem, estimator, C, fit_intercept, sparse):
    X, y, weight = problem
    y = y > 0 if estimator is ESTIMATORS[-1] else y
    form = sp.csr_matrix if sparse else np.asarray
    model = estimator(C=C, fit_intercept=fit_intercept, tol=1e-10)
    repeated = estimator(C=C, fit_intercept=fit_intercept, tol=1e-10)
    model.fit(form(X), y, weight)
    repeated.fit(form(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    np.testing.assert_allclose(output(model, NEW), output(repeated, NEW), atol=2e-7, rtol=1e-6)
