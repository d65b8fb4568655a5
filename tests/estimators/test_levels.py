"""Several levels at once, and what levels mean."""

import numpy as np
import pytest

import tausvm.estimators.machine as machine
from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

from .data import wave

X, Y = wave(90)
NEW = wave(40, seed=1)[0]
TAUS = [0.9, 0.1, 0.5]
LEVELS = (QuantileSVR, ExpectileSVR)


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_a_list_is_one_fit_each(estimator, form):
    model = estimator(tau=form(TAUS), C=5.0, tol=1e-8).fit(X, Y)
    together = model.predict(NEW)
    assert together.shape == (40, 3)
    for k, tau in enumerate(TAUS):
        alone = estimator(tau=tau, C=5.0, tol=1e-8).fit(X, Y)
        assert alone.predict(NEW).shape == (40,)
        np.testing.assert_allclose(together[:, k], alone.predict(NEW), atol=1e-6)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert model.intercept_.shape == model.dual_gap_.shape == model.n_iter_.shape == (3,)
    assert [result.dual_gap for result in model.result_] == list(model.dual_gap_)
    assert (model.n_support_ <= len(model.support_)).all()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@pytest.mark.parametrize("estimator", LEVELS)
def test_a_list_of_one(estimator):
    model = estimator(tau=[0.3]).fit(X, Y)
    assert model.predict(NEW).shape == (40, 1)
    assert isinstance(model.result_, list)
    assert model.dual_gap_.shape == (1,)


@pytest.mark.parametrize("estimator", LEVELS)
def test_levels_share_a_gram_matrix_and_start_warm(estimator, monkeypatch):
    solved = []

    def recorded(problem, solver, options, start):
        solved.append((problem.operator, problem.terms.upper[0], start))
        return solve(problem, solver, options, start)

    solve = machine.solve
    monkeypatch.setattr(machine, "solve", recorded)
    model = estimator(tau=TAUS, solver="block").fit(X, Y)
    assert len({id(gram) for gram, _, _ in solved}) == 1
    lowest, middle, highest = (model.result_[k] for k in (1, 2, 0))
    assert [start for _, _, start in solved] == [None, lowest, middle]
    assert highest.dual_gap <= 1e-3


def test_warm_starts_save_steps():
    X, Y = wave(400)
    taus = np.linspace(0.1, 0.9, 9)
    parameters = dict(C=10.0, gamma=1.0, solver="smo")
    together = ExpectileSVR(tau=taus, **parameters).fit(X, Y).n_iter_.sum()
    alone = sum(ExpectileSVR(tau=tau, **parameters).fit(X, Y).n_iter_ for tau in taus)
    assert together < 0.9 * alone


def test_coverage_of_quantiles():
    X, Y = wave(300)
    taus = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    below = Y[:, None] <= QuantileSVR(tau=taus, tol=1e-6).fit(X, Y).predict(X) + 1e-7
    above = Y[:, None] < QuantileSVR(tau=taus, tol=1e-6).fit(X, Y).predict(X) - 1e-7
    # an offset that is not penalised: at most a share τ lies strictly below, at least τ not above
    assert (above.mean(axis=0) <= taus + 1e-12).all()
    assert (below.mean(axis=0) >= taus - 1e-12).all()


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("tau", [0.5, 0.2, 0.97])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_mirror(estimator, tau, fit_intercept):
    """Level τ of y is minus level 1 − τ of −y."""
    parameters = dict(C=5.0, epsilon=0.05, tol=1e-9, fit_intercept=fit_intercept)
    level = estimator(tau=tau, **parameters).fit(X, Y)
    mirrored = estimator(tau=1 - tau, **parameters).fit(X, -Y)
    np.testing.assert_allclose(level.predict(NEW), -mirrored.predict(NEW), atol=1e-6)


@pytest.mark.parametrize("tau", [0.2, 0.5])
def test_mirror_of_classes(tau):
    level = TauSVC(tau=tau, C=5.0, tol=1e-9).fit(X, Y > 0)
    mirrored = TauSVC(tau=1 - tau, C=5.0, tol=1e-9).fit(X, Y <= 0)
    np.testing.assert_allclose(
        level.decision_function(NEW), -mirrored.decision_function(NEW), atol=1e-6
    )


def test_a_low_level_finds_more_positives():
    positives = [TauSVC(tau=tau).fit(X, Y > 0).predict(X).sum() for tau in (0.05, 0.5, 0.95)]
    assert positives[0] > positives[1] > positives[2]


@pytest.mark.parametrize("clip", [None, 3.5, "range"])
def test_clip(clip):
    y = np.clip(Y, -1.0, 1.5)
    new = np.r_[NEW, 3 * NEW]
    parameters = dict(C=1000.0, gamma=0.5, kernel="poly", coef0=1.0)
    free = SVR(**parameters).fit(X, y)
    model = SVR(clip=clip, **parameters).fit(X, y)
    low, high = {None: (-np.inf, np.inf), 3.5: (-3.5, 3.5), "range": (-1.0, 1.5)}[clip]
    assert free.predict(new).max() > 3.5
    prediction = model.predict(new)
    assert low <= prediction.min() and prediction.max() <= high
    if clip != 3.5:
        np.testing.assert_array_equal(prediction, np.clip(free.predict(new), low, high))
    assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize("clip", [1.0, "range"])
def test_the_certificate_is_of_what_was_not_clipped(clip):
    X, y = wave(300)
    y = y / np.abs(y).max()
    parameters = dict(tau=0.9, C=100.0, gamma=1.0, fit_intercept=False, solver="smo")
    plain = ExpectileSVR(**parameters).fit(X, y)
    clipped = ExpectileSVR(clip=clip, **parameters).fit(X, y)
    assert clipped.dual_gap_ == plain.dual_gap_
    raw = clipped.predict(X, raw=True)
    np.testing.assert_array_equal(raw, plain.predict(X))
    r = y - raw
    loss = 100.0 * np.where(r >= 0, 0.9, 0.1) * r**2
    norm = clipped.result_.beta @ clipped.result_.fitted
    np.testing.assert_allclose(clipped.result_.primal_objective, norm / 2 + loss.sum())


@pytest.mark.parametrize("estimator", (SVR, *LEVELS))
def test_constant_targets(estimator):
    for solver in ("auto", "block", "smo"):
        model = estimator(solver=solver).fit(X, np.full(90, 7.5))
        np.testing.assert_allclose(model.predict(NEW), 7.5)
        assert len(model.support_) == 0
        assert model.n_iter_ == 1
        model.set_params(fit_intercept=False).fit(X, np.full(90, 7.5))
        assert model.dual_gap_ <= model.tol
