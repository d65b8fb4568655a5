"""The search: all points of the grid, the race between them, growth at the borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from .._core.validation import clearly_worse, in_the_race
from ..solvers.many import Mask, Place
from ..threads import one_blas_thread
from .folds import Ask, FoldScores, fit_gamma
from .grid import Axis
from .jobs import Jobs
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
    """The last fits at one γ, of all folds, levels and C.

    Attributes
    ----------
    fitted : bool array (n_folds, n_levels, n_costs)
    intercept : array (n_folds, n_levels, n_costs)
    left : list
        What the jobs that fitted them have left, in their order, each with its folds.
    """

    fitted: Mask
    intercept: Array
    left: list[tuple[range, Any]]

    def update(self, found: Sequence[FoldScores], folds: range, left: Any) -> None:
        """Take other fits in the place of those known so far."""
        for part in found:
            here, new = slice(part.folds.start, part.folds.stop), part.fitted
            self.fitted[here] |= new
            np.copyto(self.intercept[here], part.intercept, where=new)
        self.left.append((folds, left))

    def before(self, folds: range, wanted: Mask) -> list[Any]:
        """What earlier jobs have left of points of some folds that are fitted again."""
        if not (self.fitted[folds.start : folds.stop] & wanted).any():
            return []
        return [
            left for there, left in self.left if there[0] <= folds[-1] and folds[0] <= there[-1]
        ]

    def pad(self, added: tuple[int, int]) -> None:
        """More C before and after those that there are."""
        self.fitted = padded(self.fitted, 2, added)
        self.intercept = padded(self.intercept, 2, added)


@dataclass
class Search:
    """Scores over the grid.

    Attributes
    ----------
    task : Task
    gammas, costs : Axis
    jobs : Jobs
        Who fits.
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
    jobs: Jobs
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
        #: by γ
        self._known: dict[float, Known] = {}
        self._unseen: dict[bool, Array] = {}
        folds = self.task.folds
        self._judges = np.array([len(fold.validation) for fold in folds])
        #: of the validation rows, by γ, fold, level and C: the levels' own losses, 0 beyond the
        #: rows of a fold
        rows = int(self._judges.max()) if self.task.by_own_losses else 0
        levels, gammas, costs = self._grid
        self._losses = np.full((gammas, len(folds), levels, costs, rows), np.nan)

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
        known, c = self._known.get(float(self.gammas.values[place[0]])), place[1]
        if known is None:
            return {}
        found = {}
        for k in np.flatnonzero(known.fitted[:, level, c]).tolist():
            parts = [
                part.at(k, level, self.costs.values[c]) for _, left in known.left for part in left
            ]
            last = next(beta for beta in reversed(parts) if beta is not None)
            rows = len(self.task.folds[k].train)
            found[k] = last[:rows], float(known.intercept[k, level, c])
        return found

    def _fitted_folds(self, level: int, place: Place) -> list[int]:
        """The folds that have been fitted at a point."""
        return np.flatnonzero(~np.isnan(self.scores[(level, *place)])).tolist()

    def row_losses(self, level: int) -> Array:
        """The losses at the best point, by the folds that have not seen a row: their mean, (n,).

        NaN where a row was in no validation part that was fitted there. By the level's own loss.
        """
        total, times = np.zeros(len(self.task.y)), np.zeros(len(self.task.y))
        place = self.best(level)
        assert place is not None
        for k in self._fitted_folds(level, place):
            rows = self.task.folds[k].validation
            total[rows] += self._row_losses(level, place, k)
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
        folds = range(len(self.task.folds))
        if not (self.task.prune and self.task.by_own_losses):
            self._fit(wanted, folds)
            return
        first = self._first_folds()
        if wanted.all():
            self._fit(wanted & self._coarse(), folds[:first], rough=True)
            self._look_around(folds[:first])
            self.beaten = self._loses(folds[:first])
            if self.beaten:
                return
        else:  # few points beyond a border
            self._fit(wanted, folds[:first], rough=True)
        for part in (folds[first : first + 1], folds[first + 1 :]):
            if part:
                self._fit(wanted & self._in_the_race(), part, rough=True)
        if wanted.all() and first < len(folds):
            self._look_around(folds)
        if self.task.refines:
            # better fits, and those that take direct solves, are dear: another race
            close = self._close_to_best()
            self._fit(close, folds[:first])
            self._direct |= close
            if folds[first:]:
                self._fit(close & self._in_the_race(), folds[first:])

    def _look_around(self, folds: range) -> None:
        """Fit what lies next to the best points by some folds, until these are surrounded."""
        for _ in range(self.task.settings.race.moves):
            leaders = np.zeros(self._grid, dtype=bool)
            for level in range(self._grid[0]):
                place = self._leader(level, folds)
                if place is not None:
                    leaders[(level, *place)] = True
            known = ~np.isnan(self.scores[:, :, :, folds]).all(axis=3)
            around = binary_dilation(leaders, NEIGHBOURS) & ~known
            if not around.any():
                return
            self._fit(around, folds, rough=True)

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
            here = [self._row_losses(level, place, k) for k in folds]
            there = [self.rival._row_losses(level, other, k) for k in folds]
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

    def _first_folds(self) -> int:
        """How many folds have rows enough to rule points out; all of them where rows are few."""
        rows = np.cumsum([len(fold.validation) for fold in self.task.folds])
        enough = np.flatnonzero(rows >= self.task.settings.race.rows)
        return int(enough[0]) + 1 if len(enough) else len(rows)

    def _coarse(self) -> Mask:
        """Every other point of the longer axes."""
        coarse = np.zeros(self._grid, dtype=bool)
        least = self.task.settings.race.fine_axis
        steps = (2 if size >= least else 1 for size in self._grid[1:])
        coarse[(slice(None), *(slice(None, None, step) for step in steps))] = True
        return coarse

    def _fit(self, wanted: Mask, folds: range, rough: bool = False) -> None:
        """Fit the points wanted on some folds, a job for each γ and group of folds."""
        if not wanted.any() or not folds or self.cut_short:
            return
        columns = np.flatnonzero(wanted.any(axis=(0, 2)))
        each = self.task.settings.jobs_each * self.jobs.count if self.jobs.count > 1 else 1
        groups = max(1, min(len(folds), -(-each // len(columns))))
        parts = [range(part[0], part[-1] + 1) for part in np.array_split(folds, groups)]
        places = [(int(g), part) for g in columns for part in parts]
        asked = [self._asked(g, part, wanted[:, g], rough) for g, part in places]
        title = f"{int(wanted.sum())} points of the grid on {len(folds)} folds"
        try:
            with progress(self.verbose, title, len(asked)) as advance:
                done = self.jobs.run(fit_gamma, self.task, asked)
                for (g, part), (found, left) in zip(places, done, strict=True):
                    self._record(g, found, rough)
                    self._keep(g, part, found, left, rough)
                    advance()
        except KeyboardInterrupt:
            self.task.stop.raised = True
            raise KeyboardInterrupt(
                f"selection interrupted after {self.n_fits} fits; nothing is fitted"
            ) from None
        self.cut_short = self.task.stop()

    def _asked(self, g: int, folds: range, wanted: Mask, rough: bool) -> tuple[Ask, Sequence[Any]]:
        """A job, and what earlier ones have left of the points that are fitted again."""
        gamma = float(self.gammas.values[g])
        known = self._known.get(gamma)
        ask = Ask(gamma, folds, self.costs.values, np.ascontiguousarray(wanted), rough)
        return ask, [] if known is None else known.before(folds, wanted)

    def _record(self, g: int, found: Sequence[FoldScores], rough: bool) -> None:
        """Note what a job has told."""
        for result in found:
            tried, folds = result.fitted, slice(result.folds.start, result.folds.stop)
            self.n_fits += int(np.count_nonzero(tried))
            scores = self.scores[:, g].transpose(2, 0, 1)  # by fold
            np.copyto(scores[folds], result.scores, where=tried)
            if result.losses is not None:
                rows = self._losses[g, folds, :, :, : result.losses.shape[3]]
                np.copyto(rows, result.losses, where=tried[..., None])
            # of the points that cannot win it is enough to know whether there is a fit
            self.unsolved += [gap for gap in result.unsolved if not rough or np.isinf(gap)]
            self.hard[:, g] |= result.hard.any(axis=0)

    def _keep(
        self, g: int, folds: range, found: Sequence[FoldScores], left: Any, rough: bool
    ) -> None:
        """Keep what a job has left, where it may be needed again."""
        gamma = float(self.gammas.values[g])
        if gamma not in self._known and (rough or self.task.keep_models):
            shape = len(self.task.folds), self._grid[0], self._grid[2]
            self._known[gamma] = Known(np.zeros(shape, dtype=bool), np.zeros(shape), [])
        if gamma in self._known:
            self._known[gamma].update(found, folds, left)

    def _in_the_race(self) -> Mask:
        """The points that what has been fitted so far does not rule out.

        The leader has the least loss among those on most folds.
        """
        race = self.task.settings.race
        alive = in_the_race(self._losses, self._judges, race.standard_errors, race.slack)
        for level in range(self._grid[0]):
            for place in self._doubtful(level):
                alive[(level, *place)] = True
        return alive

    def _row_losses(self, level: int, place: Place, fold: int) -> Array:
        """Those of a fold's validation rows at a point."""
        return self._losses[place[0], fold, level, place[1], : self._judges[fold]]

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
        """The points whose score may be the best one but for what it is wrong by.

        That is as much as their gap, a share of what constants cost. Of those that are left, the
        best ones are enough. Points whose fits ran out of steps are left with it, but for the
        doubtful ones.
        """
        known = np.nan_to_num(self.means, nan=-np.inf)
        ranked = np.sort(known.reshape(len(known), -1))
        last = ranked[:, -min(self.task.settings.race.finalists, ranked.shape[1])]
        wrong = self.task.goal(rough=True).gap * self._constants
        close: Mask = known >= np.maximum(last, ranked[:, -1] - wrong)[:, None, None]
        close &= np.isfinite(known) & ~self.hard
        for level in range(self._grid[0]):
            for g, c in self._doubtful(level):
                close[level, g, c] = True
        return close

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
            low = int(np.searchsorted(new.values, old.values[0]))
            added = low, len(new.values) - len(old.values) - low
            self.scores = padded(self.scores, axis, added, np.nan)
            self._losses = padded(self._losses, 0 if axis == 1 else 3, added, np.nan)
            self.hard, self._direct = (padded(m, axis, added) for m in (self.hard, self._direct))
            if axis == 2:
                for known in self._known.values():
                    known.pad(added)
            setattr(self, name, new)


def padded(array: NDArray[Any], axis: int, added: tuple[int, int], fill: float = 0) -> NDArray[Any]:
    """An array with so much more before and after what there is along an axis."""
    shape = list(array.shape)
    shape[axis] += sum(added)
    out = np.full(shape, fill, dtype=array.dtype)
    inside = [slice(None)] * array.ndim
    inside[axis] = slice(added[0], added[0] + array.shape[axis])
    out[tuple(inside)] = array
    return out
