"""Solvers of the one dual problem, by name.

======================  =====================================================
``block``               unsettled variables on a small matrix, direct solves at the end
``smo``                 the papers' sequential minimal optimisation
``interior_point``      twenty factorisations of the whole matrix
``newton``              a few linear systems, for squared losses
``auto``                ``newton`` for squared losses with ε = 0, ``interior_point`` for few
                        samples, else ``block``
======================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .block import solve_block
from .direct import solve_interior_point
from .newton import DIRECT, serves, solve_newton
from .problem import Certificate, Problem
from .result import WORKING_SETS, Progress, SolverOptions, SolverResult, Status
from .smo import solve_smo

Array = NDArray[np.float64]
Solver = Callable[[Problem, SolverOptions, "tuple[Array, Array] | None"], SolverResult]

_SOLVERS: dict[str, Solver] = {
    "block": solve_block,
    "smo": solve_smo,
    "interior_point": solve_interior_point,
    "newton": solve_newton,
}

SOLVERS = ("auto", *_SOLVERS)


#: up to this many samples ``auto`` solves directly and to rounding, whatever the tolerance: it
#: costs a few milliseconds
FEW_SAMPLES = 300
TO_ROUNDING = 1e-11


def choose_solver(problem: Problem) -> str:
    """What ``auto`` means for this problem."""
    held = problem.gram.whole or problem.n <= DIRECT
    if serves(problem) and not problem.terms.kink.any() and held:
        return "newton"
    few = problem.n <= FEW_SAMPLES and problem.gram.whole
    return "interior_point" if few else "block"


def solve(
    problem: Problem,
    solver: str = "auto",
    options: SolverOptions | None = None,
    start: SolverResult | None = None,
) -> SolverResult:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
    solver : str
        One of ``SOLVERS``. A solver that cannot serve the loss raises a ValueError.
    options : SolverOptions
    start : SolverResult or None
        A warm start: the solution of a problem with the same Gram matrix and another C, τ
        or ε. Its dual variables are clipped to the new bounds, and as much of its fitted
        values as still holds is kept.
    """
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    # a step that overflows shows in the objectives, which every check looks at
    with np.errstate(over="ignore", invalid="ignore"):
        return _solved(problem, solver, options or SolverOptions(), start)


def _solved(
    problem: Problem, solver: str, options: SolverOptions, start: SolverResult | None
) -> SolverResult:
    name = choose_solver(problem) if solver == "auto" else solver
    first = None if start is None else warm_start(problem, start)
    if solver != "auto":
        return _SOLVERS[name](problem, options, first)
    few = problem.n <= FEW_SAMPLES
    asked = options.with_(tol=min(options.tol, TO_ROUNDING)) if few else options
    result = _SOLVERS[name](problem, asked, first)
    if result.dual_gap <= options.tol:
        result.status = Status.SOLVED
    if name != "block" and result.status is Status.NUMERICAL_ERROR:
        return _rescued(problem, options, result)
    return result


def _rescued(problem: Problem, options: SolverOptions, result: SolverResult) -> SolverResult:
    """``block`` from where rounding stopped another solver, within what is left of the time."""
    left = options.time_limit
    if left is not None:
        left = max(left - result.seconds, 0.0)
    start = warm_start(problem, result)
    rescued = solve_block(problem, options.with_(time_limit=left), start)
    rescued.seconds += result.seconds
    return rescued if rescued.dual_gap <= result.dual_gap else result


def warm_start(problem: Problem, old: SolverResult) -> tuple[Array, Array]:
    """A feasible β near the old one, and its Kβ: the old one corrected where β was cut."""
    before, fitted = problem.units.into(old.beta), problem.units.into(old.fitted)
    beta = problem.feasible(before)
    moved = beta - before
    changed = np.flatnonzero(moved)
    if len(changed) > problem.n // 2:
        return beta, problem.gram.product(beta)
    problem.gram.add_rows(changed, moved[changed], fitted)
    return beta, fitted


__all__ = [
    "SOLVERS",
    "WORKING_SETS",
    "Certificate",
    "Problem",
    "Progress",
    "SolverOptions",
    "SolverResult",
    "Status",
    "choose_solver",
    "solve",
    "warm_start",
]
