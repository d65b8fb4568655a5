"""``newton`` for the squared losses: Algorithm 1 until the gap is small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..result import Status
from .monitor import Monitor, Point
from .newton import Newton
from .problem import LinearProblem
from .sample import drawn

Array = NDArray[np.float64]

#: the gap to which a sample is solved: its own error is larger
SAMPLE_TOL = 1e-3


def minimise(problem: LinearProblem, monitor: Monitor, start: Point | None) -> Point:
    """Newton steps until the monitor says stop; tall data start from a sample of their rows."""
    point: Point | None = None
    with monitor:
        if start is None:
            start = _start(problem, monitor)
        fitted = problem.values(start.coef)
        newton = Newton(problem, start.coef, start.intercept, fitted)
        tol, fresh = monitor.options.tol, True
        while True:
            newton.evaluate()
            point = Point(newton.beta, newton.coef, newton.intercept)
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
    return Point.constant(problem) if point is None else point


def _start(problem: LinearProblem, monitor: Monitor) -> Point:
    sample = drawn(problem, monitor.options.seed)
    if sample is None:
        return Point(np.empty(0), np.zeros(problem.d), 0.0)
    watch = Monitor(sample, monitor.left(tol=SAMPLE_TOL, callback=None), "newton")
    return minimise(sample, watch, None)
