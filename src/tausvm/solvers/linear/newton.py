"""``newton``: Newton's method in the primal; losses with corners by way of proximal steps."""

from __future__ import annotations

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

    def watched(self, problem: Problem, monitor: Monitor, start: Point | None) -> Point:
        """The last point of a solve under a monitor that may have been watching already."""
        if problem.terms.smooth:
            point = self._minimise(problem, monitor, start)
        else:
            point = self.proximal.maximise(problem, self.systems, monitor, start)
        return problem.constant_point(monitor.out_of_time) if point is None else point

    def _minimise(self, problem: Problem, monitor: Monitor, start: Point | None) -> Point | None:
        """Newton steps until the monitor says stop."""
        point: Point | None = None
        with monitor:
            if start is None:
                start = Point(np.empty(0), np.zeros(problem.operator.n_features), 0.0)
            newton = NewtonSteps(problem, self.systems, start, problem.values(start.function))
            tol, fresh = monitor.options.tol, True
            while True:
                newton.evaluate()
                point = certifiable(problem, newton.point)
                # the primal falls from step to step, whatever the gap does
                estimate = Estimate(newton.value, newton.value - newton.gap, rounding=-np.inf)
                if monitor.check(point, monitor.n_iter, estimate):
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
