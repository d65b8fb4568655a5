"""Selections on more rows than a kernel matrix serves: choose on some of them, fit on all.

    some rows                C, γ, the kernel and the features, as ever
    the other rows           landmarks, one set for all levels, at one γ: the best for all together
    a few rows held out      calibrate the levels

C stays what it is for fewer rows: a loss is a sum over rows, so that more of them count for more
beside ‖f‖², as they should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from ..estimators.approximation import ApproximableMachine
from ..estimators.data import TrainingSet
from ..estimators.machine import DISTANCE_KERNELS
from ..estimators.parameters import refuse, seed_of
from ..estimators.progress import progress_log
from ..estimators.trend import Trend
from ..solvers import SolverOptions
from ..solvers.landmarks import LandmarkResult, Landmarks, solve_landmarks
from ..threads import one_blas_thread, thread_count
from .jobs import Jobs, Threads
from .members import Member
from .outcome import warn_of_landmarks
from .plan import Plan
from .progress import heartbeat, logger, span
from .search import Search
from .settings import LargeSettings, SelectionSettings

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: γ and C by index
Place = tuple[int, int]

#: parameters of a machine of the full problem
WHOLE = {"approximation": None, "landmarks": None, "landmark_tol": None}


class LargeSelection:
    """Mixin of the selections: fits of more rows than a kernel matrix serves."""

    approximation: str | None
    landmarks: int | None
    landmark_tol: float | None
    cache_size: float
    cv: Any
    refit: bool | str
    n_jobs: int | None
    tol: float
    max_iter: int
    verbose: bool
    random_state: Any
    feature_metric_: Array | None
    linear_trend_: Array | None
    n_features_in_: int
    kernel: Any
    scoring: Any
    clip: float | str | None
    _trend: Trend | None
    _settings: SelectionSettings
    _clock: Callable[[], float]
    time_limit: float | None
    _machine: Any
    _searched: Any
    _tell_scores: Any
    _tell_members: Any
    _point: Any
    _level: Any
    _warn: Any

    @property
    def _limit(self) -> float:
        """Seconds that a fit may take."""
        return np.inf if self.time_limit is None else float(self.time_limit)

    @property
    def _approximation(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in WHOLE}

    def _by_landmarks(self, n: int) -> bool:
        """Whether a fit of n rows goes by landmarks."""
        return bool(self._machine(**self._approximation)._by_landmarks(n))

    def _plan(self, n: int, held_out: int = 0) -> Plan:
        """What a fit of n rows is going to do."""
        large, landmarks, gap = self._settings.large, 0, None
        if self._by_landmarks(n):
            landmarks = self._landmark_count(n - held_out) or Landmarks().most
            gap = self.landmark_tol if self.landmarks is None else None
        return Plan(
            n=n,
            d=self.n_features_in_,
            levels=self._n_levels,
            chosen=min(n - held_out, large.selection_rows) if landmarks else n,
            landmarks=min(landmarks, n - held_out),
            held_out=held_out,
            jobs=Threads(self.n_jobs).count,
            threads=thread_count(),
            megabytes=float(self.cache_size),
            settings=large,
            gap=gap,
        )

    def _tell(self, words: object) -> None:
        """A line of the log, where that is asked for."""
        with progress_log(self.verbose) as log:
            if log is not None:
                logger.info("%s: %s", type(self).__name__, words)

    def _fit_large(
        self,
        X: Any,
        data: TrainingSet,
        groups: Any,
        axes: tuple[int | Array, int | Array],
        started: float,
    ) -> None:
        """Choose on some rows, fit landmarks on all but those held out, and calibrate by these."""
        if not (isinstance(self.cv, int | np.integer) or hasattr(self.cv, "split")):
            wanted = "an integer or a splitter where the choice is made on some of the rows"
            raise refuse("cv", wanted, self.cv)
        data = replace(data, y=np.ascontiguousarray(data.y, dtype=np.float64))
        rng = np.random.default_rng(seed_of(self.random_state))
        held_out = self._held_out_rows(len(data)) if self.refit else 0
        plan = self._plan(len(data), held_out)
        self._tell(plan)
        chosen, held, others = parts_of_rows(len(data), held_out, self._settings.large, rng)
        some = part_of(data, chosen)
        groups_of = None if groups is None else np.asarray(groups)[np.asarray(some.rows)]
        trend = self._learned_trend(part_of(data, others), started)
        jobs = Threads(self.n_jobs)
        search, places = self._chosen(some, groups_of, axes, started, jobs, trend)
        members: list[Member] = []
        if self.refit:
            fitted = part_of(data, np.setdiff1d(np.arange(len(data)), held, assume_unique=True))
            title = f"fitting functions of landmarks to {len(fitted):,} rows"
            self._tell(f"{title}, about {span(plan.landmark_seconds)}")
            with heartbeat(self.verbose, title, plan.landmark_seconds, self._settings.beats):
                members = self._landmark_members(search, places, fitted, started + self._limit)
            self._tell(gap_words(members))
        self._tell_members(members)
        if self.refit:
            rest = part_of(data, held)
            self._calibrate_by(_safe_indexing(X, np.asarray(rest.rows)), rest)
        self._warn(search, members)
        if self.landmarks is None and self.landmark_tol is None:
            warn_of_landmarks(type(self).__name__, members, self._settings.large.telling_gap)

    def _chosen(
        self,
        data: TrainingSet,
        groups: Any,
        axes: tuple[int | Array, int | Array],
        started: float,
        jobs: Jobs,
        trend: Trend | None,
    ) -> tuple[Search, list[Place]]:
        """The search on some rows, and the points of the levels, which share a γ.

        A trend, of other rows, is taken where the levels beside it err less.
        """
        title, large = f"choosing on {len(data):,} rows", self._settings.large
        expected = large.selection_seconds(len(data), self._n_levels, jobs.count)
        with heartbeat(self.verbose, title, expected, self._settings.beats):
            beside = None if trend is None else trend(data.X)
            _, search, view = self._searched(by_itself(data), groups, axes, started, jobs, beside)
        self._trend = trend if view.beside else None
        self.linear_trend_ = None if self._trend is None else self._trend.weights
        places = shared_places(search)
        self._tell_scores(search, data, places)
        return search, places

    def _learned_trend(self, data: TrainingSet, started: float) -> Trend | None:
        """The line that a target may owe to the features, from rows that are not chosen on."""
        large = self._settings.large
        least = large.trend_rows_a_feature * data.X.shape[1]
        by_distance = self.kernel in ("auto", *DISTANCE_KERNELS)
        # predictions in a range, and other scores, are of y itself
        plain = self.clip is not None or self.scoring is not None
        left = started + self._limit - self._clock()
        if sp.issparse(data.X) or not by_distance or plain or len(data) < least or left <= 0:
            return None
        return Trend.learned(data, large.trend_share * left if np.isfinite(left) else None)

    @property
    def _n_levels(self) -> int:
        return int(np.size(getattr(self, "tau", 0.5)))

    def _landmark_members(
        self, search: Search, places: Sequence[Place], data: TrainingSet, ends: float
    ) -> list[Member]:
        """The machines of all levels, by shared landmarks."""
        machines = self._landmark_machines(search, places, self._landmark_count(len(data)))
        with progress_log(self.verbose) as callback:
            options = self._options(ends).with_(callback=callback)
            return fit_by_landmarks(machines, places, data, self.n_features_in_, options)

    def _options(self, ends: float) -> SolverOptions:
        """Of the fits by landmarks, which have time until then."""
        left = max(ends - self._clock(), 0.0)
        return SolverOptions(
            tol=self.tol,
            max_iter=self.max_iter,
            clock=self._clock,
            time_limit=left if np.isfinite(left) else None,
            seed=seed_of(self.random_state),
        )

    def _landmark_machines(
        self, search: Search, places: Sequence[Place], count: int | None
    ) -> list[Any]:
        """The machines of the levels at their points, to be fitted by landmarks."""
        wanted = {"landmarks": count, "landmark_tol": self.landmark_tol}
        machines: list[Any] = []
        for level, place in enumerate(places):
            point = {**self._point(search, *place), **self._level(level)}
            machine = self._machine(**point, approximation="landmarks", **wanted)
            machine._metric, machine._trend = self.feature_metric_, self._trend
            machines.append(machine)
        return machines

    def _landmark_count(self, n: int) -> int | None:
        """How many landmarks for n rows; None for as many as the gap needs that is asked for."""
        if self.landmark_tol is not None:
            return self.landmarks
        return landmark_count(self.landmarks, n, float(self.cache_size), self._settings.large)

    def _held_out_rows(self, n: int) -> int:
        """How many of n rows are held out to calibrate by."""
        return 0

    def _calibrate_by(self, X: Any, data: TrainingSet) -> None:
        """Set what calibrates the levels, by rows that were held out, if anything does."""


def gap_words(members: Sequence[Member]) -> str:
    """How far the functions of all levels are from the full problem at most."""
    results = [member.result for member in members]
    found = [result for result in results if isinstance(result, LandmarkResult)]
    worst = max(found, key=lambda result: result.gap_estimate)
    about = "" if worst.exact else "about "
    count = len(worst.landmarks)
    return f"{count:,} landmarks, {about}{worst.gap_estimate:.1e} from the full problem"


def part_of(data: TrainingSet, rows: Index) -> TrainingSet:
    """Some of the rows, which still stand where they stood in the X that was given."""
    where = np.asarray(data.rows)[rows]
    return TrainingSet(data.X[rows], data.y[rows], data.weight[rows], where, data.n_given)


def by_itself(data: TrainingSet) -> TrainingSet:
    """The same rows as if they were all that was given."""
    return TrainingSet(data.X, data.y, data.weight, np.arange(len(data)), len(data))


def parts_of_rows(
    n: int, held_out: int, settings: LargeSettings, rng: np.random.Generator
) -> tuple[Index, Index, Index]:
    """Rows to choose on, rows held out, and some of the others; sorted, and none in two parts."""
    order = rng.permutation(n)
    end = held_out + settings.selection_rows
    parts = order[held_out:end], order[:held_out], order[end : end + settings.trend_rows]
    chosen, held, others = (np.sort(part) for part in parts)
    return chosen, held, others


def landmark_count(asked: int | None, n: int, megabytes: float, settings: LargeSettings) -> int:
    """How many landmarks: as asked for, or those whose features fit in memory in float32."""
    if asked is not None:
        return int(asked)
    fit = int(megabytes * 2**20 / (4 * n))
    return min(max(fit, settings.least_landmarks), settings.most_landmarks, n)


def shared_places(search: Search) -> list[Place]:
    """The best C of every level at the γ that is best for all of them, which share landmarks.

    A level counts by what its best point costs. The race, or a time limit, may leave a level
    without any score at a γ: that γ is then worse for it than all that it knows, and it takes the C
    of its own best point. Without any best point of a level there are no places.
    """
    own = [place for k in range(len(search.scores)) if (place := search.best(k)) is not None]
    if len(own) < len(search.scores):
        return []
    if np.isnan(search.scores).all():  # time was up before the first score: the middle
        return own
    costs, chosen = [], []
    for level, place in enumerate(own):
        means = search.scores[level][:, :, search.comparable(level)].mean(axis=2)
        known = ~np.isnan(means)
        unit = max(abs(float(means[place])), np.finfo(np.float64).tiny) if known[place] else 1.0
        worse = np.where(known, (means.max(where=known, initial=-np.inf) - means) / unit, np.inf)
        most = float(worse.max(where=known, initial=0.0))
        costs.append(np.minimum(worse.min(axis=1), 1.0 + most))
        chosen.append(np.where(known.any(axis=1), worse.argmin(axis=1), place[1]))
    gamma = int(np.sum(costs, axis=0).argmin())
    return [(gamma, int(of_level[gamma])) for of_level in chosen]


def fit_by_landmarks(
    machines: Sequence[ApproximableMachine],
    places: Sequence[Place],
    data: TrainingSet,
    n_features: int,
    options: SolverOptions,
) -> list[Member]:
    """The members of all levels, solved together by one set of landmarks."""
    first = machines[0]
    with one_blas_thread():
        gram = first._streamed(data)
        problems = []
        for machine in machines:
            machine._kernel, machine._centre = first._kernel, first._centre
            (posed,) = machine._levels(data)
            problems.append(machine._posed(gram, posed, data.weight))
        results = solve_landmarks(
            problems, first._landmark_settings, options, data.weight, len(problems) > 1
        )
    members = []
    for level, (machine, result) in enumerate(zip(machines, results, strict=True)):
        machine._check_bounded(result.dual_gap)
        machine.n_features_in_ = n_features
        machine._clip_to(data.y)
        machine._keep(data, [result])
        members.append(Member(machine, level, places[level], None, 1, result=result))
    return members
