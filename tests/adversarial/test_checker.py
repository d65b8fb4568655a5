"""The checker itself: it passes what is right, catches what is not, and agrees with others."""

from __future__ import annotations

import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

import tausvm

from . import judging
from .judging import Claim, Outcome, TooLong, claims, names_a_parameter, patience, run, weigh
from .problems import LARGEST, TURNS, Case, make_case
from .truth import REPAIRS, GroupLoss, L, Loss, gram, joint_truth, kernel_truth, long

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=24)
WEIGHT = rng.integers(0, 3, size=24).astype(float)

TAME: list[tuple[str, dict[str, Any]]] = [
    ("SVR", {"epsilon": 0.1, "C": 2.0}),
    ("SVR", {"epsilon": 0.1, "C": 2.0, "loss": "squared_epsilon_insensitive"}),
    ("QuantileSVR", {"tau": [0.2, 0.7], "C": 2.0}),
    ("ExpectileSVR", {"tau": 0.7, "C": 2.0, "epsilon": 0.05, "fit_intercept": False}),
    ("TauSVC", {"tau": 0.3, "C": 2.0}),
    ("LinearSVR", {"epsilon": 0.1, "intercept_scaling": 2.0}),
    ("LinearQuantileSVR", {"tau": 0.2}),
    ("LinearExpectileSVR", {"tau": [0.2, 0.9]}),
    ("JointQuantileSVR", {"tau": [0.2, 0.7], "epsilon": 0.1, "C": 2.0}),
    ("JointExpectileSVR", {"tau": [0.2, 0.7], "epsilon": 0.1, "C": 2.0}),
    ("JointSVR", {"epsilon": 0.2, "loss": "epsilon_insensitive"}),
    ("TauPathSVC", {"C": 1.0}),
    ("TauPathSVR", {"C": 1.0, "penalise_intercept": True}),
]


def tame(name: str, params: dict[str, Any]) -> Case:
    """A case that nothing is peculiar about."""
    y: Any = (Y > 0).astype(int) if name in ("TauSVC", "TauPathSVC") else Y
    if name == "JointSVR":
        y = np.column_stack([Y, X[:, 1]])
    if not name.startswith("Linear"):
        params = {"kernel": "rbf", "gamma": 0.5, **params}
    return Case(0, name, {"tol": 1e-7, "fit_intercept": True, **params}, X, X, y, WEIGHT)


@pytest.mark.parametrize(("name", "params"), TAME)
def test_an_honest_fit_passes(name: str, params: dict[str, Any]) -> None:
    outcome = run(tame(name, params))
    assert outcome.claims >= 1
    assert outcome.blurred == 0
    assert not outcome.failures and not outcome.warned and not outcome.refused, outcome.report()


def judged(case: Case, model: Any, warned: bool = False) -> Outcome:
    outcome = Outcome(case, warned=warned)
    for claim in claims(case, model):
        weigh(claim, case, outcome)
    return outcome


@pytest.mark.parametrize("share", [1e-3, 0.5])
@pytest.mark.parametrize(("name", "params"), [t for t in TAME if "Path" not in t[0]])
def test_a_moved_offset_is_caught(name: str, params: dict[str, Any], share: float) -> None:
    case = tame(name, params)
    if not case.params["fit_intercept"] or "Linear" in name:
        share *= 10.0
    model = judging.fitted(case)
    model.intercept_ = np.asarray(model.intercept_) + share
    assert judged(case, model).failures


@pytest.mark.parametrize(("name", "params"), TAME)
def test_a_shrunk_solution_is_caught(name: str, params: dict[str, Any]) -> None:
    """What is claimed of β is not true of 0.99·β."""
    case = tame(name, params)
    model = judging.fitted(case)
    if "Path" in name:
        solution = model.paths_[0].solution
        model.paths_[0].solution = lambda tau: (0.99 * solution(tau)[0], solution(tau)[1])
        model.certificate = lambda tau: SimpleNamespace(dual_gap=0.0)
    elif name.startswith("Linear"):
        model.coef_ = 0.99 * model.coef_
    else:
        model.dual_coef_ = 0.99 * model.dual_coef_
    assert judged(case, model).failures
    if "Path" not in name:  # a path's certificate stands alone
        excused = judged(case, model, warned=True)
        assert excused.understated and not excused.failures


def test_another_function_than_that_of_the_coefficients_is_caught() -> None:
    """Inside the tube no loss tells."""
    case = tame("SVR", {"epsilon": 5.0})
    model = judging.fitted(case)
    predict = model.predict
    model.predict = lambda X, raw=False: predict(X, raw) + 0.01 * X[:, 0]
    assert any("from Kβ + b" in failure for failure in judged(case, model).failures)


def test_predictions_that_are_not_numbers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def predict(self: Any, X: Any, raw: bool = False) -> Any:
        return np.full(X.shape[0], np.nan)

    monkeypatch.setattr(tausvm.SVR, "predict", predict)
    assert "not finite" in run(tame("SVR", {})).report()


def test_an_error_has_to_name_a_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    case = tame("SVR", {})
    assert names_a_parameter(case, "gamma must be positive, got 0")
    assert not names_a_parameter(case, "zero-size array to reduction operation")
    for error in (ValueError("zero-size array"), ZeroDivisionError("float division")):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr(tausvm.SVR, "fit", fail)
        assert run(case).failures


def test_a_fit_that_does_not_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLong), patience(0.05):
        while True:
            pass
    monkeypatch.setattr(judging, "PATIENCE", 0.05)
    monkeypatch.setattr(tausvm.SVR, "fit", lambda *_, **__: all(iter(int, 1)) or busy())
    assert "not done" in run(tame("SVR", {})).report()


def busy() -> None:
    while time.process_time() > 0:
        pass


def test_a_claim_may_look_ten_times_better() -> None:
    truth = next(claims(tame("SVR", {}), judging.fitted(tame("SVR", {})))).truth
    off = type(truth)(L(1.0), L(1.0) - L(1e-4), L(0), L(0))
    assert Claim("", 2e-5, off).honest(1e-8)
    assert Claim("", 0.0, off).honest(2e-5)
    assert not Claim("", 0.9e-5, off).honest(1e-8)
    assert Claim("", 0.0, type(truth)(L(1e-15), L(0), L(0), L(1e-14))).honest(1e-8)


# ---- against others ----


def test_kernels() -> None:
    for name, other in (("rbf", rbf_kernel), ("laplacian", laplacian_kernel)):
        np.testing.assert_allclose(
            gram(name, X, X, 0.7, 3, 0.0).values.astype(float), other(X, gamma=0.7), rtol=1e-13
        )
    np.testing.assert_allclose(
        gram("poly", X, X, 0.7, 3, 1.0).values.astype(float),
        polynomial_kernel(X, gamma=0.7, degree=3, coef0=1.0),
        rtol=1e-12,
    )


def quadratic(P: Any, q: Any, cones: list[tuple[Any, Any, Any]]) -> float:
    """min ½xᵀPx + qᵀx with b − Ax in the cones, by Clarabel."""
    A = sp.vstack([sp.csc_matrix(A) for A, _, _ in cones]).tocsc()
    b = np.concatenate([np.asarray(b, dtype=float) for _, b, _ in cones])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(P)), np.asarray(q, float), A, b, [c for _, _, c in cones], settings
    )
    return float(solver.solve().obj_val)


def dual_optimum(K: Any, y: Any, loss: Loss, offset: bool) -> float:
    """The dual with β = p − m, p, m ≥ 0."""
    n = len(y)
    rise, fall = loss.rise.astype(float), loss.fall.astype(float)
    P = np.block([[K, -K], [-K, K]])
    if loss.power == 2:
        P = P + np.diag(np.concatenate([0.5 / rise, 0.5 / fall]))
    q = float(loss.epsilon) + np.concatenate([-y, y])
    cones = [(-np.eye(2 * n), np.zeros(2 * n), clarabel.NonnegativeConeT(2 * n))]
    if loss.power == 1:
        bounds = np.concatenate([rise, fall])
        cones.append((np.eye(2 * n), bounds, clarabel.NonnegativeConeT(2 * n)))
    if offset:
        ones = np.concatenate([np.ones(n), -np.ones(n)])[None]
        cones.append((ones, np.zeros(1), clarabel.ZeroConeT(1)))
    return -quadratic(P, q, cones)


COST = long(2.0 * (1.0 + WEIGHT))
SIGNS = long(np.where(Y > 0, 1.0, -1.0))
LOSSES = {
    "pinball": (long(Y), Loss.pinball(0.3, COST, 0.05)),
    "squared pinball": (long(Y), Loss.pinball(0.3, COST, 0.05, power=2)),
    "tube": (long(Y), Loss.tube(COST, 0.1, 1)),
    "squared tube": (long(Y), Loss.tube(COST, 0.1, 2)),
    "hinge": (SIGNS, Loss.hinge(0.3, SIGNS, COST)),
}


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("kind", LOSSES)
def test_an_independent_solver_finds_the_same_optimum(kind: str, offset: bool) -> None:
    """Clarabel's dual optimum lies between both objectives of a good solution."""
    y, loss = LOSSES[kind]
    K = gram("rbf", X, X, 0.5, 3, 0.0)
    optimum = dual_optimum(K.values.astype(float), y.astype(float), loss, offset)
    weight = COST.astype(float) / 2
    shared: dict[str, Any] = {"gamma": 0.5, "C": 2.0, "tol": 1e-9, "fit_intercept": offset}
    model: Any
    if kind == "hinge":
        model = tausvm.TauSVC(tau=0.3, **shared)
    elif "pinball" in kind:
        cls = tausvm.ExpectileSVR if loss.power == 2 else tausvm.QuantileSVR
        model = cls(tau=0.3, epsilon=0.05, scale_C=False, **shared)
    else:
        name = "squared_" * (loss.power == 2) + "epsilon_insensitive"
        model = tausvm.SVR(epsilon=0.1, loss=name, **shared)
    model.fit(X, y.astype(float), sample_weight=weight)
    beta = np.zeros(len(X), dtype=L)
    beta[model.support_] = model.dual_coef_[0]
    values = model.decision_function(X) if kind == "hinge" else model.predict(X)
    truth = kernel_truth(K, y, loss, offset, beta, L(model.intercept_[0]), long(values))
    assert truth.gap <= 1e-8
    assert float(truth.dual) == pytest.approx(optimum, rel=1e-6)
    assert float(truth.primal) == pytest.approx(optimum, rel=1e-6)
    # and any other β bounds it from below, any other offset from above
    for repair in REPAIRS:
        lower, upper = loss.bounds()
        other = repair(L(0.8) * beta + L(0.3), lower, upper, offset)
        assert (lower <= other).all() and (other <= upper).all()
        assert abs(float(other.sum())) < 1e-15 or not offset
        worse = kernel_truth(K, y, loss, offset, other, L(0.0), K.values @ other)
        assert float(worse.dual) < optimum < float(worse.primal)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("offset", [False, True])
def test_several_outputs_against_an_independent_solver(power: int, offset: bool) -> None:
    """The joint dual: Σ⟨α, y⟩ − ½ tr(αᵀKαB) − ε Σ‖αᵢ‖ − Σ g, with α = p − m and tᵢ ≥ ‖αᵢ‖."""
    n, taus, epsilon = 10, np.array([0.2, 0.7]), 0.3
    p = len(taus)
    K = gram("rbf", X[:n], X[:n], 0.5, 3, 0.0)
    B = np.exp(-((taus[:, None] - taus) ** 2))
    cost = COST[:n, None]
    outputs = Loss(cost * long(taus), cost * (1 - long(taus)), L(0), power)
    y = np.tile(Y[:n, None], (1, p))
    big = np.kron(K.values.astype(float), B)
    m = n * p
    P = np.zeros((2 * m + n, 2 * m + n))
    P[: 2 * m, : 2 * m] = np.block([[big, -big], [-big, big]])
    rise, fall = (part.astype(float).ravel() for part in (outputs.rise, outputs.fall))
    if power == 2:
        P[: 2 * m, : 2 * m] += np.diag(np.concatenate([0.5 / rise, 0.5 / fall]))
    q = np.concatenate([-y.ravel(), y.ravel(), np.full(n, epsilon)])
    none = np.zeros((2 * m, n))
    cones: list[tuple[Any, Any, Any]] = [
        (np.hstack([-np.eye(2 * m), none]), np.zeros(2 * m), clarabel.NonnegativeConeT(2 * m))
    ]
    if power == 1:
        bounds = np.concatenate([rise, fall])
        cones.append((np.hstack([np.eye(2 * m), none]), bounds, clarabel.NonnegativeConeT(2 * m)))
    alpha = np.hstack([np.eye(m), -np.eye(m), np.zeros((m, n))])
    for i in range(n):
        length = np.zeros((1, 2 * m + n))
        length[0, 2 * m + i] = 1.0
        rows = np.vstack([length, alpha[i * p : (i + 1) * p]])
        cones.append((-rows, np.zeros(p + 1), clarabel.SecondOrderConeT(p + 1)))
    if offset:
        total = np.kron(np.ones((1, n)), np.eye(p)) @ alpha
        cones.append((total, np.zeros(p), clarabel.ZeroConeT(p)))
    optimum = -quadratic(P, q, cones)
    cls = tausvm.JointQuantileSVR if power == 1 else tausvm.JointExpectileSVR
    known = cls().get_params()
    model = cls(
        tau=list(taus),
        gamma_tau=1.0,
        epsilon=epsilon,
        gamma=0.5,
        C=2.0,
        tol=1e-9,
        fit_intercept=offset,
        **({"scale_C": False} if "scale_C" in known else {}),
    )
    model.fit(X[:n], Y[:n], sample_weight=COST[:n].astype(float) / 2)
    found = np.zeros((n, p), dtype=L)
    found[model.support_] = model.dual_coef_.T
    truth = joint_truth(
        K,
        long(B),
        long(y),
        GroupLoss(outputs, L(epsilon)),
        offset,
        found,
        long(model.intercept_),
        long(model.predict(X[:n])),
    )
    assert truth.gap <= 1e-8
    assert float(truth.dual) == pytest.approx(optimum, rel=1e-6)
    assert float(truth.primal) == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("power", [1, 2])
def test_group_loss_by_brute_force(power: int) -> None:
    """No point of the ball does better than the one found."""
    r = rng.normal(size=(40, 2)) * 2
    slopes = long(rng.uniform(0.1, 2.0, size=(2, 40, 2)))
    loss = GroupLoss(Loss(slopes[0], slopes[1], L(0), power), L(0.7))
    angles = np.linspace(0, 2 * np.pi, 4001)
    ball = 0.7 * np.column_stack([np.cos(angles), np.sin(angles)])
    found = loss.values(long(r))
    for i in range(40):
        one = Loss(slopes[0][i], slopes[1][i], L(0), power)
        best = one.values(long(r[i]) - long(ball)).sum(axis=1).min()
        if np.hypot(*r[i]) <= 0.7:
            best = L(0)
        assert best - L(1e-3) * (1 + best) <= found[i] <= best + L(1e-15)


def test_rounding_is_told_from_error() -> None:
    """At a mean of 1e9 spreads predictions are known to 1e-7 of the spread, and no better."""
    K = gram("rbf", X, X, 0.5, 3, 0.0)
    y, loss = long(Y + 1e9), Loss.pinball(0.5, long(np.full(24, 100.0)))
    model = tausvm.QuantileSVR(gamma=0.5, C=100.0, tol=1e-9, scale_C=False).fit(X, Y + 1e9)
    beta = np.zeros(24, dtype=L)
    beta[model.support_] = model.dual_coef_[0]
    b = L(model.intercept_[0])
    truth = kernel_truth(K, y, loss, True, beta, b, long(model.predict(X)))
    assert truth.gap == 0.0 and 1e-9 < truth.blur < 1e-3
    moved = kernel_truth(K, y, loss, True, beta, b, long(model.predict(X) + 0.01))
    assert moved.gap > 1e-3


# ---- the generator ----


def test_a_seed_is_a_case() -> None:
    for seed in range(len(TURNS)):
        one, two = make_case(seed), make_case(seed)
        assert str(one) == str(two)
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_array_equal(one.y, two.y)


def test_the_cases_are_of_all_kinds() -> None:
    seen: Counter[str] = Counter()
    levels = set()
    for seed in range(1500):
        case = make_case(seed)
        seen[case.name] += 1
        seen.update(note.split(" ")[0] for note in case.notes)
        kernel = case.params.get("kernel", "none")
        seen["callable" if callable(kernel) else kernel] += 1
        seen[type(case.given).__name__ + str(case.given.dtype)] += 1
        tau = case.params.get("tau", 0.5)
        levels.add(len(tau) if isinstance(tau, list) else 0)
        assert np.isfinite(case.rows).all() and 2 <= len(case.rows) < LARGEST
    # those of tables are tuned machines that are drawn anyway, behind a preparation
    public = [name for name in tausvm.__all__ if hasattr(getattr(tausvm, name), "predict")]
    drawn = [name for name in public if name not in tausvm.tabular.__all__]
    for kind in (*drawn, "rank", "unit", "mean", "weights:", "callable", "auto", "exponential"):
        assert seen[kind], kind
    assert {"rbf", "linear", "laplacian", "poly", "sigmoid", "precomputed"} <= set(seen)
    assert {"csr_matrixfloat64", "ndarrayfloat32"} <= set(seen)
    assert 1 in levels and max(levels) > 60
