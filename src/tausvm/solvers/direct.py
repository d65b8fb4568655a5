"""The driver of the interior-point method on the whole problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .active_set import BYTES_A_PAIR, interior_step
from .monitor import Monitor
from .problem import Problem
from .result import SolverOptions, SolverResult, Status
from .working import Derivatives

Array = NDArray[np.float64]


def solve_interior_point(
    problem: Problem, options: SolverOptions, start: tuple[Array, Array] | None = None
) -> SolverResult:
    """The interior-point method on all variables, repeated until the gap is small enough.

    Parameters
    ----------
    problem : Problem
    options : SolverOptions
    start : (beta, fitted) or None
        Kept where the method does not find better; it starts from its own centre.
    """
    if not problem.gram.whole or BYTES_A_PAIR * problem.n**2 > problem.gram.spare_bytes:
        raise ValueError(
            "solver='interior_point' needs the whole kernel matrix, a copy of it and a factor, got "
            f"{problem.n} samples, for which these do not fit cache_size; raise cache_size or use "
            "solver='block'"
        )
    monitor = Monitor(problem, options, "interior_point")
    beta, gradient = problem.starting_point(start)
    everything = np.arange(problem.n)
    n_iter, gain = 0, None
    with monitor:
        while not monitor.should_stop(
            beta, gradient, n_iter, Derivatives.at(problem, beta, gradient).offset
        ):
            if gain is not None and not gain.worthwhile:  # rounding rules
                monitor.status = Status.NUMERICAL_ERROR
                break
            gain = interior_step(
                problem, beta, gradient, everything, options.tol, monitor.out_of_time
            )
            n_iter += 1
    return monitor.result(beta, n_iter)
