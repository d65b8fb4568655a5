"""The whole path of dual solutions for τ from 0 to 1.

    min_β  ½ βᵀKβ − yᵀβ,   lower(τ) ≤ β ≤ upper(τ)   [Σβ = 0 when b is free]

Bounds are straight lines in τ, so β is piecewise linear (Proposition 3.1 of the quantile-path
paper) and Algorithm 1 walks from kink to kink. The first solution is found by the same walk:
with all bounds at zero the solution is β = 0, and opening the box at a fixed τ leads to the
solution there.

Every piece is certified (:mod:`path_check`). Where the walk cannot go on, it begins again from a
direct solution at the level it had reached, and where that does not help from one further on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from .moving_box import MovingBox
from .path_coarse import LevelSolver
from .path_log import PathLog, joined, joined_gaps
from .path_problem import PathError, PathOptions, PathProblem, PathResult, PathStopped
from .path_walk import NO_FACTOR, Leg, State, Walker
from .result import Status
from .tau_path import Chain, TauPath

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

#: how far labels are moved apart, as a share of their size, and boxes made narrower: points that
#: would reach the margin together, or depend on each other there, come one after the other; and
#: the same as a share of the tolerance
APART, APART_OF_TOL = 1e-10, 0.1
#: the level from which the path is walked up and down where no end will do, and from which on a
#: walk counts from the other end
MIDDLE = 0.5
#: down and up: the sign of a step in τ, and the last level
WAYS = ((-1, 0.0), (1, 1.0))
#: where nothing meets the tolerance, a walk goes on with pieces of up to so many times the best gap
LENIENCE = 2.0
#: a piece with a gap up to this is taken where the walk ends: levels that are solved one by one are
#: seldom better there
GOOD_ENOUGH = 1e-3
#: how often a walk may fail within a leg, and in a row at one level
MOST_FAILURES, MOST_STUCK = 300, 20
#: direct solutions in a row that may miss the tolerance before no more are tried
HOPELESS = 3
#: up to this order a matrix on which the walk failed is checked for negative eigenvalues beyond
#: this share of its largest entry
CHECKED_ORDER, INDEFINITE_SHARE = 2000, 1e-6
#: the way in τ to the next level that is solved where a walk cannot go on, at most and at least,
#: and its largest share of the way that is left to the end
NEXT_LEVEL, SHORTEST, NEXT_SHARE = 1 / 64, 1 / 2048, 0.5
#: how many levels are solved at most, where one that misses the tolerance counts as so many
MOST_LEVELS, MISSED = 150, 5


def follow_path(problem: PathProblem, options: PathOptions | None = None) -> PathResult:
    """All pieces for τ from 0 to 1, each with a bound on its gap."""
    options = options or PathOptions()
    if not problem.y.any():
        return _nothing_to_fit(problem, options)
    rng = np.random.default_rng(0)
    y = problem.y
    middle = float(np.median(y))
    spread = float(np.abs(y - middle).mean() or np.abs(y).max())
    apart = min(APART, APART_OF_TOL * options.tol)
    # outwards: then those with the largest and the smallest targets, where a path ends, lose
    # nothing that counts, and for labels ±1 it costs a share ``apart`` of the objective at most
    inner = middle if problem.offset and (y < 0).any() != (y > 0).any() else 0.0
    moved = y + apart * spread * np.where(y < inner, -1.0, 1.0) * rng.uniform(size=problem.n)
    # narrower boxes: what is feasible for them is feasible
    box = problem.box.times(1.0 - apart * rng.uniform(size=problem.n))
    try:
        return _WholePath(Walker(problem, moved, box, spread, options, apart)).result()
    finally:
        problem.products.watch = None


def _nothing_to_fit(problem: PathProblem, options: PathOptions) -> PathResult:
    """Targets that are all 0: so are f and b at every level."""
    started = options.clock()
    log = PathLog(np.inf, 0.0, 0.0, np.arange(problem.n), np.zeros(problem.n))
    sets = np.zeros(problem.n, dtype=np.int8)
    log.begin_leg(0.0, 1)
    log.add_solution(1.0, 0.0, np.zeros(problem.n), sets, sets, 0.0)
    path = TauPath(problem.box, sets, log.chain())
    seconds = options.clock() - started
    ends = np.array([0.0, 1.0])
    return PathResult(
        path, Status.SOLVED, 0, 0, ends, np.zeros(1), 1, None, (0.0, 1.0), seconds
    )  # fmt: skip


class _WholePath:
    """All legs: from the trivial problem to a first τ, then to all others from there."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.problem, self.box, self.options = walker.problem, walker.box, walker.options
        self.products = walker.windows.products
        self.resolved: list[float] = []
        self.reached = [MIDDLE, MIDDLE]
        self.stopped: Status | None = None
        self._levels: LevelSolver | None = None
        self._n_levels = self._hopeless = 0
        self._step = NEXT_LEVEL
        self._definite = False

    def result(self) -> PathResult:
        try:
            first, start = self._first()
        except PathStopped as stop:
            self.stopped = stop.status
            first, start = self._constant(MIDDLE), MIDDLE
        n_start = self.walker.n_kinks
        ends: list[Signs] = []
        logs: list[PathLog] = []
        n_ways = sum(start != last for _, last in WAYS)
        limit = self.options.memory_limit * 2**20 / n_ways
        for side, (way, last) in enumerate(WAYS):
            log = PathLog(limit, start, first.offset, first.free, first.beta[first.free])
            self.reached[side] = start
            ends.append(self._one_way(log, first, start, way, last).status)
            logs.append(log)
        self.problem.products.watch = None  # what is left is the certificate
        chains: list[Chain] = [log.chain() for log in logs]
        path = joined(self.box, ends[0], chains[0], chains[1], first.status)
        gaps = self._certified(path, joined_gaps(logs[0].gaps(), logs[1].gaps()))
        status = Status.SOLVED if gaps.max() <= self.options.tol else Status.NUMERICAL_ERROR
        return PathResult(
            path=path,
            status=self.stopped or status,
            n_kinks=self.walker.n_kinks - n_start,
            n_start=n_start,
            checked=path.chain.tau,
            gaps=gaps,
            thinned=max(log.every for log in logs),
            resolved=(min(self.resolved), max(self.resolved)) if self.resolved else None,
            reached=(self.reached[0], self.reached[1]),
            seconds=self.walker.seconds,
        )

    def _one_way(self, log: PathLog, first: State, start: float, way: int, last: float) -> State:
        """From the first solution to one end."""
        state = first
        for leg in self._legs(start, last, way, log):
            log.begin_leg(leg.base, leg.way)
            state = state.at_start(leg.begin)
            try:
                if self.stopped:
                    raise PathStopped(self.stopped)
                state = self._follow_or_solve(leg, state)
                self.reached[way > 0] = leg.level(leg.end)
            except PathStopped as stop:
                if self.stopped is None:
                    self.stopped = stop.status
                    state = self.walker.last
                    self.reached[way > 0] = leg.level(state.t)
                end, gap = self.walker.line_to_end(leg, state)
                self.walker.add(leg, state, end, gap)
                state = end
        if self.problem.offset and start != last:
            log.close(self.problem.closing_offset(last))
        return state

    def _certified(self, path: TauPath, gaps: Array) -> Array:
        """The bounds of all pieces: of those that nobody looked at, and a second look where one
        is too large."""
        open_ = np.flatnonzero(~(gaps <= self.options.tol))
        if len(open_):
            gaps[open_] = self.walker.check.pieces(path, open_)
        return gaps

    # ---- the first solution ----

    def _first(self) -> tuple[State, float]:
        """A first solution, by a walk from the trivial problem, and its level.

        At the ends of a classifier's path the boxes of one class are closed, and the problem is
        that of the other class alone: the smaller one is where to begin. Where the offset is
        free nothing is known there, and for quantiles no box is closed.
        """
        n_open = [np.count_nonzero(self._open(level)) for level in (0.0, 1.0)]
        if not self.problem.offset and min(n_open) < self.problem.n:
            start = 0.0 if n_open[0] <= n_open[1] else 1.0
            with suppress(PathError):
                return self._first_at_end(start), start
        try:
            leg = Leg(self.box.shrunk(MIDDLE), 0.0, 1.0, MIDDLE, 0)
            return self.walker.follow(leg, self.walker.trivial(MIDDLE)), MIDDLE
        except PathError as error:
            self._refuse_indefinite(error)
            return self._solved(self.box, MIDDLE), MIDDLE

    def _constant(self, tau: float) -> State:
        """β = 0 with the best constant: where there was no time for more."""
        n = self.problem.n
        b = self.problem.settled_offset(np.zeros(n), 0.0, tau)
        free = np.arange(n)
        status = np.zeros(n, dtype=np.int8)
        return State(0.0, np.zeros(n), self.walker.y - b, status, b, free, NO_FACTOR, np.zeros(n))

    def _open(self, tau: float) -> NDArray[np.bool_]:
        return self.box.upper(tau) > self.box.lower(tau)

    def _first_at_end(self, tau: float) -> State:
        """The solution of the points whose boxes are open at an end; the others follow."""
        rows = np.flatnonzero(self._open(tau))
        box = MovingBox(self.box.numbers[:, rows])
        part = PathProblem(self.products.take(rows), self.problem.y[rows], box, False)
        old = self.walker
        left = replace(
            self.options, time_limit=self._seconds_left(), max_iter=self.walker.kinks_left
        )
        walker = Walker(part, old.y[rows], box, old.scale, left, old.apart)
        try:
            found = walker.follow(Leg(box.shrunk(tau), 0.0, 1.0, tau, 0), walker.trivial(tau))
        finally:
            self.walker.n_kinks += walker.n_kinks
        beta = np.zeros(self.problem.n)
        beta[rows] = found.beta
        fitted = self.products.product(beta)
        residual = self.walker.y - fitted
        status = np.where(residual < 0, -1, 1).astype(np.int8)
        status[rows] = found.status
        return State(0.0, beta, residual, status, 0.0, rows[found.free], NO_FACTOR, fitted)

    def _seconds_left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else max(limit - self.walker.seconds, 0.0)

    def _refuse_indefinite(self, error: PathError) -> None:
        """Raise where the matrix is to blame: its smallest eigenvalue, if that is affordable."""
        n = self.problem.n
        if not error.indefinite and not self._definite and n <= CHECKED_ORDER:
            everything = np.arange(n)
            K = self.problem.products.block(everything, everything)
            smallest = eigvalsh(K, subset_by_index=[0, 0])[0]
            error.indefinite = bool(smallest < -INDEFINITE_SHARE * np.abs(K).max())
        if error.indefinite:
            raise error
        self._definite = True

    # ---- legs ----

    def _legs(self, start: float, last: float, way: int, log: PathLog) -> Iterator[Leg]:
        """From ``start`` to ``last``; t counts from the ends, where boxes close: it is small
        there and keeps its digits."""
        if start == last:
            return
        if start != MIDDLE:
            yield Leg(self.box.from_(start, way), 0.0, abs(MIDDLE - start), start, way, log)
        yield Leg(self.box.from_(last, way), -abs(last - MIDDLE), 0.0, last, way, log)

    def _follow_or_solve(self, leg: Leg, state: State) -> State:
        """Walk a leg. Where that fails, go on from a direct solution at the level that was
        reached, and if no piece follows from there, from one at the next level or with the best
        piece that can be had."""
        tried = failed = -np.inf
        failures = stuck = 0
        self.walker.tol = self.options.tol
        while True:
            try:
                return self.walker.follow(leg, state)
            except PathError as error:
                self._refuse_indefinite(error)
            reached = self.walker.last
            failures, stuck = failures + 1, stuck + 1 if reached.t == failed else 0
            failed = reached.t
            end, gap = self.walker.line_to_end(leg, reached)
            if gap <= self.options.tol or failures > MOST_FAILURES:
                self.walker.add(leg, reached, end, gap)
                return end
            state = reached
            if reached.t > tried and self._hopeless < HOPELESS and self._may_solve():
                state = self._again_at(leg, reached)
            elif not self._go_on(leg, reached, stuck > MOST_STUCK):
                self.walker.add(leg, reached, end, gap)
                return end
            else:
                state = self.walker.last
            tried = state.t

    def _may_solve(self) -> bool:
        return self._n_levels < MOST_LEVELS and LevelSolver.affordable(self.walker)

    def _solved(self, box: MovingBox, t: float) -> State:
        """A direct solution where the box is at t."""
        self.walker.stop_in_time()
        if self._levels is None:
            self._levels = LevelSolver(self.walker)
        self._n_levels += 1
        return self._levels.state(box, t)

    def _again_at(self, leg: Leg, reached: State) -> State:
        """The same level, solved directly, if that is better."""
        state = self._solved(leg.box, reached.t)
        gap, old = (self.walker.line(leg, found, found) for found in (state, reached))
        missed = gap > self.options.tol
        self._hopeless = self._hopeless + 1 if missed else 0
        self._n_levels += MISSED - 1 if missed else 0
        if gap > old:
            return reached
        self.walker.add(leg, reached, state, gap)
        return state

    def _go_on(self, leg: Leg, reached: State, stuck: bool) -> bool:
        """Let the walk go on where no piece meets the tolerance: with the piece at which it
        ended, or from the next level, whichever is better; False where neither is left."""
        walker, tol = self.walker, self.options.tol
        piece = 1.0 if stuck else walker.next_gap
        if not piece < 1.0 and not LevelSolver.affordable(walker):
            raise PathError(False)
        if piece > GOOD_ENOUGH and self._may_solve():
            state, gap = self._next_level(leg, reached)
            if gap <= tol or gap < piece or stuck:
                self.walker.add(leg, reached, state, gap)
                self.resolved += [leg.level(reached.t), leg.level(state.t)]
                walker.tol = max(tol, LENIENCE * self.walker.line(leg, state, state))
                return True
        walker.tol = max(tol, LENIENCE * piece)
        return piece < 1.0

    def _next_level(self, leg: Leg, reached: State) -> tuple[State, float]:
        """The next level, solved directly, or one nearer if the straight line to it is no good,
        and a bound for that line."""
        tol, left = self.options.tol, NEXT_SHARE * (leg.end - reached.t)
        step = min(max(self._step, SHORTEST), left)
        while True:
            state = self._solved(leg.box, reached.t + step)
            gap = self.walker.line(leg, reached, state)
            # on a line that leaves out kinks the gap grows with the square of the way
            factor = 0.8 * float(np.sqrt(tol / max(gap, 0.01 * tol)))
            if gap <= tol or step <= SHORTEST or not self._may_solve():
                break
            step = max(step * min(max(factor, 0.1), 0.5), SHORTEST)
        if self.walker.line(leg, state, state) > tol:
            self._n_levels += MISSED - 1
        self._step = min(step * min(max(factor, 1.0), 4.0), NEXT_LEVEL)
        return state, gap
