"""``newton`` for losses with corners: proximal steps in the dual, on the rows near a corner.

A bound on β without a ridge is a corner of the primal loss, where Newton's method has no
Hessian. The proximal point method puts a ridge there that does not change the solution:

    β⁺ = argmax_β  dual(β) − (σ/2)‖β − centre‖²,    centre ← β⁺,    σ ↓

Each of these problems has the same form as a squared loss (g gains a ridge σ and y moves by
σ·centre), so that Newton's method on its primal serves (the semismooth Newton augmented
Lagrangian method). σ falls fast: the dual is piecewise quadratic, and a few steps end at its
exact solution.

Most rows lie far from their corners, with β at a bound or 0 for certain. They are held there
while the problem is solved on the other rows alone, and looked at again afterwards (what Portnoy
and Koenker do for quantile regression).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.terms import conjugates, responses
from ..monitor import Estimate, Monitor
from ..problem import EPS, Held, Point, Problem
from ..result import Status, relative_gap
from .steps import NewtonSteps, certifiable
from .systems import Systems

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Proximal:
    """The numbers of the proximal steps.

    The reach is σ in terms of residuals: how far from a corner the loss is smoothed.
    """

    #: the reach falls by this factor from one step to the next where the features are few
    fall: float = 0.1
    #: and where they are many, and systems are left to conjugate gradients, which take the more
    #: products the smaller the reach. 3,000 × 2,000 counts, C = 1: 3.5 s with 0.5, over 10 s
    #: with 0.1
    slow_fall: float = 0.5
    #: the gentler fall after a step of more than ``many_steps`` Newton steps: 120 random shapes
    #: take 0.86 of the time that they take with 0.3 after fifteen. 99 levels of 17 × 31 rows to
    #: rounding take 1900 Newton steps with 0.1 throughout
    gentle_fall: float = 0.5
    many_steps: int = 5
    #: the least reach, as a share of the largest target: below that responses are but rounding
    least_reach: float = 1e-9
    #: rows within so many reaches of a corner take part in a step
    width: float = 3.0
    #: and so many a feature at least
    rows_a_feature: int = 4
    #: where a larger share of the rows would take part, all do
    most_held: float = 0.7
    #: a step on some of the rows is broken off where residuals have moved by so many times the
    #: distance from a corner within which rows took part: rows were held that have to move
    stray: float = 10.0
    #: what a step on some of the rows may raise the primal by, as a share
    rise: float = 0.01
    #: after a step that failed the reach grows by this factor, and so do the rows that take part
    care: float = 3.0
    #: Newton steps in one proximal step at most
    newton_steps: int = 40
    #: what Newton's method may leave of a smoothed problem's gap, as a share of the gap itself
    inner_share: float = 0.1
    #: what a step may leave of the gap at most that is not a failure
    progress: float = 0.9
    #: failures in a row that end the solve
    patience: int = 8

    def maximise(
        self,
        problem: Problem,
        systems: Systems,
        monitor: Monitor,
        start: Point | None,
        slow: Callable[[Monitor], bool] = lambda monitor: False,
    ) -> Point | None:
        """Proximal steps until the monitor or ``slow`` says stop; the best point met, if any."""
        point: Point | None = None
        best_gap, lowest, failures = np.inf, np.inf, 0
        with monitor:
            steps = ProximalSteps(problem, self, systems, monitor, start)
            steps.slow = slow
            best = steps.state
            while True:
                primal, dual = steps.objectives()
                gap = primal - dual
                # failures are counted here: other than the monitor does, and sooner
                estimate = Estimate(primal, dual, rounding=-np.inf)
                candidate = certifiable(problem, steps.point)
                stop = monitor.check(candidate, monitor.n_iter, estimate)
                # a worthless dual may improve while rows that were held let w run away
                better = gap < best_gap and (steps.whole or primal <= (1.0 + self.rise) * lowest)
                better = better or (stop and monitor.status is Status.SOLVED)
                failures = 0 if gap <= self.progress * best_gap else failures + 1
                if better:
                    best, best_gap = steps.state, gap
                    lowest = min(lowest, primal)
                    point = candidate
                if stop or slow(monitor):
                    break
                if failures > self.patience:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
                if monitor.exact is not None:  # the sums promised more than the data keep
                    steps.refresh()
                elif not better and not (steps.whole and steps.finished):
                    # rows were held that had to move, or σ fell too fast for Newton's method
                    steps.retreat(best)
                steps.run(0.3 * monitor.options.tol * abs(primal))
        return point


class State(NamedTuple):
    """Where the method is: a point, its p + Σ βᵢxᵢ and its Xw."""

    point: Point
    pulled: Array
    fitted: Array


class ProximalSteps:
    """The proximal point method at work.

    ``reach`` is the present one, and ``fewest`` rows at least take part in a step.
    """

    def __init__(
        self,
        problem: Problem,
        settings: Proximal,
        systems: Systems,
        monitor: Monitor,
        start: Point | None,
    ) -> None:
        self.problem = problem
        self.settings = settings
        self.systems = systems
        self.monitor = monitor
        ends = np.maximum(problem.terms.upper, -problem.terms.lower)
        self.end = float(np.median(ends[np.isfinite(ends)]))
        #: who may end a step early
        self.slow: Callable[[Monitor], bool] = lambda monitor: False
        #: whether all rows took part in the last step
        self.whole = True
        #: whether the last step was taken to its end
        self.finished = True
        #: whether all rows take part in the next step
        self.careful = False
        largest = max(float(problem.y.max()), -float(problem.y.min()))
        self.least = settings.least_reach * largest or 1.0
        d = problem.operator.n_features
        self.fewest = settings.rows_a_feature * min(d, problem.n) + 100
        self.fall = settings.fall if d <= systems.direct else settings.slow_fall
        self.point = problem.constant_point(monitor.out_of_time) if start is None else start
        fitted = self.point.fitted
        if fitted is None:
            fitted = problem.values(self.point.function)
        self.point.intercept = problem.intercept_of(self.point, fitted)
        self._look(fitted)
        self.refresh()
        self.reach = self._first_reach(start is not None)

    @property
    def state(self) -> State:
        return State(self.point, self.pulled, self.fitted)

    def refresh(self) -> None:
        """p + Σ βᵢxᵢ from the data, without what steps on some of the rows rounded."""
        self.pulled = self.problem.function(self.point.beta)

    def retreat(self, state: State) -> None:
        """Go back to this state, and on from there more carefully, at first with all rows."""
        care = self.settings.care
        self.point, self.pulled, _ = state
        self._look(state.fitted)
        # a slow fall after a wide reach would never end; the same step of all rows would fail again
        wider = self.whole or self.fall < 1.0 / care
        self.reach *= (care if wider else 1.0) / self.fall
        self.fewest = int(self.fewest * care)
        self.careful = True

    def _look(self, fitted: Array) -> None:
        """Where every row is, at this w and b."""
        problem = self.problem
        self.fitted = fitted
        residual = problem.y - fitted - self.point.intercept
        self.distance = np.abs(np.abs(residual) - problem.terms.kink)
        self.responses, slope = np.empty(problem.n), np.empty(problem.n)
        responses(problem.terms.numbers, residual, 0.0, np.zeros(1), self.responses, slope)

    def _first_reach(self, started: bool) -> float:
        """From the best constant it is that of a row in the middle.

        On the way from there the gap falls as the square of the reach does, so a start whose w is
        that of its β begins where that way would be, or as far as rows are from what they are asked
        for. One of another level has the first step from the best constant behind it; its own gap
        says little, since at a large C its β is worth less here than β = 0.
        """
        if not started:
            return _middle(self.distance)
        problem, away = self.problem, self.point.function - self.pulled
        residual = problem.y - (problem.constant if problem.offset else 0.0)
        whole = _middle(np.abs(np.abs(residual) - problem.terms.kink))
        reach, (primal, dual) = self._to_go(), self.objectives()
        if dual < 0 or np.abs(away).max() > EPS**0.5 * np.abs(self.pulled).max():
            reach = min(reach, self.fall * whole)
        else:
            reach = max(reach, whole * min(relative_gap(primal, dual), 1.0) ** 0.5)
        return max(reach, self.least)

    def _to_go(self) -> float:
        """How far from its corner a row is that has an average part in the gap.

        A row whose β is off by δ from what its residual asks for has δ times its distance from
        the corner as its part. Distances alone do not tell: rows at a corner of an old solution
        have none, while the gap may lie between w and p + Σ βᵢxᵢ.
        """
        primal, dual = self.objectives()
        off = float(np.abs(self.point.beta - self.responses).sum())
        return max(primal - dual, 0.0) / off if off > 0 else 0.0

    def objectives(self) -> tuple[float, float]:
        problem, point = self.problem, self.point
        primal = problem.primal_value(point.function, self.fitted, point.intercept)
        return primal, problem.dual_value(point.beta, self.pulled)

    def run(self, target: float) -> None:
        """One proximal step on the rows near a corner; ``target`` is a gap, absolute."""
        problem, point, settings = self.problem, self.point, self.settings
        radius = self._radius()
        # near a corner, or with a β that is not what the residual asks for
        index = np.flatnonzero((self.distance <= radius) | (point.beta != self.responses))
        few = 0 < len(index) <= settings.most_held * problem.n and self._can_balance(index)
        self.whole = self.careful or not few
        self.careful = False
        if self.whole:
            part, beta, fitted = problem, point.beta, self.fitted
        else:
            part = restricted(problem, index, point.beta, self.pulled)
            beta, fitted = point.beta[index], self.fitted[index]
        newton = NewtonSteps(part, self.systems, point, fitted)
        newton.smooth(self.reach / self.end, beta.copy())
        taken = self.monitor.n_iter
        self._solve_smoothed(newton, fitted, target, settings.stray * radius)
        if self.whole:
            beta = newton.beta
        else:
            beta = point.beta.copy()
            beta[index] = newton.beta
        self.point = Point(beta, newton.w, newton.intercept)
        self.pulled = newton.pulled
        self._look(problem.operator.values(newton.w))
        hard = self.monitor.n_iter - taken > settings.many_steps
        fall = max(self.fall, settings.gentle_fall) if hard else self.fall
        self.reach = max(self.reach * fall, self.least)

    def _solve_smoothed(
        self, newton: NewtonSteps, fitted: Array, target: float, limit: float
    ) -> None:
        """Newton steps until little is left of the smoothed problem's gap.

        They are broken off where rows are held and residuals have moved by more than ``limit``.
        """
        newton.evaluate()
        self.finished = False
        for _ in range(self.settings.newton_steps):
            allowed = self.settings.inner_share * max(_gap(newton), target)
            self.finished = newton.gap <= allowed
            if self.finished or self.monitor.limited() or self.slow(self.monitor):
                return
            self.monitor.n_iter += 1
            if not newton.step(2.0 * allowed, self.monitor.out_of_time):
                return
            newton.evaluate()
            if not self.whole:
                moved = newton.problem.y - fitted - newton.residual - newton.intercept
                if float(np.abs(moved).mean()) > limit:
                    return

    def _radius(self) -> float:
        """How far from a corner β may change."""
        radius = self.settings.width * self.reach
        if self.fewest < self.problem.n:
            radius = max(radius, float(np.partition(self.distance, self.fewest)[self.fewest]))
        return radius

    def _can_balance(self, index: Index) -> bool:
        """Whether these rows can make up Σβ = −h with the others where they are."""
        problem, beta = self.problem, self.point.beta
        if not problem.offset:
            return True
        held = problem.total_held + float(beta.sum() - beta[index].sum())
        lower, upper = problem.terms.lower[index].sum(), problem.terms.upper[index].sum()
        return bool(lower < -held < upper)


def _middle(distance: Array) -> float:
    """The distance of a row in the middle, some positive one where that has none."""
    return float(np.median(distance)) or float(distance.max()) or 1.0


def restricted(problem: Problem, index: Index, beta: Array, pulled: Array) -> Problem:
    """The problem on some rows, the others held at β; ``pulled`` is p + Σ βᵢxᵢ over all."""
    operator = problem.operator.take(index)
    inside = beta[index]
    total = problem.total_held + float(beta.sum() - inside.sum())
    return Problem(
        operator,
        problem.y[index],
        problem.terms.take(index),
        problem.offset,
        problem.column,
        held=Held(pulled - operator.function(inside), total),
    )


def _gap(newton: NewtonSteps) -> float:
    """The duality gap of the problem without smoothing."""
    problem = newton.problem
    loss = conjugates(problem.terms.numbers, newton.residual, np.zeros(problem.n), 0.0)
    primal = problem.regulariser(newton.w, None, newton.intercept) + loss
    return primal - problem.dual_value(newton.beta, newton.pulled)
