"""Kernel ridge regression on folds: the proxy against the library's own expectile machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tausvm import ExpectileSVR, ExpectileSVRCV
from tausvm.estimators.data import TrainingSet
from tausvm.selection.grid import Axis, make_axis
from tausvm.selection.ridge import RidgeProxy
from tausvm.solvers.many import Stop

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(120, 3))
Y = np.sin(3 * X[:, 0]) + 0.2 * RNG.normal(size=120)
WEIGHT = RNG.uniform(0.5, 2.0, size=120)
GAMMAS, COSTS = np.geomspace(0.01, 100, 6), np.geomspace(0.01, 100, 6)


def task_of(y=Y, weight=WEIGHT, X=X):
    data = TrainingSet(X, y, weight, np.arange(len(y)), len(y))
    proxy = ExpectileSVRCV(cv=4, kernel="rbf", feature_metric=None)
    return proxy._posed(data, None, 10, 0.0)[1]


@pytest.mark.parametrize("weight", [np.ones(120), WEIGHT])
def test_a_fit_is_the_expectile_at_one_half(weight):
    """½ C Σ w (y − f)² is the squared pinball loss at ½ with the cost C."""
    task = task_of(weight=weight)
    found = RidgeProxy(1000, 1, None).fits(task, task.y, np.array([0.7]), np.array([3.0]))
    for fold, fit in zip(task.folds, found.fits, strict=True):
        train, test = fold.train, fold.validation
        machine = ExpectileSVR(tau=0.5, C=3.0, gamma=0.7, tol=1e-10, scale_C=False)
        machine.fit(task.X[train], task.y[train], sample_weight=weight[train])
        expected = np.square(task.y[test] - machine.predict(task.X[test]))
        np.testing.assert_allclose(fit.squares, expected, atol=1e-6)
        assert abs(fit.beta.sum()) < 1e-8
    np.testing.assert_array_equal(found.squares[test], fit.squares)


def test_the_best_point_of_a_whole_grid_is_found():
    """From every other point first; on a surface with one valley that is the same."""
    task = task_of()
    proxy = RidgeProxy(1000, 1, None)
    found = proxy.fits(task, task.y, GAMMAS, COSTS)
    losses = {
        (g, c): float(task.weight @ proxy.fits(task, task.y, np.array([g]), np.array([c])).squares)
        for g in GAMMAS
        for c in COSTS
    }
    assert (found.gamma, found.cost) == min(losses, key=losses.get)


def test_the_first_folds_choose():
    """The other folds' targets move nothing in the choice, and are fitted all the same."""
    task = task_of()
    proxy = RidgeProxy(30, 1, None)
    found = proxy.fits(task, task.y, GAMMAS, COSTS)
    assert len(found.fits) == 4
    assert np.isfinite(found.squares).all()
    alone = replace(task, folds=task.folds[:1])
    chosen = proxy.fits(alone, task.y, GAMMAS, COSTS)
    assert (found.gamma, found.cost) == (chosen.gamma, chosen.cost)


def test_nothing_is_told_when_time_is_up():
    task = replace(task_of(), stop=Stop(deadline=-np.inf))
    assert RidgeProxy(1000, 1, None).fits(task, task.y, GAMMAS, COSTS) is None


def test_an_indefinite_matrix_is_left_out():
    """Copies of rows and a cost beyond rounding: no fit, and no error."""
    same = np.ones((60, 2))
    task = task_of(Y[:60], np.ones(60), np.vstack([same[:30], same[30:] + 1e-9]))
    found = RidgeProxy(1000, 1, None).fits(task, task.y, np.array([1.0]), np.array([1.0, 1e18]))
    assert found is None or found.cost == 1.0


def test_little_memory_is_enough():
    task = task_of()
    fits = [
        RidgeProxy(60, 2, None).fits(replace(task, megabytes=size), task.y, GAMMAS, COSTS)
        for size in (1e-3, 100.0)
    ]
    np.testing.assert_array_equal(fits[0].squares, fits[1].squares)


def test_the_number_of_jobs_does_not_matter():
    task = task_of()
    one, two = (RidgeProxy(60, 2, jobs).fits(task, task.y, GAMMAS, COSTS) for jobs in (1, 2))
    np.testing.assert_array_equal(one.squares, two.squares)


def test_an_axis_near_a_value():
    axis = make_axis(10, 1.0, 512.0)
    np.testing.assert_allclose(axis.near(9.0, 2).values, [2.0, 4.0, 8.0, 16.0, 32.0])
    np.testing.assert_allclose(axis.near(1e9, 1).values, [256.0, 512.0])
    given = Axis(np.array([1.0, 2.0, 4.0]), False)
    assert given.near(1.0, 0) is given
