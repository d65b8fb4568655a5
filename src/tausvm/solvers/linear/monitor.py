"""What a linear solve returns, and what every driver's loop asks between batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..monitor import OutOfTime
from ..result import Progress, SolverOptions, SolverResult, Status, relative_gap
from .problem import Certificate, LinearProblem

Array = NDArray[np.float64]

#: what a solve that goes on from corrected sums has to leave of the gap at most
CORRECTED = 0.5


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

    @classmethod
    def constant(cls, problem: LinearProblem) -> Point:
        """The best constant: w = 0 and β = 0, for which nothing is read of X.

        On some rows alone it is what these may have of it.
        """
        beta = problem.feasible(np.zeros(problem.n))
        if problem.pull is None and not beta.any():
            return cls(beta, np.zeros(problem.d), problem.best_constant)
        coef = problem.weights(beta)
        return cls(beta, coef, problem.best_intercept(problem.values(coef)))


class Monitor:
    """Gap checks, limits and the trace of one solve.

    Its context ends long work on X when time is up, and quietly so.
    """

    def __init__(
        self,
        problem: LinearProblem,
        options: SolverOptions,
        solver: str,
        needed: float | None = None,
    ) -> None:
        self.problem = problem
        self.options = options
        self.solver = solver
        #: the gap that was asked for; the tolerance may be finer where that costs next to nothing
        self.needed = options.tol if needed is None else needed
        self.started = options.clock()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        #: the relative gap at the last check
        self.gap = np.inf
        self.n_iter = 0

    def __enter__(self) -> Monitor:
        self._watch_before = self.problem.rows.common.watch
        if self.options.time_limit is not None:
            self.problem.rows.common.watch = self._watch
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.problem.rows.common.watch = self._watch_before
        if kind is not OutOfTime:
            return False
        self.status = Status.TIME_LIMIT
        return True

    def _watch(self) -> None:
        """Ends long work on X when time is up."""
        if self.out_of_time():
            raise OutOfTime

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    def left(self, **changes: object) -> SolverOptions:
        """The options for a solve within what is left of the time and the iterations."""
        options = self.options
        if options.time_limit is not None:
            changes["time_limit"] = max(options.time_limit - self.seconds, 0.0)
        if options.max_iter >= 0:
            changes["max_iter"] = max(options.max_iter - self.n_iter, 0)
        return options.with_(**changes)

    def out_of_time(self) -> bool:
        """Whether what is left of the time limit is needed for the certificate."""
        limit = self.options.time_limit
        return limit is not None and self.seconds + self.problem.rows.product_seconds() >= limit

    def certifiable(self) -> bool:
        """Whether the time limit leaves time for the products of a certificate."""
        limit = self.options.time_limit
        if limit is None:
            return True
        patience = self.options.patience
        overrun = max(patience.overrun_share * limit, patience.overrun_seconds)
        return self.seconds + self.problem.rows.product_seconds() <= limit + overrun

    def check(self, primal: float, dual: float) -> bool:
        """Note a pair of objectives; whether to stop there."""
        self.gap = relative_gap(primal, dual)
        objective = self.problem.units.objective
        progress = Progress(self.n_iter, self.seconds, objective(primal), objective(dual))
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

    def solved(self, run: Callable[[Point | None], Point], start: Point | None) -> LinearResult:
        """The result of a method that stops by running sums.

        Where the certificate from the data falls short of them, it goes on from that point, with
        sums computed afresh, as long as that helps.
        """
        best: LinearResult | None = None
        while True:
            point = run(start)
            promised = self.status is Status.SOLVED
            result = self.result(point)
            helped = best is None or result.dual_gap <= CORRECTED * best.dual_gap
            if best is None or result.dual_gap < best.dual_gap:
                best = result
            broken = promised and self.status is not Status.SOLVED
            if not broken or not helped or self.limited():
                break
            start = point
        best.status, best.n_iter, best.seconds = self.status, self.n_iter, self.seconds
        return best

    def result(
        self, point: Point, fitted: Array | None = None, pulled: Array | None = None
    ) -> LinearResult:
        """The result with its certificate, of the w and b that predict and from the data.

        ``fitted`` and ``pulled`` as in :meth:`LinearProblem.certificate`. Where a time limit leaves
        no time for these products, or numbers have overflowed, it is the best constant and its gap.
        """
        problem = self.problem
        # what has overflowed is no point either
        numbers = np.isfinite(point.coef).all() and np.isfinite(point.beta).all()
        if not numbers or (fitted is None and not self.certifiable()):
            point, fitted, pulled = Point.constant(problem), None, None
        if fitted is None:
            fitted = problem.values(point.coef)
        beta, intercept = point.beta, point.intercept
        if problem.offset:
            intercept = problem.best_intercept(fitted)
            if pulled is None:  # a dual point to the last digit
                beta = problem.balanced(beta)
        certificate = problem.certificate(beta, point.coef, intercept, fitted, pulled)
        return self._taken_back(Point(beta, point.coef, intercept), certificate)

    def _taken_back(self, point: Point, certificate: Certificate) -> LinearResult:
        """In the user's units."""
        if certificate.gap <= self.options.tol:
            self.status = Status.SOLVED
        elif self.status is Status.SOLVED:  # running sums promised more than the data keep
            self.status = Status.NUMERICAL_ERROR
        units = self.problem.units
        return LinearResult(
            beta=units.coefficients(point.beta),
            intercept=float(units.offset(point.intercept)),
            fitted=units.coefficients(certificate.fitted),
            status=self.status,
            primal_objective=units.objective(certificate.primal),
            dual_objective=units.objective(certificate.dual),
            dual_gap=certificate.gap,
            kkt_violation=certificate.violation * units.scale,
            n_iter=self.n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
            coef=units.coefficients(point.coef),
        )
