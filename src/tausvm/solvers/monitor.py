"""Gap checks, limits and the trace: what every driver's loop asks between batches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .problem import Certificate, Problem
from .result import Progress, SolverOptions, SolverResult, Status, relative_gap

Array = NDArray[np.float64]

#: checks in a row without progress, and exact checks in a row that fail to lower the gap,
#: before a solve is given up
PATIENCE = 30
#: a gap has fallen where it is below this share of the lowest before
FALL = 0.7
#: checks in a row without progress after which rows in float32 are suspected: soon where the
#: gap is small enough for their rounding, late where only a large C could make it matter
STALE = 10
STALE_ABOVE = 40
ROUNDED_GAP = 1e-4
#: how far a certificate may outrun the time limit: this share of it, or so many seconds
OVERRUN_SHARE, OVERRUN_SECONDS = 0.05, 0.5


class OutOfTime(Exception):
    """Raised inside long work on the kernel matrix when the time limit is reached."""


class Monitor:
    """Watches one solve; its context ends quietly where time ran out inside it.

    The solver keeps ``gradient`` = Kβ − y by updates. A check evaluates the gap from it;
    when that is small enough, Kβ is computed afresh in float64 from the data, the gradient
    is replaced by the exact one, and only the exact gap ends the solve. With rows kept in
    float32 this is iterative refinement: what was rounded is corrected, not accepted. There
    it also happens when the gap has stopped falling.
    """

    def __init__(self, problem: Problem, options: SolverOptions, solver: str) -> None:
        self.problem = problem
        self.options = options
        self.solver = solver
        self.started = options.clock()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        self.exact: Certificate | None = None
        #: the relative gap at the last check
        self.gap = np.inf
        #: the point that was looked at exactly last, and the one with the least gap among such
        self._certified: Array | None = None
        self._best_exact: tuple[Array, Certificate] | None = None
        self._failed = 0
        self._highest_dual = -np.inf
        self._lowest_gap = np.inf
        #: checks since the gap fell, and since anything was gained
        self._stale = 0
        self._idle = 0
        self._rounded = problem.gram.rows.dtype == np.float32
        #: how many rows a product with β may take: all, until β has been seen
        self._support = problem.n

    def __enter__(self) -> Monitor:
        if self.options.time_limit is not None:
            self.problem.gram.watch = self._watch
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.problem.gram.watch = None
        if kind is not OutOfTime:
            return False
        self.status, self.exact = Status.TIME_LIMIT, None
        return True

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    def out_of_time(self) -> bool:
        """Whether what is left of the time limit is needed for the certificate."""
        limit = self.options.time_limit
        if limit is None:
            return False
        return self.seconds + self.problem.gram.certificate_seconds(self._support) >= limit

    def _watch(self) -> None:
        """Ends long work on the kernel matrix when time is up."""
        if self.out_of_time():
            raise OutOfTime

    def _note_progress(self, beta: Array, fitted: Array, dual: float, gap: float) -> None:
        """Count the checks without progress: a lower gap, or a dual higher than it rounds."""
        fell = gap < FALL * self._lowest_gap
        rose = dual - self._highest_dual > self.problem.dual_rounding(beta, fitted)
        self._stale = 0 if fell else self._stale + 1
        self._idle = 0 if fell or rose else self._idle + 1
        self._lowest_gap = min(self._lowest_gap, gap)
        self._highest_dual = max(self._highest_dual, dual)

    def _suspicious(self, gap: float) -> bool:
        """Whether rounded rows may be what keeps the gap from falling."""
        if not self._rounded or self._stale < (STALE if gap <= ROUNDED_GAP else STALE_ABOVE):
            return False
        self._stale = 0
        return True

    def certify(self, beta: Array, gradient: Array) -> Certificate:
        """The certificate at β, which is kept if none is better; the gradient becomes exact."""
        certificate = self.problem.certificate(beta)
        np.subtract(certificate.fitted, self.problem.y, out=gradient)
        self.exact = certificate
        self._certified = beta.copy()
        if self._best_exact is None or certificate.excess < self._best_exact[1].excess:
            self._best_exact = self._certified, certificate
        return certificate

    def should_stop(self, beta: Array, gradient: Array, n_iter: int, offset: float) -> bool:
        """Check the gap at β with this offset; ``gradient`` may be replaced by the exact one."""
        problem, options = self.problem, self.options
        self._support = min(problem.n, 2 * int(np.count_nonzero(beta)) + 1024)
        self.exact = None
        fitted = gradient + problem.y
        primal = problem.stopping_primal(beta, fitted, offset)
        dual = problem.dual_value(beta, fitted)
        gap = relative_gap(primal, dual)
        close = gap <= options.tol
        self._note_progress(beta, fitted, dual, gap)
        given_up = self._idle > PATIENCE
        if close or given_up or self._suspicious(gap):
            lowest = np.inf if self._best_exact is None else self._best_exact[1].excess
            certificate = self.certify(beta, gradient)
            primal, dual = certificate.primal, certificate.dual
            if problem.clip is not None:
                primal = problem.stopping_primal(beta, certificate.fitted, certificate.intercept)
        self.gap = relative_gap(primal, dual)
        objective = problem.units.objective
        progress = Progress(n_iter, self.seconds, objective(primal), objective(dual))
        self.trace.append(progress)
        if not np.isfinite(primal + dual):  # an unbounded dual: the kernel is not one
            self.status = Status.NUMERICAL_ERROR
            return True
        if self.exact is not None:
            if self.gap <= options.tol:
                self.status = Status.SOLVED
                return True
            if close:
                self._failed = self._failed + 1 if self.exact.excess > FALL * lowest else 0
            if given_up or self._failed > PATIENCE:
                self.status = Status.NUMERICAL_ERROR
                return True
        if options.callback is not None and options.callback(progress):
            self.status = Status.STOPPED_BY_CALLBACK
            return True
        if self.out_of_time():
            self.status = Status.TIME_LIMIT
            return True
        if 0 <= options.max_iter <= n_iter:
            self.status = Status.MAX_ITER
            return True
        return False

    def result(self, beta: Array, n_iter: int) -> SolverResult:
        """The result with its certificate, recomputed unless this very β was looked at exactly.

        Where a time limit leaves no time for that, it is the best constant with its gap.
        """
        certificate = self.exact
        if certificate is None or self._certified is None or (beta != self._certified).any():
            if not self._fits(beta):
                beta = np.zeros_like(beta)
            certificate = self.problem.certificate(beta)
        if certificate.gap > self.options.tol:
            beta, certificate = self._best(beta, certificate)
        if certificate.gap <= self.options.tol:
            self.status = Status.SOLVED
        units = self.problem.units
        return SolverResult(
            beta=units.coefficients(beta),
            intercept=float(units.offset(certificate.intercept)),
            fitted=units.coefficients(certificate.fitted),
            status=self.status,
            primal_objective=units.objective(certificate.primal),
            dual_objective=units.objective(certificate.dual),
            dual_gap=certificate.gap,
            kkt_violation=certificate.violation * units.scale,
            n_iter=n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
        )

    def _best(self, beta: Array, certificate: Certificate) -> tuple[Array, Certificate]:
        """The best point known where none is good enough; a constant may be it."""
        nothing = np.zeros_like(beta)
        points = [(beta, certificate), (nothing, self.problem.certificate(nothing))]
        if self._best_exact is not None:
            points.append(self._best_exact)
        return min(points, key=lambda point: point[1].excess)

    def _fits(self, beta: Array) -> bool:
        """Whether the time limit leaves time for a product with β."""
        limit = self.options.time_limit
        if limit is None:
            return True
        overrun = max(OVERRUN_SHARE * limit, OVERRUN_SECONDS)
        needed = self.problem.gram.certificate_seconds(int(np.count_nonzero(beta)))
        return self.seconds + needed <= limit + overrun
