"""Selections that choose on some rows and fit all of them by landmarks."""

from __future__ import annotations

import copy
import logging
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GroupKFold

from tausvm import SVRCV, ExpectileSVRCV, QuantileSVR, QuantileSVRCV
from tausvm.persistence import load, save
from tausvm.selection.large import landmark_count, parts_of_rows, shared_places
from tausvm.selection.plan import Plan
from tausvm.selection.progress import heartbeat, size, span
from tausvm.selection.settings import BeatSettings, LargeSettings

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(600, 3))
Y = np.sin(3 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0)) * RNG.normal(size=600)
NEW = RNG.uniform(-1, 1, size=(400, 3))
SMALL = {"Cs": [1.0, 10.0], "gammas": [0.3, 1.0, 3.0], "cv": 3, "feature_metric": "diagonal"}
LEVELS = [0.1, 0.5, 0.9]


def made(kind=QuantileSVRCV, rows=200, **parameters):
    """A selection that chooses on few rows."""
    levels = {} if kind is SVRCV else {"tau": LEVELS}
    model = kind(**{**levels, **SMALL, "approximation": "landmarks", "landmarks": 80, **parameters})
    settings = model._settings
    model._settings = replace(settings, large=LargeSettings(rows, held_out_rows=100))
    return model


@pytest.fixture(scope="module")
def fitted():
    return made().fit(X, Y)


def test_all_levels_share_landmarks_and_gamma(fitted):
    machines = fitted.best_estimator_
    members = [machine.machines[0] for machine in machines]
    assert len({member.gamma for member in members}) == 1
    for member in members:
        np.testing.assert_array_equal(member.support_, members[0].support_)
        assert len(member.support_) <= 80
    assert [point["C"] for point in fitted.best_params_] == [member.C for member in members]
    assert all(point["gamma"] == members[0].gamma for point in fitted.best_params_)


def test_the_choice_is_made_on_some_rows(fitted):
    chosen = np.unique(np.concatenate(fitted.fold_rows_))
    assert len(chosen) == 200
    assert chosen.min() >= 0 and chosen.max() < 600


def test_it_predicts_as_well_as_the_full_problem(fitted):
    full = made(approximation=None, landmarks=None).fit(X, Y)
    targets = np.sin(3 * NEW[:, 0]) + (0.1 + 0.3 * (NEW[:, 1] > 0)) * RNG.normal(size=400)
    for level, tau in enumerate(LEVELS):
        losses = [
            mean_pinball_loss(targets, model.predict(NEW)[:, level], alpha=tau)
            for model in (fitted, full)
        ]
        assert losses[0] < 1.1 * losses[1]


def test_the_gap_is_that_of_the_full_problem(fitted):
    """Of the function that predicts on the rows that it was fitted to; those held out are not."""
    member = fitted.best_estimator_[1].machines[0]
    rows = len(member.result_.beta)
    assert rows == 500
    assert fitted.dual_gap_[1] == member.dual_gap_ == fitted.members_[1][0]["dual_gap"]
    assert member.result_.exact and member.result_.landmark_gap <= fitted.tol
    assert (fitted.dual_gap_ >= 0).all() and (fitted.dual_gap_ < 0.2).all()


def test_rows_held_out_calibrate():
    plain, moved = made(calibrate=None).fit(X, Y), made().fit(X, Y)
    assert not hasattr(plain, "calibration_")
    assert moved.calibration_.shape == (3,) and moved.calibration_[1] == 0
    assert (np.diff(moved.predict(NEW), axis=1) >= 0).all()
    assert len(plain.best_estimator_[0].machines[0].result_.beta) == 600


@pytest.mark.parametrize("kind", [SVRCV, ExpectileSVRCV])
def test_other_machines(kind):
    model = made(kind).fit(X, Y)
    assert np.isfinite(model.predict(NEW)).all()
    assert len(np.atleast_1d(model.dual_gap_)) == (1 if kind is SVRCV else 3)


def test_auto_goes_by_the_rows():
    model = made(approximation="auto", landmarks=None).fit(X[:80], Y[:80])
    assert not hasattr(model.best_estimator_[0].machines[0].result_, "landmarks")


def test_it_is_reproducible(fitted):
    again = made().fit(X, Y)
    np.testing.assert_array_equal(again.predict(NEW), fitted.predict(NEW))
    other = made(random_state=1).fit(X, Y)
    assert (other.fold_rows_[0] != fitted.fold_rows_[0]).any()
    assert clone(fitted).get_params() == fitted.get_params()


def test_it_is_saved(fitted, tmp_path):
    fitted = copy.copy(fitted)
    del fitted._settings  # of these tests
    save(fitted, tmp_path / "model.tausvm")
    np.testing.assert_array_equal(load(tmp_path / "model.tausvm").predict(NEW), fitted.predict(NEW))


def test_weights_sparse_rows_and_groups():
    weight = RNG.integers(0, 3, size=600)
    model = made().fit(X, Y, sample_weight=weight)
    assert not np.isin(np.flatnonzero(weight == 0), np.concatenate(model.fold_rows_)).any()
    assert np.isfinite(made(kernel="rbf").fit(sp.csr_array(X), Y).predict(NEW)).all()
    groups = np.arange(600) // 6
    grouped = made(cv=GroupKFold(3)).fit(X, Y, groups=groups)
    train = grouped.fold_rows_[0]
    others = np.setdiff1d(np.concatenate(grouped.fold_rows_), train)
    assert not set(groups[train]) & set(groups[others])


def test_no_machine_is_fitted_without_refit():
    model = made(refit=False).fit(X, Y)
    assert not hasattr(model, "best_estimator_") and hasattr(model, "cv_results_")


def test_a_gap_may_be_asked_for():
    model = made(landmarks=None, landmark_tol=0.05).fit(X, Y)
    assert (model.dual_gap_ <= 0.05).all()


def test_a_gap_that_landmarks_leave_is_told():
    """Where their number is ours; who gives one is told by dual_gap_."""
    model = made(landmarks=None, gammas=[30.0], Cs=[100.0], cache_size=0.001, tol=1e-2)
    large = replace(model._settings.large, least_landmarks=5, most_landmarks=5)
    model._settings = replace(model._settings, large=large)
    with pytest.warns(ConvergenceWarning, match=r"with 5 landmarks the relative gap"):
        model.fit(X, Y)
    assert model.dual_gap_.max() > 0.1


class Scores:
    """What :func:`shared_places` asks of a search: two levels, three γ, two C, one fold."""

    def __init__(self, scores, best):
        self.scores = np.array(scores, dtype=float)[..., None]
        self._best = best

    def best(self, level):
        return self._best[level]

    def comparable(self, level):
        return [0]


def test_one_gamma_serves_all_levels():
    nan = np.nan
    alike = [[[-3.0, -4.0], [-1.0, -2.0], [-5.0, -5.0]], [[-2.0, -9.0], [-1.1, -1.0], [-3, -3]]]
    assert shared_places(Scores(alike, [(1, 0), (1, 1)])) == [(1, 0), (1, 1)]
    # the race has left the second level with one γ, and the first without that one
    apart = [[[-3.0, -4.0], [-1.0, -2.0], [nan, nan]], [[nan, nan], [nan, nan], [-3.0, -2.0]]]
    places = shared_places(Scores(apart, [(1, 0), (2, 1)]))
    assert len({gamma for gamma, _ in places}) == 1
    assert places in ([(1, 0), (1, 1)], [(2, 0), (2, 1)])
    nothing = np.full((2, 3, 2), nan)
    assert shared_places(Scores(nothing, [(1, 1), (1, 1)])) == [(1, 1), (1, 1)]
    assert shared_places(Scores(alike, [(1, 0), None])) == []


@pytest.mark.parametrize("limit", [1e-6, 0.05])
def test_a_time_limit_leaves_a_model(limit):
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = made(time_limit=limit).fit(X, Y)
    assert np.isfinite(model.predict(NEW)).all()


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"approximation must be .*got 'nothing'"):
        made(approximation="nothing").fit(X, Y)
    with pytest.raises(ValueError, match=r"landmarks must be .* got 0"):
        made(landmarks=0).fit(X, Y)
    with pytest.raises(ValueError, match="cv must be an integer or a splitter"):
        made(cv=[(np.arange(300), np.arange(300, 600))]).fit(X, Y)
    with pytest.raises(ValueError, match="landmarks must be None where approximation=None"):
        QuantileSVR(landmarks=5).fit(X, Y)


def test_rows_are_split_and_landmarks_counted():
    settings = LargeSettings(selection_rows=50, trend_rows=70)
    parts = parts_of_rows(1000, 30, settings, np.random.default_rng(0))
    assert [len(rows) for rows in parts] == [50, 30, 70]
    assert len(np.unique(np.concatenate(parts))) == 150
    assert all((np.diff(rows) > 0).all() for rows in parts)
    assert landmark_count(7, 10**6, 100.0, settings) == 7
    assert landmark_count(None, 10**6, 2000.0, settings) == 524
    assert landmark_count(None, 10**8, 2000.0, settings) == 250
    assert landmark_count(None, 30_000, 2000.0, settings) == 1000


def test_a_fit_says_beforehand_what_it_does(caplog):
    with caplog.at_level(logging.INFO, logger="tausvm"):
        made(verbose=True).fit(X, Y)
    lines = caplog.messages
    assert lines[0].startswith(
        "QuantileSVRCV: 600 rows: choose on 200 of them, then fit functions of 80 landmarks to "
        "500, 100 held out to calibrate; about "
    )
    assert lines[0].endswith("of memory")
    assert any("fitting functions of landmarks to 500 rows, about" in line for line in lines)
    assert any("relative gap" in line for line in lines)
    assert any("80 landmarks, " in line and "from the full problem" in line for line in lines)


def test_a_small_fit_says_so_too(caplog):
    with caplog.at_level(logging.INFO, logger="tausvm"):
        made(SVRCV, verbose=True, approximation=None, landmarks=None).fit(X[:80], Y[:80])
    assert caplog.messages[0].startswith("SVRCV: 80 rows: choose and fit on all of them; about 0 s")


def test_a_silent_fit_says_nothing(caplog):
    with caplog.at_level(logging.INFO, logger="tausvm"):
        made().fit(X, Y)
    assert not caplog.records


def test_a_heart_beats_without_a_terminal(caplog):
    """Beats come by the fake clock's word, and end with the work."""
    now, heard = iter(range(0, 1000, 40)), threading.Event()
    beats = BeatSettings(seconds=1e-3, clock=lambda: float(next(now)))

    class Ear(logging.Handler):
        def emit(self, record):
            if "longer than expected" in record.getMessage():
                heard.set()

    ear = Ear()
    logging.getLogger("tausvm").addHandler(ear)
    try:
        with caplog.at_level(logging.INFO, logger="tausvm"):
            with heartbeat(True, "work", 100.0, beats):
                assert heard.wait(60)
            with heartbeat(False, "silence", 100.0, beats):
                pass
    finally:
        logging.getLogger("tausvm").removeHandler(ear)
    assert caplog.messages[:3] == [
        "work: 40 s so far, about 60 s left",
        "work: 80 s so far, about 20 s left",
        "work: 2 min so far, longer than expected",
    ]
    assert not any(thread.name == "tausvm-heartbeat" for thread in threading.enumerate())


def test_plans():
    common = {"d": 10, "levels": 5, "held_out": 0, "jobs": 1, "threads": 2, "megabytes": 2000.0}
    many = Plan(n=10**6, chosen=5000, landmarks=500, settings=LargeSettings(), **common)
    more = replace(many, n=2 * 10**6)
    assert more.selection_seconds == many.selection_seconds
    assert more.landmark_seconds == pytest.approx(2 * many.landmark_seconds)
    assert replace(many, jobs=2).seconds < many.seconds
    # features in float32 beyond cache_size lie in a file
    assert 2000 < replace(many, landmarks=4000).all_megabytes < 8000
    by_gap = str(replace(many, gap=0.01))
    assert "as many landmarks as a gap of 0.01 takes, at most 500" in by_gap
    assert str(replace(many, landmarks=0, n=9000)).startswith("9,000 rows: choose and fit on all")
    assert span(59.6) == "60 s" and span(300) == "5 min"
    assert size(512) == "512 MB" and size(2048) == "2.0 GB"
