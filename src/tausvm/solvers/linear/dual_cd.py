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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._core.sweeps import dense_sweep, leave_out, schedule, shuffle, sparse_sweep
from ..result import SolverOptions, Status
from .halves import UNCUT, Halves, worth_halving
from .monitor import LinearResult, Monitor, Point
from .problem import LinearProblem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: whole passes' worth of steps from one gap check to the next at most, and as a share of all
CHECK_EVERY = 8.0
CHECK_SHARE = 0.15
#: a check before that where a pass seems to leave less than this share of the gap asked for: it
#: mostly leaves somewhat more, and a check in vain costs half a pass
CAUTION = 0.75
#: all rows come back where less than this share of the gap was seen among those that take part
HELD = 0.5
#: corners make the primal at w jump from pass to pass. From so many passes on the w of a mean of β
#: is tried too, in which the k-th pass counts like k to the power of LATENESS
FIRST_MEAN = 8.0
LATENESS = 8
#: passes after which rows are visited by what they gain; quick problems are solved by then
EQUAL_PASSES = 10
#: numbers beyond the others, an entry of X, that a mean with a free offset may take
SPARE = 0.05
#: entries of rows that are neighbours in memory and in the random order; data of fewer than
#: CACHED entries have a wholly random one, which converges in fewer passes
BLOCK_ENTRIES = 256
CACHED = 2_000_000


def solve_dual_cd(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """Solve by coordinate descent in the dual.

    Parameters
    ----------
    problem : LinearProblem
    options : SolverOptions
        ``max_iter`` bounds the passes.
    start : Point or None
        A feasible β to start from.
    """
    monitor = Monitor(problem, options, "dual_cd")
    found = descend(problem, options, monitor, None if start is None else start.beta)
    return monitor.result(*found.products)


def descend(
    problem: LinearProblem, options: SolverOptions, monitor: Monitor, start: Array | None
) -> Found:
    """Algorithm 4 until the monitor says stop; the last point that was looked at."""
    if monitor.out_of_time():  # not even the products that a start takes
        start = None
    sweeps = Sweeps(problem, options, start)
    found = sweeps.look()
    if monitor.check(*found.objectives):
        return found
    done, unchecked, caution, scale, before = 0.0, 0.0, CAUTION, 0.0, np.inf
    while True:
        work = sweeps.count / problem.n
        met = sweeps.run(monitor)
        monitor.n_iter += 1
        done, unchecked = done + work, unchecked + work
        # a pass leaves less than it came across, by what it came across less than the last
        left = met.gap * (min(met.gap / before, 1.0) if 0 < before < np.inf else 1.0)
        before = met.gap
        if left <= 2.0 * caution * options.tol * scale or scale == 0:
            scale = abs(sweeps.dual_value())  # it grows from pass to pass
        solved = left <= caution * options.tol * scale
        ruled = (
            options.violation_tol is not None
            and met.total <= options.violation_tol * sweeps.first_total
        )
        due = unchecked >= max(CHECK_EVERY, CHECK_SHARE * done)
        limited = monitor.limited()
        if not (solved or ruled or due or limited):
            continue
        whole = sweeps.whole
        del found  # it has the size of what comes in its place
        if limited and not monitor.certifiable():
            sweeps = Sweeps(problem, options, None)  # β = 0 takes no products
        found = sweeps.look()
        stop = monitor.check(*found.objectives)
        unchecked = 0.0
        if stop:
            return found
        if ruled and whole:
            monitor.status = Status.VIOLATION_TOL
            return found
        if solved or ruled:
            # what the pass seemed to leave was this much less than the gap
            share = left / (monitor.gap * scale) if scale > 0 else 0.0
            caution = min(caution, share) if share > 0 else caution
            if ruled or share < HELD:
                sweeps.restore()
                if whole:  # nobody was left out: the sums may have been rounded
                    sweeps.refresh()


class Met:
    """What a pass came across: the sum and the largest of the violations (24), and the gap."""

    def __init__(self, total: float, largest: float, gap: float) -> None:
        self.total, self.largest, self.gap = total, largest, gap


class Sweeps:
    """The state of Algorithm 4: β, w, the set T and the threshold M."""

    def __init__(self, problem: LinearProblem, options: SolverOptions, start: Array | None) -> None:
        self.problem = problem
        self.shrinking = options.shrinking
        self.beta = np.zeros(problem.n) if start is None else start.copy()
        if start is None:
            self.coef = np.zeros(problem.d) if problem.pull is None else problem.pull.copy()
        else:
            self.coef = problem.weights(self.beta)
        self.column = problem.column
        if problem.offset:
            self.curvature = problem.rows.squares()
            self.column = float(np.sqrt(self.curvature.mean())) or 1.0
            self.curvature += self.column**2
        else:  # the first pass computes them
            self.curvature = np.full(problem.n, -1.0)
        total = float(self.beta.sum()) + problem.held
        self.offset = np.array([self.column**2 * total, total])
        if problem.offset:
            self.offset[0] = (
                problem.best_constant
                if start is None and problem.pull is None
                else problem.best_intercept(problem.values(self.coef))
            )
        self.state = np.array([2 * options.seed + 0x9E3779B97F4A7C15], dtype=np.uint64)
        self.active = np.empty(problem.n, dtype=np.int32)
        rows = problem.rows
        neighbours = BLOCK_ENTRIES * len(rows) // max(rows.entries, 1)
        self.block = max(1, neighbours) if rows.entries > CACHED else 1
        self.blocks = self._block_room(problem.n)
        self.settled = np.empty(problem.n, dtype=np.uint8)
        self.halves = Halves(rows) if worth_halving(rows) else None
        self.count = -1
        self.first_total = np.nan
        self.gained = 0.0
        self.equal_passes = EQUAL_PASSES if adaptive(options) else np.inf
        #: none while rows are visited equally often
        self.preference = np.empty(0, dtype=np.float32)
        self.usual = 0.0
        #: the mean of β over the passes, the late ones the more, once they are many
        self.mean: Array | None = None
        self.work = self.averaged = 0.0
        self.restore()

    @property
    def whole(self) -> bool:
        """Whether T is everybody."""
        return self.count == self.problem.n

    def refresh(self) -> None:
        """w and Σβ from the data, without what the steps rounded."""
        self.coef = self.problem.weights(self.beta)
        self.offset[1] = float(self.beta.sum()) + self.problem.held
        if not self.problem.offset:
            self.offset[0] = self.problem.constant(self.beta)

    def restore(self) -> None:
        """T ← everybody, M ← ∞."""
        if self.count != self.problem.n:
            self.active[:] = np.arange(self.problem.n, dtype=np.int32)
            self.settled[:] = 0
        self.count = self.problem.n
        self.threshold = np.inf
        if self.adapting:
            self.due += 1.0

    @property
    def adapting(self) -> bool:
        """Whether rows are visited by what they gain."""
        return len(self.preference) > 0

    def _adapt(self) -> None:
        """Begin to visit rows by what they gain."""
        self.restore()
        n = self.problem.n
        self.preference = np.ones(n, dtype=np.float32)
        self.due = np.zeros(n, dtype=np.float32)
        # every row once and some again; what does not fit stays due
        most = n + n // 8 + 1
        self.visits = np.empty(most, dtype=np.int32)
        self.blocks = self._block_room(most)

    def _block_room(self, visits: int) -> NDArray[np.int32]:
        """Room for the order of the blocks; rows on their own need none."""
        return np.empty(visits // self.block + 1 if self.block > 1 else 0, dtype=np.int32)

    def _drawn(self) -> NDArray[np.int32]:
        """The visits of a pass in their order."""
        visits, count = self.active, self.count
        if self.adapting:
            scale = self.problem.n / float(self.preference.sum(dtype=np.float64))
            visits = self.visits
            count = schedule(self.preference, scale, self.due, visits)
        order = np.empty(count, dtype=np.int32)
        shuffle(visits, count, self.block, self.blocks, order, self.state)
        return order

    def run(self, monitor: Monitor) -> Met:
        """Step 6 once: a pass over T in random order."""
        problem = self.problem
        if not self.adapting and monitor.n_iter >= self.equal_passes:
            self._adapt()
        order = self._drawn()
        count = len(order)
        met = np.zeros(5)
        step = problem.rows.batch()
        done = 0
        while done < count and not (done and monitor.out_of_time()):
            self.usual, done = self._sweep(order, done, min(done + step, count), met)
        self.gained += met[3]
        if problem.offset:  # the multiplier's step
            self.offset[0] += self.column**2 * self.offset[1]
        self._average()
        if np.isnan(self.first_total):
            self.first_total = met[0]
        if self.adapting:
            return Met(*met[:3])
        self.usual = met[3] / count
        if met[4] > 0:
            self.count = leave_out(self.active, self.count, self.settled)
        self.threshold = met[1] if self.shrinking and met[1] > 0 else np.inf
        return Met(*met[:3])

    def _sweep(
        self, order: NDArray[np.int32], begin: int, end: int, met: Array
    ) -> tuple[float, int]:
        """Visits of a pass; what a step usually gains by then, and where they end."""
        problem = self.problem
        arguments = (
            *problem.rows.arguments,
            problem.y,
            problem.terms.numbers,
            self.curvature,
            self.column,
            self.beta,
            self.coef,
            self.offset,
            order,
            begin,
            end,
            self.threshold,
            self.settled,
            self.preference,
            self.usual,
            met,
        )
        if not problem.rows.sparse:
            return dense_sweep(*arguments)
        if self.halves is None:
            return sparse_sweep(*arguments, *UNCUT)
        written = (
            self.curvature,
            self.beta,
            self.offset,
            self.settled,
            self.preference,
            met,
        )
        return self.halves.sweep(begin, end, arguments, written)

    def _average(self) -> None:
        """Take the running β into the mean, once a whole pass's worth of steps."""
        self.work += self.count / self.problem.n
        if not self.problem.bounded or self.work < max(FIRST_MEAN, self.averaged + 1.0):
            return
        if self.mean is None:
            if self.problem.offset and not _spares(self.problem):
                self.averaged = np.inf
                return
            self.mean, self.n_averaged = np.zeros(self.problem.n), 0
        self.averaged = self.work
        self.n_averaged += 1
        share = (LATENESS + 1) / (self.n_averaged + LATENESS)
        self.mean *= 1.0 - share
        self.mean += share * self.beta

    def dual_value(self) -> float:
        """The dual at the running β: what steps have gained, which are free of the multiplier's."""
        if self.problem.offset:
            return self.problem.dual_value(self.beta, self.coef)
        return self.gained

    def look(self) -> Found:
        """A feasible point near the running one, or itself; or the mean's w where it is better.

        All of it is from the data: w is Σ βᵢxᵢ computed afresh, and from there the steps go on.
        """
        problem = self.problem
        beta = problem.balanced(self.beta) if problem.offset else self.beta
        pulled = problem.weights(beta)
        if not problem.offset:
            self.coef = pulled
            self.offset[:] = problem.constant(beta), float(beta.sum()) + problem.held
        coef, intercept = pulled, problem.constant(beta)
        fitted = problem.values(coef)
        if problem.offset:
            intercept = problem.best_intercept(fitted) if coef.any() else problem.best_constant
        primal, dual = (
            problem.primal_value(coef, intercept, fitted),
            problem.dual_value(beta, pulled),
        )
        self.gained = dual
        if self.mean is not None:
            mean = problem.weights(self.mean)
            other = problem.rows.dot(mean)
            level = problem.best_intercept(other) if problem.offset else intercept
            value = problem.primal_value(mean, level, other)
            if value < primal:
                coef, intercept, fitted, primal = mean, level, other, value
        return Found(Point(beta, coef, intercept), fitted, pulled, primal, dual)


@dataclass
class Found:
    """A point with its Xw, its p + Σ βᵢxᵢ and both objectives, from the data."""

    point: Point
    fitted: Array
    pulled: Array
    primal: float
    dual: float

    @property
    def objectives(self) -> tuple[float, float]:
        return self.primal, self.dual

    @property
    def products(self) -> tuple[Point, Array, Array]:
        return self.point, self.fitted, self.pulled


def adaptive(options: SolverOptions) -> bool:
    """Whether rows may be visited unequally often: the rule (25) is about whole passes."""
    return options.adaptive and options.violation_tol is None


def _spares(problem: LinearProblem) -> bool:
    """Whether a vector of n and one of d are little beside X."""
    return 2 * (problem.n + problem.d) <= SPARE * problem.rows.entries
