"""Gap checks, limits and the trace of a joint solve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..monitor import OutOfTime
from ..result import Progress, SolverOptions, Status
from .problem import JointCertificate, JointProblem, JointResult

Array = NDArray[np.float64]


class JointMonitor:
    """Watches one solve and keeps the best certified point.

    Every check makes α feasible and evaluates both objectives there from the data, so each
    line of the trace is a true bound from both sides. The best constants are the first point,
    so that there always is one. Its context ends quietly where time ran out inside it.
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
        self.started = options.clock()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        #: whether time ran out inside the context
        self.interrupted = False
        self.alpha: Array = np.zeros(problem.shape)
        problem.settle_constants(self.out_of_time)
        self.best = problem.certificate(self.alpha, problem.constants)

    def __enter__(self) -> JointMonitor:
        if self.options.time_limit is not None:
            self.problem.gram.watch = self._watch
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.problem.gram.watch = None
        if kind is not OutOfTime:
            return False
        self.status, self.interrupted = Status.TIME_LIMIT, True
        return True

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    @property
    def gap(self) -> float:
        """The relative gap of the best point so far."""
        return self.best.gap

    @property
    def intercept(self) -> Array:
        """The offsets of the best point so far."""
        return self.best.intercept

    def out_of_time(self) -> bool:
        """Whether what is left of the time limit is needed for the certificate."""
        limit = self.options.time_limit
        return limit is not None and self.seconds + self.problem.gram.product_seconds >= limit

    def _watch(self) -> None:
        """Ends long work when time is up."""
        if self.out_of_time():
            raise OutOfTime

    def begin(self, start: JointResult | None) -> bool:
        """Whether it ends here: constants or a warm start are good enough, or time is up."""
        if self.out_of_time():
            self.status = Status.TIME_LIMIT
            return True
        if start is not None:
            self.consider(*self.problem.point_of(start))
        return self.gap <= self.options.tol

    def consider(self, alpha: Array, intercept: Array) -> JointCertificate:
        """Certify a point, made feasible, and keep it if none was better."""
        gram = self.problem.gram
        watch, gram.watch = gram.watch, None  # the time for a certificate was kept
        try:
            feasible = self.problem.feasible(alpha)
            certificate = self.problem.certificate(feasible, intercept)
        finally:
            gram.watch = watch
        if certificate.rank < self.best.rank:
            self.best, self.alpha = certificate, feasible
        return certificate

    def consider_last(self, alpha: Array, intercept: Array) -> None:
        """Certify where the solver was when its time ran out, if that overruns little."""
        limit = self.options.time_limit
        assert limit is not None
        patience = self.options.patience
        overrun = max(patience.overrun_share * limit, patience.overrun_seconds)
        if self.seconds + self.problem.gram.product_seconds <= limit + overrun:
            self.consider(alpha, intercept)

    def should_stop(self, alpha: Array, intercept: Array, n_iter: int) -> bool:
        """Check the gap at α with these offsets, and the limits."""
        certificate = self.consider(alpha, intercept)
        objective = self.problem.objective
        progress = Progress(
            n_iter, self.seconds, objective(certificate.primal), objective(certificate.dual)
        )
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
        elif self.out_of_time():
            self.status = Status.TIME_LIMIT
        elif 0 <= options.max_iter <= n_iter:
            self.status = Status.MAX_ITER
        else:
            return False
        return True

    def result(self, n_iter: int) -> JointResult:
        """The best point with its certificate, in the user's units."""
        best, problem = self.best, self.problem
        if best.gap <= self.options.tol:
            self.status = Status.SOLVED
        units = problem.units
        return JointResult(
            alpha=problem.coefficients(self.alpha),
            intercept=np.asarray(units.offset(best.intercept)),
            fitted=units.coefficients(best.fitted),
            status=self.status,
            primal_objective=problem.objective(best.primal),
            dual_objective=problem.objective(best.dual),
            dual_gap=best.gap,
            kkt_violation=best.violation * units.scale,
            n_iter=n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
        )
