"""Life in scikit-learn, refits, scores, progress."""

import doctest
import logging
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error, mean_pinball_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tausvm.selection.estimators
from tausvm import SVRCV, ExpectileSVRCV, QuantileSVR, QuantileSVRCV

from ..estimators.data import wave

X, Y = wave(100)
NEW = wave(40, seed=1)[0]
SELECTIONS = (SVRCV, QuantileSVRCV, ExpectileSVRCV)
SMALL = {"Cs": 3, "gammas": 2, "cv": 3}


GRID = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.1, 1.0], "cv": 3}


@parametrize_with_checks(
    [selection(**GRID) for selection in SELECTIONS]
    + [QuantileSVRCV(tau=0.3, refit="average", **GRID)]
)
def test_check(estimator, check):
    check(estimator)


def test_docstring_examples():
    failed, attempted = doctest.testmod(tausvm.selection.estimators)
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_parameter_and_attribute_is_documented(selection):
    model = selection(**SMALL).fit(X, Y)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *fitted]:
        assert name in selection.__doc__, name


@pytest.mark.parametrize("selection", SELECTIONS)
def test_clone_and_pickle(selection):
    model = selection(**SMALL).fit(X, Y)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("clip", [None, "range"])
@pytest.mark.parametrize("intercept", [True, False])
def test_average_is_the_mean_of_the_fold_models(intercept, clip):
    folds = KFold(3)
    model = QuantileSVRCV(
        tau=[0.2, 0.7],
        Cs=[0.1, 1.0],
        gammas=[0.5, 2.0],
        cv=folds,
        refit="average",
        selection_tol=1e-8,
        fit_intercept=intercept,
        clip=clip,
    ).fit(X, Y)
    for k, tau in enumerate([0.2, 0.7]):
        machine = QuantileSVR(tau=tau, tol=1e-8, fit_intercept=intercept, **model.best_params_[k])
        parts = [machine.fit(X[train], Y[train]).predict(NEW) for train, _ in folds.split(X)]
        mean = np.mean(parts, axis=0)
        if clip:
            mean = np.clip(mean, Y.min(), Y.max())
        np.testing.assert_allclose(model.predict(NEW)[:, k], mean, atol=2e-4)


def test_without_refit_there_are_scores_only():
    model = SVRCV(refit=False, **SMALL).fit(X, Y)
    assert set(model.best_params_) == {"C", "gamma"}
    with pytest.raises(AttributeError, match="refit=False"):
        model.predict(X)
    model.set_params(refit=True).fit(X, Y).predict(X)
    model.set_params(refit=False).fit(X, Y)
    assert not hasattr(model, "best_estimator_")


def test_refit_has_its_certificate():
    model = ExpectileSVRCV(tau=[0.2, 0.8], **SMALL).fit(X, Y)
    for machine, tau in zip(model.best_estimator_, [0.2, 0.8], strict=True):
        assert machine.tau == tau
        assert machine.dual_gap_ <= machine.tol


def test_pipeline():
    scaler = MinMaxScaler((-1, 1)).fit(X)
    pipe = make_pipeline(MinMaxScaler((-1, 1)), QuantileSVRCV(tau=[0.1, 0.9], **SMALL)).fit(X, Y)
    by_hand = QuantileSVRCV(tau=[0.1, 0.9], **SMALL).fit(scaler.transform(X), Y)
    assert pipe[-1].best_params_ == by_hand.best_params_
    np.testing.assert_array_equal(pipe.predict(NEW), by_hand.predict(scaler.transform(NEW)))
    scores = cross_val_score(make_pipeline(MinMaxScaler(), SVRCV(**GRID)), X, Y, cv=2)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", rbf_kernel])
def test_other_kernels(kernel):
    model = SVRCV(kernel=kernel, degree=2, **SMALL).fit(X, Y)
    has_gamma = kernel in ("poly", "laplacian")
    assert set(model.best_params_) == ({"C", "gamma"} if has_gamma else {"C"})
    assert model.predict(NEW).shape == (len(NEW),)


def test_precomputed():
    K, K_new = rbf_kernel(X, gamma=0.5), rbf_kernel(NEW, X, gamma=0.5)
    costs = [0.1, 1.0, 10.0]
    for refit in (True, "average"):
        given = ExpectileSVRCV(kernel="precomputed", Cs=costs, cv=3, refit=refit).fit(K, Y)
        direct = ExpectileSVRCV(gammas=[0.5], Cs=costs, cv=3, refit=refit).fit(X, Y)
        assert given.best_params_["C"] == direct.best_params_["C"]
        np.testing.assert_allclose(given.predict(K_new), direct.predict(NEW), atol=1e-3)


def test_scores_by_name_scorer_and_callable():
    fixed = {"Cs": [0.1, 1.0], "gammas": [0.1, 1.0], "cv": 3}
    by_name = SVRCV(scoring="neg_mean_absolute_error", **fixed).fit(X, Y)
    by_call = SVRCV(scoring=lambda y, f: -mean_absolute_error(y, f), **fixed).fit(X, Y)
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    by_scorer = SVRCV(scoring=scorer, **fixed).fit(X, Y)
    np.testing.assert_allclose(by_name.scores_, by_call.scores_)
    np.testing.assert_allclose(by_name.scores_, by_scorer.scores_)
    own = QuantileSVRCV(tau=0.3, **fixed).fit(X, Y)
    pinball = make_scorer(mean_pinball_loss, alpha=0.3, greater_is_better=False)
    named = QuantileSVRCV(tau=0.3, scoring=pinball, prune=False, **fixed).fit(X, Y)
    tried = ~np.isnan(own.scores_)
    np.testing.assert_allclose(own.scores_[tried], named.scores_[tried])


def test_clipped_predictions_stay_in_range():
    model = ExpectileSVRCV(clip="range", **SMALL).fit(X, Y)
    far = model.predict(100 * NEW)
    assert far.min() >= Y.min() and far.max() <= Y.max()


def test_quiet_by_default_and_lines_when_asked(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="tausvm"):
        SVRCV(**SMALL).fit(X, Y)
        assert not caplog.records
        SVRCV(verbose=True, **SMALL).fit(X, Y)
    assert caplog.records or capsys.readouterr().out


def test_sparse_rows_choose_as_dense_ones():
    dense = ExpectileSVRCV(**SMALL).fit(X, Y)
    sparse = ExpectileSVRCV(**SMALL).fit(csr_matrix(X), Y)
    np.testing.assert_allclose(dense.gammas_, sparse.gammas_)
    np.testing.assert_allclose(dense.predict(NEW), sparse.predict(NEW), atol=1e-3)
