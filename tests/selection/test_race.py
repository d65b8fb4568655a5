"""The race leaves out what cannot win: the choice on real data is that of the whole grid."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tausvm
from tausvm.selection import members
from tausvm.selection.settings import RaceSettings, SelectionSettings
from tausvm.solvers import Many

from ..estimators.data import PLAIN
from ..shared_data import data_file

#: the grid alone is looked at here
SVRCV, QuantileSVRCV, ExpectileSVRCV = (
    partial(selection, **PLAIN)
    for selection in (tausvm.SVRCV, tausvm.QuantileSVRCV, tausvm.ExpectileSVRCV)
)

#: each point of these grids differs from its neighbours by more than the fits' tolerance does
COSTS = np.geomspace(0.05, 200.0, 6)
GAMMAS = np.geomspace(0.03, 10.0, 6)


def load(name, rows):
    table = np.loadtxt(data_file(f"{name}.csv"), delimiter=",", skiprows=1)
    table = table[np.random.default_rng(0).permutation(len(table))[:rows]]
    low, high = table.min(axis=0), table.max(axis=0)
    table = 2.0 * (table - low) / np.where(high > low, high - low, 1.0) - 1.0
    return table[:, :-1], table[:, -1]


@pytest.mark.parametrize("name", ["concrete_comp", "airfoil_noise", "cycle_pp"])
@pytest.mark.parametrize("selection", [QuantileSVRCV, ExpectileSVRCV])
def test_same_choice_with_and_without_the_race(selection, name):
    X, y = load(name, 600)
    grid = {"Cs": COSTS, "gammas": GAMMAS, "cv": 5, "refit": False}
    raced = selection(tau=[0.25, 0.75], prune=True, **grid).fit(X, y)
    whole = selection(tau=[0.25, 0.75], prune=False, **grid).fit(X, y)
    assert np.isnan(raced.scores_).any(axis=3).mean() > 0.2
    assert not np.isnan(whole.scores_).any()
    for k in range(2):
        ours = whole.cv_results_[k]["mean_test_score"][raced.best_index_[k]]
        # another point only where the folds cannot tell the two apart
        assert ours >= whole.best_score_[k] * 1.003
        assert raced.best_score_[k] == pytest.approx(whole.best_score_[k], rel=0.01)


def test_same_choice_of_the_tube_machine():
    X, y = load("concrete_comp", 600)
    grid = {"Cs": COSTS, "gammas": GAMMAS, "cv": 5, "refit": False}
    raced = SVRCV(prune=True, **grid).fit(X, y)
    whole = SVRCV(prune=False, **grid).fit(X, y)
    assert raced.best_params_ == whole.best_params_


def test_the_race_does_not_depend_on_the_number_of_jobs():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(640, 2))
    y = np.sin(4 * X[:, 0]) + 0.2 * rng.normal(size=640)
    for selection in (QuantileSVRCV, ExpectileSVRCV):
        one, two = (
            selection(tau=[0.3, 0.6], Cs=6, gammas=6, n_jobs=jobs).fit(X, y) for jobs in (1, 2)
        )
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_points_that_steps_do_not_solve_are_fitted_directly() -> None:
    """The members of a committee at such points are exact, with certificates."""
    few_steps = SelectionSettings(many=Many(steps=3.0), race=RaceSettings(steps=3.0))
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = np.sin(3 * X[:, 0]) + 0.01 * rng.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = QuantileSVRCV(Cs=[1000.0, 3000.0], gammas=[0.3, 1.0], cv=3)
        model._settings = few_steps
        model.fit(X, y)
    for machine in model.best_estimator_.machines:
        assert machine.dual_gap_ <= machine.tol


def test_points_without_a_solution_on_all_rows_are_left_to_their_folds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = np.sin(4 * X[:, 0]) + 0.2 * rng.normal(size=400)
    solved_from = members.solved_from

    def none_on_all_rows(member, *arguments):
        return None if member.fold is None else solved_from(member, *arguments)

    monkeypatch.setattr(members, "solved_from", none_on_all_rows)
    # folds of half the rows do not join a committee otherwise
    model = ExpectileSVRCV(tau=0.3, Cs=[1.0, 100.0], gammas=[0.5, 1.0], cv=2).fit(X, y)
    assert [member["fold"] for member in model.members_] == [0, 1]
    for member, point in zip(model.members_, model.fold_params_, strict=True):
        assert {"C": member["C"], "gamma": member["gamma"]} == point
    with pytest.raises(ValueError, match="positive semidefinite"):
        model.set_params(refit=True).fit(X, y)


def test_the_first_folds_have_rows_enough_to_tell():
    """With few rows the race begins on several folds, or on all of them."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(100, 2))
    y = np.sin(4 * X[:, 0]) + 0.2 * rng.normal(size=100)
    model = QuantileSVRCV(Cs=COSTS, gammas=GAMMAS, cv=5, refit=False)
    for rows, folds in ((60, {0, 3, 4, 5}), (101, {0, 5})):
        model._settings = SelectionSettings(race=RaceSettings(rows=rows))
        model.fit(X, y)
        assert set(np.isfinite(model.scores_).sum(axis=-1).ravel().tolist()) <= folds
        assert np.isfinite(model.scores_).all(axis=-1).any()


def test_data_without_noise_choose_the_largest_costs():
    """Their fits run out of steps, and are better than they look."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(120, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    grid = {"Cs": [1.0, 30.0, 1000.0, 30000.0], "gammas": [0.1, 0.5, 2.0], "refit": False}
    raced = QuantileSVRCV(**grid).fit(X, y)
    whole = QuantileSVRCV(prune=False, **grid).fit(X, y)
    assert raced.best_score_ == pytest.approx(whole.best_score_, rel=0.02)
    assert raced.best_params_ == whole.best_params_
