"""The parameters of other libraries in ours: the same model, where the library is installed."""

from __future__ import annotations

import numpy as np
import pytest

from tausvm import SVR, ExpectileSVR, LinearSVR, QuantileSVR, TauSVC

C, EPSILON, GAMMA = 3.0, 0.05, 0.8


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 2))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=80)


def test_libsvm_regression(data) -> None:
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    X, y = data
    given = f"-s 3 -t 2 -c {C} -p {EPSILON} -g {GAMMA} -e 1e-8 -q"
    theirs, _, _ = svmutil.svm_predict(y, X, svmutil.svm_train(y, X, given), "-q")
    ours = SVR(C=C, epsilon=EPSILON, gamma=GAMMA, tol=1e-8).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_libsvm_default_gamma_is_auto(data) -> None:
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    X, y = data
    model = svmutil.svm_train(y, X, f"-s 3 -c {C} -p {EPSILON} -e 1e-8 -q")
    theirs, _, _ = svmutil.svm_predict(y, X, model, "-q")
    ours = SVR(C=C, epsilon=EPSILON, gamma="auto", tol=1e-8).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


def test_libsvm_class_weights(data) -> None:
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    X, y = data
    label = np.where(y > 0, 1, -1)
    a, b, c = 1.5, 0.5, 2.0
    given = f"-s 0 -t 2 -c {c} -w1 {a} -w-1 {b} -g {GAMMA} -e 1e-8 -q"
    model = svmutil.svm_train(label, X, given)
    _, _, values = svmutil.svm_predict(label, X, model, "-q")
    sign = model.get_labels()[0]  # its decision values are those of the label it saw first
    ours = TauSVC(tau=b / (a + b), C=c * (a + b) / 2, gamma=GAMMA, tol=1e-8).fit(X, label)
    np.testing.assert_allclose(ours.decision_function(X), sign * np.ravel(values), atol=2e-3)


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        (11, "squared_epsilon_insensitive"),
        (12, "squared_epsilon_insensitive"),
        (13, "epsilon_insensitive"),
    ],
)
@pytest.mark.parametrize("bias", [None, 1.0])
def test_liblinear(data, solver: int, loss: str, bias: float | None) -> None:
    train = pytest.importorskip(
        "liblinear.liblinearutil", reason="liblinear-official is not installed"
    )
    X, y = data
    given = f"-s {solver} -c {C} -p {EPSILON} -e 1e-8 -q" + (f" -B {bias:g}" if bias else "")
    theirs, _, _ = train.predict(y, X, train.train(y, X, given), "-q")
    ours = LinearSVR(
        loss=loss,
        C=C,
        epsilon=EPSILON,
        tol=1e-8,
        fit_intercept=bias is not None,
        intercept_scaling=bias,
        max_iter=100_000,
    ).fit(X, y)
    # its coordinate descent for the absolute loss ends after 300 passes, wherever it is
    np.testing.assert_allclose(ours.predict(X), theirs, atol=1e-2 if solver == 13 else 2e-3)


@pytest.mark.parametrize("kind", ["quantile", "expectile"])
def test_liquidsvm(data, kind: str) -> None:
    liquid = pytest.importorskip("benchmarks.liquid")
    try:
        liquid.load_liquidsvm()
    except ImportError as error:
        pytest.skip(str(error))
    X, y = data
    tau, lam, width = 0.3, 1e-3, 1.2
    m, s, n = liquid.level(kind, y, tau), np.ptp(y) / 2, len(y)
    # it is given its own scaled labels, and 1/(2nλ) is how its wrapper writes λ
    fit = liquid.LiquidFit(
        kind, X, liquid.prepare_labels(kind, y, tau), tau, 1 / (2 * lam * n), 1 / width**2
    )
    fit.train(stop=1e-7, clip=0.0)
    theirs = m + s * fit.predict(X, y)
    machine, cost = (
        (QuantileSVR, s / (2 * lam * n))
        if kind == "quantile"
        else (ExpectileSVR, 1 / (2 * lam * n))
    )
    ours = machine(
        tau=tau, C=cost, gamma=1 / width**2, fit_intercept=False, tol=1e-8, scale_C=False
    )
    np.testing.assert_allclose(m + ours.fit(X, y - m).predict(X), theirs, atol=0.01 * s)
