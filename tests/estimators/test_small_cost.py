"""A C that holds the predictions at a constant is told, with the C that would not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy import sparse

from tausvm import SVR, ExpectileSVR, LinearQuantileSVR, LinearSVR, QuantileSVR, QuantileSVRCV
from tausvm.exceptions import SmallCWarning


def prices(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Rooms and age, and prices in the hundreds of thousands."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, 2e5 + 8e4 * X[:, 0] - 3e4 * X[:, 1] + 2e4 * rng.normal(size=n)


def told(model, X, y) -> str:
    with pytest.warns(SmallCWarning) as caught:
        model.fit(X, y)
    found = [str(w.message) for w in caught if w.category is SmallCWarning]
    assert len(found) == 1
    assert caught[0].filename == __file__
    return found[0]


def quiet(model, X, y) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallCWarning)
        model.fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        SVR(C=1.0),
        SVR(C=1e-8, loss="squared_epsilon_insensitive"),
        SVR(kernel=lambda a, b: a @ b.T, C=1e-3),
        QuantileSVR(tau=0.9, C=1e-5),
        QuantileSVR(tau=0.9, C=1.0, scale_C=False),
        ExpectileSVR(tau=0.3, C=1e-6),
        LinearSVR(C=1e-2),
        LinearQuantileSVR(tau=0.2, C=1e-6),
    ],
)
def test_the_C_that_is_told_moves_predictions_by_a_hundredth(model) -> None:
    X, y = prices()
    text = told(model, X, y)
    assert text.startswith(f"{type(model).__name__}: C={model.C:g} is too small for predictions")
    hundredth, whole = (
        float(found[1]) for found in re.finditer(r"C=(\S+?) (?:could|by a standard)", text)
    )
    assert whole == pytest.approx(100 * hundredth, rel=0.06)
    model.set_params(C=1.1 * hundredth).fit(X, y)
    assert np.ptp(model.predict(X)) == pytest.approx(0.01 * y.std(), rel=0.3)
    quiet(model.set_params(C=whole), X, y)


def test_the_text() -> None:
    X, y = prices()
    text = told(SVR(C=1.0, kernel="precomputed"), X @ X.T, y)
    assert re.fullmatch(
        r"SVR: C=1 is too small for predictions to differ by a hundredth of the spread of y: at "
        r"the training rows they span \S+, and the standard deviation of y is \S+\. C=\S+ could "
        r"move them by a hundredth, C=\S+ by a standard deviation\. Raise C, or set scale_C=True, "
        r"with which C counts in them\.",
        text,
    )
    assert told(ExpectileSVR(C=1e-6), X, y).endswith("Raise C.")
    several = told(QuantileSVR(tau=[0.1, 0.5], C=1e-6), X, y)
    assert "is too small for 2 of 2 levels for predictions" in several


def test_sparse_rows_and_landmarks() -> None:
    X, y = prices()
    told(SVR(), sparse.csr_matrix(X), y)
    told(LinearSVR(C=1e-2), sparse.csr_matrix(X), y)
    told(SVR(approximation="landmarks", landmarks=20), X, y)


@pytest.mark.parametrize("model", [SVR(), LinearSVR(), SVR(C=1e-9), QuantileSVR(tau=[0.1, 0.9])])
def test_no_word_where_rows_cannot_be_told_apart(model) -> None:
    X, y = prices()
    quiet(model, np.ones_like(X), y)


@pytest.mark.parametrize("model", [SVR(C=1.0), LinearSVR(C=1.0)])
def test_no_word_for_constant_targets(model) -> None:
    X, y = prices()
    quiet(model, X, np.full_like(y, 3.0))


def test_no_word_for_noise_that_no_C_would_explain() -> None:
    """Every beta but a few is at its bound here too, at any C: bounds are not what tells."""
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], size=(60_000, 1))
    y = rng.normal(size=60_000)
    for C in (1e-4, 1.0, 100.0):
        quiet(LinearSVR(C=C), X, y)
        quiet(LinearSVR(C=C, loss="squared_epsilon_insensitive"), X, y)


def test_no_word_for_one_target_far_from_all_others() -> None:
    X, y = prices()
    y = (y - y.mean()) / y.std()
    y[0] = 1e5  # the standard deviation is of this one row, and the fit is good
    quiet(SVR(C=1.0), X, y)


def test_a_choice_by_cross_validation_is_left_alone() -> None:
    X, y = prices(40)
    quiet(QuantileSVRCV(Cs=[1e-7, 1e-6], gammas=[1.0], cv=2), X, y)
