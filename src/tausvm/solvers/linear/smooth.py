"""``newton`` for the squared losses: Algorithm 1 until the gap is small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..result import SolverOptions, Status
from .monitor import LinearResult, Monitor, Point
from .newton import Newton
from .problem import LinearProblem
from .sample import drawn

Array = NDArray[np.float64]

#: the gap to which a sample is solved: its own error is larger
SAMPLE_TOL = 1e-3


def solve_smooth(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """Solve the problem of a loss without corners by Newton's method on the primal."""
    monitor = Monitor(problem, options, "newton")
    return monitor.result(minimise(problem, monitor, start))


def minimise(
    problem: LinearProblem, monitor: Monitor, start: Point | None, hard: bool = False
) -> Point:
    """Newton steps until the monitor says stop; tall data start from a sample of their rows.

    ``hard`` is for problems that coordinate descent has shown to be ill-conditioned.
    """
    if start is None:
        start = _start(problem, monitor)
    newton = Newton(problem, start.coef, start.intercept, problem.rows.dot(start.coef), hard)
    tol, fresh = monitor.options.tol, True
    while True:
        newton.evaluate()
        if monitor.check(newton.value, newton.value - newton.gap):
            break
        descended = newton.step(2.0 * tol * abs(newton.value), monitor.out_of_time)
        monitor.n_iter += 1
        if descended:
            fresh = False
        elif fresh:
            monitor.status = Status.NUMERICAL_ERROR
            break
        else:  # rounding in the updates may be what is in the way
            newton.refresh()
            fresh = True
    return Point(newton.beta, newton.coef, newton.intercept)


def _start(problem: LinearProblem, monitor: Monitor) -> Point:
    sample = drawn(problem, monitor.options.seed)
    coef, intercept = np.zeros(problem.d), 0.0
    if sample is not None:
        watch = Monitor(sample, monitor.options.with_(tol=SAMPLE_TOL, callback=None), "newton")
        point = minimise(sample, watch, None)
        coef, intercept = point.coef, point.intercept
    return Point(np.empty(0), coef, intercept)
