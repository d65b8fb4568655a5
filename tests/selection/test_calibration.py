"""Calibrated levels: shifts by hand, invariances, the guarantee, and what has no time for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, PredefinedSplit, TimeSeriesSplit

from tausvm import QuantileSVR, QuantileSVRCV
from tausvm.estimators.levels import in_order
from tausvm.persistence import load, save
from tausvm.selection.calibration import (
    conformal_quantile,
    held_out,
    intervals,
    plain_quantile,
    shifts,
)
from tausvm.selection.settings import CalibrationSettings, SelectionSettings

TAUS = [0.05, 0.25, 0.5, 0.75, 0.95]
GRID = {"Cs": [1.0, 30.0], "gammas": [0.5, 5.0], "cv": 3}
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(90, 2))
Y = np.sin(3 * X[:, 0]) + (0.3 + 0.3 * np.abs(X[:, 1])) * rng.normal(size=90)
NEW = rng.uniform(-1, 1, size=(50, 2))


def made(calibrate="oof", **parameters):
    return QuantileSVRCV(**{"tau": TAUS, "calibrate": calibrate, **GRID, **parameters})


def moved(model, new=NEW):
    """What ``predict`` should be from the certified functions."""
    return in_order(model.predict(new, raw=True), model.tau) + model.calibration_


# ---- shifts ----


def test_levels_and_their_counterparts():
    found = [
        (i.lower, i.upper, round(i.share, 9)) for i in intervals(np.array([0.9, 0.5, 0.3, 0.1]))
    ]
    assert found == [(2, None, 0.7), (3, 0, 0.8)]
    assert list(intervals(np.array([0.5]))) == []
    twice = [(i.lower, i.upper) for i in intervals(np.array([0.1, 0.1, 0.9]))]
    assert twice == [(0, 2), (1, None)]


def test_shifts_by_hand():
    y = np.arange(10.0)
    values = np.tile([3.0, 4.0, 4.5, 5.0, 6.0], (10, 1))
    # outside [4, 5] by 4 3 2 1 0 0 1 2 3 4: half of them by at most 1, or 2 for the fifth
    shift = shifts(np.array(TAUS), y, values, np.ones(10), plain_quantile)
    assert shift.tolist() == [-3.0, -2.0, 0.0, 2.0, 3.0] or shift[1] == -1.0
    np.testing.assert_array_equal(shift, -shift[::-1])
    inside = np.mean((values[:, 0] + shift[0] <= y) & (y <= values[:, 4] + shift[4]))
    assert inside >= 0.9
    wide = np.tile([-100.0, 100.0], (10, 1))  # nothing is moved inwards
    assert not shifts(np.array([0.1, 0.9]), y, wide, np.ones(10), plain_quantile).any()
    alone = shifts(np.array([0.8]), y, np.zeros((10, 1)), np.ones(10), plain_quantile)
    assert alone.tolist() == [7.0]  # eight of ten targets are at most 7
    alone = shifts(np.array([0.2]), y, np.full((10, 1), 9.0), np.ones(10), plain_quantile)
    assert alone.tolist() == [-7.0]


def test_equal_levels_move_together():
    values = np.zeros((12, 4))
    values[0, 1] = 1.0  # one of four equal levels has a row outside
    shift = shifts(np.full(4, 0.05), np.zeros(12), values, np.ones(12), plain_quantile)
    assert shift.tolist() == [-1.0] * 4


numbers = st.floats(-5, 5, width=16)


@settings(deadline=None, max_examples=50)
@given(
    y=arrays(np.float64, 12, elements=numbers),
    values=arrays(np.float64, (12, 4), elements=numbers),
    weight=arrays(np.float64, 12, elements=st.integers(1, 4).map(float)),
    taus=st.lists(st.sampled_from(np.arange(0.05, 1.0, 0.05).round(2)), min_size=4, max_size=4),
)
def test_shifts_rise_with_the_level_and_weights_are_copies(y, values, weight, taus):
    taus = np.array(taus)
    shift = shifts(taus, y, values, weight, plain_quantile)
    assert (np.diff(shift[np.argsort(taus, kind="stable")]) >= 0).all()
    times = weight.astype(int)
    copied = np.repeat(y, times), np.repeat(values, times, axis=0), np.ones(times.sum())
    np.testing.assert_array_equal(shifts(taus, *copied, plain_quantile), shift)
    for factor in (1e-7, 3e5):
        scaled = shifts(taus, y, values, factor * weight, plain_quantile)
        np.testing.assert_array_equal(scaled, shift)
    mirrored = shifts(1 - taus, -y, -values, weight, plain_quantile)
    if len(np.unique(taus)) == 4:
        np.testing.assert_allclose(mirrored, -shift, atol=1e-12)


def test_the_row_to_come_counts_as_one_outside():
    outside = np.arange(19.0)
    assert conformal_quantile(outside, np.ones(19), 0.9) == 17.0  # the 18th of 19
    assert conformal_quantile(outside, np.full(19, 0.1), 0.9) == 17.0
    assert conformal_quantile(outside[:9], np.ones(9), 0.9) == 8.0
    with pytest.raises(ValueError, match=r"needs 9 rows .* that hold 0\.9, got 8"):
        conformal_quantile(outside[:8], np.ones(8), 0.9)


# ---- the machine ----


@pytest.mark.parametrize("way", ["oof", "split"])
def test_predictions_are_moved_by_the_calibration(way):
    model = made(way).fit(X, Y)
    assert model.calibration_.shape == (5,)
    assert (np.diff(model.calibration_) >= 0).all() and model.calibration_[2] == 0
    np.testing.assert_array_equal(model.predict(NEW), moved(model))
    assert (np.diff(model.predict(NEW), axis=1) >= 0).all()
    np.testing.assert_array_equal(model.predict_interval(NEW), model.predict(NEW)[:, [0, 4]])
    assert (model.dual_gap_ <= model.tol).all()
    assert clone(model).get_params() == model.get_params()


def test_out_of_fold_rows_lie_inside():
    """By hand: the folds' own machines at the points that the others chose."""
    model = made(tau=[0.1, 0.9], refit="committee", tol=1e-6, feature_metric=None).fit(X, Y)
    unseen = np.empty((90, 2))
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    for level, tau in enumerate(model.tau):
        for k, (train, test) in enumerate(folds):
            others = [p for j, p in enumerate(model.fold_params_[level]) if j != k]
            fits = [QuantileSVR(tau=tau, tol=1e-6, **p).fit(X[train], Y[train]) for p in others]
            unseen[test, level] = np.mean([fit.predict(X[test]) for fit in fits], axis=0)
    outside = np.maximum(unseen.min(axis=1) - Y, Y - unseen.max(axis=1))
    width = np.sort(outside)[int(np.ceil(0.8 * 90)) - 1]
    assert width > 0, "this case is to be widened"
    np.testing.assert_allclose(model.calibration_, [-width, width], atol=0.02 * Y.std())


def test_without_calibration():
    model = made(None).fit(X, Y)
    assert not hasattr(model, "calibration_")
    again = made("oof").fit(X, Y)
    np.testing.assert_array_equal(again.predict(NEW, raw=True), model.predict(NEW, raw=True))
    again.set_params(calibrate=None).fit(X, Y)
    assert not hasattr(again, "calibration_")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("refit", ["committee", "average", True])
def test_every_refit(refit):
    model = made(refit=refit).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), moved(model))
    assert model.calibration_[4] > 0
    scores = made(refit=False).fit(X, Y)
    assert not hasattr(scores, "calibration_")


@pytest.mark.parametrize("way", ["oof", "split"])
def test_units_of_y(way):
    """Powers of two leave every digit as it is."""
    here = made(way).fit(X, Y)
    there = made(way).fit(X, 1024.0 * Y - 4096.0)
    np.testing.assert_allclose(there.calibration_, 1024.0 * here.calibration_, rtol=1e-6)
    moved_there = there.predict(NEW)
    np.testing.assert_allclose(moved_there, 1024.0 * here.predict(NEW) - 4096.0, atol=0.5)


def test_a_weight_is_as_many_copies():
    times = np.random.default_rng(1).integers(1, 4, size=50)
    fold = np.arange(50) % 3
    rows = np.repeat(np.arange(50), times)
    given = {"cv": PredefinedSplit(fold), "tol": 1e-8, "selection_tol": 1e-6}
    weighted = made(**given).fit(X[:50], Y[:50], sample_weight=times.astype(float))
    given["cv"] = PredefinedSplit(fold[rows])
    copied = made(**given).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighted.calibration_, copied.calibration_, atol=1e-3)


def test_one_level():
    model = made(tau=0.9).fit(X, Y)
    assert isinstance(model.calibration_, float) and model.calibration_ >= 0
    np.testing.assert_array_equal(
        model.predict(NEW), model.predict(NEW, raw=True) + model.calibration_
    )
    assert made(tau=0.5).fit(X, Y).calibration_ == 0.0


def test_clipped():
    model = made(clip="range").fit(X, Y)
    values = model.predict(3 * NEW)
    assert values.min() >= Y.min() and values.max() <= Y.max()
    assert (np.diff(values, axis=1) >= 0).all()


def test_rows_that_no_fold_validates():
    model = made(cv=TimeSeriesSplit(3)).fit(X, Y)
    assert model.calibration_[4] >= model.calibration_[3] >= 0


@pytest.mark.parametrize("way", ["oof", "split"])
def test_precomputed_and_saved(way, tmp_path):
    gram = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = made(way, kernel="precomputed").fit(gram, Y)
    np.testing.assert_array_equal(model.predict(gram), moved(model, gram))
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(gram), model.predict(gram))


def test_jobs_make_no_difference():
    one, two = made(n_jobs=1).fit(X, Y), made(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.calibration_, two.calibration_)


# ---- split ----


def test_what_is_held_out():
    weight = np.ones(40)
    weight[:10] = 0.0
    rows = held_out(weight, 0.2, None, None)
    assert len(rows) == 6 and rows.min() >= 10
    np.testing.assert_array_equal(rows, held_out(weight, 0.2, None, 0))
    groups = np.arange(40) // 5
    taken = set(groups[held_out(np.ones(40), 0.25, groups, 3)])
    kept = set(groups) - taken
    assert len(taken) == 2 and len(kept) == 6


def test_held_out_rows_are_not_fitted():
    model = made("split").fit(X, Y)
    rows = held_out(np.ones(90), 0.2, None, None)
    weight = np.ones(90)
    weight[rows] = 0.0
    without = made(None).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(NEW, raw=True), without.predict(NEW, raw=True))
    assert not set(np.concatenate(model.fold_rows_)) & set(rows)


def test_split_keeps_its_promise():
    """P(inside) ≥ coverage on average over the draws of rows, whatever the machine."""
    draw = np.random.default_rng(5)
    inside = {0.9: [], 0.5: []}
    for _ in range(40):
        rows = draw.uniform(-1, 1, size=(600, 1))
        y = rows[:, 0] + (0.2 + np.abs(rows[:, 0])) * draw.standard_t(3, size=600)
        # the largest C on few rows: hopelessly overfitted levels
        model = QuantileSVRCV(tau=TAUS, Cs=[100.0], gammas=[10.0], cv=2, calibrate="split")
        model._settings = SelectionSettings(calibration=CalibrationSettings(held_out=0.5))
        model.fit(rows[:60], y[:60])
        for coverage, shares in inside.items():
            low, high = model.predict_interval(rows[60:], coverage).T
            shares.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
    for coverage, shares in inside.items():
        error = np.std(shares) / np.sqrt(len(shares))
        assert np.mean(shares) >= coverage - 3 * error
        assert np.mean(shares) <= coverage + 0.12


# ---- what cannot be done ----


def test_bad_ways():
    with pytest.raises(ValueError, match=r"calibrate must be one of 'oof', 'split' or None, got"):
        made("cross").fit(X, Y)
    with pytest.raises(ValueError, match="needs 9 rows of equal weight held out"):
        made("split").fit(X[:20], Y[:20])


def test_no_time_to_calibrate():
    model = made(time_limit=1e-6)
    with pytest.warns(ConvergenceWarning, match="calibrate='oof' found no out-of-fold"):
        model.fit(X, Y)
    assert not hasattr(model, "calibration_")
    np.testing.assert_array_equal(model.predict(NEW), in_order(model.predict(NEW, raw=True), TAUS))
