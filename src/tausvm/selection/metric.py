"""Learned features: the linear map under which a kernel sees what matters.

    f ← kernel ridge regression of y on the rows as they are mapped so far
    s ← the same of |y − f|, out of fold: what moves the spread of y
    M ← mean ∇f ∇fᵀ + z²·mean ∇s ∇sᵀ          (its diagonal, or all of it)
    x ↦ M^½ x, scaled so that the features spread as much as before
    repeat as long as that predicts better; a later round has to win by a standard error

A level τ is about f + z·s, where z is what that level is of a standard normal: with several levels
z² is their mean. Every fold learns its map from its own training rows: one map for all of them
would have seen the rows that it is judged by. The map of all rows is made of the mean M of the
folds.

Nothing here is convex and nothing is certified: the map is given when the fit that predicts begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm

from ..estimators.data import Matrix, TrainingSet
from ..kernels import Kernel, Points, make_kernel, mapped
from ..losses import SquaredPinball
from ..operators.base import CHUNK_BYTES
from ..solvers.units import Units, root_mean_square
from ..threads import in_threads
from .grid import cost_range, gamma_range, make_axis, mean_feature_variance
from .memory import Memory
from .ridge import RidgeFits, RidgeProxy
from .scoring import OwnLoss
from .settings import MetricSettings
from .task import Fold, Task

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: E|Z| of a standard normal Z: what |y − f| is on average where y spreads by 1
MEAN_DISTANCE = float(np.sqrt(2.0 / np.pi))
#: losses that differ by less of what a constant costs are equal but for rounding
ROUNDING = 1e-9
#: of M's largest eigenvalue; √1e-10 is a hundred-thousandth of the largest weight
SMALLEST_SHARE = 1e-10


#: slopes below this, in spreads of y for one of a feature, are rounding: nothing is learned of them
SMALLEST_SLOPE = 1e-9


@dataclass(frozen=True)
class Round:
    """The maps of one round, and what they are worth.

    Attributes
    ----------
    proxy : RidgeFits or None
        The fits under these maps; None when time was up before all were there.
    maps : tuple of arrays or None
        One a fold: weights (d,) or a matrix (d, d); None before the first round.
    final : array or None
        That of all rows.
    losses : array (n,)
        Squared errors of the proxy on every row, by the fold that has not seen it; NaN where there
        is none.
    number : int
        How many rounds these maps took.
    """

    proxy: RidgeFits | None
    maps: tuple[Array, ...] | None
    final: Array | None
    losses: Array
    weight: Array
    number: int = 0

    def beats(self, other: Round, standard_errors: float) -> bool:
        """Whether this one errs less, beyond what chance does to the rows."""
        return errs_less(self.losses, other.losses, self.weight, standard_errors)


def errs_less(losses: Array, others: Array, weight: Array, standard_errors: float) -> bool:
    """Whether losses are less than others of the same rows, by so many standard errors.

    They are in units of about what a constant costs. A weight of k is k rows; weights that sum to
    less than there are rows are shares of them.
    """
    less = others - losses
    known = np.isfinite(less)
    less, weight = less[known], weight[known]
    if len(less) < 2:
        return False
    share = weight / weight.sum()
    with np.errstate(over="ignore", invalid="ignore"):  # an error of any size is one
        mean = float(share @ less)
        error = np.sqrt(share @ np.square(less - mean) / max(weight.sum(), len(less)))
    return bool(mean > max(standard_errors * error, ROUNDING))


class MetricLearner:
    """Learns the maps of a task.

    Parameters
    ----------
    task : Task
        With features of equal spread, and without maps.
    spread_share : float
        z², how much the spread of y counts beside its mean.
    feature_groups : int array (d,) or None
        Features with the same number get the same weight.
    n_jobs : int or None
    """

    def __init__(
        self, task: Task, spread_share: float, feature_groups: Index | None, n_jobs: int | None
    ) -> None:
        self.settings: MetricSettings = task.settings.metric
        self.spread_share, self.feature_groups, self.n_jobs = spread_share, feature_groups, n_jobs
        rows = _learning_rows(task, self.settings.rows)
        self.task = _proxy_task(task, rows)
        self.proxy = RidgeProxy(self.settings.choice_rows, self.settings.finalists, n_jobs)

    def learn(self, metric: str, none: Round | None = None) -> Round:
        """The best round: of a diagonal metric, of a full one, or of what wins for "auto".

        Where the spread counts, the first round is better than none: what moves the spread alone
        does not show in the proxy of the mean.

        Parameters
        ----------
        metric : str
            "auto", "diagonal" or "full".
        none : Round or None
            The features as they are, if they were tried before.
        """
        none = none or self.tried(self.task.kernel, None)
        rounds = [none]
        if metric != "full":
            rounds += self._further(none, False, self.settings.rounds)
        d = self.task.X.shape[1]
        turns = 1 < d <= self.settings.full_features and not sp.issparse(self.task.X)
        if metric == "full" or (metric == "auto" and turns):
            most = self.settings.rounds if metric == "full" else self.settings.full_rounds
            rounds += self._further(self._best(rounds), True, most)
        best = self._best(rounds)
        if best is none and len(rounds) > 1 and self._spread_counts:
            return rounds[1]
        return best

    def tried(self, kernel: Any, last: Round | None) -> Round:
        """What a kernel is worth under the maps of a round, or under none."""
        maps = None if last is None else last.maps
        task = replace(self.task, kernel=kernel, maps=maps)
        seen = mapped(self.task.X, None if last is None else last.final)
        rows = np.arange(len(self.task.y))
        data = TrainingSet(seen, self.task.targets, self.task.weight, rows, len(rows))
        unit = (_mean_square(seen, self.task.weight) if kernel == "poly" else 1.0) or 1.0
        gammas = make_axis(self.settings.gammas, *gamma_range(kernel, data))
        costs = make_axis(self.settings.costs, *cost_range(self.task.weight, 1.0, unit))
        fits = self.proxy.fits(task, task.y, gammas.values, costs.values)
        return self._round(fits, maps, None if last is None else last.final)

    @property
    def _spread_counts(self) -> bool:
        return self.spread_share >= self.settings.least_spread_share

    def _best(self, rounds: Sequence[Round]) -> Round:
        """The first one, unless a later one wins beyond doubt."""
        best = rounds[0]
        for now in rounds[1:]:
            if now.beats(best, self.settings.standard_errors):
                best = now
        return best

    def _further(self, last: Round, full: bool, most: int) -> list[Round]:
        """Rounds after one, until two in a row have won nothing."""
        found: list[Round] = []
        least, in_vain = last, 0
        while len(found) < most and in_vain < self.settings.patience:
            following = self._next(last, full)
            if following is None:
                break
            last = following
            found.append(last)
            in_vain = 0 if last.beats(least, 0.0) else in_vain + 1
            least = last if in_vain == 0 else least
        return found

    def _next(self, last: Round, full: bool) -> Round | None:
        """One more round; None where nothing can be learned from the last one."""
        if last.proxy is None:
            return None
        moments = self._moments(last.proxy, full)
        parts = zip(moments, self.task.folds, strict=True)
        maps = tuple(self._weights(moment, fold.train) for moment, fold in parts)
        final = self._weights(np.mean(moments, axis=0), np.arange(len(self.task.y)))
        if not all(np.isfinite(part).all() for part in (*maps, final)):
            return None
        task = replace(self.task, maps=maps)
        fits = self.proxy.fits(task, task.y, *self._near(last.proxy))
        return replace(self._round(fits, maps, final), number=last.number + 1)

    def _near(self, fits: RidgeFits) -> tuple[Array, Array]:
        """Grids around the best point: it may move on by a step a round."""
        steps = np.arange(-1.0, 2.0)
        gammas = fits.gamma * self.settings.gamma_step**steps
        return gammas, fits.cost * self.settings.cost_step**steps

    def _round(
        self, fits: RidgeFits | None, maps: tuple[Array, ...] | None, final: Array | None
    ) -> Round:
        losses = np.full(len(self.task.y), np.nan) if fits is None else fits.squares
        return Round(fits, maps, final, losses, self.task.weight)

    def _moments(self, fits: RidgeFits, full: bool) -> list[Array]:
        """M of every fold, of trace 1: (d,) or (d, d)."""
        of_mean = self._gradient_moments(fits, full)
        if not self._spread_counts:
            return [_of_trace_one(moment) for moment in of_mean]
        weight = self.task.weight
        distance = np.sqrt(fits.squares)
        distance = np.where(np.isfinite(distance), distance, np.nanmean(distance))
        units = Units.of(distance, weight, True)
        size = root_mean_square(distance - units.shift, weight)
        if size == 0:  # y has no spread that could vary
            return [_of_trace_one(moment) for moment in of_mean]
        units = replace(units, scale=size)
        gammas, costs = self._near(fits)
        # functions of the spread are smoother than those of the mean, and weaker
        spread = self.proxy.fits(fits.task, units.targets(distance), gammas[:2], costs[:2])
        if spread is None:
            return [_of_trace_one(moment) for moment in of_mean]
        share = self.spread_share / MEAN_DISTANCE**2 * units.scale**2
        of_spread = self._gradient_moments(spread, full)
        return [_of_trace_one(a + share * b) for a, b in zip(of_mean, of_spread, strict=True)]

    def _gradient_moments(self, fits: RidgeFits, full: bool) -> list[Array]:
        """mean ∇f ∇fᵀ on the training rows of every fold, in units of the task."""
        task = fits.task
        kernel = make_kernel(task.kernel, fits.gamma, task.degree, task.coef0)

        def moment(k: int) -> Array:
            train = task.folds[k].train
            weights = None if task.maps is None else task.maps[k]
            beta = fits.fits[k].beta
            return self._moment(kernel, task.X[train], weights, beta, task.weight[train], full)

        calls = [partial(moment, k) for k in range(len(task.folds))]
        return list(in_threads(calls, self.n_jobs, shared=True))

    def _moment(
        self,
        kernel: Kernel,
        X: Matrix,
        weights: Array | None,
        beta: Array,
        weight: Array,
        full: bool,
    ) -> Array:
        """mean ∇f ∇fᵀ of one function, with respect to the features before the map."""
        at = _spread_rows(X.shape[0], self.settings.gradient_rows)
        share = weight[at] / weight[at].sum()
        points = Points(mapped(X, weights))
        here = points.take(at)
        if full:
            slope = np.asarray(kernel.gradients(here, points, beta))
            if weights is not None:
                slope = slope @ (np.diag(weights) if weights.ndim == 1 else weights.T)
            return np.asarray(slope.T @ (share[:, None] * slope))
        moment = np.concatenate(
            [
                share @ np.square(kernel.gradients(here, points, beta, columns))
                for columns in _column_blocks(len(at), points.n_features)
            ]
        )
        return moment if weights is None else moment * weights**2

    def _weights(self, moment: Array, rows: Index) -> Array:
        """M^½, scaled so that the mapped features of some rows spread as much as before."""
        X, weight = self.task.X[rows], self.task.weight[rows]
        root = _root(self._together(moment))
        before = mean_feature_variance(X, weight)
        after = mean_feature_variance(mapped(X, root), weight)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # a map to nothing is refused by its infinite weights
            return np.asarray(root * np.sqrt(np.float64(before) / after))

    def _together(self, moment: Array) -> Array:
        """The moment with one weight a group of features."""
        if self.feature_groups is None or moment.ndim == 2:
            return moment
        _, group = np.unique(self.feature_groups, return_inverse=True)
        means = np.bincount(group, moment) / np.bincount(group)
        return np.asarray(means[group])


def spread_share(levels: Sequence[float]) -> float:
    """z² of some levels: the mean square of the normal quantiles."""
    return float(np.mean(norm.ppf(np.asarray(levels)) ** 2)) if len(levels) else 0.0


def _proxy_task(task: Task, rows: Index) -> Task:
    """Kernel ridge regression of the same targets, on some of the rows."""
    place = np.full(len(task.y), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    folds = []
    for fold in task.folds:
        train, validation = place[fold.train], place[fold.validation]
        folds.append(Fold(train[train >= 0], validation[validation >= 0], fold.spread))
    loss = SquaredPinball(0.5)
    return replace(
        task,
        X=task.X[rows],
        targets=task.targets[rows],
        weight=task.weight[rows],
        folds=folds,
        losses=[loss],
        scores=[OwnLoss(loss)],
        kernel="poly" if task.kernel == "poly" else "rbf",
        scale_C=False,
        offset=True,
        clip=None,
        solver="auto",
        keep_models=True,
        maps=None,
        memory=Memory(),
    )


def _learning_rows(task: Task, most: int) -> Index:
    """At most so many rows, evenly spread, and more where a fold would be left without any."""
    kept = np.zeros(len(task.y), dtype=np.bool_)
    kept[_spread_rows(len(task.y), most)] = True
    for fold in task.folds:
        for part, least in ((fold.train, 2), (fold.validation, 1)):
            if np.count_nonzero(kept[part]) < least:
                kept[part[:least]] = True
    return np.flatnonzero(kept)


def _spread_rows(n: int, most: int) -> Index:
    """At most so many of the rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _column_blocks(n: int, d: int) -> Iterator[slice]:
    """Columns whose gradients at n rows stay within a bound of memory."""
    step = max(1, CHUNK_BYTES // (8 * max(n, 1)))
    for start in range(0, d, step):
        yield slice(start, min(start + step, d))


def _of_trace_one(moment: Array) -> Array:
    """The moment as shares; zero where it is rounding alone."""
    total = float(moment.sum() if moment.ndim == 1 else np.trace(moment))
    return moment / total if total > SMALLEST_SLOPE**2 else np.zeros_like(moment)


def _root(moment: Array) -> Array:
    """M^½ of a diagonal or a matrix."""
    if moment.ndim == 1:
        return np.sqrt(moment)
    values, vectors = np.linalg.eigh(moment)
    # the root of what rounding leaves is no rounding any more: such directions count for nothing
    values[values < SMALLEST_SHARE * values[-1]] = 0.0
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def _mean_square(X: Matrix, weight: Array) -> float:
    """The mean of ‖x‖²."""
    return float(Points(X).squared_norms @ (weight / weight.sum()))
