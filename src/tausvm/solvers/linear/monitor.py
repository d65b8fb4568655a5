"""What a linear solve returns, and what every driver's loop asks between batches."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..result import Progress, SolverOptions, SolverResult, Status, relative_gap
from .problem import LinearProblem

Array = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
#: a share of the tolerance that does not count
NOTHING = 1e-3


@dataclass
class LinearResult(SolverResult):
    """A :class:`SolverResult` with the weights.

    Attributes
    ----------
    coef : array (d,)
        w; the primal objective is taken at (w, b), the dual at β.
    """

    coef: Array = field(default_factory=lambda: np.empty(0))


@dataclass
class Point:
    """Where a solve has come to: a primal and a dual point, each feasible."""

    beta: Array
    coef: Array
    intercept: float


class Monitor:
    """Gap checks, limits, trace and the best point of one solve."""

    def __init__(self, problem: LinearProblem, options: SolverOptions, solver: str) -> None:
        self.problem = problem
        self.options = options
        self.solver = solver
        self.started = time.perf_counter()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        #: the relative gap at the last check
        self.gap = np.inf
        self.n_iter = 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def out_of_time(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and self.seconds >= limit

    def check(self, primal: float, dual: float) -> bool:
        """Note a pair of objectives; whether to stop there."""
        self.gap = relative_gap(primal, dual)
        progress = Progress(self.n_iter, self.seconds, primal, dual)
        self.trace.append(progress)
        if not np.isfinite(primal + dual):
            self.status = Status.NUMERICAL_ERROR
            return True
        if self.gap <= self.options.tol:
            self.status = Status.SOLVED
            return True
        if self.options.callback is not None and self.options.callback(progress):
            self.status = Status.STOPPED_BY_CALLBACK
            return True
        return self.limited()

    def limited(self) -> bool:
        """Whether time or iterations are used up."""
        if self.out_of_time():
            self.status = Status.TIME_LIMIT
            return True
        if 0 <= self.options.max_iter <= self.n_iter:
            self.status = Status.MAX_ITER
            return True
        return False

    def result(
        self, point: Point, fitted: Array | None = None, pulled: Array | None = None
    ) -> LinearResult:
        """The result with its certificate, recomputed from the data.

        Coordinate descent gives the Xw of its last check, and p + Σ βᵢxᵢ up to the rounding of
        as many additions as there were steps: where that is nothing beside the tolerance, it is
        taken.
        """
        problem = self.problem
        if EPS * problem.n * self.n_iter > NOTHING * self.options.tol:
            pulled = None
        certificate = problem.certificate(point.beta, point.coef, point.intercept, fitted, pulled)
        if problem.offset:  # the best b for this w, the middle where an interval is
            point.intercept = problem.best_intercept(certificate.fitted)
            primal = problem.primal_value(point.coef, point.intercept, certificate.fitted)
            certificate = replace(certificate, primal=primal)
        if certificate.gap <= self.options.tol:
            self.status = Status.SOLVED
        elif self.status is Status.SOLVED:  # running sums promised more than the data keep
            self.status = Status.NUMERICAL_ERROR
        return LinearResult(
            beta=point.beta,
            intercept=point.intercept,
            fitted=certificate.fitted,
            status=self.status,
            primal_objective=certificate.primal,
            dual_objective=certificate.dual,
            dual_gap=certificate.gap,
            kkt_violation=certificate.violation,
            n_iter=self.n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
            coef=point.coef,
        )
