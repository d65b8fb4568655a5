"""What the selecting estimators share: checks, search, refit, prediction."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit
from sklearn.utils.validation import check_is_fitted

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet, costs, training_set, without_cancellation
from ..estimators.machine import DISTANCE_KERNELS
from ..estimators.parameters import (
    check_flag,
    check_jobs,
    check_positive,
    refuse,
)
from ..estimators.regression import KernelRegressor
from ..kernels import mapped
from ..losses import Loss
from ..solvers import SolverOptions
from ..solvers.many import Stop
from ..solvers.units import Units, root_mean_square, spread
from .committee import Committee
from .grid import (
    GAMMA_KERNELS,
    Axis,
    check_axis,
    cost_range,
    gamma_range,
    make_axis,
    mean_diagonal,
)
from .jobs import Jobs, Threads
from .large import WHOLE, LargeSelection
from .members import Member, Panel
from .memory import Memory
from .outcome import warn_of_members, warn_of_search
from .results import cv_results
from .scoring import make_scores
from .search import Search
from .settings import SelectionSettings
from .splits import split_rows
from .task import Fold, Task
from .views import (
    LEARNABLE,
    SMOOTH_AND_ROUGH,
    View,
    Views,
    check_feature_groups,
    check_metric,
    composed,
    equal_spread,
    importances,
)

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: splitters whose folds are alike, so that the first one tells about the others
EXCHANGEABLE = (KFold, RepeatedKFold, ShuffleSplit)
#: values of ``refit`` that make a mean of machines
MEANS = ("committee", "average")
#: scores are means of squares of y's size
LARGEST = 1e150
#: parameters of a selection that its machines do not have
OWN_PARAMETERS = (
    *("Cs", "gammas", "cv", "scoring", "refit", "prune", "selection_tol", "n_jobs"),
    *("calibrate", "feature_metric", "feature_groups"),
)


class KernelRegressorCV(LargeSelection, RegressorMixin, BaseEstimator):
    """Base of the estimators that choose C and γ: a subclass names its machine."""

    #: the estimator whose C and γ are chosen
    _machine_class: type[KernelRegressor]

    Cs: Any
    gammas: Any
    cv: Any
    scoring: Any
    refit: bool | str
    prune: bool
    selection_tol: float
    n_jobs: int | None
    feature_metric: str | None
    feature_groups: Any
    kernel: str | Callable[..., Array]
    degree: int
    coef0: float
    tol: float
    epsilon: float
    fit_intercept: bool
    solver: str
    cache_size: float
    clip: float | str | None
    verbose: bool
    max_iter: int
    random_state: Any
    scale_C: bool
    time_limit: float | None

    #: seconds, as ``time_limit`` counts them; tests put another one in its place
    _clock: Callable[[], float] = staticmethod(time.perf_counter)
    #: the numbers of the search
    _settings = SelectionSettings()

    def _machine(self, **parameters: Any) -> KernelRegressor:
        """The machine with the parameters that are not chosen, and some that are."""
        kind: Any = type(self)
        given = {name: getattr(self, name) for name in _machine_parameters(kind)}
        if self._competing:
            given["kernel"] = SMOOTH_AND_ROUGH[0]
        quiet = {"verbose": False, "time_limit": None, **WHOLE}
        return self._machine_class(**{**given, **quiet, **parameters})

    @property
    def _competing(self) -> bool:
        """Whether the kernel is chosen too."""
        return isinstance(self.kernel, str) and self.kernel == "auto"

    def _level(self, level: int) -> dict[str, Any]:
        """The parameters that make a machine one of this level."""
        return {}

    @property
    def _single_level(self) -> bool:
        return True

    def _judges(self, losses: Sequence[Loss]) -> list[Loss]:
        """The losses by which levels are judged when no scoring is given."""
        return list(losses)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose C and γ, and fit.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together; with an integer ``cv`` it makes
            :class:`~sklearn.model_selection.GroupKFold` of it.

        Returns
        -------
        self
        """
        started = self._clock()
        machine = self._machine(**self._approximation)
        machine._losses()
        machine._check_parameters()
        asked, gammas = self._check_own_parameters()
        data = training_set(self, X, y, sample_weight, self._precomputed, y_numeric=True)
        if self._by_landmarks(len(data)):
            self._fit_large(X, data, groups, (asked, gammas), started)
            return self
        self._tell(self._plan(len(data)))
        jobs = Threads(self.n_jobs)
        data, search, _ = self._searched(data, groups, (asked, gammas), started, jobs)
        self.linear_trend_ = None
        self._tell_scores(search, data)
        ends = started + self._limit
        members = self._fit_members(search, data, ends) if self.refit else []
        self._tell_members(members)
        self._calibrate(search, data)
        self._warn(search, members)
        return self

    def _searched(
        self,
        data: TrainingSet,
        groups: Any,
        axes: tuple[int | Array, int | Array],
        started: float,
        jobs: Jobs,
        trend: Array | None = None,
    ) -> tuple[TrainingSet, Search, View]:
        """The data as kernels take them, and the search of the view that was chosen.

        With the values of a trend at the rows, targets beside it compete with those as they are.
        """
        asked, gammas = axes
        data, task, spread_of = self._posed(data, groups, gammas, started)
        tasks = (task,) if trend is None else (task, self._beside(task, data, trend))
        metric, groups_of = self._check_metric(data)

        def searched(view: View, rival: Search | None) -> Search:
            """The scores of one view."""
            room = self.cache_size / jobs.sharing
            here = replace(
                tasks[view.beside],
                kernel=view.kernel,
                maps=view.maps,
                memory=Memory(),
                megabytes=room,
            )
            as_seen = replace(data, X=mapped(task.X, view.weights))
            gamma_axis, cost_axis = self._axes(here, as_seen, gammas, asked)
            if view.gamma is not None:
                gamma_axis = gamma_axis.near(view.gamma, task.settings.metric.gamma_reach)
            for C in cost_axis.values[[0, -1]]:
                costs(float(C), data.weight, "Cs")
            search = Search(here, gamma_axis, cost_axis, jobs, self.verbose, rival)
            search.run()
            return search

        kernels: tuple[Any, ...] = (self.kernel,)
        if self._competing:
            kernels = SMOOTH_AND_ROUGH[: 1 if sp.issparse(data.X) else None]
        levels = tuple(np.atleast_1d(getattr(self, "tau", 0.5)).tolist())
        views = Views(tasks, kernels, metric, groups_of, levels, self.n_jobs, searched)
        view, search = views.choose()
        self._tell_view(view, spread_of)
        return data, search, view

    def _beside(self, task: Task, data: TrainingSet, trend: Array) -> Task:
        """The same task for what a trend leaves of the targets."""
        targets = task.targets - trend
        folds = [Fold.of(f.train, f.validation, targets, task.weight) for f in task.folds]
        units = self._units(replace(data, y=targets))
        return replace(task, targets=targets, units=units, folds=folds, memory=Memory())

    def _posed(
        self, data: TrainingSet, groups: Any, gammas: int | Array, started: float
    ) -> tuple[TrainingSet, Task, Array | None]:
        """The data as kernels take them, the task of a selection on them, and how it scales them.

        Returns
        -------
        data : TrainingSet
        task : Task
            Its features are of equal spread where they can be learned.
        spread_of : array (d,) or None
            The weights that make them so.
        """
        machine, settings = self._machine(), self._settings
        losses = list(machine._losses())
        targets = np.ascontiguousarray(data.y, dtype=np.float64)
        data = replace(data, X=self._features(data, gammas), y=targets)
        metric, _ = self._check_metric(data)
        machine._clip_to(targets)
        self._range = machine._range
        folds = self._folds(data, groups)
        scores = make_scores(self.scoring, self._judges(losses), targets)
        centre = self._centre(data.X)
        several = metric is not None or self._competing
        plain = metric is None or sp.issparse(data.X)
        spread_of = None if plain else equal_spread(data.X, data.weight)
        limit = self._limit
        share = settings.search_share if self.refit else 1.0
        task = Task(
            X=mapped(data.X if centre is None else data.X - centre, spread_of),
            targets=targets,
            units=self._units(data),
            scale_C=bool(self.scale_C),
            weight=data.weight,
            folds=folds,
            losses=losses,
            scores=scores,
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            offset=bool(self.fit_intercept),
            clip=self.clip,
            solver=self.solver,
            options=SolverOptions(
                tol=self.selection_tol, max_iter=self.max_iter, clock=self._clock
            ),
            megabytes=self.cache_size / Threads(self.n_jobs).sharing,
            keep_models=self.refit in MEANS or several or self._needs_models,
            prune=self._prunes(groups),
            stop=Stop(self._clock, started + share * limit),
            settings=settings,
        )
        return data, task, spread_of

    @property
    def _needs_models(self) -> bool:
        """Whether the folds' models are needed beyond those that predict."""
        return False

    def _calibrate(self, search: Search, data: TrainingSet) -> None:
        """Set what calibrates the levels that predict, if anything does."""

    def _warn(self, search: Search, members: Sequence[Member]) -> None:
        name = type(self).__name__
        warn_of_search(name, search, self.time_limit)
        warn_of_members(name, members, self.tol, self.max_iter, self.time_limit)

    def _check_own_parameters(self) -> tuple[int | Array, int | Array]:
        costs, gammas = check_axis("Cs", self.Cs), check_axis("gammas", self.gammas)
        check_positive("selection_tol", self.selection_tol)
        check_flag("prune", self.prune)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        if not isinstance(self.refit, bool | np.bool_) and self.refit not in MEANS:
            raise refuse("refit", "True, False, 'committee' or 'average'", self.refit)
        check_jobs(self.n_jobs)
        return costs, gammas

    def _check_metric(self, data: TrainingSet) -> tuple[str | None, Index | None]:
        """The metric to learn, None for features as they are; groups of features."""
        metric = self.feature_metric
        if metric is not None:
            check_metric("feature_metric", metric, data.X, "None")
        groups = check_feature_groups(self.feature_groups, data.X.shape[1])
        if metric is None or (isinstance(self.kernel, str) and self.kernel in LEARNABLE):
            return metric, groups
        if metric != "auto":
            wanted = f"'auto' or None for kernel={self.kernel!r}, whose features cannot be learned"
            raise refuse("feature_metric", wanted, metric)
        return None, groups

    def _tell_view(self, view: View, spread_of: Array | None) -> None:
        """Set the kernel and the map of the features that were chosen."""
        self.kernel_ = view.kernel
        self.feature_metric_ = composed(spread_of, view.weights)
        self.learned_ = view.learned
        self._importances = importances(view.weights, spread_of, self.n_features_in_)

    @property
    def feature_importances_(self) -> Array:
        """What the features count in the metric, as shares: they sum to 1.

        Of features in units of their own spread; equal where none were learned.
        """
        check_is_fitted(self, "cv_results_")
        return self._importances

    def _units(self, data: TrainingSet) -> Units:
        """Units of the selection's own: what it looks at does not depend on those of y."""
        units = Units.of(data.y, data.weight, bool(self.fit_intercept))
        size = root_mean_square(data.y - units.shift, data.weight)
        if size == 0:
            return units
        if not 1.0 / LARGEST < size < LARGEST:
            raise refuse(
                "y", f"spread by {1 / LARGEST:g} to {LARGEST:g}, so that squares are numbers", size
            )
        return replace(units, scale=size)

    def _folds(self, data: TrainingSet, groups: Any) -> list[Fold]:
        """The splits, in terms of the rows of positive weight."""
        splits = split_rows(self.cv, data, groups, self.random_state)
        return [Fold.of(*rows, data.y, data.weight) for rows in splits]

    def _prunes(self, groups: Any) -> bool:
        """Whether the first fold may rule points out: the folds have to be alike."""
        alike = isinstance(self.cv, (int, np.integer, *EXCHANGEABLE))
        return bool(self.prune) and alike and groups is None

    def _features(self, data: TrainingSet, gammas: int | Array) -> Any:
        """X as the kernel can take it at the largest γ."""
        if self.kernel not in ("rbf", "auto"):
            return data.X
        largest = gamma_range("rbf", data)[1] if isinstance(gammas, int) else float(gammas.max())
        return without_cancellation(data.X, largest, self.cache_size)

    def _centre(self, X: Any) -> Array | None:
        """Where distances alone matter, small coordinates keep their digits in float32."""
        if self.kernel in ("auto", *DISTANCE_KERNELS) and not sp.issparse(X):
            return np.asarray(X.mean(axis=0))
        return None

    def _axes(
        self, task: Task, data: TrainingSet, gammas: int | Array, costs: int | Array
    ) -> tuple[Axis, Axis]:
        """The grids; a kernel without γ has a γ axis of one point, which it ignores."""
        if task.kernel in GAMMA_KERNELS:
            gamma_axis = make_axis(gammas, *gamma_range(task.kernel, data))
        else:
            gamma_axis = Axis(np.ones(1), False)
        middle = float(np.median(gamma_axis.values))
        diagonal = mean_diagonal(task.kernel, task.X, middle, self.degree, self.coef0)
        unit = 1.0
        if not task.squared:
            unit = 2.0 * (1.0 if self.scale_C else spread(task.targets, task.weight))
        return gamma_axis, make_axis(costs, *cost_range(task.weight, unit, diagonal))

    def _tell_scores(
        self, search: Search, data: TrainingSet, best: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Set what is known of the grid; ``best`` has the points chosen where they are not each
        level's own."""
        levels = range(len(search.task.losses))
        own = [found for level in levels if (found := search.best(level)) is not None]
        best = best or own
        if len(own) < len(levels):
            raise ValueError(
                "no point of the grid could be fitted and scored on all folds; the largest "
                f"relative gap was {max(search.unsolved, default=np.nan):.2e}, "
                f"kernel={self.kernel!r}, scoring={self.scoring!r}"
            )
        gammas, costs = search.gammas.values, search.costs.values
        with_gamma = self.kernel_ in GAMMA_KERNELS
        self.Cs_, self.gammas_ = costs, gammas if with_gamma else np.empty(0)
        self.scores_ = search.scores
        self.n_splits_ = len(search.task.folds)
        self.fold_rows_ = [data.rows[fold.train] for fold in search.task.folds]
        self.n_iter_ = search.n_fits
        tables, indices, scores = [], [], []
        for level, (g, c) in enumerate(best):
            indices.append(c * len(gammas) + g)
            scores.append(float(search.scores[level, g, c, search.comparable(level)].mean()))
            slack = search.rounding(level)
            named = [{"gamma": float(gamma)} for gamma in gammas] if with_gamma else [{}]
            tables.append(cv_results(search.scores[level], named, costs, slack))
        points = [self._point(search, *place) for place in best]
        of_folds = [
            [self._point(search, *place) for place in search.fold_choices(level)]
            for level in levels
        ]
        single = self._single_level
        self.cv_results_ = tables[0] if single else tables
        self.best_params_ = points[0] if single else points
        self.fold_params_ = of_folds[0] if single else of_folds
        self.best_index_ = indices[0] if single else np.array(indices)
        self.best_score_ = scores[0] if single else np.array(scores)

    def _tell_members(self, members: Sequence[Member]) -> None:
        """Set the machines that predict, and what they are."""
        for name in ("best_estimator_", "members_", "dual_gap_"):
            self.__dict__.pop(name, None)
        if not members:
            return
        machines: list[Any] = []
        told = []
        for level in sorted({member.level for member in members}):
            here = [member for member in members if member.level == level]
            total = sum(member.share for member in here)
            told.append([self._told(member, total) for member in here])
            parts = [member.machine for member in here]
            mean = Committee(parts, [member.share for member in here])
            machines.append(mean if self.refit in MEANS else parts[0])
        if hasattr(self, "feature_names_in_"):
            for member in members:
                member.machine.feature_names_in_ = self.feature_names_in_
        gaps = [max(float(entry["dual_gap"]) for entry in entries) for entries in told]
        single = self._single_level
        self.best_estimator_ = machines[0] if single else machines
        self.members_ = told[0] if single else told
        self.dual_gap_ = gaps[0] if single else np.array(gaps)

    def _told(self, member: Member, total: int) -> dict[str, Any]:
        """What a member is; ``total`` is the sum of the shares of its level."""
        told: dict[str, Any] = {"C": float(member.machine.C)}
        if self.kernel_ in GAMMA_KERNELS:
            told["gamma"] = float(member.machine.gamma)
        if self._competing:
            told["kernel"] = self.kernel_
        assert member.result is not None
        return {
            **told,
            "fold": member.fold,
            "weight": member.share / total,
            "dual_gap": float(member.result.dual_gap),
        }

    def _point(self, search: Search, g: int, c: int) -> dict[str, Any]:
        """A point of the grid as parameters of a machine."""
        point: dict[str, Any] = {"C": float(search.costs.values[c])}
        if self.kernel_ in GAMMA_KERNELS:
            point["gamma"] = float(search.gammas.values[g])
        if self._competing:
            point["kernel"] = self.kernel_
        return point

    def _fit_members(self, search: Search, data: TrainingSet, ends: float) -> list[Member]:
        """The machines that predict, each solved to ``tol`` on its rows, until time is up.

        A point without a solution on all rows is left to the folds that chose it.
        """
        task = search.task
        members = self._planned(search, data)
        task.stop.deadline = ends
        panel = Panel(
            data,
            [fold.train for fold in task.folds],
            self.n_features_in_,
            task.options.with_(tol=self.tol),
            task.stop,
            self.n_jobs,
            task.settings,
        )
        members = panel.fit(members)
        members += panel.fit(self._left_to_folds(search, members))
        fitted = [member for member in members if member.result is not None]
        if {member.level for member in fitted} != {member.level for member in members}:
            raise ValueError(
                f"kernel must be positive semidefinite, got {self.kernel!r}, for which the dual "
                "problem of these data is unbounded"
            )
        return fitted

    def _left_to_folds(self, search: Search, members: Sequence[Member]) -> list[Member]:
        """The folds' own members at points that have no solution on all rows."""
        there = {(member.level, member.fold) for member in members}
        return [
            self._member(search, member.level, member.place, fold, 1)
            for member in members
            if member.result is None and self.refit == "committee"
            for fold, place in enumerate(search.fold_choices(member.level))
            if place == member.place and (member.level, fold) not in there
        ]

    def _planned(self, search: Search, data: TrainingSet) -> list[Member]:
        """The members to fit, those of a level that matter most first.

        They are machines at the points that the folds of a level have chosen: of all rows, of the
        folds, or with few rows both. Where one machine is wanted, or the search was cut
        short, it is that of all rows at the best point.
        """
        folds = search.task.folds
        committee = self._settings.committee
        nearly_all = all(len(fold.train) >= committee.nearly_all * len(data) for fold in folds)
        few = len(data) <= committee.few_rows and nearly_all
        members = []
        for level in range(len(search.task.losses)):
            if search.cut_short or self.refit not in MEANS:
                best = search.best(level)
                assert best is not None
                members.append(self._member(search, level, best, None, 1))
                continue
            choices = search.fold_choices(level)
            if self.refit == "committee":
                times = Counter(choices)
                for place in sorted(times, key=lambda place: (-times[place], place)):
                    members.append(self._member(search, level, place, None, times[place]))
            if self.refit == "average" or few:
                for fold, place in enumerate(choices):
                    members.append(self._member(search, level, place, fold, 1))
        return members

    def _member(
        self, search: Search, level: int, place: tuple[int, int], fold: int | None, share: int
    ) -> Member:
        """A member with what the selection knows of its β."""
        machine = self._machine(**self._level(level), **self._point(search, *place))
        machine._metric = self.feature_metric_
        start = search.start(level, place, fold) if self.refit in MEANS else None
        hard = bool(search.hard[(level, *place)]) and not search.task.squared
        return Member(machine, level, place, fold, share, start, hard)

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X with the chosen machines.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        raw : bool
            The mean of the functions that were certified, before ``clip``, calibration and
            ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        best: Any = self.best_estimator_
        machines = [best] if self._single_level else best
        values = np.stack([machine.predict(X, raw=raw) for machine in machines], axis=1)
        if not raw:
            values = self._finished(values)
        return values[:, 0] if self._single_level else values

    def _finished(self, values: Array) -> Array:
        """What is predicted where the machines have these values, (n, n_levels)."""
        return values


@cache
def _machine_parameters(selection: Any) -> tuple[str, ...]:
    """The parameters that a selection hands on; to ask for them takes a millisecond."""
    return tuple(k for k in selection._get_param_names() if k not in OWN_PARAMETERS)
