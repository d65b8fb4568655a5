"""``newton``: Newton's method in the primal; losses with corners by way of proximal steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..monitor import Estimate, Monitor
from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from .proximal import Proximal
from .steps import NewtonSteps, certifiable
from .systems import Systems


@dataclass(frozen=True)
class LinearNewton(Solver):
    """Newton's method (Algorithm 1), and the proximal point method around it.

    Squared losses are minimised directly, by :class:`~.steps.NewtonSteps`; those with corners are
    smoothed again and again (:mod:`.proximal`). Both go by sums that are kept up to date, and end
    by a certificate from the data.
    """

    name: ClassVar[str] = "newton"
    #: how linear systems are solved
    systems: Systems = field(default_factory=Systems)
    #: losses with corners
    proximal: Proximal = field(default_factory=Proximal)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        monitor = Monitor(problem, options, self.name)
        point = self.watched(problem, monitor, start)
        return monitor.result(point, monitor.n_iter)

    def watched(
        self,
        problem: Problem,
        monitor: Monitor,
        start: Point | None,
        slow: Callable[[Monitor], bool] = lambda monitor: False,
    ) -> Point:
        """The last point of a solve under a monitor that may have been watching already.

        It ends where the monitor or, after a look, ``slow`` says so.
        """
        with monitor:
            start = worthwhile(problem, start)
        if problem.terms.smooth:
            point = self._minimise(problem, monitor, start, slow)
        else:
            point = self.proximal.maximise(problem, self.systems, monitor, start, slow)
        return problem.constant_point(monitor.out_of_time) if point is None else point

    def _minimise(
        self,
        problem: Problem,
        monitor: Monitor,
        start: Point | None,
        slow: Callable[[Monitor], bool],
    ) -> Point | None:
        """Newton steps until the monitor says stop."""
        point: Point | None = None
        with monitor:
            if start is None:
                start = Point(np.empty(0), np.zeros(problem.operator.n_features), 0.0)
            fitted = start.fitted
            if fitted is None:
                fitted = problem.values(start.function)
            newton = NewtonSteps(problem, self.systems, start, fitted)
            tol, fresh = monitor.options.tol, True
            while True:
                newton.evaluate()
                point = certifiable(problem, newton.point)
                # the primal falls from step to step, whatever the gap does
                estimate = Estimate(newton.value, newton.value - newton.gap, rounding=-np.inf)
                if monitor.check(point, monitor.n_iter, estimate) or slow(monitor):
                    break
                if monitor.exact is not None:
                    newton.refresh(monitor.exact.fitted)
                    newton.evaluate()
                descended = newton.step(2.0 * tol * abs(newton.value), monitor.out_of_time)
                monitor.n_iter += 1
                if descended:
                    fresh = False
                elif monitor.limited():
                    break
                elif fresh:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
                else:  # rounding in the updates may be what is in the way
                    newton.refresh()
                    fresh = True
        return point


def worthwhile(problem: Problem, start: Point | None) -> Point | None:
    """A start with its values, unless it predicts worse than the best constant: the way from there
    is the longer one."""
    if start is None or problem.held is not None:
        return start
    nothing = np.zeros(problem.n)
    fitted = problem.values(start.function)
    point = Point(start.beta, start.function, start.intercept, fitted)
    intercept = problem.intercept_of(point, fitted)
    constant = problem.constant if problem.offset else 0.0
    known = problem.primal_value(start.function, fitted, intercept)
    if known > problem.primal_value(np.zeros_like(start.function), nothing, constant):
        return None
    return point
