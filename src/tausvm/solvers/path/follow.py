"""The whole path of dual solutions for τ from 0 to 1.

    min_β  ½ βᵀKβ − yᵀβ,   lower(τ) ≤ β ≤ upper(τ)   [Σβ = 0 when b is free]

Bounds are straight lines in τ, so β is piecewise linear (Proposition 3.1 of the quantile-path
paper) and Algorithm 1 walks from kink to kink:

    first     with all bounds at zero the solution is β = 0, and opening the box at a fixed τ leads
              to the solution there by the same walk
    down, up  from there to τ = 0 and to τ = 1: walk, and where the walk cannot go on, rescue it
    certify   a bound on the gap of every piece (:mod:`check`)

A rescue begins again from a direct solution at the level that was reached, and where that does
not help from one further on, or with the best piece that can be had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from ..result import Status
from .family import PathProblem
from .levels import LevelSolver
from .nudge import Nudged
from .record import Recorder, joined, joined_gaps
from .result import PathResult
from .settings import PathOptions, PathSettings
from .state import Leg, Limits, PathError, PathStopped, State
from .tau_path import TauPath
from .walk import Walked, Walker

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

#: the level from which the path is walked up and down where no end will do, and from which on a
#: walk counts from the other end
MIDDLE = 0.5
#: the sign of a step in τ, and the last level
DOWN, UP = (-1, 0.0), (1, 1.0)


def follow_path(
    problem: PathProblem,
    options: PathOptions | None = None,
    settings: PathSettings | None = None,
) -> PathResult:
    """All pieces for τ from 0 to 1, each with a bound on its gap."""
    options, settings = options or PathOptions(), settings or PathSettings()
    if not problem.y.any():
        return _nothing_to_fit(problem, options)
    limits = Limits(options)
    if options.time_limit is not None:
        problem.products.watch = limits.stop_in_time
    try:
        return Follower(Nudged.of(problem, options.tol, settings), limits, settings).follow()
    finally:
        problem.products.watch = None


def _nothing_to_fit(problem: PathProblem, options: PathOptions) -> PathResult:
    """Targets that are all 0: so are f and b at every level."""
    started = options.clock()
    sets = np.zeros(problem.n, dtype=np.int8)
    first, last = (State.of(t, np.zeros(problem.n), sets, 0.0) for t in (0.0, 1.0))
    record = Recorder(np.inf, 0.0, first)
    record.begin_leg(0.0, 1)
    record.add_solution(first, last, 0.0)
    return PathResult(
        path=TauPath(problem.box, sets, record.chain()),
        status=Status.SOLVED,
        n_kinks=0,
        n_start=0,
        checked=np.array([0.0, 1.0]),
        gaps=np.zeros(1),
        thinned=1,
        resolved=None,
        reached=(0.0, 1.0),
        seconds=options.clock() - started,
    )


@dataclass
class Way:
    """The path from the first solution in one direction."""

    record: Recorder
    end: Signs
    reached: float


class Follower:
    """Leads from a first solution to both ends."""

    def __init__(self, nudged: Nudged, limits: Limits, settings: PathSettings) -> None:
        self.nudged, self.limits, self.settings = nudged, limits, settings
        self.problem, self.box, self.options = nudged.problem, nudged.box, limits.options
        self.walker = Walker(nudged, limits, settings)
        self.levels = LevelSolver(self.walker.margin, limits, settings)
        self.rescue = Rescue(self.walker, self.levels, settings)
        #: the limit that ended the work
        self.stopped: Status | None = None
        self._known_definite = False

    def follow(self) -> PathResult:
        try:
            first, start = self._first()
        except PathStopped as stop:
            self._stop(stop)
            first, start = self._constant(MIDDLE), MIDDLE
        n_start = self.limits.n_kinks
        down, up = self._one_way(first, start, *DOWN), self._one_way(first, start, *UP)
        self.problem.products.watch = None  # the certificate must be computed
        chains = down.record.chain(), up.record.chain()
        path = joined(self.box, down.end, *chains, first.status)
        gaps = self._certified(path, joined_gaps(down.record.gaps(), up.record.gaps()))
        status = Status.SOLVED if gaps.max() <= self.options.tol else Status.NUMERICAL_ERROR
        resolved = self.rescue.resolved
        return PathResult(
            path=path,
            status=self.stopped or status,
            n_kinks=self.limits.n_kinks - n_start,
            n_start=n_start,
            checked=path.chain.tau,
            gaps=gaps,
            thinned=max(down.record.every, up.record.every),
            resolved=(min(resolved), max(resolved)) if resolved else None,
            reached=(down.reached, up.reached),
            seconds=self.limits.seconds,
        )

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
        some_closed = min(n_open) < self.problem.n
        if self.settings.begin_at_ends and some_closed and not self.problem.offset:
            start = 0.0 if n_open[0] <= n_open[1] else 1.0
            found = self._first_at_end(start)
            if found is not None:
                return found, start
        leg = self._opening(self.nudged, MIDDLE)
        walked = self.walker.walk(leg, self.options.tol)
        if walked.arrived:
            return leg.state, MIDDLE
        self._refuse_indefinite(walked)
        return self.levels.solve(self.box, MIDDLE), MIDDLE

    def _open(self, tau: float) -> NDArray[np.bool_]:
        return self.box.upper(tau) > self.box.lower(tau)

    def _opening(self, nudged: Nudged, tau: float) -> Leg:
        """The walk on which boxes open at a fixed level, from β = 0."""
        y, n = nudged.y, len(nudged.y)
        status = np.where(y < 0, -1, 1).astype(np.int8)
        offset = 0.0
        if nudged.problem.offset:
            # who is free when the boxes open: the one who balances the others
            order = np.argsort(-y, kind="stable")
            above = np.cumsum(nudged.box.upper(tau)[order])
            lower = nudged.box.lower(tau)
            below = lower.sum() - np.cumsum(lower[order])
            place = int(np.argmax(above + below >= 0))
            offset = float(y[order[place]])
            status[order[:place]] = 1
            status[order[place:]] = -1
            status[order[place]] = 0
        state = State.of(0.0, np.zeros(n), status, offset)
        return Leg(nudged.box.shrunk(tau), 1.0, tau, 0, state)

    def _first_at_end(self, tau: float) -> State | None:
        """The solution of the points whose boxes are open at an end; the others follow."""
        rows = np.flatnonzero(self._open(tau))
        part = self.nudged.take(rows)
        leg = self._opening(part, tau)
        if not Walker(part, self.limits, self.settings).walk(leg, self.options.tol).arrived:
            return None
        beta = np.zeros(self.problem.n)
        beta[rows] = leg.state.beta
        fitted = self.walker.products.product(beta)
        status = np.where(self.nudged.y < fitted, -1, 1).astype(np.int8)
        status[rows] = leg.state.status
        return replace(State.of(0.0, beta, status, 0.0), fitted=fitted)

    def _constant(self, tau: float) -> State:
        """β = 0 with the best constant: where there was no time for more."""
        nothing, everybody = np.zeros(self.problem.n), np.zeros(self.problem.n, dtype=np.int8)
        b = self.problem.settled_offset(nothing, 0.0, tau)
        state = State.of(0.0, nothing, everybody, b)
        self.walker.margin.evaluate(state)
        return state

    def _refuse_indefinite(self, walked: Walked) -> None:
        """Raise where the matrix is to blame: its smallest eigenvalue, if that is affordable."""
        if walked.indefinite:
            raise PathError(True)
        if self._known_definite or self.problem.n > self.settings.checked_order:
            return
        everything = np.arange(self.problem.n)
        K = self.problem.products.block(everything, everything)
        smallest = eigvalsh(K, subset_by_index=[0, 0])[0]
        if smallest < -self.settings.indefiniteness * np.abs(K).max():
            raise PathError(True)
        self._known_definite = True

    # ---- from there to an end ----

    def _one_way(self, first: State, start: float, way: int, last: float) -> Way:
        """From the first solution to one end."""
        n_ways = 2 if start == MIDDLE else 1
        limit = self.options.memory_limit * 2**20 / n_ways
        record = Recorder(limit, start, first)
        state, reached = first, start
        for base, begin, end in self._legs(start, last):
            leg = Leg(self.box.from_(base, way), end, base, way, state.moved_to(begin), record)
            record.begin_leg(base, way)
            if self.stopped is None:
                reached = self._cover(leg)
            else:
                self.walker.jump(leg, *self.walker.line_to_end(leg))
            state = leg.state
        if self.problem.offset and start != last:
            record.close(self.problem.closing_offset(last))
        return Way(record, state.status, reached)

    def _legs(self, start: float, last: float) -> list[tuple[float, float, float]]:
        """Where t is 0, begins and ends. It counts from the ends of the path, where boxes close: it
        is small there and keeps its digits."""
        if start == last:
            return []
        to_middle = [] if start == MIDDLE else [(start, 0.0, abs(MIDDLE - start))]
        return [*to_middle, (last, -abs(last - MIDDLE), 0.0)]

    def _cover(self, leg: Leg) -> float:
        """Lead a leg to its end, if need be on a straight line; returns the level up to which the
        path was found."""
        try:
            self._walk_or_rescue(leg)
            return leg.level(leg.end)
        except PathStopped as stop:
            self._stop(stop)
            reached = leg.level(leg.state.t)
            self.walker.jump(leg, *self.walker.line_to_end(leg))
            return reached

    def _walk_or_rescue(self, leg: Leg) -> None:
        """Walk a leg, and rescue the walk as often as that fails and may help."""
        self.rescue.begin()
        tol = self.options.tol
        for _ in range(self.settings.most_failures):
            walked = self.walker.walk(leg, tol)
            if walked.arrived:
                return
            self._refuse_indefinite(walked)
            if self.walker.closed(leg):
                return
            allowed = self.rescue.onwards(leg, walked)
            if allowed is None:
                break
            tol = allowed
        self.walker.jump(leg, *self.walker.line_to_end(leg))

    def _stop(self, stop: PathStopped) -> None:
        """A limit was reached: what is still to be computed is little, and must be."""
        self.stopped = stop.status
        self.problem.products.watch = None


class Rescue:
    """What to do where a walk cannot go on.

    Attributes
    ----------
    resolved : list of float
        Levels between which solutions were computed one by one.
    """

    def __init__(self, walker: Walker, levels: LevelSolver, settings: PathSettings) -> None:
        self.walker, self.levels, self.settings = walker, levels, settings
        self.tol = walker.limits.options.tol
        self.resolved: list[float] = []
        self._step = settings.next_level
        self.begin()

    def begin(self) -> None:
        """Another leg."""
        self._began = self._failed = -np.inf
        self._failed_in_a_row = 0

    def onwards(self, leg: Leg, walked: Walked) -> float | None:
        """Take a leg to where a walk may go on, and return the gap that its pieces may have: from a
        direct solution at the level that was reached where the walk has come on since the last
        rescue, else with the best that can be had. None where nothing is left."""
        reached = leg.state.t
        stays = reached == self._failed
        self._failed, self._failed_in_a_row = reached, self._failed_in_a_row + 1 if stays else 0
        tol: float | None = walked.tol
        if reached > self._began and self.levels.promising:
            self._solve_again(leg)
        else:
            tol = self._take_the_best(leg, walked.next_gap)
        self._began = leg.state.t
        return tol

    def _solve_again(self, leg: Leg) -> None:
        """The level that was reached, solved directly, if that is better."""
        state, old = self.levels.solve(leg.box, leg.state.t), leg.state
        gap = self.walker.line(leg, state, state)
        self.levels.judge(gap, again=True)
        if gap <= self.walker.line(leg, old, old):
            self.walker.jump(leg, state, gap)

    def _take_the_best(self, leg: Leg, next_gap: float) -> float | None:
        """Where no piece meets the tolerance: the one at which the walk ended, or the straight line
        to the next level, whichever is better."""
        settings, stuck = self.settings, self._failed_in_a_row > self.settings.most_stuck
        piece = 1.0 if stuck else next_gap
        if not piece < 1.0 and not self.levels.affordable:
            raise PathError(False)
        if piece > settings.good_enough and self.levels.allowed:
            state, gap = self._next_level(leg)
            if gap <= self.tol or gap < piece or stuck:
                self.resolved += [leg.level(leg.state.t), leg.level(state.t)]
                self.walker.jump(leg, state, gap)
                return max(self.tol, settings.lenience * self.walker.line(leg, state, state))
        return max(self.tol, settings.lenience * piece) if piece < 1.0 else None

    def _next_level(self, leg: Leg) -> tuple[State, float]:
        """The next level, solved directly, or one nearer if the straight line to it is no good,
        and a bound for that line."""
        shortest, left = self.settings.shortest, self.settings.next_share * (leg.end - leg.state.t)
        step = min(max(self._step, shortest), left)
        state, gap, better = self._step_of(leg, step)
        while gap > self.tol and step > shortest and self.levels.allowed:
            step = max(step * min(max(better, 0.1), 0.5), shortest)
            state, gap, better = self._step_of(leg, step)
        self.levels.judge(self.walker.line(leg, state, state), again=False)
        self._step = min(step * min(max(better, 1.0), 4.0), self.settings.next_level)
        return state, gap

    def _step_of(self, leg: Leg, step: float) -> tuple[State, float, float]:
        """The level a step further, a bound for the line to it, and by how much longer or shorter a
        step would do: on a line that leaves out kinks the gap grows with the square of the way."""
        state = self.levels.solve(leg.box, leg.state.t + step)
        gap = self.walker.line(leg, state)
        return state, gap, 0.8 * float(np.sqrt(self.tol / max(gap, 0.01 * self.tol)))
