"""Solvers of linear machines: no Gram matrix, time linear in the entries of X.

============  ==================================================================
``dual_cd``   coordinate descent in the dual with shrinking: a few quick passes
``newton``    Newton's method in the primal: few features, or high accuracy
``auto``      ``newton`` for few features, else ``dual_cd``, finished by ``newton``
============  ==================================================================
"""

from __future__ import annotations

from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from .auto import LinearAuto, Pace
from .dual_cd import DualCD
from .newton import LinearNewton
from .proximal import Proximal
from .systems import Systems

SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in (LinearAuto, DualCD, LinearNewton)}
#: the classes that a solver with settings of its own is made of
SETTINGS = (LinearAuto, DualCD, LinearNewton, Pace, Proximal, Systems)


def warm_start(problem: Problem, old: SolverResult) -> Point:
    """A feasible β near the old one, with the old weights and offset."""
    units = problem.units
    beta = problem.feasible(units.into(old.beta))
    return Point(beta, units.into(old.function), float(units.offset_into(old.intercept)))


def solve_from(
    problem: Problem, solver: Solver, options: SolverOptions, start: SolverResult
) -> SolverResult:
    """Solve from the solution of a problem nearby; without it where it has led astray."""
    started = options.clock()
    warm = solver.solve(problem, options, warm_start(problem, start))
    if warm.status is not Status.NUMERICAL_ERROR:
        return warm
    if options.time_limit is not None:
        left = options.time_limit - (options.clock() - started)
        options = options.with_(time_limit=max(left, 0.0))
    cold = solver.solve(problem, options)
    return cold if cold.dual_gap < warm.dual_gap else warm


__all__ = [
    "SETTINGS",
    "SOLVERS",
    "DualCD",
    "LinearAuto",
    "LinearNewton",
    "Pace",
    "Proximal",
    "Systems",
    "solve_from",
    "warm_start",
]
