"""The search: all points of the grid, the race between them, growth at the borders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from ..estimators.threads import one_blas_thread
from .folds import ENOUGH_ROWS, FoldScores, Mask, Task, fit_gamma
from .grid import GROWTH, GROWTH_ROUNDS, Axis
from .progress import progress
from .results import equal_to_best
from .scoring import OwnLoss

Array = NDArray[np.float64]

#: a point leaves the race when it is worse on the first fold by so many standard errors
STANDARD_ERRORS = 5.0

#: growth goes on while it improves a score by this share
WORTHWHILE = 1e-3

#: the coefficients and offsets of the folds at one point
Models = dict[tuple[int, float, float], dict[int, tuple[Array, float]]]


@dataclass
class Search:
    """Scores over the grid.

    Attributes
    ----------
    task : Task
    gammas, costs : Axis
    n_jobs : int or None
        As joblib takes it.
    verbose : bool
    scores : array (n_levels, n_gammas, n_costs, n_folds)
        NaN where there was no fit.
    models : dict
        By level, γ and C; then by fold. Empty unless the task keeps models.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    """

    task: Task
    gammas: Axis
    costs: Axis
    n_jobs: int | None
    verbose: bool
    scores: Array = field(init=False)
    models: Models = field(default_factory=dict)
    unsolved: list[float] = field(default_factory=list)
    n_fits: int = 0

    def __post_init__(self) -> None:
        self.scores = np.full((*self._grid, len(self.task.folds)), np.nan)
        self._first_losses: dict[tuple[int, float, float], Array] = {}

    @property
    def _grid(self) -> tuple[int, int, int]:
        return len(self.task.losses), len(self.gammas.values), len(self.costs.values)

    @property
    def means(self) -> Array:
        """The mean score of every point, NaN unless all folds have one."""
        return self.scores.mean(axis=3)

    def run(self) -> None:
        """Fill the scores; grow the grid while a best point lies on its border."""
        with one_blas_thread():
            self._evaluate(np.ones(self._grid, dtype=bool))
            for _ in range(GROWTH_ROUNDS):
                wanted = self._grow()
                if not wanted.any():
                    break
                before = self._best_means()
                self._evaluate(wanted)
                gain = self._best_means() - before
                if not (gain > WORTHWHILE * np.abs(before)).any():
                    break

    def best(self, level: int) -> tuple[int, int] | None:
        """The best (γ, C) by index, the smallest C and then γ among equals; None without any."""
        means = self.means[level]
        if np.isnan(means).all():
            return None
        cost, gamma = np.argwhere(equal_to_best(means).T)[0]
        return int(gamma), int(cost)

    def _best_means(self) -> Array:
        """The best mean score of each level, −∞ where there is none."""
        return np.nan_to_num(self.means, nan=-np.inf).max(axis=(1, 2))

    def _evaluate(self, wanted: Mask) -> None:
        """Scores of the points wanted."""
        folds = list(range(len(self.task.folds)))
        if self.task.prune and all(isinstance(score, OwnLoss) for score in self.task.scores):
            self._fit(wanted, folds[:1], keep_predictions=True)
            wanted = wanted & self._in_the_race()
            folds = folds[1:]
        self._fit(wanted, folds)

    def _fit(self, wanted: Mask, folds: Sequence[int], keep_predictions: bool = False) -> None:
        """Fit the points wanted on some folds, a job for each γ and group of folds."""
        columns = np.flatnonzero(wanted.any(axis=(0, 2)))
        workers = effective_n_jobs(self.n_jobs)
        groups = max(1, min(len(folds), -(-workers // max(len(columns), 1))))
        jobs = [(int(g), part.tolist()) for g in columns for part in np.array_split(folds, groups)]
        parent = os.getpid()
        # the cores release the GIL, and threads need no copies of the data; a backend that
        # the user has chosen comes first all the same
        parallel = Parallel(
            n_jobs=self.n_jobs,
            prefer="threads",
            return_as="generator" if self.verbose else "list",
        )
        calls = (
            delayed(_job)(
                parent,
                self.task,
                float(self.gammas.values[g]),
                part,
                self.costs.values,
                wanted[:, g],
                keep_predictions,
            )
            for g, part in jobs
        )
        title = f"{int(wanted.sum())} points of the grid on {len(folds)} folds"
        done = 0
        try:
            with progress(self.verbose, title, len(jobs)) as advance:
                for (g, _), found in zip(jobs, parallel(calls), strict=True):
                    self._record(g, found)
                    done += 1
                    advance()
        except KeyboardInterrupt:
            self.task.stop.raised = True
            raise KeyboardInterrupt(
                f"selection interrupted after {self.n_fits} fits; nothing is fitted"
            ) from None

    def _record(self, g: int, found: dict[int, FoldScores]) -> None:
        gamma = float(self.gammas.values[g])
        for fold, result in found.items():
            tried = np.isfinite(result.scores)
            self.scores[:, g, :, fold][tried] = result.scores[tried]
            self.unsolved += result.unsolved
            for level, c in zip(*np.nonzero(tried), strict=True):
                key = int(level), gamma, float(self.costs.values[c])
                self.n_fits += 1
                if result.beta is not None:
                    model = result.beta[level, c].copy(), float(result.intercept[level, c])
                    self.models.setdefault(key, {})[fold] = model
                if result.predictions is not None:
                    score = self.task.scores[level]
                    assert isinstance(score, OwnLoss)
                    rows = self.task.folds[fold].validation
                    losses = score.loss.value(self.task.y[rows] - result.predictions[level, c])
                    self._first_losses[key] = self.task.weight[rows] * losses

    def _in_the_race(self) -> Mask:
        """The points that the first fold has not ruled out.

        Losses of two points on the same rows are compared row by row: much of what a fold
        does to a score it does to both.
        """
        alive = np.ones(self._grid, dtype=bool)
        rows = len(self.task.folds[0].validation)
        if rows < ENOUGH_ROWS:
            return alive
        for level in range(len(self.task.losses)):
            first = self.scores[level, :, :, 0]
            if np.isnan(first).all():
                continue
            leader = np.unravel_index(np.nanargmax(first), first.shape)
            best = self._losses_at(level, int(leader[0]), int(leader[1]))
            for g, c in np.ndindex(first.shape):
                if np.isnan(first[g, c]):  # its path ended before
                    alive[level, g, c] = False
                    continue
                worse = self._losses_at(level, g, c) - best
                error = worse.std() / np.sqrt(rows)
                alive[level, g, c] = worse.mean() <= STANDARD_ERRORS * error
        return alive

    def _losses_at(self, level: int, g: int, c: int) -> Array:
        key = level, float(self.gammas.values[g]), float(self.costs.values[c])
        return self._first_losses[key]

    def _grow(self) -> Mask:
        """Extend the axes at whose ends a level has its best point; the new points to try.

        They are those near the best point of a level that lies on a border.
        """
        on_border = []
        for level in range(len(self.task.losses)):
            best = self.best(level)
            if best is None:
                continue
            gamma, cost = best
            if self.gammas.grown(gamma) is not None or self.costs.grown(cost) is not None:
                on_border.append((level, self.gammas.values[gamma], self.costs.values[cost]))
        for _, gamma, cost in on_border:
            self._extend(gamma, cost)
        wanted = np.zeros(self._grid, dtype=bool)
        for level, gamma, cost in on_border:
            g = int(np.searchsorted(self.gammas.values, gamma))
            c = int(np.searchsorted(self.costs.values, cost))
            near = np.s_[max(g - GROWTH, 0) : g + GROWTH + 1, max(c - GROWTH, 0) : c + GROWTH + 1]
            wanted[level][near] = True
        return wanted & np.isnan(self.scores).all(axis=3)

    def _extend(self, gamma: float, cost: float) -> None:
        """More points beyond this one where it lies at an end of an axis."""
        for axis, name, value in ((1, "gammas", gamma), (2, "costs", cost)):
            old: Axis = getattr(self, name)
            new = old.grown(int(np.searchsorted(old.values, value)))
            if new is None:
                continue
            added = [(0, 0)] * 4
            low = int(np.searchsorted(new.values, old.values[0]))
            added[axis] = low, len(new.values) - len(old.values) - low
            self.scores = np.pad(self.scores, added, constant_values=np.nan)
            setattr(self, name, new)


def _job(parent: int, *arguments: object) -> dict[int, FoldScores]:
    """One job; in a process of its own it has to hold BLAS to one thread itself."""
    if os.getpid() == parent:
        return fit_gamma(*arguments)  # type: ignore[arg-type]
    with one_blas_thread():
        return fit_gamma(*arguments)  # type: ignore[arg-type]
