"""Newton's method from face to face: its systems, what it takes, and what it refuses to take."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tausvm.solvers import Block, Faces, SolverOptions, solve
from tausvm.solvers.faces import ProximalFaces, Systems, newton_on_faces
from tausvm.solvers.linalg import LinAlgError
from tausvm.solvers.monitor import Monitor

from ..reference.qp import reference_optimum
from .cases import LOSSES, Case, random_case


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), columns=st.sampled_from([0.0, 0.3, 10.0]))
def test_systems_of_faces_that_differ(seed, columns):
    """(K_FF + ridge_F) x = r, whichever face was factorised before."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    X = rng.normal(size=(n, 3))
    case = Case(X, rng.normal(size=n), np.ones(n), "pinball", "rbf", True, 1.0, gamma=0.7)
    systems = Systems(case.problem(), Faces(columns=columns))
    inside, ridge = rng.random(n) < 0.7, rng.uniform(0.1, 1.0, size=n)
    inside[0] = True
    for _ in range(5):
        at = np.flatnonzero(inside)
        right = rng.normal(size=(len(at), 2))
        expected = np.linalg.solve(case.K[np.ix_(at, at)] + np.diag(ridge[at]), right)
        np.testing.assert_allclose(systems.solve(at, ridge, right), expected, atol=1e-9)
        turned = rng.random(n) < 0.2
        inside[turned] = ~inside[turned]
        inside[0] = True
        ridge = np.where(rng.random(n) < 0.1, rng.uniform(0.1, 1.0, size=n), ridge)


def near_solution(case, gap):
    """The problem, and a point from which faces should get to its solution."""
    problem = case.problem()
    found = solve(problem, Block(faces=Faces(pulling=-1.0)), SolverOptions(tol=gap))
    return problem, found.beta.copy(), found.fitted - problem.y


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("offset", [True, False])
def test_faces_end_at_the_solution(loss, offset):
    arrived = 0
    for seed in range(12):
        case = random_case(seed, loss, "rbf", offset, False, largest_n=60, log_C=(0.0, 2.0))
        problem, beta, gradient = near_solution(case, 3e-2)
        before = problem.gap_from(beta, gradient)
        monitor = Monitor(problem, SolverOptions(), "faces")
        try:
            helped = newton_on_faces(problem, beta, gradient, monitor, Faces())
        except LinAlgError:
            continue
        np.testing.assert_allclose(gradient, case.K @ beta - case.y, atol=1e-8)
        after = problem.gap_from(beta, gradient)
        terms = problem.terms
        assert ((beta >= terms.lower) & (beta <= terms.upper)).all()
        assert not offset or abs(beta.sum()) <= 1e-10 * max(np.abs(beta).sum(), 1.0)
        assert after <= before and (not helped or after <= 0.5 * before)
        if after <= 1e-9:
            arrived += 1
            fitted = gradient + case.y
            primal = problem.primal_value(beta, fitted, problem.best_intercept(fitted))
            optimum = reference_optimum(case.K, case.y, case.costs, offset)
            np.testing.assert_allclose(primal, optimum.upper, rtol=1e-5, atol=1e-7)
    assert arrived >= 4


def test_a_singular_face_is_refused_and_nothing_moves():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    case = Case(X, rng.normal(size=20), np.ones(20), "pinball", "rbf", True, 1e3)
    problem = case.problem()
    beta = rng.normal(size=20)
    beta -= beta.mean()
    gradient, start = case.K @ beta - case.y, beta.copy()
    with pytest.raises(LinAlgError):
        newton_on_faces(problem, beta, gradient, Monitor(problem, SolverOptions(), "x"), Faces())
    np.testing.assert_array_equal(beta, start)


@pytest.mark.parametrize("C", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("loss", ["pinball", "epsilon_insensitive", "hinge"])
def test_large_costs_take_few_systems(loss, C):
    """Where bounds do not bind, a few blocks and a system are enough: steps alone take hundreds."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 6))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=150)
    y = np.sign(y) if loss == "hinge" else y
    case = Case(X, y, np.ones(150), loss, "rbf", True, C, tau=0.3, epsilon=0.01, gamma=0.2)
    found = solve(case.problem(dtype=np.float32), "block", SolverOptions(tol=1e-4))
    assert found.dual_gap <= 1e-4
    assert found.n_iter <= 12


def test_attempts_that_turn_too_much_are_given_up():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(80, 2))
    case = Case(X, np.sin(9 * X[:, 0]), np.ones(80), "pinball", "laplacian", True, 30.0, gamma=3.0)
    problem = case.problem()
    beta, gradient = np.zeros(80), -case.y.copy()
    monitor = Monitor(problem, SolverOptions(), "faces")
    assert not newton_on_faces(problem, beta, gradient, monitor, Faces(most=1e-6, worth=0.0))
    stopped = Monitor(problem, SolverOptions(time_limit=0.0), "faces")
    before = beta.copy()
    assert not newton_on_faces(problem, beta, gradient, stopped, Faces())
    np.testing.assert_array_equal(beta, before)


def noise_free(n, C, offset, copies=False):
    """Targets without noise: every variable ends inside, on a matrix that is nearly singular."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    if copies:  # of rows, with targets of their own: K of a face with both of them is singular
        X[::10], y[::10] = X[1::10], y[1::10] + 0.1
    return Case(X, y, np.ones(n), "pinball", "rbf", offset, C, tau=0.3, gamma=0.5)


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_proximal_steps_arrive_where_faces_do_not(offset, copies):
    """A ridge holds faces together that are singular, or that fall apart: from the start on."""
    case = noise_free(120, 100.0, offset, copies)
    problem = case.problem()
    beta = np.zeros(120)
    gradient, monitor = -case.y.copy(), Monitor(problem, SolverOptions(), "faces")
    try:
        helped = newton_on_faces(problem, beta.copy(), gradient.copy(), monitor, Faces())
    except LinAlgError:
        helped = False
    assert not helped
    steps = ProximalFaces(problem, beta, gradient, monitor, Faces(failures=5))
    gaps = [steps.gap]
    while gaps[-1] > 1e-5 and len(gaps) < 40:
        assert not steps.ended
        steps.step()
        gaps.append(steps.gap)
        np.testing.assert_allclose(gradient, case.K @ beta - case.y, atol=1e-9)
        assert steps.gap == pytest.approx(problem.gap_from(beta, gradient), rel=1e-9, abs=1e-12)
    assert (np.diff(gaps) <= 0).all() and gaps[-1] <= 1e-5
    terms = problem.terms
    assert ((beta >= terms.lower) & (beta <= terms.upper)).all()
    assert not offset or abs(beta.sum()) <= 1e-10 * np.abs(beta).sum()
    optimum = reference_optimum(case.K, case.y, case.costs, offset)
    fitted = gradient + case.y
    primal = problem.primal_value(beta, fitted, problem.best_intercept(fitted))
    np.testing.assert_allclose(primal, optimum.upper, rtol=1e-4)


def test_a_proximal_step_is_the_minimum_it_is_said_to_be():
    """β⁺ minimises dual(β) + (σ/2)‖β − centre‖²: its slopes agree, but at the bounds."""
    case = noise_free(60, 100.0, True)
    problem = case.problem()
    beta, gradient = np.zeros(60), -case.y.copy()
    monitor = Monitor(problem, SolverOptions(), "faces")
    steps = ProximalFaces(problem, beta, gradient, monitor, Faces())
    sigma, centre = steps.sigma, beta.copy()
    steps.step()
    slope = case.K @ beta - case.y + sigma * (beta - centre)
    inside = (beta > problem.terms.lower) & (beta < problem.terms.upper)
    assert inside.sum() > 1
    np.testing.assert_allclose(slope[inside], slope[inside].mean(), atol=1e-7)
    level = slope[inside].mean()
    assert (slope[beta == problem.terms.upper] <= level + 1e-7).all()
    assert (slope[beta == problem.terms.lower] >= level - 1e-7).all()


def test_sigma_rises_after_a_step_that_failed():
    case = noise_free(60, 1.0, True)
    problem = case.problem()
    beta, gradient = np.zeros(60), -case.y.copy()
    monitor = Monitor(problem, SolverOptions(), "faces")
    few = Faces(sigma=1e-13, systems=1, failures=1)
    steps = ProximalFaces(problem, beta, gradient, monitor, few)
    sigma = steps.sigma
    steps.step()
    assert steps.sigma > sigma and not steps.ended
    steps.step()
    assert steps.ended


def test_a_small_rank_is_found_where_a_face_is_singular():
    """Then direct solves are cheap, and on all variables: steps end early."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 1))
    y = np.sin(2 * X[:, 0]) + 1e-4 * rng.normal(size=700)
    case = Case(X, y, np.ones(700), "pinball", "rbf", True, 3e3, tau=0.6, gamma=0.5)
    problem = case.problem(dtype=np.float32)
    found = solve(problem, "block", SolverOptions(tol=1e-4))
    assert found.dual_gap <= 1e-4
    blind = solve(problem, Block(small_rank=0.0), SolverOptions(tol=1e-4))
    assert found.n_iter < blind.n_iter
