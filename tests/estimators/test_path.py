"""Path machines: any level from one fit, probabilities, distributions, copies of rows."""

from __future__ import annotations

import doctest
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tausvm.estimators.path
from tausvm import QuantileSVR, TauPathSVC, TauPathSVR, TauSVC

from .data import wave, weighted_problems

X, Y = wave(90)
NEW = wave(40, seed=1)[0]
LABELS = np.where(np.median(Y) < Y, "high", "low")
KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "laplacian", "gamma": 0.3},
]


@parametrize_with_checks([TauPathSVC(), TauPathSVR()])
def test_check(estimator, check):
    check(estimator)


def test_docstring_examples():
    failed, attempted = doctest.testmod(tausvm.estimators.path)
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("estimator", [TauPathSVC, TauPathSVR])
def test_every_parameter_and_attribute_is_documented(estimator):
    model = estimator().fit(X, LABELS if estimator is TauPathSVC else Y)
    fitted = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    for name in [*model.get_params(), *fitted]:
        assert name in estimator.__doc__, name


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equal_to_a_fit_at_one_level(kernel, fit_intercept):
    common = {"C": 2.0, "fit_intercept": fit_intercept, **kernel}
    classes = TauPathSVC(**common).fit(X, LABELS)
    levels = TauPathSVR(**common).fit(X, Y)
    for tau in (0.08, 0.5, 0.77):
        single = TauSVC(tau=tau, tol=1e-9, **common).fit(X, LABELS)
        assert classes.certificate(tau).dual_gap <= 1e-6
        objective = single.result_.primal_objective
        assert classes.certificate(tau).primal_objective == pytest.approx(objective, rel=1e-6)
        np.testing.assert_allclose(
            classes.decision_function(NEW, tau), single.decision_function(NEW), atol=1e-3
        )
        quantile = QuantileSVR(tau=tau, tol=1e-9, **common).fit(X, Y)
        objective = quantile.result_.primal_objective
        assert levels.certificate(tau).primal_objective == pytest.approx(objective, rel=1e-6)
        np.testing.assert_allclose(levels.predict(NEW, tau), quantile.predict(NEW), atol=1e-3)


def test_penalised_intercept_is_a_constant_feature():
    extended = np.c_[X, np.ones(len(X))]
    model = TauPathSVC(kernel="linear", penalise_intercept=True).fit(X, LABELS)
    by_hand = TauPathSVC(kernel="linear", fit_intercept=False).fit(extended, LABELS)
    for tau in (0.2, 0.6):
        np.testing.assert_allclose(
            np.c_[model.coef(tau), model.intercept(tau)], by_hand.coef(tau), atol=1e-7
        )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_at_gives_an_ordinary_classifier(kernel):
    model = TauPathSVC(kernel=kernel, C=3.0).fit(X, LABELS)
    single = model.at(0.3)
    assert type(single) is TauSVC
    assert single.tau == 0.3
    assert single.C == 3.0
    assert single.result_.dual_gap <= 1e-6
    np.testing.assert_allclose(
        single.decision_function(NEW), model.decision_function(NEW, 0.3), atol=1e-10
    )
    np.testing.assert_array_equal(single.predict(NEW), model.predict(NEW, 0.3))
    np.testing.assert_array_equal(single.support_vectors_, X[single.support_])
    again = pickle.loads(pickle.dumps(single))
    np.testing.assert_array_equal(again.predict(NEW), single.predict(NEW))
    costs = model.for_costs(false_positive=1.0, false_negative=4.0)
    assert costs.tau == pytest.approx(0.2)
    quantile = TauPathSVR(kernel=kernel).fit(X, Y)
    np.testing.assert_allclose(
        quantile.at(0.9).predict(NEW), quantile.predict(NEW, 0.9), atol=1e-10
    )


def test_arrays_of_levels():
    taus = [0.9, 0.1, 0.5]
    model = TauPathSVC().fit(X, LABELS)
    values = model.decision_function(NEW, taus)
    assert values.shape == (40, 3)
    for k, tau in enumerate(taus):
        np.testing.assert_allclose(values[:, k], model.decision_function(NEW, tau), atol=1e-12)
        np.testing.assert_array_equal(
            model.predict(NEW, np.array(taus))[:, k], model.predict(NEW, tau)
        )
    three = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    model.fit(X, three)
    assert model.decision_function(NEW).shape == (40, 3)
    assert model.decision_function(NEW, taus).shape == (40, 3, 3)
    assert model.predict(NEW, taus).shape == (40, 3)
    np.testing.assert_array_equal(model.predict(NEW, 0.1), model.at(0.1).predict(NEW))
    assert TauPathSVR().fit(X, Y).predict(NEW, taus).shape == (40, 3)


@pytest.mark.parametrize("penalise", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_ends_label_all_points_alike(kernel, penalise):
    model = TauPathSVC(kernel=kernel, penalise_intercept=penalise).fit(X, LABELS)
    np.testing.assert_array_equal(model.classes_, ["high", "low"])
    assert (model.predict(NEW, 0.0) == "low").all()
    assert (model.predict(NEW, [0.5, 1.0])[:, 1] == "high").all()
    if not penalise:  # and so do the decision values
        assert (model.decision_function(NEW, 0.0) > 0).all()
        assert (model.decision_function(NEW, 1.0) < 0).all()


def test_probabilities_are_levels_of_the_flip():
    model = TauPathSVC(kernel="linear", C=0.1).fit(X, LABELS)
    shares = model.predict_proba(NEW)[:, 1]
    taus = np.linspace(0, 1, 4001)
    positive = (model.decision_function(NEW, taus) > 0).mean(axis=1)
    np.testing.assert_allclose(shares, positive, atol=1e-3)
    # sets of points above a level shrink as it grows, whatever single decisions do
    nested = shares[:, None] > taus
    assert (np.diff(nested.astype(int), axis=1) <= 0).all()


def test_probabilities_agree_with_the_decision_at_a_half():
    """Also where decisions flip more than once, as they do far from the data of a narrow kernel."""
    rng = np.random.default_rng(3)
    noisy = rng.uniform(size=len(X)) < 0.5
    model = TauPathSVC(gamma=5.0, C=3.0).fit(X, noisy)
    far = rng.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, size=(500, X.shape[1]))
    probability = model.predict_proba(far)[:, 1]
    positive = model.decision_function(far, np.linspace(0.001, 0.999, 999)) > 0
    assert (np.abs(np.diff(positive.astype(int), axis=1)).sum(axis=1) > 1).any()
    np.testing.assert_array_equal(probability > 0.5, model.predict(far))
    np.testing.assert_array_equal(model.predict(far), model.predict(far, tau=0.5))
    np.testing.assert_array_equal(model.decision_function(far) > 0, model.predict(far))


def test_probabilities_are_calibrated():
    """Against the truth, on data whose probabilities are known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    truth = 1 / (1 + np.exp(-2 * (X[:, 0] - 0.5 * X[:, 1])))
    y = rng.uniform(size=1500) < truth
    model = TauPathSVC(kernel="linear", C=1.0, penalise_intercept=True).fit(X[:1000], y[:1000])
    estimate = model.predict_proba(X[1000:])[:, 1]
    assert np.abs(estimate - truth[1000:]).mean() < 0.05
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (estimate >= low) & (estimate < low + 0.25)
        assert estimate[inside].mean() == pytest.approx(truth[1000:][inside].mean(), abs=0.08)


def test_several_classes_sum_to_one():
    three = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.6]))]
    model = TauPathSVC().fit(X, three)
    shares = model.predict_proba(NEW)
    assert shares.shape == (40, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares >= 0).all()
    assert len(model.taus_) == len(model.paths_) == len(model.n_kinks_) == 3
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(NEW))
    np.testing.assert_array_equal(
        model.decision_function(NEW).argmax(axis=1), shares.argmax(axis=1)
    )


def test_sets_and_dual_coefficients_are_of_the_given_rows():
    doubled = np.r_[X, X[:30]]
    labels = np.r_[LABELS, LABELS[:30]]
    weight = np.r_[np.zeros(5), np.ones(115)]
    model = TauPathSVC(kernel="linear").fit(doubled, labels, weight)
    beta = model.dual_coef(0.4)
    assert beta.shape == (1, 120)
    assert (beta[0, :5] == 0).all()
    np.testing.assert_allclose(beta @ doubled, model.coef(0.4), atol=1e-9)
    np.testing.assert_allclose(beta[0, 10:30], beta[0, 100:120])
    sets = model.sets(0.4)
    together = np.sort(np.concatenate(sets))
    np.testing.assert_array_equal(together, np.arange(5, 120))
    residual = np.where(labels == "low", 1.0, -1.0) - model.decision_function(doubled, 0.4)
    assert (residual[sets.upper] >= -1e-6).all()
    assert (residual[sets.lower] <= 1e-6).all()
    assert np.abs(residual[sets.margin]).max() <= 1e-6


def test_margin_sets_are_those_of_the_paper():
    doubled, labels = np.r_[X, X[:30]], np.r_[LABELS, LABELS[:30]]
    model = TauPathSVC(kernel="rbf", C=0.5).fit(doubled, labels)
    signs = np.where(labels == model.classes_[1], 1.0, -1.0)
    for tau in (0.1, 0.4, 0.83):
        sets = model.margin_sets(tau)
        np.testing.assert_array_equal(np.sort(np.concatenate(sets)), np.arange(120))
        margin = signs * model.decision_function(doubled, tau)
        assert (margin[sets.left] <= 1 + 1e-6).all() and (margin[sets.right] >= 1 - 1e-6).all()
        assert np.abs(margin[sets.elbow] - 1).max() <= 1e-6
        beta = model.dual_coef(tau)[0]
        cost = np.where(signs > 0, 2 * (1 - tau), 2 * tau) * 0.5
        assert (beta[sets.right] == 0).all()
        np.testing.assert_allclose((signs * beta)[sets.left], cost[sets.left])
        both = model.sets(tau)
        np.testing.assert_array_equal(both.margin, sets.elbow)
    three = np.where(np.arange(120) % 7 == 0, "other", labels)
    several = TauPathSVC(kernel="linear").fit(doubled, three).margin_sets(0.3)
    assert [len(np.concatenate(part)) for part in several] == [120, 120, 120]


def test_kernel_matrices():
    K, K_new = X @ X.T, NEW @ X.T
    given_, direct = TauPathSVC(kernel="precomputed"), TauPathSVC(kernel="linear")
    given_.fit(K, LABELS)
    direct.fit(X, LABELS)
    np.testing.assert_allclose(
        given_.decision_function(K_new, [0.2, 0.7]),
        direct.decision_function(NEW, [0.2, 0.7]),
        atol=1e-6,
    )
    np.testing.assert_array_equal(given_.at(0.4).predict(K_new), given_.predict(K_new, 0.4))


def test_sparse_input():
    sparse = TauPathSVC(kernel="linear").fit(sp.csr_matrix(X), LABELS)
    dense = TauPathSVC(kernel="linear").fit(X, LABELS)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_matrix(NEW), 0.3),
        dense.decision_function(NEW, 0.3),
        atol=1e-6,
    )
    np.testing.assert_allclose(sparse.coef(0.3), dense.coef(0.3), atol=1e-6)


def test_quantiles_cover_their_share():
    model = TauPathSVR(C=1.0).fit(X, Y)
    taus = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    share = (Y[:, None] <= model.predict(X, taus) + 1e-9).mean(axis=0)
    np.testing.assert_allclose(share, taus, atol=0.1)
    assert (model.predict(NEW, 0.0) == Y.min()).all()
    assert (model.predict(NEW, 1.0) == Y.max()).all()


def test_distribution():
    model = TauPathSVR(C=5.0, gamma=1.0).fit(X, Y)
    taus = np.linspace(0.02, 0.98, 49)
    quantiles = model.ppf(NEW, taus)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    raw = model.predict(NEW, taus, raw=True)
    assert (np.diff(raw, axis=1) < -1e-9).any(), "this case is to have crossings"
    np.testing.assert_array_equal(model.predict(NEW, taus), np.sort(raw, axis=1))
    backwards = model.predict(NEW, taus[::-1])
    np.testing.assert_allclose(backwards[:, ::-1], np.sort(raw, axis=1), atol=1e-12)
    np.testing.assert_allclose(model.predict(NEW, taus[3]), raw[:, 3], atol=1e-12)
    unordered = clone(model).set_params(ordered=False).fit(X, Y)
    np.testing.assert_array_equal(unordered.predict(NEW, taus), raw)
    earlier = TauPathSVR(C=5.0, gamma=1.0, monotone=True).fit(X, Y)
    np.testing.assert_array_equal(earlier.predict(NEW, taus), quantiles)
    np.testing.assert_array_equal(earlier.predict(NEW, taus, raw=True), raw)
    assert earlier.predict(NEW).shape == (40,)
    earlier.set_params(monotone=False)
    np.testing.assert_array_equal(earlier.predict(NEW, taus), raw)
    np.testing.assert_allclose(model.cdf(NEW, quantiles[:, 24]), 0.5, atol=5e-3)
    assert (model.cdf(NEW, Y.min() - 1) == 0).all()
    assert (model.cdf(NEW, Y.max() + 1) == 1).all()
    draws = model.sample(NEW[:3], 4000, random_state=0)
    assert draws.shape == (3, 4000)
    np.testing.assert_allclose(
        np.quantile(draws, [0.2, 0.5, 0.8], axis=1).T,
        model.ppf(NEW[:3], [0.2, 0.5, 0.8]),
        atol=0.1,
    )
    np.testing.assert_array_equal(draws, model.sample(NEW[:3], 4000, random_state=0))


def test_clone_pickle_pipeline():
    pipe = make_pipeline(StandardScaler(), TauPathSVC(C=2.0)).fit(X, LABELS)
    assert pipe.predict(NEW, tau=0.2).shape == (40,)
    model = pipe[-1]
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(again.predict(NEW, tau=0.37), pipe.predict(NEW, tau=0.37))
    np.testing.assert_array_equal(again.predict_proba(NEW), pipe.predict_proba(NEW))


@settings(max_examples=25, deadline=None)
@given(
    problem=weighted_problems(),
    estimator=st.sampled_from([TauPathSVC, TauPathSVR]),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    intercept=st.sampled_from([(True, False), (True, True), (False, False)]),
    kernel=st.sampled_from(["linear", "rbf"]),
    sparse=st.booleans(),
)
def test_a_weight_is_a_repetition(problem, estimator, C, intercept, kernel, sparse):
    X, y, weight = problem
    y = y > 0 if estimator is TauPathSVC else y
    form = sp.csr_matrix if sparse else np.asarray
    fit_intercept, penalise = intercept
    model = estimator(C=C, kernel=kernel, fit_intercept=fit_intercept, penalise_intercept=penalise)
    repeated = clone(model)
    model.fit(form(X), y, weight)
    repeated.fit(form(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    taus = [0.1, 0.5, 0.7]
    ask = "decision_function" if estimator is TauPathSVC else "predict"
    np.testing.assert_allclose(
        getattr(model, ask)(NEW, taus), getattr(repeated, ask)(NEW, taus), atol=1e-9, rtol=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    estimator=st.sampled_from([TauPathSVC, TauPathSVR]),
    kernel=st.sampled_from(["linear", "rbf"]),
)
def test_order_of_rows(seed, estimator, kernel):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(30, 2)), 1)
    y = np.round(X[:, 0] + rng.normal(size=30), 2)
    y[:2] = -3.0, 3.0
    y = y > 0 if estimator is TauPathSVC else y
    order = rng.permutation(30)
    model = estimator(kernel=kernel).fit(X, y)
    permuted = estimator(kernel=kernel).fit(X[order], y[order])
    for tau in (0.2, 0.6):
        expected = model.certificate(tau).primal_objective
        assert permuted.certificate(tau).primal_objective == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("factor", [1e-4, 1e5])
def test_scale_of_targets(factor):
    """With C in the units of y."""
    model = TauPathSVR(C=3.0, scale_C=False).fit(X, Y)
    scaled = TauPathSVR(C=3.0 * factor, scale_C=False).fit(X, factor * Y)
    taus = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(
        scaled.predict(NEW, taus), factor * model.predict(NEW, taus), atol=1e-6 * factor
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("factor", "mean", "atol"),
    [
        (1e-12, 0.0, 1e-6),
        (1e12, 0.0, 1e-6),
        (1.0, 1e6, 1e-6),
        (1e-12, 1e-3, 1e-5),
        (1.0, 1e9, 1e-5),
    ],
)
def test_targets_may_have_any_unit_and_mean(factor, mean, atol, kernel):
    """By default C counts in standard deviations of y; a mean rounds the offset, near the ends of
    the path beyond the tolerance, and that is told."""
    taus = [0.05, 0.3, 0.5, 0.9]
    model = TauPathSVR(kernel=kernel, tol=1e-10).fit(X, Y)
    other = TauPathSVR(kernel=kernel, tol=1e-10).fit(X, factor * Y + mean)
    moved = (other.predict(NEW, taus) - mean) / factor
    np.testing.assert_allclose(moved, model.predict(NEW, taus), atol=atol * Y.std())
    for tau in taus:
        expected = model.certificate(tau).primal_objective
        primal = other.certificate(tau).primal_objective / factor**2
        assert primal == pytest.approx(expected, rel=1e-6 if mean else 1e-9)
        quantile = QuantileSVR(kernel=kernel, tau=tau, tol=1e-9).fit(X, factor * Y + mean)
        assert quantile.result_.primal_objective / factor**2 == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("intercept", [(True, False), (True, True), (False, False)])
def test_constant_targets(intercept):
    fit_intercept, penalise = intercept
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TauPathSVR(fit_intercept=fit_intercept, penalise_intercept=penalise)
        model.fit(X, np.full(len(X), 7.0))
    assert model.dual_gap_ <= 1e-6
    if not penalise and fit_intercept:
        assert (model.predict(NEW, [0.0, 0.3, 1.0]) == 7.0).all()
