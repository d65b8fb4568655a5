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

from ..._core import terms as core
from ..onedim import increasing_zero
from ..offsets import smooth_offset
from .problem import LinearProblem
from .systems import Model, Systems

Array = NDArray[np.float64]


class NewtonSteps:
    """Newton steps on F, with g made g + σ/2 (β − centre)² where σ > 0.

    ``residual`` is y − Xw − b, ``beta`` the responses to it, ``pulled`` is p + Σ βᵢxᵢ.
    """

    def __init__(
        self,
        problem: LinearProblem,
        systems: Systems,
        coef: Array,
        intercept: float,
        fitted: Array,
    ) -> None:
        self.problem = problem
        self.coef = coef.copy()
        self.intercept = intercept
        self.residual = problem.y - fitted - intercept
        self.sigma = 0.0
        self.centre = np.zeros(1)
        self.beta = np.empty(problem.n)
        self.slope = np.empty(problem.n)
        self.systems = systems.of(problem.n, problem.d)

    def smooth(self, sigma: float, centre: Array) -> None:
        """Take these σ and centre."""
        self.sigma, self.centre = sigma, centre

    def evaluate(self) -> None:
        """Responses, gradient, value and the gap of F; a free b is put at its best first."""
        problem, numbers = self.problem, self.problem.terms.numbers
        if problem.offset:
            shift = smooth_offset(numbers, self.residual, problem.held, self.sigma, self.centre)
            self.residual -= shift
            self.intercept += shift
        loss = core.responses(
            numbers, self.residual, self.sigma, self.centre, self.beta, self.slope
        )
        self.pulled = problem.weights(self.beta)
        self.gradient = self.coef - self.pulled
        self.value = problem.regulariser(self.coef, self.intercept) + loss
        self.offset_gradient = 0.0
        self.gap = 0.5 * float(self.gradient @ self.gradient)
        if problem.column > 0:
            total = float(self.beta.sum()) + problem.held
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
            rows=problem.rows,
            slope=self.slope,
            sigma=self.sigma,
            gradient=self.gradient,
            border=problem.offset or problem.column > 0,
            offset_gradient=self.offset_gradient,
            bend=self.bend,
        )
        step, rise = self.systems.solve(model, wanted, stop)
        change = problem.rows.dot(step)
        change += rise
        length = self._line_minimum(step, rise, change)
        if not length > 0:
            return False
        self.coef += length * step
        self.intercept += length * rise
        self.residual -= length * change
        return True

    def refresh(self) -> None:
        """The residuals from the data, without what the updates rounded."""
        fitted = self.problem.rows.dot(self.coef)
        self.residual = self.problem.y - fitted - self.intercept

    def _line_minimum(self, step: Array, rise: float, change: Array) -> float:
        """The exact minimum of F on the line: a zero of a piecewise linear function."""
        problem, numbers = self.problem, self.problem.terms.numbers
        linear = float(self.coef @ step) + self.bend * self.intercept * rise - problem.held * rise
        if problem.pull is not None:
            linear -= float(problem.pull @ step)
        quadratic = float(step @ step) + self.bend * rise * rise

        def slope(t: float) -> tuple[float, float]:
            pull, bend = core.line_slope(numbers, self.residual, self.sigma, self.centre, change, t)
            return linear + t * quadratic - pull, quadratic + bend

        first, _ = slope(0.0)
        if not first < 0:
            return 0.0
        return increasing_zero(slope, 1.0, 0.01 * abs(first), low=0.0)
