"""The scores of some folds at one γ, on Gram matrices that they share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..solvers.monitor import OutOfTime
from .fits import Fits, Starts, fit_points
from .judge import Judge
from .matrices import fold_grams
from .task import Fold, Task

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class FoldScores:
    """What one fold says of the values of C at one γ.

    Attributes
    ----------
    scores : array (n_levels, n_costs)
        NaN where no fit was asked for, or none was found.
    losses : array (n_levels, n_costs, n_validation) or None
        Of the rows, by the levels' own losses.
    beta : array (n_levels, n_costs, n_train)
    intercept : array (n_levels, n_costs)
    hard : bool array (n_levels, n_costs)
        Where a fit ran out of steps.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    """

    scores: Array
    beta: Array
    intercept: Array
    hard: Mask
    unsolved: list[float]
    losses: Array | None = None


def fit_gamma(
    task: Task,
    gamma: float,
    folds: Sequence[int],
    costs: Array,
    wanted: Mask,
    tol: float,
    starts: dict[int, Starts],
    rough: bool,
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
    tol : float
        The gap of the fits, as a share of what constants cost.
    starts : dict
        By fold: where to start, for some of the points.
    rough : bool
        Leave hard fits where they are, and keep the losses of the rows.
    """
    found: dict[int, FoldScores] = {}
    with suppress(OutOfTime):  # what was fitted until then is good
        for k, fold, gram, predict in fold_grams(task, gamma, folds):
            judge = Judge(task, fold, predict)
            fits = fit_points(task, fold, gram, costs, wanted, tol, starts[k], judge, rough)
            found[k] = _judged(judge, fits, keep_losses=rough)
    return found


def _judged(judge: Judge, fits: Fits, keep_losses: bool) -> FoldScores:
    """Fits with their scores."""
    shape = fits.intercept.shape
    result = FoldScores(np.full(shape, np.nan), fits.beta, fits.intercept, fits.hard, fits.unsolved)
    levels, places = np.nonzero(np.isfinite(fits.intercept))
    values = judge.values(fits.beta[levels, places], fits.intercept[levels, places])
    if keep_losses:
        result.losses = np.full((*shape, len(judge.y)), np.nan)
    for level in np.unique(levels).tolist():
        here = levels == level
        result.scores[level, places[here]] = judge.scores(level, values[here])
        if result.losses is not None:
            result.losses[level, places[here]] = judge.losses(level, values[here])
    return result


def fit_whole(task: Task, gamma: float, costs: Array, wanted: Mask, starts: Starts) -> Fits | None:
    """Fit some points, (n_levels, n_costs), at one γ on all rows; None when time is up.

    They are where solves to the tolerance of the model begin.
    """
    everything = Fold.of(
        np.arange(len(task.y)), np.empty(0, dtype=np.int64), task.targets, task.weight
    )
    whole = replace(task, folds=[everything], prune=False)
    with suppress(OutOfTime):
        for _, fold, gram, predict in fold_grams(whole, gamma, [0]):
            judge = Judge(whole, fold, predict)
            tol = task.options.tol
            # points that are hard here are easier for the solvers
            return fit_points(whole, fold, gram, costs, wanted, tol, starts, judge, True)
    return None
