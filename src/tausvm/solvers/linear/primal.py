"""``newton``: by the loss, with corners or without."""

from __future__ import annotations

from ..result import SolverOptions
from .monitor import LinearResult, Monitor, Point
from .problem import LinearProblem
from .proximal import maximise
from .smooth import minimise


def solve_newton(
    problem: LinearProblem,
    options: SolverOptions,
    start: Point | None = None,
    monitor: Monitor | None = None,
) -> LinearResult:
    """Newton's method in the primal; losses with corners by way of proximal steps.

    ``monitor`` is one that has been watching already.
    """
    method = maximise if problem.bounded else minimise
    watch = monitor or Monitor(problem, options, "newton")
    return watch.solved(lambda begin: method(problem, watch, begin), start)
