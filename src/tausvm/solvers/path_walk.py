"""One walk from kink to kink: Algorithm 1 of the quantile-path paper, on a box that moves with t.

The core walks batches of kinks on a window of points: walk -> verify -> accept or retry. After each
batch the residuals of all points are evaluated exactly, and every piece of it is certified. The
pieces before the first that fails are accepted, the rest is walked again in smaller batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from .._core.path import BATCH, END, GROW, HARD, INDEFINITE, LOG_FULL, PathCore, SweptCore
from .moving_box import LOWER_SLOPE, UPPER_SLOPE, MovingBox
from .path_check import Corner, PieceCheck, Stretch
from .path_log import PathLog
from .path_problem import PathError, PathOptions, PathProblem, PathStopped
from .path_window import Ends, Window, Windows
from .result import Progress, Status

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: a point counts as dependent on the free ones where they leave less than this of its squared
#: norm; free points that do are a mistake of a factor that was updated often
INDEPENDENCE, DEPENDENCE = 1e-12, 1e-13
#: free points may be this far from the margin, as a share of the labels' size, before a batch
#: is walked again
DRIFT = 1e-7
#: how often they are put back onto it, as long as that brings them nearer
REFINEMENTS = 3
#: what rounding may make of a residual, as a share of the terms in it
EVALUATION = 1e-15
#: kinks between two at which f is computed afresh for the certificates
STRETCH_KINKS = 128
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
NO_GAPS = np.empty(0)


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

    def corner(self) -> Corner:
        return Corner(self.t, self.beta, self.offset, self.status, self.fitted)

    def ends(self) -> Ends:
        return Ends(self.t, self.beta, self.residual, self.status, self.offset)

    def at_start(self, t: float) -> State:
        """The same point as the start of another leg."""
        beta, residual, status = self.beta.copy(), self.residual.copy(), self.status.copy()
        return replace(self, t=t, beta=beta, residual=residual, status=status)


@dataclass
class Batch:
    """Kinks that the core walked, and where they led.

    Attributes
    ----------
    kinks : int
        How many hold for the points outside the window too.
    cut : bool
        Whether that is not all of them.
    end : State
        After these kinks, evaluated exactly.
    gaps, claims : arrays (kinks,)
        Bounds on the relative gap of the pieces that lead to them; the claims are with the
        offsets as they are rounded in the user's units.
    """

    core: PathCore
    window: Window
    outcome: int
    kinks: int
    cut: bool
    end: State
    gaps: Array
    claims: Array

    @property
    def swept(self) -> bool:
        return isinstance(self.core, SweptCore)

    @property
    def arrived(self) -> bool:
        return self.outcome == END and not self.cut

    @property
    def hard(self) -> bool:
        return self.outcome == HARD and not self.cut

    @property
    def sound(self) -> bool:
        """Whether the core had a reason to stop where it did."""
        return self.cut or self.outcome in (END, BATCH, GROW, LOG_FULL, HARD)


class Pace:
    """How many kinks the next batch has, and whether on a swept matrix."""

    def __init__(self) -> None:
        self.kinks, self.sweep = BATCH_KINKS, True

    def after(self, batch: Batch) -> None:
        """A batch was accepted."""
        self.kinks, self.sweep = min(2 * max(batch.kinks, 16), BATCH_KINKS), True
        if batch.hard:
            self.kinks, self.sweep = HARD_KINKS, False

    def again(self, batch: Batch) -> bool:
        """A batch failed; False where nothing more careful is left."""
        if batch.swept:
            self.sweep = False
            if batch.hard:
                self.kinks = HARD_KINKS
            return True
        if self.kinks == 1:
            return False
        self.kinks = max(min(self.kinks, max(batch.core.n_kinks, 1)) // 4, 1)
        return True


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
    """Walks legs of one problem, and certifies what it finds on the way.

    Parameters
    ----------
    problem : PathProblem
    y, box : array (n,) and MovingBox
        Those of the problem, moved apart.
    scale : float
        The labels' size.
    options : PathOptions
    apart : float
        By which share labels and boxes were moved at most.

    Attributes
    ----------
    last : State
        The last one that stood up to an exact evaluation.
    n_kinks : int
    tol : float
        What pieces must meet: the tolerance, or more where nothing better can be had. It is
        halved with every batch, down to the tolerance again.
    next_gap : float
        The bound of the piece after ``last`` at which the walk ended.
    """

    last: State

    def __init__(
        self,
        problem: PathProblem,
        y: Array,
        box: MovingBox,
        scale: float,
        options: PathOptions,
        apart: float,
    ) -> None:
        self.problem = problem
        self.options = options
        self.apart = apart
        self.started = options.clock()
        if options.time_limit is not None:
            problem.products.watch = self.stop_in_time
        self.y = y
        self.box = box
        self.scale = scale
        diagonal = problem.products.diagonal()
        typical = float(np.median(diagonal)) or float(diagonal.mean()) or 1.0
        self.shift = typical if problem.offset else 0.0
        self.windows = Windows(problem.products, self.shift, options.cache_size)
        self.check = PieceCheck(problem, self.windows.products, apart)
        self.n_kinks = 0
        self.tol = options.tol
        self.next_gap = np.inf

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

    # ---- limits ----

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    def out_of_time(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and self.seconds >= limit

    def _kinks_left(self) -> int:
        most = self.options.max_iter
        return BATCH_KINKS if most < 0 else max(most - self.n_kinks, 0)

    @property
    def kinks_left(self) -> int:
        """What ``max_iter`` leaves, −1 without a limit."""
        return -1 if self.options.max_iter < 0 else self._kinks_left()

    def stop_in_time(self) -> None:
        """Ends long work when time is up."""
        if self.out_of_time():
            raise PathStopped(Status.TIME_LIMIT)

    def _stop_at_limits(self) -> None:
        self.stop_in_time()
        if self._kinks_left() == 0:
            raise PathStopped(Status.MAX_ITER)

    # ---- a leg ----

    def follow(self, leg: Leg, state: State) -> State:
        """Walk to the end of a leg; returns the state there."""
        pace = Pace()
        self.last, self.next_gap = state, np.inf
        self._terms = 0.0
        self.windows.restart()
        self.evaluate(state)
        if not self._refresh(state, leg.box):
            raise PathError(False)
        arrived = closed = False
        while not arrived:
            self._stop_at_limits()
            batch = self._walk(leg, state, pace)
            if batch.kinks == 0 and batch.cut:
                continue  # the next window holds the point that was missed
            batch = self._verified(leg, state, batch)
            if batch.kinks == 0 or not batch.sound:
                if len(batch.gaps) and not closed and leg.level(leg.end) in (0.0, 1.0):
                    # towards an end many kinks may come within rounding of it
                    closed = True
                    end, gap = self.line_to_end(leg, state)
                    if gap <= self.options.tol:
                        self.add(leg, state, end, gap)
                        return end
                if not pace.again(batch):
                    self.next_gap = float(batch.gaps[0]) if len(batch.gaps) else np.inf
                    raise PathError(batch.outcome == INDEFINITE)
                continue
            state = self.last = self._accept(leg, batch)
            pace.after(batch)
            closed = False
            self.tol = max(0.5 * self.tol, self.options.tol)
            arrived = batch.arrived
        return state

    def _walk(self, leg: Leg, state: State, pace: Pace) -> Batch:
        """A batch of kinks on a window, as far as it holds for all points."""
        kinks = min(pace.kinks, self.windows.most_kinks, self._kinks_left())
        slopes = self._slopes(state, leg.box)
        drive = self.windows.products.product(slopes)
        if self.windows.needs_rates:
            self.windows.trend = self._rates(state, slopes, drive)
        window = self.windows.next(state.free, state.residual)
        core = self._core(state, leg.box, window, slopes, drive, kinks, pace.sweep)
        outcome = core.run(
            leg.end, kinks, 0.0, self._pull(slopes), window.K.shape[0] + ZERO_STEPS,
            self.out_of_time,
        )  # fmt: skip
        end = self._after(state, leg.box, core, window, core.n_kinks)
        self.evaluate(end)
        valid = self.windows.valid_kinks(core, window, state.ends(), end.ends())
        cut = valid < core.n_kinks
        if cut:
            end = self._after(state, leg.box, core, window, valid)
            self.evaluate(end)
        return Batch(core, window, outcome, valid, cut, end, NO_GAPS, NO_GAPS)

    def _verified(self, leg: Leg, state: State, batch: Batch) -> Batch:
        """The batch up to the last kink before which all pieces are certified; its free points
        are put back onto the margin there."""
        while batch.kinks > 0 and batch.sound:
            if not self._refresh(batch.end, leg.box):
                return replace(batch, kinks=0, gaps=NO_GAPS, claims=NO_GAPS)
            if leg.log is None:
                return batch
            batch.gaps, batch.claims = self._bounds(leg, state, batch)
            good = int(np.argmin(np.r_[batch.gaps <= self.tol, False]))
            if good == batch.kinks:
                return batch
            end = self._after(state, leg.box, batch.core, batch.window, good)
            if good > 0:
                self.evaluate(end)
            batch = replace(batch, kinks=good, cut=True, end=end)
        return batch

    def _bounds(self, leg: Leg, state: State, batch: Batch) -> tuple[Array, Array]:
        """Bounds on the relative gap of every piece of a batch, of the problem as it was posed."""
        core, window, kinks = batch.core, batch.window, batch.kinks
        stops = [*range(0, kinks, STRETCH_KINKS), kinks]
        states = [self._after(state, leg.box, core, window, k) for k in stops[1:-1]]
        if states:
            fitted = self.windows.products.product(np.column_stack([s.beta for s in states]))
            for k, inner in enumerate(states):
                inner.fitted = np.ascontiguousarray(fitted[:, k])
        corners = [s.corner() for s in (state, *states, batch.end)]
        t = np.r_[state.t, np.asarray(core.log_t)[:kinks]]
        offset = np.r_[state.offset, np.asarray(core.log_offset)[:kinks]]
        offset[-1] = batch.end.offset
        changed = np.asarray(core.log_index)[:kinks]
        box = self.problem.box.from_(leg.base, leg.way)
        bounds = []
        for first, last, a, b in zip(corners, corners[1:], stops, stops[1:], strict=False):
            places = np.union1d(
                changed[a:b][changed[a:b] >= 0],
                np.flatnonzero(first.status[window.index] == 0),
            ).astype(np.int32)
            moved = window.index[places]
            beta = np.empty((b - a + 1, len(moved)))
            beta[0], beta[1:] = first.beta[moved], core.beta_at(a, b, places, first.status[moved])
            beta[-1] = last.beta[moved]
            stretch = Stretch(t[a : b + 1], offset[a : b + 1], first, last, moved, beta)
            bounds.append(self.check.stretch(box, stretch))
        gaps, claims = zip(*bounds, strict=True)
        return np.concatenate(gaps), np.concatenate(claims)

    def _accept(self, leg: Leg, batch: Batch) -> State:
        self.n_kinks += batch.kinks
        end = batch.end
        if leg.log is not None:
            leg.log.add(batch.core, batch.window.index, batch.kinks, batch.claims, batch.arrived)
            leg.log.correct_last(end.offset, end.beta[end.free])
            self._report(end, leg.level(end.t))
        return end

    def _report(self, state: State, tau: float) -> None:
        if self.options.callback is not None:
            found = self.problem.certificate(state.beta, state.offset, tau)
            objective = self.problem.units.objective
            self.options.callback(
                Progress(self.n_kinks, self.seconds, objective(found.primal), objective(found.dual))
            )

    # ---- straight lines ----

    def add(self, leg: Leg, old: State, new: State, gap: float) -> None:
        """A solution that was found otherwise, reached on a straight line."""
        assert leg.log is not None
        if self.problem.rounds_offsets:
            gap = np.nan  # to be looked at with the offsets that predict
        leg.log.add_solution(new.t, new.offset, new.beta, old.status, new.status, gap)
        self.last = new

    def line(self, leg: Leg, first: State, last: State) -> float:
        """A bound on the gap along the straight line between two states."""
        box, ends = self.problem.box.from_(leg.base, leg.way), np.array([first.t, last.t])
        beta = np.vstack([first.beta, last.beta])
        fitted = np.vstack([first.fitted, last.fitted])
        offset = np.array([first.offset, last.offset])
        return self.check.piece(box, ends, beta, fitted, offset)

    def line_to_end(self, leg: Leg, state: State) -> tuple[State, float]:
        """The nearest feasible point at the end of a leg, and a bound for the straight line to it,
        on which all points are feasible. Where Σβ = 0 leaves no other, that is β = 0."""
        t, tau = leg.end, leg.level(leg.end)
        closes = self.problem.offset and tau in (0.0, 1.0)
        beta = np.zeros(self.problem.n) if closes else self.problem.feasible(state.beta, t, leg.box)
        everybody = np.zeros(self.problem.n, dtype=np.int8)
        free = np.arange(self.problem.n)
        end = replace(state, t=t, beta=beta, status=everybody, free=free)
        self.evaluate(end)
        end.offset = (
            self.problem.closing_offset(tau)
            if closes
            else self.problem.settled_offset(end.fitted, state.offset, tau)
        )
        return end, self.line(leg, state, end)

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

    def _refresh(self, state: State, box: MovingBox) -> bool:
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
        for _ in range(REFINEMENTS):
            if distance <= 1e-13 * self.scale:
                break
            before, closer = distance, replace(state, beta=state.beta.copy())
            self._back_to_margin(closer, box, K)
            self.evaluate(closer)
            distance = np.abs(closer.residual[free]).max()
            if distance >= before:
                break
            state.beta, state.offset = closer.beta, closer.offset
            state.fitted, state.residual = closer.fitted, closer.residual
        state.residual[free] = 0.0
        return True

    def _back_to_margin(self, state: State, box: MovingBox, K: Array) -> None:
        """Change β of the free points and b until residuals vanish. Points that would leave their
        boxes are held at the bound: they have just come from there."""
        free, total = state.free, float(state.beta.sum())
        lower, upper = box.lower(state.t)[free], box.upper(state.t)[free]
        change, b = self._margin(state, state.residual[free], total)
        held = np.zeros(len(free), dtype=bool)
        while True:
            target = state.beta[free] + change
            outside = ~held & ((target < lower) | (target > upper))
            if not outside.any() or (held | outside).all():
                break
            held |= outside
            change[held] = np.clip(target, lower, upper)[held] - state.beta[free][held]
            inner = ~held
            right = state.residual[free] - K[:, held] @ change[held]
            part = replace(state, free=free[inner])
            part.factor = cholesky(K[np.ix_(inner, inner)], lower=True, check_finite=False)
            change[inner], b = self._margin(part, right[inner], total + float(change[held].sum()))
        state.beta[free] = np.clip(state.beta[free] + change, lower, upper)
        # the matrix has the shift added, which counts where Σβ was not 0
        state.offset += b - self.shift * total

    def evaluate(self, state: State) -> None:
        """f and the residuals of a state, from the data."""
        state.fitted = self.windows.products.product(state.beta)
        state.residual = self.y - state.fitted - state.offset
