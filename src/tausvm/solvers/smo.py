"""Sequential minimal optimisation, as the papers have it.

With an offset (the SMO-SVR note): pairs of variables by one-sided derivatives over all
indices, the second by second-order gain; shrinking with a final check on the full set.

Without (the ER-SVM paper, Algorithms 1 and 2): one variable of maximal gain, or an exact
pair from WSS 1 or WSS 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import HALVES, NEAREST, SINGLE
from .._core.pairs import NEED_ROW, OPTIMAL
from .cores import core_on
from .monitor import Monitor
from .problem import Problem
from .result import SolverOptions, SolverResult
from .working import Derivatives

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: up to this many samples all rows are computed at once: one call costs more than a row
PREFILL = 2000

_CORE_NUMBERS = {"single": SINGLE, "halves": HALVES, "nearest": NEAREST}

#: batches on a shrunk set before the full one is looked at again
VISIT = 40


def solve_smo(
    problem: Problem, options: SolverOptions, start: tuple[Array, Array] | None = None
) -> SolverResult:
    """Solve the dual by SMO.

    Parameters
    ----------
    problem : Problem
    options : SolverOptions
        ``working_set`` and ``neighbours`` without an offset, ``shrinking`` with one.
    start : (beta, fitted) or None
        A feasible warm start; its fitted values give the gradient for nothing
        (Procedure 3: the old gradient but for the changed terms).
    """
    monitor = Monitor(problem, options, "smo")
    beta, gradient = problem.starting_point(start)
    batch = max(20, problem.n // 4)
    n_iter = 0
    with monitor:
        if problem.n <= PREFILL and problem.gram.whole:
            problem.gram.require(np.arange(problem.n))
        active: Index | None = None
        state: _State | None = None
        tol = np.inf
        visit = 0
        while True:
            if active is None:
                at = Derivatives.at(problem, beta, gradient)
                if monitor.should_stop(beta, gradient, n_iter, at.offset):
                    break
                if monitor.exact is not None:
                    at = Derivatives.at(problem, beta, gradient)
                tol = 0.5 * at.violation * min(options.tol / monitor.gap, 1.0)
                active = _unshrunk(problem, at) if options.shrinking and problem.offset else None
                everyone = active is None or len(active) > 0.9 * problem.n
                active = None if everyone else active
                if state is None or problem.offset:
                    state = _State(problem, options, beta, gradient, active)
                visit = 0
            assert state is not None
            left = options.max_iter - n_iter if options.max_iter >= 0 else batch
            steps, optimal = state.run(tol, min(batch, left))
            n_iter += steps
            visit += 1
            if active is None:
                continue
            done = optimal or visit >= VISIT
            if done or monitor.out_of_time() or 0 <= options.max_iter <= n_iter:
                state.restore(beta, gradient)
                active = None
    return monitor.result(beta, n_iter)


def _unshrunk(problem: Problem, at: Derivatives) -> Index:
    """Variables that could still be part of a violating pair."""
    return np.flatnonzero((at.up > at.down.min()) | (at.down < at.up.max()))


class _State:
    """The core on all variables or on those left by shrinking, with rows as it needs them."""

    def __init__(
        self,
        problem: Problem,
        options: SolverOptions,
        beta: Array,
        gradient: Array,
        active: Index | None,
    ) -> None:
        self.gram = problem.gram
        self.active = active
        index = np.arange(problem.n) if active is None else active
        self.index = index
        self.beta = beta if active is None else beta[active]
        self.gradient = gradient if active is None else gradient[active]
        self.offset = problem.offset
        kind = _CORE_NUMBERS[options.working_set]
        self.core = core_on(problem, index, self.beta, self.gradient, kind, options.neighbours)

    def run(self, tol: float, batch: int) -> tuple[int, bool]:
        """A batch of steps: how many were taken, and whether no step was left to take."""
        before = self.core.steps
        goal = tol if self.offset else 0.0
        while True:
            left = batch - (self.core.steps - before)
            slots = self.gram.slots[self.index]
            status = self.core.run(self.gram.rows, slots, self.active, goal, left)
            if status != NEED_ROW:
                return self.core.steps - before, status == OPTIMAL
            self.gram.require(self.index[[self.core.needed]])

    def restore(self, beta: Array, gradient: Array) -> None:
        """Back from the shrunk set: β, and the gradient of all variables."""
        delta = self.beta - beta[self.index]
        moved = np.flatnonzero(delta)
        beta[self.index] = self.beta
        self.gram.add_rows(self.index[moved], delta[moved], gradient)
