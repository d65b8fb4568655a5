"""Limits of time, on a clock of the tests' own, and interrupts."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tausvm
import tausvm.selection.folds
import tausvm.selection.machine
import tausvm.selection.members

from ..estimators.data import PLAIN, wave

#: the grid alone is looked at here
SVRCV, QuantileSVRCV, ExpectileSVRCV = (
    partial(selection, **PLAIN)
    for selection in (tausvm.SVRCV, tausvm.QuantileSVRCV, tausvm.ExpectileSVRCV)
)

X, Y = wave(420)
LEVELS = {"tau": [0.3, 0.6]}
SELECTIONS = [(SVRCV, {}), (QuantileSVRCV, LEVELS), (ExpectileSVRCV, LEVELS)]


class Clock:
    """A second a thousand looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1e-3
        return self.now


def limited(selection, levels, time_limit, **parameters):
    """The selection on a clock of its own, fitted, and what it warned of."""
    model = selection(Cs=5, gammas=4, cv=4, time_limit=time_limit, **levels, **parameters)
    model._clock = Clock()
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    return model, " ".join(str(w.message) for w in caught)


@pytest.mark.parametrize("refit", ["committee", "average", True])
@pytest.mark.parametrize("selection, levels", SELECTIONS)
def test_the_search_ends_and_the_best_point_so_far_is_fitted(selection, levels, refit):
    whole = selection(Cs=5, gammas=4, cv=4, refit=False, time_limit=1e9, **levels)
    whole._clock = Clock()
    whole.fit(X, Y)
    limit = 0.7 * whole._clock.now  # of which the search has a part
    model, said = limited(selection, levels, limit, refit=refit)
    assert model._clock.now <= limit + max(1.0, 0.1 * limit)
    looked = int(np.isfinite(model.scores_).any(axis=3).sum())
    assert 0 < looked < whole.scores_.size
    assert f"{looked} of {model.scores_[..., 0].size} points" in said
    assert np.isfinite(model.best_score_).all()
    told = [model.members_] if selection is SVRCV else model.members_
    best = [model.best_params_] if selection is SVRCV else model.best_params_
    for entries, point in zip(told, best, strict=True):
        (member,) = entries
        assert member["fold"] is None and member["weight"] == 1.0
        assert {key: member[key] for key in point} == point
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("selection, levels", SELECTIONS)
def test_no_time_at_all_is_the_middle_of_the_grid_with_its_gap(selection, levels):
    model, said = limited(selection, levels, 1e-9)
    assert "0 of" in said and "middle" in said and "time_limit" in said
    assert np.isnan(model.best_score_).all()
    assert np.isfinite(model.predict(X)).all()
    assert (np.atleast_1d(model.dual_gap_) > model.tol).all()
    assert f"{np.max(model.dual_gap_):.2e}" in said


def test_members_that_time_is_up_for_do_not_join(monkeypatch):
    """The first of a level stays, whatever its gap; the others only where they are solved."""
    clock = Clock()
    search = tausvm.selection.machine.Search
    run = search.run

    def run_and_take_long(self):
        run(self)
        clock.now += 1e6 * (1.0 - 1e-4)  # little is left of 1e6 seconds

    model = QuantileSVRCV(Cs=[0.1, 1.0, 10.0], gammas=[0.3, 3.0], cv=4, time_limit=1e6, **LEVELS)
    monkeypatch.setattr(search, "run", run_and_take_long)
    model._clock = clock
    model.fit(X, Y)
    full = [len(entries) for entries in model.members_]
    assert min(full) > 1
    solved_from = tausvm.selection.members.solved_from

    def slow(*arguments):
        clock.now += 60.0
        return solved_from(*arguments)

    monkeypatch.setattr(tausvm.selection.members, "solved_from", slow)
    model._clock = clock = Clock()
    model.fit(X, Y)
    assert [len(entries) for entries in model.members_] < full
    assert all(len(entries) >= 1 for entries in model.members_)


@pytest.mark.parametrize("refit", ["committee", False])
def test_time_enough_changes_nothing(refit):
    parameters = {"Cs": 3, "gammas": 3, "cv": 3, "refit": refit}
    free = SVRCV(**parameters).fit(X, Y)
    limited = SVRCV(time_limit=1e9, **parameters).fit(X, Y)
    np.testing.assert_array_equal(free.scores_, limited.scores_)
    if refit:
        np.testing.assert_allclose(free.predict(X), limited.predict(X), atol=1e-3)


def test_bad_limits():
    for limit in (0.0, -1.0, np.nan, "long"):
        with pytest.raises(ValueError, match="time_limit must be"):
            SVRCV(time_limit=limit).fit(X, Y)


def test_interrupting_the_last_fits_leaves_at_once(monkeypatch):
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(tausvm.selection.members, "solved_from", interrupted)
    with pytest.raises(KeyboardInterrupt):
        QuantileSVRCV(Cs=2, gammas=2, cv=3).fit(X, Y)
    assert len(calls) == 1


def test_kernel_values_beyond_float32_are_judged_in_float64():
    """Of few rows they are held in float64, where polynomials of raw columns have room."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    plain = {"feature_metric": None, "kernel": "poly", "degree": 4, "coef0": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ExpectileSVRCV(Cs=[1.0], gammas=[1e3, 1e11], cv=3, **plain).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).any()
