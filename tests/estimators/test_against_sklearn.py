"""Where scikit-learn solves the same problem, the same predictions."""

import numpy as np
import pytest
from sklearn import svm
from sklearn.kernel_ridge import KernelRidge

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

from .data import wave

X, Y = wave(150, 3)
NEW = wave(60, 3, seed=1)[0]


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_svr(kernel, C):
    parameters = dict(kernel=kernel, C=C, epsilon=0.05, coef0=1.0, degree=2, tol=1e-9)
    ours = SVR(**parameters).fit(X, Y)
    theirs = svm.SVR(**parameters).fit(X, Y)
    # ‖f − f*‖ is as small as the root of the gap
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def test_svr_with_weights():
    weight = np.random.default_rng(0).uniform(0.1, 3, size=150)
    parameters = dict(C=2.0, gamma=0.3, tol=1e-9)
    ours = SVR(**parameters).fit(X, Y, weight)
    theirs = svm.SVR(**parameters).fit(X, Y, weight)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("tau", [0.5, 0.4])
def test_svc(kernel, tau):
    X, Y = wave(60, 3)
    y = Y > 0
    ours = TauSVC(kernel=kernel, C=3.0, tau=tau, tol=1e-9).fit(X, y)
    cost = {True: 2 * (1 - tau), False: 2 * tau}
    # at a smaller tolerance LIBSVM can take minutes on the linear kernel
    theirs = svm.SVC(kernel=kernel, C=3.0, class_weight=cost, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(NEW), theirs.decision_function(NEW), atol=1e-4
    )


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_kernel_ridge(C):
    ours = ExpectileSVR(C=C, gamma=0.5, fit_intercept=False, tol=1e-8).fit(X, Y)
    theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=1 / C).fit(X, Y)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=1e-7)
    squared = SVR(
        loss="squared_epsilon_insensitive", epsilon=0.0, C=C / 2, gamma=0.5, fit_intercept=False
    ).fit(X, Y)
    np.testing.assert_allclose(squared.predict(NEW), theirs.predict(NEW), atol=1e-6)


def test_median_is_svr_without_tube():
    median = QuantileSVR(tau=0.5, C=4.0, tol=1e-9).fit(X, Y)
    absolute = SVR(epsilon=0.0, C=2.0, scale_C=True, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(median.predict(NEW), absolute.predict(NEW), atol=1e-6)


def test_parameters_of_sklearn_are_taken():
    names = set(svm.SVR().get_params())
    assert names <= set(SVR().get_params())
    for name in names - {"cache_size", "tol"}:  # tol is the relative gap here
        assert getattr(SVR(), name) == getattr(svm.SVR(), name)
