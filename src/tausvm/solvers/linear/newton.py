"""``newton``: Newton's method in the primal; losses with corners by way of proximal steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..result import SolverOptions, Status
from .monitor import LinearResult, Monitor, Point
from .problem import LinearProblem
from .proximal import Proximal
from .steps import NewtonSteps
from .systems import Systems


@dataclass(frozen=True)
class LinearNewton:
    """Newton's method (Algorithm 1), and the proximal point method around it.

    Squared losses are minimised directly, by :class:`~.steps.NewtonSteps`; those with corners are
    smoothed again and again (:mod:`.proximal`). Both stop by sums that are kept up to date; where
    the certificate from the data falls short of them, the solve goes on from there.
    """

    name: ClassVar[str] = "newton"
    #: how linear systems are solved
    systems: Systems = field(default_factory=Systems)
    #: losses with corners
    proximal: Proximal = field(default_factory=Proximal)

    def solve(
        self, problem: LinearProblem, options: SolverOptions, start: Point | None = None
    ) -> LinearResult:
        return self.watched(problem, Monitor(problem, options, self.name), start)

    def watched(
        self, problem: LinearProblem, monitor: Monitor, start: Point | None
    ) -> LinearResult:
        """The solve under a monitor that may have been watching already."""

        def run(start: Point | None) -> Point:
            if problem.bounded:
                return self.proximal.maximise(problem, self.systems, monitor, start)
            return self._minimise(problem, monitor, start)

        return monitor.solved(run, start)

    def _minimise(self, problem: LinearProblem, monitor: Monitor, start: Point | None) -> Point:
        """Newton steps until the monitor says stop."""
        point: Point | None = None
        with monitor:
            if start is None:
                start = Point(np.empty(0), np.zeros(problem.d), 0.0)
            fitted = problem.values(start.coef)
            newton = NewtonSteps(problem, self.systems, start.coef, start.intercept, fitted)
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
                elif monitor.limited():
                    break
                elif fresh:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
                else:  # rounding in the updates may be what is in the way
                    newton.refresh()
                    fresh = True
        return Point.constant(problem) if point is None else point
