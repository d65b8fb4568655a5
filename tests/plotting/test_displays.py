"""Calibration, reliability, convergence and the surface of a selection."""

from __future__ import annotations

import builtins
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import (
    SVR,
    SVRCV,
    ExpectileSVR,
    JointQuantileSVRCV,
    LinearQuantileSVRCV,
    LinearSVRCV,
    QuantileSVR,
    QuantileSVRCV,
    TauPathSVR,
    TauSVC,
)
from tausvm.plotting import (
    ConvergenceDisplay,
    CVSurfaceDisplay,
    LevelCalibrationDisplay,
    ReliabilityDisplay,
)
from tausvm.plotting.support import require_pyplot

needs_diagnostics = pytest.mark.skipif(
    find_spec("model_diagnostics") is None, reason="model-diagnostics is not installed"
)

TAUS = [0.9, 0.1, 0.5]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 2))
    return X, 5 + X.sum(axis=1) + rng.normal(size=120)


@pytest.mark.parametrize("kind", [QuantileSVR, ExpectileSVR])
def test_observed_levels_are_near_the_nominal_ones(data, kind) -> None:
    X, y = data
    model = make_pipeline(StandardScaler(), kind(tau=TAUS, C=3.0)).fit(X, y)
    display = LevelCalibrationDisplay.from_estimator(model, X, y)
    assert list(display.tau) == sorted(TAUS)
    np.testing.assert_allclose(display.observed, sorted(TAUS), atol=0.05)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.observed)
    assert (display.band_ is None) == (kind is ExpectileSVR)
    assert display.ax_.get_xlabel() == "level τ"


@pytest.fixture(scope="module")
def path(data):
    X, y = data
    return make_pipeline(StandardScaler(), TauPathSVR(C=3.0)).fit(X, y)


def test_calibration_of_a_path(data, path) -> None:
    display = LevelCalibrationDisplay.from_estimator(path, *data)
    assert len(display.tau) == 19
    np.testing.assert_allclose(display.observed, display.tau, atol=0.08)


@needs_diagnostics
def test_reliability_of_a_path(data, path) -> None:
    X, y = data
    display = ReliabilityDisplay.from_estimator(path, X, y, tau=0.9)
    expected = path[-1].predict(path[:-1].transform(X), tau=0.9)
    np.testing.assert_allclose(display.predictions, expected, rtol=1e-9)


def test_observed_levels_by_hand() -> None:
    y = np.array([1.0, 2.0, 3.0, 4.0])
    half = np.full(4, 2.5)
    display = LevelCalibrationDisplay.from_predictions(y, half, tau=0.5)
    assert display.observed[0] == 0.5
    skewed = np.full(4, 2.0)  # 1 below; 1 + 2 above
    display = LevelCalibrationDisplay.from_predictions(y, skewed, tau=0.2, functional="expectile")
    assert display.observed[0] == pytest.approx(1 / 4)


def test_a_calibrated_expectile_has_its_share_of_deviations() -> None:
    y = np.random.default_rng(0).exponential(size=500)
    model = ExpectileSVR(tau=[0.2, 0.9], tol=1e-8).fit(np.zeros((500, 1)), y)
    display = LevelCalibrationDisplay.from_estimator(model, np.zeros((500, 1)), y)
    np.testing.assert_allclose(display.observed, [0.2, 0.9], atol=1e-3)


@needs_diagnostics
def test_reliability_of_each_level(data) -> None:
    pandas = pytest.importorskip("pandas")
    X, y = data
    model = ExpectileSVR(tau=TAUS).fit(X, y)
    display = ReliabilityDisplay.from_estimator(
        model, X, pandas.Series(y, name="height (m)"), tau=0.9
    )
    assert "τ = 0.9" in display.ax_.get_title()
    assert "height (m)" in display.ax_.get_xlabel()
    np.testing.assert_array_equal(display.predictions, model.predict(X)[:, 0])
    assert len(display.ax_.lines) >= 2
    assert ReliabilityDisplay.from_estimator(model, X, y).tau == 0.5
    assert ReliabilityDisplay.from_estimator(SVR().fit(X, y), X, y).functional == "expectile"


@needs_diagnostics
def test_a_perfect_prediction_lies_on_the_diagonal() -> None:
    y = np.linspace(0, 1, 50)
    display = ReliabilityDisplay.from_predictions(y, y, tau=0.7)
    curves = [line.get_xydata() for line in display.ax_.lines]
    assert all(np.allclose(curve[:, 0], curve[:, 1]) for curve in curves)


def test_reliability_without_its_package_says_so(monkeypatch) -> None:
    imported = builtins.__import__

    def without_diagnostics(name, *rest, **more):
        if name.startswith("model_diagnostics"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_diagnostics)
    with pytest.raises(ImportError, match=r"pip install 'tausvm\[diagnostics\]'"):
        ReliabilityDisplay.from_predictions([0.0, 1.0], [0.0, 1.0])


def test_convergence_draws_the_traces(data) -> None:
    X, y = data
    model = QuantileSVR(tau=TAUS, solver="smo", tol=1e-6).fit(X, y)
    display = ConvergenceDisplay.from_estimator(model)
    assert [line.get_label() for line in display.lines_] == ["τ = 0.9", "τ = 0.1", "τ = 0.5"]
    for line, result in zip(display.lines_, model.result_, strict=True):
        assert line.get_ydata()[-1] == pytest.approx(result.trace[-1].gap)
    assert display.ax_.get_yscale() == "log"
    assert display.tol_line_.get_ydata()[0] == 1e-6
    iterations = display.plot(against="n_iter")
    assert iterations.ax_.get_xlabel() == "iterations"
    styles = {line.get_linestyle() for line in display.lines_}
    assert len(styles) == 3  # told apart in grey


def test_convergence_of_several_solvers(data) -> None:
    X, y = data
    results = [SVR(solver=solver).fit(X, y).result_ for solver in ("smo", "interior_point")]
    display = ConvergenceDisplay.from_results(results)
    assert [line.get_label() for line in display.lines_] == ["smo", "interior_point"]


def test_the_surface_marks_the_choice(data) -> None:
    X, y = data
    model = QuantileSVRCV(tau=[0.1, 0.9], Cs=[0.1, 1.0, 10.0], gammas=[0.01, 1.0], cv=3).fit(X, y)
    display = CVSurfaceDisplay.from_estimator(model, tau=0.9)
    best = model.best_params_[1]
    assert display.best == (best["C"], best["gamma"])
    assert (display.best_.get_xdata()[0], display.best_.get_ydata()[0]) == display.best
    assert display.scores.shape == (2, 3)
    g, c = np.unravel_index(np.nanargmin(display.scores), display.scores.shape)
    assert (model.Cs_[c], model.gammas_[g]) == display.best
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("C", "γ")


@pytest.mark.parametrize(
    "search", [SVRCV(kernel="linear", Cs=[0.1, 1.0], cv=3), LinearSVRCV(Cs=[0.1, 1.0], cv=3)]
)
def test_a_machine_without_gamma_has_a_curve(data, search) -> None:
    X, y = data
    model = make_pipeline(StandardScaler(), search).fit(X, y)
    display = CVSurfaceDisplay.from_estimator(model)
    assert display.mesh_ is None
    assert len(display.line_.get_xdata()) == 2


def test_a_selection_of_more_than_C_and_gamma_shows_the_chosen_slice(data) -> None:
    X, y = data
    tubes = LinearQuantileSVRCV(tau=[0.2, 0.8], Cs=[0.1, 1.0], epsilons=[0.0, 0.5, 1.0], cv=2)
    display = CVSurfaceDisplay.from_estimator(tubes.fit(X, y), tau=0.8)
    height = display.line_.get_ydata()[[0.1, 1.0].index(tubes.best_params_[1]["C"])]
    assert height == -tubes.best_score_[1]
    grid = {"Cs": [0.1, 1.0], "gammas": [0.1, 1.0, 10.0], "gamma_taus": [0.1, 5.0], "cv": 2}
    joint = JointQuantileSVRCV(tau=[0.2, 0.8], **grid).fit(X[:60], y[:60])
    surface = CVSurfaceDisplay.from_estimator(joint)
    assert surface.scores.shape == (3, 2)
    assert surface.scores.min() == -joint.best_score_


def test_displays_draw_on_given_axes(data) -> None:
    X, y = data
    _, axes = require_pyplot("a test").subplots(1, 3)
    model = QuantileSVR(tau=[0.1, 0.9]).fit(X, y)
    assert LevelCalibrationDisplay.from_estimator(model, X, y, ax=axes[0]).ax_ is axes[0]
    assert ConvergenceDisplay.from_estimator(model, ax=axes[1]).figure_ is axes[1].figure
    search = SVRCV(Cs=[1.0], gammas=[0.1], cv=3).fit(X, y)
    assert CVSurfaceDisplay.from_estimator(search, ax=axes[2]).ax_ is axes[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y: LevelCalibrationDisplay.from_estimator(SVR().fit(X, y), X, y), "quantiles"),
        (lambda X, y: LevelCalibrationDisplay.from_predictions(y, y, tau=[0.1, 0.2]), "shape"),
        (
            lambda X, y: LevelCalibrationDisplay.from_predictions(y, y, tau=0.5, functional="mean"),
            "functional",
        ),
        (
            lambda X, y: ReliabilityDisplay.from_estimator(TauSVC().fit(X, y > 6), X, y),
            "regressor",
        ),
        (
            lambda X, y: ReliabilityDisplay.from_estimator(QuantileSVR().fit(X, y), X, y, tau=0.3),
            "tau",
        ),
        (lambda X, y: ReliabilityDisplay.from_predictions(y, y, tau=0.0), "tau"),
        (
            lambda X, y: ConvergenceDisplay.from_estimator(SVR().fit(X, y), against="time"),
            "against",
        ),
        (
            lambda X, y: ConvergenceDisplay.from_results(
                SVR().fit(X, y).result_, labels=["a", "b"]
            ),
            "labels",
        ),
        (
            lambda X, y: ConvergenceDisplay.from_estimator(
                SVRCV(Cs=[1.0], gammas=[1.0], refit="average").fit(X, y)
            ),
            "certificate",
        ),
        (lambda X, y: CVSurfaceDisplay.from_estimator(SVR().fit(X, y)), "selection"),
    ],
)
def test_bad_input_is_named(data, call, message) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call(*data)
