"""The fits of one fold at one γ: by columns, along paths, or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import RIDGE_MINUS, RIDGE_PLUS, DualTerms
from ..operators import HeldKernel, KernelOperator
from ..solvers import Problem, Progress, SolverResult, Status, solve
from ..solvers.newton import serves
from .columns import FACTORED, solve_columns
from .judge import ColumnWatch, Judge, PathEnd
from .paths import PathProblem, solve_path
from .task import Fold, Task

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: up to this many samples fits are solved to rounding, as by the estimators: points of the grid
#: often tie there. More would take longer than choosing needs.
FEW = 60
#: tolerances below this are for the solvers, which work in float64
TIGHT = 1e-5
#: the predictions of a squared loss react more to a gap of the same size
SQUARED_SHARE = 0.1
#: the gap as a share of the primal objective, against that of what constants cost
PRIMAL_SHARE = 10.0
#: and so many times as much for losses that grow linearly: steps to small gaps are dear
LINEAR_SHARE = 5.0
#: steps of the columns
MOST_STEPS = 300
ROUGH_STEPS = 60
#: hard problems are solved directly up to this order
DIRECT = 3000
#: a gap is recomputed when a fit ends, and may then differ from the one that ended it
ROUNDING = 0.1
#: blocks or systems that a fit may take: the grid has corners where no solver gets far
MOST_ITERATIONS = 200


@dataclass
class Fits:
    """The fits of one fold at one γ.

    Attributes
    ----------
    beta : array (n_levels, n_costs, n_train)
    intercept : array (n_levels, n_costs)
        NaN where there is no fit.
    hard : bool array (n_levels, n_costs)
        Where steps were not enough.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    """

    beta: Array
    intercept: Array
    hard: Mask
    unsolved: list[float] = field(default_factory=list)


#: by level and number of C: a β to start from
Starts = dict[tuple[int, int], NDArray[np.floating]]


def fit_points(
    task: Task,
    fold: Fold,
    gram: KernelOperator,
    costs: Array,
    wanted: Mask,
    tol: float,
    starts: Starts,
    judge: Judge,
    rough: bool,
) -> Fits:
    """Fit the points wanted, (n_levels, n_costs), to gaps of ``tol`` times what constants cost.

    ``rough`` fits that are hard stay where they are.
    """
    fits = Fits(
        np.zeros((*wanted.shape, len(fold.train))),
        np.full(wanted.shape, np.nan),
        np.zeros_like(wanted),
    )
    if task.fitted_by_constant(fold):
        fits.intercept[wanted] = task.y[fold.train[0]]
        return fits
    points = _Points(task, fold, costs, tol)
    terms = points.terms(0, 0)
    by_solver = task.solver != "auto" or task.options.max_iter >= 0 or tol < TIGHT
    if by_solver or not isinstance(gram, HeldKernel) or len(gram) <= FEW:
        _fit_one_by_one(points, gram, wanted, judge, fits)
    elif np.isinf(terms.upper).all() and not terms.kink.any():
        points.tol *= SQUARED_SHARE
        points.share *= SQUARED_SHARE
        most = ROUGH_STEPS if rough else MOST_STEPS
        gaps = _fit_columns(points, gram, wanted, starts, judge, most, fits)
        if not rough and len(gram) <= FACTORED:
            _fit_one_by_one(points, gram, fits.hard, judge, fits)
        elif not rough:  # they would take longer than all others together
            fits.unsolved += gaps
    elif not (terms.ridge_plus.any() or terms.ridge_minus.any()):
        points.share *= LINEAR_SHARE
        _fit_paths(points, gram, wanted, starts, judge, fits)
        if not rough:
            _fit_one_by_one(points, gram, fits.hard, judge, fits)
    else:
        _fit_one_by_one(points, gram, wanted, judge, fits)
    return fits


class _Points:
    """The problems of a fold: their terms, and the gaps at which they end.

    The gap is a share ``tol`` of what the best constant costs, and not more than ``share`` of the
    primal objective. That counts where the data have little noise, and constants cost much more
    than the best fit.
    """

    def __init__(self, task: Task, fold: Fold, costs: Array, tol: float) -> None:
        self.task = task
        self.fold = fold
        self.y = task.y[fold.train]
        self.costs = costs
        self.tol = tol
        self.share = PRIMAL_SHARE * tol

    def terms(self, level: int, k: int) -> DualTerms:
        return self.task.terms(level, self.fold, float(self.costs[k]))

    def allowed(self, level: int, k: int) -> float:
        """The gap at which a fit ends: a share of what the best constant costs."""
        return self.tol * self.task.risk(level, self.fold) * float(self.costs[k])

    def solved(self, level: int, k: int, gap: float, primal: float) -> bool:
        """Whether a fit got to its gap, or to the relative one that was asked for."""
        enough = max(min(self.allowed(level, k), self.share * primal), self.tol * primal)
        return gap <= enough * (1 + ROUNDING)


def _fit_columns(
    points: _Points,
    gram: HeldKernel,
    wanted: Mask,
    starts: Starts,
    judge: Judge,
    most: int,
    fits: Fits,
) -> list[float]:
    """All points at a time; hard are those that float32 is not enough for.

    Returns the relative gaps of those.
    """
    task = points.task
    places = [(int(level), int(k)) for level, k in np.argwhere(wanted)]
    unit = [loss.dual_terms(np.zeros(1), np.ones(1)).numbers for loss in task.losses]
    # weights of single precision: their largest is 1, and C has the rest
    weight = task.weight[points.fold.train]
    heaviest = float(weight.max())
    ridges = np.array(
        [
            unit[level][[RIDGE_PLUS, RIDGE_MINUS], 0] / (points.costs[k] * heaviest)
            for level, k in places
        ]
    )
    allowed = np.array([points.allowed(*point) for point in places])
    # what is known already has been judged before
    watch = None
    if judge.gives_up and not starts:
        watch = ColumnWatch(judge, [level for level, _ in places])
    matrix = gram.rows.astype(np.float32, copy=False)
    first = np.zeros((len(places), len(gram)), dtype=np.float32)
    for column, place in enumerate(places):
        first[column] = starts.get(place, 0.0)
    found = solve_columns(
        matrix,
        points.y,
        weight / heaviest,
        ridges,
        task.offset,
        allowed,
        points.share,
        first,
        most,
        watch,
        task.stop,
    )
    gaps = []
    stopped = task.stop()
    for column, (level, k) in enumerate(places):
        gap, primal = float(found.gap[column]), float(found.primal[column])
        solved = points.solved(level, k, gap, primal)
        if not np.isfinite(gap) or (stopped and not solved):
            continue
        fits.beta[level, k] = found.beta[column]
        fits.intercept[level, k] = found.intercept[column]
        if not solved:
            fits.hard[level, k] = True
            gaps.append(gap / primal)
    return gaps


def _fit_paths(
    points: _Points, gram: HeldKernel, wanted: Mask, starts: Starts, judge: Judge, fits: Fits
) -> None:
    """Each level along C; hard are those that take too many steps."""
    task = points.task
    for level in task.order:
        ks = np.flatnonzero(wanted[level]).tolist()
        problems = (
            PathProblem(
                float(points.costs[k]),
                points.terms(level, k),
                points.allowed(level, k),
                points.share,
                starts.get((level, k)),
            )
            for k in ks
        )
        path = solve_path(gram, points.y, problems, task.offset, task.stop)
        end = PathEnd(judge, level)
        for k, fit in zip(ks, path, strict=False):
            if task.stop():
                return
            fits.beta[level, k] = fit.beta
            fits.intercept[level, k] = fit.intercept
            fits.hard[level, k] = not points.solved(level, k, fit.gap, fit.primal)
            if not starts and end.reached(fit.beta, fit.intercept):
                break


def _fit_one_by_one(
    points: _Points, gram: KernelOperator, wanted: Mask, judge: Judge, fits: Fits
) -> None:
    """Each point by the solvers, from the best of its neighbours."""
    task = points.task
    below: dict[int, tuple[SolverResult, float]] = {}  # by C: the solution of the level before
    for level in task.order:
        last: tuple[SolverResult, float] | None = None
        end = PathEnd(judge, level)
        for k in np.flatnonzero(wanted[level]).tolist():
            if task.stop():
                return
            C, allowed = float(points.costs[k]), points.allowed(level, k)
            problem = Problem(gram, points.y, points.terms(level, k), task.offset)
            starts = [start for start in (last, below.get(k)) if start is not None]
            start = _best_start(problem, C, starts)
            result = _solve(task, problem, points.tol, allowed, start, fits.hard[level, k])
            if result is None or not np.isfinite(result.dual_gap):
                fits.unsolved.append(np.inf)
                continue
            if result.status is not Status.SOLVED:
                gap = result.primal_objective - result.dual_objective
                if not points.solved(level, k, gap, result.primal_objective):
                    if task.stop():
                        return
                    fits.unsolved.append(result.dual_gap)
            last = below[k] = (result, C)
            fits.beta[level, k] = result.beta
            fits.intercept[level, k] = result.intercept
            if isinstance(gram, HeldKernel) and end.reached(result.beta, result.intercept):
                break


def _solve(
    task: Task,
    problem: Problem,
    tol: float,
    allowed: float,
    start: SolverResult | None,
    hard: bool,
) -> SolverResult | None:
    """One fit to a relative gap of ``tol`` or an absolute one of ``allowed``, None without any."""

    def enough(at: Progress) -> bool:
        gap = at.primal_objective - at.dual_objective
        return task.stop() or gap <= min(allowed, PRIMAL_SHARE * tol * at.primal_objective)

    name = task.solver
    options = task.options.with_(tol=tol, callback=enough, time_limit=task.stop.left)
    if name == "auto":
        if options.max_iter < 0:
            options = options.with_(max_iter=MOST_ITERATIONS)
        smooth = serves(problem) and not problem.terms.kink.any()
        if smooth:
            name = "newton"
        elif problem.n > FEW:
            name = "interior_point" if hard and problem.n <= DIRECT else "block"
    try:
        result = solve(problem, name, options, start)
    except ValueError:  # rounding has cost the matrix its definiteness
        result = None
    if result is None or result.status is Status.NUMERICAL_ERROR:
        try:
            return solve(problem, "block", options.with_(time_limit=task.stop.left), start)
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
