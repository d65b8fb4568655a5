"""``newton``: by the loss, with corners or without."""

from __future__ import annotations

from ..result import SolverOptions
from .monitor import LinearResult, Point
from .problem import LinearProblem
from .proximal import solve_proximal
from .smooth import solve_smooth


def solve_newton(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """Newton's method in the primal; losses with corners by way of proximal steps."""
    solver = solve_proximal if problem.bounded else solve_smooth
    return solver(problem, options, start)
