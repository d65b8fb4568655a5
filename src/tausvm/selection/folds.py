"""The fits of one γ: all its folds on one Gram matrix, C ascending, each from its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.gram import gather_block
from ..estimators.data import Matrix
from ..kernels import Gram, HeldGram, Kernel, KernelGram, Points, make_kernel
from ..kernels.gram import CHUNK_BYTES
from ..losses import Loss
from ..solvers import Problem, Progress, SolverOptions, SolverResult, Status, solve
from ..solvers.newton import serves
from ..solvers.onedim import best_offset
from .scoring import OwnLoss, Score

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
#: from rows of β to values at the validation rows of a fold
Predictor = Callable[[Array], Array]

#: up to this many samples the Gram matrix is held in float64
SMALL = 300
#: up to this many samples fits are solved to rounding, as by the estimators: points of the grid
#: often tie there. More would take longer than choosing needs.
FEW = 60
#: a path along C ends when two fits in a row are worse than an earlier one by so many standard
#: errors of the difference, with so many rows to tell from
OVERFIT_ERRORS = 3.0
ENOUGH_ROWS = 30
#: a gap is recomputed when a fit ends, and may then differ from the one that ended it
ROUNDING = 0.1
#: blocks or systems that a fit may take: the grid has corners where no solver gets far
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to validate with."""

    train: Index
    validation: Index


@dataclass
class StopFlag:
    """Tells the solvers of this process to stop."""

    raised: bool = False

    def __call__(self, progress: object = None) -> bool:
        return self.raised


@dataclass(frozen=True)
class Task:
    """What all fits of a selection share.

    Attributes
    ----------
    X : array or CSR matrix
        The points, or their Gram matrix where ``kernel`` is "precomputed".
    y, weight : arrays (n,)
    folds : sequence of Fold
    losses, scores : sequences, one a level
    order : sequence of int
        The levels in the order in which one is a good start for the next.
    offset : bool
    clip : float, "range" or None
        As in the estimators.
    solver : str
    options : SolverOptions
    megabytes : float
        For kernel values, of one worker.
    keep_models : bool
        Whether the coefficients of every fit are wanted.
    prune : bool
        Whether a path along C may end where it clearly overfits.
    """

    X: Matrix
    y: Array
    weight: Array
    folds: Sequence[Fold]
    losses: Sequence[Loss]
    scores: Sequence[Score]
    order: Sequence[int]
    kernel: str | Callable[..., Array]
    degree: int
    coef0: float
    offset: bool
    clip: float | str | None
    solver: str
    options: SolverOptions
    megabytes: float
    keep_models: bool
    prune: bool
    stop: StopFlag = field(default_factory=StopFlag)


@dataclass
class FoldScores:
    """What one fold says of the values of C at one γ.

    Attributes
    ----------
    scores : array (n_levels, n_costs)
        NaN where no fit was asked for, or none was found.
    predictions : array (n_levels, n_costs, n_validation) or None
    beta : array (n_levels, n_costs, n_train) or None
    intercept : array (n_levels, n_costs)
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    """

    scores: Array
    intercept: Array
    predictions: Array | None = None
    beta: Array | None = None
    unsolved: list[float] = field(default_factory=list)


def fit_gamma(
    task: Task,
    gamma: float,
    folds: Sequence[int],
    costs: Array,
    wanted: Mask,
    keep_predictions: bool = False,
) -> dict[int, FoldScores]:
    """The scores of some folds at one γ.

    Parameters
    ----------
    task : Task
    gamma : float
    folds : sequence of int
        Which of the task's folds.
    costs : array (n_costs,)
        Values of C, ascending.
    wanted : bool array (n_levels, n_costs)
        The points to fit.
    keep_predictions : bool
    """
    found = {}
    for k, fold, gram, predict in _fold_grams(task, gamma, folds):
        judge = _Judge(task, fold, predict)
        beta, result = _fit_path(task, fold, gram, costs, wanted, judge)
        values = predict(beta.reshape(-1, len(fold.train))).reshape(*wanted.shape, -1)
        values = judge.clipped(values + result.intercept[:, :, None])
        for level, cost in zip(*np.nonzero(np.isfinite(result.intercept)), strict=True):
            result.scores[level, cost] = judge.score(level, values[level, cost])
        result.predictions = values if keep_predictions else None
        result.beta = beta if task.keep_models else None
        found[k] = result
    return found


class _Judge:
    """The validation part of a fold: scores, and whether a larger C is still worth a fit."""

    def __init__(self, task: Task, fold: Fold, predict: Predictor) -> None:
        self.task = task
        self.predict = predict
        self.bounds = _clip_bounds(task, fold)
        self.y, self.weight = task.y[fold.validation], task.weight[fold.validation]
        self._best: Array | None = None
        self._worse = 0

    def score(self, level: int, values: Array) -> float:
        return self.task.scores[level](self.y, values, self.weight)

    def clipped(self, values: Array) -> Array:
        return values if self.bounds is None else np.clip(values, *self.bounds)

    def start(self) -> None:
        """A new path along C begins."""
        self._best, self._worse = None, 0

    def overfits(self, level: int, beta: Array, intercept: float) -> bool:
        """Whether this fit and the one before are both clearly worse than an earlier one."""
        score = self.task.scores[level]
        if not self.task.prune or not isinstance(score, OwnLoss):
            return False
        values = self.clipped(self.predict(beta[None])[0] + intercept)
        losses = self.weight * score.loss.value(self.y - values)
        if self._best is None or losses.sum() <= self._best.sum():
            self._best, self._worse = losses, 0
            return False
        more = losses - self._best
        clear = more.mean() > OVERFIT_ERRORS * more.std() / np.sqrt(len(more))
        self._worse = self._worse + 1 if clear else 0
        return self._worse >= 2 and len(more) >= ENOUGH_ROWS


def _clip_bounds(task: Task, fold: Fold) -> tuple[float, float] | None:
    """The range of a fold's predictions, None without one."""
    if task.clip is None:
        return None
    if isinstance(task.clip, str):
        y = task.y[fold.train]
        return float(y.min()), float(y.max())
    return -float(task.clip), float(task.clip)


def _fit_path(
    task: Task, fold: Fold, gram: Gram, costs: Array, wanted: Mask, judge: _Judge
) -> tuple[Array, FoldScores]:
    """β and offsets of all points; NaN offsets where there is no fit."""
    y, weight = task.y[fold.train], task.weight[fold.train]
    gap_clip = None if isinstance(task.clip, str) else task.clip
    beta = np.zeros((*wanted.shape, len(y)))
    path = FoldScores(np.full(wanted.shape, np.nan), np.full(wanted.shape, np.nan))
    below: dict[int, tuple[SolverResult, float]] = {}  # by C: the solution of the level before
    for level in task.order:
        last: tuple[SolverResult, float] | None = None
        risk: float | None = None
        judge.start()
        for k in np.flatnonzero(wanted[level]):
            if task.stop():
                return beta, path
            C = float(costs[k])
            terms = task.losses[level].dual_terms(y, C * weight)
            problem = Problem(gram, y, terms, task.offset, gap_clip)
            if risk is None:
                risk = float(terms.conjugate(y - best_offset(terms, y)).sum()) / C
            starts = [start for start in (last, below.get(int(k))) if start is not None]
            allowed = task.options.tol * risk * C
            result = _solve(task, problem, allowed, _best_start(problem, C, starts))
            if result is None or not np.isfinite(result.dual_gap):
                path.unsolved.append(np.inf)
                continue
            gap = result.primal_objective - result.dual_objective
            if result.status is not Status.SOLVED and gap > allowed * (1 + ROUNDING):
                path.unsolved.append(result.dual_gap)
            last = below[int(k)] = (result, C)
            beta[level, k] = result.beta
            path.intercept[level, k] = result.intercept
            if isinstance(gram, HeldGram) and judge.overfits(level, result.beta, result.intercept):
                break
    return beta, path


def _solve(
    task: Task, problem: Problem, allowed: float, start: SolverResult | None
) -> SolverResult | None:
    """One fit to a duality gap of ``allowed``; None where no solver could do it."""

    def enough(at: Progress) -> bool:
        return task.stop() or at.primal_objective - at.dual_objective <= allowed

    name, options = task.solver, task.options.with_(callback=enough)
    if name == "auto":
        if options.max_iter < 0:
            options = options.with_(max_iter=MOST_ITERATIONS)
        smooth = serves(problem) and not problem.terms.kink.any()
        if problem.n > FEW:
            name = "newton" if smooth else "block"
    try:
        result = solve(problem, name, options, start)
    except ValueError:  # rounding has cost the matrix its definiteness
        result = None
    if result is None or result.status is Status.NUMERICAL_ERROR:
        try:
            return solve(problem, "block", options, start)
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
            problem.gram.add_rows(changed, moved[changed], fitted)
            value = problem.dual_value(beta, fitted)
            if value > most:
                best, most = replace(result, beta=beta, fitted=fitted), value
    return best


def _fold_grams(
    task: Task, gamma: float, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, Gram, Predictor]]:
    """For each fold its Gram matrix, and a function from rows of β to validation values.

    The matrix of all rows is computed once and cut to the folds, if memory allows.
    """
    if isinstance(task.kernel, str) and task.kernel == "precomputed":
        yield from _cut(task, task.X, folds)
        return
    kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
    points = Points(task.X)
    n = len(points)
    dtype = np.float64 if n <= SMALL else np.float32
    largest = max(len(task.folds[k].train) for k in folds)
    needed = np.dtype(dtype).itemsize * (n * n + largest**2)
    if needed <= task.megabytes * 2**20:
        whole = np.empty((n, n), dtype=dtype)
        step = max(1, CHUNK_BYTES // (8 * n))
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            kernel.fill(points.take(rows), points, whole, rows)
        yield from _cut(task, whole, folds)
        return
    for k in folds:
        fold = task.folds[k]
        train, validation = points.take(fold.train), points.take(fold.validation)
        gram = KernelGram(kernel, train, task.megabytes)
        yield k, fold, gram, _kernel_values(kernel, validation, train)


def _kernel_values(kernel: Kernel, validation: Points, train: Points) -> Predictor:
    """Validation values from kernel values computed in pieces."""

    def predict(beta: Array) -> Array:
        out = np.empty((len(beta), len(validation)))
        step = max(1, CHUNK_BYTES // (8 * len(train)))
        for start in range(0, len(validation), step):
            part = slice(start, start + step)
            out[:, part] = beta @ kernel.between(validation.take(part), train).T
        return out

    return predict


def _cut(
    task: Task, whole: Any, folds: Sequence[int]
) -> Iterator[tuple[int, Fold, Gram, Predictor]]:
    """The folds' parts of the matrix of all rows."""
    for k in folds:
        fold = task.folds[k]
        matrix = np.empty((len(fold.train), len(fold.train)), dtype=whole.dtype)
        gather_block(whole, fold.train, fold.train, matrix)
        values = np.asarray(whole[np.ix_(fold.train, fold.validation)], dtype=np.float64)
        yield k, fold, HeldGram(matrix), values.__rmatmul__
