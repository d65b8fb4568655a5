"""Learned features: what matters is found, noise is not, and units make no difference."""

import doctest
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import tausvm.selection.feature_metric
import tausvm.selection.folds
from tausvm import SVRCV, ExpectileSVRCV, FeatureMetric, QuantileSVRCV
from tausvm.estimators.data import TrainingSet
from tausvm.kernels import mapped
from tausvm.selection.metric import MetricLearner, errs_less, spread_share
from tausvm.selection.views import composed, equal_spread

from ..shared_data import data_file
from .test_limits import Clock

SMALL = {"Cs": 3, "gammas": 3, "cv": 3}
FOLDS = {"cv": 3}


def friedman(n, noise=1.0, d=10, seed=0):
    """Five features matter, the others do not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + noise * rng.normal(size=n)


X, Y = friedman(150)


@cache
def metric(kind):
    return FeatureMetric(kind, **FOLDS).fit(X, Y)


# ---- what is found ----


@pytest.mark.parametrize("kind", ["diagonal", "full", "auto"])
def test_the_features_that_matter_rank_first(kind):
    shares = metric(kind).feature_importances_
    assert shares.sum() == pytest.approx(1.0)
    assert set(np.argsort(-shares)[:5]) == set(range(5))
    assert metric(kind).n_rounds_ >= 1


def test_the_features_that_matter_rank_first_in_the_data_of_the_benchmark():
    table = np.loadtxt(data_file("fried.csv.gz"), delimiter=",", skiprows=1, max_rows=400)
    model = ExpectileSVRCV(**SMALL).fit(table[:, :-1], table[:, -1])
    assert model.learned_
    assert set(np.argsort(-model.feature_importances_)[:5]) == set(range(5))


def test_learned_features_predict_better_where_few_matter():
    far, truth = friedman(1000, noise=0.0, seed=1)
    learned = ExpectileSVRCV(**SMALL).fit(X, Y)
    plain = clone(learned).set_params(feature_metric=None, kernel="rbf").fit(X, Y)
    errors = [np.mean((model.predict(far) - truth) ** 2) for model in (learned, plain)]
    assert learned.learned_ and not plain.learned_
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_full_metric_finds_the_direction(seed):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=5)
    direction /= np.linalg.norm(direction)
    Z = rng.normal(size=(250, 5))
    y = np.sin(2 * Z @ direction) + 0.1 * rng.normal(size=250)
    found = FeatureMetric("full", **FOLDS).fit(Z, y).feature_metric_
    vectors, sizes, _ = np.linalg.svd(found)
    assert abs(vectors[:, 0] @ direction) > 0.99
    assert sizes[1] < 0.3 * sizes[0]
    assert FeatureMetric("auto", **FOLDS).fit(Z, y).feature_metric_.ndim == 2


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_not_learned_or_does_no_harm(seed):
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(120, 30)), rng.normal(size=120)
    new, target = rng.normal(size=(2000, 30)), rng.normal(size=2000)
    model = ExpectileSVRCV(**SMALL).fit(Z, y)
    if model.learned_:
        plain = clone(model).set_params(feature_metric=None, kernel="rbf").fit(Z, y)
        ours, theirs = (np.mean((m.predict(new) - target) ** 2) for m in (model, plain))
        assert ours <= 1.05 * theirs


def test_what_moves_the_spread_alone_counts_for_outer_levels():
    rng = np.random.default_rng(0)
    Z = rng.uniform(-1, 1, size=(400, 5))
    y = np.sin(3 * Z[:, 0]) + (0.1 + 0.9 * (Z[:, 1] > 0)) * rng.normal(size=400)
    middle = FeatureMetric("diagonal", tau=0.5, **FOLDS).fit(Z, y).feature_importances_
    outer = FeatureMetric("diagonal", tau=[0.05, 0.95], **FOLDS).fit(Z, y).feature_importances_
    assert outer[1] > 2 * middle[1]
    assert outer[1] > 3 * outer[2:].max()
    assert spread_share([0.5]) == 0.0 < spread_share([0.3]) < spread_share([0.05, 0.95])


# ---- what makes no difference ----


def test_columns_in_another_order():
    order = np.random.default_rng(0).permutation(10)
    moved = FeatureMetric("diagonal", **FOLDS).fit(X[:, order], Y)
    before = metric("diagonal").feature_metric_
    np.testing.assert_allclose(moved.feature_metric_, before[order], rtol=1e-4)


def test_rows_in_another_order():
    order = np.random.default_rng(1).permutation(len(X))
    place = np.argsort(order)
    splits = list(KFold(3).split(X))
    moved = [(place[train], place[test]) for train, test in splits]
    one = FeatureMetric("diagonal", cv=splits).fit(X, Y)
    two = FeatureMetric("diagonal", cv=moved).fit(X[order], Y[order])
    np.testing.assert_allclose(two.feature_metric_, one.feature_metric_, rtol=1e-4)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_units_of_features_and_targets(kind):
    units = 10.0 ** np.arange(-5, 5)
    moved = FeatureMetric(kind, **FOLDS).fit(X * units + 3 * units, -40 * Y + 1e3)
    before, now = metric(kind).transform(X), moved.transform(X * units)
    np.testing.assert_allclose(now, before, rtol=1e-4, atol=1e-4 * np.abs(before).max())


@pytest.mark.parametrize(
    "selection", [SVRCV, lambda **k: QuantileSVRCV(tau=0.8, **k), ExpectileSVRCV]
)
def test_units_of_features_leave_predictions_alone(selection):
    units = 10.0 ** np.arange(-5, 5)
    plain = selection(**SMALL).fit(X[:90], Y[:90])
    moved = selection(**SMALL).fit(X[:90] * units, Y[:90])
    assert moved.best_params_["kernel"] == plain.best_params_["kernel"]
    assert moved.learned_ == plain.learned_
    spread = 1e-3 * Y.std()
    np.testing.assert_allclose(moved.predict(X * units), plain.predict(X), atol=spread)


def test_a_weight_is_so_many_copies():
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, size=len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    fold = rng.integers(0, 3, size=len(X))
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    repeated = [
        (np.flatnonzero(fold[copies] != k), np.flatnonzero(fold[copies] == k)) for k in range(3)
    ]
    weighted = FeatureMetric("diagonal", cv=splits, rounds=1).fit(X, Y, sample_weight=weight)
    copied = FeatureMetric("diagonal", cv=repeated, rounds=1).fit(X[copies], Y[copies])
    np.testing.assert_allclose(weighted.feature_metric_, copied.feature_metric_, rtol=1e-6)


def test_groups_of_rows_go_through():
    groups = np.arange(len(X)) // 10
    by_number = FeatureMetric("diagonal", cv=3).fit(X, Y, groups=groups)
    by_splitter = FeatureMetric("diagonal", cv=GroupKFold(3)).fit(X, Y, groups=groups)
    np.testing.assert_array_equal(by_number.feature_metric_, by_splitter.feature_metric_)
    model = ExpectileSVRCV(**SMALL).fit(X, Y, groups=groups)
    assert model.learned_
    for rows in model.fold_rows_:
        assert not set(groups[rows]) & set(np.setdiff1d(groups, groups[rows]))


def test_the_number_of_jobs_does_not_matter():
    one, two = (ExpectileSVRCV(n_jobs=jobs, tau=[0.2, 0.7], **SMALL).fit(X, Y) for jobs in (1, 2))
    assert one.learned_
    np.testing.assert_array_equal(one.feature_metric_, two.feature_metric_)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


# ---- how ----


def test_a_map_has_not_seen_the_targets_that_it_is_judged_by():
    """At one point of the grid a fold's map is a function of its training rows alone."""

    def moments(y):
        data = TrainingSet(X, y, np.ones(len(X)), np.arange(len(X)), len(X))
        _, task, _ = ExpectileSVRCV(cv=KFold(3), kernel="rbf")._posed(data, None, 10, 0.0)
        learner = MetricLearner(task, 0.0, None, None)
        point = np.array([0.1]), np.array([10.0])
        fits = learner.proxy.fits(learner.task, learner.task.y, *point)
        return learner._moments(fits, False)

    # the units of a task are those of all targets: a mirror image keeps them
    other = Y.copy()
    other[:50] = Y[:50][::-1]
    before, after = moments(Y), moments(other)
    np.testing.assert_allclose(before[0], after[0], rtol=1e-5)
    assert np.abs(before[1] - after[1]).max() > 1e-3


def test_rows_are_left_to_every_fold():
    """Of many rows a part is learned from, and folds may be small."""
    model = ExpectileSVRCV(Cs=[1.0], gammas=[1.0], cv=[(np.arange(140), [k]) for k in (141, 143)])
    settings = model._settings
    model._settings = replace(settings, metric=replace(settings.metric, rows=75, gradient_rows=30))
    assert np.isfinite(model.fit(X, Y).predict(X)).all()


def test_features_of_one_group_share_their_weight():
    groups = np.array([0, 0, 1, 1, 2, 3, 3, 4, 4, 4])
    for model in (
        FeatureMetric("diagonal", feature_groups=groups, **FOLDS).fit(X, Y),
        ExpectileSVRCV(feature_metric="diagonal", feature_groups=groups, **SMALL).fit(X, Y),
    ):
        shares = model.feature_importances_
        assert shares[0] == shares[1] > shares[9] == shares[8] == shares[7]
        assert shares[2] == shares[3] and shares[5] == shares[6]


def test_what_is_told_is_what_predicts():
    model = QuantileSVRCV(tau=[0.2, 0.9], refit=True, **SMALL).fit(X, Y)
    for machine in model.best_estimator_:
        assert machine.kernel == model.kernel_
        np.testing.assert_array_equal(machine._metric, model.feature_metric_)
        seen = mapped(X, model.feature_metric_)
        again = clone(machine).fit(seen, Y)
        np.testing.assert_array_equal(again.predict(seen), machine.predict(X))
    weights = model.feature_metric_ / equal_spread(X, np.ones(len(X)))
    if weights.ndim == 1:
        shares = weights**2 / (weights**2).sum()
        np.testing.assert_allclose(model.feature_importances_, shares)


def test_a_difference_counts_by_its_standard_error():
    rng = np.random.default_rng(0)
    others, ones = rng.uniform(1, 2, size=400), np.ones(400)
    assert errs_less(others - 0.1, others, ones, 100.0)
    noisy = others - 0.01 + rng.normal(size=400)
    assert not errs_less(noisy, others, ones, 1.0)
    assert not errs_less(np.full(400, np.nan), others, ones, 0.0)
    # a weight is so many rows, and weights of any size are shares of those that there are
    less = np.array([1.0, 0.2, -0.5, 0.1])
    for errors in np.linspace(0.1, 3.0, 30):
        weighted = errs_less(-less, 0 * less, np.array([2.0, 1.0, 1.0, 3.0]), errors)
        copied = np.repeat(less, [2, 1, 1, 3])
        assert weighted == errs_less(-copied, 0 * copied, np.ones(7), errors)
        light = errs_less(-less, 0 * less, np.full(4, 1e-9), errors)
        assert light == errs_less(-less, 0 * less, np.ones(4), errors)


def test_maps_one_after_the_other():
    rng = np.random.default_rng(0)
    weights, matrix = rng.uniform(size=3), rng.normal(size=(3, 3))
    Z = rng.normal(size=(5, 3))
    for second in (weights[::-1], matrix):
        both = mapped(mapped(Z, weights), second)
        np.testing.assert_allclose(mapped(Z, composed(weights, second)), both)
    assert composed(None, None) is None and composed(weights, None) is weights


def test_constant_features_and_features_of_any_size():
    Z = np.column_stack([X[:, 0], np.full(len(X), 7.0), 1e-160 * X[:, 1], 1e150 * X[:, 3]])
    model = FeatureMetric("diagonal", **FOLDS).fit(Z, Y)
    assert model.feature_importances_[1] == 0.0
    assert np.isfinite(model.transform(Z)).all() and np.isfinite(model.feature_metric_).all()
    nothing = FeatureMetric(**FOLDS).fit(np.ones((30, 3)), Y[:30])
    np.testing.assert_array_equal(nothing.transform(np.ones((2, 3))), 1.0)
    assert nothing.n_rounds_ == 0
    same = FeatureMetric(**FOLDS).fit(X, np.ones(len(X)))
    assert same.n_rounds_ == 0 and (same.feature_importances_ == 0.1).all()


# ---- kernels and matrices that cannot have it ----


def test_sparse_rows_have_weights_alone():
    sparse = csr_matrix(X)
    model = FeatureMetric(**FOLDS).fit(sparse, Y)
    assert model.feature_metric_.shape == (10,)
    out = model.transform(sparse)
    assert out.format == "csr"
    np.testing.assert_allclose(out.toarray(), X * model.feature_metric_)
    assert set(np.argsort(-model.feature_importances_)[:3]) <= set(range(5))
    for model in (ExpectileSVRCV(**SMALL), QuantileSVRCV(kernel="laplacian", **SMALL)):
        model.fit(sparse, Y)
        assert model.feature_metric_ is None or model.feature_metric_.ndim == 1
        assert model.kernel_ == ("laplacian" if model.kernel == "laplacian" else "rbf")
        np.testing.assert_allclose(model.predict(X), model.predict(sparse), atol=1e-9)
    for estimator, name in (
        (FeatureMetric("full"), "metric"),
        (SVRCV(feature_metric="full", kernel="laplacian"), "feature_metric"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be .* for a sparse X, got 'full'"):
            estimator.fit(sparse, Y)


@pytest.mark.parametrize("kernel", ["linear", "sigmoid", "precomputed", rbf_kernel])
def test_kernels_whose_features_cannot_be_learned(kernel):
    rows = rbf_kernel(X, gamma=0.1) if kernel == "precomputed" else X - X.mean(axis=0)
    given = {"coef0": 0.1, "gammas": [1e-3]} if kernel == "sigmoid" else {"gammas": 3}
    model = ExpectileSVRCV(kernel=kernel, Cs=2, cv=3, **given).fit(rows, Y)
    assert not model.learned_ and model.feature_metric_ is None and model.kernel_ == kernel
    np.testing.assert_array_equal(model.feature_importances_, 1.0 / rows.shape[1])
    with pytest.raises(ValueError, match="feature_metric must be 'auto' or None for kernel="):
        clone(model).set_params(feature_metric="diagonal").fit(rows, Y)


def test_a_polynomial_may_be_one_of_learned_features():
    grid = {"Cs": [0.1, 10.0], "gammas": [0.03, 0.3], "cv": 3}
    model = ExpectileSVRCV(kernel="poly", degree=2, coef0=1.0, **grid).fit(X, Y)
    assert model.kernel_ == "poly" and "kernel" not in model.best_params_
    assert np.isfinite(model.predict(X)).all() and np.max(model.dual_gap_) <= model.tol


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"feature_metric": "best"}, "feature_metric must be one of 'auto', 'diagonal', 'full'"),
        ({"feature_metric": 2}, "feature_metric must be one of"),
        ({"feature_groups": [1, 2]}, "feature_groups must be None or 10 integers"),
        ({"feature_groups": np.zeros(10)}, "feature_groups must be None or 10 integers"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        SVRCV(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"metric": None}, "^metric must be one of 'auto', 'diagonal', 'full', got None"),
        ({"metric": "round"}, "^metric must be one of"),
        ({"tau": 1.0}, "tau must"),
        ({"tau": []}, "tau must"),
        ({"rounds": 0}, "rounds must be an integer >= 1"),
        ({"cv": 1}, "cv must be"),
        ({"feature_groups": [1, 2]}, "feature_groups must be None or 10 integers"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_parameters_of_the_transformer(parameters, message):
    with pytest.raises(ValueError, match=message):
        FeatureMetric(**parameters).fit(X, Y)


# ---- limits ----


@pytest.mark.parametrize("share", [1e-9, 0.05, 0.3, 0.6])
def test_a_limit_of_time_holds(share):
    parameters = {"tau": [0.3, 0.8], "refit": True, **SMALL}
    whole = ExpectileSVRCV(time_limit=1e9, **parameters)
    whole._clock = Clock()
    whole.fit(X, Y)
    limit = share * whole._clock.now
    model = ExpectileSVRCV(time_limit=limit, **parameters)
    model._clock = Clock()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, Y)
    assert model._clock.now <= limit + 1.0
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("after", [0, 3, 10])
def test_an_interrupt_leaves_at_once_and_nothing_behind(monkeypatch, after):
    """In the proxy by which features are learned, and in the fits of the race."""

    def interrupting(module, name):
        original, calls = getattr(module, name), []

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) > after:
                raise KeyboardInterrupt
            return original(*arguments)

        monkeypatch.setattr(module, name, interrupted)
        return calls

    cases = [
        (ExpectileSVRCV(**SMALL), tausvm.selection.folds, "solve_parts"),
        (ExpectileSVRCV(**SMALL), tausvm.selection.ridge, "cholesky"),
        (FeatureMetric(**FOLDS), tausvm.selection.ridge, "cholesky"),
    ]
    for estimator, module, name in cases:
        calls = interrupting(module, name)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, Y)
        assert len(calls) == after + 1
        assert "feature_metric_" not in vars(estimator)
        monkeypatch.undo()


# ---- life in scikit-learn ----


@parametrize_with_checks([FeatureMetric("diagonal", cv=2), FeatureMetric("full", cv=2)])
def test_check(estimator, check):
    check(estimator)


def test_docstrings():
    failed, attempted = doctest.testmod(tausvm.selection.feature_metric)
    assert attempted > 0 and failed == 0
    fitted = [name for name in vars(metric("diagonal")) if name.endswith("_")]
    for name in [*FeatureMetric().get_params(), *fitted]:
        assert name in FeatureMetric.__doc__, name


def test_features_are_selected_by_their_importances():
    for estimator in (ExpectileSVRCV(**SMALL), FeatureMetric("diagonal", **FOLDS)):
        selected = SelectFromModel(estimator, max_features=5, threshold=-np.inf).fit(X, Y)
        np.testing.assert_array_equal(np.flatnonzero(selected.get_support()), np.arange(5))
    with pytest.raises(NotFittedError):
        ExpectileSVRCV().feature_importances_  # noqa: B018


def test_in_a_pipeline_of_another_method():
    new, truth = friedman(500, noise=0.0, seed=2)
    learned = make_pipeline(FeatureMetric(**FOLDS), KNeighborsRegressor()).fit(X, Y)
    plain = KNeighborsRegressor().fit(X, Y)
    assert learned.score(new, truth) > plain.score(new, truth) + 0.1


def test_names_of_what_comes_out():
    pandas = pytest.importorskip("pandas")
    Z = X[:, :4] - 0.5
    frame = pandas.DataFrame(Z, columns=list("abcd"))
    turned = [f"featuremetric{k}" for k in range(4)]
    for kind, names in (("diagonal", list("abcd")), ("full", turned)):
        model = FeatureMetric(kind, **FOLDS).set_output(transform="pandas")
        out = model.fit(frame, np.sin(4 * Z @ [1.0, 1.0, 0.0, 0.0])).transform(frame)
        assert list(out.columns) == list(model.get_feature_names_out()) == names
        assert out.shape == frame.shape
