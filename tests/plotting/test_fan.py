"""The fan display and the labels at its right end."""

from __future__ import annotations

import builtins
import doctest

import numpy as np
import pytest
from scipy import sparse

import tausvm.cuts
import tausvm.plotting.labels
from tausvm.plotting import FanDisplay
from tausvm.plotting.labels import spread
from tausvm.plotting.support import require_pyplot


class Levels:
    """Stands for a fitted estimator: level τ is x₀ + x₁ + τ."""

    tau = (0.9, 0.1, 0.5)

    def predict(self, X):
        X = np.asarray(X)
        return X.sum(axis=1)[:, None] + np.asarray(self.tau)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 2))
    return X, X.sum(axis=1) + rng.normal(size=40)


def test_docstrings() -> None:
    for module in (tausvm.cuts, tausvm.plotting.labels):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0


def test_spread_keeps_order_and_distance() -> None:
    positions = np.array([0.9, 0.1, 0.12, 0.11, 0.5])
    placed = spread(positions, 0.05)
    assert (np.argsort(placed) == np.argsort(positions)).all()
    assert np.diff(np.sort(placed)).min() >= 0.05 - 1e-12
    assert placed[[0, 4]] == pytest.approx(positions[[0, 4]])
    assert placed[1:4].mean() == pytest.approx(positions[1:4].mean())
    assert len(spread(np.empty(0), 0.05)) == 0


def test_levels_are_sorted_and_all_drawn(data) -> None:
    X, y = data
    fan = FanDisplay.from_estimator(Levels(), X, y)
    assert list(fan.tau) == [0.1, 0.5, 0.9]
    assert [label.get_text() for label in fan.labels_] == ["0.1", "0.5", "0.9"]
    assert len(fan.bands_) == 2
    assert len(fan.lines_) == 3
    np.testing.assert_array_equal(fan.scatter_.get_offsets(), np.column_stack([X[:, 0], y]))
    for tau, line in zip(fan.tau, fan.lines_, strict=True):
        x = line.get_xdata()
        assert x[0] == X[:, 0].min()
        assert x[-1] == X[:, 0].max()
        np.testing.assert_allclose(line.get_ydata(), x + np.median(X[:, 1]) + tau)


def test_the_middle_is_darkest_in_grey(data) -> None:
    X, y = data
    levels = Levels()
    levels.tau = (0.05, 0.25, 0.5, 0.75, 0.95)
    fan = FanDisplay.from_estimator(levels, X, y)
    grey = [band.get_facecolor()[0, :3] @ [0.299, 0.587, 0.114] for band in fan.bands_]
    assert grey[0] > grey[1] + 0.05
    assert grey[3] > grey[2] + 0.05
    assert grey[0] == pytest.approx(grey[3])


def test_names_come_from_the_frame(data) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data
    frame = pandas.DataFrame(X, columns=["age (years)", "weight (kg)"])
    target = pandas.Series(y, name="pressure (mmHg)")
    fan = FanDisplay.from_estimator(Levels(), frame, target, feature="weight (kg)")
    assert fan.ax_.get_xlabel() == "weight (kg)"
    assert fan.ax_.get_ylabel() == "pressure (mmHg)"


def test_draws_on_given_axes_and_again_elsewhere(data) -> None:
    X, y = data
    _, (left, right) = require_pyplot("a test").subplots(1, 2)
    fan = FanDisplay.from_estimator(Levels(), X, y, ax=left)
    assert fan.ax_ is left
    assert fan.plot(ax=right, colour="darkred").ax_ is right


def test_from_predictions_sorts_the_grid() -> None:
    fan = FanDisplay.from_predictions([2.0, 0.0, 1.0], [4.0, 0.0, 1.0], tau=0.5)
    np.testing.assert_array_equal(fan.lines_[0].get_xydata(), [[0, 0], [1, 1], [2, 4]])
    assert fan.scatter_ is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: FanDisplay.from_estimator(Levels(), X, feature=2), "feature"),
        (lambda X: FanDisplay.from_estimator(Levels(), X, feature="age"), "feature"),
        (lambda X: FanDisplay.from_estimator(Levels(), sparse.csr_matrix(X)), "dense"),
        (lambda X: FanDisplay.from_predictions([0, 1], [0, 1], tau=[0.1, 0.2]), "predictions"),
        (lambda X: FanDisplay.from_predictions([0, 1], [0, 1], tau=0.1, x=[1]), "together"),
    ],
)
def test_bad_input_is_named(data, call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call(data[0])


def test_an_estimator_without_levels_is_refused(data) -> None:
    with pytest.raises(TypeError, match="tau"):
        FanDisplay.from_estimator(object(), data[0])


def test_a_missing_matplotlib_is_named(monkeypatch) -> None:
    imported = builtins.__import__

    def without_matplotlib(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(ImportError, match=r"pip install 'tausvm\[plot\]'"):
        FanDisplay.from_predictions([0, 1], [0, 1], tau=0.1)
