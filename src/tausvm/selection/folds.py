"""The scores of some folds at one γ, on Gram matrices that they share."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..solvers.many import ManyResult, Mask, solve_many
from ..solvers.monitor import OutOfTime
from .judge import Judge
from .matrices import fold_grams
from .task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ask:
    """What is asked of some folds at one γ.

    Attributes
    ----------
    gamma : float
    folds : sequence of int
        Which of the task's folds.
    costs : array (n_costs,)
        Values of C, ascending.
    wanted : bool array (n_levels, n_costs)
        The points to fit.
    rough : bool
        Whether the fits are those of the race: hard ones stay where they are.
    starts : dict
        By fold: where to start, an array (n_levels, n_costs, n_train) with NaN for nowhere.
    """

    gamma: float
    folds: Sequence[int]
    costs: Array
    wanted: Mask
    rough: bool
    starts: dict[int, Array] = field(default_factory=dict)


@dataclass
class FoldScores:
    """What one fold says of the values of C at one γ.

    Attributes
    ----------
    fits : ManyResult
    scores : array (n_levels, n_costs)
        NaN where no fit was asked for, or none was found.
    losses : array (n_levels, n_costs, n_validation) or None
        Of the rows, by the levels' own losses.
    """

    fits: ManyResult
    scores: Array
    losses: Array | None = None

    @property
    def hard(self) -> Mask:
        """Where a fit ran out of steps."""
        return self.fits.solved & ~self.fits.reached

    @property
    def unsolved(self) -> list[float]:
        """The relative gaps of fits that did not get to their goal, infinite without any fit."""
        gaps = self.fits.gap[self.hard] / self.fits.primal[self.hard]
        return [*gaps.tolist(), *[np.inf] * int(np.count_nonzero(self.fits.failed))]


def fit_gamma(task: Task, ask: Ask) -> dict[int, FoldScores]:
    """The scores of some folds at one γ."""
    found: dict[int, FoldScores] = {}
    with suppress(OutOfTime):  # what was fitted until then is good
        for k, fold, gram, predict in fold_grams(task, ask.gamma, ask.folds):
            judge = Judge(task, fold, predict)
            family = task.family(fold, gram, ask.costs)
            starts = ask.starts.get(k)
            # what is known already has been judged before
            validation = judge.validation(len(ask.costs), task.prune and starts is None)
            if task.fitted_by_constant(fold):
                fits = ManyResult.of(family)
                fits.intercept[ask.wanted] = family.y[0]
                fits.reached[ask.wanted] = True
            else:
                fits = solve_many(
                    family,
                    task.goal(ask.rough),
                    ask.wanted,
                    starts,
                    validation,
                    task.stop,
                    task.many(ask.rough),
                )
            if validation is None:
                found[k] = FoldScores(fits, judge.scores(fits))
            else:
                losses = judge.losses(validation, fits)
                scores = -losses.sum(axis=2) / judge.weight.sum()
                found[k] = FoldScores(fits, scores, losses)
    return found
