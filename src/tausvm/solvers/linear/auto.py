"""``auto``: coordinate descent is quick at first, Newton's method at the end."""

from __future__ import annotations

from ..result import SolverOptions, Status
from .dual_cd import descend
from .monitor import LinearResult, Monitor, Point
from .newton import DIRECT
from .primal import solve_newton
from .problem import LinearProblem
from .proximal import maximise
from .smooth import minimise

#: data up to this size are solved to rounding, whatever the tolerance: it costs milliseconds
FEW_ENTRIES = 20_000
TO_ROUNDING = 1e-11
#: passes of coordinate descent before Newton's method takes over
PASSES = 100


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
    monitor = Monitor(problem, options, "auto")
    first = Monitor(problem, options.with_(max_iter=_passes(options)), "dual_cd")
    point, _ = descend(problem, first.options, first, None if start is None else start.beta)
    monitor.trace, monitor.n_iter, monitor.status = first.trace, first.n_iter, first.status
    if first.status is Status.MAX_ITER and not monitor.limited():
        finish = maximise if problem.bounded else minimise
        point = finish(problem, monitor, point)
    return monitor.result(point)


def _passes(options: SolverOptions) -> int:
    return min(options.max_iter, PASSES) if options.max_iter >= 0 else PASSES
