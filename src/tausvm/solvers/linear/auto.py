"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from ..auto import Row, choose
from ..monitor import Monitor
from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from .dual_cd import DualCD
from .newton import LinearNewton


@dataclass(frozen=True)
class Pace:
    """When coordinate descent is given up for Newton's method.

    From pass ``first`` on the fall of the gap so far tells how many passes are still to come; more
    than ``most`` are too many.
    """

    first: int
    most: int


@dataclass(frozen=True)
class LinearAuto(Solver):
    """``newton`` for few features; else ``dual_cd``, and ``newton`` from there if that is slow."""

    name: ClassVar[str] = "auto"
    dual_cd: DualCD = field(default_factory=DualCD)
    newton: LinearNewton = field(default_factory=LinearNewton)
    #: data up to so many entries are solved to rounding, whatever the tolerance: it costs
    #: milliseconds
    few_entries: int = 20_000
    rounding: float = 1e-11
    #: for squared losses; 500 × 5,000 dense rows take 0.06 s with these, 1.1 s with 8 and 50
    squared: Pace = Pace(20, 100)
    #: for losses with corners: the first passes say less, and a Newton step costs more
    corners: Pace = Pace(40, 500)

    def table(self) -> list[Row]:
        """From the top: the first row that applies."""
        return [
            Row(
                f"at most {self.newton.systems.direct} features",
                lambda problem: problem.operator.n_features <= self.newton.systems.direct,
                self.newton,
                "100,000 × 90 rows take 0.1 to 0.35 s, whatever C",
            ),
            Row(
                "everything else; newton goes on where the gap falls too slowly",
                lambda problem: True,
                self.dual_cd,
                "20,000 × 100,000 sparse rows of length one take 0.08 to 1.4 s",
            ),
        ]

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        if choose(self.table(), problem).solver is self.newton:
            return self._newton_first(problem, options, start)
        monitor = Monitor(problem, options, self.dual_cd.name)
        watch = PaceWatch(self.squared if problem.terms.smooth else self.corners)
        point = self.dual_cd.descend(problem, monitor, start, watch.slow)
        if watch.seen_slow:
            monitor.solver = f"{self.dual_cd.name}, {self.newton.name}"
            point = self._newton_goes_on(problem, monitor, point)
        return monitor.result(point, monitor.n_iter)

    def _newton_goes_on(self, problem: Problem, monitor: Monitor, point: Point) -> Point:
        """Newton's w, with the β before it where that is better: it may have been stopped early."""
        assert monitor.exact is not None
        beta, dual = point.beta.copy(), monitor.exact.dual
        start = Point(point.beta, point.function, monitor.exact.intercept)
        last = self.newton.watched(problem, monitor, start)
        if monitor.status is Status.SOLVED or not monitor.certifiable():
            return last
        if monitor.certify(last).dual < dual:
            last.beta = beta
        return last

    def _newton_first(
        self, problem: Problem, options: SolverOptions, start: Point | None
    ) -> SolverResult:
        """To rounding where data are small; where rounding stops it, ``dual_cd`` goes on."""
        small = problem.operator.entries <= self.few_entries
        asked = options.with_(tol=min(options.tol, self.rounding)) if small else options
        result = self.newton.solve(problem, asked, start)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        if result.status is not Status.NUMERICAL_ERROR:
            return result
        monitor = Monitor(problem, options, self.dual_cd.name)
        monitor.started -= result.seconds
        monitor.n_iter = result.n_iter
        beta = problem.feasible(problem.units.into(result.beta))
        last = Point(beta, problem.units.into(result.function))
        rescued = self.dual_cd.solve(problem, monitor.left(), last)
        if not rescued.dual_gap < result.dual_gap:
            return result
        rescued.solver, rescued.trace = "newton, dual_cd", result.trace + rescued.trace
        rescued.n_iter += result.n_iter
        rescued.seconds = monitor.seconds
        return rescued


class PaceWatch:
    """Notes when coordinate descent is too slow for the way that is left."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.seen_slow = False
        #: passes and the relative gap after them
        self.gaps: list[tuple[int, float]] = []

    def slow(self, monitor: Monitor) -> bool:
        """Whether to give up after this look."""
        self.gaps.append((monitor.n_iter, monitor.gap))
        if monitor.n_iter >= self.pace.first:
            self.seen_slow = self._passes_left(monitor.options.tol) > self.pace.most
        return self.seen_slow

    def _passes_left(self, tol: float) -> float:
        """By the fall of the smallest gap since about half as many passes were done."""
        n_iter = self.gaps[-1][0]
        past = [entry for entry in self.gaps if entry[0] <= 0.6 * n_iter]
        before, now = (min(gap for _, gap in part) for part in (past, self.gaps))
        if not 0 < now < before:
            return math.inf
        fall = math.log(before / now) / (n_iter - past[-1][0])
        return math.log(now / tol) / fall
