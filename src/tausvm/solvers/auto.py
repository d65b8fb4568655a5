"""What ``auto`` means: one table from the shape of a problem to the solver that serves it best.

``explain(problem)`` prints the table with the row that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ..operators import LinearOperator
from .block import Block
from .interior_point import InteriorPoint, fits
from .joint.interior_point import JointInteriorPoint
from .newton import Newton, serves
from .primal_dual_cd import PrimalDualCD
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .start import warm_start

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
    """The first row of the table that applies; another goes on where rounding stops it.

    That is ``block``, and ``primal_dual_cd`` for several levels. The better of the two is kept.
    """

    name: ClassVar[str] = "auto"
    groups: ClassVar[bool | None] = None

    #: up to this many samples, times levels, a direct solve takes a few milliseconds: it is done,
    #: and to rounding
    few_samples: int = 300
    #: the gap that few samples are solved to, whatever the tolerance
    to_rounding: float = 1e-11
    newton: Newton = field(default_factory=Newton)
    interior_point: InteriorPoint = field(default_factory=InteriorPoint)
    block: Block = field(default_factory=Block)
    joint_interior_point: JointInteriorPoint = field(default_factory=JointInteriorPoint)
    primal_dual_cd: PrimalDualCD = field(default_factory=PrimalDualCD)
    #: passes of ``primal_dual_cd`` after an interior point that rounding stopped: about the work
    #: of a few of its steps
    rescue_passes: int = 1000

    def table(self) -> list[Row]:
        """From the top: the first row that applies."""
        return [
            Row(
                "several levels or outputs, with room for the equations of a step",
                lambda problem: problem.grouped and self.joint_interior_point.fits(problem),
                self.joint_interior_point,
                "ten to twenty steps, however hard the problem is",
            ),
            Row(
                "several levels or outputs",
                lambda problem: problem.grouped,
                self.primal_dual_cd,
                "no matrix beside that of the kernel",
            ),
            Row(
                f"squared loss without ε, at most {self.few_samples} samples",
                self._smooth,
                self.newton,
                "a few factors, to rounding; from there on block calls for them",
            ),
            Row(
                f"at most {self.few_samples} samples, kernel matrix in memory",
                self._few,
                self.interior_point,
                "some 10 ms to a gap of 1e-11 at 300 samples, however hard the problem is",
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

    def _few(self, problem: Problem) -> bool:
        return problem.n <= self.few_samples and fits(problem)

    def choose(self, problem: Problem) -> Row:
        """The row that applies."""
        return choose(self.table(), problem)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        solver = self.choose(problem).solver
        few = problem.y.size <= self.few_samples
        asked = options.with_(tol=min(options.tol, self.to_rounding)) if few else options
        result = solver.solve(problem, asked, start)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        if result.status is Status.NUMERICAL_ERROR and solver is not self._rescuer(problem):
            return self._rescued(problem, options, result)
        return result

    def _rescuer(self, problem: Problem) -> Solver:
        """What goes on where rounding stops another."""
        return self.primal_dual_cd if problem.grouped else self.block

    def _rescued(
        self, problem: Problem, options: SolverOptions, first: SolverResult
    ) -> SolverResult:
        """From where rounding stopped another solver, within what is left of the time."""
        left = options.time_limit
        if left is not None:
            left = max(left - first.seconds, 0.0)
        asked, bounded = options.with_(time_limit=left), False
        if problem.grouped:
            allowed = max(options.max_iter - first.n_iter, 0)
            bounded = options.max_iter < 0 or allowed > self.rescue_passes
            asked = asked.with_(max_iter=self.rescue_passes if bounded else allowed)
        second = self._rescuer(problem).solve(problem, asked, warm_start(problem, first))
        second.seconds += first.seconds
        if second.status is Status.MAX_ITER and bounded:  # a bound that nobody asked for
            second.status = Status.NUMERICAL_ERROR
        first.seconds = second.seconds
        if second.status is Status.STOPPED_BY_CALLBACK:
            return second
        return min(second, first, key=lambda result: result.rank)


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
       interior_point   several levels or outputs, with room for the equations of a step
                        (ten to twenty steps, however hard the problem is)
       primal_dual_cd   several levels or outputs
                        (no matrix beside that of the kernel)
       newton           squared loss without ε, at most 300 samples
                        (a few factors, to rounding; from there on block calls for them)
    -> interior_point   at most 300 samples, kernel matrix in memory
                        (some 10 ms to a gap of 1e-11 at 300 samples, however hard the problem is)
       block            everything else
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
