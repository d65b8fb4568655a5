"""Solvers of linear machines: no Gram matrix, time linear in the entries of X.

============  ==================================================================
``dual_cd``   coordinate descent in the dual with shrinking: a few quick passes
``newton``    Newton's method in the primal: few features, or high accuracy
``auto``      ``newton`` for few features, else ``dual_cd``, finished by ``newton``
============  ==================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..result import SolverOptions, Status
from .auto import LinearAuto
from .dual_cd import DualCD
from .monitor import LinearResult, Point
from .newton import LinearNewton
from .problem import LinearProblem, shared_terms
from .rows import Rows

Array = NDArray[np.float64]
LinearSolver = DualCD | LinearNewton | LinearAuto

_SOLVERS: dict[str, type[LinearSolver]] = {s.name: s for s in (LinearAuto, DualCD, LinearNewton)}
SOLVERS = tuple(_SOLVERS)


def solve_linear(
    problem: LinearProblem,
    solver: str | LinearSolver = "auto",
    options: SolverOptions | None = None,
    start: LinearResult | None = None,
) -> LinearResult:
    """Solve a problem.

    Parameters
    ----------
    problem : LinearProblem
    solver : str or solver
        One of ``SOLVERS``, or a solver with settings of its own.
    options : SolverOptions
    start : LinearResult or None
        A warm start: the solution of a problem with the same X and another C, τ or ε.
    """
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
        solver = _SOLVERS[solver]()
    options = options or SolverOptions()
    if start is None:
        return solver.solve(problem, options)
    started = options.clock()
    warm = solver.solve(problem, options, warm_start(problem, start))
    if warm.status is not Status.NUMERICAL_ERROR:
        return warm
    # a start may be worse than none
    if options.time_limit is not None:
        left = options.time_limit - (options.clock() - started)
        options = options.with_(time_limit=max(left, 0.0))
    cold = solver.solve(problem, options)
    return cold if cold.dual_gap < warm.dual_gap else warm


def warm_start(problem: LinearProblem, old: LinearResult) -> Point:
    """A feasible β near the old one, with the old weights."""
    units = problem.units
    beta = problem.feasible(units.into(old.beta))
    return Point(beta, units.into(old.coef), units.offset_into(old.intercept))


__all__ = [
    "SOLVERS",
    "DualCD",
    "LinearAuto",
    "LinearNewton",
    "LinearProblem",
    "LinearResult",
    "Point",
    "Rows",
    "shared_terms",
    "solve_linear",
    "warm_start",
]
