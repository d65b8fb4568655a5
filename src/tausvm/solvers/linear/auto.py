"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..result import SolverOptions, Status
from .dual_cd import DualCD
from .monitor import LinearResult, Monitor, Point
from .newton import LinearNewton
from .problem import LinearProblem


@dataclass(frozen=True)
class Patience:
    """When coordinate descent is given up: from pass ``first`` on, where its pace would take more
    than ``most`` passes to the end."""

    first: int
    most: int


@dataclass(frozen=True)
class LinearAuto:
    """``newton`` for few features; else ``dual_cd``, and ``newton`` from there if that is slow."""

    name: ClassVar[str] = "auto"
    dual_cd: DualCD = field(default_factory=DualCD)
    newton: LinearNewton = field(default_factory=LinearNewton)
    #: data up to so many entries are solved to rounding, whatever the tolerance: it costs
    #: milliseconds
    few_entries: int = 20_000
    rounding: float = 1e-11
    #: squared losses
    squared: Patience = Patience(20, 100)
    #: losses with corners: the first passes say less, and a Newton step is dear
    corners: Patience = Patience(40, 500)

    def solve(
        self, problem: LinearProblem, options: SolverOptions, start: Point | None = None
    ) -> LinearResult:
        if problem.d <= self.newton.systems.direct:
            return self._newton_first(problem, options, start)
        patience = self.corners if problem.bounded else self.squared
        monitor = PaceMonitor(problem, options, patience)
        found = self.dual_cd.descend(problem, monitor, start)
        if not monitor.slow:
            return monitor.result(*found.products)
        monitor.slow, monitor.judging, monitor.solver = False, False, "dual_cd, newton"
        point, dual = found.point, found.dual
        del found  # vectors that Newton's method has no use for
        result = self.newton.watched(problem, monitor, point)
        units = problem.units
        if result.dual_gap > options.tol and units.objective(dual) > result.dual_objective:
            # one that was stopped had a better β before
            coef, intercept = units.into(result.coef), units.offset_into(result.intercept)
            return monitor.result(Point(point.beta, coef, intercept))
        return result

    def _newton_first(
        self, problem: LinearProblem, options: SolverOptions, start: Point | None
    ) -> LinearResult:
        """To rounding where data are small; where rounding stops it, ``dual_cd`` goes on."""
        small = problem.rows.entries <= self.few_entries
        asked = options.with_(tol=min(options.tol, self.rounding)) if small else options
        monitor = Monitor(problem, asked, self.newton.name, needed=options.tol)
        result = self.newton.watched(problem, monitor, start)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        if result.status is not Status.NUMERICAL_ERROR:
            return result
        last = Point(problem.units.into(result.beta), np.empty(0), 0.0)
        rescued = self.dual_cd.solve(problem, monitor.left(tol=options.tol), last)
        if not rescued.dual_gap < result.dual_gap:
            return result
        rescued.solver, rescued.trace = "newton, dual_cd", result.trace + rescued.trace
        rescued.n_iter, rescued.seconds = rescued.n_iter + result.n_iter, monitor.seconds
        return rescued


class PaceMonitor(Monitor):
    """Stops coordinate descent where its pace is too slow for the way that is left."""

    def __init__(self, problem: LinearProblem, options: SolverOptions, patience: Patience) -> None:
        super().__init__(problem, options, DualCD.name)
        self.patience = patience
        self.slow = False
        self.judging = True
        #: passes and the relative gap after them
        self.seen: list[tuple[int, float]] = []

    def check(self, primal: float, dual: float) -> bool:
        stop = super().check(primal, dual)
        self.seen.append((self.n_iter, self.gap))
        if stop or not self.judging or self.n_iter < self.patience.first:
            return stop
        self.slow = self._passes_left() > self.patience.most
        return self.slow

    def _passes_left(self) -> float:
        """By the fall of the smallest gap since half as many passes were done."""
        past = [entry for entry in self.seen if entry[0] <= 0.6 * self.n_iter]
        before, now = (min(gap for _, gap in part) for part in (past, self.seen))
        if not 0 < now < before:
            return math.inf
        fall = math.log(before / now) / (self.n_iter - past[-1][0])
        return math.log(now / self.options.tol) / fall
