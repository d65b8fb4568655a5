"""The search: all points of the grid, the race between them, growth at the borders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from .._core.validation import clearly_worse
from ..solvers.many import Mask, Place
from ..threads import in_threads, one_blas_thread
from .folds import Ask, FoldScores, fit_gamma
from .grid import Axis
from .progress import progress
from .results import equal_to_best
from .task import Task
from .unseen import out_of_fold

Array = NDArray[np.float64]

#: which points are neighbours: those at γ and C next to each other, of one level
NEIGHBOURS = np.ones((1, 3, 3), dtype=bool)
#: β and offset
Model = tuple[Array, float]


@dataclass
class Known:
    """The last fits of one fold at one γ, of all levels and C.

    Attributes
    ----------
    fitted : bool array (n_levels, n_costs)
    beta : array (n_levels, n_costs, n_train)
    intercept : array (n_levels, n_costs)
    losses : array (n_levels, n_costs, n_validation) or None
        Of the validation rows, by the levels' own losses.
    """

    fitted: Mask
    beta: Array
    intercept: Array
    losses: Array | None

    def update(self, other: Known) -> None:
        """Take other fits in the place of those known so far."""
        new = other.fitted
        self.fitted |= new
        self.beta[new] = other.beta[new]
        self.intercept[new] = other.intercept[new]
        if self.losses is not None and other.losses is not None:
            self.losses[new] = other.losses[new]

    def pad(self, added: tuple[int, int]) -> None:
        """More C before and after those that there are."""
        self.fitted = np.pad(self.fitted, ((0, 0), added))
        self.beta = np.pad(self.beta, ((0, 0), added, (0, 0)))
        self.intercept = np.pad(self.intercept, ((0, 0), added))
        if self.losses is not None:
            self.losses = np.pad(self.losses, ((0, 0), added, (0, 0)))


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
    rival : Search or None
        Another one on the same folds, whose best points this one has to beat.
    scores : array (n_levels, n_gammas, n_costs, n_folds)
        NaN where there was no fit.
    hard : bool array (n_levels, n_gammas, n_costs)
        Points whose fits ran out of steps.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    beaten : bool
        Whether the rival is clearly better, so that the search has ended early.
    cut_short : bool
        Whether time was up before all was fitted.
    """

    task: Task
    gammas: Axis
    costs: Axis
    n_jobs: int | None
    verbose: bool
    rival: Search | None = None
    scores: Array = field(init=False)
    hard: Mask = field(init=False)
    unsolved: list[float] = field(default_factory=list)
    n_fits: int = 0
    beaten: bool = False
    cut_short: bool = False

    def __post_init__(self) -> None:
        self.scores = np.full((*self._grid, len(self.task.folds)), np.nan)
        #: the losses of the best constants, which fits are exact to a share of
        self._constants = np.array([self.task.constant_loss(k) for k in range(self._grid[0])])
        self.hard = np.zeros(self._grid, dtype=bool)
        #: the points of those that were solved directly after all
        self._direct = np.zeros(self._grid, dtype=bool)
        #: by γ and fold
        self._known: dict[tuple[float, int], Known] = {}
        self._unseen: dict[bool, Array] = {}

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
            for _ in range(self.task.settings.grid.rounds):
                if self.cut_short or self.beaten:
                    break
                wanted = self._grow()
                if not wanted.any():
                    break
                before = self._best_means()
                self._evaluate(wanted)
                gain = self._best_means() - before
                if not (gain > self.task.settings.grid.worthwhile * np.abs(before)).any():
                    break

    def rounding(self, level: int) -> float:
        """What rounding makes of a perfect score."""
        return self.task.settings.perfect * float(self._constants[level])

    @property
    def looked_at(self) -> tuple[int, int]:
        """How many points (level, γ, C) have a score of any fold, and how many there are."""
        tried = ~np.isnan(self.scores).all(axis=3)
        return int(tried.sum()), tried.size

    def best(self, level: int) -> tuple[int, int] | None:
        """The best (γ, C) by index, the smallest C and then γ among equals; None without any.

        A search that was cut short has at least the middle of the grid.
        """
        means = self.scores[level][:, :, self.comparable(level)].mean(axis=2)
        if not np.isnan(means).all():
            cost, gamma = np.argwhere(equal_to_best(means, self.rounding(level)).T)[0]
            return int(gamma), int(cost)
        return (self._grid[1] // 2, self._grid[2] // 2) if self.cut_short else None

    def comparable(self, level: int) -> list[int]:
        """The folds by which points are compared.

        They are all folds, or those of the point with most of them where time was up before any
        had all.
        """
        everything = list(range(len(self.task.folds)))
        if not self.cut_short:
            return everything
        known = ~np.isnan(self.scores[level]).reshape(-1, len(everything))
        return np.flatnonzero(known[known.sum(axis=1).argmax()]).tolist() or everything

    def fold_choices(self, level: int) -> list[tuple[int, int]]:
        """The best (γ, C) of every fold by itself, among the points that all folds know.

        A fold that time was up for has that of the others.
        """
        folds = self.comparable(level)
        known = ~np.isnan(self.scores[level][:, :, folds]).any(axis=2)
        choices = []
        for fold in range(len(self.task.folds)):
            scores = np.where(known, self.scores[level, :, :, fold], np.nan)
            place = self.best(level)
            if fold in folds and known.any():
                cost, gamma = np.argwhere(equal_to_best(scores, self.rounding(level)).T)[0]
                place = int(gamma), int(cost)
            assert place is not None
            choices.append(place)
        return choices

    def oof_predictions(self, level: int, mean: bool = True) -> Array:
        """What the folds' models predict for rows that they were not fitted on, in units of y.

        (n_rows,), NaN where a row was in no validation part, and everywhere when time is up. The
        models of a fold are those at the points that the other folds have chosen, which know
        nothing of its validation rows, and count as often as they were chosen; without ``mean``
        it is the one at the best point. Needs a task that keeps models.
        """
        if mean not in self._unseen:
            self._unseen[mean] = out_of_fold(self, mean)
        return self._unseen[mean][level]

    def models(self, level: int, place: tuple[int, int]) -> dict[int, Model]:
        """β and offset of the folds that have been fitted at a point, by fold."""
        gamma, c = float(self.gammas.values[place[0]]), place[1]
        found = {}
        for k in range(len(self.task.folds)):
            known = self._known.get((gamma, k))
            if known is not None and known.fitted[level, c]:
                found[k] = known.beta[level, c], float(known.intercept[level, c])
        return found

    def row_losses(self, level: int) -> Array:
        """The losses at the best point, by the folds that have not seen a row: their mean, (n,).

        NaN where a row was in no validation part that was fitted there. By the level's own loss.
        """
        total, times = np.zeros(len(self.task.y)), np.zeros(len(self.task.y))
        place = self.best(level)
        assert place is not None
        for k in self.models(level, place):
            rows = self.task.folds[k].validation
            total[rows] += self._losses(level, *place, k)
            times[rows] += 1.0
        return np.divide(total, times, out=np.full(len(total), np.nan), where=times > 0)

    def start(self, level: int, place: tuple[int, int], fold: int | None) -> Array | None:
        """β at a point, in the user's units: that of a fold, or a guess for all rows."""
        known = {k: beta for k, (beta, _) in self.models(level, place).items()}
        beta = known[fold] if fold is not None else self._whole_start(known)
        return None if beta is None else self.task.units.coefficients(beta)

    def _whole_start(self, known: dict[int, Array]) -> Array | None:
        """A β of all rows from those of the folds.

        It is their mean, where all rows are in equally many of them, else that of the most rows.
        """
        if not known:
            return None
        folds = self.task.folds
        beta, times = np.zeros(len(self.task.y)), np.zeros(len(self.task.y))
        for k, part in known.items():
            beta[folds[k].train] += part
            times[folds[k].train] += 1
        if (times == times[0]).all():
            return beta / times[0]
        largest = max(known, key=lambda k: len(folds[k].train))
        beta[:] = 0.0
        beta[folds[largest].train] = known[largest]
        return beta

    def _best_means(self) -> Array:
        """The best mean score of each level, −∞ where there is none."""
        return np.nan_to_num(self.means, nan=-np.inf).max(axis=(1, 2))

    def _evaluate(self, wanted: Mask) -> None:
        """Scores of the points wanted, in races that leave those out which cannot win.

        First comes every other point of the grid, on as many folds as it takes to tell points
        apart, then what lies next to those still in the race, then the other folds. Last the points
        close to the best one are fitted as well as was asked for, and to rounding on few rows.
        """
        folds = list(range(len(self.task.folds)))
        if not (self.task.prune and self.task.by_own_losses):
            self._fit(wanted, folds)
            return
        first = self._first_folds()
        if first:
            coarse = wanted & self._coarse()
            if wanted.all():
                self._fit(coarse, folds[:first], rough=True)
                near = binary_dilation(coarse & self._in_the_race(), NEIGHBOURS)
                self._fit(wanted & near & ~coarse, folds[:first], rough=True)
                self.beaten = self._loses(folds[:first])
                if self.beaten:
                    return
            else:  # few points beyond a border
                self._fit(wanted, folds[:first], rough=True)
            for part in (folds[first : first + 1], folds[first + 1 :]):
                wanted = wanted & self._in_the_race()
                self._fit(wanted, part, rough=True)
        else:
            self._fit(wanted, folds, rough=True)
        if self.task.race_gap > 1.0 or self._few:
            close = wanted & self._close_to_best()
            if first:  # better fits, and those that take direct solves, are dear: another race
                self._fit(close, folds[:first])
                self._direct |= close
                close, folds = close & self._in_the_race(), folds[first:]
            self._fit(close, folds)

    def _loses(self, folds: Sequence[int]) -> bool:
        """Whether the rival is clearly better, all levels taken together, told from some folds."""
        if self.rival is None or self.rival.cut_short or self.cut_short:
            return False
        race, rows = self.task.settings.race, sum(len(self.task.folds[k].validation) for k in folds)
        ours, theirs = np.zeros(rows), np.zeros(rows)
        for level, constant in enumerate(self._constants.tolist()):
            place, other = self._leader(level, folds), self.rival.best(level)
            if place is None or other is None or constant == 0:
                return False
            here = [self._losses(level, *place, k) for k in folds]
            there = [self.rival._losses(level, *other, k) for k in folds]
            ours += np.concatenate(here) / constant
            theirs += np.concatenate(there) / constant
        return bool(clearly_worse(ours[None], theirs, race.standard_errors, race.slack)[0])

    def _leader(self, level: int, folds: Sequence[int]) -> tuple[int, int] | None:
        """The point with the best score on some folds; None where none has all of them."""
        means = self.scores[level][:, :, folds].mean(axis=2)
        if np.isnan(means).all():
            return None
        gamma, cost = np.unravel_index(np.nanargmax(means), means.shape)
        return int(gamma), int(cost)

    @property
    def _few(self) -> bool:
        """Whether rows are so few that fits which may win are solved to rounding."""
        return len(self.task.y) <= self.task.settings.many.few

    def _first_folds(self) -> int:
        """How many folds have rows enough to rule points out; 0 where it takes too many."""
        rows = np.cumsum([len(fold.validation) for fold in self.task.folds])
        enough = np.flatnonzero(rows >= self.task.settings.race.rows)
        return int(enough[0]) + 1 if len(enough) else 0

    def _coarse(self) -> Mask:
        """Every other point of the longer axes."""
        coarse = np.zeros(self._grid, dtype=bool)
        least = self.task.settings.race.fine_axis
        steps = (2 if size >= least else 1 for size in self._grid[1:])
        coarse[(slice(None), *(slice(None, None, step) for step in steps))] = True
        return coarse

    def _fit(self, wanted: Mask, folds: Sequence[int], rough: bool = False) -> None:
        """Fit the points wanted on some folds, a job for each γ and group of folds."""
        if not wanted.any() or not folds or self.cut_short:
            return
        columns = np.flatnonzero(wanted.any(axis=(0, 2)))
        each = self.task.settings.jobs_each * effective_n_jobs(self.n_jobs)
        groups = max(1, min(len(folds), -(-each // len(columns))))
        jobs = [(int(g), part.tolist()) for g in columns for part in np.array_split(folds, groups)]
        parent = os.getpid()
        # the cores release the GIL, and threads need no copies of the data
        calls = [
            partial(
                _job,
                parent,
                fit_gamma,
                self.task,
                Ask(
                    float(self.gammas.values[g]),
                    part,
                    self.costs.values,
                    wanted[:, g],
                    rough,
                    self._starts(g, part, wanted[:, g]),
                ),
            )
            for g, part in jobs
        ]
        title = f"{int(wanted.sum())} points of the grid on {len(folds)} folds"
        try:
            with progress(self.verbose, title, len(jobs)) as advance:
                for (g, _), found in zip(jobs, in_threads(calls, self.n_jobs), strict=True):
                    self._record(g, found, rough)
                    advance()
        except KeyboardInterrupt:
            self.task.stop.raised = True
            raise KeyboardInterrupt(
                f"selection interrupted after {self.n_fits} fits; nothing is fitted"
            ) from None
        self.cut_short = self.task.stop()

    def _starts(self, g: int, folds: Sequence[int], wanted: Mask) -> dict[int, Array]:
        """Where earlier fits of these points ended, by fold."""
        starts = {}
        for fold in folds:
            known = self._known.get((float(self.gammas.values[g]), fold))
            if known is not None and (known.fitted & wanted).any():
                starts[fold] = np.where((known.fitted & wanted)[:, :, None], known.beta, np.nan)
        return starts

    def _record(self, g: int, found: dict[int, FoldScores], rough: bool) -> None:
        for fold, result in found.items():
            tried = np.isfinite(result.scores)
            self.n_fits += int(np.count_nonzero(tried))
            self.scores[:, g, :, fold][tried] = result.scores[tried]
            # of the points that cannot win it is enough to know whether there is a fit
            self.unsolved += [gap for gap in result.unsolved if not rough or np.isinf(gap)]
            self.hard[:, g] |= result.hard
            fits = Known(tried, result.fits.beta, result.fits.intercept, result.losses)
            key = float(self.gammas.values[g]), fold
            if key in self._known:
                self._known[key].update(fits)
            elif rough or self.task.keep_models:
                self._known[key] = fits

    def _in_the_race(self) -> Mask:
        """The points that what has been fitted so far does not rule out.

        The leader has the least loss among those on most folds.
        """
        alive, race = np.zeros(self._grid, dtype=bool), self.task.settings.race
        for level in range(self._grid[0]):
            known = ~np.isnan(self.scores[level])
            places = np.argwhere(known.any(axis=2))
            if len(places) == 0:
                continue
            of_folds = known[tuple(places.T)]
            losses = [
                np.array([self._losses(level, g, c, k) for g, c in places[of_folds[:, k]].tolist()])
                for k in range(of_folds.shape[1])
            ]
            total = np.zeros(len(places))
            for k, found in enumerate(losses):
                total[of_folds[:, k]] += found.sum(axis=1) if len(found) else 0.0
            leader = np.lexsort((total, -of_folds.sum(axis=1)))[0]
            for pattern in np.unique(of_folds, axis=0):
                here = (of_folds == pattern).all(axis=1)
                common = np.flatnonzero(pattern & of_folds[leader])
                if len(common) == 0:  # there is nothing to compare them by
                    alive[(level, *places[here].T)] = True
                    continue
                rows = [losses[k][here[of_folds[:, k]]] for k in common]
                best = [losses[k][np.count_nonzero(of_folds[:leader, k])] for k in common]
                worse = clearly_worse(
                    np.concatenate(rows, axis=1),
                    np.concatenate(best),
                    race.standard_errors,
                    race.slack,
                )
                alive[(level, *places[here][~worse].T)] = True
            for place in self._doubtful(level):
                alive[(level, *place)] = True
        return alive

    def _losses(self, level: int, g: int, c: int, fold: int) -> Array:
        """Those of a fold's validation rows at a point."""
        known = self._known[float(self.gammas.values[g]), fold].losses
        assert known is not None
        return known[level, c]

    def _doubtful(self, level: int) -> list[Place]:
        """Points whose fits ran out of steps and may be better than their scores.

        That matters on data without noise, where the largest C win and take the most steps. A
        direct solve of so few rows takes some hundredths of a second.
        """
        race, scores = self.task.settings.race, self._means_so_far(level)
        best = float(scores.max())
        noisy = -best > race.no_noise * self._constants[level]
        if noisy or self.task.squared or len(self.task.y) > race.hard_rows:
            return []
        near = np.argwhere(np.isfinite(scores) & (scores >= race.hard_factor * best)).tolist()
        doubtful = self.hard[level] & ~self._direct[level]
        return [(g, c) for g, c in near if doubtful[g, c]]

    def _means_so_far(self, level: int) -> Array:
        """The mean score of every point on the folds that have one, −∞ without any."""
        known = ~np.isnan(self.scores[level])
        total = np.where(known, self.scores[level], 0.0).sum(axis=2)
        return np.where(known.any(axis=2), total / np.maximum(known.sum(axis=2), 1), -np.inf)

    def _close_to_best(self) -> Mask:
        """The points whose rough score may be the best one but for what it is wrong by.

        That is as much as their gap, a share of what constants cost. On few rows it may be that of
        a fold alone, which has a say too. Points whose fits ran out of steps are left with it, but
        for the doubtful ones.
        """
        close = self._near_best(self.means[..., None])
        if self._few:
            close |= self._near_best(self.scores)
        close &= ~self.hard
        close[close.sum(axis=(1, 2)) == 1] = False  # one alone is chosen anyway
        for level in range(self._grid[0]):
            for g, c in self._doubtful(level):
                close[level, g, c] = True
        return close

    def _near_best(self, scores: Array) -> Mask:
        """Whose score is the best one in any column, but for what a rough fit is wrong by."""
        race, gap = self.task.settings.race, self.task.goal(rough=True).gap
        known = np.nan_to_num(scores, nan=-np.inf)
        best = known.max(axis=(1, 2), keepdims=True)
        wrong = np.maximum(race.slack * np.abs(best), gap * self._constants[:, None, None, None])
        near: Mask = (known >= best - wrong).any(axis=3)
        return near

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
            axes = self.gammas, self.costs
            if any(self._grown(axis, at) is not None for axis, at in zip(axes, best, strict=True)):
                on_border.append((level, self.gammas.values[gamma], self.costs.values[cost]))
        for _, gamma, cost in on_border:
            self._extend(gamma, cost)
        wanted, reach = np.zeros(self._grid, dtype=bool), self.task.settings.grid.growth
        for level, gamma, cost in on_border:
            g = int(np.searchsorted(self.gammas.values, gamma))
            c = int(np.searchsorted(self.costs.values, cost))
            near = np.s_[max(g - reach, 0) : g + reach + 1, max(c - reach, 0) : c + reach + 1]
            wanted[level][near] = True
        return wanted & np.isnan(self.scores).all(axis=3)

    def _grown(self, axis: Axis, at: int) -> Axis | None:
        grid = self.task.settings.grid
        return axis.grown(at, grid.growth, grid.largest_step)

    def _extend(self, gamma: float, cost: float) -> None:
        """More points beyond this one where it lies at an end of an axis."""
        for axis, name, value in ((1, "gammas", gamma), (2, "costs", cost)):
            old: Axis = getattr(self, name)
            new = self._grown(old, int(np.searchsorted(old.values, value)))
            if new is None:
                continue
            added = [(0, 0)] * 4
            low = int(np.searchsorted(new.values, old.values[0]))
            added[axis] = low, len(new.values) - len(old.values) - low
            self.scores = np.pad(self.scores, added, constant_values=np.nan)
            self.hard, self._direct = (np.pad(m, added[:3]) for m in (self.hard, self._direct))
            if axis == 2:
                for known in self._known.values():
                    known.pad(added[axis])
            setattr(self, name, new)


def _job(parent: int, work: Callable[..., Any], *arguments: object) -> Any:
    """One job; in a process of its own it has to hold BLAS to one thread itself."""
    if os.getpid() == parent:
        return work(*arguments)
    with one_blas_thread():
        return work(*arguments)
