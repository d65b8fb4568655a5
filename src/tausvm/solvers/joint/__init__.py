"""Solvers of the joint problem, by name.

======================  =====================================================
``interior_point``      some twenty Newton steps within the Kronecker structure
``primal_dual_cd``      the paper's Algorithm 1
``auto``                ``interior_point``, then ``primal_dual_cd`` where rounding stops it
======================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..primal_dual_cd import JointOptions, solve_primal_dual_cd
from ..result import SolverOptions, Status
from .interior_point import solve_interior_point
from .offsets import best_offsets
from .problem import JointCertificate, JointProblem, JointResult, rank
from .systems import interior_point_bytes, interior_point_fits

Solver = Callable[[JointProblem, SolverOptions, "JointResult | None"], JointResult]

_SOLVERS: dict[str, Solver] = {
    "interior_point": solve_interior_point,
    "primal_dual_cd": solve_primal_dual_cd,
}

JOINT_SOLVERS = ("auto", *_SOLVERS)


def solve_joint(
    problem: JointProblem,
    solver: str = "auto",
    options: SolverOptions | None = None,
    start: JointResult | None = None,
) -> JointResult:
    """Solve a joint problem.

    Parameters
    ----------
    problem : JointProblem
        Problems on the same Gram object share its factors: keep it for a path of C and ε.
    solver : str
        One of ``JOINT_SOLVERS``.
    options : SolverOptions or JointOptions
    start : JointResult or None
        A warm start: the solution of a problem with the same Gram matrix and another C or ε.
    """
    if solver not in JOINT_SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(JOINT_SOLVERS)}, got {solver!r}")
    options = options or SolverOptions()
    # a step that overflows shows in the objectives, which every check looks at
    with np.errstate(over="ignore", invalid="ignore"):
        if solver != "auto":
            return _SOLVERS[solver](problem, options, start)
        return _solve_auto(problem, options, start)


#: passes of ``primal_dual_cd`` after an interior point that rounding stopped: about the work of
#: a few of its steps
RESCUE_PASSES = 1000


def _solve_auto(
    problem: JointProblem, options: SolverOptions, start: JointResult | None
) -> JointResult:
    """``interior_point``; where rounding stops it, some passes of ``primal_dual_cd`` from there.

    The second begins at what the first had, keeps the better of all points, and is bounded by
    what is left of the limits.
    """
    if not interior_point_fits(problem.gram):
        return solve_primal_dual_cd(problem, options, start)
    first = solve_interior_point(problem, options, start)
    if first.status is not Status.NUMERICAL_ERROR:
        return first
    left = None if options.time_limit is None else max(options.time_limit - first.seconds, 0.0)
    passes = RESCUE_PASSES
    if options.max_iter >= 0:
        passes = min(passes, max(options.max_iter - first.n_iter, 0))
    second = solve_primal_dual_cd(problem, options.with_(time_limit=left, max_iter=passes), first)
    second.seconds += first.seconds
    if second.status is Status.MAX_ITER and passes == RESCUE_PASSES:
        second.status = Status.NUMERICAL_ERROR
    first.seconds = second.seconds
    if second.status is Status.STOPPED_BY_CALLBACK:
        return second
    ranks = [rank(result.dual_gap, result.primal_objective) for result in (first, second)]
    return second if ranks[1] < ranks[0] else first


__all__ = [
    "JOINT_SOLVERS",
    "JointCertificate",
    "JointOptions",
    "JointProblem",
    "JointResult",
    "best_offsets",
    "interior_point_bytes",
    "interior_point_fits",
    "solve_joint",
]
