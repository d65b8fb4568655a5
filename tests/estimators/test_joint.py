"""The joint machines as estimators: special cases, invariances, ordering, bad input."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_pinball_score

import tausvm.estimators.joint_machine as joint_machine
from tausvm import (
    SVR,
    ExpectileSVR,
    JointExpectileSVR,
    JointQuantileSVR,
    JointSVR,
    QuantileSVR,
)
from tausvm.kernels import TransformableKernel, level_kernel
from tausvm.metrics import crossing_rate

from .data import wave

TAUS = [0.1, 0.4, 0.9]
LEVELS = [JointQuantileSVR, JointExpectileSVR]
JOINT = [*LEVELS, JointSVR]
SINGLE = {JointQuantileSVR: QuantileSVR, JointExpectileSVR: ExpectileSVR}
X, Y = wave(50)
PLANE = np.c_[Y, np.cos(2 * X[:, 1])]


def fitted(estimator, **parameters):
    defaults = {"tol": 1e-8, "C": 3.0}
    if estimator is not JointSVR:
        defaults["tau"] = TAUS
    model = estimator(**{**defaults, **parameters})
    return model.fit(X, PLANE if estimator is JointSVR else Y)


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_level_is_the_single_machine(estimator, epsilon, fit_intercept):
    given = {"C": 2.0, "epsilon": epsilon, "fit_intercept": fit_intercept, "tol": 1e-9}
    single = SINGLE[estimator](tau=0.3, **given).fit(X, Y)
    together = estimator(tau=0.3, **given).fit(X, Y)
    assert together.predict(X).shape == (50,)
    ours, theirs = together.result_, single.result_
    assert ours.primal_objective == pytest.approx(theirs.primal_objective, rel=1e-9)
    np.testing.assert_allclose(together.predict(X), single.predict(X), atol=1e-4)
    listed = estimator(tau=[0.3], **given).fit(X, Y)
    assert np.array_equal(listed.predict(X)[:, 0], together.predict(X))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_one_output_is_svr(loss):
    given = {"C": 2.0, "epsilon": 0.2, "tol": 1e-9, "loss": loss}
    single, together = SVR(**given).fit(X, Y), JointSVR(**given).fit(X, Y)
    objective = single.result_.primal_objective
    assert together.result_.primal_objective == pytest.approx(objective, rel=1e-9)
    np.testing.assert_allclose(together.predict(X), single.predict(X), atol=1e-4)


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_identity_without_epsilon_is_independent_fits(estimator, fit_intercept):
    given = {"C": 2.0, "fit_intercept": fit_intercept, "tol": 1e-9}
    together = estimator(tau=TAUS, output_kernel="identity", **given).fit(X, Y)
    apart = SINGLE[estimator](tau=TAUS, **given).fit(X, Y)
    total = sum(result.primal_objective for result in apart.result_)
    assert together.result_.primal_objective == pytest.approx(total, rel=1e-8)
    np.testing.assert_allclose(together.predict(X), apart.predict(X), atol=1e-4)
    far = estimator(tau=TAUS, gamma_tau=1e9, **given).fit(X, Y)
    np.testing.assert_allclose(far.predict(X), together.predict(X), atol=1e-6)


def test_identity_outputs_of_svr_are_independent():
    together = JointSVR(C=2.0, epsilon=0.0, tol=1e-9).fit(X, PLANE)
    for j in range(2):
        alone = SVR(C=2.0, epsilon=0.0, tol=1e-9, loss=together.loss).fit(X, PLANE[:, j])
        np.testing.assert_allclose(together.predict(X)[:, j], alone.predict(X), atol=1e-6)


@pytest.mark.parametrize("estimator", JOINT)
def test_attributes_and_link(estimator):
    model = fitted(estimator, epsilon=0.4, gamma=0.7)
    p = len(model.intercept_)
    assert model.dual_coef_.shape == (p, len(model.support_))
    assert np.array_equal(model.support_vectors_, X[model.support_])
    assert model.dual_gap_ == model.result_.dual_gap <= 1e-8
    assert model.n_iter_ >= 1
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0.0, atol=1e-9)
    distances = np.square(X[:, None] - model.support_vectors_).sum(axis=2)
    f = np.exp(-0.7 * distances) @ model.dual_coef_.T @ model.output_matrix_
    np.testing.assert_allclose(model.predict(X), f + model.intercept_, atol=1e-10)
    np.testing.assert_allclose(model.result_.fitted, f, atol=1e-9)


def test_output_kernels():
    model = fitted(JointQuantileSVR, gamma_tau=2.0)
    expected = np.exp(-2.0 * np.subtract.outer(TAUS, TAUS) ** 2)
    np.testing.assert_allclose(model.output_matrix_, expected, rtol=1e-14)
    same = fitted(JointQuantileSVR, output_kernel=expected)
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=1e-9)
    assert np.array_equal(fitted(JointSVR).output_matrix_, np.eye(2))


def test_linear_kernel_has_coefficients():
    model = fitted(JointQuantileSVR, kernel="linear")
    expected = model.output_matrix_ @ model.dual_coef_ @ model.support_vectors_
    np.testing.assert_allclose(model.coef_, expected)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_, atol=1e-12)
    with pytest.raises(AttributeError, match="coef_ exists"):
        fitted(JointQuantileSVR).coef_  # noqa: B018


@pytest.mark.parametrize("estimator", JOINT)
def test_precomputed_and_sparse_are_the_same_fit(estimator):
    target = PLANE if estimator is JointSVR else Y
    model = fitted(estimator, epsilon=0.2, gamma=0.7)
    K = np.exp(-0.7 * np.square(X[:, None] - X).sum(axis=2))
    given = clone(model).set_params(kernel="precomputed").fit(K, target)
    np.testing.assert_allclose(given.predict(K), model.predict(X), atol=1e-6)
    sparse = clone(model).fit(sp.csr_matrix(X), target)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), model.predict(X), atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("estimator", JOINT)
@settings(max_examples=8)
@given(seed=st.integers(0, 1000), epsilon=st.sampled_from([0.0, 0.3]))
def test_weights_are_repetitions(estimator, seed, epsilon):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 30)
    counts[:2] = 1
    rows, target = X[:30], (PLANE if estimator is JointSVR else Y)[:30]
    model = estimator(epsilon=epsilon, tol=1e-9)
    if estimator is not JointSVR:
        model.set_params(tau=TAUS)
    weighted = clone(model).fit(rows, target, counts)
    repeated = clone(model).fit(np.repeat(rows, counts, axis=0), np.repeat(target, counts, axis=0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-5)
    objective = repeated.result_.primal_objective
    assert weighted.result_.primal_objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("estimator", JOINT)
@settings(max_examples=6)
@given(seed=st.integers(0, 1000))
def test_permutations_and_shifts(estimator, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(50)
    model = fitted(estimator, epsilon=0.2)
    target = PLANE if estimator is JointSVR else Y
    moved = clone(model).fit(X[order], target[order] + 100.0)
    np.testing.assert_allclose(moved.predict(X) - 100.0, model.predict(X), atol=1e-5)


@pytest.mark.parametrize("estimator", LEVELS)
@settings(max_examples=6)
@given(size=st.floats(0.01, 100.0))
def test_scale_of_y(estimator, size):
    """The pinball loss is of degree 1: C grows with y, by itself unless told not to."""
    model = fitted(estimator, epsilon=0.2)
    scaled = clone(model).set_params(epsilon=0.2 * size).fit(X, size * Y)
    np.testing.assert_allclose(scaled.predict(X) / size, model.predict(X), atol=1e-5)
    C = model.C * (size * np.std(Y) if estimator is JointQuantileSVR else 1.0)
    given = clone(scaled).set_params(C=C, scale_C=False).fit(X, size * Y)
    np.testing.assert_allclose(given.predict(X), scaled.predict(X), atol=1e-5 * size)


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_mirrored_levels(estimator, epsilon):
    model = fitted(estimator, epsilon=epsilon)
    mirrored = clone(model).set_params(tau=[1 - t for t in reversed(TAUS)]).fit(X, -Y)
    np.testing.assert_allclose(-mirrored.predict(X)[:, ::-1], model.predict(X), atol=1e-5)


def test_coupled_levels_cross_less_and_ordered_ones_never():
    rng = np.random.default_rng(1)
    rows = rng.uniform(size=(80, 1))
    y = np.sin(6 * rows[:, 0]) + 0.3 * rng.normal(size=80)
    grid = np.linspace(-0.2, 1.2, 300)[:, None]
    taus = [0.1, 0.3, 0.5, 0.7, 0.9]
    given = {"tau": taus, "C": 100.0, "gamma": 20.0}
    apart = JointQuantileSVR(output_kernel="identity", ordered=False, **given).fit(rows, y)
    together = JointQuantileSVR(gamma_tau=0.1, **given).fit(rows, y)
    rates = [crossing_rate(model.predict(grid, raw=True), tau=taus) for model in (apart, together)]
    assert rates[1] < 0.5 * rates[0]
    ordered = clone(apart).set_params(ordered=True).fit(rows, y)
    assert crossing_rate(ordered.predict(grid), tau=taus) == 0.0
    # the summed pinball loss never rises by sorting
    losses = [
        np.maximum(t * (y - q), (t - 1) * (y - q)).sum()
        for model in (apart, ordered)
        for t, q in zip(taus, model.predict(rows).T, strict=True)
    ]
    assert sum(losses[5:]) <= sum(losses[:5]) + 1e-12


def test_transformable_kernel():
    kernel = TransformableKernel([lambda A: A, lambda A: 0.8 * A, lambda A: 0.5 * A])
    given = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0, "epsilon": 0.2}
    model = fitted(JointQuantileSVR, output_kernel=kernel, **given)
    assert model.output_matrix_ is None
    sv, alpha = model.support_vectors_, model.dual_coef_
    scales = (1.0, 0.8, 0.5)
    expected = np.stack(
        [
            sum((1 + (s * X) @ (t * sv).T) ** 2 @ alpha[j] for j, t in enumerate(scales))
            for s in scales
        ],
        axis=1,
    )
    np.testing.assert_allclose(model.predict(X), expected + model.intercept_, atol=1e-9)
    same = TransformableKernel([lambda A: A] * 3)
    plain = fitted(JointQuantileSVR, output_kernel=np.ones((3, 3)), **given)
    np.testing.assert_allclose(
        fitted(JointQuantileSVR, output_kernel=same, **given).predict(X),
        plain.predict(X),
        atol=1e-5,
    )
    with pytest.raises(AttributeError, match="matrix B only"):
        fitted(JointQuantileSVR, output_kernel=same, kernel="linear").coef_  # noqa: B018


def test_score_is_the_share_of_the_loss_saved():
    model = fitted(JointQuantileSVR)
    assert fitted(JointQuantileSVR, tau=0.3).score(X, Y) == pytest.approx(
        d2_pinball_score(Y, fitted(JointQuantileSVR, tau=0.3).predict(X), alpha=0.3), rel=1e-9
    )
    weight = np.arange(50) % 3
    kept = np.repeat(np.arange(50), weight)
    assert model.score(X, Y, weight) == pytest.approx(model.score(X[kept], Y[kept]), rel=1e-9)
    assert 0.0 < model.score(X, Y) < 1.0
    flat = fitted(JointExpectileSVR, C=1e-9)
    assert abs(flat.score(X, Y)) < 1e-3


@pytest.mark.parametrize("estimator", JOINT)
def test_solvers_agree(estimator):
    exact = fitted(estimator, epsilon=0.3, C=1.0)
    paper = fitted(estimator, epsilon=0.3, C=1.0, solver="primal_dual_cd", tol=1e-5)
    assert paper.result_.solver == "primal_dual_cd"
    objective = exact.result_.primal_objective
    assert paper.result_.primal_objective == pytest.approx(objective, rel=2e-5)
    seeded = fitted(
        estimator, epsilon=0.3, C=1.0, solver="primal_dual_cd", tol=1e-5, random_state=3
    )
    assert not np.array_equal(seeded.dual_coef_, paper.dual_coef_)


def test_unsolved_fits_warn():
    with pytest.warns(ConvergenceWarning, match=r"JointQuantileSVR did not converge.*max_iter=1"):
        fitted(JointQuantileSVR, solver="primal_dual_cd", max_iter=1, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(JointQuantileSVR)


@pytest.fixture
def no_work(monkeypatch):
    """Fail where a solve or a kernel value is asked for."""

    def refuse(*args, **kwargs):
        raise AssertionError("work before the checks were done")

    monkeypatch.setattr(joint_machine, "solve", refuse)
    monkeypatch.setattr(joint_machine, "CachedKernel", refuse)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tau", [0.5, 0.5], r"tau must be a list of levels that rise.*\[0.5, 0.5\]"),
        ("tau", [0.9, 0.1], r"tau must be a list of levels that rise.*\[0.9, 0.1\]"),
        ("tau", [0.1, 1.0], "tau must lie strictly between 0 and 1, got 1.0"),
        ("tau", [0.0, 0.5], "tau must lie strictly between 0 and 1, got 0.0"),
        ("tau", [], "tau must be a number"),
        ("tau", [[0.1, 0.5]], "tau must be a number"),
        ("tau", "half", "tau must lie"),
        ("epsilon", -0.1, "epsilon must be a finite number >= 0, got -0.1"),
        ("epsilon", np.nan, "epsilon must"),
        ("gamma_tau", -1.0, "gamma_tau must be a finite number >= 0, got -1.0"),
        ("gamma_tau", "scale", "gamma_tau must"),
        ("ordered", "yes", "ordered must be True or False, got 'yes'"),
        ("rearrange", "yes", "rearrange must be True or False, got 'yes'"),
        ("solver", "smo", "solver must be one of 'auto', 'interior_point', 'primal_dual_cd'"),
        ("output_kernel", "level", "output_kernel must be one of 'levels', 'identity'"),
        (
            "output_kernel",
            np.eye(2),
            r"output_kernel must be of shape \(3, 3\), got shape \(2, 2\)",
        ),
        ("output_kernel", -np.eye(3), "output_kernel must be positive semidefinite.*is -1"),
        ("output_kernel", np.triu(np.ones((3, 3))), "output_kernel must be symmetric"),
        ("output_kernel", np.full((3, 3), np.nan), "output_kernel must be finite"),
        ("output_kernel", np.zeros((3, 3)), "output_kernel must be positive.* not zero"),
        ("output_kernel", object(), "output_kernel must be a .* matrix of numbers"),
        ("output_kernel", TransformableKernel([abs]), "output_kernel must be of 3 transf.*got 1"),
        ("cache_size", 0.001, "cache_size must be at least 0, the megabytes of the Gram"),
        ("C", 0.0, "C must be a finite number > 0, got 0.0"),
        ("tol", -1.0, "tol must"),
    ],
)
def test_bad_parameters(name, value, message, no_work):
    with pytest.raises(ValueError, match=message):
        JointQuantileSVR(**{"tau": TAUS, name: value}).fit(X, Y)


def test_bad_parameters_of_vector_targets(no_work):
    for name, value in (("loss", "hinge"), ("output_kernel", "levels"), ("epsilon", -1.0)):
        with pytest.raises(ValueError, match=rf"^{name} must"):
            JointSVR(**{name: value}).fit(X, PLANE)
    with pytest.raises(ValueError, match=r"output_kernel must be of shape \(2, 2\)"):
        JointSVR(output_kernel=np.eye(3)).fit(X, PLANE)
    with pytest.raises(ValueError, match="output_kernel must be a matrix or a name"):
        same = TransformableKernel([lambda A: A] * 2)
        JointSVR(kernel="precomputed", output_kernel=same).fit(np.eye(50), PLANE)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        JointQuantileSVR(tau=TAUS).fit(X, PLANE)


def test_transformations_must_agree():
    kernel = TransformableKernel([lambda A: A, lambda A: A[:, :1], lambda A: A])
    with pytest.raises(ValueError, match="transformations must return arrays of one shape"):
        JointQuantileSVR(tau=TAUS, output_kernel=kernel).fit(X, Y)


SPREAD = float(np.std(Y))
MACHINES = [
    (JointQuantileSVR, {"tau": TAUS}),
    (JointExpectileSVR, {"tau": TAUS}),
    (JointSVR, {"loss": "epsilon_insensitive"}),
    (JointSVR, {"loss": "squared_epsilon_insensitive"}),
]


@pytest.mark.parametrize(("estimator", "given"), MACHINES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_predictions_follow_the_unit_and_the_mean_of_y(estimator, given, epsilon):
    target = PLANE if estimator is JointSVR else Y
    linear = given.get("loss") == "epsilon_insensitive"

    def fit(unit, mean, tol):
        C = 3.0 * unit if linear else 3.0  # the others count C in spreads, or it has no unit
        model = estimator(C=C, epsilon=epsilon * unit, tol=tol, **given)
        with warnings.catch_warnings():
            # offsets have fewer digits than 1e-10 asks where the mean is huge: that warns
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, unit * (target + mean * SPREAD))

    base, rough = fit(1.0, 0.0, 1e-10), fit(1.0, 0.0, 1e-4)
    for unit, mean in ((1e-12, 0.0), (1e12, 1e6), (1e-12, 1e6), (3e5, 1e9), (1e12, 1e9)):
        moved = fit(unit, mean, 1e-10)
        error = np.abs(moved.predict(X) / unit - mean * SPREAD - base.predict(X)).max() / SPREAD
        assert error <= (1e-6 if mean <= 1e6 else 1e-5)
        primal = fit(unit, mean, 1e-4).result_.primal_objective / unit**2
        assert primal == pytest.approx(rough.result_.primal_objective, rel=2e-4)


@pytest.mark.parametrize("estimator", LEVELS)
def test_raw_predictions_are_those_certified(estimator):
    rng = np.random.default_rng(3)
    y = rng.normal(size=50)
    model = estimator(tau=[0.45, 0.5, 0.55], output_kernel="identity", C=100.0)
    model.set_params(gamma=5.0).fit(X, y)
    raw, ordered = model.predict(X, raw=True), model.predict(X)
    assert np.array_equal(np.sort(raw, axis=1), ordered)
    if estimator is JointQuantileSVR:
        assert not np.array_equal(raw, ordered)
    np.testing.assert_allclose(raw, model.result_.fitted + model.intercept_, atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_certificates_round_like_predictions(sparse):
    """On raw features weights and kernel values round differently, visibly so at a large C."""
    rng = np.random.default_rng(0)
    rows = 1e4 * rng.normal(size=(20, 3)) + 1e5
    given = sp.csr_matrix(rows) if sparse else rows
    model = JointQuantileSVR(tau=TAUS, kernel="linear", C=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(given, rng.normal(size=20))
    assert np.array_equal(model.result_.fitted + model.intercept_, model.predict(given))


@pytest.mark.parametrize("estimator", JOINT)
def test_global_random_state_is_left_alone(estimator):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = fitted(estimator, solver="primal_dual_cd", tol=1e-2, epsilon=0.3)
    again = fitted(estimator, solver="primal_dual_cd", tol=1e-2, epsilon=0.3)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert np.array_equal(first.dual_coef_, again.dual_coef_)


def with_options(monkeypatch, **changes):
    """Hand every joint fit these options."""
    made = joint_machine.SolverOptions
    monkeypatch.setattr(
        joint_machine, "SolverOptions", lambda **given: made(**{**given, **changes})
    )


@pytest.mark.parametrize("estimator", JOINT)
@pytest.mark.parametrize("solver", ["auto", "interior_point", "primal_dual_cd"])
def test_time_limit_counts_from_the_gram_matrix(estimator, solver, monkeypatch):
    looks = iter(range(10**9))
    with_options(monkeypatch, clock=lambda: float(next(looks)))
    with pytest.warns(ConvergenceWarning, match=r"it reached time_limit=0.5 s"):
        model = fitted(estimator, time_limit=0.5, solver=solver)
    assert model.dual_gap_ == pytest.approx(1.0)
    assert len(model.support_) == 0
    assert np.ptp(model.predict(X), axis=0).max() == 0.0


@pytest.mark.parametrize("estimator", JOINT)
def test_ctrl_c_ends_a_fit_between_parts_of_its_work(estimator, monkeypatch):
    def interrupt(progress):
        raise KeyboardInterrupt

    with_options(monkeypatch, callback=interrupt)
    monkeypatch.setattr(joint_machine, "progress_log", lambda verbose: nullcontext(interrupt))
    for solver in ("auto", "primal_dual_cd"):
        with pytest.raises(KeyboardInterrupt):
            fitted(estimator, solver=solver)


def test_rounding_is_not_called_a_time_limit():
    K = 1e13 * np.exp(-np.square(X[:, None] - X).sum(axis=2))
    with pytest.warns(ConvergenceWarning, match="rounding let it get no further"):
        JointQuantileSVR(tau=TAUS, kernel="precomputed", tol=1e-12).fit(K, Y)


HUGE = np.r_[X[:-1], [[1e200, 0.0]]]
REFUSED = [
    ({"C": 5e-324}, {}, "C must be between"),
    ({"C": 1e300}, {}, "C must be between"),
    ({}, {"sample_weight": np.full(50, 1e300)}, "sample_weight must be 0 or between"),
    ({}, {"sample_weight": np.full(50, 5e-324)}, "sample_weight must be 0 or between"),
    ({}, {"sample_weight": np.full(50, 1e-300)}, "sample_weight must be 0 or between"),
    ({}, {"y": 1.5e308 * np.sign(Y)}, "y must have differences between"),
    ({}, {"y": 1e-310 * Y}, "y must have differences between"),
    (
        {"kernel": lambda a, b: np.full((len(a), len(b)), np.inf)},
        {},
        "kernel values must be finite",
    ),
    ({"kernel": lambda a, b: np.where(a @ b.T > 1, np.nan, 1)}, {}, "kernel values must be finite"),
    ({"kernel": lambda a, b: np.ones((3, len(b)))}, {}, r"kernel: the callable returned shape"),
    ({"kernel": lambda a, b: None}, {}, r"kernel: the callable returned shape"),
    ({"kernel": "poly", "gamma": 1e300}, {}, "kernel values must be finite"),
    ({"kernel": "linear"}, {"X": 1e200 * X}, "kernel values must be finite"),
    ({}, {"X": HUGE}, "gamma='scale' is out of float64's range"),
]


@pytest.mark.parametrize("estimator", JOINT)
@pytest.mark.parametrize(("given", "data", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_what_float64_cannot_hold_is_refused_by_name(estimator, given, data, message):
    for solver in ("auto", "primal_dual_cd"):
        model = estimator(solver=solver, **given)
        with pytest.raises(ValueError, match=message):
            model.fit(**{"X": X, "y": Y, **data})


@pytest.mark.parametrize("estimator", JOINT)
@pytest.mark.parametrize(
    ("given", "data"),
    [
        ({"C": 1e-90}, {}),
        ({"C": 1e-20, "solver": "primal_dual_cd"}, {}),
        ({"epsilon": 1e-300}, {}),
        ({"epsilon": 1e300}, {}),
        ({}, {"y": np.full(50, 7.0)}),
        ({}, {"y": np.full(50, 1e300)}),
        ({"epsilon": 0.0}, {"y": 1e140 * Y}),
        ({"epsilon": 0.0}, {"y": 1e-140 * Y}),
        ({}, {"sample_weight": np.r_[np.ones(49), 1e-14]}),
        ({}, {"sample_weight": np.r_[np.full(49, 1e9), 1e-5]}),
        ({}, {"X": X[:2], "y": Y[:2]}),
        ({"gamma": 1.0}, {"X": 1e200 * X}),
        ({"kernel": "linear"}, {"X": 0.0 * X}),
    ],
)
def test_extremes_that_are_solved(estimator, given, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if estimator is not JointSVR:
            given = {"tau": TAUS, **given}
        model = estimator(**given).fit(**{"X": X, "y": Y, **data})
    assert model.dual_gap_ <= model.tol
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("estimator", LEVELS)
@pytest.mark.parametrize("count", [1, 2, 30, 99])
def test_many_levels(estimator, count):
    taus = np.linspace(0.01, 0.99, count) if count > 1 else [0.5]
    for epsilon in (0.0, 0.3):
        model = estimator(tau=taus, epsilon=epsilon).fit(X[:20], Y[:20])
        assert model.dual_gap_ <= model.tol
        assert model.predict(X).shape == (50, count)
    assert estimator(tau=[1e-90, 0.5]).fit(X, Y).dual_gap_ <= 1e-4
    if estimator is JointQuantileSVR:
        with pytest.raises(ValueError, match="shares of tau must lie between"):
            estimator(tau=[5e-324, 0.5]).fit(X, Y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_transformable_kernel_on_csr(kernel):
    images = TransformableKernel([lambda A: A, lambda A: 0.8 * A, lambda A: 0.5 * A])
    given = {"kernel": kernel, "gamma": 0.5, "coef0": 1.0, "degree": 2, "tol": 1e-9}
    model = JointQuantileSVR(tau=TAUS, output_kernel=images, epsilon=0.2, **given).fit(X, Y)
    sparse = clone(model).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X)), model.predict(X), atol=1e-5)
    mixed = TransformableKernel([lambda A: A, lambda A: (0.8 * A).toarray(), lambda A: 0.5 * A])
    again = clone(model).set_params(output_kernel=mixed).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(again.predict(sp.csr_matrix(X)), model.predict(X), atol=1e-5)


def test_bad_transformations_are_refused():
    for T, message in (
        (lambda A: np.full(A.shape, np.inf), "must return finite numbers"),
        (lambda A: "x", "must return arrays of numbers"),
    ):
        with pytest.raises(ValueError, match=f"output_kernel: the transformations {message}"):
            JointSVR(output_kernel=TransformableKernel([T])).fit(X, Y)
    same = TransformableKernel([lambda A: A])
    infinite = lambda a, b: np.full((len(a), len(b)), np.inf)  # noqa: E731
    with pytest.raises(ValueError, match="kernel values must be finite"):
        JointSVR(output_kernel=same, kernel=infinite).fit(X, Y)


def test_memory_that_is_not_there_is_refused_before_work(no_work):
    taus = np.linspace(0.01, 0.99, 99)
    rows = np.zeros((1000, 1))
    with pytest.raises(ValueError, match=r"cache_size must be at least \d+, .* 99 outputs"):
        model = JointQuantileSVR(tau=taus, solver="interior_point", cache_size=20)
        model.fit(rows, rows[:, 0])


def adversarial_case(seed):
    """Data, parameters and weights meant to break a fit."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 40)), int(rng.integers(1, 4))
    rows = rng.normal(size=(n, d))
    match rng.choice(["plain", "copies", "rank 0", "rank 1", "raw", "near copies"]):
        case "copies":
            rows = rows[rng.integers(0, max(2, n // 3), n)]
        case "rank 0":
            rows[:] = 1.0
        case "rank 1":
            rows[:] = rows[:, :1]
        case "raw":
            rows = rows * 10.0 ** rng.uniform(-3, 5, d) + 10.0 ** rng.uniform(-2, 5, d)
        case "near copies":
            rows = rows[rng.integers(0, max(2, n // 3), n)] + 1e-9 * rng.normal(size=(n, d))
    noise = rng.choice([0.0, 0.3, 3.0])
    y = np.sin(rows[:, 0]) + 0.3 * rows[:, -1] + noise * rng.normal(size=n)
    y = y * 10.0 ** rng.uniform(-6, 6) + rng.choice([0.0, 1.0, 1e6]) * 10.0 ** rng.uniform(-3, 3)
    weight = 10.0 ** rng.uniform(-5, 5, n) if rng.random() < 0.3 else np.ones(n)
    taus = np.sort(rng.uniform(0.01, 0.99, int(rng.choice([1, 2, 3, 5, 9]))))
    given = {
        "tau": taus,
        "gamma_tau": float(10.0 ** rng.uniform(-2, 2)),
        "C": float(10.0 ** rng.uniform(-6, 8)),
        "kernel": str(rng.choice(["rbf", "rbf", "linear", "poly"])),
        "gamma": float(10.0 ** rng.uniform(-8, 8)),
        "coef0": 1.0,
        "fit_intercept": bool(rng.random() < 0.7),
    }
    if given["kernel"] == "poly":
        given["gamma"] = float(10.0 ** rng.uniform(-3, 1))
    return rows, y, weight, given


def true_gap(model, rows, y, weight, given):
    """The gap of what predicts, by the docstring's formulas and nothing of the library's."""
    K = {
        "linear": lambda: rows @ rows.T,
        "poly": lambda: (given["gamma"] * rows @ rows.T + 1.0) ** 3,
        "rbf": lambda: np.exp(-given["gamma"] * np.square(rows[:, None] - rows).sum(axis=2)),
    }[given["kernel"]]()
    taus = given["tau"]
    B = np.exp(-given["gamma_tau"] * np.subtract.outer(taus, taus) ** 2)
    alpha = np.zeros((len(y), len(taus)))
    alpha[model.support_] = model.dual_coef_.T
    residual = y[:, None] - model.predict(rows, raw=True)
    side = np.where(residual >= 0, taus, 1 - taus)
    norm = float(np.vdot(alpha, K @ alpha @ B))
    if given["kernel"] == "linear":  # with few features K's rounding can be most of it
        W = alpha.T.astype(np.longdouble) @ rows
        norm = float((B * (W @ W.T)).sum())
    about = y - np.median(y) if given["fit_intercept"] else y
    gain = float(np.vdot(alpha, np.repeat(about[:, None], len(taus), axis=1)))
    if isinstance(model, JointQuantileSVR):
        above = y - y.min()
        mean = np.average(above, weights=weight)
        scale = np.sqrt(np.average((above - mean) ** 2, weights=weight)) if above.any() else 1.0
        cost = given["C"] * weight[:, None] * scale
        primal = 0.5 * norm + float((cost * side * np.abs(residual)).sum())
        dual = gain - 0.5 * norm
        assert (
            (alpha <= cost * taus * (1 + 1e-9)) & (alpha >= -cost * (1 - taus) * (1 + 1e-9))
        ).all()
    else:
        cost = given["C"] * weight[:, None]
        primal = 0.5 * norm + float((cost * side * residual**2).sum())
        dual = (
            gain
            - 0.5 * norm
            - float((alpha**2 / (4 * cost * np.where(alpha > 0, taus, 1 - taus))).sum())
        )
    if given["fit_intercept"]:
        assert np.abs(alpha.sum(axis=0)).max() <= 1e-12 * max(np.abs(alpha).sum(), 1e-300)
    size = max(abs(primal), abs(dual))
    return (primal - dual) / size if size > 0 else 0.0


def judge(seed):
    """None where the claim holds or the fit warns, else what it claimed and what is true."""
    rows, y, weight, given = adversarial_case(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LEVELS[seed % 2](**given).fit(rows, y, weight)
    if caught:
        assert {w.category for w in caught} == {ConvergenceWarning}
        return None
    truth = true_gap(model, rows, y, weight, given)
    return None if truth <= 10 * model.tol else (seed, model.dual_gap_, truth)


def test_no_claim_is_better_than_the_truth():
    assert [found for found in map(judge, range(60)) if found is not None] == []


@pytest.mark.slow
def test_no_claim_is_better_than_the_truth_of_many():
    assert [found for found in map(judge, range(60, 2000)) if found is not None] == []


MEMORY = """
import resource, warnings
import numpy as np
from tausvm import JointQuantileSVR
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = np.sin(X[:, 0]) + rng.normal(size=3000)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
taus = np.linspace(0.05, 0.95, {levels})
JointQuantileSVR(tau=taus, cache_size=80, time_limit=20, solver={solver!r}).fit(X, y)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("levels", [3, 50])
@pytest.mark.parametrize("solver", ["auto", "primal_dual_cd"])
def test_peak_memory(levels, solver):
    code = MEMORY.format(levels=levels, solver=solver)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert float(run.stdout) <= 80 + 2 * 0.24 + 300


def test_levels_kernel_is_positive_semidefinite():
    taus = np.linspace(0.02, 0.98, 25)
    assert np.linalg.eigvalsh(level_kernel(taus, 0.1))[0] > -1e-13
    model = JointQuantileSVR(tau=taus, gamma_tau=0.1).fit(X, Y)
    assert model.predict(X).shape == (50, 25)
    assert model.dual_gap_ <= model.tol
