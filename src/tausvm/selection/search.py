"""The search: all points of the grid, the race between them, growth at the borders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from ..solvers.many import Mask, Place
from ..threads import one_blas_thread
from .folds import Ask, FoldScores, fit_gamma
from .grid import Axis
from .judge import clearly_worse
from .progress import progress
from .results import equal_to_best
from .task import Task
from .unseen import out_of_fold

Array = NDArray[np.float64]

#: which points are neighbours: those at γ and C next to each other, of one level
NEIGHBOURS = np.ones((1, 3, 3), dtype=bool)
#: level, γ and C
Point = tuple[int, float, float]
#: β and offset
Model = tuple[Array, float]


@dataclass(frozen=True)
class Look:
    """A rough fit on one fold: the losses of its validation rows, and where a better one starts."""

    losses: Array
    beta: NDArray[np.floating]

    @cached_property
    def total(self) -> float:
        return float(self.losses.sum())


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
    hard : set
        Points, by level, γ and C, whose fits ran out of steps.
    unsolved : list of float
        Relative gaps of the fits that did not get to the tolerance.
    cut_short : bool
        Whether time was up before all was fitted.
    """

    task: Task
    gammas: Axis
    costs: Axis
    n_jobs: int | None
    verbose: bool
    scores: Array = field(init=False)
    models: dict[Point, dict[int, Model]] = field(default_factory=dict)
    unsolved: list[float] = field(default_factory=list)
    hard: set[Point] = field(default_factory=set)
    n_fits: int = 0
    cut_short: bool = False

    def __post_init__(self) -> None:
        self.scores = np.full((*self._grid, len(self.task.folds)), np.nan)
        #: the losses of the best constants, which fits are exact to a share of
        self._constants = np.array([self.task.constant_loss(k) for k in range(self._grid[0])])
        #: by point and fold
        self._looks: dict[Point, dict[int, Look]] = {}
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
                if self.cut_short:
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

    def start(self, level: int, place: tuple[int, int], fold: int | None) -> Array | None:
        """β at a point, in the user's units: that of a fold, or a guess for all rows."""
        known = self.models.get(self.point(level, *place), {})
        if fold is not None:
            return self.task.units.coefficients(known[fold][0])
        beta = self._whole_start(known)
        return None if beta is None else self.task.units.coefficients(beta)

    def _whole_start(self, known: dict[int, Model]) -> Array | None:
        """A β of all rows from those of the folds.

        It is their mean, where all rows are in equally many of them, else that of the most rows.
        """
        if not known:
            return None
        folds = self.task.folds
        beta, times = np.zeros(len(self.task.y)), np.zeros(len(self.task.y))
        for k, (part, _) in known.items():
            beta[folds[k].train] += part
            times[folds[k].train] += 1
        if (times == times[0]).all():
            return beta / times[0]
        largest = max(known, key=lambda k: len(folds[k].train))
        beta[:] = 0.0
        beta[folds[largest].train] = known[largest][0]
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
            else:  # few points beyond a border
                self._fit(wanted, folds[:first], rough=True)
            for part in (folds[first : first + 1], folds[first + 1 :]):
                wanted = wanted & self._in_the_race()
                self._fit(wanted, part, rough=True)
        else:
            self._fit(wanted, folds, rough=True)
        if self.task.race_gap > 1.0 or self._few:
            self._fit(wanted & self._close_to_best(), folds)

    @property
    def _few(self) -> bool:
        """Whether rows are so few that fits which may win are solved to rounding."""
        return len(self.task.y) <= self.task.settings.many.few

    def _first_folds(self) -> int:
        """How many folds have rows enough to rule points out; 0 where it takes too many.

        All C of a squared loss cost little more than some: what is left out on the last folds is
        not worth the looks.
        """
        rows = np.cumsum([len(fold.validation) for fold in self.task.folds])
        most = 1 if self.task.squared else len(rows)
        enough = np.flatnonzero(rows[:most] >= self.task.settings.race.rows)
        return int(enough[0]) + 1 if len(enough) else 0

    @property
    def _jobs(self) -> int | None:
        """How many jobs help."""
        task = self.task
        return 1 if task.squared and len(task.y) <= task.settings.serial_rows else self.n_jobs

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
        workers = effective_n_jobs(self._jobs)
        each = self.task.settings.jobs_each
        groups = max(1, min(len(folds), -(-each * workers // len(columns))))
        jobs = [(int(g), part.tolist()) for g in columns for part in np.array_split(folds, groups)]
        parent = os.getpid()
        # the cores release the GIL, and threads need no copies of the data; a backend that
        # the user has chosen comes first all the same
        parallel = Parallel(
            n_jobs=self._jobs,
            prefer="threads",
            return_as="generator" if self.verbose else "list",
        )
        calls = (
            delayed(_job)(
                parent,
                fit_gamma,
                self.task,
                Ask(
                    float(self.gammas.values[g]),
                    part,
                    self.costs.values,
                    wanted[:, g],
                    rough,
                    {fold: self._starts(g, fold, wanted[:, g]) for fold in part},
                ),
            )
            for g, part in jobs
        )
        title = f"{int(wanted.sum())} points of the grid on {len(folds)} folds"
        done = 0
        try:
            with progress(self.verbose, title, len(jobs)) as advance:
                for (g, _), found in zip(jobs, parallel(calls), strict=True):
                    self._record(g, found, rough)
                    done += 1
                    advance()
        except KeyboardInterrupt:
            self.task.stop.raised = True
            raise KeyboardInterrupt(
                f"selection interrupted after {self.n_fits} fits; nothing is fitted"
            ) from None
        self.cut_short = self.task.stop()

    def _starts(self, g: int, fold: int, wanted: Mask) -> dict[Place, NDArray[np.floating]]:
        """Where earlier fits of these points ended, by level and number of C."""
        found = {}
        for level, c in np.argwhere(wanted).tolist():
            look = self._looks.get(self.point(level, g, c), {}).get(fold)
            if look is not None:
                found[level, c] = look.beta
        return found

    def _record(self, g: int, found: dict[int, FoldScores], rough: bool) -> None:
        for fold, result in found.items():
            tried = np.isfinite(result.scores)
            self.n_fits += int(np.count_nonzero(tried))
            self.scores[:, g, :, fold][tried] = result.scores[tried]
            # of the points that cannot win it is enough to know whether there is a fit
            self.unsolved += [gap for gap in result.unsolved if not rough or np.isinf(gap)]
            fits = result.fits
            self.hard.update(self.point(level, g, c) for level, c in np.argwhere(result.hard))
            for level, c in np.argwhere(tried).tolist():
                point = self.point(level, g, c)
                if result.losses is not None:
                    look = Look(result.losses[level, c], fits.beta[level, c])
                    self._looks.setdefault(point, {})[fold] = look
                if self.task.keep_models:
                    model = fits.beta[level, c], float(fits.intercept[level, c])
                    self.models.setdefault(point, {})[fold] = model

    def _in_the_race(self) -> Mask:
        """The points that what has been fitted so far does not rule out.

        The leader has the least loss among those on most folds.
        """
        alive, race = np.zeros(self._grid, dtype=bool), self.task.settings.race
        for level in range(self._grid[0]):
            points = {
                (g, c): self._looks[self.point(level, g, c)]
                for g, c in np.ndindex(*self._grid[1:])
                if self.point(level, g, c) in self._looks
            }
            if not points:
                continue
            leader = min(points.values(), key=_standing)
            for folds in {tuple(sorted(looks)) for looks in points.values()}:
                common = [fold for fold in folds if fold in leader]
                places = [place for place, looks in points.items() if tuple(sorted(looks)) == folds]
                here = [
                    np.concatenate([points[place][fold].losses for fold in common])
                    for place in places
                ]
                best = np.concatenate([leader[fold].losses for fold in common])
                worse = clearly_worse(np.array(here), best, race.standard_errors, race.slack)
                for place, out in zip(places, worse.tolist(), strict=True):
                    alive[(level, *place)] = not out
            for place in self._doubtful(level):
                alive[(level, *place)] = True
        return alive

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
        return [(g, c) for g, c in near if self.point(level, g, c) in self.hard]

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
        for place in np.argwhere(close).tolist():
            close[tuple(place)] = self.point(*place) not in self.hard
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

    def point(self, level: int, g: int, c: int) -> Point:
        """A place of the grid by its level and values, which stay when the grid grows."""
        return level, float(self.gammas.values[g]), float(self.costs.values[c])

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
            setattr(self, name, new)


def _standing(looks: dict[int, Look]) -> tuple[int, float]:
    """Less is better: folds that are missing, then the loss."""
    return -len(looks), sum(look.total for look in looks.values())


def _job(parent: int, work: Callable[..., Any], *arguments: object) -> Any:
    """One job; in a process of its own it has to hold BLAS to one thread itself."""
    if os.getpid() == parent:
        return work(*arguments)
    with one_blas_thread():
        return work(*arguments)
