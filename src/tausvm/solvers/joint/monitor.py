"""Gap checks, limits and the trace of a joint solve."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ..result import Progress, SolverOptions, Status
from .problem import JointCertificate, JointProblem, JointResult

Array = NDArray[np.float64]


class JointMonitor:
    """Watches one solve and keeps the best certified point.

    Every check makes α feasible and evaluates both objectives there from the data, so each
    line of the trace is a true bound from both sides.
    """

    def __init__(
        self,
        problem: JointProblem,
        options: SolverOptions,
        solver: str,
        goal: float | None = None,
    ) -> None:
        self.problem = problem
        self.options = options
        #: the gap to stop at, options.tol unless the solver has reasons to go further
        self.goal = options.tol if goal is None else goal
        self.solver = solver
        self.started = time.perf_counter()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        n, p = problem.shape
        self.alpha: Array = np.zeros((n, p))
        self.best: JointCertificate | None = None

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @property
    def gap(self) -> float:
        """The relative gap of the best point so far."""
        return np.inf if self.best is None else self.best.gap

    def consider(self, alpha: Array, intercept: Array) -> JointCertificate:
        """Certify a point, made feasible, and keep it if none was better."""
        feasible = self.problem.feasible(alpha)
        certificate = self.problem.certificate(feasible, intercept)
        if self.best is None or certificate.gap < self.gap:
            self.best, self.alpha = certificate, feasible
        return certificate

    def should_stop(self, alpha: Array, intercept: Array, n_iter: int) -> bool:
        """Check the gap at α with these offsets, and the limits."""
        certificate = self.consider(alpha, intercept)
        progress = Progress(n_iter, self.seconds, certificate.primal, certificate.dual)
        self.trace.append(progress)
        if not np.isfinite(certificate.primal + certificate.dual):
            self.status = Status.NUMERICAL_ERROR
            return True
        if self.gap <= self.goal:
            self.status = Status.SOLVED
            return True
        return self.limit_reached(progress, n_iter)

    def limit_reached(self, progress: Progress, n_iter: int) -> bool:
        """Whether the callback, the clock or the count ends the solve."""
        options = self.options
        if options.callback is not None and options.callback(progress):
            self.status = Status.STOPPED_BY_CALLBACK
        elif options.time_limit is not None and self.seconds >= options.time_limit:
            self.status = Status.TIME_LIMIT
        elif 0 <= options.max_iter <= n_iter:
            self.status = Status.MAX_ITER
        else:
            return False
        return True

    def result(self, n_iter: int) -> JointResult:
        """The best point with its certificate."""
        best = self.best
        if best is None:
            best = self.problem.certificate(self.alpha, np.zeros(self.problem.shape[1]))
        if best.gap <= self.options.tol:
            self.status = Status.SOLVED
        return JointResult(
            alpha=self.alpha,
            intercept=best.intercept,
            fitted=best.fitted,
            status=self.status,
            primal_objective=best.primal,
            dual_objective=best.dual,
            dual_gap=best.gap,
            kkt_violation=best.violation,
            n_iter=n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
        )
