"""Newton steps on the primal (Ho and Lin, Algorithm 1), for terms with a ridge.

With a ridge on both sides the primal

    F(w, b) = ½‖w‖² − pᵀw − h·b + Σᵢ φᵢ(yᵢ − xᵢᵀw − b),    φ = g*

is piecewise quadratic. φ′ᵢ is the response βᵢ, so ∇F = w − p − Σ βᵢxᵢ, and the generalised
Hessian is I + Σ φ″ᵢ xᵢxᵢᵀ over the active rows, those whose response is neither 0 nor at a bound.
The responses are a dual point, and the gap there is the gradient itself:

    F(w, b) − dual(β) = ½‖∇F‖²      (b at its best)

so that the rule (8) on the gradient and the duality gap are one rule. The step to the minimum of
the quadratic model is followed to the exact minimum on its line, which does the work of a trust
region.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..._core.terms import line_slope, responses
from ..domain import balanced
from ..offsets import smooth_offset
from ..onedim import increasing_zero
from ..problem import Point, Problem
from .systems import Model, Systems

Array = NDArray[np.float64]


def certifiable(problem: Problem, point: Point) -> Point:
    """A point as a certificate judges it: with a free b at its best, and Σβ to the last digit."""
    if not problem.offset:
        return point
    return Point(balanced(problem.terms, point.beta, -problem.total_held), point.function)


class NewtonSteps:
    """Newton steps on F, with g made g + σ/2 (β − centre)² where σ > 0.

    ``residual`` is y − Xw − b, ``beta`` the responses to it, ``pulled`` is p + Σ βᵢxᵢ. The steps
    begin at the w and b of a point, whose Xw is ``fitted``.
    """

    def __init__(self, problem: Problem, systems: Systems, start: Point, fitted: Array) -> None:
        self.problem = problem
        self.w = start.function.copy()
        self.intercept = float(start.intercept)
        self.residual = problem.y - fitted - self.intercept
        self.sigma = 0.0
        self.centre = np.zeros(1)
        self.beta = np.empty(problem.n)
        self.slope = np.empty(problem.n)
        self.systems = systems.of(problem.n, len(self.w))

    def smooth(self, sigma: float, centre: Array) -> None:
        """Take these σ and centre."""
        self.sigma, self.centre = sigma, centre

    def evaluate(self) -> None:
        """Responses, gradient, value and the gap of F; a free b is put at its best first."""
        problem, numbers = self.problem, self.problem.terms.numbers
        problem.operator.tally.rows += problem.n
        problem.operator.tally.steps += 1
        if problem.offset:
            shift = smooth_offset(
                numbers, self.residual, None, problem.total_held, self.sigma, self.centre
            )
            self.residual -= shift
            self.intercept += shift
        loss = responses(numbers, self.residual, self.sigma, self.centre, self.beta, self.slope)
        self.pulled = problem.function(self.beta)
        self.gradient = self.w - self.pulled
        self.value = problem.regulariser(self.w, None, self.intercept) + loss
        self.offset_gradient = 0.0
        self.gap = 0.5 * float(self.gradient @ self.gradient)
        if problem.column > 0:
            total = float(self.beta.sum()) + problem.total_held
            self.offset_gradient = self.bend * self.intercept - total
            self.gap += 0.5 * (problem.column * self.offset_gradient) ** 2

    @property
    def bend(self) -> float:
        """The second derivative of the penalty on b."""
        column = self.problem.column
        return 1.0 / (column * column) if column > 0 else 0.0

    def step(self, wanted: float, stop: Callable[[], bool]) -> bool:
        """One Newton step towards a gap of ``wanted``; False where no descent is left."""
        problem = self.problem
        model = Model(
            rows=problem.operator,
            slope=self.slope,
            sigma=self.sigma,
            gradient=self.gradient,
            border=problem.offset or problem.column > 0,
            offset_gradient=self.offset_gradient,
            bend=self.bend,
        )
        step, rise = self.systems.solve(model, wanted, stop)
        change = problem.operator.values(step)
        change += rise
        length = self._line_minimum(step, rise, change)
        if not length > 0:
            return False
        self.w += length * step
        self.intercept += length * rise
        self.residual -= length * change
        return True

    @property
    def point(self) -> Point:
        """w, b and the dual point of the responses."""
        return Point(self.beta, self.w, self.intercept)

    def refresh(self, fitted: Array | None = None) -> None:
        """The residuals from Xw as the data give it, without what the updates rounded."""
        if fitted is None:
            fitted = self.problem.operator.values(self.w)
        self.residual = self.problem.y - fitted - self.intercept

    def _line_minimum(self, step: Array, rise: float, change: Array) -> float:
        """The exact minimum of F on the line: a zero of a piecewise linear function."""
        problem, numbers = self.problem, self.problem.terms.numbers
        linear = (
            float(self.w @ step) + self.bend * self.intercept * rise - problem.total_held * rise
        )
        if problem.held is not None:
            linear -= float(problem.held.function @ step)
        quadratic = float(step @ step) + self.bend * rise * rise

        def slope(t: float) -> tuple[float, float]:
            pull, bend = line_slope(numbers, self.residual, self.sigma, self.centre, change, t)
            return linear + t * quadratic - pull, quadratic + bend

        first, _ = slope(0.0)
        if not first < 0:
            return 0.0
        return increasing_zero(slope, 1.0, 0.01 * abs(first), low=0.0)
