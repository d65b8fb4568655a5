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
from tausvm import SVRCV, ExpectileSVR, ExpectileSVRCV, QuantileSVR, QuantileSVRCV
from tausvm.kernels import mapped

from ..estimators.data import PLAIN, wave

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


def seen(model, X):
    """The rows as the kernel of a selection sees them."""
    return mapped(X, model.feature_metric_)


@pytest.mark.parametrize("clip", [None, "range"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("refit", ["average", "committee"])
@pytest.mark.parametrize(
    "selection, machine", [(QuantileSVRCV, QuantileSVR), (ExpectileSVRCV, ExpectileSVR)]
)
def test_means_are_of_machines_at_the_choices_of_the_folds(
    selection, machine, refit, intercept, clip
):
    folds = KFold(3)
    as_fitted = {"calibrate": None} if selection is QuantileSVRCV else {}
    model = selection(
        tau=[0.2, 0.7],
        ordered=False,
        **as_fitted,
        Cs=[0.1, 1.0, 10.0],
        gammas=[0.5, 2.0],
        cv=folds,
        refit=refit,
        selection_tol=1e-8,
        tol=1e-8,
        fit_intercept=intercept,
        clip=clip,
    ).fit(X, Y)
    for k, tau in enumerate([0.2, 0.7]):
        parts = []
        for point, (train, _) in zip(model.fold_params_[k], folds.split(X), strict=True):
            rows = train if refit == "average" else slice(None)
            part = machine(tau=tau, tol=1e-8, fit_intercept=intercept, clip=clip, **point)
            parts.append(part.fit(seen(model, X[rows]), Y[rows]).predict(seen(model, NEW)))
        np.testing.assert_allclose(model.predict(NEW)[:, k], np.mean(parts, axis=0), atol=2e-4)


def test_every_fold_chooses_its_best_point():
    model = ExpectileSVRCV(tau=[0.3, 0.6], Cs=4, gammas=4, cv=3, prune=False, **PLAIN).fit(X, Y)
    for level in range(2):
        for fold, point in enumerate(model.fold_params_[level]):
            scores = model.scores_[level, :, :, fold]
            g, c = np.unravel_index(scores.argmax(), scores.shape)
            assert point == {"C": model.Cs_[c], "gamma": model.gammas_[g]}
        committee = model.best_estimator_[level]
        assert sum(committee.shares) == 3
        assert len(committee.machines) == len({tuple(p.items()) for p in model.fold_params_[level]})


def test_folds_join_a_committee_of_few_rows():
    folds = KFold(5)
    model = ExpectileSVRCV(Cs=3, gammas=3, cv=folds, selection_tol=1e-8, tol=1e-8).fit(X, Y)
    parts = []
    for point, (train, _) in zip(model.fold_params_, folds.split(X), strict=True):
        for rows in (train, slice(None)):
            machine = ExpectileSVR(tol=1e-8, **point).fit(seen(model, X[rows]), Y[rows])
            parts.append(machine.predict(seen(model, NEW)))
    assert sum(model.best_estimator_.shares) == 10
    np.testing.assert_allclose(model.predict(NEW), np.mean(parts, axis=0), atol=2e-4)


def test_committee_on_more_rows_is_the_mean_of_accurate_machines():
    """Members start from the folds and end at the gap of the selection, in float32."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(620, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=620)
    for selection in (SVRCV, QuantileSVRCV, ExpectileSVRCV):
        model = selection(Cs=4, gammas=4, selection_tol=1e-5).fit(X, y)
        committee = model.best_estimator_
        mapped_rows = seen(model, X)
        exact = clone(committee).fit(mapped_rows, y)
        np.testing.assert_allclose(committee.predict(X), exact.predict(mapped_rows), atol=0.02)
        assert 0 < committee.n_support_[0] <= 620
        assert committee.n_features_in_ == 2


def test_without_refit_there_are_scores_only():
    model = SVRCV(refit=False, **SMALL).fit(X, Y)
    assert set(model.best_params_) == {"C", "gamma", "kernel"}
    with pytest.raises(AttributeError, match="refit=False"):
        model.predict(X)
    model.set_params(refit=True).fit(X, Y).predict(X)
    model.set_params(refit=False).fit(X, Y)
    assert not hasattr(model, "best_estimator_")


def test_refit_has_its_certificate():
    model = ExpectileSVRCV(tau=[0.2, 0.8], refit=True, **SMALL).fit(X, Y)
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


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "exponential", rbf_kernel])
def test_other_kernels(kernel):
    model = SVRCV(kernel=kernel, degree=2, **SMALL).fit(X, Y)
    has_gamma = kernel in ("poly", "laplacian", "exponential")
    assert set(model.best_params_) == ({"C", "gamma"} if has_gamma else {"C"})
    assert model.predict(NEW).shape == (len(NEW),)


def test_precomputed():
    K, K_new = rbf_kernel(X, gamma=0.5), rbf_kernel(NEW, X, gamma=0.5)
    costs = [0.1, 1.0, 10.0]
    for refit in (True, "average", "committee"):
        given = ExpectileSVRCV(kernel="precomputed", Cs=costs, cv=3, refit=refit).fit(K, Y)
        direct = ExpectileSVRCV(gammas=[0.5], Cs=costs, cv=3, refit=refit, **PLAIN).fit(X, Y)
        assert given.best_params_["C"] == direct.best_params_["C"]
        np.testing.assert_allclose(given.predict(K_new), direct.predict(NEW), atol=1e-3)


def test_scores_by_name_scorer_and_callable():
    fixed = {"Cs": [0.1, 1.0], "gammas": [0.1, 1.0], "cv": 3, **PLAIN}
    by_name = SVRCV(scoring="neg_mean_absolute_error", **fixed).fit(X, Y)
    by_call = SVRCV(scoring=lambda y, f: -mean_absolute_error(y, f), **fixed).fit(X, Y)
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    by_scorer = SVRCV(scoring=scorer, **fixed).fit(X, Y)
    np.testing.assert_allclose(by_name.scores_, by_call.scores_)
    np.testing.assert_allclose(by_name.scores_, by_scorer.scores_)
    own = QuantileSVRCV(tau=0.3, prune=False, **fixed).fit(X, Y)
    pinball = make_scorer(mean_pinball_loss, alpha=0.3, greater_is_better=False)
    named = QuantileSVRCV(tau=0.3, scoring=pinball, prune=False, **fixed).fit(X, Y)
    np.testing.assert_allclose(own.scores_, named.scores_)


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
    dense = ExpectileSVRCV(**SMALL, **PLAIN).fit(X, Y)
    sparse = ExpectileSVRCV(**SMALL, **PLAIN).fit(csr_matrix(X), Y)
    np.testing.assert_allclose(dense.gammas_, sparse.gammas_)
    np.testing.assert_allclose(dense.predict(NEW), sparse.predict(NEW), atol=1e-3)
