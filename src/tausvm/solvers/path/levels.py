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

from ...losses import DualTerms
from ...operators import GivenKernel
from ...operators.products import HeldProducts
from ..problem import Problem
from ..result import SolverOptions
from .box import MovingBox
from .margin import Margin
from .settings import PathSettings
from .state import Limits, PathError, State

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]


class LevelSolver:
    """Solves single levels of a problem, as many as the settings allow.

    Attributes
    ----------
    affordable : bool
        Whether the kernel matrix, which a level's solve needs, fits.
    """

    def __init__(self, margin: Margin, limits: Limits, settings: PathSettings) -> None:
        self.margin, self.limits, self.settings = margin, limits, settings
        self.nudged = margin.nudged
        n = self.nudged.problem.n
        self.affordable = 8.0 * n**2 <= limits.options.cache_size * 2**20
        self._n_solved = self._misses_in_a_row = 0
        self._kernel: GivenKernel | None = None

    @property
    def allowed(self) -> bool:
        """Whether another level may be solved."""
        return self.affordable and self._n_solved < self.settings.most_levels

    @property
    def promising(self) -> bool:
        """Whether it is likely to meet the tolerance."""
        return self.allowed and self._misses_in_a_row < self.settings.hopeless

    def judge(self, gap: float, again: bool) -> None:
        """How good the last solution turned out to be, and whether it was of a level that a walk
        had reached: then the next one is likely to be as good."""
        missed = gap > self.limits.options.tol
        self._n_solved += self.settings.missed_counts - 1 if missed else 0
        if again:
            self._misses_in_a_row = self._misses_in_a_row + 1 if missed else 0

    def solve(self, box: MovingBox, t: float) -> State:
        """The solution where the box is at t, as a state from which a walk may begin."""
        self.limits.stop_in_time()
        if not self.affordable:
            raise PathError(False)
        self._n_solved += 1
        problem, y = self.nudged.problem, self.nudged.y
        lower, upper = box.lower(t), np.maximum(box.lower(t), box.upper(t))
        terms = DualTerms.build(problem.n, lower=np.minimum(lower, 0), upper=np.maximum(upper, 0))
        beta, offset = self._optimum(Problem(self._matrix(), y, terms, problem.offset))
        beta = problem.feasible(beta, t, box)
        # in boxes far wider than all β these would seem to be at a bound, and their sum lost
        near = self.settings.at_bound * np.minimum(upper - lower, np.abs(beta).max())
        status = np.zeros(problem.n, dtype=np.int8)
        status[beta >= upper - near] = 1
        status[beta <= lower + near] = -1
        status[upper <= lower] = np.where((y - offset)[upper <= lower] < 0, -1, 1)
        beta = np.where(status > 0, upper, np.where(status < 0, lower, beta))
        self._make_independent(beta, status, lower, upper)
        state = State.of(t, beta, status, offset)
        self.margin.evaluate(state)
        return state

    def _matrix(self) -> GivenKernel:
        if self._kernel is None:
            products = self.margin.windows.products
            if isinstance(products, HeldProducts):
                matrix = products.matrix
            else:
                everything = np.arange(len(products))
                matrix = products.block(everything, everything)
            self._kernel = GivenKernel(matrix)
        return self._kernel

    def _optimum(self, problem: Problem) -> tuple[Array, float]:
        from .. import solve  # the table of solvers knows this package's neighbours

        settings, options = self.settings, self.limits.options
        direct = problem.n <= settings.direct
        asked = SolverOptions(
            tol=1e-3 * options.tol,
            max_iter=settings.direct_iterations if direct else settings.block_iterations,
            time_limit=self.limits.seconds_left,
            clock=options.clock,
        )
        result = solve(problem, "interior_point" if direct else "block", asked)
        return result.beta, float(result.intercept)

    def _make_independent(self, beta: Array, status: Signs, lower: Array, upper: Array) -> None:
        """Move free points that depend on the others, until a bound stops them: f stays."""
        free = np.flatnonzero(status == 0)
        if len(free) < 2:
            return
        K = self.margin.windows.matrix(free)
        negligible = self.settings.independence * float(np.diagonal(K).max())
        _, order, rank, _ = dpstrf(K, lower=1, tol=negligible)
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
