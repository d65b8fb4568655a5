"""Gap checks, limits and the trace: what every driver's loop asks between batches of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .problem import Certificate, Point, Problem, certificate
from .result import Progress, SolverOptions, SolverResult, Status, relative_gap

Array = NDArray[np.float64]


class OutOfTime(Exception):
    """Raised inside long work on the kernel matrix when the time limit is reached."""


@dataclass(frozen=True)
class Estimate:
    """Objectives by values that a solver carries along: good enough to go on, never to end.

    Attributes
    ----------
    primal, dual : float
    rounding : float
        How much of a rise of the dual may be rounding.
    intercept, fitted : float and array
        The offset and the values f(xᵢ) that they were computed with, for rules that look at them.
    """

    primal: float
    dual: float
    rounding: float = 0.0
    intercept: Any = None
    fitted: Array | None = None


class Monitor:
    """Watches one solve; its context ends quietly where time ran out inside it.

    A check with an estimate looks closer where that is small enough, where nothing has been gained
    for long, or where rounded rows may be what keeps the gap from falling: then the point is
    certified from the data, and only that ends the solve. With rows kept in float32 and their
    sums replaced by the exact ones this is iterative refinement: what was rounded is corrected, not
    accepted. A check without an estimate is exact.

    Parameters
    ----------
    problem : Problem
    options : SolverOptions
    solver : str
        Its name, for the result.
    """

    def __init__(self, problem: Problem, options: SolverOptions, solver: str) -> None:
        self.problem = problem
        self.options = options
        self.solver = solver
        self.started = options.clock()
        self.trace: list[Progress] = []
        self.status = Status.MAX_ITER
        #: the certificate of the last check, where that was exact
        self.exact: Certificate | None = None
        #: what was compared with tol at the last check: the relative gap, but for another rule
        self.gap = np.inf
        self.n_iter = 0
        #: the certified point with the smallest rank
        self._best: tuple[Point, Certificate] | None = None
        self._progress = _Progress(problem, options)
        #: how many rows a product with β may take: all, until β has been seen
        self._support = problem.n

    # ---- the clock ----

    def __enter__(self) -> Monitor:
        self._watch_before = self.problem.operator.watch
        if self.options.time_limit is not None:
            self.problem.operator.watch = self._watch
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.problem.operator.watch = self._watch_before
        if kind is not OutOfTime:
            return False
        self.status, self.exact = Status.TIME_LIMIT, None
        return True

    def _watch(self) -> None:
        """Ends long work on the kernel matrix when time is up."""
        if self.out_of_time():
            raise OutOfTime

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    def out_of_time(self) -> bool:
        """Whether what is left of the time limit is needed for the certificate."""
        limit = self.options.time_limit
        if limit is None:
            return False
        return self.seconds + self.problem.operator.certificate_seconds(self._support) >= limit

    def certifiable(self, support: int | None = None) -> bool:
        """Whether a certificate of a point with so many β ≠ 0 outruns the time limit by little."""
        limit, patience = self.options.time_limit, self.options.patience
        if limit is None:
            return True
        overrun = max(patience.overrun_share * limit, patience.overrun_seconds)
        count = self._support if support is None else support
        return self.seconds + self.problem.operator.certificate_seconds(count) <= limit + overrun

    def left(self, **changes: object) -> SolverOptions:
        """The options for a solve within what is left of the time and the iterations."""
        options = self.options
        if options.time_limit is not None:
            changes["time_limit"] = max(options.time_limit - self.seconds, 0.0)
        if options.max_iter >= 0:
            changes["max_iter"] = max(options.max_iter - self.n_iter, 0)
        return options.with_(**changes)

    # ---- looking at points ----

    def certify(self, point: Point) -> Certificate:
        """The certificate of a point, which is kept if none is better."""
        operator = self.problem.operator
        watch, operator.watch = operator.watch, None  # the time for a certificate was kept
        try:
            found = certificate(self.problem, point)
        finally:
            operator.watch = watch
        self.exact = found
        if self._best is None or found.rank < self._best[1].rank:
            self._best = _copied(point, None if self._best is None else self._best[0]), found
        return found

    def check(self, point: Point, n_iter: int, estimate: Estimate | None = None) -> bool:
        """Look at a point, by an estimate or exactly; whether to stop there.

        ``exact`` is its certificate afterwards, or None where the estimate was enough to go on.
        """
        self._seen(point, n_iter)
        if estimate is None:
            found = self.certify(point)
            return self._stops(point, found)
        close = self._judged(point, estimate) <= self.options.tol
        given_up, suspicious = self._progress.note(estimate)
        suspicious = suspicious and self._within_rounding(point, estimate)
        if not (close or given_up or suspicious):
            return self._stops(point, estimate)
        lowest = np.inf if self._best is None else self._best[1].gap
        found = self.certify(point)
        if close:
            given_up = given_up or self._progress.in_vain(found.gap, lowest)
        if self._stops(point, found):
            return True
        if given_up:
            self.status = Status.NUMERICAL_ERROR
        return given_up

    def resume(self) -> None:
        """Look on where nothing was gained any more: with another method, and patience anew."""
        self.status = Status.MAX_ITER
        self._progress = _Progress(self.problem, self.options)

    def _within_rounding(self, point: Point, estimate: Estimate) -> bool:
        """Whether rounded rows can make up what the primal is above the dual."""
        if estimate.fitted is None:
            return True
        reach = self.problem.rounding_reach(point.beta, estimate.fitted, estimate.intercept)
        return estimate.primal - estimate.dual <= self.options.patience.row_rounding * reach

    def _seen(self, point: Point, n_iter: int) -> None:
        self.exact, self.n_iter = None, n_iter
        if point.function is point.beta:
            some = 2 * _support(point.beta) + 1024
            self._support = min(self.problem.n, some)

    def _judged(self, point: Point, look: Estimate | Certificate) -> float:
        """What is compared with ``tol``."""
        rule = self.options.rule
        if rule is None:
            return relative_gap(look.primal, look.dual)
        return rule(self.problem, Point(point.beta, point.function, look.intercept, look.fitted))

    def _stops(self, point: Point, look: Estimate | Certificate) -> bool:
        """Into the trace with it; whether the objectives, the callback or a limit end the solve."""
        options, objective = self.options, self.problem.units.objective
        self.gap = self._judged(point, look)
        progress = Progress(self.n_iter, self.seconds, objective(look.primal), objective(look.dual))
        self.trace.append(progress)
        if not np.isfinite(look.primal + look.dual):  # an unbounded dual: the kernel is not one
            self.status = Status.NUMERICAL_ERROR
        elif self.exact is not None and self.gap <= options.tol:
            self.status = Status.SOLVED if options.rule is None else Status.STOPPED_BY_RULE
        elif options.callback is not None and options.callback(progress):
            self.status = Status.STOPPED_BY_CALLBACK
        else:
            return self.limited()
        return True

    def limited(self) -> bool:
        """Whether time or iterations are used up."""
        if self.out_of_time():
            self.status = Status.TIME_LIMIT
        elif 0 <= self.options.max_iter <= self.n_iter:
            self.status = Status.MAX_ITER
        else:
            return False
        return True

    # ---- solvers that carry the gradient of a kernel problem along ----

    def check_gradient(self, beta: Array, gradient: Array, n_iter: int, offset: float) -> bool:
        """Check the gap at β by the gradient Kβ − y, which becomes exact where it was certified."""
        problem = self.problem
        fitted = gradient + problem.y
        estimate = Estimate(
            problem.primal_value(beta, fitted, offset),
            problem.dual_value(beta, beta, fitted),
            problem.dual_rounding(beta, fitted),
            offset,
            fitted,
        )
        stop = self.check(Point.of(beta), n_iter, estimate)
        self._refresh(gradient)
        return stop

    def certify_gradient(self, beta: Array, gradient: Array) -> Certificate:
        """The certificate at β; the gradient becomes exact."""
        found = self.certify(Point.of(beta))
        self._refresh(gradient)
        return found

    def _refresh(self, gradient: Array) -> None:
        if self.exact is not None:
            np.subtract(self.exact.fitted, self.problem.y, out=gradient)

    # ---- the end ----

    def result(self, point: Point, n_iter: int) -> SolverResult:
        """The result with its certificate: of this point, or of a better one that was seen.

        Where a time limit leaves no time for products, or numbers have overflowed, it is the best
        constant with its gap.
        """
        point, found = self._certified(point)
        if found.gap > self.options.tol and self.options.rule is None:
            point, found = self._best_of(point, found)
        if found.gap <= self.options.tol:
            self.status = Status.SOLVED
        elif self.status is Status.SOLVED:  # promised by an estimate, and not kept by the data
            self.status = Status.NUMERICAL_ERROR
        units = self.problem.units
        beta = units.coefficients(point.beta)
        same = point.function is point.beta
        return SolverResult(
            beta=beta,
            intercept=units.offset(found.intercept),
            fitted=units.values(found.fitted),
            status=self.status,
            primal_objective=units.objective(found.primal),
            dual_objective=units.objective(found.dual),
            dual_gap=found.gap,
            kkt_violation=units.values(found.violation),
            n_iter=n_iter,
            seconds=self.seconds,
            solver=self.solver,
            trace=self.trace,
            function=beta if same else units.coefficients(point.function),
        )

    def _certified(self, point: Point) -> tuple[Point, Certificate]:
        """A point and its certificate, computed afresh unless this very one is the best seen."""
        if self._best is not None and _same(point, self._best[0]):
            return self._best
        numbers = np.isfinite(point.beta).all() and np.isfinite(point.function).all()
        known = point.fitted is not None
        if not numbers or not (known or self.certifiable(_support(point.beta))):
            point = self.problem.constant_point(self.out_of_time)
        return point, certificate(self.problem, point)

    def _best_of(self, point: Point, found: Certificate) -> tuple[Point, Certificate]:
        """The best point known where none is good enough; a constant may be it.

        No dual lies above the primal of another point. Where one does, rounding has made both of
        its objectives, and it is left out.
        """
        constant = self.problem.constant_point(self.out_of_time)
        simplest = certificate(self.problem, constant)
        points = [(point, found), (constant, simplest)]
        if self._best is not None:
            points.append(self._best)
        sound = [pair for pair in points if not pair[1].dual > simplest.primal]
        return min(sound, key=lambda pair: pair[1].rank)


class _Progress:
    """Whether estimates still get better: a lower gap, or a dual higher by more than it rounds."""

    def __init__(self, problem: Problem, options: SolverOptions) -> None:
        self.patience = options.patience
        self.rounded = problem.operator.rounded
        self.highest_dual = -np.inf
        self.lowest_gap = np.inf
        #: checks in a row without a fall of the gap, and without anything gained
        self.stale = self.idle = 0
        #: exact checks in a row that did not keep what the estimate promised
        self.broken = 0

    def note(self, estimate: Estimate) -> tuple[bool, bool]:
        """Whether to give up, and whether rounded rows may be what keeps the gap from falling."""
        patience, gap = self.patience, relative_gap(estimate.primal, estimate.dual)
        fell = gap < patience.fall * self.lowest_gap
        rose = estimate.dual - self.highest_dual > estimate.rounding
        self.stale = 0 if fell else self.stale + 1
        self.idle = 0 if fell or rose else self.idle + 1
        if fell:  # many small falls are one in the end
            self.lowest_gap = gap
        self.highest_dual = max(self.highest_dual, estimate.dual)
        near = gap <= patience.rounded_gap
        enough = patience.stale_checks if near else patience.stale_checks_far
        suspicious = self.rounded and self.stale >= enough
        if suspicious:
            self.stale = 0
        return self.idle > patience.checks, suspicious

    def in_vain(self, gap: float, lowest: float) -> bool:
        """Whether too many exact checks in a row kept nothing of what estimates promised."""
        self.broken = self.broken + 1 if gap > self.patience.fall * lowest else 0
        return self.broken > self.patience.checks


def _support(beta: Array) -> int:
    """How many rows have β ≠ 0."""
    return int(np.count_nonzero(beta if beta.ndim == 1 else beta.any(axis=1)))


def _copied(point: Point, old: Point | None) -> Point:
    """The point in arrays of its own, those of an old copy if any: solvers go on in theirs."""
    same = point.function is point.beta
    if old is None or same != (old.function is old.beta):
        beta = np.empty_like(point.beta)
        old = Point(beta, beta if same else np.empty_like(point.function))
    old.beta[...] = point.beta
    if not same:
        old.function[...] = point.function
    return Point(old.beta, old.function, point.intercept)


def _same(point: Point, other: Point) -> bool:
    """Whether two points have the same numbers."""
    return (
        point.intercept is other.intercept
        and np.array_equal(point.beta, other.beta)
        and (
            (point.function is point.beta and other.function is other.beta)
            or np.array_equal(point.function, other.function)
        )
    )


__all__ = ["Estimate", "Monitor", "OutOfTime"]
