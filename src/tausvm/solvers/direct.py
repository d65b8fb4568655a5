"""Drivers of the direct methods on the whole problem."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .active_set import interior_step, newton_step
from .monitor import Monitor
from .problem import Problem
from .result import SolverOptions, SolverResult, Status
from .working import Derivatives

Array = NDArray[np.float64]
Start = tuple[Array, Array] | None


def solve_interior_point(
    problem: Problem, options: SolverOptions, start: Start = None
) -> SolverResult:
    """The interior-point method on all variables; a start is only kept if it is better."""

    def step(beta: Array, gradient: Array) -> float:
        return interior_step(
            problem, beta, gradient, np.arange(problem.n), np.clip(0.01 * options.tol, 1e-13, 1e-11)
        )

    return _repeat("interior_point", problem, options, start, step)


def solve_newton(problem: Problem, options: SolverOptions, start: Start = None) -> SolverResult:
    """Newton's method on the sign pattern, for squared losses with ε = 0."""
    terms = problem.terms
    if terms.kink.any() or not (np.isinf(terms.upper) & np.isinf(terms.lower)).all():
        raise ValueError(
            "solver='newton' serves squared losses with epsilon=0 only; "
            "use solver='auto', 'block', 'smo' or 'interior_point'"
        )

    def step(beta: Array, gradient: Array) -> float:
        return newton_step(problem, beta, gradient, np.arange(problem.n))

    return _repeat("newton", problem, options, start, step)


def _repeat(
    name: str,
    problem: Problem,
    options: SolverOptions,
    start: Start,
    step: Callable[[Array, Array], float],
) -> SolverResult:
    """Direct steps until the gap is small or they gain nothing more."""
    monitor = Monitor(problem, options, name)
    beta = np.zeros(problem.n) if start is None else start[0].copy()
    gradient = -problem.y if start is None else start[1] - problem.y
    n_iter = 0
    while not monitor.should_stop(
        beta, gradient, n_iter, Derivatives.at(problem, beta, gradient).offset
    ):
        if not step(beta, gradient) > 0:
            monitor.status = Status.NUMERICAL_ERROR
            break
        n_iter += 1
    return monitor.result(beta, n_iter)
