"""Decomposition: the unsettled variables on a small matrix of their own.

    repeat
        W ← the variables inside a smooth piece and those that violate most
        solve the dual restricted to W on its own Gram matrix   (pair or coordinate core)
        gradient += K[:, W] Δβ_W                                (one pass over |W| rows)
        when these steps have cost as much as a direct solve on W: the direct solve
    until the duality gap, recomputed from the data, is small enough

Plain SMO reads two rows of n numbers a step; here a step reads two rows of |W| numbers that
lie together, and the n-vector is touched once a block. Where many tiny steps would be left
on a settled set, the interior-point method ends it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .active_set import BYTES_A_PAIR, interior_step
from .cores import Core, Rows, core_on
from .interior_point import TYPICAL_STEPS
from .monitor import Monitor
from .problem import Problem
from .result import SolverOptions, SolverResult, Status
from .working import Derivatives

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: what a block's own violation is lowered to, against the violation before it
INNER_TOLERANCE = 0.1
#: steps a block may take per variable in it; fewer on all variables, where nothing has to be
#: gathered and the gap can be looked at again
INNER_STEPS = 40
WHOLE_STEPS = 1
#: from here on blocks are larger: they have to be gathered from longer rows
MANY_SAMPLES = 4000
#: nanoseconds of a block beside its steps
BLOCK_OVERHEAD = 2e5
#: blocks in a row without a single step after which a solve is given up
MOST_IDLE = 5


def solve_block(
    problem: Problem, options: SolverOptions, start: tuple[Array, Array] | None = None
) -> SolverResult:
    """Solve the dual by blocks of unsettled variables.

    Parameters
    ----------
    problem : Problem
    options : SolverOptions
        ``block_size`` is the smallest block; blocks grow with the number of free variables.
    start : (beta, fitted) or None
        A feasible warm start with its Kβ; from zero otherwise.
    """
    monitor = Monitor(problem, options, "block")
    beta, gradient = problem.starting_point(start)
    blocks = _Blocks(problem, options, monitor)
    n_iter = 0
    with monitor:
        while True:
            at = Derivatives.at(problem, beta, gradient)
            if monitor.should_stop(beta, gradient, n_iter, at.offset):
                break
            if monitor.exact is not None:  # the gradient was replaced by the exact one
                at = Derivatives.at(problem, beta, gradient)
            # the gap falls about as the violation does: no need to go far below what is asked
            enough = min(0.5 * options.tol / monitor.gap, 0.5)
            blocks.step(beta, gradient, at, enough)
            n_iter += 1
            if blocks.idle > MOST_IDLE or blocks.exhausted:
                monitor.status = Status.NUMERICAL_ERROR
                break
    return monitor.result(beta, n_iter)


class _Blocks:
    """Chooses blocks and solves them, by steps or directly."""

    def __init__(self, problem: Problem, options: SolverOptions, monitor: Monitor) -> None:
        self.problem = problem
        self.options = options
        self.monitor = monitor
        wanted = options.block_size or (512 if problem.n < MANY_SAMPLES else 1024)
        self.smallest = min(wanted, problem.n, problem.gram.capacity)
        self.work = 0.0
        self.whole_state: Core | None = None
        #: blocks in a row in which no step gained enough
        self.idle = 0
        #: direct solves so far; whether the last one brought nothing; whether one on all variables
        #: did so, from the exact gradient
        self.directs = 0
        self.hopeless = False
        self.exhausted = False

    def step(self, beta: Array, gradient: Array, at: Derivatives, enough: float) -> None:
        """One block, which changes β and gradient."""
        problem, gram = self.problem, self.problem.gram
        size = max(self.smallest, int(1.3 * np.count_nonzero(at.inside)) + 64)
        if self.work >= self.direct_cost(size) and self.direct(beta, gradient, at, size):
            self.work = 0.0
            self.whole_state = None  # it remembers where β was
            return
        size = min(size, gram.capacity, int((gram.spare_bytes / gram.rows.itemsize) ** 0.5))
        share = max(INNER_TOLERANCE, enough) * 0.01**self.idle
        if size >= 0.7 * problem.n and gram.whole:
            everything = np.arange(problem.n)
            gram.require(everything)
            if self.whole_state is None:
                self.whole_state = self.core(everything, beta, gradient)
            self.run(
                self.whole_state, gram.rows, gram.slots, share * at.violation, share, WHOLE_STEPS
            )
            return
        self.whole_state = None
        block = at.unsettled(size)
        matrix = gram.held_block(block)
        local_beta, local_gradient = beta[block], gradient[block]
        state = self.core(block, local_beta, local_gradient)
        self.run(state, matrix, np.arange(len(block)), share * at.violation, share, INNER_STEPS)
        delta = local_beta - beta[block]
        moved = np.flatnonzero(delta)
        beta[block] = local_beta
        gram.add_rows(block[moved], delta[moved], gradient)
        self.work += 0.25 * len(moved) * problem.n

    def core(self, index: Index, beta: Array, gradient: Array) -> Core:
        return core_on(self.problem, index, beta, gradient, neighbours=self.options.neighbours)

    def run(
        self,
        state: Core,
        rows: Rows,
        slots: Index,
        tol: float,
        share: float,
        steps_each: int,
    ) -> None:
        """Steps of the core until the violation is ``tol``, or gains are down to a share.

        Counts their cost in nanoseconds, roughly.
        """
        size = rows.shape[1]
        if not self.problem.offset:
            state.run(rows, slots, None, 0.0, 0)
            tol = state.best_gain * share**2  # a gain goes with the square of the violation
        before = state.steps
        batch = max(500, int(2e7 / size))  # some tens of milliseconds
        left = steps_each * size
        while left > 0 and state.run(rows, slots, None, tol, min(batch, left)):
            left -= batch
        taken = state.steps - before
        self.work += (0.9 if self.problem.offset else 2.0) * size * taken + BLOCK_OVERHEAD
        if taken > 0:
            self.idle = 0
        else:  # much is violated but little to gain, as next to a bound: look closer, or solve
            self.idle += 1
            self.work = max(self.work, self.direct_cost(size))

    def direct_cost(self, size: int) -> float:
        """Nanoseconds, roughly, of a direct solve on ``size`` variables."""
        size = min(size, self.problem.n)
        factors = TYPICAL_STEPS * (0.04 * size**3 / 3 + 5.0 * size**2)
        return factors + 3.0 * size * self.problem.n

    def direct(self, beta: Array, gradient: Array, at: Derivatives, size: int) -> bool:
        """A direct solve on the unsettled variables, if memory allows; whether it helped.

        The first one on a few takes the gradient as it is, rounded rows and all. Later ones
        start from the exact gradient, and go to all variables where fewer brought nothing.
        """
        block = np.arange(self.problem.n) if self.hopeless else at.unsettled(size)
        if BYTES_A_PAIR * len(block) ** 2 > self.problem.gram.spare_bytes:
            self.work = -np.inf
            return False
        if self.directs > 0 or len(block) == self.problem.n:
            np.subtract(self.problem.gram.product(beta), self.problem.y, out=gradient)
        self.directs += 1
        gain = interior_step(
            self.problem, beta, gradient, block, self.options.tol, self.monitor.out_of_time
        )
        if len(block) == self.problem.n:
            self.monitor.certify(beta, gradient)
            self.exhausted = not gain.worthwhile
        self.hopeless = not gain.some and self.directs > 1
        return gain.some
