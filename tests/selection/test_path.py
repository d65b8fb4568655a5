"""C and γ of the whole τ path: costs of every ratio, named after training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import TauPathSVC, TauPathSVCCV, TauSVC
from tausvm.selection.cost_curves import cost_at, cost_curve, integrated_cost, joined

X, LABEL = make_moons(90, noise=0.4, random_state=0)
Y = np.where(LABEL > 0, "yes", "no")
CS, GAMMAS = [0.1, 1.0, 30.0], [0.3, 3.0]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=1)
MODEL = TauPathSVCCV(Cs=CS, gammas=GAMMAS, cv=FOLDS).fit(X, Y)


def cost(y: Any, decided: Any, tau: float) -> float:
    """The mean cost of decisions at a level, by its definition."""
    missed, alarms = (y == "yes") & (decided == "no"), (y == "no") & (decided == "yes")
    return float(np.mean(2 * (1 - tau) * missed + 2 * tau * alarms))


# not ½: with as many rows of both classes and a small C the offset of a path jumps there
@pytest.mark.parametrize("tau", [0.07, 0.31, 0.52, 0.9])
def test_the_choice_at_a_level_is_that_of_a_grid_search_there(tau: float) -> None:
    def score(model: Any, rows: Any, y: Any) -> float:
        return -cost(y, model.predict(rows), tau)

    grid = {"C": CS, "gamma": GAMMAS}
    plain = GridSearchCV(TauSVC(tau=tau, tol=1e-9), grid, cv=FOLDS, scoring=score).fit(X, Y)
    ours = MODEL.costs_at(tau).mean(axis=1)
    np.testing.assert_allclose(ours, -plain.cv_results_["mean_test_score"], atol=1e-12)
    assert MODEL.cv_results_["params"] == plain.cv_results_["params"]
    assert MODEL.best_params_at(tau) == plain.best_params_
    chosen = MODEL.best_at(tau)
    assert isinstance(chosen, TauSVC) and chosen.tau == tau
    assert chosen.dual_gap_ <= MODEL.tol
    at = MODEL.cv_results_["params"].index({"C": chosen.C, "gamma": chosen.gamma})
    assert at in MODEL.machine_index_
    np.testing.assert_array_equal(MODEL.predict(X, tau=tau), chosen.predict(X))


def test_costs_are_those_of_predictions_on_every_fold() -> None:
    for index, point in enumerate(MODEL.cv_results_["params"]):
        for fold, (train, rest) in enumerate(FOLDS.split(X, Y)):
            path = TauPathSVC(**point).fit(X[train], Y[train])
            for tau in (0.0, 0.13, 0.5, 0.77, 1.0):
                expected = cost(Y[rest], path.predict(X[rest], tau=tau), tau)
                assert MODEL.costs_at(tau)[index, fold] == pytest.approx(expected, abs=1e-12)
            taus = (np.arange(2000) + 0.5) / 2000
            decided = path.predict(X[rest], tau=taus)
            mean = np.mean([cost(Y[rest], d, t) for d, t in zip(decided.T, taus, strict=True)])
            found = MODEL.cv_results_[f"split{fold}_test_integrated_cost"][index]
            assert found == pytest.approx(mean, abs=2e-3)


def test_the_integrated_cost_is_the_brier_score_of_probabilities() -> None:
    """Exactly so where no decision flips twice, as along a line of small C."""
    train, rest = next(FOLDS.split(X, Y))
    path = TauPathSVC(kernel="linear", C=0.02).fit(X[train], Y[train])
    taus = path._levels(0)
    values = path._values(X[rest], 0, taus)
    assert (np.diff((values > 0).astype(int), axis=1) <= 0).all()
    curve = cost_curve(values, taus, Y[rest] == "yes", np.ones(len(rest)), len(rest))
    brier = brier_score_loss(Y[rest] == "yes", path.predict_proba(X[rest])[:, 1])
    assert integrated_cost(curve) == pytest.approx(brier, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_curve_counts_what_is_decided(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 8), rng.integers(2, 6)
    values, weight = rng.normal(size=(n, m)), rng.uniform(0.5, 2, size=n)
    taus = np.concatenate([[0.0], np.sort(rng.uniform(size=m - 2)), [1.0]])
    positive = rng.uniform(size=n) < 0.5
    parts = [slice(0, n // 2), slice(n // 2, n)]
    total = float(weight.sum())
    whole = cost_curve(values, taus, positive, weight, total)
    both = joined([cost_curve(values[p], taus, positive[p], weight[p], total) for p in parts])
    for tau in rng.uniform(size=20):
        yes = np.array([np.interp(tau, taus, row) for row in values]) > 0
        missed, alarms = weight[positive & ~yes].sum(), weight[~positive & yes].sum()
        expected = 2 * ((1 - tau) * missed + tau * alarms) / total
        assert cost_at(whole, tau) == pytest.approx(expected, abs=1e-12)
        assert cost_at(both, tau) == pytest.approx(expected, abs=1e-12)
    levels = (np.arange(2000) + 0.5) / 2000
    mean = np.mean([cost_at(whole, tau) for tau in levels])
    assert integrated_cost(whole) == pytest.approx(mean, abs=5e-3)
    assert integrated_cost(both) == pytest.approx(integrated_cost(whole), abs=1e-12)


def test_select_by() -> None:
    given = {"Cs": CS, "gammas": GAMMAS, "cv": FOLDS}
    for by, name in (("integrated", "integrated_cost"), ("equal_costs", "equal_cost")):
        model = TauPathSVCCV(**given, select_by=by).fit(X, Y)
        means = model.cv_results_[f"mean_test_{name}"]
        assert model.best_score_ == -means.min() == -means[model.best_index_]
    at = TauPathSVCCV(**given, select_by=0.2, refit=False).fit(X, Y)
    assert at.best_params_ == MODEL.best_params_at(0.2)
    assert -at.best_score_ == pytest.approx(MODEL.costs_at(0.2).mean(axis=1).min())
    error = TauPathSVCCV(**given, select_by=0.5, refit=False).fit(X, Y)
    np.testing.assert_allclose(
        -error.cv_results_["mean_test_score"], error.cv_results_["mean_test_equal_cost"]
    )


def test_costs_named_after_training() -> None:
    for matrix, tau in (
        ([[0, 1], [9, 0]], 0.1),
        ([[0, 3], [1, 0]], 0.75),
        ([[-1, 1], [5, 2]], 0.4),
    ):
        chosen = MODEL.select(matrix)
        assert chosen.tau == pytest.approx(tau)
        np.testing.assert_array_equal(chosen.predict(X), MODEL.predict(X, tau=chosen.tau))
    assert MODEL.for_costs(1.0, 9.0).tau == 0.1
    assert MODEL.costs_at(0.0).max() == MODEL.costs_at(1.0).max() == 0.0


def test_predictions_without_a_level_are_of_the_best_estimator() -> None:
    best = MODEL.best_estimator_
    assert MODEL.machines_[0] is best and MODEL.machine_index_[0] == MODEL.best_index_
    assert {"C": best.C, "gamma": best.gamma} == MODEL.best_params_
    np.testing.assert_array_equal(MODEL.predict(X), best.predict(X))
    np.testing.assert_array_equal(MODEL.predict_proba(X), best.predict_proba(X))
    np.testing.assert_array_equal(MODEL.decision_function(X), best.decision_function(X))
    levels = [0.0, 0.3, 0.8, 1.0]
    several = MODEL.predict(X, tau=levels)
    assert several.shape == (90, 4)
    assert (several[:, 0] == "yes").all() and (several[:, -1] == "no").all()
    np.testing.assert_array_equal(several[:, 1], MODEL.predict(X, tau=0.3))
    assert MODEL.decision_function(X, tau=levels).shape == (90, 4)
    assert MODEL.dual_gap_ <= MODEL.tol


@pytest.mark.parametrize("kind", ["precomputed", "sparse", "linear"])
def test_kinds_of_input(kind: str) -> None:
    data: Any = {"precomputed": RBF(0.7)(X), "sparse": sp.csr_matrix(X), "linear": X}[kind]
    kernel = "rbf" if kind == "sparse" else kind
    model = TauPathSVCCV(Cs=CS, gammas=[1.0], cv=FOLDS, kernel=kernel).fit(data, Y)
    grid = {"C": CS}
    machine = TauSVC(tau=0.3, kernel=kernel, gamma=1.0, tol=1e-9)
    plain = GridSearchCV(
        machine, grid, cv=FOLDS, scoring=lambda m, A, y: -cost(y, m.predict(A), 0.3)
    ).fit(data, Y)
    np.testing.assert_allclose(
        model.costs_at(0.3).mean(axis=1), -plain.cv_results_["mean_test_score"], atol=1e-12
    )
    assert model.predict(data, tau=0.3).shape == (90,)
    assert ("gamma" in model.best_params_) == (kind == "sparse")


def test_several_classes() -> None:
    """The mean of the costs of each class against the rest."""
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [0.0, 1.0])]
    model = TauPathSVCCV(Cs=[1.0], gammas=[1.0], cv=FOLDS).fit(X, labels)
    train, rest = next(FOLDS.split(X, labels))
    path = TauPathSVC(gamma=1.0).fit(X[train], labels[train])
    values = path.decision_function(X[rest], tau=0.3)
    each = [
        cost(
            np.where(labels[rest] == label, "yes", "no"),
            np.where(values[:, k] > 0, "yes", "no"),
            0.3,
        )
        for k, label in enumerate(path.classes_)
    ]
    assert model.costs_at(0.3)[0, 0] == pytest.approx(np.mean(each), abs=1e-12)
    assert model.predict_proba(X).shape == (90, 3)
    assert model.best_at(0.3).predict(X).shape == (90,)
    with pytest.raises(ValueError, match="cost_matrix needs two classes, got 3"):
        model.select(np.ones((3, 3)))


def test_weights_are_copies() -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 3, size=90)
    copies = np.repeat(np.arange(90), weight)
    splits = list(FOLDS.split(X, Y))
    repeated = [tuple(np.flatnonzero(np.isin(copies, part)) for part in parts) for parts in splits]
    given = {"Cs": [0.3, 3.0], "gammas": [1.0]}
    weighted = TauPathSVCCV(**given, cv=splits).fit(X, Y, weight)
    copied = TauPathSVCCV(**given, cv=repeated, n_jobs=2).fit(X[copies], Y[copies])
    for tau in (0.2, 0.5, 0.83):
        np.testing.assert_allclose(weighted.costs_at(tau), copied.costs_at(tau), atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"select_by": "accuracy"}, "select_by must be one of 'integrated', 'equal_costs' or a"),
        ({"select_by": 1.0}, "select_by must be"),
        ({"gammas": [-1.0]}, "gammas must be"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"tol": 0}, "tol must be"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"cv": [(np.flatnonzero(Y == "yes"), [0])]}, "cv must leave rows of every class"),
    ],
)
def test_parameters_that_cannot_be_used(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TauPathSVCCV(**{"Cs": [1.0], "gammas": [1.0], **parameters}).fit(X, Y)


def test_costs_and_levels_that_cannot_be_used() -> None:
    for matrix in ([[0, 1]], [[0, np.nan], [1, 0]], [[1, 0], [0, 1]], [[0, 0], [1, 0]]):
        with pytest.raises(ValueError, match="cost_matrix must be"):
            MODEL.select(matrix)
    for tau in (0.0, 1.0, "half", np.nan):
        with pytest.raises(ValueError, match="tau must be"):
            MODEL.best_at(tau)
    with pytest.raises(NotFittedError):
        TauPathSVCCV().select([[0, 1], [1, 0]])
    without = TauPathSVCCV(Cs=[1.0], gammas=[1.0], refit=False).fit(X, Y)
    assert without.best_params_at(0.3) == {"C": 1.0, "gamma": 1.0}
    with pytest.raises(AttributeError, match="refit=False"):
        without.best_at(0.3)


def test_time_limit() -> None:
    with (
        pytest.raises(ValueError, match="no C could be scored on all folds"),
        pytest.warns(ConvergenceWarning, match="did not come to an end within time_limit"),
    ):
        TauPathSVCCV(Cs=2, gammas=2, cv=2, time_limit=1e-9).fit(X, Y)
    long = TauPathSVCCV(Cs=[1.0], gammas=[1.0], cv=2, time_limit=1e4).fit(X, Y)
    assert long.best_estimator_.time_limit == 1e4 and long.dual_gap_ <= long.tol


@parametrize_with_checks([TauPathSVCCV(Cs=2, gammas=2, cv=2)])
def test_check(estimator: Any, check: Any) -> None:
    check(estimator)
