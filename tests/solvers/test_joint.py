"""The joint problem: solvers against clarabel and against each other, certificates, limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import minimize

from tausvm.kernels import Points, level_kernel, make_kernel
from tausvm.losses import (
    DualTerms,
    EpsilonInsensitive,
    GroupTerms,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from tausvm.operators import GivenKernel, SeparableKernel, TransformedKernel
from tausvm.solvers import (
    Auto,
    Block,
    JointInteriorPoint,
    Point,
    PrimalDualCD,
    Problem,
    SolverOptions,
    Status,
    certificate,
    explain,
    solve,
)
from tausvm.solvers.joint import factors
from tausvm.solvers.joint.factors import KroneckerFactor, factor_of, pivoted_cholesky
from tausvm.solvers.joint.iterate import Iterate
from tausvm.solvers.joint.offsets import best_offsets
from tausvm.solvers.joint.posing import posed as pose
from tausvm.solvers.joint.preconditioners import Directions, OutputWise, Truncated
from tausvm.solvers.joint.settings import Cones, Equations
from tausvm.solvers.joint.systems import (
    DenseSystem,
    FactorSystem,
    PreconditionedSystem,
    system_for,
)
from tausvm.solvers.units import Units

from ..reference.joint import solve_program

TAUS = (0.25, 0.5, 0.75)


def build(
    gram: SeparableKernel | TransformedKernel,
    y: np.ndarray,
    kind: type = Pinball,
    C: float = 1.0,
    epsilon: float = 0.0,
    offset: bool = True,
    taus: tuple[float, ...] = TAUS,
    weight: np.ndarray | None = None,
) -> Problem:
    targets = np.repeat(y[:, None], len(taus), axis=1)
    cost = C * (np.ones(len(y)) if weight is None else weight)
    terms = GroupTerms.build([kind(t) for t in taus], targets, cost, epsilon)
    return Problem(gram, targets, terms, offset)


def wave(n: int, seed: int = 0, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * (X[:, 0] + 2.5) * rng.normal(size=n)


def rbf(X: np.ndarray, gamma: float = 0.5) -> np.ndarray:
    return make_kernel("rbf", gamma).between(Points(X), Points(X))


def random_problem(seed: int) -> Problem:
    """n ≤ 40, p ≤ 5, ε from 0 to 3, offsets on and off, four losses, weights, many kernels."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 41)), int(rng.integers(1, 6))
    X, _ = wave(n, seed, d=int(rng.integers(1, 4)))
    if seed % 5 == 0:
        X[n // 2 :] = X[: n - n // 2]  # copies of points
    taus = np.sort(rng.uniform(0.02, 0.98, p))
    B = [
        level_kernel(taus, float(rng.choice([0.1, 1.0, 10.0]))),
        np.eye(p),
        (lambda M: M @ M.T)(rng.normal(size=(p, max(1, p - 1)))),
    ][seed % 3]
    K = rbf(X, float(rng.choice([0.1, 1.0, 10.0]))) if seed % 7 else X @ X.T
    y = rng.normal(size=n)[:, None] * rng.choice([0.1, 1.0, 5.0]) + 3.0
    kind = seed % 4
    if kind < 2:
        y = np.repeat(y, p, axis=1)
        losses = [(Pinball, SquaredPinball)[kind](t) for t in taus]
    else:
        y = y + rng.normal(size=(n, p))
        losses = [(EpsilonInsensitive, SquaredEpsilonInsensitive)[kind - 2](0.0)] * p
    cost = 10.0 ** rng.uniform(-2, 2) * rng.uniform(0.5, 3.0, n)
    epsilon = float(rng.choice([0.0, 0.05, 0.3, 1.0, 3.0]))
    terms = GroupTerms.build(losses, np.ascontiguousarray(y), cost, epsilon)
    return Problem(SeparableKernel(K, B), np.ascontiguousarray(y), terms, seed % 2 == 0)


def reference_value(problem: Problem) -> float:
    """Minus the optimum of the dual by clarabel, which is that of the primal."""
    outputs = problem.terms.outputs
    operator = problem.operator
    hessian = np.kron(operator.K, operator.B)
    table = outputs.lower, outputs.upper, outputs.ridge_minus, outputs.ridge_plus
    y = problem.y
    if problem.offset:
        y = y - y.mean(axis=0)  # the same problem where Σα = 0, with fewer digits lost
    return -solve_program(hessian, y, table, problem.terms.epsilon, problem.offset)[1]


@pytest.mark.parametrize("seed", range(80))
def test_auto_against_clarabel(seed):
    problem = random_problem(seed)
    result = solve(problem, "auto", SolverOptions(tol=1e-8))
    expected = reference_value(problem)
    scale = abs(expected)
    if result.primal_objective == result.dual_objective == 0.0:  # clarabel's zero is rougher
        scale = problem.terms.outputs.conjugate(problem.y).sum()
    assert result.status is Status.SOLVED
    assert result.dual_gap <= 1e-8
    assert abs(result.primal_objective - expected) <= 1e-6 * scale
    assert abs(result.dual_objective - expected) <= 1e-6 * scale


@pytest.mark.parametrize("seed", range(0, 80, 4))
def test_primal_dual_cd_reaches_the_same_optimum(seed):
    problem = random_problem(seed)
    exact = solve(problem, "auto", SolverOptions(tol=1e-8))
    order = ("random", "cyclic")[seed // 4 % 2]
    for shrinking in (True, False):
        solver = PrimalDualCD(order=order, shrinking=shrinking)
        result = solve(problem, solver, SolverOptions(tol=1e-3, max_iter=4000))
        # the certificate holds whether or not the passes were enough
        assert result.dual_objective <= exact.primal_objective * (1 + 1e-9) + 1e-12
        assert result.primal_objective >= exact.dual_objective * (1 - 1e-9) - 1e-12
        if result.status is Status.SOLVED:
            assert result.dual_gap <= 1e-3
            assert result.primal_objective == pytest.approx(exact.primal_objective, rel=2e-3)


@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_solvers_agree_where_both_converge(kind, offset, epsilon):
    X, y = wave(60)
    problem = build(
        SeparableKernel(rbf(X), level_kernel(np.array(TAUS), 1.0)), y, kind, 1.0, epsilon, offset
    )
    exact = solve(problem, "interior_point", SolverOptions(tol=1e-8))
    for solver in (PrimalDualCD(), PrimalDualCD(order="cyclic"), PrimalDualCD(shrinking=False)):
        result = solve(problem, solver, SolverOptions(tol=1e-5))
        assert result.status is Status.SOLVED
        assert result.primal_objective == pytest.approx(exact.primal_objective, rel=2e-5)
        np.testing.assert_allclose(result.intercept, exact.intercept, atol=0.02)


def test_random_order_follows_its_seed():
    X, y = wave(30)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, epsilon=0.2)
    runs = [
        solve(problem, "primal_dual_cd", SolverOptions(max_iter=5, seed=seed)).beta
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_unknown_names_are_refused():
    X, y = wave(10)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y)
    with pytest.raises(ValueError, match=r"solver must be one of auto.*'smo'"):
        solve(problem, "smo")
    with pytest.raises(ValueError, match=r"order must be one of random.*'shuffled'"):
        PrimalDualCD(order="shuffled")
    with pytest.raises(ValueError, match="must be one for several levels, got one for one: Block"):
        solve(problem, Block())


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
def test_certificate_evaluates_the_documented_formulas(kind, epsilon):
    X, y = wave(25)
    K, B = rbf(X), level_kernel(np.array(TAUS), 1.0)
    problem = build(SeparableKernel(K, B), y, kind, 2.0, epsilon)
    result = solve(problem, "primal_dual_cd", SolverOptions(max_iter=3))
    alpha, b = result.beta, result.intercept
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-12)
    square = sum(K[i, j] * alpha[i] @ B @ alpha[j] for i in range(len(y)) for j in range(len(y)))
    residual = problem.y - K @ alpha @ B - b
    losses = sum(group_loss_by_search(kind, row, epsilon) for row in residual)
    ends = problem.terms.outputs
    terms = epsilon * np.linalg.norm(alpha, axis=1).sum()
    if kind is SquaredPinball:
        weight = np.where(alpha > 0, TAUS, 1 - np.array(TAUS))
        terms += (alpha**2 / (4 * 2.0 * weight)).sum()
    assert ((alpha >= ends.lower) & (alpha <= ends.upper)).all()
    assert result.primal_objective == pytest.approx(0.5 * square + 2.0 * losses, rel=1e-5)
    assert result.dual_objective == pytest.approx(
        np.vdot(alpha, problem.y) - 0.5 * square - terms, rel=1e-9, abs=1e-9
    )


def group_loss_by_search(kind: type, residual: np.ndarray, epsilon: float) -> float:
    """inf over ‖u‖ ≤ ε of Σⱼ ℓⱼ(rⱼ − uⱼ), by a general optimiser from several starts."""

    def loss(u: np.ndarray) -> float:
        u = u * min(1.0, epsilon / max(np.linalg.norm(u), 1e-300))
        return sum(float(kind(t).value(r - v)) for t, r, v in zip(TAUS, residual, u, strict=True))

    if epsilon == 0:
        return loss(np.zeros(3))
    starts = [residual, 0.3 * residual, np.sign(residual) * epsilon]
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000, "maxfev": 8000}
    found = [minimize(loss, start, method="Nelder-Mead", options=options).fun for start in starts]
    return min(found)


@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
def test_best_offsets(kind, epsilon):
    X, y = wave(40)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, kind, 1.0, epsilon)
    fitted = 0.3 * np.random.default_rng(1).normal(size=problem.y.shape)

    def value(b: np.ndarray) -> float:
        return float(problem.terms.conjugate(problem.y - fitted - b).sum())

    found = value(best_offsets(problem.terms, problem.y - fitted))
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 5000, "maxfev": 9000}
    start = np.median(problem.y - fitted, axis=0)
    other = minimize(value, start, method="Nelder-Mead", options=options).fun
    assert found <= other * (1 + 1e-9)


def test_zero_is_optimal_for_a_wide_tube():
    X, y = wave(30)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, epsilon=50.0)
    for solver in ("interior_point", "primal_dual_cd"):
        result = solve(problem, solver)
        assert result.status is Status.SOLVED
        assert not result.beta.any()
        assert result.primal_objective == result.dual_objective == 0.0


def test_constant_targets():
    X, _ = wave(20)
    for offset in (True, False):
        problem = build(SeparableKernel(rbf(X), np.eye(3)), np.full(20, 0.0), offset=offset)
        result = solve(problem)
        assert result.status is Status.SOLVED
        assert result.dual_gap == 0.0


def test_samples_are_support_vectors_for_all_levels_or_none():
    X, y = wave(120)
    gram = SeparableKernel(rbf(X), level_kernel(np.array(TAUS), 1.0))
    shares = []
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        problem = build(gram, y, C=10.0, epsilon=epsilon)
        result = solve(problem, "auto", SolverOptions(tol=1e-6))
        support = result.beta.any(axis=1)
        residual = problem.y - result.fitted - result.intercept
        lengths = np.linalg.norm(residual, axis=1)
        assert not support[lengths < epsilon * (1 - 1e-3)].any()
        assert support[lengths > epsilon * (1 + 1e-3)].all()
        shares.append(support.mean())
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.3 < 0.9 < shares[0]


@pytest.mark.parametrize("solver", ["interior_point", "primal_dual_cd"])
def test_warm_starts_in_C_and_epsilon(solver):
    X, y = wave(80)
    gram = SeparableKernel(rbf(X), level_kernel(np.array(TAUS), 1.0))
    options = SolverOptions(tol=1e-4)
    first = solve(build(gram, y, C=1.0, epsilon=0.5), solver, options)
    for C, epsilon in ((1.0, 0.52), (1.05, 0.5), (0.5, 0.5), (1.0, 0.0)):
        problem = build(gram, y, C=C, epsilon=epsilon)
        warm = solve(problem, solver, options, first)
        cold = solve(problem, solver, options)
        assert warm.status is cold.status is Status.SOLVED
        assert warm.primal_objective == pytest.approx(cold.primal_objective, rel=2e-4)
        if solver == "primal_dual_cd":
            assert warm.n_iter <= cold.n_iter
    again = solve(build(gram, y, C=1.0, epsilon=0.5), solver, options, first)
    assert again.n_iter == 0


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
def test_systems_give_the_same_step(kind, offset):
    """The matrix written out, reduced equations, truncated ones and every preconditioner."""
    X, y = wave(60)
    gram = SeparableKernel(rbf(X, 0.2), level_kernel(np.array(TAUS), 1.0))
    problem = build(gram, y, kind, 1.0, 0.4, offset)
    equations = Equations(residual=1e-9, guess=1e-9)
    L, rest = pivoted_cholesky(gram.K.__getitem__, np.diagonal(gram.K).copy(), 12, 1e-13)
    truncated = KroneckerFactor(L, gram.output_factor, [12] * 3, rest[:, None, None] * gram.B)
    ways = [
        DenseSystem(gram, offset, equations),
        FactorSystem(gram, factor_of(gram, equations), offset, equations),
    ]
    preconditioners = [
        lambda: OutputWise(gram, equations),
        lambda: Truncated(gram, equations, truncated),
        lambda: Directions(gram, equations, np.float32),
        lambda: Directions(gram, equations, np.float64),
    ]
    ladders = [[preconditioner] for preconditioner in preconditioners] + [preconditioners]
    ways += [PreconditionedSystem(gram, ladder, offset, equations) for ladder in ladders]
    assert rest.sum() > 1e-6 * np.trace(gram.K)
    points = []
    for system in ways:
        iterate = Iterate(problem.y, problem.terms, offset, system, Cones())
        for _ in range(4):
            iterate.step()
        points.append((iterate.alpha, iterate.b))
    for alpha, b in points[1:]:
        np.testing.assert_allclose(alpha, points[0][0], atol=1e-3)
        np.testing.assert_allclose(b, points[0][1], atol=2e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_settled_points_keep_the_gap(epsilon):
    """Rows put to 0 and entries put to a bound, with the others moved along."""
    X, y = wave(220, d=4)
    problem = build(
        SeparableKernel(rbf(X, 0.5), level_kernel(np.array(TAUS), 1.0)), y, C=50.0, epsilon=epsilon
    )
    system = system_for(problem.operator, True, Equations())
    assert isinstance(system, PreconditionedSystem)
    iterate = Iterate(problem.y, problem.terms, True, system, Cones())
    while iterate.relative_complementarity() > 1e-6:
        iterate.step()
    assert np.any(iterate.snapped() != iterate.alpha)
    gaps = [
        certificate(problem, Point.of(problem.feasible(alpha), b)).gap
        for alpha, b in ((iterate.alpha, iterate.b), iterate.settled(Cones().strict))
    ]
    assert gaps[1] <= 1.5 * gaps[0]


def test_truncated_factors_still_reach_the_optimum():
    X, y = wave(150, d=4)
    K, B = rbf(X, 0.5), level_kernel(np.array(TAUS), 1.0)
    exact = solve(build(SeparableKernel(K, B), y, C=5.0, epsilon=0.3))
    gram = SeparableKernel(K, B)
    cheap = Equations(plain=0, preconditioned=0, least_work=1e7, products=1)
    rough = solve(build(gram, y, C=5.0, epsilon=0.3), JointInteriorPoint(equations=cheap))
    assert factor_of(gram, cheap).left is not None
    assert rough.status is Status.SOLVED
    assert rough.solver == "interior_point"
    assert rough.primal_objective == pytest.approx(exact.primal_objective, rel=2e-4)


def test_pivoted_cholesky():
    X, _ = wave(50)
    K = rbf(X, 0.1)
    L, _ = pivoted_cholesky(K.__getitem__, np.diagonal(K).copy(), 50, 1e-13)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-10)
    assert L.shape[1] < 50
    short, left = pivoted_cholesky(K.__getitem__, np.diagonal(K).copy(), 5, 1e-13)
    np.testing.assert_allclose(np.diagonal(K - short @ short.T), left, atol=1e-12)


def test_a_short_look_tells_a_small_rank():
    """So many columns as a share of the passes pays for, before the whole search is worth it."""
    X, y = wave(150)
    method = JointInteriorPoint(equations=Equations(few=0))
    problem = build(SeparableKernel(rbf(X, 0.01), level_kernel(np.array(TAUS), 1.0)), y)
    assert method.longest_search(problem) > 30
    assert method.of_small_rank(problem, 30)
    assert not method.of_small_rank(problem, 3)
    for columns in (1, 10, 70):
        cost = method.cost_of_search(problem, columns)
        assert method.columns_within(problem, 1.001 * cost) == columns
    assert method.columns_within(problem, 0.0) == 0
    method.cost(problem)  # looks for the factor and keeps it
    assert method.longest_search(problem) == 0


def test_passes_give_way_early_where_the_rank_is_small():
    """The whole search promises to cost more than the passes, the short one next to nothing."""
    X, y = wave(300)
    gram = SeparableKernel(rbf(X, 0.02), level_kernel(np.array(TAUS), 1.0))
    problem = build(gram, y, SquaredPinball, C=100.0)
    dear = JointInteriorPoint(equations=Equations(few=0), column_cost=1e6)
    passes = {}
    for look in (0.0, 0.2, 50.0):
        gram.kept.clear()
        watch = Auto(joint_interior_point=dear, joint_look=look)
        passes[look] = solve(problem, watch, SolverOptions(tol=1e-6)).n_iter
    assert passes[50.0] <= passes[0.2] <= passes[0.0]
    assert passes[50.0] < passes[0.0]


def transformable(X: np.ndarray) -> TransformedKernel:
    images = [Points(np.ascontiguousarray(X * scale)) for scale in (1.0, 0.7, 0.4)]
    return TransformedKernel(make_kernel("poly", 1.0, 2, 1.0), images)


def test_transformable_products():
    X, _ = wave(15)
    gram = transformable(X)
    n, p = gram.shape
    stacked = np.vstack([image.X for image in gram.images])
    whole = (1.0 + stacked @ stacked.T) ** 2  # output by output
    alpha = np.random.default_rng(0).normal(size=(n, p))
    expected = (whole @ alpha.T.ravel()).reshape(p, n).T
    np.testing.assert_allclose(gram.product(alpha), expected, rtol=1e-12)
    np.testing.assert_allclose(gram.diagonal[4, 1, 2], whole[n + 4, 2 * n + 4], rtol=1e-12)
    np.testing.assert_allclose(gram.column(3, 2)[7, 1], whole[n + 7, 2 * n + 3], rtol=1e-12)
    rows, slots = gram.rows(np.array([3, 9, 3]))
    block = rows[slots[9]].reshape(p, n, p)
    np.testing.assert_allclose(block[2], gram.column(9, 2), rtol=1e-12)


@pytest.mark.parametrize("n", [20, 130])
def test_transformable_solvers_agree(n):
    X, y = wave(n)
    problem = build(transformable(X), y, C=0.1, epsilon=0.3)
    exact = solve(problem, "auto", SolverOptions(tol=1e-7))
    assert exact.status is Status.SOLVED
    options = SolverOptions(tol=1e-2, max_iter=3000)
    result = solve(problem, "primal_dual_cd", options)
    assert result.primal_objective == pytest.approx(exact.primal_objective, rel=2e-2)
    assert result.dual_objective <= exact.primal_objective * (1 + 1e-9)


def admissible_side(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A bound and a ridge a sample: one of them, both, or a side that is closed."""
    cost = 10.0 ** rng.uniform(-1, 1) * rng.uniform(0.5, 2.0, n)
    bound, ridge = cost * rng.uniform(0.05, 1.0), 1.0 / (2.0 * cost * rng.uniform(0.05, 1.0))
    match rng.choice(["bound", "ridge", "both", "closed"], p=[0.35, 0.25, 0.3, 0.1]):
        case "bound":
            return bound, np.zeros(n)
        case "ridge":
            return np.full(n, np.inf), ridge
        case "both":
            return bound, ridge
    return np.zeros(n), np.zeros(n)


def admissible_problem(seed: int) -> Problem:
    """Terms that no shipped loss has: every pair of sides, another one an output."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 41)), int(rng.integers(1, 5))
    numbers = np.zeros((5, n, p))
    for j in range(p):
        upper, ridge_plus = admissible_side(rng, n)
        lower, ridge_minus = admissible_side(rng, n)
        if rng.random() < 0.25:
            lower, ridge_minus = upper, ridge_plus
        numbers[:, :, j] = -lower, upper, np.zeros(n), ridge_minus, ridge_plus
    epsilon = float(rng.choice([0.0, 0.0, 0.05, 0.3, 1.0]))
    K = rbf(rng.normal(size=(n, 2)), float(rng.choice([0.1, 1.0, 10.0])))
    mixing = rng.normal(size=(p, p))
    B = mixing @ mixing.T if seed % 2 else np.eye(p)
    y = np.ascontiguousarray(rng.normal(size=(n, p)) + 3.0 * rng.normal(size=p))
    terms = GroupTerms(DualTerms(numbers), epsilon)
    return Problem(SeparableKernel(K, B), y, terms, bool(rng.random() < 0.6))


@pytest.mark.parametrize("seed", range(60))
def test_every_admissible_loss_against_clarabel(seed):
    problem = admissible_problem(seed)
    expected = reference_value(problem)
    constant = problem.terms.conjugate(problem.y - problem.constant).sum()
    scale = max(abs(expected), 1e-6 * constant, 1e-6)  # clarabel's zero is rougher
    for solver in ("interior_point", "auto"):
        result = solve(problem, solver, SolverOptions(tol=1e-7))
        assert result.status is Status.SOLVED
        assert abs(result.primal_objective - expected) <= 1e-5 * scale
        assert abs(result.dual_objective - expected) <= 1e-5 * scale
    passes = solve(problem, "primal_dual_cd", SolverOptions(tol=1e-3, max_iter=1000))
    assert passes.dual_objective <= expected + 1e-5 * scale
    assert passes.primal_objective >= expected - 1e-5 * scale
    assert passes.primal_objective - expected <= passes.dual_gap * passes.primal_objective + 1e-5


@pytest.mark.parametrize("taus", [TAUS, (0.05, 0.5, 0.95)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_quantile_huber_loss(taus, epsilon):
    """Bounds and ridges at once, another pair of each a level."""
    X, y = wave(60)
    targets = np.repeat(y[:, None], 3, axis=1)
    taus = np.array(taus)
    ones = np.ones((60, 1))
    numbers = np.stack(
        [-ones * (1 - taus), ones * taus, 0 * ones * taus, ones / (1 - taus), ones / taus]
    )
    terms = GroupTerms(DualTerms(numbers), epsilon)
    gram = SeparableKernel(rbf(X), level_kernel(taus, 1.0))
    result = solve(Problem(gram, targets, terms, True), options=SolverOptions(tol=1e-8))
    assert result.status is Status.SOLVED
    other = solve(Problem(gram, targets, terms, True), "interior_point", SolverOptions(tol=1e-8))
    assert result.primal_objective == pytest.approx(other.primal_objective, rel=2e-8)


def test_entries_settle_where_no_other_reaches_the_bound():
    """A bound that no entry reaches must not pull the nearest ones to it."""
    problem = admissible_problem(522)
    result = solve(problem, "interior_point", SolverOptions(tol=1e-7))
    assert result.status is Status.SOLVED


def posed(seed: int, factor: float = 1.0, shift: float = 0.0) -> Problem:
    plain = random_problem(seed)
    numbers = plain.terms.outputs.numbers.copy()
    numbers[:2] *= factor
    y = plain.y * factor + shift
    terms = GroupTerms(DualTerms(numbers), plain.terms.epsilon * factor)
    units = Units.of(y, np.ones(len(y)), plain.offset)
    return pose(plain.operator, y, terms, plain.offset, units)


@pytest.mark.parametrize("seed", range(0, 24, 3))
def test_results_are_in_the_units_of_the_data(seed):
    plain, options = random_problem(seed), SolverOptions(tol=1e-8)
    base = solve(plain, options=options)
    for factor in (1.0, 1e-9, 1e9):
        problem = posed(seed, factor, 1e3 * factor if plain.offset else 0.0)
        result = solve(problem, options=options)
        assert result.status is Status.SOLVED
        size = max(base.primal_objective, 1e-9)
        assert abs(result.primal_objective / factor**2 - base.primal_objective) <= 1e-6 * size
        # the certificate, evaluated again without units at what was returned
        y = plain.y * factor + (1e3 * factor if plain.offset else 0.0)
        outputs = DualTerms(plain.terms.outputs.numbers.copy())
        outputs.numbers[:2] *= factor
        terms = GroupTerms(outputs, plain.terms.epsilon * factor)
        again = Problem(plain.operator, y, terms, plain.offset)
        found = certificate(again, Point.of(result.beta, result.intercept))
        scale = max(abs(found.primal), 1e-9 * factor**2)
        assert abs(found.primal - result.primal_objective) <= 1e-7 * scale
        np.testing.assert_allclose(result.fitted, found.fitted, rtol=1e-9, atol=1e-9 * factor)
        warm = solve(problem, options=options, start=result)
        assert warm.n_iter == 0


class Clock:
    """Seconds that pass by looking at it."""

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


@pytest.mark.parametrize("solver", ["auto", "interior_point", "primal_dual_cd"])
@pytest.mark.parametrize("tick", [0.01, 0.4, 30.0])
def test_time_limits_include_the_certificate(solver, tick):
    X, y = wave(120, d=4)
    problem = build(SeparableKernel(rbf(X), level_kernel(np.array(TAUS), 1.0)), y, C=100.0)
    clock = Clock(tick)
    result = solve(
        problem, solver, SolverOptions(tol=1e-13, time_limit=2.0, clock=clock, max_iter=500)
    )
    assert clock.now <= 2.0 + 6 * tick
    assert problem.operator.watch is None
    if tick >= 0.4:
        assert result.status is Status.TIME_LIMIT
    if tick == 30.0:  # no time at all: the best constants with their gap
        assert not result.beta.any()
        assert result.dual_gap == pytest.approx(1.0)
    expected = certificate(problem, Point.of(result.beta, result.intercept))
    assert result.dual_gap == pytest.approx(expected.gap)


def test_a_limit_that_was_not_given_is_not_reached():
    """Rounding ends a solve at an extreme kernel scale, and is named as what did."""
    X, y = wave(40)
    problem = build(SeparableKernel(1e14 * rbf(X), level_kernel(np.array(TAUS), 1.0)), y)
    alone = solve(problem, "interior_point", SolverOptions(tol=1e-12))
    both = solve(problem, "auto", SolverOptions(tol=1e-12))
    assert both.status is Status.NUMERICAL_ERROR
    assert both.primal_objective <= alone.primal_objective * (1 + 1e-9)
    assert both.dual_gap <= alone.dual_gap * (1 + 1e-9)


@dataclass(frozen=True)
class Prepared(JointInteriorPoint):
    """A solver that gives a result made before."""

    result: object = None

    def solve(self, problem, options, start=None):
        return self.result


def with_a_copy(X, y):
    """The first row twice."""
    X, y = X.copy(), y.copy()
    X[1], y[1] = X[0], y[0]
    return X, y


def test_auto_keeps_the_smaller_primal_where_gaps_say_nothing():
    X, y = with_a_copy(*wave(30))
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, C=10.0)
    good = solve(problem, options=SolverOptions(tol=1e-6))
    worse = solve(problem, "primal_dual_cd", SolverOptions(max_iter=0))
    first = replace(good, dual_objective=-1e9, dual_gap=1.0, status=Status.NUMERICAL_ERROR)
    second = replace(worse, dual_gap=0.9, status=Status.MAX_ITER)
    auto = Auto(joint_interior_point=Prepared(result=first), primal_dual_cd=Prepared(result=second))
    assert second.primal_objective > first.primal_objective
    assert solve(problem, auto).primal_objective == good.primal_objective


def test_passes_end_where_rounding_ends_them():
    X, y = wave(5)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, epsilon=0.1)
    result = solve(problem, "primal_dual_cd", SolverOptions(tol=0.0))
    assert result.status in (Status.NUMERICAL_ERROR, Status.SOLVED)
    assert result.dual_gap <= 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_passes_end_without_a_kernel_to_speak_of(epsilon):
    """Offsets must move by what the residuals ask, not by what a tiny kernel allows."""
    X, y = wave(40)
    problem = build(SeparableKernel(1e-30 * rbf(X), np.eye(3)), y, epsilon=epsilon)
    result = solve(problem, "primal_dual_cd", SolverOptions(max_iter=2000))
    assert result.status is Status.SOLVED


def test_room_bounds_the_factors():
    X, y = wave(400, d=4)
    gram = SeparableKernel(rbf(X, 3.0), level_kernel(np.array(TAUS), 1.0))
    gram.room = 20e6
    assert JointInteriorPoint().bytes_needed(*gram.shape) > gram.room
    assert solve(build(gram, y), options=SolverOptions(max_iter=3)).solver == "primal_dual_cd"
    wide = factors._most_columns(1000, 1e6)
    assert factors._factor_bytes(1000, wide) <= 1e6 < factors._factor_bytes(1000, wide + 1)


@pytest.mark.parametrize("solver", ["interior_point", "primal_dual_cd"])
def test_limits(solver):
    X, y = wave(300, d=4)
    problem = build(SeparableKernel(rbf(X), level_kernel(np.array(TAUS), 1.0)), y, C=100.0)
    short = solve(problem, solver, SolverOptions(tol=1e-9, max_iter=2))
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 2
    assert 0 < short.dual_gap < np.inf
    seen = []
    stopped = solve(
        problem,
        solver,
        SolverOptions(tol=1e-9, callback=lambda at: seen.append(at) or len(seen) > 1),
    )
    assert stopped.status is Status.STOPPED_BY_CALLBACK
    assert [at.n_iter for at in seen] == sorted(at.n_iter for at in seen)
    assert stopped.trace[-1] is seen[-1]


def test_auto_rescues_a_broken_interior_point():
    X, y = wave(30)
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, C=0.3, epsilon=0.2)
    broken = JointInteriorPoint(cones=Cones(boundary=np.nan))  # no step is a number
    assert solve(problem, broken).status is Status.NUMERICAL_ERROR
    result = solve(problem, Auto(joint_interior_point=broken))
    assert result.status is Status.SOLVED
    assert result.solver == "primal_dual_cd"


def test_auto_says_what_it_does_with_several_levels():
    X, y = with_a_copy(*wave(30))
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y)
    assert explain(problem).startswith("-> interior_point   several levels or outputs, at most 75")
    unlike = build(SeparableKernel(rbf(X[1:]), np.eye(3)), y[1:])
    assert "-> primal_dual_cd   several levels" in explain(unlike)
    problem.operator.room = 0.0
    assert "-> primal_dual_cd   several levels" in explain(problem)


@pytest.mark.parametrize("C, solver", [(0.01, "primal_dual_cd"), (1e3, "interior_point")])
@pytest.mark.parametrize("columns", [1, 8])
def test_auto_takes_passes_where_they_arrive_first(C, solver, columns):
    X = np.random.default_rng(0).normal(size=(200, columns))
    y = np.sin(X[:, 0]) + 0.3 * X[:, -1] ** 2
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, C=C)
    result = solve(problem, options=SolverOptions(tol=1e-4))
    assert result.status is Status.SOLVED and result.solver == solver
    other = solve(problem, "interior_point", SolverOptions(tol=1e-8))
    assert result.primal_objective <= other.primal_objective * (1 + 1e-4) + 1e-12


def test_passes_and_steps_share_the_limits():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.sin(X[:, 0]) + 0.3 * X[:, -1] ** 2
    problem = build(SeparableKernel(rbf(X), np.eye(3)), y, C=1e3)
    result = solve(problem, options=SolverOptions(tol=1e-8, max_iter=13))
    assert result.status is Status.MAX_ITER and 10 < result.n_iter <= 13


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
def test_one_level_is_the_problem_of_one_level(kind, epsilon, offset):
    """The same optimum, the same certificate at the same point, the same result in shape."""
    X, y = wave(50)
    K = rbf(X)
    together = build(SeparableKernel(K, np.eye(1)), y, kind, 2.0, epsilon, offset, (0.3,))
    terms = kind(0.3, epsilon).dual_terms(y, np.full(50, 2.0))
    alone = Problem(GivenKernel(K), y, terms, offset)
    options = SolverOptions(tol=1e-9)
    ours, theirs = solve(together, options=options), solve(alone, options=options)
    assert ours.status is theirs.status is Status.SOLVED
    assert ours.primal_objective == pytest.approx(theirs.primal_objective, rel=1e-8)
    np.testing.assert_allclose(ours.fitted[:, 0], theirs.fitted, atol=1e-4)
    point = Point.of(theirs.beta, theirs.intercept)
    group = Point.of(theirs.beta[:, None], np.array([theirs.intercept]))
    first, second = certificate(alone, point), certificate(together, group)
    assert second.primal == pytest.approx(first.primal, rel=1e-12)
    assert second.dual == pytest.approx(first.dual, rel=1e-12)
