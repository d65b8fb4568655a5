"""Sequential minimal optimisation, as the papers have it.

With an offset (the SMO-SVR note): pairs of variables by one-sided derivatives over all
indices, the second by second-order gain; shrinking with a final check on the full set.

Without (the ER-SVM paper, Algorithms 1 and 2): one variable of maximal gain, or an exact
pair from WSS 1, from WSS 2 or from all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import ALL, HALVES, NEAREST, RULED, SINGLE
from .._core.pairs import NEED_ROW, OPTIMAL
from .cores import Core, coordinates_on, core_on
from .monitor import Monitor
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .working import Derivatives, starting_point

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_CORE_NUMBERS = {"nearest": NEAREST, "halves": HALVES, "single": SINGLE, "all": ALL}
#: how variables are chosen without an offset
WORKING_SETS = tuple(_CORE_NUMBERS)


@dataclass(frozen=True)
class SMO(Solver):
    """Sequential minimal optimisation, as the papers have it."""

    name: ClassVar[str] = "smo"

    #: without an offset: "nearest" (WSS 2), "halves" (WSS 1), "single" (one variable), or "all"
    #: (the best of all pairs, n² a step: the baseline that the others approximate)
    working_set: str = "nearest"
    #: how many nearest points WSS 2 considers; the paper's choice
    neighbours: int = 15
    #: without an offset, squared losses with ε = 0: stop as well at S ≤ this·Σc, the paper's rule
    #: S ≤ ε/(2λ) with C = 1/(2nλ), looked at after every step by its Procedure 2. It is an absolute
    #: rule and says nothing of the relative gap: unless that is within ``tol`` too, the status is
    #: ``STOPPED_BY_RULE``
    paper_tol: float | None = None
    #: with ``paper_tol``: predictions are clipped to ± this in S, the paper's ER-SVM*
    clip: float | None = None
    #: with an offset: leave settled variables out until the final check
    shrinking: bool = True
    #: the share of variables above which shrinking leaves nobody out
    nearly_all: float = 0.9
    #: batches on a shrunk set before the full one is looked at again
    visit: int = 40
    #: a batch has this share of the variables as steps, so that gaps are looked at often enough
    batch_share: float = 0.25
    fewest_steps: int = 20
    #: up to this many samples all rows are computed at once: one call costs more than a row
    prefill: int = 2000

    def __post_init__(self) -> None:
        if self.working_set not in WORKING_SETS:
            names = ", ".join(map(repr, WORKING_SETS))
            raise ValueError(f"working_set must be one of {names}, got {self.working_set!r}")
        if not isinstance(self.neighbours, Integral) or self.neighbours < 1:
            raise ValueError(f"neighbours must be an integer >= 1, got {self.neighbours!r}")
        for name in ("paper_tol", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be None or a number > 0, got {value!r}")
        if self.clip is not None and self.paper_tol is None:
            raise ValueError(f"clip is of the rule paper_tol, which is None, got {self.clip!r}")

    def _check(self, problem: Problem) -> None:
        """A ValueError for a problem that these settings are not for."""
        if self.working_set == "all" and not problem.offset and not problem.operator.whole:
            raise ValueError(
                "working_set='all' needs all rows of the kernel matrix at once, and "
                f"cache_size holds {problem.operator.capacity} of {problem.n}"
            )
        if self.paper_tol is not None and (
            problem.offset or not problem.terms.smooth or problem.terms.kink.any()
        ):
            raise ValueError(
                f"paper_tol={self.paper_tol!r} is a rule for squared losses with epsilon=0 and "
                "without an offset"
            )

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        self._check(problem)
        monitor = Monitor(problem, options, self.name)
        beta, gradient = starting_point(problem, start)
        run = _Run(self, problem, options, monitor)
        n_iter = 0
        with monitor:
            if problem.n <= self.prefill and problem.operator.whole:
                problem.operator.require(np.arange(problem.n))
            while True:
                at = Derivatives.at(problem, beta, gradient)
                if monitor.check_gradient(beta, gradient, n_iter, at.offset):
                    break
                if monitor.exact is not None:  # the gradient was replaced by the exact one
                    at = Derivatives.at(problem, beta, gradient)
                n_iter = run.visit(beta, gradient, at, n_iter)
                if run.ruled:
                    monitor.check_gradient(beta, gradient, n_iter, at.offset)
                    monitor.status = Status.STOPPED_BY_RULE
                    break
        return monitor.result(Point.of(beta), n_iter)


class _Run:
    """What one solve keeps from visit to visit."""

    def __init__(
        self, settings: SMO, problem: Problem, options: SolverOptions, monitor: Monitor
    ) -> None:
        self.settings, self.problem, self.options = settings, problem, options
        self.monitor = monitor
        self.batch = max(settings.fewest_steps, int(settings.batch_share * problem.n))
        self.state: _State | None = None
        #: whether the paper's rule holds
        self.ruled = False

    def visit(self, beta: Array, gradient: Array, at: Derivatives, n_iter: int) -> int:
        """A batch on everybody, or some on those whom shrinking leaves; the steps taken by then."""
        active = self._left_by_shrinking(at)
        if self.state is None or self.problem.offset:
            self.state = _State(self.problem, self.settings, beta, gradient, active)
        tol = 0.5 * at.violation * min(self.options.tol / self.monitor.gap, 1.0)
        for _ in range(1 if active is None else self.settings.visit):
            limit = self.options.max_iter
            left = limit - n_iter if limit >= 0 else self.batch
            steps, optimal = self.state.run(tol, min(self.batch, left))
            n_iter += steps
            self.ruled = self.state.ruled
            if optimal or self.ruled or self.monitor.out_of_time() or 0 <= limit <= n_iter:
                break
        if active is not None:
            self.state.restore(beta, gradient)
        return n_iter

    def _left_by_shrinking(self, at: Derivatives) -> Index | None:
        """Variables that could still be part of a violating pair; None for all."""
        if not (self.settings.shrinking and self.problem.offset):
            return None
        active = np.flatnonzero((at.up > at.down.min()) | (at.down < at.up.max()))
        return None if len(active) > self.settings.nearly_all * self.problem.n else active


class _State:
    """The core on all variables or on those left by shrinking, with rows as it needs them."""

    def __init__(
        self,
        problem: Problem,
        settings: SMO,
        beta: Array,
        gradient: Array,
        active: Index | None,
    ) -> None:
        self.gram = problem.operator
        self.active = active
        index = np.arange(problem.n) if active is None else active
        self.index = index
        self.beta = beta if active is None else beta[active]
        self.gradient = gradient if active is None else gradient[active]
        self.offset = problem.offset
        self.ruled = False
        if problem.offset:
            self.core: Core = core_on(problem, index, self.beta, self.gradient)
            return
        kind = _CORE_NUMBERS[settings.working_set]
        coordinates = coordinates_on(
            problem, index, self.beta, self.gradient, kind, settings.neighbours
        )
        self.core = coordinates
        if settings.paper_tol is not None:
            # Σc of the losses cτr² and c(1 − τ)r², whose ridges are 1/(2cτ) and 1/(2c(1 − τ))
            costs = (0.5 / problem.terms.numbers[3:]).sum()
            bound = np.inf if settings.clip is None else settings.clip / problem.units.scale
            goal = settings.paper_tol * costs / problem.units.scale**2
            coordinates.watch(np.ascontiguousarray(problem.y), goal, bound)

    def run(self, tol: float, batch: int) -> tuple[int, bool]:
        """A batch of steps: how many were taken, and whether no step was left to take."""
        before = self.core.steps
        goal = tol if self.offset else 0.0
        while True:
            left = batch - (self.core.steps - before)
            slots = self.gram.slots[self.index]
            status = self.core.run(self.gram.rows, slots, self.active, goal, left)
            self.ruled = status == RULED
            if status != NEED_ROW:
                return self.core.steps - before, status == OPTIMAL
            self.gram.require(self.index[[self.core.needed]])

    def restore(self, beta: Array, gradient: Array) -> None:
        """Back from the shrunk set: β, and the gradient of all variables."""
        delta = self.beta - beta[self.index]
        moved = np.flatnonzero(delta)
        beta[self.index] = self.beta
        self.gram.add_rows(self.index[moved], delta[moved], gradient)
