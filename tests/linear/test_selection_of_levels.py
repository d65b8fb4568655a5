"""C and ε of the linear machines, together and for every level: the choice of a plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

from tausvm import (
    LinearExpectileSVR,
    LinearExpectileSVRCV,
    LinearQuantileSVR,
    LinearQuantileSVRCV,
    LinearSVR,
    LinearSVRCV,
)
from tausvm.metrics import mean_expectile_loss
from tausvm.solvers import Problem, SolverResult

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 6))
Y = X[:, 0] - X[:, 1] + (0.5 + 0.5 * np.abs(X[:, 2])) * RNG.standard_t(4, size=150)
CS = [1e-3, 1e-2, 0.1, 1.0]
TUBES = [0.0, 0.2, 1.0]
FOLDS = KFold(4, shuffle=True, random_state=1)
KINDS = {
    "quantile": (LinearQuantileSVRCV, LinearQuantileSVR, mean_pinball_loss),
    "expectile": (LinearExpectileSVRCV, LinearExpectileSVR, mean_expectile_loss),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_same_choice_as_a_grid_search_of_every_level(kind: str, sparse: bool) -> None:
    selection, machine, loss = KINDS[kind]
    taus = [0.8, 0.3]
    data = sp.csr_matrix(X) if sparse else X
    ours = selection(tau=taus, Cs=CS, epsilons=TUBES, cv=FOLDS, selection_tol=1e-7, tol=1e-7)
    ours.fit(data, Y)
    names = "alpha" if kind == "quantile" else "tau"
    for k, tau in enumerate(taus):
        scorer = make_scorer(loss, greater_is_better=False, **{names: tau})
        # the order of the table: C outside, ε inside
        plain = GridSearchCV(
            machine(tau=tau, tol=1e-7), {"C": CS, "epsilon": TUBES}, cv=FOLDS, scoring=scorer
        ).fit(data, Y)
        assert ours.cv_results_[k]["params"] == plain.cv_results_["params"]
        scale = np.ptp(plain.cv_results_["mean_test_score"])
        np.testing.assert_allclose(
            ours.cv_results_[k]["mean_test_score"] / scale,
            plain.cv_results_["mean_test_score"] / scale,
            atol=1e-4,
        )
        assert ours.best_params_[k] == plain.best_params_
        assert ours.best_estimator_[k].tau == tau
        np.testing.assert_allclose(
            ours.predict(data, raw=True)[:, k], plain.predict(data), atol=2e-3
        )
    assert (ours.dual_gap_ <= ours.tol).all()
    assert ours.n_iter_ == 2 * len(CS) * len(TUBES) * 4


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_C_and_epsilon_together(loss: str) -> None:
    ours = LinearSVRCV(Cs=CS, epsilons=TUBES, cv=FOLDS, loss=loss, selection_tol=1e-7).fit(X, Y)
    name = "neg_mean_absolute_error" if loss == "epsilon_insensitive" else "neg_mean_squared_error"
    plain = GridSearchCV(
        LinearSVR(loss=loss, tol=1e-7), {"C": CS, "epsilon": TUBES}, cv=FOLDS, scoring=name
    ).fit(X, Y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-4
    )
    assert ours.best_params_ == plain.best_params_
    assert ours.best_index_ == plain.best_index_
    assert list(ours.cv_results_["param_epsilon"][: len(TUBES)]) == TUBES


def test_one_level_and_a_list_of_one() -> None:
    alone = LinearQuantileSVRCV(tau=0.7, Cs=CS, cv=3).fit(X, Y)
    listed = LinearQuantileSVRCV(tau=[0.7], Cs=CS, cv=3).fit(X, Y)
    assert [alone.best_params_] == listed.best_params_
    assert alone.predict(X).shape == (150,) and listed.predict(X).shape == (150, 1)
    np.testing.assert_array_equal(alone.predict(X), listed.predict(X)[:, 0])
    assert alone.score(X, Y) == listed.score(X, Y) > 0.3


def test_levels_are_in_order_and_intervals_between_them() -> None:
    model = LinearQuantileSVRCV(tau=[0.9, 0.1, 0.5], Cs=[0.01, 10.0], cv=3).fit(X, Y)
    high, low, middle = model.predict(X).T
    assert (low <= middle).all() and (middle <= high).all()
    np.testing.assert_array_equal(model.predict_interval(X, coverage=0.8), np.c_[low, high])
    assert model.dual_gap_.shape == (3,) and model.best_score_.shape == (3,)


def test_a_grid_of_epsilon_in_units_of_y() -> None:
    plain = LinearSVRCV(Cs=3, epsilons=4, cv=3, scale_C=True).fit(X, Y)
    scaled = LinearSVRCV(Cs=3, epsilons=4, cv=3, scale_C=True).fit(X, 10.0 * Y + 3.0)
    tubes = plain.cv_results_["param_epsilon"].data[:4]
    np.testing.assert_allclose(scaled.cv_results_["param_epsilon"].data[:4], 10.0 * tubes)
    np.testing.assert_allclose(tubes / np.std(Y), np.geomspace(2.0**-10, 2.0**-2, 4))
    assert plain.best_index_ == scaled.best_index_


def test_weights_are_copies_and_groups_stay_together() -> None:
    weight = RNG.integers(1, 4, size=150)
    copies = np.repeat(np.arange(150), weight)
    groups = np.arange(150) % 15
    given = {"tau": [0.2, 0.7], "Cs": CS, "cv": 3, "selection_tol": 1e-8, "scale_C": False}
    weighted = LinearExpectileSVRCV(**given).fit(X, Y, weight, groups=groups)
    copied = LinearExpectileSVRCV(**given, n_jobs=2)
    splits = [
        (np.flatnonzero(~held), np.flatnonzero(held))
        for _, validation in GroupKFold(3).split(X, Y, groups)
        for held in [np.isin(copies, validation)]
    ]
    copied.set_params(cv=splits).fit(X[copies], Y[copies])
    for ours, theirs in zip(weighted.cv_results_, copied.cv_results_, strict=True):
        np.testing.assert_allclose(ours["mean_test_score"], theirs["mean_test_score"], rtol=1e-5)


def test_where_a_larger_C_changes_nothing_it_costs_nothing() -> None:
    """Up from where all rows lie in the tube the same function solves every problem."""
    from tausvm.selection import walk as module

    exact = X @ np.arange(6.0)
    given = {"Cs": [1e3, 1e4, 1e5, 1e6], "epsilon": 0.5, "cv": 2, "selection_tol": 1e-6}
    solved: list[float] = []
    real = module.solve

    def counted(problem: Problem, *others: Any) -> SolverResult:
        solved.append(float(problem.terms.upper.max() * problem.units.scale))
        return real(problem, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "solve", counted)
        model = LinearSVRCV(**given).fit(X, exact)
        again = LinearSVRCV(**given, loss="squared_epsilon_insensitive").fit(X, exact)
    assert solved[:2] == pytest.approx([1e3, 1e3]) and len(solved) == 2 + 8
    assert model.best_params_["C"] == 1e3
    alone = [LinearSVR(C=C, epsilon=0.5, tol=1e-6).fit(X, exact).predict(X) for C in (1e3, 1e6)]
    np.testing.assert_allclose(*alone, atol=1e-3)
    assert np.ptp(model.cv_results_["mean_test_score"]) == 0.0
    assert np.ptp(again.cv_results_["mean_test_score"]) > 0.0  # C bounds nothing


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilons": []}, "epsilons must be None, a number"),
        ({"epsilons": [-1.0]}, "epsilons must be None, a number"),
        ({"epsilons": 0}, "epsilons must be None, a number of grid points >= 1"),
        ({"epsilons": 0.5}, "epsilons must be None, a number of grid points >= 1"),
        ({"tau": [0.1, 1.5]}, "tau must lie strictly between 0 and 1, got 1.5"),
        ({"ordered": "yes"}, "ordered must be True or False"),
    ],
)
def test_parameters_that_cannot_be_used(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearQuantileSVRCV(**parameters).fit(X, Y)


def test_levels_share_the_time() -> None:
    """A clock that ends the walks of a fold leaves every level the C that it came to."""
    ticks = iter(np.arange(0.0, 1e6, 1.0))
    model = LinearQuantileSVRCV(tau=[0.2, 0.8], Cs=[1e-3, 1e-2, 1.0, 10.0], cv=2, time_limit=300.0)
    model._clock = lambda: float(next(ticks))
    with pytest.warns(ConvergenceWarning, match="did not come to an end within time_limit"):
        model.fit(X, Y)
    scored = [~np.isnan(table["mean_test_score"]) for table in model.cv_results_]
    assert all(known.any() and not known.all() for known in scored)
