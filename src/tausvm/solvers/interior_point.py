"""The interior-point method on all variables of a kernel problem at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .monitor import Monitor
from .polishing import BYTES_A_PAIR, Polishing, interior_step
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .working import Derivatives, starting_point


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Some twenty factorisations of the whole kernel matrix, then core steps that settle bounds.

    ::

        repeat
            the barrier method on all variables, settled at bounds by core steps
        until the duality gap, recomputed from the data, is small enough or no longer halves

    It needs the matrix, a copy and a factor in memory. A start is kept where the method does not
    find better; it begins from its own centre.
    """

    name: ClassVar[str] = "interior_point"

    polishing: Polishing = field(default_factory=Polishing)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        if not fits(problem):
            raise ValueError(
                "solver='interior_point' needs the whole kernel matrix, a copy of it and a factor, "
                f"got {problem.n} samples, for which these do not fit cache_size; raise cache_size "
                "or use solver='block'"
            )
        monitor = Monitor(problem, options, self.name)
        beta, gradient = starting_point(problem, start)
        everything = np.arange(problem.n)
        n_iter, gain = 0, None
        with monitor:
            while not monitor.check_gradient(
                beta, gradient, n_iter, Derivatives.at(problem, beta, gradient).offset
            ):
                if gain is not None and not gain.worthwhile:  # rounding rules
                    monitor.status = Status.NUMERICAL_ERROR
                    break
                gain = interior_step(problem, beta, gradient, everything, monitor, self.polishing)
                n_iter += 1
        return monitor.result(Point.of(beta), n_iter)


def fits(problem: Problem) -> bool:
    """Whether the matrices of a direct solve fit in memory."""
    operator = problem.operator
    return operator.whole and BYTES_A_PAIR * problem.n**2 <= operator.spare_bytes
