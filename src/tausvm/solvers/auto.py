"""What ``auto`` means: one table from the shape of a problem to the solver that serves it best.

``explain(problem)`` prints the table with the row that was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from ..operators import LinearOperator
from .block import Block
from .joint.interior_point import JointInteriorPoint
from .newton import Newton, serves
from .primal_dual_cd import PrimalDualCD
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .start import warm_start
from .trail import Trail

if TYPE_CHECKING:
    from .linear import LinearAuto


@dataclass(frozen=True)
class Row:
    """A line of the table: where it applies, the solver, and the measurement behind it."""

    when: str
    applies: Callable[[Problem], bool]
    solver: Solver
    measured: str


@dataclass(frozen=True)
class Auto(Solver):
    """The first row of the table that applies; another goes on where it gets nowhere.

    Where rounding stops a solver that is ``block``, and for several levels ``primal_dual_cd``. That
    one is taken first too, and gives way to ``interior_point`` where its passes would take longer.
    The better of the two is kept.
    """

    name: ClassVar[str] = "auto"
    groups: ClassVar[bool | None] = None

    #: up to this many samples a few factors take less than steps that end in them
    few_samples: int = 200
    #: up to this many rows, where some may be copies or have weights, are solved to this gap, so
    #: that weights and copies give the same function
    tiny_samples: int = 75
    to_rounding: float = 1e-10
    newton: Newton = field(default_factory=Newton)
    block: Block = field(default_factory=Block)
    joint_interior_point: JointInteriorPoint = field(default_factory=JointInteriorPoint)
    primal_dual_cd: PrimalDualCD = field(default_factory=PrimalDualCD)
    #: what passes of ``primal_dual_cd`` take before they are judged, as a share of what the
    #: interior-point method is expected to; and before that is known, for which a factor of K has
    #: to be looked for, as a share of that search: with 0 instead of both, 7 of 50 random places
    #: take more than 1.5 times as long as by the better solver
    joint_trial: float = 0.1
    joint_search: float = 0.5
    #: what a look at whether K is of small rank may cost, as a share of the passes before it: with
    #: it 3,200 rows of two features take 1.15 to 1.36 times as long as by the better solver, 1.6 to
    #: 2.3 times without
    joint_look: float = 0.2
    #: passes of ``primal_dual_cd`` after an interior point that rounding stopped: about the work
    #: of a few of its steps
    rescue_passes: int = 1000

    def table(self) -> list[Row]:
        """From the top: the first row that applies."""
        return [
            Row(
                f"several levels or outputs, at most {self.tiny_samples} samples, with copies",
                lambda problem: problem.grouped and self._tiny(problem),
                self.joint_interior_point,
                "some 10 ms, to rounding",
            ),
            Row(
                "several levels or outputs; interior_point where it promises to be faster",
                lambda problem: problem.grouped,
                self.primal_dual_cd,
                "30 to 100 passes at small C; ten to twenty steps at any",
            ),
            Row(
                f"squared loss without ε, at most {self.few_samples} samples",
                self._smooth,
                self.newton,
                "a few factors, to rounding; from there on block calls for them",
            ),
            Row(
                "everything else",
                lambda problem: True,
                self.block,
                "4 to 5 times as fast as LIBSVM in the geometric mean of 15 problems",
            ),
        ]

    def _smooth(self, problem: Problem) -> bool:
        few = problem.n <= self.few_samples
        return few and serves(problem) and not problem.terms.kink.any()

    def _tiny(self, problem: Problem) -> bool:
        roomy = not problem.grouped or self.joint_interior_point.fits(problem)
        return problem.n <= self.tiny_samples and roomy and problem.repeats

    def choose(self, problem: Problem) -> Row:
        """The row that applies."""
        return choose(self.table(), problem)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        solver = self.choose(problem).solver
        asked = options
        if self._tiny(problem):
            asked = options.with_(tol=min(options.tol, self.to_rounding))
        if solver is self.primal_dual_cd and self.joint_interior_point.fits(problem):
            result = self._joint(problem, asked, start)
        else:
            result = solver.solve(problem, asked, start)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        if result.status is Status.NUMERICAL_ERROR and result.solver != self._rescuer(problem).name:
            return self._rescued(problem, options, result)
        return result

    def _joint(self, problem: Problem, options: SolverOptions, start: Point | None) -> SolverResult:
        """Passes while they promise to arrive before the interior-point method.

        With corners their gap falls about as the inverse square of the passes, from the first ten
        on; without, ever as fast.
        """
        watch = _JointWatch(self, problem, options.tol)
        first = self.primal_dual_cd.watched(problem, options, start, watch.slow)
        if first.status is not Status.NUMERICAL_ERROR:
            return first
        second = self.joint_interior_point.solve(problem, options.after(first))
        second.seconds += first.seconds
        second.n_iter += first.n_iter
        if second.status in (Status.MAX_ITER, Status.TIME_LIMIT) and first.rank < second.rank:
            return replace(first, status=second.status, seconds=second.seconds)
        return second

    def _rescuer(self, problem: Problem) -> Solver:
        """What goes on where rounding stops another."""
        return self.primal_dual_cd if problem.grouped else self.block

    def _rescued(
        self, problem: Problem, options: SolverOptions, first: SolverResult
    ) -> SolverResult:
        """From where rounding stopped another solver, within what is left of the time."""
        asked, bounded = options.after(first), False
        if problem.grouped:
            bounded = asked.max_iter < 0 or asked.max_iter > self.rescue_passes
            asked = asked.with_(max_iter=self.rescue_passes if bounded else asked.max_iter)
        second = self._rescuer(problem).solve(problem, asked, warm_start(problem, first))
        second.seconds += first.seconds
        if second.status is Status.MAX_ITER and bounded:  # a bound that nobody asked for
            second.status = Status.NUMERICAL_ERROR
        first.seconds = second.seconds
        if second.status is Status.STOPPED_BY_CALLBACK:
            return second
        return min(second, first, key=lambda result: result.rank)


class _JointWatch:
    """Notes when passes over several levels promise to take longer than the interior-point method.

    What that costs depends on the rank of K, and to look for it may cost as much as many passes: a
    short look, for few columns, comes first and again after twice the passes.
    """

    def __init__(self, auto: Auto, problem: Problem, tol: float) -> None:
        self.auto, self.problem, self.tol = auto, problem, tol
        self.trail, self.spent = Trail(), 0.0
        #: columns that were looked for already
        self.looked = 0

    def slow(self, n_iter: int, gap: float, a_pass: float) -> bool:
        """Whether to give up after ``n_iter`` passes; the next one takes ``a_pass`` nanoseconds."""
        trail, auto = self.trail, self.auto
        self.spent += a_pass * (n_iter - trail.entries[-1][0]) if trail.entries else 0.0
        trail.note(n_iter, gap)
        if n_iter == 0:
            return False
        smooth = self.problem.terms.outputs.smooth
        passes = (trail.work_left if smooth else trail.square_work_left)(self.tol)
        other = self._other(passes * a_pass)
        return passes * a_pass > other and self.spent > auto.joint_trial * other

    def _other(self, left: float) -> float:
        """What the interior-point method is expected to take; infinite while it is not known."""
        auto, problem, method = self.auto, self.problem, self.auto.joint_interior_point
        left -= method.least_cost(problem)
        columns = method.longest_search(problem)
        search = method.cost_of_search(problem, columns)
        if left <= 0:
            return math.inf
        if self.spent > auto.joint_search * search and left > search:
            return method.cost(problem)
        columns = min(columns, method.columns_within(problem, auto.joint_look * self.spent))
        if columns >= max(2 * self.looked, 1) and left > method.cost_of_search(problem, columns):
            self.looked = columns
            if method.of_small_rank(problem, columns):
                return method.cost(problem)
        return math.inf


def choose(table: Sequence[Row], problem: Problem) -> Row:
    """The row of a table that applies."""
    return next(row for row in table if row.applies(problem))


def explain(problem: Problem, auto: Auto | LinearAuto | None = None) -> str:
    """What ``auto`` would do with a problem, and why: the table, with the row that was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm.losses import Pinball
    >>> from tausvm.operators import GivenKernel
    >>> from tausvm.solvers import Problem, explain
    >>> y = np.arange(4.0)
    >>> terms = Pinball(0.5).dual_terms(y, np.ones(4))
    >>> print(explain(Problem(GivenKernel(np.eye(4)), y, terms, offset=True)))
       interior_point   several levels or outputs, at most 75 samples, with copies
                        (some 10 ms, to rounding)
       primal_dual_cd   several levels or outputs; interior_point where it promises to be faster
                        (30 to 100 passes at small C; ten to twenty steps at any)
       newton           squared loss without ε, at most 200 samples
                        (a few factors, to rounding; from there on block calls for them)
    -> block            everything else
                        (4 to 5 times as fast as LIBSVM in the geometric mean of 15 problems)
    """
    if auto is None:
        from .linear import LinearAuto

        auto = LinearAuto() if isinstance(problem.operator, LinearOperator) else Auto()
    table = auto.table()
    chosen = choose(table, problem)
    lines = []
    for row in table:
        mark = "->" if row is chosen else "  "
        lines.append(f"{mark} {row.solver.name:<16} {row.when}")
        lines.append(f"{'':<20}({row.measured})")
    return "\n".join(lines)
