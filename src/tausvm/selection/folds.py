"""The scores of some folds at one γ, on Gram matrices that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .columns import FACTORED
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
    hard, slow : bool arrays (n_levels, n_costs)
        Where a fit ran out of steps, or took many.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    """

    scores: Array
    beta: Array
    intercept: Array
    hard: Mask
    slow: Mask
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
    found = {}
    for k, fold, gram, predict in fold_grams(task, gamma, folds):
        judge = Judge(task, fold, predict)
        fits = fit_points(task, fold, gram, costs, wanted, tol, starts[k], judge, rough)
        result = FoldScores(
            np.full(wanted.shape, np.nan),
            fits.beta,
            fits.intercept,
            fits.hard,
            fits.slow,
            fits.unsolved,
        )
        levels, places = np.nonzero(np.isfinite(fits.intercept))
        values = judge.values(fits.beta[levels, places], fits.intercept[levels, places])
        if rough:
            result.losses = np.full((*wanted.shape, len(fold.validation)), np.nan)
        for level in np.unique(levels).tolist():
            here = levels == level
            result.scores[level, places[here]] = judge.scores(level, values[here])
            if result.losses is not None:
                result.losses[level, places[here]] = judge.losses(level, values[here])
        found[k] = result
    return found


def fit_whole(task: Task, gamma: float, costs: Array, wanted: Mask, starts: Starts) -> Fits:
    """Fit some points, (n_levels, n_costs), at one γ on all rows; arguments as above.

    Hard points of many rows have no model: they are left at too large a gap.
    """
    everything = Fold(np.arange(len(task.y)), np.empty(0, dtype=np.int64))
    whole = replace(task, folds=[everything], prune=False)
    found = []
    for _, fold, gram, predict in fold_grams(whole, gamma, [0]):
        judge = Judge(whole, fold, predict)
        tol = task.options.tol
        fits = fit_points(whole, fold, gram, costs, wanted, tol, starts, judge, False)
        if whole.squared and len(gram) > FACTORED:
            fits.intercept[fits.hard] = np.nan
        found.append(fits)
    return found[0]
