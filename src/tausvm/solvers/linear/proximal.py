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
and Koenker do for quantile regression). Tall data start from a sample of their rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core import linear as core
from ..result import Status
from .dual_systems import MOST_ROWS
from .monitor import Monitor, Point
from .newton import DIRECT, Newton
from .problem import LinearProblem
from .sample import drawn

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: the reach falls by this factor from one proximal step to the next, where systems are factorised
FALL = 0.1
#: after a step that took more Newton steps than this, the gentler one
MANY_STEPS = 15
GENTLE_FALL = 0.3
#: conjugate gradients take the more products the smaller the reach: these for them
SLOW_FALL = 0.5
GENTLE_SLOW_FALL = 0.7
#: what may be left of the gap after a step that is not a failure, and for conjugate gradients
PROGRESS = 0.5
SLOW_PROGRESS = 0.95
#: the least reach, as a share of the largest target: with smaller ones responses are but rounding,
#: and from a point that near a larger one leads as far
LEAST_REACH = 1e-9
#: rows within so many reaches of a corner are looked at
WIDTH = 3.0
#: and so many a feature at least
ROWS_A_FEATURE = 4
#: a larger share of the rows is not worth holding the others
MOST_HELD = 0.7
#: and residuals that have moved by so many radii show that rows were held which had to move
STRAY = 10.0
#: what a step on some of the rows may raise the primal by
RISE = 0.01
#: after a step that failed the reach grows by this factor, and the rows looked at
CARE = 3.0
#: Newton steps in a row on one smoothed problem
NEWTON_STEPS = 40
#: what may be left of a smoothed problem's gap, as a share of the gap itself
INNER_SHARE = 0.1
#: proximal steps in a row that may be failures, and where the gap is as small as was asked for
PATIENCE = 8
LITTLE_PATIENCE = 2
#: the gap to which a sample is solved
SAMPLE_TOL = 1e-3


def maximise(problem: LinearProblem, monitor: Monitor, start: Point | None) -> Point:
    """Proximal steps until the monitor says stop; the best point met."""
    point: Point | None = None
    best_gap, lowest, failures = np.inf, np.inf, 0
    with monitor:
        steps = Proximal(problem, monitor, start)
        best = steps.state
        while True:
            primal, dual = steps.objectives()
            gap = primal - dual
            stop = monitor.check(primal, dual)
            # a worthless dual may improve while rows that were held let w run away
            better = gap < best_gap and (steps.whole or primal <= (1.0 + RISE) * lowest)
            better = better or (stop and monitor.status is Status.SOLVED)
            failures = 0 if gap <= steps.progress * best_gap else failures + 1
            if better:
                best, best_gap = steps.state, gap
                lowest = min(lowest, primal)
                point = best.point
            enough = best_gap <= monitor.needed * abs(lowest)
            spent = failures > (LITTLE_PATIENCE if enough else PATIENCE)
            if spent:
                monitor.status = Status.NUMERICAL_ERROR
            if stop or spent:
                break
            if not better and not (steps.whole and steps.finished):
                # rows were held that had to move, or σ fell too fast for Newton's method
                steps.retreat(best)
            steps.run(0.3 * monitor.options.tol * abs(primal))
    return Point.constant(problem) if point is None else point


class State(NamedTuple):
    """Where the method is: a point, its p + Σ βᵢxᵢ and its Xw."""

    point: Point
    pulled: Array
    fitted: Array


class Proximal:
    """The proximal point method.

    ``reach`` is σ in terms of residuals: how far from a corner the loss is smoothed. Rows within
    WIDTH reaches of a corner take part, and ``fewest`` rows at least.
    """

    def __init__(self, problem: LinearProblem, monitor: Monitor, start: Point | None) -> None:
        self.problem = problem
        self.monitor = monitor
        ends = np.maximum(problem.terms.upper, -problem.terms.lower)
        self.end = float(np.median(ends[np.isfinite(ends)]))
        self.whole = True
        #: whether the last step was taken to its end
        self.finished = True
        #: whether the next step is taken with all rows
        self.careful = False
        self.least = LEAST_REACH * max(float(problem.y.max()), -float(problem.y.min())) or 1.0
        self.fewest = ROWS_A_FEATURE * min(problem.d, problem.n) + 100
        factorised = problem.d <= DIRECT or problem.n <= MOST_ROWS
        self.fall = FALL if factorised else SLOW_FALL
        self.gentle_fall = GENTLE_FALL if factorised else GENTLE_SLOW_FALL
        self.progress = PROGRESS if factorised else SLOW_PROGRESS
        if start is not None:
            self._begin(start)
            self.reach = max(self._to_go(), self.least)
            return
        sample = drawn(problem, monitor.options.seed)
        if sample is None:
            self._begin(Point.constant(problem))
            self.reach = self._typical()
            return
        self._begin_from(sample)

    @property
    def state(self) -> State:
        return State(self.point, self.pulled, self.fitted)

    def retreat(self, state: State) -> None:
        """Go back to this state, and on from there more carefully, at first with all rows."""
        self.point, self.pulled, _ = state
        self._look(state.fitted)
        # a slow fall after a wide reach would never end
        self.reach *= (CARE if self.fall < 1.0 / CARE else 1.0) / self.fall
        self.fewest *= int(CARE)
        self.careful = True

    def _begin(self, point: Point) -> None:
        self.point = point
        self.pulled = self.problem.weights(point.beta)
        self._look(self.problem.values(point.coef))

    def _begin_from(self, sample: LinearProblem) -> None:
        """The weights of a sample's solution; near a corner nothing is known of β."""
        problem = self.problem
        options = self.monitor.left(tol=SAMPLE_TOL, callback=None)
        found = maximise(sample, Monitor(sample, options, "newton"), None)
        fitted = problem.rows.dot(found.coef)
        intercept = problem.best_intercept(fitted) if problem.offset else found.intercept
        self.point = Point(np.zeros(problem.n), found.coef, intercept)
        self._look(fitted)
        # a prediction from m rows and d weights is off by √(d/m) residuals
        error = float(np.sqrt(problem.d / sample.n))
        self.reach = 2.0 * error * self._typical()
        near = self.distance <= self.reach
        beta = np.where(near, self._middles(), self.responses)
        self.point = Point(problem.feasible(beta), found.coef, intercept)
        self.pulled = problem.weights(self.point.beta)

    def _look(self, fitted: Array) -> None:
        """Where every row is, at this w and b."""
        problem = self.problem
        self.fitted = fitted
        residual = problem.y - fitted - self.point.intercept
        self.distance = np.abs(np.abs(residual) - problem.terms.kink)
        self.positive = residual > 0
        self.responses, slope = np.empty(problem.n), np.empty(problem.n)
        core.responses(problem.terms.numbers, residual, 0.0, np.zeros(1), self.responses, slope)

    def _typical(self) -> float:
        return float(np.median(self.distance)) or float(self.distance.max()) or 1.0

    def _to_go(self) -> float:
        """How far from its corner a row is that has an average part in the gap.

        A row whose β is off by δ from what its residual asks for has δ times its distance from
        the corner as its part. Distances alone do not tell: rows at a corner of an old solution
        have none, while the gap may lie between w and p + Σ βᵢxᵢ.
        """
        primal, dual = self.objectives()
        off = float(np.abs(self.point.beta - self.responses).sum())
        return max(primal - dual, 0.0) / off if off > 0 else 0.0

    def _unsettled(self) -> NDArray[np.bool_]:
        """Rows whose β is not what their residual asks for."""
        return self.point.beta != self.responses

    def _middles(self) -> Array:
        """The middle of the β that the nearest corner allows."""
        terms = self.problem.terms
        side = np.where(self.positive, terms.upper, terms.lower)
        return np.where(terms.kink > 0, 0.5 * side, 0.5 * (terms.lower + terms.upper))

    def objectives(self) -> tuple[float, float]:
        problem, point = self.problem, self.point
        primal = problem.primal_value(point.coef, point.intercept, self.fitted)
        return primal, problem.dual_value(point.beta, self.pulled)

    def run(self, target: float) -> None:
        """One proximal step on the rows near a corner; ``target`` is a gap, absolute."""
        problem, point = self.problem, self.point
        radius = self._radius()
        index = np.flatnonzero((self.distance <= radius) | self._unsettled())
        few = 0 < len(index) <= MOST_HELD * problem.n and self._can_balance(index)
        self.whole = self.careful or not few
        self.careful = False
        if self.whole:
            part, beta, fitted = problem, point.beta, self.fitted
        else:
            # the others have the β that their residuals ask for
            part = problem.restrict(index, point.beta, self.pulled)
            beta, fitted = point.beta[index], self.fitted[index]
        newton = Newton(part, point.coef, point.intercept, fitted)
        newton.smooth(self.reach / self.end, beta.copy())
        newton.evaluate()
        taken = self.monitor.n_iter
        self.finished = False
        for _ in range(NEWTON_STEPS):
            allowed = INNER_SHARE * max(_gap(part, newton), target)
            self.finished = newton.gap <= allowed
            if self.finished or self.monitor.limited():
                break
            self.monitor.n_iter += 1
            if not newton.step(2.0 * allowed, self.monitor.out_of_time):
                break
            newton.evaluate()
            if not self.whole and _strayed(newton, fitted, part, STRAY * radius):
                break
        if self.whole:
            beta = newton.beta
        else:
            beta = point.beta.copy()
            beta[index] = newton.beta
        self.point = Point(beta, newton.coef, newton.intercept)
        self.pulled = newton.pulled
        self._look(problem.rows.dot(newton.coef))
        hard = self.monitor.n_iter - taken > MANY_STEPS
        self.reach = max(self.reach * (self.gentle_fall if hard else self.fall), self.least)

    def _radius(self) -> float:
        """How far from a corner β may change."""
        radius = WIDTH * self.reach
        if self.fewest < self.problem.n:
            radius = max(radius, float(np.partition(self.distance, self.fewest)[self.fewest]))
        return radius

    def _can_balance(self, index: Index) -> bool:
        """Whether these rows can make up Σβ = −h with the others where they are."""
        problem, beta = self.problem, self.point.beta
        if not problem.offset:
            return True
        held = problem.held + float(beta.sum() - beta[index].sum())
        lower, upper = problem.terms.lower[index].sum(), problem.terms.upper[index].sum()
        return bool(lower < -held < upper)


def _strayed(newton: Newton, fitted: Array, problem: LinearProblem, limit: float) -> bool:
    """Whether residuals have moved so far on average that no row can be held."""
    moved = problem.y - fitted - newton.residual
    moved -= newton.intercept
    return float(np.abs(moved).mean()) > limit


def _gap(problem: LinearProblem, newton: Newton) -> float:
    """The duality gap of the problem without smoothing."""
    loss = core.conjugates(problem.terms.numbers, newton.residual, np.zeros(problem.n), 0.0)
    primal = problem.regulariser(newton.coef, newton.intercept) + loss
    return primal - problem.dual_value(newton.beta, newton.pulled)
