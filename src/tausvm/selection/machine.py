"""What the selecting estimators share: checks, search, refit, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    check_cv,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet, costs, own_origin, training_set
from ..estimators.machine import DISTANCE_KERNELS
from ..estimators.parameters import check_flag, check_integer, check_positive, refuse
from ..estimators.progress import caller_level
from ..estimators.regression import KernelRegressor
from ..estimators.threads import one_blas_thread
from ..kernels import Points, make_kernel
from ..losses import Loss
from ..solvers import SolverOptions
from .committee import Committee, fitted_with
from .fits import DIRECT
from .grid import GAMMA_KERNELS, Axis, check_axis, cost_range, gamma_range, make_axis
from .results import cv_results
from .scoring import make_scores
from .search import Search
from .task import Fold, Task

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: splitters whose folds are alike, so that the first one tells about the others
EXCHANGEABLE = (KFold, RepeatedKFold, ShuffleSplit)
#: values of ``refit`` that make a mean of machines
MEANS = ("committee", "average")
#: with so few rows the folds' own machines join a committee, if each has seen this share of them:
#: what varies from row to row then matters more than what fewer rows cost
FEW_ROWS = 600
NEARLY_ALL = 0.7
#: parameters of a selection that its machines do not have
OWN_PARAMETERS = ("Cs", "gammas", "cv", "scoring", "refit", "prune", "selection_tol", "n_jobs")


class KernelRegressorCV(RegressorMixin, BaseEstimator):
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

    def _machine(self, **parameters: Any) -> KernelRegressor:
        """The machine with the parameters that are not chosen, and some that are."""
        given = {k: v for k, v in self.get_params().items() if k not in OWN_PARAMETERS}
        return self._machine_class(**{**given, "verbose": False, **parameters})

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
        machine = self._machine()
        losses = list(machine._losses())
        machine._check_parameters()
        asked, gammas = self._check_own_parameters()
        data = training_set(self, X, y, sample_weight, self._precomputed, y_numeric=True)
        targets = np.ascontiguousarray(data.y, dtype=np.float64)
        machine._clip_to(targets)
        folds = self._folds(data, targets, groups)
        scores = make_scores(self.scoring, self._judges(losses), targets)
        centre = self._centre(data.X)
        task = Task(
            X=data.X if centre is None else data.X - centre,
            y=targets,
            weight=data.weight,
            folds=folds,
            losses=losses,
            scores=scores,
            order=machine._order(),
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            offset=bool(self.fit_intercept),
            clip=self.clip,
            solver=self.solver,
            options=SolverOptions(tol=self.selection_tol, max_iter=self.max_iter),
            megabytes=self.cache_size / max(1, effective_n_jobs(self.n_jobs)),
            keep_models=self.refit in MEANS,
            prune=self._prunes(groups),
        )
        gamma_axis, cost_axis = self._axes(task, data, gammas, asked)
        for C in cost_axis.values[[0, -1]]:
            costs(float(C), data.weight, "Cs")
        search = Search(task, gamma_axis, cost_axis, self.n_jobs, self.verbose)
        search.run()
        self._finish(search, data, centre)
        self._report(search)
        return self

    def _check_own_parameters(self) -> tuple[int | Array, int | Array]:
        costs, gammas = check_axis("Cs", self.Cs), check_axis("gammas", self.gammas)
        check_positive("selection_tol", self.selection_tol)
        check_flag("prune", self.prune)
        if not isinstance(self.refit, bool | np.bool_) and self.refit not in MEANS:
            raise refuse("refit", "True, False, 'committee' or 'average'", self.refit)
        if self.n_jobs is not None:
            check_integer("n_jobs", self.n_jobs, -(2**31))
            if self.n_jobs == 0:
                raise refuse("n_jobs", "None or an integer other than 0", 0)
        return costs, gammas

    def _folds(self, data: TrainingSet, y: Array, groups: Any) -> list[Fold]:
        """The splits, in terms of the rows of positive weight."""
        n_rows = data.n_given
        place = np.full(n_rows, -1, dtype=np.int64)
        place[data.rows] = np.arange(len(data))
        folds = []
        for train, validation in self._splitter(n_rows, groups).split(
            np.zeros((n_rows, 1)), np.zeros(n_rows), groups
        ):
            train, validation = (place[_positions(part, n_rows)] for part in (train, validation))
            folds.append(Fold(train[train >= 0], validation[validation >= 0]))
        if not folds:
            raise ValueError("cv must give at least one split, got none")
        for k, fold in enumerate(folds):
            if len(fold.train) < 2 or len(fold.validation) < 1:
                raise ValueError(
                    "cv must leave 2 rows of positive weight for training and 1 for validation "
                    f"in every fold, got {len(fold.train)} and {len(fold.validation)} in fold {k}"
                )
            if np.ptp(y[fold.train]) == 0:
                raise ValueError(
                    f"y must not be constant in the training part of a fold, got "
                    f"{y[fold.train[0]]:g} in all {len(fold.train)} rows of fold {k}; shuffle the "
                    "rows or take fewer folds"
                )
        return folds

    def _splitter(self, n_rows: int, groups: Any) -> Any:
        if not isinstance(self.cv, int | np.integer) or isinstance(self.cv, bool):
            try:
                return check_cv(self.cv)
            except ValueError as error:
                raise ValueError(f"cv: {error}") from error
        check_integer("cv", self.cv, 2)
        if n_rows < self.cv:
            raise ValueError(f"cv={self.cv} folds need as many rows, got n_samples = {n_rows}")
        if groups is not None:
            return GroupKFold(self.cv)
        seed = check_random_state(0 if self.random_state is None else self.random_state)
        return KFold(self.cv, shuffle=True, random_state=seed)

    def _prunes(self, groups: Any) -> bool:
        """Whether the first fold may rule points out: the folds have to be alike."""
        alike = isinstance(self.cv, (int, np.integer, *EXCHANGEABLE))
        return bool(self.prune) and alike and groups is None

    def _centre(self, X: Any) -> Array | None:
        """Where distances alone matter, small coordinates keep their digits in float32."""
        if self.kernel in DISTANCE_KERNELS and not sp.issparse(X):
            return own_origin(X)
        return None

    def _axes(
        self, task: Task, data: TrainingSet, gammas: int | Array, costs: int | Array
    ) -> tuple[Axis, Axis]:
        """The grids; a kernel without γ has a γ axis of one point, which it ignores."""
        if self.kernel in GAMMA_KERNELS:
            gamma_axis = make_axis(gammas, *gamma_range(self.kernel, data))
        else:
            gamma_axis = Axis(np.ones(1), False)
        diagonal = self._mean_diagonal(task, float(np.median(gamma_axis.values)))
        span = cost_range(task.y, task.weight, not task.squared, diagonal)
        return gamma_axis, make_axis(costs, *span)

    def _mean_diagonal(self, task: Task, gamma: float) -> float:
        """The mean of k(x, x)."""
        if self.kernel in DISTANCE_KERNELS:
            return 1.0
        if self._precomputed:
            return float(np.diagonal(task.X).mean())
        kernel = make_kernel(self.kernel, gamma, self.degree, self.coef0)
        return float(kernel.diagonal(Points(task.X)).mean())

    def _report(self, search: Search) -> None:
        """One warning for all fits that fell short."""
        if search.unsolved:
            warnings.warn(
                f"{type(self).__name__}: {len(search.unsolved)} fits of the selection, of "
                f"{search.n_fits + np.isinf(search.unsolved).sum()}, did not reach a relative "
                f"duality gap of selection_tol={self.selection_tol:g}; the largest is "
                f"{max(search.unsolved):.2e}. Their scores count as they are, except that fits "
                "without any solution are left out.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def _finish(self, search: Search, data: TrainingSet, centre: Array | None) -> None:
        """Set the fitted attributes."""
        levels = range(len(search.task.losses))
        best = [found for level in levels if (found := search.best(level)) is not None]
        if len(best) < len(levels):
            raise ValueError(
                "no point of the grid could be fitted and scored on all folds; the largest "
                f"relative gap was {max(search.unsolved, default=np.nan):.2e}, "
                f"kernel={self.kernel!r}, scoring={self.scoring!r}"
            )
        gammas, costs = search.gammas.values, search.costs.values
        with_gamma = self.kernel in GAMMA_KERNELS
        self.Cs_, self.gammas_ = costs, gammas if with_gamma else np.empty(0)
        self.scores_ = search.scores
        self.n_splits_ = len(search.task.folds)
        self.n_iter_ = search.n_fits
        tables, indices, scores = [], [], []
        for level, (g, c) in enumerate(best):
            indices.append(c * len(gammas) + g)
            scores.append(float(search.means[level, g, c]))
            tables.append(cv_results(search.scores[level], gammas if with_gamma else None, costs))
        points = [self._point(search, *place) for place in best]
        choices = [search.fold_choices(level) for level in levels]
        of_folds = [[self._point(search, *place) for place in places] for places in choices]
        single = self._single_level
        self.cv_results_ = tables[0] if single else tables
        self.best_params_ = points[0] if single else points
        self.fold_params_ = of_folds[0] if single else of_folds
        self.best_index_ = indices[0] if single else np.array(indices)
        self.best_score_ = scores[0] if single else np.array(scores)
        self.__dict__.pop("best_estimator_", None)
        if not self.refit:
            return
        if self.refit in MEANS:
            machines: list[Any] = self._committees(search, choices, data, centre)
        else:
            machines = [
                self._machine(**self._level(level), **point) for level, point in enumerate(points)
            ]
            slow = [search.point(level, *place) in search.slow for level, place in enumerate(best)]
            self._refit(machines, slow, data, search.task.y)
        if hasattr(self, "feature_names_in_"):
            for machine in machines:
                for part in getattr(machine, "machines", [machine]):
                    part.feature_names_in_ = self.feature_names_in_
        self.best_estimator_ = machines[0] if single else machines

    def _point(self, search: Search, g: int, c: int) -> dict[str, float]:
        """A point of the grid as parameters of a machine."""
        point = {"C": float(search.costs.values[c])}
        if self.kernel in GAMMA_KERNELS:
            point["gamma"] = float(search.gammas.values[g])
        return point

    def _committees(
        self,
        search: Search,
        choices: Sequence[Sequence[tuple[int, int]]],
        data: TrainingSet,
        centre: Array | None,
    ) -> list[Committee]:
        """For each level the mean of machines at the points that its folds have chosen.

        They are the folds' own, or machines of all rows, or with few rows both. A point that could
        not be fitted on all rows is left to the folds that chose it.
        """
        folds = search.task.folds
        whole = {}
        own = self.refit == "average"
        if not own:
            whole = self._whole_machines(search, choices, data, centre)
            nearly_all = all(len(fold.train) >= NEARLY_ALL * len(data) for fold in folds)
            own = len(data) <= FEW_ROWS and nearly_all
        committees = []
        for level, places in enumerate(choices):
            machines = [
                self._fold_machine(search, level, place, fold, data, centre)
                for fold, place in enumerate(places)
                if own or (level, *place) not in whole
            ]
            shares = [1] * len(machines)
            for place in (place for place in whole if place[0] == level):
                machines.append(whole[place])
                shares.append(places.count(place[1:]))
            committees.append(Committee(machines, shares))
        return committees

    def _fold_machine(
        self,
        search: Search,
        level: int,
        place: tuple[int, int],
        fold: int,
        data: TrainingSet,
        centre: Array | None,
    ) -> KernelRegressor:
        """A fold's machine at a point, from the selection."""
        return fitted_with(
            self._machine(**self._level(level), **self._point(search, *place)),
            data,
            search.task,
            centre,
            search.task.folds[fold].train,
            search.models[search.point(level, *place)][fold],
        )

    def _whole_machines(
        self,
        search: Search,
        choices: Sequence[Sequence[tuple[int, int]]],
        data: TrainingSet,
        centre: Array | None,
    ) -> dict[tuple[int, int, int], KernelRegressor]:
        """Machines of all rows, by level and point; without those that could not be fitted."""
        members = {
            (level, *place): self._machine(**self._level(level), **self._point(search, *place))
            for level, places in enumerate(choices)
            for place in sorted(set(places))
        }
        # the steps of the selection do not get far everywhere
        small = len(data) <= DIRECT
        hard = [place for place in members if small and search.point(*place) in search.hard]
        slow = [search.point(*place) in search.slow for place in hard]
        self._refit([members[place] for place in hard], slow, data, search.task.y)
        easy = search.fit_whole(members.keys() - set(hard))
        everything = np.arange(len(data))
        for place, model in easy.items():
            fitted_with(members[place], data, search.task, centre, everything, model)
        return {place: found for place, found in members.items() if hasattr(found, "dual_coef_")}

    def _refit(
        self, machines: Sequence[KernelRegressor], slow: Sequence[bool], data: TrainingSet, y: Array
    ) -> None:
        """Fit the machines on all data, at the same time where memory allows."""

        def fit(machine: KernelRegressor, direct: bool) -> None:
            if direct and self.solver == "auto" and len(data) <= DIRECT:
                machine.solver = "interior_point"
            machine.fit(data.X, y, sample_weight=data.weight)
            machine.solver = self.solver

        jobs = effective_n_jobs(self.n_jobs) if len(machines) > 1 else 1
        room = self.cache_size * 2**20 / (8 * len(data) ** 2)
        with one_blas_thread():
            Parallel(n_jobs=max(1, min(jobs, int(room))), require="sharedmem")(
                delayed(fit)(machine, direct)
                for machine, direct in zip(machines, slow, strict=True)
            )

    def predict(self, X: Any) -> Array:
        """Predict at the rows of X with the chosen machines.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        if self._single_level:
            machine: Any = self.best_estimator_
            return np.asarray(machine.predict(X))
        machines: Any = self.best_estimator_
        return np.stack([machine.predict(X) for machine in machines], axis=1)


def _positions(index: Any, n: int) -> NDArray[np.int64]:
    """Rows of a split as positions; a mask works too."""
    index = np.asarray(index)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if len(index) and (index.min() < -n or index.max() >= n):
        raise ValueError(f"cv must give rows below {n}, got {index.max()}")
    return np.asarray(index, dtype=np.int64)
