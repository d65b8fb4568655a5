"""C, γ, γ_τ and ε of joint machines: the scores and the choice of a plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import (
    JointExpectileSVR,
    JointExpectileSVRCV,
    JointQuantileSVR,
    JointQuantileSVRCV,
    JointSVR,
    JointSVRCV,
)
from tausvm.kernels import TransformableKernel
from tausvm.losses import Pinball, SquaredPinball
from tausvm.selection.grid import distance_gamma
from tausvm.selection.settings import DistanceSettings, SelectionSettings, WalkSettings

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, size=(60, 2))
Y = np.sin(3 * X[:, 0]) + (0.2 + 0.3 * np.abs(X[:, 1])) * RNG.normal(size=60)
TAUS = [0.2, 0.5, 0.8]
FOLDS = KFold(3, shuffle=True, random_state=0)
GRID = {"C": [0.1, 10.0], "epsilon": [0.0, 0.3], "gamma": [0.3, 3.0], "gamma_tau": [0.1, 10.0]}
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "quantile": (JointQuantileSVRCV, JointQuantileSVR, Pinball),
    "expectile": (JointExpectileSVRCV, JointExpectileSVR, SquaredPinball),
}


def scores_by_point(results: dict) -> dict:
    means = zip(results["params"], results["mean_test_score"], strict=True)
    return {tuple(sorted(point.items())): score for point, score in means}


def assert_same_search(ours: Any, plain: GridSearchCV, data: Any) -> None:
    """The same points with the same scores, and the same machine of the best one."""
    found, known = scores_by_point(ours.cv_results_), scores_by_point(plain.cv_results_)
    assert found.keys() == known.keys()
    for point, score in known.items():
        assert found[point] == pytest.approx(score, rel=2e-5)
    assert ours.best_params_ == plain.best_params_
    assert ours.best_score_ == pytest.approx(plain.best_score_, rel=2e-5)
    np.testing.assert_allclose(ours.predict(data), plain.predict(data), atol=1e-8)
    assert ours.dual_gap_ <= ours.tol


@pytest.mark.parametrize("kind", KINDS)
def test_levels_as_by_a_grid_search(kind: str) -> None:
    selection, machine, loss = KINDS[kind]

    def score(model: Any, rows: Any, y: Any) -> float:
        values = model.predict(rows)
        return -float(
            np.mean([loss(t).value(y - f).mean() for t, f in zip(TAUS, values.T, strict=True)])
        )

    ours = selection(
        tau=TAUS,
        Cs=GRID["C"],
        gammas=GRID["gamma"],
        gamma_taus=GRID["gamma_tau"],
        epsilons=GRID["epsilon"],
        cv=FOLDS,
        selection_tol=1e-11,
        tol=1e-11,
    ).fit(X, Y)
    plain = GridSearchCV(machine(tau=TAUS, tol=1e-11), GRID, cv=FOLDS, scoring=score).fit(X, Y)
    assert_same_search(ours, plain, X)
    assert ours.n_iter_ == 16 * 3 and ours.n_splits_ == 3
    np.testing.assert_array_equal(ours.gammas_, GRID["gamma"])
    assert ours.score(X, Y) == pytest.approx(ours.best_estimator_.score(X, Y))


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "epsilon_insensitive"])
def test_outputs_as_by_a_grid_search(loss: str) -> None:
    outputs = np.column_stack([Y, X[:, 1] - Y])
    squared = loss == "squared_epsilon_insensitive"
    name = "neg_mean_squared_error" if squared else "neg_mean_absolute_error"
    grid = {key: GRID[key] for key in ("C", "epsilon", "gamma")}
    coupled = np.array([[1.0, 0.5], [0.5, 1.0]])
    given = {"loss": loss, "output_kernel": coupled, "tol": 1e-8}
    ours = JointSVRCV(
        Cs=grid["C"],
        gammas=grid["gamma"],
        epsilons=grid["epsilon"],
        cv=FOLDS,
        selection_tol=1e-8,
        **given,
    ).fit(X, outputs)
    plain = GridSearchCV(JointSVR(**given), grid, cv=FOLDS, scoring=name).fit(X, outputs)
    assert_same_search(ours, plain, X)
    flat = JointSVRCV(Cs=[1.0], gammas=[1.0], scoring=name, cv=3).fit(X, Y)
    assert flat.predict(X).shape == (60,)


@pytest.mark.parametrize("kind", ["sparse", "linear", "precomputed", "small", "transformed"])
def test_kinds_of_input(kind: str) -> None:
    """Whatever way kernel values come: the same as by a search of single fits."""
    data: Any = X
    given: dict[str, Any] = {"tau": [0.3, 0.7], "tol": 1e-8}
    grid = {"C": [0.1, 10.0], "gamma": [0.3, 3.0]}
    if kind == "sparse":
        data = sp.csr_matrix(np.where(np.abs(X) < 0.3, 0.0, X))
    elif kind == "linear":
        given["kernel"] = "linear"
    elif kind == "precomputed":
        given["kernel"], data = "precomputed", RBF(0.7)(X)
    elif kind == "transformed":
        given["output_kernel"] = TransformableKernel([np.sin, np.tanh])
    if kind in ("linear", "precomputed"):
        del grid["gamma"]

    def score(model: Any, rows: Any, y: Any) -> float:
        return -mean_absolute_error(np.c_[y, y], model.predict(rows))

    ours = JointQuantileSVRCV(
        Cs=grid["C"],
        gammas=[0.3, 3.0],
        cv=FOLDS,
        selection_tol=1e-8,
        scoring=lambda y, f: -mean_absolute_error(np.c_[y, y], f),
        **given,
    )
    if kind == "small":  # room for the matrix of all rows once and not twice
        ours.set_params(cache_size=1.5 * 8 * 60**2 / 2**20)
    ours.fit(data, Y)
    plain = GridSearchCV(JointQuantileSVR(**given), grid, cv=FOLDS, scoring=score).fit(data, Y)
    assert_same_search(ours, plain, data)


def test_weights_are_copies_jobs_and_groups_change_nothing() -> None:
    weight = RNG.integers(1, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    groups = np.arange(60) % 12
    given = {"tau": [0.3, 0.7], "Cs": [0.1, 1.0], "gammas": "distance_quantile", "tol": 1e-7}
    weighted = JointQuantileSVRCV(**given, cv=3).fit(X, Y, weight, groups=groups)
    splits = [
        (np.flatnonzero(~held), np.flatnonzero(held))
        for _, validation in GroupKFold(3).split(X, Y, groups)
        for held in [np.isin(copies, validation)]
    ]
    copied = JointQuantileSVRCV(**given, cv=splits, n_jobs=2).fit(X[copies], Y[copies])
    assert weighted.best_params_ == copied.best_params_
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], copied.cv_results_["mean_test_score"], rtol=2e-3
    )


def test_gamma_from_the_distances() -> None:
    """σ is the 0.7-quantile of the distances of pairs, γ = 1/(2σ²)."""
    pairs = np.sqrt(np.square(X[:, None] - X).sum(axis=2))[np.triu_indices(60, 1)]
    sigma = np.quantile(pairs, 0.7, method="inverted_cdf")
    model = JointQuantileSVRCV(Cs=[1.0], gammas="distance_quantile", cv=2).fit(X, Y)
    assert model.best_params_["gamma"] == pytest.approx(0.5 / sigma**2)
    seed = np.random.RandomState(0)
    some = distance_gamma(X, np.ones(60), seed, DistanceSettings(rows=40))
    assert some == pytest.approx(0.5 / sigma**2, rel=0.3)
    same = np.zeros((5, 2))
    assert distance_gamma(same, np.ones(5), seed, DistanceSettings()) == 1.0
    assert distance_gamma(np.eye(5)[[0, 0, 0, 0, 1]], np.ones(5), seed, DistanceSettings()) > 0


def test_default_grid_is_free_of_units() -> None:
    for selection in (JointQuantileSVRCV(tau=TAUS), JointExpectileSVRCV(tau=TAUS), JointSVRCV()):
        selection.set_params(Cs=3, gammas=2, cv=2, epsilon=0.0)
        plain = selection.fit(X, Y)
        index, costs = plain.best_index_, plain.Cs_.copy()
        scaled = selection.fit(X, 100.0 * Y - 7.0)
        np.testing.assert_allclose(scaled.Cs_, costs)
        assert scaled.best_index_ == index
    absolute = JointSVRCV(loss="epsilon_insensitive", Cs=3, gammas=2, cv=2, epsilon=0.0)
    costs = absolute.fit(X, Y).Cs_
    np.testing.assert_allclose(absolute.fit(X, 100.0 * Y).Cs_, 100.0 * costs)


def test_a_walk_ends_where_no_variable_is_near_its_bound() -> None:
    """The scores of larger C are then those that they have when they are solved."""
    given = {"tau": [0.3, 0.7], "Cs": [1.0, 1e3, 1e5, 1e6], "gammas": [10.0], "epsilon": 0.3}
    smooth = np.sin(X[:, 0])
    ends = JointQuantileSVRCV(**given, cv=2, selection_tol=1e-6, refit=False)
    never = JointQuantileSVRCV(**given, cv=2, selection_tol=1e-6, refit=False)
    never._settings = SelectionSettings(walk=WalkSettings(near_bound=-1.0))
    ours, all_of_them = (
        search.fit(X, smooth).cv_results_["mean_test_score"] for search in (ends, never)
    )
    assert ours[2] == ours[3]
    np.testing.assert_allclose(ours, all_of_them, rtol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gammas": "scale"}, "gammas must be a number of grid points >= 1, a list"),
        ({"gammas": "distance_quantile", "kernel": "poly"}, "kernel must be 'rbf' for gammas="),
        ({"gammas": []}, "gammas must be"),
        ({"gamma_taus": []}, "gamma_taus must be None or a list"),
        ({"gamma_taus": [0.1], "output_kernel": "identity"}, "output_kernel must be 'levels'"),
        ({"epsilons": [-1.0]}, "epsilons must be None or a list of finite values >= 0"),
        ({"tau": [0.5, 0.2]}, "tau must be a list of levels that rise"),
        ({"scoring": "r2"}, "scoring must judge predictions"),
        ({"cv": 1}, "cv must be an integer >= 2, got 1"),
        ({"refit": "committee"}, "refit must be True or False"),
        ({"cache_size": 1e-6}, "cache_size must be at least"),
    ],
)
def test_parameters_that_cannot_be_used(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JointQuantileSVRCV(**{"tau": TAUS, "Cs": [1.0], "cv": 2, **parameters}).fit(X, Y)


def test_time_limit() -> None:
    ticks = iter(np.arange(0.0, 1e6, 1.0))
    model = JointQuantileSVRCV(tau=TAUS, Cs=[0.1, 1.0, 10.0, 100.0], gammas=[1.0], cv=2)
    model.set_params(time_limit=200.0)
    model._clock = lambda: float(next(ticks))
    with pytest.warns(ConvergenceWarning, match="did not come to an end within time_limit"):
        model.fit(X, Y)
    known = ~np.isnan(model.cv_results_["mean_test_score"])
    assert known[0] and not known[-1]
    with (
        pytest.raises(ValueError, match="no C could be scored on all folds"),
        pytest.warns(ConvergenceWarning),
    ):
        JointQuantileSVRCV(tau=TAUS, Cs=2, gammas=2, cv=2, time_limit=1e-9).fit(X, Y)


@parametrize_with_checks(
    [
        JointQuantileSVRCV(tau=0.3, Cs=2, gammas=2, cv=2),
        JointExpectileSVRCV(tau=0.7, Cs=2, gammas="distance_quantile", cv=2),
        JointSVRCV(Cs=2, gammas=2, cv=2, epsilons=[0.0, 0.1]),
    ]
)
def test_check(estimator: Any, check: Any) -> None:
    check(estimator)
