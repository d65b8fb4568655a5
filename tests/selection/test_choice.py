"""The choice is that of a plain loop of cold fits, and shared work changes nothing."""

from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

import tausvm
from tausvm import SVR, ExpectileSVR, QuantileSVR
from tausvm.metrics import mean_expectile_loss

from ..estimators.data import PLAIN, wave

#: the grid alone is looked at here
SVRCV, QuantileSVRCV, ExpectileSVRCV = (
    partial(selection, **PLAIN)
    for selection in (tausvm.SVRCV, tausvm.QuantileSVRCV, tausvm.ExpectileSVRCV)
)

X, Y = wave(120)
CS = np.geomspace(0.01, 100.0, 5)
GAMMAS = np.geomspace(0.02, 20.0, 4)
TAUS = [0.75, 0.1, 0.5]
FOLDS = KFold(4, shuffle=True, random_state=3)


def epsilon_loss(y, f):
    return float(np.maximum(np.abs(y - f) - 0.1, 0.0).mean())


#: selecting estimator, its machine, what is added to both, the loss
CASES = [
    pytest.param(SVRCV, SVR, {}, epsilon_loss, id="svr"),
    *[
        pytest.param(
            QuantileSVRCV,
            QuantileSVR,
            {"tau": tau},
            lambda y, f, tau=tau: mean_pinball_loss(y, f, alpha=tau),
            id=f"quantile-{tau}",
        )
        for tau in (0.1, 0.5)
    ],
    *[
        pytest.param(
            ExpectileSVRCV,
            ExpectileSVR,
            {"tau": tau},
            lambda y, f, tau=tau: mean_expectile_loss(y, f, tau=tau),
            id=f"expectile-{tau}",
        )
        for tau in (0.1, 0.5)
    ],
]


def plain_loop(machine, extra, loss, folds, X=X, y=Y):
    """Mean losses, (gammas, Cs): every fit from nothing, to a tight tolerance."""
    table = np.zeros((len(GAMMAS), len(CS)))
    for g, gamma in enumerate(GAMMAS):
        for c, C in enumerate(CS):
            losses = []
            for train, test in folds:
                model = machine(C=C, gamma=gamma, tol=1e-7, **extra).fit(X[train], y[train])
                losses.append(loss(y[test], model.predict(X[test])))
            table[g, c] = np.mean(losses)
    return table


@pytest.mark.parametrize("intercept, prune", [(True, True), (False, False)])
@pytest.mark.parametrize("selection, machine, extra, loss", CASES)
def test_same_choice_as_cold_fits(selection, machine, extra, loss, intercept, prune):
    extra = {"fit_intercept": intercept, **extra}
    model = selection(Cs=CS, gammas=GAMMAS, cv=FOLDS, prune=prune, **extra).fit(X, Y)
    losses = plain_loop(machine, extra, loss, list(FOLDS.split(X)))
    g, c = np.unravel_index(losses.argmin(), losses.shape)
    assert model.best_params_ == {"C": CS[c], "gamma": GAMMAS[g]}
    assert model.best_score_ == pytest.approx(-losses[g, c], rel=0.01)
    tried = ~np.isnan(model.scores_).any(axis=3)[0]
    np.testing.assert_allclose(-model.scores_.mean(axis=3)[0][tried], losses[tried], rtol=0.02)


@pytest.mark.parametrize(
    "selection, machine", [(QuantileSVRCV, QuantileSVR), (ExpectileSVRCV, ExpectileSVR)]
)
def test_levels_together_choose_as_alone(selection, machine):
    together = selection(tau=TAUS, Cs=CS, gammas=GAMMAS, cv=FOLDS, refit=True).fit(X, Y)
    assert together.predict(X).shape == (len(X), 3)
    for k, tau in enumerate(TAUS):
        alone = selection(tau=tau, Cs=CS, gammas=GAMMAS, cv=FOLDS).fit(X, Y)
        assert together.best_params_[k] == alone.best_params_
        assert together.best_score_[k] == pytest.approx(alone.best_score_, rel=0.01)
        direct = machine(tau=tau, **alone.best_params_).fit(X, Y)
        np.testing.assert_array_equal(together.predict(X, raw=True)[:, k], direct.predict(X))


def test_same_table_as_grid_search():
    ours = SVRCV(
        Cs=CS, gammas=GAMMAS, cv=FOLDS, scoring="neg_mean_squared_error", selection_tol=1e-6
    ).fit(X, Y)
    grid = {"C": CS, "gamma": GAMMAS}
    theirs = GridSearchCV(SVR(tol=1e-6), grid, cv=FOLDS, scoring="neg_mean_squared_error")
    theirs.fit(X, Y)
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_params_ == theirs.best_params_
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, column in ours.cv_results_.items():
        if "score" in name and "rank" not in name:
            np.testing.assert_allclose(column, theirs.cv_results_[name], rtol=1e-3, err_msg=name)
        elif name != "params":
            np.testing.assert_array_equal(column, theirs.cv_results_[name])


@pytest.mark.parametrize("gammas", [3, [0.5]])
@pytest.mark.parametrize("selection", [SVRCV, QuantileSVRCV, ExpectileSVRCV])
def test_the_number_of_jobs_does_not_matter(selection, gammas):
    for refit in ("average", "committee"):
        one = selection(Cs=3, gammas=gammas, cv=4, refit=refit).fit(X, Y)
        two = selection(Cs=3, gammas=gammas, cv=4, refit=refit, n_jobs=2).fit(X, Y)
        np.testing.assert_array_equal(one.scores_, two.scores_)
        np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_processes_give_the_same():
    one = SVRCV(Cs=2, gammas=2, cv=2).fit(X, Y)
    with joblib.parallel_config("loky", n_jobs=2):
        two = SVRCV(Cs=2, gammas=2, cv=2, n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.scores_, two.scores_)


@pytest.mark.parametrize("selection", [SVRCV, QuantileSVRCV, ExpectileSVRCV])
def test_little_memory_gives_the_same_choice(selection):
    much = selection(Cs=CS, gammas=GAMMAS, cv=3, selection_tol=1e-5).fit(X, Y)
    little = selection(Cs=CS, gammas=GAMMAS, cv=3, selection_tol=1e-5, cache_size=0.05).fit(X, Y)
    assert much.best_params_ == little.best_params_
    np.testing.assert_allclose(much.best_score_, little.best_score_, rtol=1e-3)


def test_pruning_leaves_points_out_and_the_choice_alone():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(600, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=600)
    for selection in (QuantileSVRCV, ExpectileSVRCV):
        full = selection(tau=[0.25, 0.5], Cs=CS, gammas=GAMMAS, prune=False).fit(X, y)
        pruned = selection(tau=[0.25, 0.5], Cs=CS, gammas=GAMMAS, prune=True).fit(X, y)
        assert np.isnan(pruned.scores_).mean() > 0.3
        assert not np.isnan(full.scores_).any()
        for level in range(2):  # another point only where the folds cannot tell the two apart
            scores = full.cv_results_[level]["mean_test_score"]
            assert scores[pruned.best_index_[level]] >= 1.005 * full.best_score_[level]


def test_time_series_and_groups():
    for cv in (TimeSeriesSplit(4), list(TimeSeriesSplit(4).split(X))):
        model = ExpectileSVRCV(Cs=CS, gammas=GAMMAS, cv=cv).fit(X, Y)
        losses = plain_loop(
            ExpectileSVR, {}, mean_expectile_loss, list(TimeSeriesSplit(4).split(X))
        )
        g, c = np.unravel_index(losses.argmin(), losses.shape)
        assert model.best_params_ == {"C": CS[c], "gamma": GAMMAS[g]}
        assert not np.isnan(model.scores_).any()
    groups = np.arange(len(X)) // 10
    by_number = SVRCV(Cs=CS, gammas=GAMMAS, cv=3).fit(X, Y, groups=groups)
    by_splitter = SVRCV(Cs=CS, gammas=GAMMAS, cv=GroupKFold(3)).fit(X, Y, groups=groups)
    np.testing.assert_array_equal(by_number.scores_, by_splitter.scores_)


def test_weights_count_in_fits_and_scores():
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, size=len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    fold = rng.integers(0, 3, size=len(X))
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    repeated = [
        (np.flatnonzero(fold[copies] != k), np.flatnonzero(fold[copies] == k)) for k in range(3)
    ]
    for selection in (SVRCV, QuantileSVRCV, ExpectileSVRCV):
        weighted = selection(Cs=4, gammas=3, cv=splits, selection_tol=1e-6)
        copied = selection(Cs=4, gammas=3, cv=repeated, selection_tol=1e-6)
        weighted.fit(X, Y, sample_weight=weight)
        copied.fit(X[copies], Y[copies])
        np.testing.assert_allclose(weighted.Cs_, copied.Cs_)
        np.testing.assert_allclose(weighted.gammas_, copied.gammas_)
        np.testing.assert_allclose(weighted.scores_, copied.scores_, rtol=1e-3)


def test_scaled_targets_and_features_scale_the_default_grid():
    for scale_C, factor in ((True, 1.0), (False, 100.0)):
        plain = QuantileSVRCV(Cs=4, gammas=4, scale_C=scale_C).fit(X, Y)
        moved = QuantileSVRCV(Cs=4, gammas=4, scale_C=scale_C).fit(10 * X + 3, 100 * Y - 7)
        np.testing.assert_allclose(moved.Cs_, factor * plain.Cs_)
        np.testing.assert_allclose(moved.gammas_, plain.gammas_ / 100)
        assert moved.best_index_ == plain.best_index_


def test_default_grid_covers_the_papers():
    """Widths from 5 to 0.2·n^(−1/d), λ from 1 to 0.001/n on features and targets in [−1, 1]."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    model = ExpectileSVRCV(cv=2, Cs=10, gammas=10).fit(X, X[:, 0])
    widths = model.gammas_**-0.5
    assert len(model.Cs_) >= 10 and len(model.gammas_) >= 10
    assert widths.max() >= 4.9 and widths.min() <= 0.205 * 400 ** (-1 / 3)
    assert model.Cs_.min() <= 1.01 / 800 and model.Cs_.max() >= 499


def test_grid_grows_at_the_border():
    x = StandardScaler().fit_transform(X)
    smooth = x @ [1.0, 2.0]
    model = ExpectileSVRCV(Cs=3, gammas=3, fit_intercept=False).fit(x, smooth)
    assert len(model.Cs_) > 3  # the more the better without noise
    assert model.Cs_[0] < model.Cs_[-1]
    fixed = ExpectileSVRCV(Cs=model.Cs_[:3], gammas=3).fit(x, smooth)
    assert len(fixed.Cs_) == 3
    assert model.scores_.shape[1:3] == (len(model.gammas_), len(model.Cs_))
    best = model.cv_results_["params"][model.best_index_]
    assert best == model.best_params_
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1


def test_hundreds_of_thousands_of_sparse_features():
    """The default widths grow with the dimension, whose power float64 cannot hold any more."""
    X = sp.random(60, 400_000, 1e-4, format="csr", random_state=0)
    y = np.random.default_rng(0).normal(size=60)
    model = SVRCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.best_params_["gamma"])
