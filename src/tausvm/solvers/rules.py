"""Stopping rules other than the gap: functions of a problem and a point, compared with ``tol``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Point, Problem
from .result import relative_gap


@dataclass(frozen=True)
class ClippedGap:
    """The ER-SVM paper's rule: the relative gap with the loss at predictions clipped to ±bound.

    Where |y| ≤ bound it is never above the gap itself. The certificate stays that of the function
    that was not clipped.
    """

    bound: float

    def __call__(self, problem: Problem, point: Point) -> float:
        function, fitted = point.function, point.fitted
        clipped = np.clip(fitted + point.intercept, -self.bound, self.bound)
        loss = problem.terms.total_loss(problem.y, clipped, 0.0)
        primal = 0.5 * problem.operator.norm2(function, fitted) + loss
        return relative_gap(primal, problem.dual_value(point.beta, function, fitted))


__all__ = ["ClippedGap"]
