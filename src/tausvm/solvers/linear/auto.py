"""``auto``: what is cheap first, and what is sure where that does not arrive."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
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
    """When coordinate descent, and Newton's method, are given up for another.

    The fall of the gap so far tells what is still to come. With these numbers 39 of 800 recorded
    shapes (see :mod:`.work`) take more than 1.5 times as long as by the best of the three; half or
    twice any of them makes it 40 to 70.
    """

    #: coordinate descent is first unless this share of its usual passes takes longer than another
    hopeful: float = 1.0
    #: passes that tell something; a share of the usual ones where these are many, up to a number
    least: int = 12
    share: float = 0.05
    most: int = 80
    #: passes end where so many times what another is expected to take is left of them
    patience: float = 1.0
    #: Newton's method is taken where it is expected to take this share of what the interior-point
    #: method is, whose estimates are surer: of 181 shapes none then takes more than 1.5 times the
    #: better of the two, with 0.6 and with 1 it is 13 and 5
    sure: float = 0.8
    #: the share of its usual way that it has from the solution of a problem nearby, under squared
    #: losses and under those with corners
    nearby: float = 0.4
    nearby_corners: float = 0.8
    #: what it may take before it is judged, as a share of what another is expected to take: where
    #: it is expected to be faster than that, and where it is not
    fair: float = 0.4
    trial: float = 0.2
    #: and how many times as long as the other it may be foretold to take then
    newton_patience: float = 3.0


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
    #: data up to so many entries with rows that may be copies or have weights are solved to
    #: rounding, so that weights and copies give the same function
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
                "done before dual_cd is likely to be",
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
        plan = self._plan(problem, SolverOptions().tol)
        if not plan.at_once:
            return self.dual_cd
        return self.newton if plan.worth_newton(math.inf) else self.interior_point

    def _plan(self, problem: Problem, tol: float, started: bool = False) -> Plan:
        costs = Costs(problem, self.work, self.newton.systems, self.interior_point.most, tol)
        return Plan(self.pace, costs, tol, started)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        small = problem.operator.entries <= self.few_entries and problem.repeats
        rounding = self.smooth_rounding if problem.terms.smooth else self.rounding
        asked = options.with_(tol=min(options.tol, rounding)) if small else options
        relay = Relay(problem, Monitor(problem, asked, ""), start)
        plan = self._plan(problem, asked.tol, started=start is not None)
        passes = PaceWatch(plan)
        if not plan.at_once:
            relay.descend(self.dual_cd, passes.slow)
        rests = False  # Newton's method, having been given up, until passes have gone on
        while not relay.over(asked.tol):
            if not rests and plan.worth_newton(passes.left):
                watch = NewtonWatch(plan, problem, passes.left)
                relay.newton(self.newton, watch.slow)
                rests = watch.ended
                plan.newton, plan.way = watch.left if rests else math.inf, 1.0
            elif not plan.too_long(passes.left):
                relay.descend(self.dual_cd, passes.slow)
                rests = False
            elif plan.interior_point < math.inf:
                relay.interior_point(self.interior_point)
                plan.interior_point = math.inf
            elif plan.newton < math.inf:
                relay.newton(self.newton, lambda monitor: False)
                plan.newton = math.inf
            else:
                break
        if not relay.over(options.tol):  # rounding has stopped them
            relay.monitor.options = options
            still = Standstill(self.standstill)
            relay.descend(self.dual_cd, still.slow)
            if still.ended:
                relay.monitor.status = Status.NUMERICAL_ERROR
        return relay.result(options.tol)


def way_left(gap: float, tol: float) -> float:
    """The share of the way to ``tol`` that is left, in digits; a tenth at least, since a solve has
    its first and its last steps."""
    if not 0 < tol < 1:
        return 1.0
    return min(1.0, max(0.1, math.log(max(gap, tol) / tol) / math.log(1.0 / tol)))


class Plan:
    """What solvers are expected to take, in nanoseconds, as far as it is known.

    Attributes
    ----------
    newton, interior_point : float
        What they take; infinite where rounding has stopped them, or the matrices are too large.
    way : float
        The share of the way that is left to go: Newton's method goes on from where it begins.
    at_once : bool
        Whether one of them comes first, without any passes.
    first : float
        The pass from which on passes are judged.
    """

    def __init__(self, pace: Pace, costs: Costs, tol: float, started: bool = False) -> None:
        self.pace, self.costs, self.tol = pace, costs, tol
        self.newton, self.interior_point, self.way = costs.newton, costs.interior_point, 1.0
        if started:
            self.way = pace.nearby if costs.smooth else pace.nearby_corners
        hoped = pace.hopeful * costs.passes * costs.one_pass + costs.hand_over
        self.at_once = hoped > min(self.way * self.newton, self.interior_point)
        self.first = max(pace.least, min(pace.share * costs.passes, pace.most))

    def other(self, passes: float) -> float:
        """What is left without Newton's method, where passes would take so long."""
        return min(passes, self.interior_point)

    def fair(self, passes: float) -> float:
        """What Newton's method may take before it is judged."""
        expected, other = self.way * self.newton, self.other(passes)
        return (self.pace.fair if expected <= other else self.pace.trial) * other

    def worth_newton(self, passes: float) -> bool:
        """Whether Newton's method comes next, where passes would take so long."""
        expected, pace = self.way * self.newton, self.pace
        if expected == math.inf:
            return False
        return pace.patience * expected <= passes and expected <= pace.sure * self.interior_point

    def too_long(self, passes: float) -> bool:
        """Whether that is longer than the interior-point method."""
        return passes > self.pace.patience * self.interior_point or passes == math.inf


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

    def descend(self, solver: DualCD, slow: Slow = never) -> None:
        """Coordinate descent, until ``slow`` says that others are faster."""
        self._note(solver)
        self.point = solver.descend(self.problem, self.monitor, self.start, slow)

    def newton(self, solver: LinearNewton, slow: Callable[[Monitor], bool]) -> None:
        """Newton's method, likewise."""
        self._note(solver)
        self.point = solver.watched(self.problem, self.monitor, self.start, slow)

    def interior_point(self, solver: LinearInteriorPoint) -> None:
        """The interior-point method, from its own start."""
        self._note(solver)
        self.point = solver.watched(self.problem, self.monitor)

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
        self.gap, self.at = math.inf, 0.0

    def slow(self, passes: float, gap: float) -> bool:
        """Whether so many passes have not halved the gap."""
        if gap <= 0.5 * self.gap or self.at == 0:
            self.gap, self.at = min(gap, self.gap), passes
        self.ended = passes - self.at >= self.passes
        return self.ended


class NewtonWatch:
    """Notes when Newton's method promises to take longer than what it came before.

    Of squared losses it tells nothing of what is left but by the gap, which stays at 1 and then
    falls at once: as long again as it took so far, and as long once more, where that is more than
    was expected; less where the gap has begun to fall. With corners it goes by the gap after each
    proximal step, of which the last one tells how long the others will take.

    Attributes
    ----------
    left : float
        What it promised last, in nanoseconds.
    ended : bool
        Whether it was given up.
    """

    #: how many times what it took so far may be left of a squared loss, and the share of that where
    #: the gap is below a number
    as_long: float = 2.0
    falling: float = 0.3
    fallen: float = 0.1
    #: the usual fall of the gap in one proximal step, with few features and with many, and the
    #: least and largest powers of it that are believed
    few_fall: float = 0.1
    many_fall: float = 0.3
    least_power: float = 0.5
    most_power: float = 2.5

    def __init__(self, plan: Plan, problem: Problem, passes: float) -> None:
        self.costs, self.tol, self.tally = plan.costs, plan.tol, problem.operator.tally
        self.begun = self.costs.spent(self.tally)
        self.fair = plan.fair(passes)
        self.most = plan.pace.newton_patience * plan.other(passes)
        self.expected = plan.way * plan.newton
        self.left, self.ended = self.expected, False
        #: what was spent, and the gap, after each proximal step
        self.trail: list[tuple[float, float]] = []

    def slow(self, monitor: Monitor) -> bool:
        """Whether to give up."""
        spent = self.costs.spent(self.tally) - self.begun
        gap = min(monitor.gap, 1.0) if math.isfinite(monitor.gap) else 1.0
        if not self.trail or gap != self.trail[-1][1]:
            self.trail.append((spent, gap))
        self.left = self._of_squares(spent, gap) if self.costs.smooth else self._of_corners(spent)
        self.ended = spent >= self.fair and self.left > self.most
        return self.ended

    def _of_squares(self, spent: float, gap: float) -> float:
        left = max(self.as_long * spent, self.expected - spent)
        return left * (self.falling if gap < self.fallen else 1.0)

    def _of_corners(self, spent: float) -> float:
        usual = -math.log(self.few_fall if self.costs.few else self.many_fall)
        best = min(gap for _, gap in self.trail)
        rate, last, now = usual, 0.0, spent - self.trail[-1][0]
        if len(self.trail) > 1:
            rate = math.log(max(self.trail[0][1], best) / best) / (len(self.trail) - 1)
            rate = min(max(rate, self.least_power * usual), self.most_power * usual)
            last = self.trail[-1][0] - self.trail[-2][0]
        steps = max(1, math.ceil(math.log(max(best / self.tol, 1.0)) / rate))
        one = max(last, now)
        return (steps - 1) * one + max(one - now, self.falling * one)


class PaceWatch:
    """Notes when coordinate descent is too slow for the way that is left.

    Attributes
    ----------
    left : float
        What it is expected to take from here on, in nanoseconds; infinite before it began.
    """

    #: passes are judged again after so many more of them, as a share
    again: float = 0.05

    def __init__(self, plan: Plan) -> None:
        self.plan, self.left = plan, math.inf
        #: what the last three passes seemed to leave of the gap, in units of what is asked for
        self.seen: list[float] = []
        #: passes, and the median of those
        self.trail = Trail()
        self.before, self.next = 0.0, plan.first

    def slow(self, passes: float, gap: float) -> bool:
        """Whether to give up: ``gap`` is how many times more than asked for is left."""
        self.seen = [*self.seen[-2:], gap]
        if self.trail.entries and passes < self.trail.entries[-1][0]:  # it began anew
            self.before = self.trail.entries[-1][0]
        done = self.before + passes
        # one pass may see little of it
        self.trail.note(done, sorted(self.seen)[len(self.seen) // 2])
        if done < self.next:
            return False
        self.next = (1.0 + self.again) * done
        plan = self.plan
        self.left = plan.costs.one_pass * self.trail.work_left(1.0)
        plan.way = way_left(gap * plan.tol, plan.tol)
        return plan.worth_newton(self.left) or plan.too_long(self.left)
