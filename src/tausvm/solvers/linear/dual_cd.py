"""Dual coordinate descent with shrinking (Ho and Lin, Algorithm 4), for every loss.

A step sets one βᵢ to its best value, all else fixed, at the price of two passes over a row:
one for xᵢᵀw, one for w ← w + Δβᵢ xᵢ. The loss enters by its five numbers alone.

Where that takes many passes, rows are not visited equally often any more: a row whose steps gain
more than others do comes the more often, one that gains nothing hardly ever (Glasmachers and
Dogan, "Accelerated coordinate descent with adaptive coordinate frequencies"). That does softly what
shrinking does, and needs no second thoughts.

A free offset means Σβ = 0, which single steps cannot keep. The method of multipliers does: the
dual gets the penalty (s²/2)(Σβ)² with s² the mean squared row, which is a constant column s
beside X, and after every pass the multiplier, b, moves on by s²Σβ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._core.sweeps import Sweep
from ..._core.visits import Visits
from ..domain import balanced
from ..monitor import Monitor
from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver

Array = NDArray[np.float64]

#: whether to give up, by the passes' worth of visits since it began, and how many times more than
#: asked for the last of them seems to leave of the gap
Slow = Callable[[float, float], bool]


def never(passes: float, gap: float) -> bool:
    """The one that does not."""
    return False


@dataclass(frozen=True)
class DualCD(Solver):
    """Coordinate descent in the dual: passes in random order, and a look at the gap now and then.

    An iteration is a pass.
    """

    name: ClassVar[str] = "dual_cd"
    #: whether rows that have settled leave until the next look at all of them
    shrinking: bool = True
    #: rows leave that hold by more than the largest violation of the pass before over this: 1 is
    #: the paper's M, the mean number of entries in a row its M/n̄ and the number of features its
    #: M/n (section 4.6), by which more rows leave, some of them too early
    shrink_divisor: float = 1.0
    #: whether rows are visited by what they gain where passes are many; False is the paper's
    #: Algorithm 4
    adaptive: bool = True
    #: stop as well when the sum of the violations has fallen to this share of that in the first
    #: pass, the paper's rule (25), which is about equal visits. It says nothing of the gap: unless
    #: that is within ``tol`` too, the status is ``VIOLATION_TOL``
    violation_tol: float | None = None
    #: passes with equal visits before that; quick problems are solved by then
    equal_passes: int = 30
    #: how fast a row's preference follows its gains, and its least and largest value
    adapt_rate: float = 0.2
    least_preference: float = 0.02
    most_preference: float = 5.0
    #: passes' worth of visits from one gap check to the next at most, and as a share of all so far
    check_every: float = 8.0
    check_share: float = 0.15
    #: a check before that where a pass seems to leave less than this share of the gap asked for: it
    #: mostly leaves somewhat more, and a check in vain costs half a pass. Without such checks easy
    #: fits of 20,000 × 100,000 sparse rows take 1.4 to 1.6 times as long
    caution: float = 0.75
    #: all rows come back where less than this share of the gap was seen among those visited
    least_seen: float = 0.5
    #: entries of rows that are neighbours in memory and in the random order; 1.2 times as fast as a
    #: wholly random order on 20,000 × 100,000 sparse rows, twice on larger data
    block_entries: int = 256
    #: data of fewer entries are held by the caches and get a wholly random order
    cached_entries: int = 2_000_000
    #: more weights than this, 4 MB, lie beyond the caches near the processor, and those of the next
    #: row are fetched early: a quarter less time for a pass over 200,000 × 1,000,000 sparse rows
    cached_weights: int = 500_000

    def __post_init__(self) -> None:
        if not self.shrink_divisor > 0:
            raise ValueError(f"shrink_divisor must be a number > 0, got {self.shrink_divisor!r}")

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        """Solve by coordinate descent in the dual, from a feasible β where there is a start."""
        monitor = Monitor(problem, options, self.name)
        point = self.descend(problem, monitor, start)
        return monitor.result(point, monitor.n_iter)

    def descend(
        self,
        problem: Problem,
        monitor: Monitor,
        start: Point | None,
        slow: Slow = never,
    ) -> Point:
        """Passes until the monitor or ``slow`` says stop; the last point seen."""
        tol = monitor.options.tol
        if monitor.out_of_time():  # not even the products that a start takes
            start = None
        descent = Descent(problem, self, monitor, start)
        point = descent.look()
        if monitor.check(point, monitor.n_iter):
            return point
        done, checked, caution, before = 0.0, 0.0, self.caution, np.inf
        while True:
            done += descent.visits.count / problem.n
            gap = descent.run()
            # a pass leaves less than it came across, by what it came across less than the last
            left = gap * (min(gap / before, 1.0) if 0 < before < np.inf else 1.0)
            before = gap
            dual = descent.dual_value()
            scale = abs(dual)
            solved = left <= caution * tol * scale
            ruled = descent.ruled
            due = done - checked >= max(self.check_every, self.check_share * done)
            limited = monitor.limited()
            crawls = slow(done, left / (tol * scale) if scale > 0 else np.inf)
            if not (solved or ruled or due or limited or crawls):
                continue
            if limited and not monitor.certifiable():
                return problem.constant_point(monitor.out_of_time)
            whole = descent.visits.count == problem.n
            point = descent.look()
            checked = done
            if monitor.check(point, monitor.n_iter) or crawls:
                return point
            if ruled and whole:
                monitor.status = Status.VIOLATION_TOL
                return point
            if solved or ruled:
                # what the pass seemed to leave was this much less than the gap
                seen = left / (monitor.gap * scale) if scale > 0 else 0.0
                caution = min(caution, seen) if seen > 0 else caution
                if ruled or seen < self.least_seen:
                    descent.restore()


class Descent:
    """Coordinate descent at work: β with its w and b, and who is visited."""

    def __init__(
        self, problem: Problem, settings: DualCD, monitor: Monitor, start: Point | None
    ) -> None:
        self.problem, self.settings, self.monitor = problem, settings, monitor
        rows = self.rows = problem.operator
        self.beta = np.zeros(problem.n) if start is None else start.beta.copy()
        self.w = problem.function(self.beta)
        self.column, squares = problem.column, np.full(problem.n, -1.0)
        if problem.offset:
            squares = rows.squares()
            self.column = float(np.sqrt(squares.mean())) or 1.0
            squares += self.column**2
        self.sweep = Sweep(
            rows.matrix, problem.y, problem.terms.numbers, squares, self.column, self.beta, self.w
        )
        self.sweep.early = len(self.w) > settings.cached_weights
        if problem.offset:
            moved = self.w.any()
            self.sweep.intercept = (
                problem.best_intercept(rows.values(self.w)) if moved else problem.constant
            )
        block = settings.block_entries * problem.n // max(rows.entries, 1)
        self.visits = Visits(
            problem.n,
            max(1, block) if rows.entries > settings.cached_entries else 1,
            monitor.options.seed,
            settings.adapt_rate,
            settings.least_preference,
            settings.most_preference,
        )
        self.first_violations = np.nan
        self.gained = 0.0

    def restore(self) -> None:
        """All rows take part again."""
        self.visits.restore()
        self.sweep.threshold = np.inf

    @property
    def ruled(self) -> bool:
        """Whether rule (25) holds for the last pass."""
        share = self.settings.violation_tol
        return share is not None and self.sweep.violations <= share * self.first_violations

    def run(self) -> float:
        """Step 6 once, a pass in random order; returns the samples' shares of the gap when met."""
        problem, settings, monitor, sweep = self.problem, self.settings, self.monitor, self.sweep
        adaptive = settings.adaptive and settings.violation_tol is None
        if adaptive and not self.visits.adapting and monitor.n_iter >= settings.equal_passes:
            self.visits.adapt()
            sweep.threshold = np.inf
        order = self.visits.order()
        gains = np.zeros(len(order), dtype=np.float32)
        done, step = 0, self.rows.batch()
        sweep.begin()
        while done < len(order) and not (done and monitor.out_of_time()):
            end = min(done + step, len(order))
            sweep.run(order, done, end, gains)
            done = end
        self.visits.learn(order[:done], gains[:done])
        monitor.n_iter += 1
        self.gained += sweep.gained
        if problem.offset:  # the multiplier's step
            sweep.intercept += self.column**2 * sweep.total
        if np.isnan(self.first_violations):
            self.first_violations = sweep.violations
        if settings.shrinking and not self.visits.adapting:
            largest = sweep.largest / settings.shrink_divisor
            sweep.threshold = largest if largest > 0 else np.inf
        return float(sweep.gap)

    def dual_value(self) -> float:
        """The dual at β: what steps have gained, but for those towards a multiplier."""
        if self.problem.offset:
            return self.problem.dual_value(self.beta, self.w)
        return self.gained

    def look(self) -> Point:
        """The point with its products, all from the data; the steps go on from there.

        With a free offset β is moved to Σβ = −h. What the steps had rounded in w is gone.
        """
        problem = self.problem
        if problem.offset:
            self.beta[:] = balanced(problem.terms, self.beta, -problem.total_held)
        self.w[:] = problem.function(self.beta)
        self.sweep.total = float(self.beta.sum()) + problem.total_held
        intercept = None
        if not problem.offset:
            intercept = self.sweep.intercept = problem.penalised_intercept(self.beta)
        self.gained = problem.dual_value(self.beta, self.w)
        return Point(self.beta, self.w, intercept, problem.values(self.w), pulled=self.w)
