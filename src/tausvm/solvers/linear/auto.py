"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..result import SolverOptions, Status
from .dual_cd import descend
from .monitor import LinearResult, Monitor, Point
from .newton import DIRECT
from .primal import solve_newton
from .problem import LinearProblem
from .proximal import maximise
from .smooth import minimise

Array = NDArray[np.float64]

#: data up to this size are solved to rounding, whatever the tolerance: it costs milliseconds
FEW_ENTRIES = 20_000
TO_ROUNDING = 1e-11
#: passes of coordinate descent before its pace is judged
PASSES = 40
#: and the passes still to come, as its pace foretells, that Newton's method is rather taken for
MOST_PASSES = 200
#: losses with corners, which take more Newton steps
MOST_PASSES_CORNERS = 500
#: and whose Newton systems, of the order of the free rows, are then no larger than this
MOST_FREE = 20_000


def solve_auto(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """``newton`` for few features; else ``dual_cd``, and ``newton`` from there if that is slow."""
    if problem.d <= DIRECT:
        return _solve_newton(problem, options, start)
    monitor = PaceMonitor(problem, options, "dual_cd")
    # rows are free at corners, of which there are no more than w has dimensions
    monitor.judging = not problem.bounded or min(problem.n, problem.d) <= MOST_FREE
    found = descend(problem, options, monitor, None if start is None else start.beta)
    if monitor.slow:
        monitor.slow, monitor.solver = False, "dual_cd, newton"
        monitor.judging = False
        finish = maximise if problem.bounded else minimise
        return _better_dual(problem, monitor, finish(problem, monitor, found[0]), found)
    return monitor.result(*found)


def _better_dual(
    problem: LinearProblem, monitor: Monitor, last: Point, found: tuple[Point, Array, Array]
) -> LinearResult:
    """The result at the last point; one that was stopped may have had a better β before."""
    result = monitor.result(last)
    before, _, pulled = found
    if result.dual_gap <= monitor.options.tol:
        return result
    if problem.dual_value(before.beta, pulled) <= result.dual_objective:
        return result
    return monitor.result(Point(before.beta, last.coef, last.intercept))


def _solve_newton(
    problem: LinearProblem, options: SolverOptions, start: Point | None
) -> LinearResult:
    small = problem.rows.entries <= FEW_ENTRIES
    asked = options.with_(tol=min(options.tol, TO_ROUNDING)) if small else options
    result = solve_newton(problem, asked, start)
    if result.dual_gap <= options.tol:
        result.status = Status.SOLVED
    return result


class PaceMonitor(Monitor):
    """Stops coordinate descent where its pace is too slow for the way that is left."""

    slow = False
    judging = True

    def check(self, primal: float, dual: float) -> bool:
        if super().check(primal, dual):
            return True
        self.slow = self.judging and self.n_iter >= PASSES and self._passes_left() > self._most()
        return self.slow

    def _most(self) -> int:
        return MOST_PASSES_CORNERS if self.problem.bounded else MOST_PASSES

    def _passes_left(self) -> float:
        """By the fall of the smallest gap since half as many passes were done."""
        past = [entry for entry in self.trace if entry.n_iter <= 0.6 * self.n_iter]
        before, now = (min(entry.gap for entry in part) for part in (past, self.trace))
        if not 0 < now < before:
            return math.inf
        fall = math.log(before / now) / (self.n_iter - past[-1].n_iter)
        return math.log(now / self.options.tol) / fall
