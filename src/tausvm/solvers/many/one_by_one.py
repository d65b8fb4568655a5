"""Problems of a family one after the other, each from the best of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..newton import serves
from ..problem import Problem
from ..result import Progress, SolverOptions, SolverResult, Status
from .family import Mask, Place, Work

Array = NDArray[np.float64]


def solve_one_by_one(work: Work, wanted: Mask) -> None:
    """Solve the problems wanted; those that have a solution already were too hard to share."""
    family, result, stop = work.family, work.result, work.asked.stop
    before: dict[int, tuple[SolverResult, float]] = {}  # by C: the solution of the loss before
    for loss in range(family.shape[0]):
        last: tuple[SolverResult, float] | None = None
        for k in np.flatnonzero(wanted[loss]).tolist():
            place, C = (loss, k), float(family.costs[k])
            if stop():
                return
            if work.hopeless(place):
                break
            problem = family.problem(place)
            start = _best_start(problem, C, [s for s in (last, before.get(k)) if s is not None])
            found = _solved(work, place, problem, start)
            if found is None or not np.isfinite(found.dual_gap):
                result.failed[place] = True
                continue
            if stop() and found.status is not Status.SOLVED:
                return
            last = before[k] = (found, C)
            gap = found.primal_objective - found.dual_objective
            result.note(place, found.beta, found.intercept, gap, found.primal_objective)
            result.reached[place] = found.status is Status.SOLVED
            work.ended(place, found.beta, found.intercept)


def _solved(
    work: Work, place: Place, problem: Problem, start: SolverResult | None
) -> SolverResult | None:
    """One solution, None without any."""
    from .. import solve  # which is built of everything else

    settings, stop = work.settings, work.asked.stop

    def enough(at: Progress) -> bool:
        gap = at.primal_objective - at.dual_objective
        return stop() or gap <= work.limit(place, at.primal_objective)

    options = SolverOptions(
        tol=work.asked.goal.gap,
        callback=enough,
        max_iter=settings.max_iter,
        time_limit=stop.left,
        clock=stop.clock,
    )
    name = settings.solver
    if name == "auto":
        direct = bool(work.result.solved[place]) and problem.n <= settings.factor_order
        smooth = serves(problem) and not problem.terms.kink.any()
        name = "newton" if smooth else "interior_point" if direct else "block"
    try:
        result = solve(problem, name, options, start)
    except ValueError:  # rounding has cost the matrix its definiteness
        result = None
    if result is None or result.status is Status.NUMERICAL_ERROR:
        try:
            return solve(problem, "block", options.with_(time_limit=stop.left), start)
        except ValueError:
            return result
    return result


def _best_start(
    problem: Problem, C: float, starts: Sequence[tuple[SolverResult, float]]
) -> SolverResult | None:
    """The neighbour with the largest dual value here: as it is, or scaled as C is.

    With small C all variables of a linear loss are at their bounds, and of a squared loss
    proportional to C; with large C they no longer move.
    """
    best, most = None, 0.0  # the value at β = 0
    for result, cost in starts:
        for factor in {1.0, C / cost}:
            beta = problem.feasible(factor * result.beta)
            moved = beta - factor * result.beta
            if np.count_nonzero(moved) > 0.1 * problem.n:
                continue  # its fitted values would cost as much as some steps
            fitted = factor * result.fitted
            changed = np.flatnonzero(moved)
            problem.operator.add_rows(changed, moved[changed], fitted)
            value = problem.dual_value(beta, beta, fitted)
            if value > most:
                best, most = replace(result, beta=beta, fitted=fitted), value
    return best
