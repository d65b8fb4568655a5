"""Solvers of the one dual problem.

A solver is its settings: :class:`Block`, :class:`SMO`, :class:`InteriorPoint` and :class:`Newton`
are frozen dataclasses, called by their names where the defaults will do.

======================  =====================================================
``block``               unsettled variables on a small matrix, direct solves at the end
``smo``                 the papers' sequential minimal optimisation
``interior_point``      twenty factorisations of the whole matrix
``newton``              a few linear systems, for squared losses
``auto``                one of these, by the table that :func:`explain` prints
======================  =====================================================
"""

from __future__ import annotations

import numpy as np

from .auto import Auto, explain
from .barrier import Barrier
from .block import Block
from .interior_point import InteriorPoint
from .newton import Newton
from .polishing import Polishing
from .problem import Certificate, Held, Point, Problem, certificate
from .result import Patience, Progress, SolverOptions, SolverResult, Status
from .smo import SMO, WORKING_SETS
from .solver import Solver
from .start import warm_start

_SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind for kind in (Auto, Block, SMO, InteriorPoint, Newton)
}

SOLVERS = tuple(_SOLVERS)


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
        One of ``SOLVERS``, or a solver with settings of its own, such as
        ``SMO(working_set="halves")``. A solver that cannot serve the loss raises a ValueError.
    options : SolverOptions
    start : SolverResult, Point or None
        A warm start: the solution of a problem with the same kernel matrix and another C, τ
        or ε. Its dual variables are clipped to the new bounds, and as much of its fitted
        values as still holds is kept. A point is taken as it is, in the problem's own units.
    """
    chosen = solver_named(solver)
    first = warm_start(problem, start) if isinstance(start, SolverResult) else start
    # a step that overflows shows in the objectives, which every check looks at
    with np.errstate(over="ignore", invalid="ignore"):
        return chosen.solve(problem, options or SolverOptions(), first)


def every_settings() -> list[type]:
    """The classes that a solver with settings of its own is made of."""
    return [*_SOLVERS.values(), Polishing, Barrier]


def solver_named(solver: str | Solver) -> Solver:
    """A solver with its default settings by name, or the one given."""
    if isinstance(solver, Solver):
        return solver
    if solver not in _SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {solver!r}")
    return _SOLVERS[solver]()


__all__ = [
    "SMO",
    "SOLVERS",
    "WORKING_SETS",
    "Auto",
    "Barrier",
    "Block",
    "Certificate",
    "Held",
    "InteriorPoint",
    "Newton",
    "Patience",
    "Point",
    "Polishing",
    "Problem",
    "Progress",
    "Solver",
    "SolverOptions",
    "SolverResult",
    "Status",
    "certificate",
    "every_settings",
    "explain",
    "solve",
    "warm_start",
]
