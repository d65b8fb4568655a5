"""Warm starts: the old β made feasible, the old gradient recycled, the same optimum sooner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tausvm.solvers import SOLVERS, SolverOptions, Status, solve, warm_start

from .cases import LOSSES, Case, random_case
from .checks import OPTIONS, assert_feasible


def expectile_case(offset: bool, n: int = 200) -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return Case(X, y, np.ones(n), "squared_pinball", "rbf", offset, C=1.0, tau=0.5, gamma=1.0)


CHANGES = {
    "C up": {"C": 1.5},
    "C down": {"C": 0.6},
    "tau": {"tau": 0.55},
    "epsilon": {"epsilon": 0.02},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("offset", [False, True])
def test_start_is_feasible_and_its_gradient_exact(offset: bool, loss: str, change: str) -> None:
    """Procedure 3: K times the new β, of which only the changed part was computed."""
    case = random_case(21, loss, "rbf", offset, True, log_C=(-1, 1))
    old = solve(case.problem(), "auto", OPTIONS)
    changed = dict(CHANGES[change])
    if "C" in changed:
        changed["C"] *= case.C
    new = replace(case, **changed)
    problem = new.problem()
    start = warm_start(problem, old)
    beta, fitted = start.beta, start.fitted
    terms = problem.terms
    assert (beta >= terms.lower).all() and (beta <= terms.upper).all()
    if offset:
        assert abs(beta.sum()) <= 1e-12 * max(np.abs(beta).sum(), 1.0)
    np.testing.assert_allclose(fitted, case.K @ beta, atol=1e-10 * (1 + np.abs(fitted).max()))


def test_unchanged_bounds_recycle_the_gradient_without_a_kernel_value() -> None:
    """Squared losses have no bounds: β and Kβ stay, no row is computed."""
    case = expectile_case(False)
    old = solve(case.problem(), "smo", OPTIONS)
    problem = replace(case, C=2.0).problem()
    start = warm_start(problem, old)
    beta, fitted = start.beta, start.fitted
    np.testing.assert_array_equal(beta, old.beta)
    np.testing.assert_array_equal(fitted, old.fitted)
    assert problem.operator.rows_computed == 0


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("offset", [False, True])
def test_warm_smo_ends_at_the_same_optimum_in_fewer_steps(offset: bool, change: str) -> None:
    case = expectile_case(offset)
    options = SolverOptions(tol=1e-5, time_limit=20)
    old = solve(case.problem(), "smo", options)
    new = replace(case, **CHANGES[change])
    cold = solve(new.problem(), "smo", options)
    warm = solve(new.problem(), "smo", options, start=old)
    assert warm.status is cold.status is Status.SOLVED
    assert warm.dual_objective == pytest.approx(cold.dual_objective, rel=2e-5)
    assert warm.n_iter < cold.n_iter


SERVED = [
    (loss, solver)
    for loss in LOSSES
    for solver in SOLVERS
    if solver != "newton" or loss.startswith("squared")
]


@pytest.mark.parametrize(("loss", "solver"), SERVED)
@pytest.mark.parametrize("offset", [False, True])
def test_every_solver_takes_a_start(offset: bool, loss: str, solver: str) -> None:
    case = random_case(22, loss, "rbf", offset, False, log_C=(-1, 0.5), largest_n=50)
    old = solve(case.problem(), solver, OPTIONS)
    # the same problem again: nothing is left to do
    again = solve(case.problem(), solver, OPTIONS, start=old)
    assert again.status is Status.SOLVED
    assert again.n_iter == 0
    new = replace(case, C=0.3 * case.C, tau=0.9 * case.tau)
    warm = solve(new.problem(), solver, OPTIONS, start=old)
    cold = solve(new.problem(), solver, OPTIONS)
    assert warm.status is cold.status is Status.SOLVED
    assert_feasible(new, warm)
    assert warm.dual_objective == pytest.approx(cold.dual_objective, rel=3e-8)
    # the start itself is left as it was
    np.testing.assert_array_equal(old.beta, again.beta)


@pytest.mark.parametrize("loss", ["pinball", "squared_pinball"])
def test_path_down_the_grid(loss: str) -> None:
    """C rising, each fit from the one before, as the paper selects λ."""
    case = replace(expectile_case(False), loss=loss, epsilon=0.0)
    options = SolverOptions(tol=1e-4, time_limit=20)
    warm_steps = cold_steps = 0
    old = None
    for C in np.geomspace(0.01, 10, 8):
        problem = replace(case, C=C).problem()
        cold = solve(problem, "smo", options)
        old = solve(problem, "smo", options, start=old)
        assert old.dual_objective == pytest.approx(cold.dual_objective, rel=2e-4)
        warm_steps += old.n_iter
        cold_steps += cold.n_iter
    assert warm_steps < cold_steps
