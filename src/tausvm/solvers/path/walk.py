"""One walk from kink to kink: Algorithm 1 of the quantile-path paper, on a box that moves with t.

repeat
    walk      a batch of kinks on a window of points, cut where a point outside would interfere
    verify    f from the data, free points back on the margin, a certificate for every piece
    accept    the pieces before the first that fails
    or retry  with fewer kinks
until the leg's end
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._core.path import Outcome, PathCore
from ..result import Progress
from .check import PieceCheck, Stretch
from .margin import Margin
from .nudge import Nudged
from .settings import PathSettings
from .state import Leg, Limits, State
from .trail import Bends, Trail
from .window import Windows

Array = NDArray[np.float64]

NO_GAPS = np.empty(0)


@dataclass
class Batch:
    """Kinks that the core walked, and how many of them hold.

    Attributes
    ----------
    kinks : int
    end : State
        After these kinks, evaluated.
    gaps : array (kinks,) or longer
        Bounds on the relative gap of the pieces that lead to them; where a piece failed, its
        bound is the first of those that follow.
    claims : array
        The same with the offsets as they are rounded in the user's units.
    """

    trail: Trail
    outcome: int
    kinks: int
    end: State
    gaps: Array
    claims: Array

    @property
    def cut(self) -> bool:
        return self.kinks < len(self.trail)

    @property
    def arrived(self) -> bool:
        return self.outcome == Outcome.END and not self.cut

    @property
    def sound(self) -> bool:
        """Whether the core had a reason to stop where it did."""
        return self.cut or self.outcome in (Outcome.END, Outcome.BATCH)


@dataclass(frozen=True)
class Walked:
    """How a walk ended; ``leg.state`` is where.

    Attributes
    ----------
    arrived : bool
        At the end of its leg.
    tol : float
        What pieces had to meet at last.
    next_gap : float
        The bound of the piece at which it ended otherwise, ∞ where there was none.
    indefinite : bool
        Whether that was because the matrix is not positive semidefinite.
    """

    arrived: bool
    tol: float
    next_gap: float = np.inf
    indefinite: bool = False


class Walker:
    """Walks legs of one problem, and certifies what it finds on the way."""

    def __init__(self, nudged: Nudged, limits: Limits, settings: PathSettings) -> None:
        self.nudged, self.limits, self.settings = nudged, limits, settings
        self.problem = nudged.problem
        diagonal = self.problem.products.diagonal()
        typical = float(np.median(diagonal)) or float(diagonal.mean()) or 1.0
        shift = typical if self.problem.offset else 0.0
        cache_size = limits.options.cache_size
        self.windows = Windows(self.problem.products, shift, cache_size, settings)
        self.products = self.windows.products
        self.margin = Margin(nudged, self.windows, settings)
        self.check = PieceCheck(self.problem, self.products, nudged.share, settings)

    def walk(self, leg: Leg, tol: float) -> Walked:
        """To the end of a leg, or as far as that goes with pieces that meet ``tol``, which is
        halved with every batch, down to the tolerance that was asked for."""
        self.windows.restart()
        self.margin.restart()
        self.margin.evaluate(leg.state)
        if not self.margin.restored(leg.state, leg.box):
            return Walked(False, tol)
        kinks = self.settings.batch_kinks
        while leg.state.t < leg.end:
            batch = self._batch(leg, kinks)
            self._verify(leg, batch, tol)
            if batch.kinks > 0 and batch.sound:
                self._accept(leg, batch)
                kinks = min(2 * max(batch.kinks, 16), self.settings.batch_kinks)
                tol = max(0.5 * tol, self.limits.options.tol)
            elif len(batch.gaps) and leg.closes and self.closed(leg):
                break
            elif kinks > 1:
                kinks = max(min(kinks, max(len(batch.trail), 1)) // 4, 1)
            else:
                next_gap = float(batch.gaps[0]) if len(batch.gaps) else np.inf
                return Walked(False, tol, next_gap, batch.outcome == Outcome.INDEFINITE)
        return Walked(True, tol)

    # ---- walk ----

    def _batch(self, leg: Leg, kinks: int) -> Batch:
        """Kinks on a window, as far as they hold for all points. Where a point outside spoils the
        first of them already, the next window holds it."""
        while True:
            self.limits.stop()
            batch = self._on_window(leg, self.limits.kinks(min(kinks, self.windows.most_kinks)))
            if batch.kinks > 0 or not batch.cut:
                return batch

    def _on_window(self, leg: Leg, kinks: int) -> Batch:
        state, windows = leg.state, self.windows
        slopes = state.slopes(leg.box)
        drive = self.products.product(slopes)
        if windows.needs_trend:
            windows.trend = self.margin.rates(state, slopes, drive)
        window = windows.next(state)
        index, total = window.index, float(slopes.sum())
        numbers = np.ascontiguousarray(leg.box.numbers[:, index])
        core = PathCore(window.K, numbers, self.problem.offset, kinks, self.settings)
        core.start(
            state.t,
            state.offset,
            state.beta[index],
            state.residual[index],
            state.status[index],
            window.place[state.free],
            state.factor,
        )
        core.drive_with(
            drive[index] + windows.shift * total, total, float(np.abs(slopes) @ windows.root)
        )
        outcome = core.run(leg.end, not window.whole, self.limits.out_of_time)
        trail = Trail(core.log, window, leg.box, state)
        batch = Batch(trail, outcome, len(trail), trail.state(len(trail)), NO_GAPS, NO_GAPS)
        self.margin.evaluate(batch.end)
        if batch.kinks > 0 and not window.whole:
            self._cut(batch, windows.valid_kinks(Bends(trail), batch.end))
        return batch

    def _cut(self, batch: Batch, kinks: int) -> None:
        """Keep the first kinks of a batch."""
        if kinks < batch.kinks:
            batch.kinks, batch.end = kinks, batch.trail.state(kinks)
            if kinks > 0:
                self.margin.evaluate(batch.end)

    # ---- verify ----

    def _verify(self, leg: Leg, batch: Batch, tol: float) -> None:
        """Cut a batch before the first kink to which no certified piece leads."""
        while batch.kinks > 0 and batch.sound:
            if not self.margin.restored(batch.end, leg.box):
                self._cut(batch, 0)
                batch.gaps = batch.claims = NO_GAPS
            elif leg.record is not None:
                batch.gaps, batch.claims = self._bounds(leg, batch)
                good = int(np.argmin(np.r_[batch.gaps <= tol, False]))
                if good == batch.kinks:
                    return
                self._cut(batch, good)
            else:
                return

    def _bounds(self, leg: Leg, batch: Batch) -> tuple[Array, Array]:
        """Bounds on the relative gap of every piece of a batch, of the problem as it was posed."""
        trail, kinks = batch.trail, batch.kinks
        stops = [*range(0, kinks, self.settings.stretch_kinks), kinks]
        inner = [trail.state(k) for k in stops[1:-1]]
        if inner:
            fitted = self.products.product(np.column_stack([state.beta for state in inner]))
            for state, values in zip(inner, fitted.T, strict=True):
                state.fitted = np.ascontiguousarray(values)
        states = [trail.start, *inner, batch.end]
        t = np.r_[trail.start.t, trail.log.t[:kinks]]
        offset = np.r_[trail.start.offset, trail.log.offset[:kinks]]
        offset[-1] = batch.end.offset
        box = self.problem.box.from_(leg.base, leg.way)
        found = []
        for a, b, first, last in zip(stops, stops[1:], states, states[1:], strict=False):
            places = trail.moved(a, b)
            moved = trail.window.index[places]
            beta = np.vstack([first.beta[moved], trail.beta(a, b, places)])
            beta[-1] = last.beta[moved]
            stretch = Stretch(t[a : b + 1], offset[a : b + 1], first, last, moved, beta)
            found.append(self.check.stretch(box, stretch))
        gaps, claims = zip(*found, strict=True)
        return np.concatenate(gaps), np.concatenate(claims)

    # ---- accept ----

    def _accept(self, leg: Leg, batch: Batch) -> None:
        end = leg.state = batch.end
        self.limits.n_kinks += batch.kinks
        if leg.record is not None:
            trail = batch.trail
            leg.record.add(trail.log, trail.window.index, batch.claims, batch.arrived)
            # the last kink with its free points put back onto the margin
            leg.record.correct_last(end.offset, end.beta[end.free])
            self._report(end, leg.level(end.t))

    def _report(self, state: State, tau: float) -> None:
        callback = self.limits.options.callback
        if callback is not None:
            found = self.problem.certificate(state.beta, state.offset, tau)
            primal, dual = map(self.problem.units.objective, (found.primal, found.dual))
            callback(Progress(self.limits.n_kinks, self.limits.seconds, primal, dual))

    # ---- straight lines ----

    def closed(self, leg: Leg) -> bool:
        """Whether the straight line to the end of a leg is as good as asked for, which it is then:
        towards an end of the path many kinks may come within rounding of it."""
        end, gap = self.line_to_end(leg)
        if gap <= self.limits.options.tol:
            self.jump(leg, end, gap)
            return True
        return False

    def line(self, leg: Leg, last: State, first: State | None = None) -> float:
        """A bound on the gap along the straight line to a state, from another or from where the
        leg is."""
        box = self.problem.box.from_(leg.base, leg.way)
        return self.check.line(box, leg.state if first is None else first, last)

    def line_to_end(self, leg: Leg) -> tuple[State, float]:
        """The nearest feasible point at the end of a leg, and a bound for the straight line to it,
        on which all points are feasible. Where Σβ = 0 leaves no other, that is β = 0."""
        problem, state = self.problem, leg.state
        tau = leg.level(leg.end)
        closes = problem.offset and leg.closes
        nothing = np.zeros(problem.n)
        beta = nothing if closes else problem.feasible(state.beta, leg.end, leg.box)
        end = State.of(leg.end, beta, np.zeros(problem.n, dtype=np.int8), state.offset)
        self.margin.evaluate(end)
        end.offset = (
            problem.closing_offset(tau)
            if closes
            else problem.settled_offset(end.fitted, state.offset, tau)
        )
        return end, self.line(leg, end)

    def jump(self, leg: Leg, new: State, gap: float) -> None:
        """Go to a state that was found otherwise, on the straight line."""
        assert leg.record is not None
        if self.problem.rounds_offsets:
            gap = np.nan  # to be looked at with the offsets that predict
        leg.record.add_solution(leg.state, new, gap)
        leg.state = new
