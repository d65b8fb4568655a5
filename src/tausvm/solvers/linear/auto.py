"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..result import SolverOptions, Status
from .dual_cd import descend, solve_dual_cd
from .monitor import LinearResult, Monitor, Point
from .newton import DIRECT
from .primal import solve_newton
from .problem import LinearProblem

Array = NDArray[np.float64]

#: data up to this size are solved to rounding, whatever the tolerance: it costs milliseconds
FEW_ENTRIES = 20_000
TO_ROUNDING = 1e-11
#: passes of coordinate descent before its pace is judged
PASSES = 8
#: and the passes still to come, as its pace foretells, that Newton's method is rather taken for
MOST_PASSES = 50
#: losses with corners, where the first passes say less and which take more Newton steps
PASSES_CORNERS = 40
MOST_PASSES_CORNERS = 500
#: and where many rows may be at them
MOST_FREE = 20_000
PASSES_LARGE = 16
MOST_PASSES_LARGE = 300


def solve_auto(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """``newton`` for few features; else ``dual_cd``, and ``newton`` from there if that is slow."""
    if problem.d <= DIRECT:
        return _solve_newton(problem, options, start)
    monitor = PaceMonitor(problem, options, "dual_cd")
    found = descend(problem, options, monitor, None if start is None else start.beta)
    if not monitor.slow:
        return monitor.result(*found.products)
    monitor.slow, monitor.judging, monitor.solver = False, False, "dual_cd, newton"
    point, dual = found.point, found.dual
    beta = point.beta
    del found  # vectors that Newton's method has no use for

    result = solve_newton(problem, options, point, monitor)
    if result.dual_gap > options.tol and problem.units.objective(dual) > result.dual_objective:
        # one that was stopped had a better β before
        units = problem.units
        coef, intercept = units.into(result.coef), units.offset_into(result.intercept)
        return monitor.result(Point(beta, coef, intercept))
    return result


def _solve_newton(
    problem: LinearProblem, options: SolverOptions, start: Point | None
) -> LinearResult:
    """To rounding where data are small; where rounding stops it, ``dual_cd`` goes on."""
    small = problem.rows.entries <= FEW_ENTRIES
    asked = options.with_(tol=min(options.tol, TO_ROUNDING)) if small else options
    monitor = Monitor(problem, asked, "newton", needed=options.tol)
    result = solve_newton(problem, asked, start, monitor)
    if result.dual_gap <= options.tol:
        result.status = Status.SOLVED
    if result.status is not Status.NUMERICAL_ERROR:
        return result
    last = Point(problem.units.into(result.beta), np.empty(0), 0.0)
    rescued = solve_dual_cd(problem, monitor.left(tol=options.tol), last)
    if not rescued.dual_gap < result.dual_gap:
        return result
    rescued.solver, rescued.trace = "newton, dual_cd", result.trace + rescued.trace
    rescued.n_iter, rescued.seconds = rescued.n_iter + result.n_iter, monitor.seconds
    return rescued


class PaceMonitor(Monitor):
    """Stops coordinate descent where its pace is too slow for the way that is left."""

    def __init__(self, problem: LinearProblem, options: SolverOptions, solver: str) -> None:
        super().__init__(problem, options, solver)
        self.slow = False
        self.judging = True
        #: passes and the relative gap after them
        self.seen: list[tuple[int, float]] = []

    def check(self, primal: float, dual: float) -> bool:
        stop = super().check(primal, dual)
        self.seen.append((self.n_iter, self.gap))
        if stop:
            return True
        first, most = self._patience()
        self.slow = self.judging and self.n_iter >= first and self._passes_left() > most
        return self.slow

    def _patience(self) -> tuple[int, int]:
        """Passes before the pace is judged, and those to come that are too many."""
        if not self.problem.bounded:
            return PASSES, MOST_PASSES
        # rows are free at corners, of which there are no more than w has dimensions
        if min(self.problem.n, self.problem.d) > MOST_FREE:
            return PASSES_LARGE, MOST_PASSES_LARGE
        return PASSES_CORNERS, MOST_PASSES_CORNERS

    def _passes_left(self) -> float:
        """By the fall of the smallest gap since half as many passes were done."""
        past = [entry for entry in self.seen if entry[0] <= 0.6 * self.n_iter]
        before, now = (min(gap for _, gap in part) for part in (past, self.seen))
        if not 0 < now < before:
            return math.inf
        fall = math.log(before / now) / (self.n_iter - past[-1][0])
        return math.log(now / self.options.tol) / fall
