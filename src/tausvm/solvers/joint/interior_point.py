"""A primal-dual interior-point method for several levels or outputs at once.

The terms hᵢ become barriers (:mod:`.cones`): bounds or halves for the losses, one second-order
cone a sample for ε‖αᵢ‖. Newton's equations then are those of the kernel matrix plus p×p blocks,
and :mod:`.systems` solves them within the Kronecker structure. Some fifteen to twenty-five
steps end at a relative gap of 1e-8, whatever C and the conditioning.

:mod:`tausvm.solvers.barrier` takes the same steps for one level, whose kinks may differ from sample
to sample: halves serve them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..linalg import LinAlgError
from ..monitor import Monitor
from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from .factors import factor_of, largest_rank, of_small_rank
from .iterate import Iterate
from .posing import good_enough
from .settings import Cones, Equations
from .systems import DenseSystem, system_bytes, system_for

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JointInteriorPoint(Solver):
    """Some twenty Newton steps within the Kronecker structure.

    ::

        repeat
            a predictor-corrector step
            settle: rows whose residual is shorter than ε to zero, entries to their bounds
        until the settled point has a small duality gap

    A warm start is taken where it is good enough as it is; an interior point cannot use more.
    """

    name: ClassVar[str] = "interior_point"
    groups: ClassVar[bool | None] = True

    #: steps at most; ten to twenty-five are usual
    steps: int = 100
    #: checks in a row that may fail to halve the gap before the method gives up
    patience: int = 6
    #: steps to wait for rows to settle after the gap has closed
    wait: int = 4
    #: a gap is worth evaluating once the complementarity is within this factor of the tolerance
    near: float = 30.0
    #: with ε > 0 the solve goes on to this share of tol, but no further than to a gap of
    #: ``finest``: two steps more, and up to a sixth fewer support vectors (mcycle, engel,
    #: BostonHousing, airfoil_noise), as many as have residuals longer than ε
    settling: float = 1e-2
    finest: float = 1e-13
    #: for estimates of the cost: steps of a solve, with corners and without, nanoseconds of a step
    #: and of an output in it beside their equations, of an operation of these, of a pair of rows
    #: and output where factors are truncated, and where the directions of k ⊗ B precondition, which
    #: are less alike the more there are, and of a column of a factor of K that is looked for and an
    #: operation for it
    typical_steps: int = 10
    smooth_steps: int = 6
    step_cost: float = 4e5
    output_cost: float = 2e5
    operation_cost: float = 0.025
    pair_cost: float = 4.0
    direction_cost: float = 1.3
    column_cost: float = 1e4
    search_cost: float = 0.03
    cones: Cones = field(default_factory=Cones)
    equations: Equations = field(default_factory=Equations)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        goal = options.tol
        if problem.terms.epsilon > 0:
            goal = min(goal, max(self.settling * goal, self.finest))
        monitor = Monitor(problem, options.with_(tol=goal), self.name)
        walk = _Walk(self, monitor)
        with monitor:
            point = good_enough(monitor, options.tol, start)
            if point is None:
                walk.run(self.equations)
            failed = monitor.status is Status.NUMERICAL_ERROR and walk.gap > options.tol
            if failed and walk.reduced:
                # written out, the equations round less: at C = 1e5 and more (mcycle, engel) they
                # reach a gap of 1e-9 where the reduced ones end at 1e-7
                walk.run(self.equations.written_out())
        result = monitor.result(walk.point if point is None else point, walk.n_iter)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        return result

    def bytes_needed(self, n: int, p: int) -> float:
        """Memory for n rows of p outputs, beside the kernel matrix and factors of it."""
        return system_bytes(n, p, self.equations)

    def least_cost(self, problem: Problem) -> float:
        """Nanoseconds of a solve without its equations."""
        _, p = problem.operator.shape
        return self._steps(problem) * (self.step_cost + self.output_cost * p)

    def longest_search(self, problem: Problem) -> int:
        """The most columns of a factor of K that are looked for; 0 if that is done, or needless."""
        n, p = problem.operator.shape
        if n * p <= self.equations.few or self.equations in problem.operator.kept:
            return 0
        return largest_rank(problem.operator, self.equations)

    def cost_of_search(self, problem: Problem, columns: int) -> float:
        """Nanoseconds of looking for so many columns."""
        return columns * (self.column_cost + self.search_cost * len(problem.operator) * columns)

    def columns_within(self, problem: Problem, cost: float) -> int:
        """How many columns may be looked for at that cost."""
        square = self.search_cost * len(problem.operator)
        half = 0.5 * self.column_cost / square
        return int((half**2 + cost / square) ** 0.5 - half)

    def of_small_rank(self, problem: Problem, columns: int) -> bool:
        """Whether so many columns are all that K has."""
        return of_small_rank(problem.operator, self.equations, columns)

    def _steps(self, problem: Problem) -> int:
        return self.smooth_steps if problem.terms.outputs.smooth else self.typical_steps

    def cost(self, problem: Problem) -> float:
        """Nanoseconds of a solve, roughly: 50 to 5,000 rows of 3 and 9 levels within a factor of
        two, more for corners at C above 100. A factor of K is looked for, and kept with it."""
        n, p = problem.operator.shape
        factor = (
            None if n * p <= self.equations.few else factor_of(problem.operator, self.equations)
        )
        if factor is not None and factor.left is None:
            operations = factor.order**2 * (n + factor.order / 3.0)
            a_step = self.operation_cost * operations
        else:
            operations, a_pair = p * n**3 / 3.0, self.direction_cost * p
            if n * p > self.equations.preconditioned:
                operations, a_pair = min(operations, self.equations.work(n, p)), self.pair_cost
            a_step = self.operation_cost * operations + a_pair * p * n**2
        return self._steps(problem) * (a_step + self.step_cost + self.output_cost * p)

    def fits(self, problem: Problem) -> bool:
        """Whether there is room for that."""
        operator = problem.operator
        return self.bytes_needed(*operator.shape) <= operator.room


class _Walk:
    """Steps until the gap has closed, a limit is reached or rounding lets it get no further."""

    def __init__(self, settings: JointInteriorPoint, monitor: Monitor) -> None:
        self.settings, self.monitor, self.problem = settings, monitor, monitor.problem
        self.n_iter = 0
        self.iterate: Iterate | None = None
        #: the smallest gap so far
        self.gap = np.inf
        self._checked: Point | None = None

    @property
    def point(self) -> Point:
        """Where it ended: the point that was looked at last, or that of the iterate."""
        if self.iterate is None:
            return self.problem.constant_point()
        if self._checked is None:
            return self._feasible(self.iterate.alpha, self.iterate.b)
        return self._checked

    @property
    def reduced(self) -> bool:
        """Whether it went by reduced equations that may also be written out."""
        if self.iterate is None or isinstance(self.iterate.system, DenseSystem):
            return False
        return self.problem.y.size <= self.settings.equations.dense

    def run(self, equations: Equations) -> None:
        """From the centre of all barriers."""
        problem = self.problem
        system = system_for(problem.operator, problem.offset, equations)
        iterate = Iterate(problem.y, problem.terms, problem.offset, system, self.settings.cones)
        self.iterate = iterate
        self._last = self.n_iter + self.settings.steps
        self._failures, self._waited, self._best = 0, 0, np.inf
        while not self._ended(iterate):
            last = iterate.alpha, iterate.b
            self._checked = None
            try:
                iterate.step()
            except LinAlgError:
                self._give_up(*last)
                return
            self.n_iter += 1

    def _feasible(self, alpha: Array, b: Array) -> Point:
        return Point.of(self.problem.feasible(alpha), b)

    def _settled(self, iterate: Iterate) -> Iterator[Point]:
        """Settled points, the second with more caution."""
        for caution in (1.0, self.settings.cones.strict):
            yield self._feasible(*iterate.settled(caution))

    def _give_up(self, alpha: Array, b: Array) -> None:
        """End with the best point there was, settled or not."""
        self._checked = self._feasible(alpha, b)
        self.monitor.certify(self._checked)
        self.monitor.status = Status.NUMERICAL_ERROR

    def _ended(self, iterate: Iterate) -> bool:
        """Check the gap where that is worth it, and the limits."""
        problem, monitor, settings = self.problem, self.monitor, self.settings
        options = monitor.options
        nothing = problem.terms.total_loss(problem.y, 0.0, iterate.b) <= problem.negligible
        near = self.n_iter > 0 and iterate.relative_complementarity() <= settings.near * options.tol
        watched = options.callback is not None or 0 <= options.max_iter <= self.n_iter
        last = self.n_iter >= self._last
        inner = self._feasible(iterate.alpha, iterate.b)
        # to settle takes two solves: only where the gap has closed
        unsettled = monitor.certify(inner).gap if near else np.inf
        closed = unsettled <= options.tol
        points: Iterable[Point] = [inner]
        if nothing:
            points = [self._feasible(0.0 * iterate.alpha, iterate.b)]
        elif closed:
            points = self._settled(iterate)
        if nothing or closed or watched or last or monitor.out_of_time():
            for self._checked in points:
                if monitor.check(self._checked, self.n_iter):
                    return True
        if not (near or last):
            return False
        gap = min(unsettled, monitor.gap) if closed else unsettled
        self._failures = self._failures + 1 if gap > 0.5 * self._best else 0
        self._best = min(self._best, gap)
        # entries may take a few steps more to settle than the gap does to close
        self._waited += closed
        self.gap = min(self.gap, gap)
        if self._failures > settings.patience or self._waited > settings.wait or last:
            self._give_up(iterate.alpha, iterate.b)
            return True
        return False
