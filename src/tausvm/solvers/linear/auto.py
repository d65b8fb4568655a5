"""``auto``: what is cheap first, and what is sure where that does not arrive."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..auto import Row
from ..monitor import Monitor
from ..problem import Certificate, Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from ..trail import Trail
from .dual_cd import DualCD, Slow, never
from .interior_point import LinearInteriorPoint
from .newton import LinearNewton
from .work import Costs, Work


@dataclass(frozen=True)
class Pace:
    """When coordinate descent, and after it Newton's method, is given up.

    The fall of the gap so far tells how many passes are still to come. They are too many where they
    would take ``patience`` times as long as the other solver is expected to. So for Newton steps
    and the interior-point method.
    """

    #: the share of the other solver's expected time after which passes are judged: what is lost
    #: where they were in vain
    share: float = 0.2
    #: passes that tell something, and passes after which they are judged whatever the other takes.
    #: Where not even the least are within the share, there are none
    least: int = 5
    most: int = 20
    patience: float = 1.0


@dataclass(frozen=True)
class LinearAuto(Solver):
    """``dual_cd`` while that promises to arrive before ``newton`` or ``interior_point``.

    Which of the two comes then is a matter of what they are expected to cost (:class:`Work`). Where
    Newton's method promises to take longer than the interior-point method, that takes over.
    """

    name: ClassVar[str] = "auto"
    dual_cd: DualCD = field(default_factory=DualCD)
    newton: LinearNewton = field(default_factory=LinearNewton)
    interior_point: LinearInteriorPoint = field(default_factory=LinearInteriorPoint)
    work: Work = field(default_factory=Work)
    pace: Pace = field(default_factory=Pace)
    #: data up to so many entries are solved to rounding, whatever the tolerance: it costs a few
    #: milliseconds, and weights and copies of rows, say, give the same function
    few_entries: int = 1_900
    rounding: float = 1e-11
    #: and for losses without corners, whose solutions differ by the root of that: the last Newton
    #: step takes a gap there
    smooth_rounding: float = 1e-14
    #: passes after which coordinate descent, the last resort, gives up unless they halve the gap
    standstill: int = 1000

    def table(self) -> list[Row]:
        """From the top: the first row that applies."""
        return [
            Row(
                "done before dual_cd could tell how fast it is",
                lambda problem: self._begins(problem) is self.newton,
                self.newton,
                "100,000 × 90 rows take 0.1 to 0.35 s, whatever C",
            ),
            Row(
                "likewise, and cheaper than newton: rows are not many times the features",
                lambda problem: self._begins(problem) is self.interior_point,
                self.interior_point,
                "1,000 × 1,000 rows take 0.15 s, whatever C",
            ),
            Row(
                "everything else; another goes on where the gap falls too slowly",
                lambda problem: True,
                self.dual_cd,
                "20,000 × 100,000 sparse rows of length one take 0.08 to 1.4 s",
            ),
        ]

    def _begins(self, problem: Problem) -> Solver:
        plan = self._plan(problem)
        if not plan.at_once:
            return self.dual_cd
        return self.newton if plan.newton_first(START) else self.interior_point

    def _plan(self, problem: Problem) -> Plan:
        costs = Costs(problem, self.work, self.newton.systems, self.interior_point.most)
        return Plan(self.pace, problem, costs)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        small = problem.operator.entries <= self.few_entries
        rounding = self.smooth_rounding if problem.terms.smooth else self.rounding
        asked = options.with_(tol=min(options.tol, rounding)) if small else options
        relay = Relay(problem, Monitor(problem, asked, ""), start)
        plan = self._plan(problem)
        stand = START
        if not plan.at_once:
            relay.descend(self.dual_cd, PaceWatch(plan, asked.tol).slow)
            stand = relay.stand(plan, asked.tol)
        rest: list[LinearNewton | LinearInteriorPoint] = [self.newton]
        if plan.interior_point < math.inf:
            rest.insert(1 if plan.newton_first(stand) else 0, self.interior_point)
        for solver in rest:
            if not relay.over(asked.tol):
                relay.run(solver, plan.newton_steps if solver is not rest[-1] else math.inf)
        if not relay.over(options.tol):  # rounding has stopped them
            relay.monitor.options = options
            watch = Standstill(self.standstill)
            relay.descend(self.dual_cd, watch.slow)
            if watch.ended:
                relay.monitor.status = Status.NUMERICAL_ERROR
        return relay.result(options.tol)


def way_left(gap: float, tol: float) -> float:
    """The share of the way to ``tol`` that is left, in digits; a tenth at least, since a solve has
    its first and its last steps."""
    if not 0 < tol < 1:
        return 1.0
    return min(1.0, max(0.1, math.log(max(gap, tol) / tol) / math.log(1.0 / tol)))


@dataclass(frozen=True)
class Stand:
    """What is known on the way: shares, of 1 where nothing is.

    Attributes
    ----------
    way : float
        What is left of it (:func:`way_left`).
    fall : float
        What the fit takes away of the best constant's primal.
    free : float
        The rows between their bounds of those that can be.
    """

    way: float = 1.0
    fall: float = 1.0
    free: float = 1.0


START = Stand()


class Plan:
    """What solvers are expected to take, in passes of coordinate descent.

    Attributes
    ----------
    interior_point : float
    least, more, factors : float
        Newton's method: what it takes at least, what it takes more by the way that it has to go,
        and what beyond that where all rows that can be are between bounds.
    newton_steps : float
        Newton steps that take as long as the interior-point method would, if they are dear.
    at_once : bool
        Whether one of them comes first, without any passes.
    first : int
        The pass from which on passes are judged.
    """

    def __init__(self, pace: Pace, problem: Problem, costs: Costs) -> None:
        self.problem, self.patience = problem, pace.patience
        self.least = costs.newton_least / costs.one_pass
        self.more = costs.newton_more / costs.one_pass
        self.interior_point = costs.interior_point / costs.one_pass
        self.factors = costs.factors / costs.one_pass
        self.newton_steps = pace.patience * costs.interior_point / costs.dearest_step
        allowed = pace.share * min(self.newton(START), self.interior_point)
        allowed -= costs.hand_over / costs.one_pass
        self.at_once = allowed < pace.least
        self.first = max(pace.least, min(pace.most, int(min(allowed, pace.most))))

    @cached_property
    def _constant(self) -> float:
        """The primal of the best constant."""
        problem = self.problem
        return problem.terms.total_loss(problem.y, np.zeros(problem.n), problem.constant)

    def fall(self, dual: float) -> float:
        """What a fit takes away of the best constant's primal at most, as a share, by the dual."""
        return min(1.0, max(0.0, 1.0 - dual / self._constant)) if self._constant > 0 else 1.0

    def newton(self, stand: Stand) -> float:
        """Newton's method without factorisations: it goes on from where it begins."""
        return stand.way * (self.least + stand.fall * self.more)

    def newton_first(self, stand: Stand) -> bool:
        """Whether Newton's method comes before the other, which goes the whole way."""
        factors = 1.0 + stand.free**3 * self.factors / self.newton(START)
        return self.newton(stand) * factors <= self.interior_point

    def too_many(self, stand: Stand) -> float:
        """Passes that take as long as the quicker of the others."""
        return self.patience * min(self.newton(stand), self.interior_point)


class Relay:
    """Solvers one after the other on one problem, under one monitor."""

    def __init__(self, problem: Problem, monitor: Monitor, start: Point | None) -> None:
        self.problem, self.monitor, self.start = problem, monitor, start
        self.point: Point | None = None
        self.names: list[str] = []
        #: the highest dual of a solver before, with its β
        self.dual, self.beta = -math.inf, np.empty(0)
        #: the lowest primal of the start and of solvers before, with its w and b
        self.primal, self.function, self.intercept = math.inf, np.empty(0), 0.0

    def over(self, tol: float) -> bool:
        """Whether nobody has to go on: it is solved, or a limit or the user has ended it."""
        monitor = self.monitor
        if self.point is None:
            return False
        if monitor.status is Status.MAX_ITER:  # as before a solve: it was handed over
            return monitor.limited()
        if monitor.status is Status.NUMERICAL_ERROR:
            good = monitor.certifiable() and monitor.certify(self.point).gap <= tol
            return good or monitor.limited()
        return True

    def stand(self, plan: Plan, tol: float) -> Stand:
        """Where the last solver has ended. Rows are free whose β is neither 0 nor at a bound."""
        assert self.point is not None
        beta, terms = self.point.beta, self.problem.terms
        free = np.count_nonzero((beta != 0) & (beta > terms.lower) & (beta < terms.upper))
        most = min(self.problem.n, self.problem.operator.n_features)
        found = self.monitor.exact
        fall = 1.0 if found is None else plan.fall(found.dual)
        return Stand(way_left(self.monitor.gap, tol), fall, min(1.0, free / most))

    def descend(self, solver: DualCD, slow: Slow = never) -> None:
        """Coordinate descent, until ``slow`` says that others are faster."""
        self._note(solver)
        self.point = solver.descend(self.problem, self.monitor, self.start, slow)

    def run(self, solver: LinearNewton | LinearInteriorPoint, too_many: float) -> None:
        """One of the others; Newton's method while it promises no more than so many steps."""
        self._note(solver)
        if isinstance(solver, LinearInteriorPoint):
            self.point = solver.watched(self.problem, self.monitor)
        else:
            slow = NewtonWatch(too_many, self.monitor.n_iter).slow
            self.point = solver.watched(self.problem, self.monitor, self.start, slow)

    def _note(self, solver: Solver) -> None:
        """The next begins at the best w and the best β so far, which need not belong together."""
        monitor = self.monitor
        self.names.append(solver.name)
        monitor.solver = ", ".join(self.names)
        if self.point is not None and monitor.certifiable():
            found = monitor.exact or monitor.certify(self.point)
            if found.dual > self.dual:
                self.dual, self.beta = found.dual, self.point.beta.copy()
            if self.start is not None and self.primal == math.inf:
                # coordinate descent has kept nothing of a start but its β
                self._offer(self.start, monitor.certify(self.start))
            self._offer(self.point, found)
            if self.dual > -math.inf and self.primal < math.inf:  # else nothing has come of it
                self.start = Point(self.beta, self.function, self.intercept)
        monitor.status = Status.MAX_ITER

    def _offer(self, point: Point, found: Certificate) -> None:
        """A w that counts where its primal is lower."""
        if found.primal < self.primal:
            self.primal, self.intercept = found.primal, found.intercept
            self.function = point.function.copy()

    def result(self, tol: float) -> SolverResult:
        """The last w, with the β of a solver before where that is better: the last may have been
        stopped early."""
        monitor, point = self.monitor, self.point
        assert point is not None
        open_end = monitor.status is not Status.SOLVED and monitor.certifiable()
        if self.dual > -math.inf and open_end and monitor.certify(point).dual < self.dual:
            point.beta = self.beta
        result = monitor.result(point, monitor.n_iter)
        if result.dual_gap <= tol:
            result.status = Status.SOLVED
        return result


class Standstill:
    """Notes when passes do not get on at all: where rounding has stopped the others, it may stop
    these too."""

    def __init__(self, passes: int) -> None:
        self.passes, self.ended = passes, False
        self.gap, self.at = math.inf, 0

    def slow(self, n_iter: int, gap: float, dual: float) -> bool:
        """Whether so many passes have not halved the gap."""
        if gap <= 0.5 * self.gap or self.at == 0:
            self.gap, self.at = min(gap, self.gap), n_iter
        self.ended = n_iter - self.at >= self.passes
        return self.ended


class NewtonWatch:
    """Notes when Newton's method is too slow for the way that is left."""

    def __init__(self, too_many: float, begun: int) -> None:
        self.too_many, self.begun = too_many, begun
        self.largest = 0.0

    def slow(self, monitor: Monitor) -> bool:
        """By the fall of the gap since the first step, once they are as many as are too many: the
        first ones promise too little."""
        gap, steps = monitor.gap, monitor.n_iter - self.begun
        self.largest = max(self.largest, min(gap, 1.0))
        if steps < self.too_many or gap <= monitor.options.tol:
            return False
        fall = math.log(self.largest / gap) / steps if 0 < gap < self.largest else 0.0
        left = math.log(gap / monitor.options.tol)
        return left > fall * self.too_many


class PaceWatch:
    """Notes when coordinate descent is too slow for the way that is left."""

    def __init__(self, plan: Plan, tol: float) -> None:
        self.plan, self.tol = plan, tol
        #: what the last three passes seemed to leave of the gap, in units of what is asked for
        self.seen: list[float] = []
        #: passes, and the median of those
        self.trail = Trail()

    def slow(self, n_iter: int, gap: float, dual: float) -> bool:
        """Whether to give up: ``gap`` is how many times more than asked for is left."""
        self.seen = [*self.seen[-2:], gap]
        # one pass may see little of it
        self.trail.note(n_iter, float(np.median(self.seen)))
        if n_iter < self.plan.first:
            return False
        stand = Stand(way_left(gap * self.tol, self.tol), self.plan.fall(dual))
        return self.trail.work_left(1.0) > self.plan.too_many(stand)
