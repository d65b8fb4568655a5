"""Solvers of the joint problem, by name.

======================  =====================================================
``interior_point``      some twenty Newton steps within the Kronecker structure
``primal_dual_cd``      the paper's Algorithm 1
``auto``                ``interior_point``, then ``primal_dual_cd`` where rounding stops it
======================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable

from ..primal_dual_cd import JointOptions, solve_primal_dual_cd
from ..result import SolverOptions, Status
from .interior_point import best_offsets, solve_interior_point
from .problem import JointCertificate, JointProblem, JointResult

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
    if solver != "auto":
        return _SOLVERS[solver](problem, options, start)
    result = solve_interior_point(problem, options, start)
    if result.status is not Status.NUMERICAL_ERROR:
        return result
    rescue = solve_primal_dual_cd(problem, options.with_(time_limit=_rest(options, result)), result)
    return rescue if rescue.dual_gap < result.dual_gap else result


#: seconds for the rescue where no limit was given, as a multiple of what was spent so far
RESCUE = 20.0


def _rest(options: SolverOptions, result: JointResult) -> float:
    if options.time_limit is not None:
        return max(options.time_limit - result.seconds, 0.0)
    return max(1.0, RESCUE * result.seconds)


__all__ = [
    "JOINT_SOLVERS",
    "JointCertificate",
    "JointOptions",
    "JointProblem",
    "JointResult",
    "best_offsets",
    "solve_joint",
]
