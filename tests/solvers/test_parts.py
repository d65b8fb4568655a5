"""The parts that solvers share: factorisations, working sets, the interior-point method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

from tausvm.losses import Hinge
from tausvm.operators import GivenKernel
from tausvm.solvers import Problem, SolverOptions
from tausvm.solvers.barrier import interior_point
from tausvm.solvers.linalg import Panels, cholesky, cholesky_solve, solve_lower
from tausvm.solvers.monitor import Monitor
from tausvm.solvers.nystrom import Nystrom
from tausvm.solvers.working import Derivatives

from ..reference.qp import natural_size, reference_optimum
from .cases import FLAWS, KERNELS, LOSSES, random_case

seeds = st.integers(0, 100_000)
SMALL = Panels(one_call=16, width=8)


@pytest.mark.parametrize("n", [1, 7, 16, 40, 95, 130])
def test_cholesky_by_panels(n: int) -> None:
    root = np.random.default_rng(n).normal(size=(n, n))
    matrix = root @ root.T + np.eye(n)
    factor = cholesky(matrix.copy(order="F"), SMALL)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-9, atol=1e-10)
    right = np.arange(n, dtype=float)
    np.testing.assert_allclose(matrix @ cholesky_solve(factor, right), right, atol=1e-8)


@pytest.mark.parametrize("dtype, digits", [(np.float32, 1e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("shape", [(30,), (30, 4), (30, 0)])
def test_triangular_and_whole_solves(dtype: type, digits: float, shape: tuple[int, ...]) -> None:
    """Both precisions, vectors and columns in either order; the right side is left alone."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 30))
    matrix = (root @ root.T / 30 + np.eye(30)).astype(dtype)
    factor = cholesky(matrix.copy(order="F"))
    assert factor.dtype == dtype
    for order in "CF":
        right = np.array(rng.normal(size=shape), dtype=dtype, order=order)
        before = right.copy()
        np.testing.assert_allclose(matrix @ cholesky_solve(factor, right), before, atol=digits)
        np.testing.assert_allclose(
            np.tril(factor) @ solve_lower(factor, right), before, atol=digits
        )
        np.testing.assert_array_equal(right, before)


@pytest.mark.parametrize("n", [5, 60])
def test_cholesky_of_an_indefinite_matrix(n: int) -> None:
    matrix = np.eye(n, order="F")
    matrix[-1, -1] = -1.0
    with pytest.raises(LinAlgError, match="not positive definite"):
        cholesky(matrix, SMALL)


@given(seeds, st.sampled_from(LOSSES), st.booleans())
def test_derivatives_are_one_sided_differences(seed: int, loss: str, offset: bool) -> None:
    """up and down are what the dual gains per unit when one variable moves."""
    case = random_case(seed, loss, "rbf", offset, True, largest_n=10, log_C=(-1, 1))
    problem = case.problem()
    rng = np.random.default_rng(seed)
    beta = problem.feasible(rng.normal(size=len(case.y)) * case.C)
    beta[rng.random(len(beta)) < 0.3] = 0.0
    at = Derivatives.at(problem, beta, case.K @ beta - case.y)
    step = 1e-7 * max(case.C, 1e-3)
    terms = problem.terms

    def dual(at: np.ndarray) -> float:
        return problem.dual_value(at, at, case.K @ at)

    def gain(k: int, by: float) -> float:
        moved = beta.copy()
        moved[k] += by
        return dual(moved) - dual(beta)

    size = 1e-4 * (1 + np.abs(case.y).max() + np.abs(case.K @ beta).max())
    size += 1e-15 * abs(dual(beta)) / step  # what a difference of two duals rounds
    for k in range(len(beta)):
        if beta[k] >= terms.upper[k]:
            assert at.up[k] == -np.inf
        elif beta[k] < terms.upper[k] - step and not -step < beta[k] < 0:
            assert at.up[k] == pytest.approx(gain(k, step) / step, abs=size)
        if beta[k] <= terms.lower[k]:
            assert at.down[k] == np.inf
        elif beta[k] > terms.lower[k] + step and not 0 < beta[k] < step:
            assert at.down[k] == pytest.approx(-gain(k, -step) / step, abs=size)
    fitted = case.K @ beta
    violation = problem.terms.violation(beta, case.y, fitted, 0.0, problem.offset)
    assert violation == pytest.approx(max(at.violation, 0.0))
    assert (at.inside == (at.up == at.down)).all()


@given(seeds, st.booleans(), st.integers(2, 60))
def test_unsettled_variables(seed: int, offset: bool, size: int) -> None:
    """As many as asked for at most, the worst pair always among them."""
    case = random_case(seed, "epsilon_insensitive", "rbf", offset, True, log_C=(-1, 1))
    problem = case.problem()
    rng = np.random.default_rng(seed)
    beta = problem.feasible(rng.normal(size=len(case.y)) * case.C)
    at = Derivatives.at(problem, beta, case.K @ beta - case.y)
    chosen = at.unsettled(size)
    assert len(chosen) <= max(size, 2)
    assert (np.diff(chosen) > 0).all()
    if len(case.y) > size:
        worst = {int(at.up.argmax()), int(at.down.argmin())}
        assert worst <= set(chosen.tolist()) or not offset
        pull = np.maximum(at.up, -at.down)
        assert pull[chosen].max() == pull.max()


def test_offset_with_one_label_is_the_finite_end() -> None:
    y = np.ones(4)
    problem = Problem(GivenKernel(np.eye(4)), y, Hinge().dual_terms(y, y), offset=True)
    assert Derivatives.at(problem, np.zeros(4), -y).offset == 1.0
    problem = Problem(GivenKernel(np.eye(4)), -y, Hinge().dual_terms(-y, y), offset=True)
    assert Derivatives.at(problem, np.zeros(4), y).offset == -1.0


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_interior_point_alone(loss: str, kernel: str, offset: bool) -> None:
    """Before any polishing: β of the program itself, with weights of 0 among the samples.

    Not for constant y: its β = 0 is what the drivers look at first.
    """
    for seed, flaw in enumerate(FLAWS[:3]):
        case = random_case(900 + seed, loss, kernel, offset, True, flaw, log_C=(-3, 3))
        problem = case.problem()
        beta = interior_point(case.K, case.y, problem.terms, 0.0 if offset else None).snapped
        assert (beta >= problem.terms.lower).all() and (beta <= problem.terms.upper).all()
        beta = problem.feasible(beta)
        optimum = reference_optimum(case.K, case.y, case.costs, offset)
        value = problem.dual_value(beta, beta, case.K @ beta)
        scale = max(optimum.upper, 1e-6 * natural_size(case.y, case.costs))
        assert optimum.lower - value <= 1e-6 * scale, str(case)


def test_interior_point_keeps_another_sum() -> None:
    """A block of a larger problem: Σβ on it is whatever it was."""
    case = random_case(7, "pinball", "rbf", True, False, log_C=(0, 1))
    terms = case.problem().terms
    for total in (-0.3 * case.C, 0.0, 0.3 * case.C):
        beta = interior_point(case.K, case.y, terms, total).snapped
        assert beta.sum() == pytest.approx(total, abs=1e-6 * np.abs(beta).sum())


def test_interior_point_without_freedom_and_interrupted() -> None:
    case = random_case(7, "pinball", "rbf", False, False)
    none = case.package_loss.dual_terms(case.y, np.zeros(len(case.y)))
    assert (interior_point(case.K, case.y, none, None).snapped == 0.0).all()
    terms = case.problem().terms
    beta = interior_point(case.K, case.y, terms, None, lambda: True).snapped
    assert (beta >= terms.lower).all() and (beta <= terms.upper).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nystrom_is_exact_at_full_rank(dtype: type) -> None:
    case = random_case(3, "squared_pinball", "rbf", False, False)
    n = len(case.y)
    preconditioner = Nystrom(case.problem(dtype=dtype).operator, n)
    rng = np.random.default_rng(0)
    for active in (np.arange(n), np.sort(rng.permutation(n)[: n // 2])):
        ridge = rng.uniform(1.0, 2.0, size=len(active))
        preconditioner.prepare(active, ridge)
        right = rng.normal(size=len(active))
        expected = np.linalg.solve(case.K[np.ix_(active, active)] + np.diag(ridge), right)
        np.testing.assert_allclose(preconditioner.solve(right), expected, atol=1e-4)


def test_nystrom_of_zero_rows() -> None:
    """No landmark with a value: the diagonal alone is left, and no endless search for a ridge."""
    preconditioner = Nystrom(GivenKernel(np.zeros((6, 6))), 3)
    preconditioner.prepare(np.arange(6), np.full(6, 2.0))
    np.testing.assert_allclose(preconditioner.solve(np.ones(6)), 0.5, rtol=1e-5)


def test_monitor_refines_rounded_gradients() -> None:
    """A small gap that does not fall is looked at with exact values, rows in float32 or not."""
    case = random_case(8, "pinball", "rbf", False, False, log_C=(0, 1))
    beta = reference_optimum(case.K, case.y, case.costs, False).beta
    beta = case.problem().feasible(beta)
    for dtype, refined in ((np.float32, True), (np.float64, False)):
        problem = case.problem(dtype=dtype)
        monitor = Monitor(problem, SolverOptions(tol=1e-13), "none")
        exact = case.K @ beta - case.y
        gradient = exact + 1e-7
        for _ in range(15):
            assert not monitor.check_gradient(beta, gradient, 0, 0.0)
        assert np.allclose(gradient, exact, rtol=0, atol=1e-9) == refined
