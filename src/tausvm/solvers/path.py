"""The whole path of dual solutions for τ from 0 to 1.

    min_β  ½ βᵀKβ − yᵀβ,   lower(τ) ≤ β ≤ upper(τ)   [Σβ = 0 when b is free]

Bounds are straight lines in τ, so β is piecewise linear (Proposition 3.1 of the quantile-path
paper) and Algorithm 1 walks from kink to kink. The first solution is found by the same walk:
with all bounds at zero the solution is β = 0, and opening the box at a fixed τ leads to the
solution there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from .moving_box import MovingBox
from .path_coarse import Found, solve_level, solve_one_by_one
from .path_log import PathLog, joined
from .path_problem import PathError, PathOptions, PathProblem, PathResult
from .path_walk import NO_FACTOR, Leg, State, Walker
from .result import Status
from .tau_path import Chain, TauPath

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

#: how far labels are moved apart, as a share of their size, and boxes made narrower: points that
#: would reach the margin together, or depend on each other there, come one after the other
APART = 1e-10
#: the level from which the path is walked up and down where no end will do, and from which on a
#: walk counts from the other end
MIDDLE = 0.5
#: down and up: the sign of a step in τ, and the last level
WAYS = ((-1, 0.0), (1, 1.0))
#: a walk that fails this near to the end of its leg is at it
AT_END = 1e-10
#: up to this order a matrix on which the walk failed is checked for negative eigenvalues beyond
#: this share of its largest entry
CHECKED_ORDER, INDEFINITE_SHARE = 2000, 1e-6
#: how many pieces of a thinned path are checked
PIECES_CHECKED = 200


def follow_path(problem: PathProblem, options: PathOptions | None = None) -> PathResult:
    """All kinks for τ from 0 to 1, with the gaps of the checks on the way."""
    rng = np.random.default_rng(0)
    y = problem.y
    spread = float(np.abs(y - np.median(y)).mean() or np.abs(y).max() or 1.0)
    # away from zero: for labels ±1 that costs a share APART of the objective at most
    apart = y + APART * spread * np.where(y < 0, -1.0, 1.0) * rng.uniform(size=problem.n)
    # narrower boxes: what is feasible for them is feasible
    box = MovingBox(problem.box.numbers * (1.0 - APART * rng.uniform(size=problem.n)))
    return _WholePath(Walker(problem, apart, box, spread, options or PathOptions())).result()


class _WholePath:
    """All legs: from the trivial problem to a first τ, then to all others from there."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.problem, self.box, self.options = walker.problem, walker.box, walker.options
        self.products = walker.windows.products
        #: whether the solution in hand was reached by a walk, so that others can be
        self.followed = True
        self.resolved: list[float] = []

    def result(self) -> PathResult:
        first, start = self._first()
        n_start, self.walker.n_kinks = self.walker.n_kinks, 0
        followed = self.followed
        ends: list[Signs] = []
        chains: list[Chain] = []
        thinned = 1
        n_ways = sum(start != last for _, last in WAYS)
        limit = self.options.memory_limit * 2**20 / n_ways
        for way, last in WAYS:
            state, self.followed = first, followed
            log = PathLog(limit, start, first.offset, first.free, first.beta[first.free])
            for leg in self._legs(start, last, way, log):
                state = self._follow_or_solve(leg, state.at_start(leg.begin))
            if self.problem.offset:
                log.close(self.problem.closing_offset(last))
            ends.append(state.status)
            chains.append(log.chain())
            thinned = max(thinned, log.every)
        path = joined(self.box, ends[0], chains[0], chains[1], first.status)
        if thinned > 1:
            self._check_pieces(path)
        order = np.argsort(self.walker.checked, kind="stable")
        gaps = np.array(self.walker.gaps)[order]
        met = gaps.max(initial=0.0) <= self.options.tol
        return PathResult(
            path=path,
            status=Status.SOLVED if met else Status.NUMERICAL_ERROR,
            n_kinks=self.walker.n_kinks,
            n_start=n_start,
            checked=np.array(self.walker.checked)[order],
            gaps=gaps,
            thinned=thinned,
            resolved=(min(self.resolved), max(self.resolved)) if self.resolved else None,
            seconds=time.perf_counter() - self.walker.started,
        )

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
            found = solve_level(self.problem, self.box, MIDDLE, self.options)
            self.followed = False
            return self._unfollowed(0.0, found), MIDDLE

    def _open(self, tau: float) -> NDArray[np.bool_]:
        return self.box.upper(tau) > self.box.lower(tau)

    def _first_at_end(self, tau: float) -> State:
        """The solution of the points whose boxes are open at an end; the others follow."""
        rows = np.flatnonzero(self._open(tau))
        box = MovingBox(self.box.numbers[:, rows])
        part = PathProblem(self.products.take(rows), self.problem.y[rows], box, False)
        walker = Walker(part, self.walker.y[rows], box, self.walker.scale, self.options)
        found = walker.follow(Leg(box.shrunk(tau), 0.0, 1.0, tau, 0), walker.trivial(tau))
        self.walker.n_kinks += walker.n_kinks
        beta = np.zeros(self.problem.n)
        beta[rows] = found.beta
        fitted = self.products.product(beta)
        residual = self.walker.y - fitted
        status = np.where(residual < 0, -1, 1).astype(np.int8)
        status[rows] = found.status
        return State(0.0, beta, residual, status, 0.0, rows[found.free], NO_FACTOR, fitted)

    def _unfollowed(self, t: float, found: Found) -> State:
        """A state from which no walk goes on: without residuals and a factor."""
        free = np.flatnonzero(found.status == 0)
        nothing = np.zeros(self.problem.n)
        return State(t, found.beta, nothing, found.status, found.offset, free, NO_FACTOR, nothing)

    def _refuse_indefinite(self, error: PathError) -> None:
        """Raise where the matrix is to blame: its smallest eigenvalue, if that is affordable."""
        n = self.problem.n
        if not error.indefinite and n <= CHECKED_ORDER:
            everything = np.arange(n)
            K = self.problem.products.block(everything, everything)
            smallest = eigvalsh(K, subset_by_index=[0, 0])[0]
            error.indefinite = bool(smallest < -INDEFINITE_SHARE * np.abs(K).max())
        if error.indefinite:
            raise error

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
        """Walk a leg; where that fails, solve for the rest of it level by level."""
        assert leg.log is not None
        leg.log.begin_leg(leg.base, leg.way)
        if self.followed:
            try:
                return self.walker.follow(leg, state)
            except PathError as error:
                self._refuse_indefinite(error)
                state = self.walker.last
        reached, last = leg.level(state.t), leg.level(leg.end)
        if leg.end - state.t < AT_END:
            return self._stay_to_end(leg, state)
        self.followed = False
        self.resolved.append(reached)
        for found in solve_one_by_one(
            self.problem, self.box, (state.beta, state.offset), reached, last, self.options
        ):
            t = leg.way * (found.tau - leg.base)
            leg.log.add_solution(t, found.offset, found.beta, state.status, found.status)
            state = self._unfollowed(t, found)
            self.walker.note(0.5 * (reached + found.tau), found.gap)
            reached = found.tau
            self.resolved.append(reached)
        return state

    def _stay_to_end(self, leg: Leg, state: State) -> State:
        """The end of a leg for the sets of a state that is next to it."""
        assert leg.log is not None
        t, status = leg.end, state.status
        lower, upper = leg.box.lower(t), leg.box.upper(t)
        beta = np.where(status > 0, upper, np.where(status < 0, lower, state.beta))
        beta = np.clip(beta, lower, upper)
        leg.log.add_solution(t, state.offset, beta, status, status)
        return replace(state, t=t, beta=beta)

    def _check_pieces(self, path: TauPath) -> None:
        """The gaps in the middle of the widest pieces of a path that was thinned."""
        taus = path.chain.tau
        widest = np.argsort(-np.diff(taus), kind="stable")[:PIECES_CHECKED]
        for piece in widest:
            tau = float(0.5 * (taus[piece] + taus[piece + 1]))
            beta, b = path.solution(tau)
            fitted = self.products.product(beta)
            b = self.problem.settled_offset(fitted, b, tau)
            primal, dual = self.problem.objectives(beta, fitted, b, tau)
            self.walker.note(tau, self.problem.gap(primal, dual))
