"""What a result is compared with, and how closely."""

from __future__ import annotations

import numpy as np

from tausvm.solvers import (
    Certificate,
    Point,
    Problem,
    SolverOptions,
    SolverResult,
    Status,
    certificate,
)

from ..reference.qp import Optimum, natural_size
from .cases import Case

#: no test may hang
OPTIONS = SolverOptions(tol=1e-8, time_limit=10.0)


def objective_error(case: Case, value: float, optimum: Optimum) -> float:
    """The relative distance from the optimum; near 0 relative to the size of the data."""
    distance = max(optimum.lower - value, value - optimum.upper, 0.0)
    return distance / max(optimum.upper, 1e-6 * natural_size(case.y, case.costs))


def assert_optimal(case: Case, result: SolverResult, optimum: Optimum) -> None:
    """Solved, certified, feasible, and within 1e-6 of the reference on both sides."""
    assert result.status is Status.SOLVED, case
    assert result.dual_gap <= 1e-8, case
    assert_near_optimal(case, result, optimum)


def assert_near_optimal(case: Case, result: SolverResult, optimum: Optimum) -> None:
    """Feasible and within 1e-6 of the reference on both sides."""
    assert objective_error(case, result.dual_objective, optimum) <= 1e-6, case
    assert objective_error(case, result.primal_objective, optimum) <= 1e-6, case
    assert_feasible(case, result)


def assert_feasible(case: Case, result: SolverResult) -> None:
    """β within its bounds, and Σβ = 0 with an offset."""
    terms = case.package_loss.dual_terms(case.y, case.cost)
    assert (result.beta >= terms.lower).all(), case
    assert (result.beta <= terms.upper).all(), case
    if case.offset:
        assert abs(result.beta.sum()) <= 1e-10 * abs(result.beta).sum(), case
    else:
        assert result.intercept == 0.0, case


def certified(problem: Problem, beta: np.ndarray) -> Certificate:
    """The certificate of the function of β."""
    return certificate(problem, Point.of(beta))
