"""Errors come before the first fit and name what is wrong; a bad point is not fatal."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

import tausvm.selection.folds
import tausvm.selection.search
from tausvm import SVRCV, QuantileSVRCV

from ..estimators.data import wave

X, Y = wave(60)


@pytest.fixture
def no_fit(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a fit was started")

    monkeypatch.setattr(tausvm.selection.search, "fit_gamma", refuse)


BAD = [
    ({"Cs": [1.0, 0.0]}, "Cs must be"),
    ({"Cs": [1.0, -1.0]}, "Cs must be"),
    ({"Cs": [np.nan]}, "Cs must be"),
    ({"Cs": []}, "empty grid"),
    ({"Cs": 0}, "Cs must be"),
    ({"Cs": 2.5}, "Cs must be"),
    ({"Cs": "ten"}, "Cs must be"),
    ({"gammas": [0.0]}, "gammas must be"),
    ({"gammas": [np.inf]}, "gammas must be"),
    ({"gammas": []}, "empty grid"),
    ({"cv": 61}, "cv=61"),
    ({"cv": 1}, "cv must be"),
    ({"cv": "five"}, "cv"),
    ({"cv": []}, "cv"),
    ({"cv": [([0, 1, 2], [99])]}, "rows below 60"),
    ({"cv": [([0], [1])]}, "cv must leave"),
    ({"cv": GroupKFold(2)}, "groups"),
    ({"scoring": "niceness"}, "scoring must be"),
    ({"scoring": "accuracy"}, "scoring must"),
    ({"scoring": 3}, "scoring must be"),
    ({"refit": "mean"}, "refit must be"),
    ({"prune": "yes"}, "prune must be"),
    ({"selection_tol": 0.0}, "selection_tol must be"),
    ({"n_jobs": 0}, "n_jobs must be"),
    ({"kernel": "gauss"}, "kernel must be"),
    ({"epsilon": -1.0}, "epsilon must be"),
    ({"clip": 0.001}, "clip must be"),
]


@pytest.mark.parametrize("parameters, message", BAD, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("selection", [SVRCV, QuantileSVRCV])
def test_bad_parameters(no_fit, selection, parameters, message):
    with pytest.raises(ValueError, match=message):
        selection(**parameters).fit(X, Y)


def test_bad_levels(no_fit):
    for tau in (0.0, 1.0, [], [0.5, 2.0]):
        with pytest.raises(ValueError, match="tau must"):
            QuantileSVRCV(tau=tau).fit(X, Y)


def test_points_that_do_not_converge_are_reported_once():
    with pytest.warns(ConvergenceWarning, match="fits of the selection") as caught:
        limits = {"max_iter": 1, "tol": 1.0, "solver": "smo", "prune": False}
        SVRCV(Cs=[1.0, 1e4], gammas=[0.1, 1.0], cv=2, **limits).fit(X, Y)
    assert len([w for w in caught if "selection" in str(w.message)]) == 1


def test_a_point_that_fails_is_left_out(monkeypatch):
    solve_parts = tausvm.selection.folds.solve_parts

    def fails_for_large_costs(families, *arguments):
        result, large = solve_parts(families, *arguments), families[0].costs > 5
        result.failed[:, :, large] = result.solved[:, :, large]
        result.intercept[:, :, large] = np.nan
        return result

    monkeypatch.setattr(tausvm.selection.folds, "solve_parts", fails_for_large_costs)
    with pytest.warns(ConvergenceWarning, match="left out"):
        model = SVRCV(Cs=[0.1, 1.0, 10.0], gammas=[1.0], cv=2).fit(X, Y)
    assert model.best_params_["C"] in (0.1, 1.0)
    assert np.isnan(model.scores_[0, 0, 2]).all()


def test_interrupt_says_what_happened(monkeypatch):
    solve_parts, calls = tausvm.selection.folds.solve_parts, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return solve_parts(*arguments)

    monkeypatch.setattr(tausvm.selection.folds, "solve_parts", interrupted)
    with pytest.raises(KeyboardInterrupt, match="selection interrupted"):
        SVRCV(Cs=2, gammas=3, cv=2).fit(X, Y)
