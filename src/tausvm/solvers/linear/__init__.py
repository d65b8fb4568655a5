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

from ..result import SolverOptions
from .auto import solve_auto
from .dual_cd import solve_dual_cd
from .monitor import LinearResult, Point
from .primal import solve_newton
from .problem import LinearProblem, shared_terms
from .rows import Rows

Array = NDArray[np.float64]

_SOLVERS = {"dual_cd": solve_dual_cd, "newton": solve_newton, "auto": solve_auto}

SOLVERS = ("auto", "dual_cd", "newton")


def solve_linear(
    problem: LinearProblem,
    solver: str = "auto",
    options: SolverOptions | None = None,
    start: LinearResult | None = None,
) -> LinearResult:
    """Solve a problem.

    Parameters
    ----------
    problem : LinearProblem
    solver : str
        One of ``SOLVERS``.
    options : SolverOptions
    start : LinearResult or None
        A warm start: the solution of a problem with the same X and another C, τ or ε.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    first = None if start is None else warm_start(problem, start)
    return _SOLVERS[solver](problem, options or SolverOptions(), first)


def warm_start(problem: LinearProblem, old: LinearResult) -> Point:
    """A feasible β near the old one, with the old weights where they are still the better."""
    beta = problem.feasible(old.beta)
    return Point(beta, old.coef, old.intercept)


__all__ = [
    "SOLVERS",
    "LinearProblem",
    "LinearResult",
    "Point",
    "Rows",
    "shared_terms",
    "solve_linear",
    "warm_start",
]
