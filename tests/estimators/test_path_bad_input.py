"""Path machines: bad input is named before any work; what cannot be kept or followed is told."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tausvm.estimators.path_machine as estimators
from tausvm import TauPathSVC, TauPathSVR
from tausvm.solvers.path import PathSettings
from tausvm.solvers.path.margin import Margin

from .data import wave

X, Y = wave(40)
LABELS = np.median(Y) < Y
BOTH = (TauPathSVC, TauPathSVR)


def targets(estimator):
    return LABELS if estimator is TauPathSVC else Y


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a path is asked for."""

    def refuse(*args, **kwargs):
        raise AssertionError("work before the checks were done")

    monkeypatch.setattr(estimators, "follow_path", refuse)


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0),
        ("C", -1.0),
        ("C", np.nan),
        ("C", "1"),
        ("kernel", "rfb"),
        ("gamma", 0.0),
        ("degree", -1),
        ("coef0", np.inf),
        ("tol", 0.0),
        ("fit_intercept", "yes"),
        ("penalise_intercept", None),
        ("cache_size", 0),
        ("memory_limit", -5),
        ("memory_limit", "1 GB"),
        ("verbose", "loud"),
    ],
)
def test_parameters(estimator, name, value, no_work):
    with pytest.raises(ValueError) as caught:
        estimator(**{name: value}).fit(X, targets(estimator))
    assert str(caught.value).startswith(name)
    assert repr(value) in str(caught.value)


def test_monotone(no_work):
    with pytest.raises(ValueError, match=r"monotone must be True or False, got 'yes'"):
        TauPathSVR(monotone="yes").fit(X, Y)
    with pytest.raises(ValueError, match=r"ordered must be True or False, got 'yes'"):
        TauPathSVR(ordered="yes").fit(X, Y)


@pytest.mark.parametrize("estimator", BOTH)
def test_data(estimator, no_work):
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator().fit(broken, targets(estimator))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
        estimator().fit(X, targets(estimator)[:-1])
    with pytest.raises(ValueError, match=r"sample_weight must be non-negative, got -1\.0"):
        estimator().fit(X, targets(estimator), np.r_[-1.0, np.ones(39)])


def test_one_class(no_work):
    with pytest.raises(ValueError, match=r"y must hold at least two classes, got one class.*'a'"):
        TauPathSVC().fit(X, np.full(40, "a"))
    weight = np.where(LABELS, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"one class only: (np\.)?False"):
        TauPathSVC().fit(X, LABELS, weight)
    with pytest.raises(ValueError, match="Unknown label type"):
        TauPathSVC().fit(X, Y)


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("tau", [-0.1, 1.1, np.nan, "half", None, [], [[0.5]], [0.2, 1.5]])
def test_levels(estimator, tau):
    model = estimator().fit(X, targets(estimator))
    if tau is not None or estimator is TauPathSVR:  # a classifier then asks all levels
        with pytest.raises(ValueError, match=r"^tau must be a number in \[0, 1\]"):
            model.predict(X, tau)
    for ask in (model.sets, model.dual_coef, model.intercept, model.certificate):
        with pytest.raises(ValueError, match=r"^tau must be"):
            ask(tau)
    with pytest.raises(ValueError, match=r"^tau must be a number strictly between 0 and 1"):
        model.at(tau)


def test_other_questions():
    model = TauPathSVC().fit(X, LABELS)
    with pytest.raises(ValueError, match=r"false_negative must be .*> 0, got 0"):
        model.for_costs(false_positive=1, false_negative=0)
    with pytest.raises(AttributeError, match="linear"):
        model.coef(0.5)
    with pytest.raises(AttributeError, match=r"coef\(tau\)"):
        _ = model.coef_
    with pytest.raises(ValueError, match="X has 3 features, but TauPathSVC is expecting 2"):
        model.predict(np.ones((4, 3)), 0.2)
    with pytest.raises(NotFittedError):
        TauPathSVC().predict(X)
    with pytest.raises(NotFittedError):
        TauPathSVR().at(0.5)


@pytest.mark.parametrize("estimator", BOTH)
def test_matrices_that_are_no_kernels(estimator):
    indefinite = np.eye(40)
    indefinite[0, 1] = indefinite[1, 0] = 2.0
    with pytest.raises(ValueError, match=r"kernel='precomputed' .*smallest eigenvalue is -1"):
        estimator(kernel="precomputed").fit(indefinite, targets(estimator))
    with pytest.raises(ValueError, match="needs a square X in fit"):
        estimator(kernel="precomputed").fit(np.ones((40, 7)), targets(estimator))

    def saddle(a, b):
        return a[:, :1] @ b[:, :1].T - 3 * (a[:, 1:] @ b[:, 1:].T) + 10

    with pytest.raises(ValueError, match="kernel must be positive semidefinite"):
        estimator(kernel=saddle, C=10.0).fit(X, targets(estimator))


@pytest.mark.parametrize("estimator", BOTH)
def test_a_path_that_outgrows_its_memory_is_thinned(estimator):
    whole = estimator(gamma=1.0).fit(X, targets(estimator))
    limit = 0.4 * whole.paths_[0].nbytes / 2**20
    with pytest.warns(ConvergenceWarning, match=r"outgrew memory_limit=.*one of \d+ kinks"):
        thinned = estimator(gamma=1.0, memory_limit=limit).fit(X, targets(estimator))
    assert thinned.result_.thinned > 1
    assert len(thinned.paths_[0]) < 0.6 * len(whole.paths_[0])
    assert thinned.n_kinks_ == whole.n_kinks_
    taus = np.random.default_rng(0).uniform(size=50)
    gaps = []
    for tau in taus:
        result = thinned.certificate(tau)
        problem = thinned._problems[0]
        assert (result.beta >= problem.box.lower(tau) - 1e-12).all()
        assert (result.beta <= problem.box.upper(tau) + 1e-12).all()
        gaps.append(result.dual_gap)
    assert 1e-6 < max(gaps) < 0.2
    assert np.mean(gaps) <= thinned.dual_gap_


def break_down(monkeypatch, where):
    """Let free points be lost at some states, as rounding may lose them."""
    restored = Margin.restored
    monkeypatch.setattr(
        Margin, "restored", lambda self, state, box: not where(state) and restored(self, state, box)
    )


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_where_kinks_cannot_be_followed_levels_are_solved(estimator, fit_intercept, monkeypatch):
    """A walk that breaks down beyond τ = 0.8: what was found stays, the rest is solved."""
    whole = estimator(fit_intercept=fit_intercept).fit(X, targets(estimator))
    break_down(monkeypatch, lambda state: -0.2 < state.t < 0)
    model = estimator(fit_intercept=fit_intercept, tol=1e-4)
    model._settings = PathSettings(batch_kinks=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, targets(estimator))
    assert model.dual_gap_ <= 5e-4
    low, high = model.result_.resolved
    if estimator is TauPathSVC and not fit_intercept:  # begins at τ = 0
        assert 0.7 < low <= 0.8
    else:  # from ½ down too: t counts from both ends
        assert low < 0.2
    assert high > 0.8
    for tau in (0.03, 0.1, 0.3, 0.7, 0.93, 0.99):
        result = model.certificate(tau)
        assert result.dual_gap <= model.dual_gap_
        expected = whole.certificate(tau).primal_objective
        assert result.primal_objective == pytest.approx(expected, rel=5e-4)


def test_where_the_first_leg_cannot_be_followed_the_rest_is_solved(monkeypatch):
    """A walk from τ = 0 that breaks down at 0.1."""
    whole = TauPathSVC(fit_intercept=False).fit(X, LABELS)
    # the walk of the smaller class to τ = 0 counts from 0 to 1 too
    break_down(monkeypatch, lambda state: len(state.beta) == len(X) and 0.1 < state.t < 0.5)
    model = TauPathSVC(fit_intercept=False, tol=1e-4)
    model._settings = PathSettings(batch_kinks=4)
    model.fit(X, LABELS)
    assert model.dual_gap_ <= 1e-4
    low, high = model.result_.resolved
    assert 0.0 < low <= 0.1
    assert high >= 0.4
    for tau in (0.03, 0.3, 0.5, 0.7, 0.99):
        expected = whole.certificate(tau).primal_objective
        assert model.certificate(tau).primal_objective == pytest.approx(expected, rel=3e-4)


def test_where_no_kink_can_be_followed_all_levels_are_solved(monkeypatch):
    break_down(monkeypatch, lambda state: True)
    model = TauPathSVC(tol=1e-3).fit(X, LABELS)
    assert model.n_kinks_ == 0
    assert model.dual_gap_ <= 1e-3
    assert model.certificate(0.4).dual_gap <= model.dual_gap_
    with pytest.raises(ValueError, match=r"cache_size must be larger than 0\.001 MB"):
        TauPathSVC(cache_size=0.001).fit(X, LABELS)


def test_nothing_is_said_about_a_whole_path():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in BOTH:
            estimator().fit(X, targets(estimator))


def nowhere(a, b):
    """1 on the diagonal, not a number elsewhere."""
    same = (a[:, None] == b[None]).all(axis=2)
    return np.where(same, 1.0, np.nan)


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    ("parameters", "factor"),
    [
        ({"kernel": nowhere}, 1.0),
        ({"kernel": "linear"}, 1e200),
        ({"kernel": "poly", "gamma": 1e300}, 1.0),
        ({"kernel": "poly", "gamma": 1.0}, 1e120),
    ],
)
def test_kernel_values_that_are_no_numbers(estimator, parameters, factor):
    finite = r"^kernel (must give finite numbers|values must be finite), got"
    with pytest.raises(ValueError, match=finite):
        estimator(**parameters).fit(factor * X, targets(estimator))


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize("C", [1e300, 5e-324])
def test_costs_beyond_float64(estimator, C, no_work):
    with pytest.raises(ValueError, match=rf"^C must be .* got {re.escape(str(C))}"):
        estimator(C=C).fit(X, targets(estimator))


@pytest.mark.parametrize(
    ("name", "value"), [("time_limit", 0.0), ("time_limit", "1 s"), ("max_iter", -2)]
)
@pytest.mark.parametrize("estimator", BOTH)
def test_limits(estimator, name, value, no_work):
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        estimator(**{name: value}).fit(X, targets(estimator))


@pytest.mark.parametrize("estimator", BOTH)
def test_a_limit_is_told_with_the_levels_that_were_reached(estimator):
    match = r"reached max_iter=60 when .* between \S+ and 0\.\d+; .*exceed tol=1e-06 for tau"
    with pytest.warns(ConvergenceWarning, match=match):
        model = estimator(max_iter=60, gamma=1.0).fit(X, targets(estimator))
    low, high = model.result_.reached
    assert low <= high < 1
    assert 1e-6 < model.certificate(0.5 * (high + 1)).dual_gap <= model.dual_gap_
    with pytest.warns(ConvergenceWarning, match=r"reached time_limit=1e-09"):
        estimator(time_limit=1e-9).fit(X, targets(estimator))


def test_a_time_limit_is_shared_by_the_classes():
    three = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    with pytest.warns(ConvergenceWarning, match="reached time_limit=1e-09"):
        model = TauPathSVC(time_limit=1e-9).fit(X, three)
    assert (model.dual_gap_ > 0.5).all()
    assert model.predict(X, 0.3).shape == (40,)


def test_hopeless_costs_end_with_a_warning():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2))
    labels = rows[:, 0] + rng.normal(size=30) > 0
    with pytest.warns(ConvergenceWarning, match="for tau between"):
        TauPathSVC(gamma=1.0, C=1e10, penalise_intercept=True).fit(rows, labels)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("estimator", BOTH)
def test_five_rows_and_a_cubic_kernel(estimator, seed):
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    y = np.array([1, 0, 1, 0, 1]) if estimator is TauPathSVC else y
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(kernel="poly", C=0.004).fit(rows, y)
