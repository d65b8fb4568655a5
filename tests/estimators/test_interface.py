"""Life in scikit-learn: clone, pickle, pipelines, searches; the examples in docstrings."""

import doctest
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tausvm
import tausvm.estimators.classification
import tausvm.estimators.regression
from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

from .data import ESTIMATORS, output, targets, wave

X, Y = wave(80)
NEW = wave(40, seed=1)[0]


@pytest.mark.parametrize("module", [tausvm.estimators.classification, tausvm.estimators.regression])
def test_docstring_examples(module):
    failed, attempted = doctest.testmod(module)
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_and_attribute_is_documented(estimator):
    text = estimator.__doc__
    model = estimator().fit(X, targets(estimator, Y))
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *fitted, "coef_"]:
        assert name in text, name
    for word in ("primal", "dual", "link", "gap", "References"):
        assert word in text


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone_and_pickle(estimator):
    model = estimator(C=2.0, kernel="poly", degree=2).fit(X, targets(estimator, Y))
    assert clone(model).get_params() == model.get_params()
    model.set_params(kernel=partial(polynomial_kernel, degree=2)).fit(X, targets(estimator, Y))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(output(again, NEW), output(model, NEW))
    assert again.result_.dual_gap == model.dual_gap_


def test_clone_of_a_list_of_levels():
    model = QuantileSVR(tau=[0.1, 0.9])
    assert clone(model).tau == [0.1, 0.9]


def test_pipeline():
    pipe = make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X, Y)
    by_hand = SVR(C=10.0).fit(StandardScaler().fit_transform(X), Y)
    scaled = StandardScaler().fit(X).transform(NEW)
    np.testing.assert_array_equal(pipe.predict(NEW), by_hand.predict(scaled))


def test_grid_search():
    search = GridSearchCV(
        QuantileSVR(tau=0.8),
        {"C": [0.01, 1.0], "gamma": [0.5, "scale"]},
        scoring=make_scorer(mean_pinball_loss, alpha=0.8, greater_is_better=False),
        cv=3,
    ).fit(X, Y)
    assert search.best_params_["C"] == 1.0
    assert search.predict(NEW).shape == (40,)
    classes = GridSearchCV(TauSVC(), {"C": [0.1, 10.0]}, cv=3).fit(X, Y > 0)
    assert classes.best_score_ > 0.7


def test_cross_validation_cuts_a_gram_matrix_both_ways():
    K = polynomial_kernel(X, degree=3, gamma=0.5)
    given = cross_val_score(ExpectileSVR(kernel="precomputed", tol=1e-8), K, Y, cv=3)
    direct = cross_val_score(
        ExpectileSVR(kernel="poly", coef0=1.0, gamma=0.5, tol=1e-8), X, Y, cv=3
    )
    np.testing.assert_allclose(given, direct, atol=1e-6)


def test_refit_forgets():
    """Nothing of a fit shows in the next one."""
    model = SVR(clip="range").fit(X, Y)
    model.set_params(clip=None, kernel="linear").fit(X[:, :1], 10 * Y)
    fresh = SVR(kernel="linear").fit(X[:, :1], 10 * Y)
    np.testing.assert_array_equal(model.predict(NEW[:, :1]), fresh.predict(NEW[:, :1]))


def test_public_names():
    for name in tausvm.__all__:
        assert hasattr(tausvm, name)
