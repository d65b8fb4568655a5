"""The whole path of dual solutions for τ from 0 to 1.

    min_β  ½ βᵀKβ − yᵀβ,   lower(τ) ≤ β ≤ upper(τ)   [Σβ = 0 when b is free]

Bounds are straight lines in τ, so β is piecewise linear (Proposition 3.1 of the quantile-path
paper) and Algorithm 1 walks from kink to kink. The first solution is found by the same walk:
with all bounds at zero the solution is β = 0, and opening the box at a fixed τ leads to the
solution there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from .._core.path import BATCH, END, GROW, INDEFINITE, LOG_FULL, PathCore
from ..kernels.products import Products
from .moving_box import LOWER_SLOPE, UPPER_SLOPE, MovingBox
from .path_log import PathLog, joined
from .result import Progress, Status, relative_gap
from .tau_path import TauPath

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: how far labels are moved apart, as a share of their size: points that would reach the margin
#: together, or depend on each other there, come one after the other
APART = 1e-10
#: objectives up to this share of the primal at f = 0 count as 0
ROUNDING = 1e-14
#: a point counts as dependent on the free ones where they leave less than this of its norm
INDEPENDENCE = 1e-14


#: the level from which the path is walked up and down: where the offset is free all boxes are
#: closed at both ends, and nothing is known there
FIRST = 0.5
#: free points may be this far from the margin, as a share of the labels' size, before a batch
#: is walked again
DRIFT = 1e-7
#: kinks between two exact evaluations of the residuals
BATCH_KINKS = 256
#: kinks in a row that may go without a step in τ, beside the number of points
ZERO_STEPS = 1000


@dataclass
class PathProblem:
    """The dual problem of every τ.

    Parameters
    ----------
    products : Products
        The kernel matrix, with its constant where the offset is penalised.
    y : array (n,)
    box : MovingBox
    offset : bool
        Whether b is free, and so Σβ = 0.
    """

    products: Products
    y: Array
    box: MovingBox
    offset: bool

    @property
    def n(self) -> int:
        return len(self.y)

    def objectives(self, beta: Array, fitted: Array, b: float, tau: float) -> tuple[float, float]:
        """Primal and dual at τ: ½βᵀKβ + Σ sup_β (rβ) over the box, and yᵀβ − ½βᵀKβ."""
        residual = self.y - fitted - b
        quadratic = 0.5 * float(beta @ fitted)
        loss = residual * np.where(residual > 0, self.box.upper(tau), self.box.lower(tau))
        primal, dual = quadratic + float(loss.sum()), float(self.y @ beta) - quadratic
        # where all boxes are closed both are zero up to rounding
        negligible = ROUNDING * self._size
        return primal if primal > negligible else 0.0, dual if dual > negligible else 0.0

    def closing_offset(self, tau: float) -> float:
        """The offset at τ = 0 or 1 where Σβ = 0 leaves β = 0 alone: no residual may cost."""
        costly = self.box.upper(tau) > 0
        if costly.any():
            return float(self.y[costly].max())
        return float(self.y[self.box.lower(tau) < 0].min())

    def violation(self, beta: Array, fitted: Array, tau: float) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum."""
        residual = self.y - fitted
        rounding = 1e-8 * (self.box.upper(tau) - self.box.lower(tau))
        up = residual[beta < self.box.upper(tau) - rounding].max(initial=-np.inf)
        down = residual[beta > self.box.lower(tau) + rounding].min(initial=np.inf)
        return max(float(up - down if self.offset else max(up, -down)), 0.0)

    @cached_property
    def _size(self) -> float:
        """The primal at f = 0, for the costs of all τ together."""
        widest = np.maximum(self.box.upper(0.0), self.box.upper(1.0))
        widest = np.maximum(widest, -np.minimum(self.box.lower(0.0), self.box.lower(1.0)))
        return float(widest @ np.abs(self.y))


class PathError(Exception):
    """A path that could not be followed any further."""

    def __init__(self, indefinite: bool, tau: float) -> None:
        super().__init__(f"the path could not be followed beyond tau = {tau:.6g}")
        self.indefinite = indefinite
        self.tau = tau


@dataclass(frozen=True)
class PathOptions:
    """When to stop and how to work.

    Parameters
    ----------
    tol : float
        The relative duality gap that every check on the way must meet.
    max_kinks : int
        Bound on the kinks, −1 for none.
    time_limit : float or None
        Bound in seconds.
    callback : callable or None
        Called with a :class:`Progress` at every check.
    """

    tol: float = 1e-6
    max_kinks: int = -1
    time_limit: float | None = None
    callback: Callable[[Progress], object] | None = None


@dataclass
class PathResult:
    """A path with its certificate.

    Attributes
    ----------
    path : TauPath
    status : Status
    n_kinks : int
        Kinks in τ, those on the way to the first solution not counted.
    n_start : int
        Kinks on the way to the first solution.
    checked, gaps : arrays
        The τ at which the path was checked on the way, and the relative duality gaps there,
        from the data.
    seconds : float
    """

    path: TauPath
    status: Status
    n_kinks: int
    n_start: int
    checked: Array
    gaps: Array
    seconds: float

    @property
    def dual_gap(self) -> float:
        """The largest gap seen."""
        return float(self.gaps.max(initial=0.0))


@dataclass
class _State:
    """Where a walk is."""

    beta: Array
    residual: Array
    status: Signs
    offset: float
    free: Index
    factor: Array
    fitted: Array

    def copy(self) -> _State:
        return _State(
            self.beta.copy(),
            self.residual.copy(),
            self.status.copy(),
            self.offset,
            self.free.copy(),
            self.factor,
            self.fitted,
        )


def follow_path(problem: PathProblem, options: PathOptions | None = None) -> PathResult:
    """All kinks for τ from 0 to 1, with the gaps of the checks on the way."""
    return _Walk(problem, options or PathOptions()).result()


class _Walk:
    """Algorithm 1: from the trivial problem to the first τ, then up and down from there."""

    def __init__(self, problem: PathProblem, options: PathOptions) -> None:
        self.problem = problem
        self.options = options
        self.started = time.perf_counter()
        rng = np.random.default_rng(0)
        y = problem.y
        spread = np.abs(y - np.median(y)).mean() or np.abs(y).max() or 1.0
        # away from zero: for labels ±1 that costs a share APART of the objective at most
        self.y = y + APART * spread * np.where(y < 0, -1.0, 1.0) * rng.uniform(size=problem.n)
        # narrower boxes: what is feasible for them is feasible
        self.box = MovingBox(problem.box.numbers * (1.0 - APART * rng.uniform(size=problem.n)))
        self.scale = float(spread)
        diagonal = problem.products.diagonal()
        self.root = np.sqrt(diagonal)
        typical = float(np.median(diagonal)) or float(diagonal.mean()) or 1.0
        self.shift = typical if problem.offset else 0.0
        self.window = np.arange(problem.n)
        self.K = problem.products.block(self.window, self.window) + self.shift
        self.checked: list[float] = []
        self.gaps: list[float] = []
        self.n_kinks = 0

    def result(self) -> PathResult:
        state = self._leg(self._trivial(FIRST), self.box.shrunk(FIRST), 1.0, None, lambda t: FIRST)
        n_start, self.n_kinks = self.n_kinks, 0
        ends, logs = [], []
        for way, length in ((-1, FIRST), (1, 1.0 - FIRST)):
            log = PathLog(state.offset, state.free, state.beta[state.free])
            box = self.box.from_(FIRST, way)
            ends.append(self._leg(state.copy(), box, length, log, partial(_level, way)))
            if self.problem.offset:
                log.close(self.problem.closing_offset(_level(way, length)))
            logs.append(log.chain(FIRST, way))
        path = joined(self.box, ends[0].status, logs[0], logs[1], state.status)
        order = np.argsort(self.checked, kind="stable")
        return PathResult(
            path,
            Status.SOLVED,
            self.n_kinks,
            n_start,
            np.array(self.checked)[order],
            np.array(self.gaps)[order],
            time.perf_counter() - self.started,
        )

    def _trivial(self, tau: float) -> _State:
        """β = 0, the solution with all bounds at zero, and who is free when they open."""
        y, box = self.y, self.box
        n = self.problem.n
        state = _State(
            np.zeros(n),
            y.copy(),
            np.sign(y).astype(np.int8),
            0.0,
            np.empty(0, np.intp),
            np.empty((0, 0)),
            np.zeros(n),
        )
        state.status[y == 0] = 1
        if self.problem.offset:
            lower, upper = box.lower(tau), box.upper(tau)
            order = np.argsort(-y, kind="stable")
            above = np.cumsum(upper[order])
            below = lower.sum() - np.cumsum(lower[order])
            place = int(np.argmax(above + below >= 0))
            free = order[place]
            state.offset = float(y[free])
            state.status[order[:place]] = 1
            state.status[order[place:]] = -1
            state.status[free] = 0
            state.free = np.array([free])
            state.residual = y - state.offset
        return state

    def _leg(
        self,
        state: _State,
        box: MovingBox,
        end: float,
        log: PathLog | None,
        level: Callable[[float], float],
    ) -> _State:
        """Walk from t = 0 to its end; returns the state there.

        A batch whose end does not stand up to an exact evaluation is walked again in smaller
        ones, each with a fresh factor.
        """
        t, kinks = 0.0, BATCH_KINKS
        self._refresh(state)
        while True:
            trial = state.copy()
            core = self._core(trial, box, t, kinks)
            outcome = core.run(end, kinks, 0.0, self.pull, self.problem.n + ZERO_STEPS)
            trial.offset = core.offset
            trial.free = np.array(core.free[: core.size], dtype=np.intp)
            sound = outcome in (END, BATCH, GROW, LOG_FULL) and self._refresh(trial)
            if not sound:
                if kinks == 1:
                    raise PathError(outcome == INDEFINITE, level(t))
                kinks = max(kinks // 4, 1)
                continue
            kinks = min(2 * kinks, BATCH_KINKS)
            self.n_kinks += core.n_kinks
            t, state = core.t, trial
            if log is not None:
                log.add(core, self.window, core.n_kinks)
                if outcome != END or not self.problem.offset:
                    self._check(state, level(t))
            if outcome == END:
                return state

    def _core(self, state: _State, box: MovingBox, t: float, kinks: int) -> PathCore:
        n = self.problem.n
        slopes = np.where(state.status > 0, box.numbers[UPPER_SLOPE], box.numbers[LOWER_SLOPE])
        slopes[state.status == 0] = 0.0
        self.pull = float(np.abs(slopes) @ self.root)
        drive = self.K @ slopes
        capacity = min(n, 2 * len(state.free) + 64) + 4
        core = PathCore(
            self.K, box.numbers, state.beta, state.residual, drive, state.status,
            state.offset, slopes.sum(), self.problem.offset, capacity, INDEPENDENCE,
        )  # fmt: skip
        core.start_at(t)
        core.set_free(state.free.astype(np.int32), state.factor)
        core.new_log(kinks + 8, (kinks + 8) * capacity, False)
        return core

    def _refresh(self, state: _State) -> bool:
        """Exact residuals, a fresh factor and free points back on the margin; False where the
        free points had gone too far from it."""
        free, products = state.free, self.problem.products
        try:
            block = self.K[np.ix_(free, free)]
            state.factor = cholesky(block, lower=True, check_finite=False)
        except LinAlgError:
            return False
        state.fitted = products.product(state.beta)
        state.residual[:] = self.y - state.fitted - state.offset
        if len(free) == 0:
            return True
        if np.abs(state.residual[free]).max() > DRIFT * self.scale:
            return False
        self._correct(state)
        state.fitted = products.product(state.beta)
        state.residual[:] = self.y - state.fitted - state.offset
        state.residual[free] = 0.0
        return True

    def _correct(self, state: _State) -> None:
        """Move the free points so that their residuals vanish [and Σβ = 0]."""
        free = state.free
        change = cho_solve((state.factor, True), state.residual[free], check_finite=False)
        if self.problem.offset:
            ones = cho_solve((state.factor, True), np.ones(len(free)), check_finite=False)
            b = (change.sum() + state.beta.sum()) / ones.sum()
            change -= b * ones
            state.offset += b
        state.beta[free] += change

    def _check(self, state: _State, tau: float) -> None:
        primal, dual = self.problem.objectives(state.beta, state.fitted, state.offset, tau)
        self.checked.append(tau)
        self.gaps.append(relative_gap(primal, dual))
        if self.options.callback is not None:
            seconds = time.perf_counter() - self.started
            self.options.callback(Progress(self.n_kinks, seconds, primal, dual))


def _level(way: int, t: float) -> float:
    return FIRST + way * t
