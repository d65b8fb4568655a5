"""What ``score`` says of levels, and scorers for scikit-learn's tools."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.metrics import d2_pinball_score, mean_pinball_loss, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import (
    ExpectileSVR,
    ExpectileSVRCV,
    JointExpectileSVR,
    JointQuantileSVR,
    LinearExpectileSVR,
    LinearQuantileSVR,
    QuantileSVR,
    QuantileSVRCV,
    TauPathSVR,
)
from tausvm.metrics import (
    d2_expectile_score,
    expectile_scorer,
    mean_expectile_loss,
    mean_levels_pinball_loss,
    pinball_scorer,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(90, 2))
Y = 1e4 + 30 * X[:, 0] + 10 * RNG.exponential(size=90)
WEIGHT = RNG.uniform(0.5, 2.0, size=90)
LEVELS = [0.1, 0.5, 0.95]
CHOICE = {"Cs": [1.0], "gammas": [1.0], "feature_metric": None}
QUANTILES = [
    QuantileSVR(epsilon=0.1),
    LinearQuantileSVR(),
    JointQuantileSVR(),
    QuantileSVRCV(**CHOICE),
]
EXPECTILES = [ExpectileSVR(), LinearExpectileSVR(), JointExpectileSVR(), ExpectileSVRCV(**CHOICE)]


def name_of(model):
    return type(model).__name__


@pytest.mark.parametrize("tau", [0.2, LEVELS], ids=["one", "list"])
@pytest.mark.parametrize("model", QUANTILES, ids=name_of)
def test_quantiles_have_the_d2_of_the_pinball_loss(model, tau):
    model = clone(model).set_params(tau=tau).fit(X, Y)
    columns = model.predict(X).reshape(90, -1)
    expected = [
        d2_pinball_score(Y, column, alpha=level, sample_weight=WEIGHT)
        for level, column in zip(np.atleast_1d(tau), columns.T, strict=True)
    ]
    # scikit-learn's constant is an interpolated quantile, ours the best one
    assert model.score(X, Y, WEIGHT) == pytest.approx(np.mean(expected), abs=0.01)
    assert model.score(X, Y, WEIGHT) <= np.mean(expected) + 1e-12


@pytest.mark.parametrize("tau", [0.2, LEVELS], ids=["one", "list"])
@pytest.mark.parametrize("model", EXPECTILES, ids=name_of)
def test_expectiles_have_the_d2_of_their_loss(model, tau):
    model = clone(model).set_params(tau=tau).fit(X, Y)
    predicted = model.predict(X)
    expected = np.mean(d2_expectile_score(Y, predicted, tau=tau, sample_weight=WEIGHT))
    assert model.score(X, Y, WEIGHT) == pytest.approx(expected, rel=1e-9)


def test_the_expectile_at_one_half_has_r2():
    model = ExpectileSVR(tau=0.5).fit(X, Y)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)))


def test_a_path_scores_any_level():
    model = TauPathSVR().fit(X, Y)
    assert model.score(X, Y) == model.score(X, Y, tau=0.5)
    each = [model.score(X, Y, tau=level) for level in LEVELS]
    assert model.score(X, Y, tau=LEVELS) == pytest.approx(np.mean(each))
    expected = d2_pinball_score(Y, model.predict(X, 0.95), alpha=0.95)
    assert each[2] == pytest.approx(expected, abs=0.01)


def test_a_list_of_levels_goes_through_scikit_learn():
    """Scores are finite, differ from point to point, and the best one is chosen."""
    model = QuantileSVR(tau=LEVELS)
    assert np.isfinite(cross_val_score(model, X, Y, cv=3)).all()
    for scoring in (None, pinball_scorer(), pinball_scorer(LEVELS)):
        search = GridSearchCV(model, {"C": [1e-4, 10.0]}, cv=3, scoring=scoring).fit(X, Y)
        means = search.cv_results_["mean_test_score"]
        assert np.isfinite(means).all() and means[1] > means[0]
        assert search.best_params_ == {"C": 10.0}
    found = permutation_importance(search, X, Y, scoring=pinball_scorer(), random_state=0)
    assert found.importances_mean[0] > found.importances_mean[1]


def test_scorers():
    model = QuantileSVR(tau=LEVELS).fit(X, Y)
    losses = [
        mean_pinball_loss(Y, column, alpha=level, sample_weight=WEIGHT)
        for level, column in zip(LEVELS, model.predict(X).T, strict=True)
    ]
    np.testing.assert_allclose(
        mean_levels_pinball_loss(Y, model.predict(X), tau=LEVELS, sample_weight=WEIGHT), losses
    )
    scorer = pickle.loads(pickle.dumps(pinball_scorer(LEVELS)))
    assert scorer(model, X, Y, sample_weight=WEIGHT) == pytest.approx(-np.mean(losses))
    expectile = ExpectileSVR(tau=0.8).fit(X, Y)
    expected = -mean_expectile_loss(Y, expectile.predict(X), tau=0.8)
    assert expectile_scorer()(expectile, X, Y) == pytest.approx(expected)


def test_scorers_find_the_levels_of_what_is_wrapped():
    inner = QuantileSVR(tau=0.9)
    for model in (
        make_pipeline(StandardScaler(), clone(inner)),
        TransformedTargetRegressor(make_pipeline(StandardScaler(), clone(inner))),
        GridSearchCV(clone(inner), {"C": [1.0]}, cv=2),
    ):
        model.fit(X, Y)
        expected = -mean_pinball_loss(Y, model.predict(X), alpha=0.9)
        assert pinball_scorer()(model, X, Y) == pytest.approx(expected)
    with pytest.raises(ValueError, match="tau must be given for LinearRegression"):
        pinball_scorer()(LinearRegression().fit(X, Y), X, Y)
