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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigvalsh

from .._core.path import BATCH, END, GROW, HARD, INDEFINITE, LOG_FULL, PathCore, SweptCore
from .moving_box import LOWER_SLOPE, UPPER_SLOPE, MovingBox
from .path_coarse import Found, solve_level, solve_one_by_one
from .path_log import PathLog, joined
from .path_problem import PathError, PathOptions, PathProblem, PathResult
from .path_window import Ends, Window, Windows
from .result import Progress, Status
from .tau_path import Chain, TauPath

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: how far labels are moved apart, as a share of their size, and boxes made narrower: points that
#: would reach the margin together, or depend on each other there, come one after the other
APART = 1e-10
#: a point counts as dependent on the free ones where they leave less than this of its squared
#: norm; free points that do are a mistake of a factor that was updated often
INDEPENDENCE, DEPENDENCE = 1e-12, 1e-13
#: the level from which the path is walked up and down where no end will do, and from which on a
#: walk counts from the other end
MIDDLE = 0.5
#: free points may be this far from the margin, as a share of the labels' size, before a batch
#: is walked again
DRIFT = 1e-7
#: what rounding may make of a residual, as a share of the terms in it
EVALUATION = 1e-15
#: a batch with a larger gap than wanted is walked again down to this many kinks
FEWEST_FOR_GAP = 4
#: kinks between two exact evaluations of the residuals
BATCH_KINKS = 512
#: the matrix of a window is swept from so many free points on, and where it has at most so many
#: points for each of them
SWEPT_FROM, SWEPT_PER_FREE = 16, 8
#: a walk that fails this near to the end of its leg is at it
AT_END = 1e-10
#: kinks walked with a factor where a swept matrix is not accurate enough
HARD_KINKS = 16
#: kinks in a row that may go without a step in τ, beside the number of points
ZERO_STEPS = 1000
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
    return _Walk(problem, apart, box, spread, options or PathOptions()).result()


@dataclass
class _State:
    """Where a walk is: t, β, the residuals y − Kβ − b, the sets, and the margin's factor."""

    t: float
    beta: Array
    residual: Array
    status: Signs
    offset: float
    free: Index
    factor: Array
    fitted: Array

    def ends(self) -> Ends:
        return Ends(self.t, self.beta, self.residual, self.status, self.offset)

    def at_start(self, t: float) -> _State:
        """The same point as the start of another leg."""
        return _State(
            t, self.beta.copy(), self.residual.copy(), self.status.copy(), self.offset,
            self.free, self.factor, self.fitted,
        )  # fmt: skip


@dataclass
class _Leg:
    """A walk to t = ``end``: the box as a function of t, and the level base + way·t of a t."""

    box: MovingBox
    begin: float
    end: float
    base: float
    way: int
    log: PathLog | None = None

    def level(self, t: float) -> float:
        return self.base + self.way * t


class _Walk:
    """Algorithm 1: from the trivial problem to a first τ, then to all others from there.

    ``y`` and ``box`` are those of the problem, moved apart; ``scale`` is the labels' size.
    """

    def __init__(
        self, problem: PathProblem, y: Array, box: MovingBox, scale: float, options: PathOptions
    ) -> None:
        self.problem = problem
        self.options = options
        self.started = time.perf_counter()
        self.y = y
        self.box = box
        self.scale = scale
        diagonal = problem.products.diagonal()
        typical = float(np.median(diagonal)) or float(diagonal.mean()) or 1.0
        self.shift = typical if problem.offset else 0.0
        self.windows = Windows(problem.products, self.shift, options.cache_size)
        self.checked: list[float] = []
        self.gaps: list[float] = []
        self.n_kinks = 0
        #: whether the solution in hand was reached by a walk, so that others can be
        self.followed = True
        self.resolved: list[float] = []

    def result(self) -> PathResult:
        first, start = self._first()
        n_start, self.n_kinks = self.n_kinks, 0
        followed = self.followed
        ends: list[Signs] = []
        chains: list[Chain] = []
        thinned = 1
        ways = [way for way, last in ((-1, 0.0), (1, 1.0)) if start != last]
        limit = self.options.memory_limit * 2**20 / len(ways)
        for way, last in ((-1, 0.0), (1, 1.0)):
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
        order = np.argsort(self.checked, kind="stable")
        gaps = np.array(self.gaps)[order]
        met = gaps.max(initial=0.0) <= self.options.tol
        return PathResult(
            path=path,
            status=Status.SOLVED if met else Status.NUMERICAL_ERROR,
            n_kinks=self.n_kinks,
            n_start=n_start,
            checked=np.array(self.checked)[order],
            gaps=gaps,
            thinned=thinned,
            resolved=(min(self.resolved), max(self.resolved)) if self.resolved else None,
            seconds=time.perf_counter() - self.started,
        )

    def _legs(self, start: float, last: float, way: int, log: PathLog) -> Iterator[_Leg]:
        """From ``start`` to ``last``; t counts from the ends, where boxes close: it is small
        there and keeps its digits."""
        if start == last:
            return
        if start != MIDDLE:
            yield _Leg(self.box.from_(start, way), 0.0, abs(MIDDLE - start), start, way, log)
        yield _Leg(self.box.from_(last, way), -abs(last - MIDDLE), 0.0, last, way, log)

    # ---- the first solution ----

    def _first(self) -> tuple[_State, float]:
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
            leg = _Leg(self.box.shrunk(MIDDLE), 0.0, 1.0, MIDDLE, 0)
            return self._follow(leg, self._trivial(MIDDLE)), MIDDLE
        except PathError as error:
            self._refuse_indefinite(error)
            found = solve_level(self.problem, self.box, MIDDLE, self.options)
            self.followed = False
            return self._unfollowed(0.0, found), MIDDLE

    def _open(self, tau: float) -> NDArray[np.bool_]:
        return self.box.upper(tau) > self.box.lower(tau)

    def _first_at_end(self, tau: float) -> _State:
        """The solution of the points whose boxes are open at an end; the others follow."""
        rows = np.flatnonzero(self._open(tau))
        box = MovingBox(self.box.numbers[:, rows])
        products = self.windows.products.take(rows)
        part = PathProblem(products, self.problem.y[rows], box, False)
        walk = _Walk(part, self.y[rows], box, self.scale, self.options)
        found = walk._follow(_Leg(box.shrunk(tau), 0.0, 1.0, tau, 0), walk._trivial(tau))
        self.n_kinks += walk.n_kinks
        beta = np.zeros(self.problem.n)
        beta[rows] = found.beta
        fitted = self.windows.products.product(beta)
        residual = self.y - fitted
        status = np.where(residual < 0, -1, 1).astype(np.int8)
        status[rows] = found.status
        return _State(0.0, beta, residual, status, 0.0, rows[found.free], _NO_FACTOR, fitted)

    def _unfollowed(self, t: float, found: Found) -> _State:
        free = np.flatnonzero(found.status == 0)
        nothing = np.zeros(self.problem.n)
        return _State(t, found.beta, nothing, found.status, found.offset, free, _NO_FACTOR, nothing)

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

    def _trivial(self, tau: float) -> _State:
        """β = 0, the solution with all bounds at zero, and who is free when they open."""
        y, n = self.y, self.problem.n
        status = np.where(y < 0, -1, 1).astype(np.int8)
        nobody = np.empty(0, np.intp)
        factor = np.empty((0, 0))
        state = _State(0.0, np.zeros(n), y.copy(), status, 0.0, nobody, factor, np.zeros(n))
        if self.problem.offset:
            lower, upper = self.box.lower(tau), self.box.upper(tau)
            order = np.argsort(-y, kind="stable")
            above = np.cumsum(upper[order])
            below = lower.sum() - np.cumsum(lower[order])
            place = int(np.argmax(above + below >= 0))
            free = order[place]
            state.offset = float(y[free])
            status[order[:place]] = 1
            status[order[place:]] = -1
            status[free] = 0
            state.free = np.array([free])
            state.residual = y - state.offset
        return state

    def _follow_or_solve(self, leg: _Leg, state: _State) -> _State:
        """Walk a leg; where that fails, solve for the rest of it level by level."""
        assert leg.log is not None
        leg.log.begin_leg(leg.base, leg.way)
        self._last = state
        if self.followed:
            try:
                return self._follow(leg, state)
            except PathError as error:
                self._refuse_indefinite(error)
        state = self._last
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
            self.checked.append(0.5 * (reached + found.tau))
            self.gaps.append(found.gap)
            reached = found.tau
            self.resolved.append(reached)
        return state

    def _stay_to_end(self, leg: _Leg, state: _State) -> _State:
        """The end of a leg for the sets of a state that is next to it."""
        assert leg.log is not None
        t, status = leg.end, state.status
        lower, upper = leg.box.lower(t), leg.box.upper(t)
        beta = np.where(status > 0, upper, np.where(status < 0, lower, state.beta))
        beta = np.clip(beta, lower, upper)
        leg.log.add_solution(t, state.offset, beta, status, status)
        return replace(state, t=t, beta=beta)

    def _follow(self, leg: _Leg, state: _State) -> _State:
        """Walk to the end of a leg; returns the state there.

        A batch whose end does not stand up to an exact evaluation is walked again in smaller
        ones, each with a fresh factor.
        """
        kinks, sweep = BATCH_KINKS, True
        self._terms = 0.0
        self.windows.restart()
        self._evaluate(state)
        if not self._refresh(state):
            raise PathError(False)
        while True:
            kinks = min(kinks, self.windows.most_kinks)
            slopes = self._slopes(state, leg.box)
            drive = self.windows.products.product(slopes)
            if self.windows.needs_rates:
                self.windows.trend = self._rates(state, slopes, drive)
            window = self.windows.next(state.free, state.residual)
            core = self._core(state, leg.box, window, slopes, drive, kinks, sweep)
            outcome = core.run(
                leg.end, kinks, 0.0, self._pull(slopes), window.K.shape[0] + ZERO_STEPS
            )
            trial = self._after(state, leg.box, core, window, core.n_kinks)
            self._evaluate(trial)
            valid = self.windows.valid_kinks(core, window, state.ends(), trial.ends())
            cut = valid < core.n_kinks
            if cut and valid == 0:
                continue
            hard = outcome == HARD and not cut
            if hard and valid == 0:
                kinks, sweep = HARD_KINKS, False
                continue
            arrived = outcome == END and not cut
            sound = cut or outcome in (END, BATCH, GROW, LOG_FULL, HARD)
            if cut:
                trial = self._after(state, leg.box, core, window, valid)
                self._evaluate(trial)
            if sound and leg.log is not None and kinks > FEWEST_FOR_GAP:
                # before free points are put back: the other kinks of the batch stay as they are
                sound = self._gap(trial, leg.level(trial.t))[0] <= self.options.tol
            sound = sound and self._refresh(trial)
            if not sound and isinstance(core, SweptCore):
                sweep = False
                continue
            if not sound:
                if kinks == 1:
                    raise PathError(outcome == INDEFINITE)
                kinks = max(kinks // 4, 1)
                continue
            kinks, sweep = min(2 * max(valid, 16), BATCH_KINKS), not hard
            if hard:
                kinks = HARD_KINKS
            self.n_kinks += valid
            state = self._last = trial
            if leg.log is not None:
                leg.log.add(core, window.index, valid, arrived)
                leg.log.correct_last(trial.offset, self._within(leg.box, trial))
                if not (arrived and self.problem.offset):
                    self._check(state, leg.level(state.t))
            if arrived:
                return state

    # ---- one batch ----

    def _slopes(self, state: _State, box: MovingBox) -> Array:
        """How fast the points at bounds move."""
        slopes = np.where(state.status > 0, box.numbers[UPPER_SLOPE], box.numbers[LOWER_SLOPE])
        slopes[state.status == 0] = 0.0
        return slopes

    def _pull(self, slopes: Array) -> float:
        return float(np.abs(slopes) @ self.windows.root)

    def _rates(self, state: _State, slopes: Array, drive: Array) -> Array:
        """The rates of all residuals; ``drive`` is the pull K s of the moving bounds."""
        free = state.free
        shifted = drive[free] + self.shift * slopes.sum()
        delta, offset_rate = self._margin(state, -shifted, slopes.sum())
        way = np.zeros_like(slopes)
        way[free] = delta
        return -(drive + self.windows.products.product(way) + offset_rate)

    def _core(
        self, state: _State, box: MovingBox, window: Window, slopes: Array, drive: Array,
        kinks: int, sweep: bool,
    ) -> PathCore:  # fmt: skip
        index, free = window.index, state.free
        total = slopes.sum()
        capacity = min(len(index), 2 * len(free) + 64) + 4
        m, others = len(free), len(index) - len(free)
        sweep = sweep and m >= SWEPT_FROM and 0 < others <= (SWEPT_PER_FREE - 1) * m
        core = (SweptCore if sweep else PathCore)(
            window.K,
            np.ascontiguousarray(box.numbers[:, index]),
            state.beta[index],
            state.residual[index],
            drive[index] + self.shift * total,
            state.status[index],
            state.offset,
            total,
            self.problem.offset,
            capacity,
            INDEPENDENCE,
        )
        core.start_at(state.t)
        core.set_free(window.place[free].astype(np.int32), state.factor)
        if isinstance(core, SweptCore):
            core.sweep(state.factor)
        core.new_log(kinks + 4, (kinks + 4) * capacity, not window.whole)
        return core

    def _after(
        self, state: _State, box: MovingBox, core: PathCore, window: Window, kinks: int
    ) -> _State:
        """The state after the first kinks of a batch."""
        if kinks == 0:
            return state
        index = window.index
        status = state.status.copy()
        changed = np.asarray(core.log_index)[:kinks]
        known = changed >= 0
        # of several changes of a point the last one stays
        status[index[changed[known]]] = np.asarray(core.log_status)[:kinks][known]
        t, offset = core.log_t[kinks - 1], core.log_offset[kinks - 1]
        begin = int(np.asarray(core.log_size)[: kinks - 1].sum())
        free = np.array(core.members[begin : begin + core.log_size[kinks - 1]])
        values = np.array(core.values[begin : begin + len(free)])
        free = index[free]
        beta = box.bounds(status, t)
        beta[free] = values
        return _State(t, beta, _NO_FACTOR, status, offset, free, _NO_FACTOR, _NO_FACTOR)

    def _within(self, box: MovingBox, state: _State) -> Array:
        """The β of the free points, within their boxes to the last digit."""
        lower, upper = box.lower(state.t)[state.free], box.upper(state.t)[state.free]
        return np.clip(state.beta[state.free], lower, upper)

    # ---- the margin ----

    def _margin(self, state: _State, right: Array, drive_sum: float) -> tuple[Array, float]:
        """Solve K_MM δ + b′·1 = right, Σδ = −drive_sum where the offset is free."""
        if len(state.free) == 0:
            return right, 0.0
        delta = cho_solve((state.factor, True), right, check_finite=False)
        if not self.problem.offset:
            return delta, 0.0
        ones = cho_solve((state.factor, True), np.ones(len(right)), check_finite=False)
        b = (delta.sum() + drive_sum) / ones.sum()
        return delta - b * ones, float(b)

    def _refresh(self, state: _State) -> bool:
        """A fresh factor and free points back on the margin, given exact residuals; False where
        the free points had gone too far from it."""
        free = state.free
        K = self.windows.matrix(free)
        try:
            state.factor = cholesky(K, lower=True, check_finite=False)
        except LinAlgError:
            return False
        if len(free) == 0:
            return True
        if (np.diagonal(state.factor) ** 2 < DEPENDENCE * np.diagonal(K)).any():
            return False
        distance = np.abs(state.residual[free]).max()
        root = self.windows.root
        # of this batch or of one before: what was lost stays lost where β shrinks
        self._terms = max(self._terms, float(np.abs(state.beta) @ root))
        rounding = EVALUATION * self._terms * root[free].max()
        if distance > max(DRIFT * self.scale, rounding):
            return False
        if distance > 1e-13 * self.scale:
            change, b = self._margin(state, state.residual[free], float(state.beta.sum()))
            state.beta[free] += change
            state.offset += b
            way = np.zeros_like(state.beta)
            way[free] = change
            state.fitted += self.windows.products.product(way)
            state.residual = self.y - state.fitted - state.offset
        state.residual[free] = 0.0
        return True

    def _evaluate(self, state: _State) -> None:
        state.fitted = self.windows.products.product(state.beta)
        state.residual = self.y - state.fitted - state.offset

    # ---- checks ----

    def _gap(self, state: _State, tau: float) -> tuple[float, float, float]:
        b = self.problem.settled_offset(state.fitted, state.offset, tau)
        primal, dual = self.problem.objectives(state.beta, state.fitted, b, tau)
        return self.problem.gap(primal, dual), primal, dual

    def _check(self, state: _State, tau: float) -> None:
        gap, primal, dual = self._gap(state, tau)
        self.checked.append(tau)
        self.gaps.append(gap)
        if self.options.callback is not None:
            seconds = time.perf_counter() - self.started
            self.options.callback(Progress(self.n_kinks, seconds, primal, dual))

    def _check_pieces(self, path: TauPath) -> None:
        """The gaps in the middle of the widest pieces of a path that was thinned."""
        taus = path.chain.tau
        widest = np.argsort(-np.diff(taus), kind="stable")[:PIECES_CHECKED]
        for piece in widest:
            tau = float(0.5 * (taus[piece] + taus[piece + 1]))
            beta, b = path.solution(tau)
            fitted = self.windows.products.product(beta)
            self.checked.append(tau)
            b = self.problem.settled_offset(fitted, b, tau)
            self.gaps.append(self.problem.gap(*self.problem.objectives(beta, fitted, b, tau)))


_NO_FACTOR = np.empty((0, 0))
