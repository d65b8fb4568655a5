"""What is chosen does not depend on the units of y, of C or of the weights."""

from functools import cache, partial

import numpy as np
import pytest

import tausvm
from tausvm import SVR

from ..estimators.data import PLAIN, wave

#: the grid alone is looked at here
SVRCV, QuantileSVRCV, ExpectileSVRCV = (
    partial(selection, **PLAIN)
    for selection in (tausvm.SVRCV, tausvm.QuantileSVRCV, tausvm.ExpectileSVRCV)
)

N = 320
RNG = np.random.default_rng(4)
X = RNG.uniform(-1, 1, size=(N, 2))
SIGNAL = np.sin(3 * X[:, 0]) + X[:, 1]
Y = SIGNAL + 0.1 * RNG.normal(size=N)
SELECTIONS = (SVRCV, QuantileSVRCV, ExpectileSVRCV)
#: each point of this grid differs from its neighbours by more than the fits' tolerance does
GRID = {"Cs": np.geomspace(0.1, 1000.0, 3), "gammas": np.geomspace(0.01, 100.0, 3), "cv": 3}


def scaled(selection, a):
    """The selection for targets a times as large, with an ε that grows with them."""
    epsilon = {"epsilon": 0.05 * a} if selection is SVRCV else {}
    return selection(scale_C=True, **epsilon, **GRID)


@cache
def unscaled(selection):
    return scaled(selection, 1.0).fit(X, Y)


@pytest.mark.parametrize(
    "a, b", [(1e-12, 0.0), (1e12, 0.0), (3.0, 1e5), (1.0, 3e4), (1.0, 1e6), (1.0, 1e9)]
)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_choice_follows_targets(selection, a, b):
    plain = unscaled(selection)
    moved = scaled(selection, a).fit(X, a * Y + b)
    assert moved.best_params_ == plain.best_params_
    power = 2 if selection is ExpectileSVRCV else 1
    # scores are of fits at the rough gap of a selection
    assert moved.best_score_ == pytest.approx(a**power * plain.best_score_, rel=0.05)
    found = (moved.predict(X) - b) / a
    assert np.sqrt(np.mean((found - SIGNAL) ** 2)) < 0.06
    assert np.max(moved.dual_gap_) <= moved.tol


def test_c_counts_in_spreads_where_it_is_asked_for():
    a = 1000.0 / Y.std()
    counted = SVRCV(scale_C=True, epsilon=1.0, **GRID).fit(X, a * Y)
    grid = {**GRID, "Cs": 1000.0 * GRID["Cs"]}
    plain = SVRCV(epsilon=1.0, **grid).fit(X, a * Y)
    assert plain.best_params_["C"] == pytest.approx(1000.0 * counted.best_params_["C"])
    assert counted.best_estimator_.machines[0].scale_C
    assert not SVRCV().scale_C and QuantileSVRCV().scale_C and ExpectileSVRCV().scale_C
    direct = SVR(scale_C=True, epsilon=1.0, **counted.best_params_).fit(X, a * Y)
    one = SVRCV(scale_C=True, epsilon=1.0, refit=True, **GRID).fit(X, a * Y)
    np.testing.assert_array_equal(one.predict(X), direct.predict(X))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_scores_are_asked_for_in_the_units_of_the_user(selection):
    """With rows enough for paths to end early, had the model's own loss decided."""
    y = 1e7 + 100.0 * Y
    seen = []

    def score(y_true, y_pred, sample_weight=None):
        seen.append((y_true, y_pred, sample_weight))
        return -float(np.mean((y_true - y_pred) ** 2))

    weight = RNG.uniform(0.5, 2.0, N)
    model = selection(scoring=score, **GRID).fit(X, y, sample_weight=weight)
    assert not np.isnan(model.scores_).any()
    for y_true, y_pred, sample_weight in seen[1:]:
        assert np.isin(y_true, y).all() and np.isin(sample_weight, weight).all()
        assert y.min() - 300 < y_pred.min() and y_pred.max() < y.max() + 300
    assert -2.0 * 10.0**2 < model.best_score_ < 0.0


@pytest.mark.parametrize("selection", SELECTIONS)
def test_no_offset_cannot_be_moved_but_scaled(selection):
    X, y = wave(90)
    plain = selection(fit_intercept=False, scale_C=True, epsilon=0.0, **GRID).fit(X, y)
    moved = selection(fit_intercept=False, scale_C=True, epsilon=0.0, **GRID).fit(X, 1e10 * y)
    assert moved.best_params_ == plain.best_params_
    far = selection(fit_intercept=False, scale_C=True, **GRID).fit(X, y + 100.0)
    assert np.abs(far.predict(X) - y - 100.0).mean() < 10.0


@pytest.mark.parametrize("clip", ["range", 2e6])
def test_predictions_are_clipped_in_the_units_of_the_user(clip):
    y = 1e6 + Y
    model = ExpectileSVRCV(clip=clip, Cs=[1e3], gammas=[30.0], cv=3).fit(X, y)
    bounds = (y.min(), y.max()) if clip == "range" else (-clip, clip)
    found = model.predict(5 * X)
    assert found.min() >= bounds[0] and found.max() <= bounds[1]


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9, 1e-12])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_constant_targets(selection, value):
    for offset in (True, False):
        if value and not offset:
            continue
        model = selection(Cs=3, gammas=2, cv=3, fit_intercept=offset).fit(X, np.full(N, value))
        np.testing.assert_array_equal(model.predict(X), value)
        assert model.dual_gap_ == 0.0 and model.best_score_ == 0.0


@pytest.mark.parametrize("selection", SELECTIONS)
def test_targets_constant_in_a_fold(selection):
    y = np.zeros(60)
    y[:20] = 1.0
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    model = selection(cv=splits, Cs=[1.0, 10.0], gammas=[1.0]).fit(X[:60], y)
    assert np.isfinite(model.scores_).all() and np.isfinite(model.predict(X)).all()
    assert model.scores_[0, 0, 0, 0] == model.scores_[0, 0, 1, 0]  # f = 0 at any C


def test_one_row_a_fold():
    model = ExpectileSVRCV(Cs=[1.0], gammas=[1.0], cv=20).fit(X[:20], Y[:20])
    assert len(model.members_) == 21 and np.isfinite(model.scores_).all()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_weights_of_any_size(selection):
    x, y = X[:90], Y[:90]
    few = {"Cs": 4, "gammas": 3, "cv": 3}
    plain = selection(**few).fit(x, y)
    for size in (1e-30, 1 / 90):  # a sum below the number of rows: shares
        light = selection(**few).fit(x, y, sample_weight=np.full(90, size))
        np.testing.assert_allclose(light.Cs_ * size, plain.Cs_)
        np.testing.assert_allclose(light.gammas_, plain.gammas_)
        assert light.best_index_ == plain.best_index_


def test_many_levels_at_once():
    taus = np.linspace(0.01, 0.99, 99)
    model = ExpectileSVRCV(tau=taus, Cs=[1.0], gammas=[1.0], cv=2, refit=True).fit(X[:40], Y[:40])
    assert model.predict(X[:5]).shape == (5, 99) and model.dual_gap_.shape == (99,)


def test_targets_whose_squares_are_no_numbers():
    for size in (1e-200, 1e200):
        with pytest.raises(ValueError, match="y must have differences between"):
            ExpectileSVRCV(**GRID).fit(X, size * Y)
