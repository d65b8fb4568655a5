"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

from ..result import SolverOptions, Status
from .dual_cd import solve_dual_cd
from .monitor import LinearResult, Point
from .newton import DIRECT
from .primal import solve_newton
from .problem import LinearProblem

#: data up to this size are solved to rounding, whatever the tolerance: it costs milliseconds
FEW_ENTRIES = 20_000
TO_ROUNDING = 1e-11


def solve_auto(
    problem: LinearProblem, options: SolverOptions, start: Point | None = None
) -> LinearResult:
    """The solver that is quick for this problem."""
    if problem.d <= DIRECT:
        small = problem.rows.entries <= FEW_ENTRIES
        asked = options.with_(tol=min(options.tol, TO_ROUNDING)) if small else options
        result = solve_newton(problem, asked, start)
        if result.dual_gap <= options.tol:
            result.status = Status.SOLVED
        return result
    return solve_dual_cd(problem, options, start)
