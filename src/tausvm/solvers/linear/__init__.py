"""Solvers of linear machines: no Gram matrix, time linear in the entries of X.

==================  ==================================================================
``dual_cd``         coordinate descent in the dual with shrinking: a few quick passes
``newton``          Newton's method in the primal: many more rows than features
``interior_point``  some twelve factorisations, whatever C and the scales of the features
``auto``            ``dual_cd`` while that promises to arrive first, then one of the others
==================  ==================================================================
"""

from __future__ import annotations

from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status
from ..solver import Solver
from .auto import LinearAuto, Pace
from .dual_cd import DualCD
from .interior_point import LinearInteriorPoint
from .newton import LinearNewton
from .proximal import Proximal
from .systems import Systems
from .work import Work

SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (LinearAuto, DualCD, LinearNewton, LinearInteriorPoint)
}
#: the classes that a solver with settings of its own is made of
SETTINGS = (LinearAuto, DualCD, LinearNewton, LinearInteriorPoint, Pace, Proximal, Systems, Work)


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
    "LinearInteriorPoint",
    "LinearNewton",
    "Pace",
    "Proximal",
    "Systems",
    "Work",
    "solve_from",
    "warm_start",
]
