"""The scores of some folds at one γ, on Gram matrices that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.validation import Validation
from ..operators import KernelOperator
from ..solvers.many import Asked, Family, Mask, PartResults, Predictor, Starts, solve_parts
from ..solvers.monitor import OutOfTime
from ..solvers.result import relative_gap
from .judge import Judge, judged_rows
from .matrices import OneMatrix, WholeMatrix, fold_matrices
from .task import Task

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ask:
    """What is asked of some folds at one γ.

    Attributes
    ----------
    gamma : float
    folds : range
        Which of the task's folds.
    costs : array (n_costs,)
        Values of C, ascending.
    wanted : bool array (n_levels, n_costs)
        The points to fit.
    rough : bool
        Whether the fits are those of the race: hard ones stay where they are.
    """

    gamma: float
    folds: range
    costs: Array
    wanted: Mask
    rough: bool


@dataclass(frozen=True)
class FoldScores:
    """What some folds say of the values of C at one γ; arrays have a row for each of them.

    Attributes
    ----------
    folds : range
    scores : array (n_folds, n_levels, n_costs)
        NaN where no fit was asked for, or none was found.
    intercept : array (n_folds, n_levels, n_costs)
    hard : bool array (n_folds, n_levels, n_costs)
        Where a fit ran out of steps.
    unsolved : list of float
        The relative gaps of fits that did not get to their goal, infinite without any fit.
    losses : array (n_folds, n_levels, n_costs, n_validation) or None
        Of the rows, by the levels' own losses in the user's units; 0 beyond those of a fold.
    """

    folds: range
    scores: Array
    intercept: Array
    hard: Mask
    unsolved: list[float]
    losses: Array | None

    @classmethod
    def of(
        cls, folds: range, fits: PartResults, scores: Array, losses: Array | None = None
    ) -> FoldScores:
        hard = fits.solved & ~fits.reached
        primal, gap = fits.primal[hard].tolist(), fits.gap[hard].tolist()
        gaps = [relative_gap(p, p - g) for p, g in zip(primal, gap, strict=True)]
        gaps += [np.inf] * int(np.count_nonzero(fits.failed))
        return cls(folds, scores, fits.intercept, hard, gaps, losses)

    @property
    def fitted(self) -> Mask:
        """Where there is a fit."""
        return np.isfinite(self.scores)


@dataclass(frozen=True)
class FoldFits:
    """The fits of some folds at one γ, for those to come.

    Attributes
    ----------
    folds : range
    costs : array (n_costs,)
    fitted : bool array (n_folds, n_levels, n_costs)
    beta : array (n_fitted, n_train)
        In the order of the points that are fitted, with zeros behind those of a smaller fold.
    """

    folds: range
    costs: Array
    fitted: Mask
    beta: Array

    def at(self, fold: int, level: int, C: float) -> Array | None:
        """β of one point, None where it was not fitted."""
        cost = np.flatnonzero(self.costs == C)
        if fold not in self.folds or len(cost) == 0:
            return None
        place = self.folds.index(fold), level, int(cost[0])
        if not self.fitted[place]:
            return None
        flat = np.ravel_multi_index(place, self.fitted.shape)
        return np.asarray(self.beta[np.count_nonzero(self.fitted.ravel()[:flat])])


def starts(
    task: Task, ask: Ask, folds: range, before: Sequence[Sequence[FoldFits]]
) -> Starts | None:
    """Where fits of the points wanted have ended, the last of them; None where no point has one."""
    width = max(len(task.folds[k].train) for k in folds)
    shape = len(folds), *ask.wanted.shape
    found: Starts | None = None
    for part in (part for parts in before for part in parts):
        fold, level, cost = np.nonzero(part.fitted)
        fold += part.folds.start - folds.start
        cost = np.searchsorted(ask.costs, part.costs)[cost]
        here = (fold >= 0) & (fold < len(folds)) & ask.wanted[level, cost]
        if not here.any():
            continue
        if found is None:
            found = Starts(np.zeros((*shape, width)), np.zeros(shape, dtype=bool))
        fold, level, cost = fold[here], level[here], cost[here]
        size = min(width, part.beta.shape[1])
        found.known[fold, level, cost] = True
        found.beta[fold, level, cost, :size] = part.beta[here, :size]
    return found


def fit_gamma(
    task: Task, ask: Ask, before: Sequence[Sequence[FoldFits]]
) -> tuple[list[FoldScores], list[FoldFits]]:
    """The scores of some folds at one γ, and the fits themselves.

    ``before`` has the fits of earlier jobs at this γ.
    """
    found: list[FoldScores] = []
    left: list[FoldFits] = []
    with suppress(OutOfTime):  # what was fitted until then is good
        for run in _runs(task, ask.folds):
            if task.fitted_by_constant(task.folds[run[0]]):
                parts = [_constant(task, ask, run)]
            else:
                parts = [
                    _fitted(task, ask, matrices, before)
                    for matrices in fold_matrices(task, ask.gamma, run)
                ]
            for scores, fits in parts:
                fitted = scores.fitted
                found.append(scores)
                left.append(FoldFits(scores.folds, ask.costs, fitted, fits.beta[fitted]))
    return found, left


def fold_families(
    task: Task, folds: range, costs: Array, operator: KernelOperator | None = None
) -> list[Family]:
    """The problems of all levels and these C on the training rows of folds.

    Without an operator the folds are parts of a matrix of all rows, with it there is one.
    """
    families = []
    for k in folds:
        fold, whole = task.folds[k], operator is None
        known: Family | None = fold.known.get(whole)
        if known is None:
            other, judged = fold.known.get(not whole), judged_rows(task, fold)
            rows = fold.train if judged is None else fold.rows
            known = Family(
                None,
                task.y[fold.train],
                [task.terms(level, fold, 1.0) for level in range(len(task.losses))],
                costs,
                task.offset,
                np.empty(0) if other is None else other.constants,
                rows if whole else None,
                judged,
            )
        if known.operator is not operator or known.costs is not costs:
            known = known.on(operator, costs)
        if whole:
            fold.known[whole] = known
        families.append(known)
    return families


def _runs(task: Task, folds: range) -> Iterator[range]:
    """Folds side by side, those that a constant fits perfectly by themselves."""
    start = folds.start
    for k in folds:
        if task.fitted_by_constant(task.folds[k]):
            if start < k:
                yield range(start, k)
            yield range(k, k + 1)
            start = k + 1
    if start < folds.stop:
        yield range(start, folds.stop)


def _constant(task: Task, ask: Ask, run: range) -> tuple[FoldScores, PartResults]:
    """A fold whose training targets are all the same: no f is better than none."""
    fold, places = task.folds[run[0]], np.nonzero(ask.wanted)
    rows, value = len(fold.validation), float(task.y[fold.train[0]]) if task.offset else 0.0
    (family,) = fold_families(task, run, ask.costs)
    fits = PartResults.of([family])
    fits.intercept[0][places], fits.reached[0][places] = value, True
    if family.judged is not None and fits.losses is not None:
        validation = Validation(family.judged, fits.losses[0], np.inf)
        validation.ended(places, np.full((len(places[0]), rows), value))
    return _scored(task, run, fits, lambda k: lambda beta: np.zeros((len(beta), rows))), fits


def _fitted(
    task: Task,
    ask: Ask,
    matrices: WholeMatrix | OneMatrix,
    before: Sequence[Sequence[FoldFits]],
) -> tuple[FoldScores, PartResults]:
    """Fit folds whose matrices are there."""
    race, folds = task.settings.race, matrices.folds
    begin = starts(task, ask, folds, before)
    # what is known already has been judged before
    prunes = task.prune and begin is None
    enough = min(len(task.folds[k].validation) for k in folds) >= race.path_rows
    families = fold_families(
        task, folds, ask.costs, None if isinstance(matrices, WholeMatrix) else matrices.gram
    )
    asked = Asked(
        ask.costs,
        ask.wanted,
        task.goal(ask.rough),
        task.stop,
        race.standard_errors if prunes and enough else np.inf,
    )
    fits = solve_parts(families, matrices, asked, begin, task.many(ask.rough))
    return _scored(task, folds, fits, matrices.values), fits


def _scored(
    task: Task, folds: range, fits: PartResults, values: Callable[[int], Predictor]
) -> FoldScores:
    """The scores of fits, and their losses row by row where these count."""
    if fits.losses is None:
        judges = [Judge(task, task.folds[fold], values(k)) for k, fold in enumerate(folds)]
        scores = [judge.scores(fits.part(k)) for k, judge in enumerate(judges)]
        return FoldScores.of(folds, fits, np.array(scores))
    largest, total = task.validation_weight
    here = slice(folds.start, folds.stop)
    losses = fits.losses * (largest[here] * task.units.scale**2)[:, None, None, None]
    losses[~fits.solved] = np.nan
    return FoldScores.of(folds, fits, -losses.sum(axis=3) / total[here, None, None], losses)
