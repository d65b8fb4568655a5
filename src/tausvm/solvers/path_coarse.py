"""Solutions at single levels, where a path cannot be followed.

Bounds are straight lines in τ: on the straight line between two feasible points every point is
feasible for its τ, and the check of its piece tells how good it is. From a solution at a level a
walk can begin, once its free points are independent of each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from ..kernels.products import HeldProducts
from ..losses import DualTerms
from ..operators import GivenKernel
from .moving_box import MovingBox
from .path_problem import PathError
from .path_walk import INDEPENDENCE, NO_FACTOR, State, Walker
from .problem import Problem
from .result import SolverOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

#: β this near to its bound, as a share of the box and of the largest β, is at it
AT_BOUND = 1e-9
#: up to this many points a level is solved by the interior-point method, to rounding
DIRECT = 1000
#: iterations of a level's solve: each is a whole run of the interior-point method, or many
#: thousands of steps of ``block``
MOST_ITERATIONS = {"interior_point": 4, "block": 200}


class LevelSolver:
    """Solves single levels of the problem that a walker walks."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        if not self.affordable(walker):
            raise PathError(False)
        products = walker.windows.products
        if isinstance(products, HeldProducts):
            matrix = products.matrix
        else:
            everything = np.arange(walker.problem.n)
            matrix = products.block(everything, everything)
        self.gram = GivenKernel(matrix)

    @staticmethod
    def affordable(walker: Walker) -> bool:
        """Whether the kernel matrix, which a level's solve needs, fits."""
        return 8.0 * walker.problem.n**2 <= walker.options.cache_size * 2**20

    def state(self, box: MovingBox, t: float) -> State:
        """The solution where the box is at t, as a state from which a walk may begin."""
        walker = self.walker
        problem = walker.problem
        lower, upper = box.lower(t), np.maximum(box.lower(t), box.upper(t))
        terms = DualTerms.build(problem.n, lower=np.minimum(lower, 0), upper=np.maximum(upper, 0))
        posed = Problem(self.gram, walker.y, terms, problem.offset)
        beta, offset = self._solved(posed)
        beta = problem.feasible(beta, t, box)
        # in boxes far wider than all β these would seem to be at a bound, and their sum lost
        room = AT_BOUND * np.minimum(upper - lower, np.abs(beta).max())
        status = np.zeros(problem.n, dtype=np.int8)
        status[beta >= upper - room] = 1
        status[beta <= lower + room] = -1
        status[upper <= lower] = np.where((walker.y - offset)[upper <= lower] < 0, -1, 1)
        beta = np.where(status > 0, upper, np.where(status < 0, lower, beta))
        self._make_independent(beta, status, lower, upper)
        free = np.flatnonzero(status == 0)
        nothing = np.zeros(problem.n)
        state = State(t, beta, nothing, status, offset, free, NO_FACTOR, nothing)
        walker.evaluate(state)
        return state

    def _solved(self, posed: Problem) -> tuple[Array, float]:
        from . import solve  # the table of solvers knows this module's neighbours

        walker = self.walker
        limit = walker.options.time_limit
        if limit is not None:
            limit = max(limit - walker.seconds, 0.0)
        solver = "interior_point" if posed.n <= DIRECT else "block"
        options = SolverOptions(
            tol=1e-3 * walker.options.tol,
            max_iter=MOST_ITERATIONS[solver],
            time_limit=limit,
            clock=walker.options.clock,
        )
        result = solve(posed, solver, options)
        return result.beta, result.intercept

    def _make_independent(self, beta: Array, status: Signs, lower: Array, upper: Array) -> None:
        """Move free points that depend on the others, until a bound stops them: f stays."""
        free = np.flatnonzero(status == 0)
        if len(free) < 2:
            return
        K = self.walker.windows.matrix(free)
        _, order, rank, _ = dpstrf(K, lower=1, tol=INDEPENDENCE * float(np.diagonal(K).max()))
        order = order - 1
        inner = list(order[:rank])
        for j in order[rank:]:
            try:
                factor = cho_factor(K[np.ix_(inner, inner)], lower=True)
            except LinAlgError:
                return
            way = np.r_[-cho_solve(factor, K[inner, j]), 1.0]
            points = free[[*inner, j]]
            up, down = upper[points] - beta[points], beta[points] - lower[points]
            if down[-1] < up[-1]:
                way = -way
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(way > 0, up / way, np.where(way < 0, -down / way, np.inf))
            first = int(np.argmin(steps))
            beta[points] = np.clip(beta[points] + steps[first] * way, lower[points], upper[points])
            stopped = points[first]
            status[stopped] = 1 if way[first] > 0 else -1
            beta[stopped] = upper[stopped] if way[first] > 0 else lower[stopped]
            if first < len(inner):
                inner[first] = j
