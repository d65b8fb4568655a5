"""One walk from kink to kink: Algorithm 1 of the quantile-path paper, on a box that moves with t.

The core walks batches of kinks on a window of points. After each batch the residuals of all points
are evaluated exactly; a batch that does not stand up to that is walked again in smaller ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from .._core.path import BATCH, END, GROW, HARD, INDEFINITE, LOG_FULL, PathCore, SweptCore
from .moving_box import LOWER_SLOPE, UPPER_SLOPE, MovingBox
from .path_log import PathLog
from .path_problem import PathError, PathOptions, PathProblem
from .path_window import Ends, Window, Windows
from .result import Progress

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: a point counts as dependent on the free ones where they leave less than this of its squared
#: norm; free points that do are a mistake of a factor that was updated often
INDEPENDENCE, DEPENDENCE = 1e-12, 1e-13
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
#: kinks walked with a factor where a swept matrix is not accurate enough
HARD_KINKS = 16
#: kinks in a row that may go without a step in τ, beside the number of points
ZERO_STEPS = 1000

NO_FACTOR = np.empty((0, 0))


@dataclass
class State:
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

    def at_start(self, t: float) -> State:
        """The same point as the start of another leg."""
        beta, residual, status = self.beta.copy(), self.residual.copy(), self.status.copy()
        return replace(self, t=t, beta=beta, residual=residual, status=status)


@dataclass
class Leg:
    """A walk to t = ``end``: the box as a function of t, and the level base + way·t of a t."""

    box: MovingBox
    begin: float
    end: float
    base: float
    way: int
    log: PathLog | None = None

    def level(self, t: float) -> float:
        return self.base + self.way * t


class Walker:
    """Walks legs of one problem, and keeps what it found on the way.

    Parameters
    ----------
    problem : PathProblem
    y, box : array (n,) and MovingBox
        Those of the problem, moved apart.
    scale : float
        The labels' size.
    options : PathOptions

    Attributes
    ----------
    last : State
        The last one that stood up to an exact evaluation.
    n_kinks : int
    checked, gaps : lists of float
        Levels at which the path was checked, and the gaps there.
    """

    last: State

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
        self.n_kinks = 0
        self.checked: list[float] = []
        self.gaps: list[float] = []

    def trivial(self, tau: float) -> State:
        """β = 0, the solution with all bounds at zero, and who is free when they open."""
        y, n = self.y, self.problem.n
        status = np.where(y < 0, -1, 1).astype(np.int8)
        nobody = np.empty(0, np.intp)
        state = State(0.0, np.zeros(n), y.copy(), status, 0.0, nobody, NO_FACTOR, np.zeros(n))
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

    def follow(self, leg: Leg, state: State) -> State:
        """Walk to the end of a leg; returns the state there.

        A batch whose end does not stand up to an exact evaluation is walked again in smaller
        ones, each with a fresh factor.
        """
        kinks, sweep = BATCH_KINKS, True
        self.last = state
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
            state = self.last = trial
            if leg.log is not None:
                leg.log.add(core, window.index, valid, arrived)
                leg.log.correct_last(trial.offset, self._within(leg.box, trial))
                if not (arrived and self.problem.offset):
                    self._check(state, leg.level(state.t))
            if arrived:
                return state

    # ---- one batch ----

    def _slopes(self, state: State, box: MovingBox) -> Array:
        """How fast the points at bounds move."""
        slopes = np.where(state.status > 0, box.numbers[UPPER_SLOPE], box.numbers[LOWER_SLOPE])
        slopes[state.status == 0] = 0.0
        return slopes

    def _pull(self, slopes: Array) -> float:
        return float(np.abs(slopes) @ self.windows.root)

    def _rates(self, state: State, slopes: Array, drive: Array) -> Array:
        """The rates of all residuals; ``drive`` is the pull K s of the moving bounds."""
        free = state.free
        shifted = drive[free] + self.shift * slopes.sum()
        delta, offset_rate = self._margin(state, -shifted, slopes.sum())
        way = np.zeros_like(slopes)
        way[free] = delta
        return -(drive + self.windows.products.product(way) + offset_rate)

    def _core(
        self, state: State, box: MovingBox, window: Window, slopes: Array, drive: Array,
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
        self, state: State, box: MovingBox, core: PathCore, window: Window, kinks: int
    ) -> State:
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
        return State(t, beta, NO_FACTOR, status, offset, free, NO_FACTOR, NO_FACTOR)

    def _within(self, box: MovingBox, state: State) -> Array:
        """The β of the free points, within their boxes to the last digit."""
        lower, upper = box.lower(state.t)[state.free], box.upper(state.t)[state.free]
        return np.clip(state.beta[state.free], lower, upper)

    # ---- the margin ----

    def _margin(self, state: State, right: Array, drive_sum: float) -> tuple[Array, float]:
        """Solve K_MM δ + b′·1 = right, Σδ = −drive_sum where the offset is free."""
        if len(state.free) == 0:
            return right, 0.0
        delta = cho_solve((state.factor, True), right, check_finite=False)
        if not self.problem.offset:
            return delta, 0.0
        ones = cho_solve((state.factor, True), np.ones(len(right)), check_finite=False)
        b = (delta.sum() + drive_sum) / ones.sum()
        return delta - b * ones, float(b)

    def _refresh(self, state: State) -> bool:
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

    def _evaluate(self, state: State) -> None:
        state.fitted = self.windows.products.product(state.beta)
        state.residual = self.y - state.fitted - state.offset

    # ---- checks ----

    def note(self, tau: float, gap: float) -> None:
        """The gap at a level that was checked."""
        self.checked.append(tau)
        self.gaps.append(gap)

    def _gap(self, state: State, tau: float) -> tuple[float, float, float]:
        b = self.problem.settled_offset(state.fitted, state.offset, tau)
        primal, dual = self.problem.objectives(state.beta, state.fitted, b, tau)
        return self.problem.gap(primal, dual), primal, dual

    def _check(self, state: State, tau: float) -> None:
        gap, primal, dual = self._gap(state, tau)
        self.note(tau, gap)
        if self.options.callback is not None:
            seconds = time.perf_counter() - self.started
            self.options.callback(Progress(self.n_kinks, seconds, primal, dual))
