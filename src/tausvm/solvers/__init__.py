"""Solvers of the one dual problem.

A solver is its settings: :class:`Block`, :class:`SMO`, :class:`InteriorPoint`, :class:`Newton`, and
for several levels at once :class:`JointInteriorPoint` and :class:`PrimalDualCD` are frozen
dataclasses, called by their names where the defaults will do.

======================  =====================================================
``block``               unsettled variables on a small matrix, direct solves at the end
``smo``                 the papers' sequential minimal optimisation
``interior_point``      twenty factorisations of the whole matrix
``newton``              a few linear systems, for squared losses
``interior_point``      for several levels: steps within the Kronecker structure
``primal_dual_cd``      for several levels: the paper's coordinate descent
``auto``                one of these, by the table that :func:`explain` prints
======================  =====================================================

Problems of a linear machine, those of a :class:`~tausvm.operators.LinearOperator`, have solvers of
their own (:mod:`tausvm.solvers.linear`): ``dual_cd``, ``newton`` and ``auto``.
"""

from __future__ import annotations

import numpy as np

from ..operators import LinearOperator
from . import linear
from .auto import Auto, explain
from .barrier import Barrier
from .block import Block
from .faces import Faces
from .interior_point import InteriorPoint
from .joint.interior_point import JointInteriorPoint
from .joint.settings import Cones, Equations
from .many import Family, Goal, Many, ManyResult, Stop, solve_many
from .newton import Newton
from .polishing import Polishing
from .primal_dual_cd import PrimalDualCD
from .problem import Certificate, Held, Point, Problem, certificate
from .result import Patience, Progress, SolverOptions, SolverResult, Status
from .smo import SMO, WORKING_SETS
from .solver import Solver
from .start import warm_start

_SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (Auto, Block, SMO, InteriorPoint, Newton)
}
_JOINT_SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (Auto, JointInteriorPoint, PrimalDualCD)
}

SOLVERS = tuple(_SOLVERS)
#: for several levels or outputs at once
JOINT_SOLVERS = tuple(_JOINT_SOLVERS)
#: for linear machines
LINEAR_SOLVERS = tuple(linear.SOLVERS)


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    options: SolverOptions | None = None,
    start: SolverResult | Point | None = None,
) -> SolverResult:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        One of ``SOLVERS`` (``JOINT_SOLVERS`` for targets (n, p), ``LINEAR_SOLVERS`` for a linear
        machine), or a solver with settings of its own, such as ``SMO(working_set="halves")``. A
        solver that cannot serve the problem raises a ValueError.
    options : SolverOptions
    start : SolverResult, Point or None
        A warm start: the solution of a problem with the same kernel matrix and another C, τ
        or ε. Its dual variables are clipped to the new bounds, and as much of its fitted
        values as still holds is kept. A point is taken as it is, in the problem's own units.
    """
    chosen = _solver_for(problem, solver)
    options = options or SolverOptions()
    # a step that overflows shows in the objectives, which every check looks at
    with np.errstate(over="ignore", invalid="ignore"):
        if not isinstance(start, SolverResult):
            return chosen.solve(problem, options, start)
        if isinstance(problem.operator, LinearOperator):
            return linear.solve_from(problem, chosen, options, start)
        return chosen.solve(problem, options, warm_start(problem, start))


def every_settings() -> list[type]:
    """The classes that a solver with settings of its own is made of."""
    kinds = {*_SOLVERS.values(), *_JOINT_SOLVERS.values()}
    return [*kinds, Faces, Polishing, Barrier, Cones, Equations, *linear.SETTINGS]


def _solver_for(problem: Problem, solver: str | Solver) -> Solver:
    """A solver by name or as it is given, for the kind of problem that there is."""
    if not isinstance(problem.operator, LinearOperator):
        return solver_named(solver, problem.grouped)
    if isinstance(solver, Solver) and type(solver) in linear.SOLVERS.values():
        return solver
    if isinstance(solver, Solver) or solver not in linear.SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(linear.SOLVERS)}, got {solver!r}")
    return linear.SOLVERS[solver]()


def solver_named(solver: str | Solver, grouped: bool = False) -> Solver:
    """A solver with its default settings by name, or the one given, for one level or several."""
    known = _JOINT_SOLVERS if grouped else _SOLVERS
    if isinstance(solver, Solver):
        if solver.groups not in (None, grouped):
            asked, served = ("several levels", "one") if grouped else ("one level", "several")
            raise ValueError(
                f"solver must be one for {asked}, got one for {served}: {type(solver).__name__}"
            )
        return solver
    if solver not in known:
        raise ValueError(f"solver must be one of {', '.join(known)}, got {solver!r}")
    return known[solver]()


__all__ = [
    "JOINT_SOLVERS",
    "LINEAR_SOLVERS",
    "SMO",
    "SOLVERS",
    "WORKING_SETS",
    "Auto",
    "Barrier",
    "Block",
    "Certificate",
    "Faces",
    "Family",
    "Goal",
    "Held",
    "InteriorPoint",
    "JointInteriorPoint",
    "Many",
    "ManyResult",
    "Newton",
    "Patience",
    "Point",
    "Polishing",
    "PrimalDualCD",
    "Problem",
    "Progress",
    "Solver",
    "SolverOptions",
    "SolverResult",
    "Status",
    "Stop",
    "certificate",
    "every_settings",
    "explain",
    "solve",
    "solve_many",
    "warm_start",
]
