"""The displays of a path."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import TauPathSVC, TauSVC
from tausvm.plotting import PathBoundaryDisplay, PathDisplay
from tausvm.plotting.support import require_pyplot


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, "yes", "no")
    return TauPathSVC(kernel="linear").fit(X, y), X, y


def test_rates_are_those_of_the_predictions(fitted):
    model, X, y = fitted
    display = PathDisplay.from_estimator(model, X, y, tau=[0.6, 0.0, 1.0, 0.3])
    assert list(display.tau) == [0.0, 0.3, 0.6, 1.0]
    for k, tau in enumerate(display.tau):
        predicted = model.predict(X, tau)
        rates = [
            (predicted[y == "yes"] == "yes").mean(),
            (predicted[y == "no"] == "no").mean(),
            (predicted == y).mean(),
        ]
        np.testing.assert_allclose(display.rates[:, k], rates)
    np.testing.assert_array_equal(display.rates[:2, 0], [1.0, 0.0])
    np.testing.assert_array_equal(display.rates[:2, -1], [0.0, 1.0])
    for line, rate in zip(display.lines_, display.rates, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), rate)
    words = [label.get_text() for label in display.labels_]
    assert words == ["true positive rate", "true negative rate", "accuracy"]


def test_a_pipeline_on_given_axes(fitted):
    _, X, y = fitted
    pipe = make_pipeline(StandardScaler(), TauPathSVC(kernel="linear")).fit(X, y)
    _, ax = require_pyplot("a test").subplots()
    display = PathDisplay.from_estimator(pipe, X, y, ax=ax)
    assert display.ax_ is ax
    assert display.rates.shape == (3, 201)


def test_boundaries(fitted):
    model, X, y = fitted
    display = PathDisplay.boundaries(model, X, y)
    assert isinstance(display, PathBoundaryDisplay)
    assert [ax.get_title() for ax in display.axes_] == ["τ = 0.1", "τ = 0.5", "τ = 0.9"]
    across, up = display.grid
    for k, tau in enumerate(display.tau):
        point = [[across[20], up[77]]]
        expected = model.decision_function(point, tau)[0]
        assert display.decisions[k, 77, 20] == pytest.approx(expected)
    # a larger level leaves fewer points on the positive side
    shares = (display.decisions > 0).mean(axis=(1, 2))
    assert shares[0] > shares[1] > shares[2]


def test_names_come_from_the_frame(fitted):
    pandas = pytest.importorskip("pandas")
    _, X, y = fitted
    frame = pandas.DataFrame(np.c_[X, X[:, 0]], columns=["a", "b", "c"])
    model = TauPathSVC(kernel="linear").fit(frame, y)
    display = PathBoundaryDisplay.from_estimator(model, frame, y, tau=[0.5], features=(1, 2))
    assert display.axes_[0].get_xlabel() == "b"
    assert display.axes_[0].get_ylabel() == "c"


def test_bad_input(fitted):
    model, X, y = fitted
    with pytest.raises(TypeError, match="fitted TauPathSVC, got TauSVC"):
        PathDisplay.from_estimator(TauSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="y_pred must have shape"):
        PathDisplay.from_predictions([True, False], [[True]], tau=[0.5])
    with pytest.raises(ValueError, match="both classes"):
        PathDisplay.from_predictions([True, True], [[True], [True]], tau=[0.5])
    with pytest.raises(ValueError, match="dense"):
        PathDisplay.boundaries(model, sparse.csr_matrix(X), y)
    with pytest.raises(ValueError, match="features must lie between 0 and 1"):
        PathDisplay.boundaries(model, X, y, features=(0, 2))
    with pytest.raises(ValueError, match="axes must be 3"):
        PathDisplay.boundaries(model, X, y, axes=[require_pyplot("a test").gca()])
    with pytest.raises(ValueError, match="two classes, got 3"):
        three = TauPathSVC(kernel="linear").fit(X, np.arange(80) % 3)
        PathDisplay.from_estimator(three, X, y)
