"""A primal-dual interior-point method for the joint dual.

The terms hᵢ become barriers (:mod:`.cones`): bounds or halves for the losses, one second-order
cone a sample for ε‖αᵢ‖. Newton's equations then are those of the Gram matrix plus p×p blocks,
and :mod:`.systems` solves them within the Kronecker structure. Some fifteen to twenty-five
steps end at a relative gap of 1e-8, whatever C and the conditioning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..linalg import LinAlgError
from ..result import SolverOptions, Status
from .iterate import Iterate
from .monitor import JointMonitor
from .polish import polished
from .problem import JointProblem, JointResult
from .systems import system_for

Array = NDArray[np.float64]

STEPS = 100
#: steps in a row that may pass without lowering the gap before the method gives up
PATIENCE = 6
#: steps to wait for rows to settle after the gap has closed
WAIT = 4
#: a gap is worth evaluating once the complementarity is within this factor of the tolerance
NEAR = 30.0
#: the solve goes on to this share of tol for rows to settle at zero, down to a gap of FINE
SETTLED = 1e-2
FINE = 1e-8
#: the gap from which on free entries are polished
POLISHED = 1e-4


def solve_interior_point(
    problem: JointProblem, options: SolverOptions, start: JointResult | None = None
) -> JointResult:
    """Solve to the relative gap ``options.tol``.

    A warm start is taken where it is good enough as it is; an interior point cannot use more.
    """
    goal = min(options.tol, max(SETTLED * options.tol, FINE))
    monitor = JointMonitor(problem, options, "interior_point", goal)
    if monitor.begin(start):
        return monitor.result(0)
    walk = _Walk(problem, monitor)
    with monitor:
        walk.run()
        if monitor.gap <= POLISHED:
            exact = polished(problem, monitor.alpha, monitor.intercept)
            if exact is not None:
                monitor.consider(*exact)
    if walk.iterate is not None and monitor.interrupted:
        monitor.consider_last(walk.iterate.alpha, walk.iterate.b)
    return monitor.result(walk.n_iter)


class _Walk:
    """Steps until the gap has closed, a limit is reached or rounding lets it get no further."""

    def __init__(self, problem: JointProblem, monitor: JointMonitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.n_iter = 0
        self.iterate: Iterate | None = None
        self._failures, self._waited, self._best = 0, 0, np.inf
        #: a point with a small gap whose rows and entries had not settled
        self._unsettled: tuple[Array, Array] | None = None

    def run(self) -> None:
        problem = self.problem
        system = system_for(problem.gram, problem.offset)
        iterate = Iterate(problem.y, problem.terms, problem.offset, system, problem.gram.product)
        self.iterate = iterate
        while not self._ended(iterate):
            last = iterate.alpha, iterate.b
            try:
                iterate.step()
            except LinAlgError:
                self._give_up(*last)
                return
            self.n_iter += 1

    def _give_up(self, alpha: Array, b: Array) -> None:
        """End with the best point there was, settled or not."""
        self.monitor.consider(alpha, b)
        if self._unsettled is not None:
            self.monitor.consider(*self._unsettled)
        self.monitor.status = Status.NUMERICAL_ERROR

    def _ended(self, iterate: Iterate) -> bool:
        """Check the gap where that is worth it, and the limits."""
        problem, monitor = self.problem, self.monitor
        options = monitor.options
        nothing = problem.fits_without_kernel(iterate.b)
        near = self.n_iter > 0 and iterate.relative_complementarity() <= NEAR * monitor.goal
        watched = options.callback is not None or 0 <= options.max_iter <= self.n_iter
        last = self.n_iter >= STEPS
        if not (nothing or near or watched or last or monitor.out_of_time()):
            return False
        point = iterate.settled() if near else iterate.alpha
        if monitor.should_stop(0.0 * point if nothing else point, iterate.b, self.n_iter):
            return True
        if not (near or last):
            return False
        reached = monitor.trace[-1].gap
        self._failures = self._failures + 1 if reached > 0.5 * self._best else 0
        self._best = min(self._best, reached)
        # entries may take a few steps more to settle than the gap does to close
        if problem.certified_gap(iterate.alpha, iterate.b) <= monitor.goal:
            self._waited += 1
            self._unsettled = iterate.alpha, iterate.b
        if self._failures > PATIENCE or self._waited > WAIT or self.n_iter >= STEPS:
            self._give_up(iterate.alpha, iterate.b)
            return True
        return False
