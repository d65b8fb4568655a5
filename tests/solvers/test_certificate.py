"""The certificate: what the docstring of the problem states, recomputed from the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tausvm.losses import EpsilonInsensitive, Hinge, SquaredPinball
from tausvm.operators import GivenKernel
from tausvm.solvers import Point, Problem, SolverOptions, Status, solve
from tausvm.solvers.result import Progress, relative_gap
from tausvm.solvers.rules import ClippedGap

from ..reference.objective import dual_objective, primal_objective
from ..reference.qp import reference_optimum
from .cases import KERNELS, LOSSES, Case, random_case
from .checks import OPTIONS, certified

seeds = st.integers(0, 100_000)
flags = st.booleans()


def feasible_point(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Some β of the dual's domain."""
    problem = case.problem()
    point = rng.normal(size=len(case.y)) * 10 ** rng.uniform(-2, 1) * case.cost.max()
    return problem.feasible(point)


def violation(problem: Problem, beta: np.ndarray, fitted: np.ndarray) -> float:
    b = float(problem.best_intercept(fitted))
    return problem.terms.violation(beta, problem.y, fitted, b, problem.offset)


@given(seeds, st.sampled_from(LOSSES), st.sampled_from(KERNELS), flags, flags)
def test_objectives_are_the_stated_formulas(
    seed: int, loss: str, kernel: str, offset: bool, weighted: bool
) -> None:
    """Primal, dual and gap at any feasible point; the primal is never below the dual."""
    case = random_case(seed, loss, kernel, offset, weighted, largest_n=20)
    rng = np.random.default_rng(seed)
    beta = feasible_point(case, rng)
    found = certified(case.problem(), beta)
    fitted = case.K @ beta
    np.testing.assert_allclose(found.fitted, fitted, rtol=1e-9, atol=1e-9)
    primal = primal_objective(case.K, case.y, case.costs, beta, found.intercept)
    dual = dual_objective(case.K, case.y, case.costs, beta)
    size = 1e-10 * (abs(primal) + abs(dual) + abs(beta @ fitted) + abs(beta @ case.y)) + 1e-300
    assert found.primal == pytest.approx(primal, abs=size)
    assert found.dual == pytest.approx(dual, abs=size)
    # gap   ½βᵀKβ + Σ cᵢ ℓ(yᵢ − f(xᵢ) − b) + ½βᵀKβ − yᵀβ + Σ gᵢ(βᵢ)
    terms = case.package_loss.dual_terms(case.y, case.cost)
    losses = case.cost * case.package_loss.value(case.y - fitted - found.intercept, case.y)
    gap = beta @ fitted + losses.sum() - case.y @ beta + terms.value(beta).sum()
    assert found.primal - found.dual == pytest.approx(gap, abs=size)
    assert gap >= -size
    assert found.gap == relative_gap(found.primal, found.dual)
    assert found.violation >= 0.0
    if offset:  # no other offset is better
        for b in found.intercept + np.array([-1.0, -1e-3, 1e-3, 1.0]):
            assert primal <= primal_objective(case.K, case.y, case.costs, beta, b) + size
    else:
        assert found.intercept == 0.0


@given(seeds, st.sampled_from(LOSSES), flags)
def test_weak_duality_between_any_two_points(seed: int, loss: str, offset: bool) -> None:
    """The dual at one point bounds the primal at any other."""
    case = random_case(seed, loss, "rbf", offset, False, largest_n=15)
    rng = np.random.default_rng(seed)
    problem = case.problem()
    certificates = [certified(problem, feasible_point(case, rng)) for _ in range(4)]
    highest = max(c.dual for c in certificates)
    lowest = min(c.primal for c in certificates)
    assert highest <= lowest + 1e-9 * abs(lowest)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_violation_is_zero_at_the_optimum_only(loss: str, offset: bool) -> None:
    case = random_case(11, loss, "rbf", offset, True, largest_n=40, log_C=(-1, 1))
    problem = case.problem()
    optimum = reference_optimum(case.K, case.y, case.costs, offset)
    result = solve(problem, "auto", OPTIONS.with_(tol=1e-10))
    size = float(np.abs(case.y).max())
    assert result.kkt_violation <= 1e-4 * size
    # the reference's own solution, up to clarabel's tolerance: variables that end near a
    # bound or 0 are put there
    terms = problem.terms
    near = 1e-6 * max(float(np.abs(optimum.beta).max()), 1e-12)
    beta = np.where(np.abs(optimum.beta) < near, 0.0, optimum.beta)
    beta = np.where(terms.upper - beta < near, terms.upper, beta)
    beta = np.where(beta - terms.lower < near, terms.lower, beta)
    assert violation(problem, beta, case.K @ beta) <= 1e-3 * size
    assert violation(problem, np.zeros(len(case.y)), np.zeros(len(case.y))) > 1e-2 * size


def test_violation_by_hand() -> None:
    """Two samples, K = I: up and down are y − f − g′."""
    y = np.array([3.0, -1.0])
    terms = EpsilonInsensitive(0.5).dual_terms(y, np.ones(2))
    for offset, expected in ((False, 2.5), (True, 2.5 - -0.5)):
        problem = Problem(GivenKernel(np.eye(2)), y, terms, offset)
        assert violation(problem, np.zeros(2), np.zeros(2)) == pytest.approx(expected)
    # at β = (1, −0.5) without offset: the first is at its bound, the second at its optimum
    beta = np.array([1.0, -0.5])
    problem = Problem(GivenKernel(np.eye(2)), y, terms, False)
    assert violation(problem, beta, beta) == 0.0
    assert certified(problem, beta).gap <= 1e-15


def test_clipped_gap() -> None:
    """Predictions clipped at ±M have at most the loss of the others where |y| ≤ M."""
    case = random_case(3, "squared_pinball", "rbf", False, False, log_C=(1, 2))
    M = float(np.abs(case.y).max())
    problem, rng = case.problem(), np.random.default_rng(0)
    for _ in range(20):
        beta = feasible_point(case, rng)
        fitted = case.K @ beta
        inside = np.clip(fitted, -M, M)
        primal = 0.5 * beta @ fitted + case.costs.value(case.y - inside).sum()
        expected = relative_gap(primal, dual_objective(case.K, case.y, case.costs, beta))
        rule = ClippedGap(M)(problem, Point.of(beta, 0.0, fitted))
        assert rule == pytest.approx(expected, rel=1e-9)
        assert primal <= certified(problem, beta).primal * (1 + 1e-12)


@pytest.mark.parametrize("solver", ["smo", "block", "interior_point", "newton"])
def test_clipped_gap_stops_no_later(solver: str) -> None:
    """The rule decides when to stop; the certificate is of what was not clipped."""
    case = random_case(4, "squared_pinball", "rbf", False, False, log_C=(2, 3))
    case.epsilon = 0.0
    problem, options = case.problem(), SolverOptions(tol=1e-3, time_limit=10)
    rule = ClippedGap(float(np.abs(case.y).max()))
    plain = solve(problem, solver, options)
    clipped = solve(problem, solver, options.with_(rule=rule))
    assert plain.status is Status.SOLVED
    within = clipped.dual_gap <= 1e-3
    assert clipped.status is (Status.SOLVED if within else Status.STOPPED_BY_RULE)
    assert clipped.n_iter <= plain.n_iter
    assert rule(problem, Point.of(clipped.beta, clipped.intercept, clipped.fitted)) <= 1e-3
    assert clipped.dual_gap == certified(problem, clipped.beta).gap


@pytest.mark.parametrize("solver", ["smo", "block", "interior_point", "newton", "auto"])
@pytest.mark.parametrize("offset", [False, True])
def test_result_is_recomputed_from_the_data(solver: str, offset: bool) -> None:
    case = random_case(5, "squared_pinball", "rbf", offset, True, log_C=(-1, 1))
    case.weights[case.weights == 0] = 1.0
    problem = case.problem(dtype=np.float32)
    result = solve(problem, solver, SolverOptions(tol=1e-6, time_limit=10))
    again = certified(problem, result.beta)
    np.testing.assert_array_equal(result.fitted, again.fitted)
    assert result.primal_objective == again.primal
    assert result.dual_objective == again.dual
    assert result.dual_gap == again.gap
    assert result.kkt_violation == again.violation
    assert result.intercept == again.intercept
    assert result.trace, "gap checks are kept"
    assert [p.n_iter for p in result.trace] == sorted(p.n_iter for p in result.trace)


def test_relative_gap() -> None:
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(1.0, -3.0) == pytest.approx(4 / 3)
    assert relative_gap(1.0, 1.0 + 1e-16) == 0.0
    assert relative_gap(np.inf, 1.0) == np.inf
    assert relative_gap(np.nan, 1.0) == np.inf
    assert Progress(3, 0.1, 2.0, 1.0).gap == 0.5


@pytest.mark.parametrize("solver", ["auto", "smo", "block", "interior_point"])
def test_one_sample_one_label_and_no_freedom(solver: str) -> None:
    """The smallest and the emptiest problems."""
    one = np.ones(1)
    for loss in (EpsilonInsensitive(0.1), SquaredPinball(0.3, 0.1), Hinge()):
        for offset in (False, True):
            problem = Problem(GivenKernel(np.eye(1)), one, loss.dual_terms(one, one), offset)
            result = solve(problem, solver, OPTIONS)
            assert result.status is Status.SOLVED
            if offset:
                assert result.beta.tolist() == [0.0]
                assert result.primal_objective == 0.0
    y = np.ones(5)
    terms = Hinge().dual_terms(y, y)
    result = solve(Problem(GivenKernel(np.eye(5)), y, terms, True), solver, OPTIONS)
    assert result.status is Status.SOLVED
    assert result.intercept == pytest.approx(1.0)
    nothing = EpsilonInsensitive(0.0).dual_terms(y, np.zeros(5))
    result = solve(Problem(GivenKernel(np.eye(5)), y, nothing, False), solver, OPTIONS)
    assert result.status is Status.SOLVED
    assert (result.beta == 0).all()
