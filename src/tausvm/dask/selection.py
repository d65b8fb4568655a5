"""C and ε of linear machines by cross-validation on Dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..estimators.atomic import atomic
from ..estimators.parameters import check_choice, check_integer, refuse
from ..estimators.progress import progress_log
from ..losses import Loss
from ..operators import LinearOperator
from ..selection import linear as single
from ..selection.linear_machine import MEASURES, LinearSelection, cost_grid
from ..selection.walk import Scored
from ..solvers import SolverOptions, Status
from .fitting import Fit
from .linear import (
    DaskMachine,
    LazyPredictions,
    LinearExpectileSVR,
    LinearQuantileSVR,
    LinearSVR,
    note_features,
    warn_unless_solved,
    without_dask,
)
from .partitions import Block, Partitions
from .settings import Plan
from .sums import Draw, Job, Part

Array = NDArray[np.float64]

#: scores that are sums over rows
SCORES = (None, "neg_mean_squared_error")


class PartitionedSelection(LazyPredictions, LinearSelection):
    """Selection on Dask collections, before the selection of the single machine."""

    _machine_class: type[DaskMachine]

    #: passes over the data that the last fit took, the first look at them included
    n_passes_: int

    @atomic
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, plan: Plan | None = None
    ) -> Self:
        """Choose C, and ε where that is asked for, and fit.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
        y : dask array or series of shape (n_samples,)
        sample_weight : dask array or series of shape (n_samples,), or None
            Weights of the rows, in the fits and in the validation.
        plan : Plan or None

        Returns
        -------
        self
        """
        machine = self._machine()
        losses = machine._losses()
        machine._check_parameters()
        asked, tubes = self._check_selection(), self._check_epsilons()
        if isinstance(self.cv, bool) or not isinstance(self.cv, int | np.integer):
            raise refuse("cv", "a number of folds", self.cv)
        check_integer("cv", self.cv, 2)
        if self.scoring is not None:
            check_choice("scoring", self.scoring, SCORES[1:], "None")
        partitions = Partitions(X, y, sample_weight, plan or Plan())
        share = self._settings.walk.time_share
        options = machine._options().with_(tol=self.selection_tol, time_limit=self._time(share))
        with progress_log(bool(self.verbose)):
            fit = Fit(partitions, machine._offset, machine._solver, options, int(self.cv))
            found = fit.summary
            if int(found.fold_sizes.min()) < 1:
                raise ValueError(f"cv={self.cv} folds need more rows, got n_samples = {found.n}")
            others = self._others(tubes, fit.spread)
            costs = asked if isinstance(asked, np.ndarray) else self._costs(fit, losses[0], asked)
            done = self._scored(fit, self._tubes(others), self._judges(losses), costs)
            self._warn(done)
            self._choose(done, others, costs, MEASURES)
            self._fit_best(fit, machine._options().with_(time_limit=self._time(1.0)))
        note_features(self, partitions)
        self.n_passes_ = partitions.n_passes
        return self

    def _time(self, share: float) -> float | None:
        return None if self.time_limit is None else share * self.time_limit

    def _costs(self, fit: Fit, loss: Loss, number: int) -> Array:
        found = fit.summary
        unit = 1.0 if self.scale_C else fit.spread
        length = found.norms / found.weight
        return cost_grid(found.weight, length, unit, loss, number, self._settings.walk)

    def _scored(
        self, fit: Fit, tubes: list[list[Loss]], judges: list[Loss], costs: Array
    ) -> list[Scored]:
        """The measures of all points on every fold."""
        shape = int(self.cv), len(judges), len(tubes), len(costs)
        places = list(np.ndindex(shape))
        jobs = [Job(tubes[o][level], float(costs[c]), fold) for fold, level, o, c in places]
        results = fit.run(jobs)
        models = [
            Model(job, judges[level], result.function, float(result.intercept))
            for job, result, (_, level, _, _) in zip(jobs, results, places, strict=True)
        ]
        tables = self._tables(fit, models)
        tables[[result.status is Status.TIME_LIMIT for result in results]] = np.nan
        gaps = [r.dual_gap for r in results if r.status is not Status.SOLVED]
        first, *rest = tables.reshape(*shape, -1)
        return [Scored(first, gaps), *(Scored(table, []) for table in rest)]

    def _tables(self, fit: Fit, models: list[Model]) -> Array:
        """Score, mean squared error and squared correlation of every job on its fold."""
        given = fit.setting.draw, fit.summary.mean, models
        sums = fit.partitions.reduce(validation, added, given)
        # Σw, Σwℓ, Σwe², and of targets and predictions Σwy, Σwp, Σwy², Σwp², Σwyp
        weight, own, squares, y, p, yy, pp, yp = sums.T / np.maximum(sums[:, 0], 1e-300)
        weight = np.where(sums[:, 0] > 0, 1.0, np.nan)
        spreads = (yy - y * y) * (pp - p * p)
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = np.where(spreads > 0, (yp - y * p) ** 2 / spreads, 0.0)
        score = -(own if self.scoring is None else squares)
        return np.stack([score * weight, squares * weight, correlation * weight], axis=1)

    def _fit_best(self, fit: Fit, options: SolverOptions) -> None:
        """Set the machines that predict: all levels in the same passes."""

        def fitted(machines: list[DaskMachine]) -> None:
            fit.options = options
            results = fit.run([Job(machine._losses()[0], machine.C) for machine in machines])
            for machine, result in zip(machines, results, strict=True):
                machine._keep([result])
                machine._note(fit.partitions)
            warn_unless_solved(self, results, fit.partitions)

        self._take(fitted)

    def single(self) -> Any:
        """The same as an estimator of :mod:`tausvm` itself, which needs no Dask."""
        out = without_dask(self, getattr(single, type(self).__name__))
        if hasattr(self, "best_estimator_"):
            machines = [machine.single() for machine in self._fitted]
            out.best_estimator_ = machines[0] if self._one_choice else machines
        return out


class LinearSVRCV(PartitionedSelection, single.LinearSVRCV):
    """:class:`tausvm.LinearSVRCV` on Dask collections: C, or C and ε, by cross-validation.

    Every row is dealt into a fold at random. All folds and all points of the grid are fitted in
    the same passes over the data, and scored in one more.

    Parameters
    ----------
    Cs, epsilons, refit, selection_tol
        As in :class:`tausvm.LinearSVRCV`.
    cv : int
        How many folds.
    scoring : {None, "neg_mean_squared_error"}
        None is minus the mean of the machine's own loss, without ε where that is chosen.
    n_jobs : None
        Without effect: the workers are Dask's.
    epsilon, tol, scale_C, loss, fit_intercept, intercept_scaling, dual, solver, time_limit, \
verbose, random_state, max_iter
        As in :class:`tausvm.dask.LinearSVR`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, dual_gap_, cv_results_, Cs_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearSVRCV`; ``best_estimator_`` is a
        :class:`tausvm.dask.LinearSVR`.
    n_passes_ : int
        Passes over the data, for the selection and the last fit.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearSVRCV
    >>> draw = da.random.default_rng(0)
    >>> X = draw.normal(size=(600, 4), chunks=(200, 4)).persist()
    >>> y = (X[:, 0] + 0.1 * draw.normal(size=600, chunks=200)).persist()
    >>> LinearSVRCV(Cs=[1e-5, 1e-1], cv=3).fit(X, y).best_params_
    {'C': 0.1}
    """

    _machine_class = LinearSVR


class LinearQuantileSVRCV(PartitionedSelection, single.LinearQuantileSVRCV):
    """:class:`tausvm.LinearQuantileSVRCV` on Dask collections.

    A C, or a C and an ε, for every level. As in :class:`LinearSVRCV`, all levels, folds and points
    of the grid are fitted in the same passes.

    Parameters
    ----------
    Cs, epsilons, cv, scoring, refit, selection_tol, n_jobs
        As in :class:`LinearSVRCV`.
    tau, ordered, epsilon, tol, scale_C, fit_intercept, intercept_scaling, dual, solver, \
time_limit, verbose, random_state, max_iter
        As in :class:`tausvm.dask.LinearQuantileSVR`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, dual_gap_, cv_results_, Cs_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearQuantileSVRCV`; the machines are
        :class:`tausvm.dask.LinearQuantileSVR`.
    n_passes_ : int
        Passes over the data, for the selection and the last fits.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearQuantileSVRCV
    >>> draw = da.random.default_rng(0)
    >>> X = draw.normal(size=(600, 4), chunks=(200, 4)).persist()
    >>> y = (X[:, 0] + 0.1 * draw.normal(size=600, chunks=200)).persist()
    >>> model = LinearQuantileSVRCV(tau=[0.2, 0.8], Cs=[1e-5, 1e-1], cv=3).fit(X, y)
    >>> model.best_params_
    [{'C': 0.1}, {'C': 0.1}]
    """

    _machine_class = LinearQuantileSVR


class LinearExpectileSVRCV(PartitionedSelection, single.LinearExpectileSVRCV):
    """:class:`tausvm.LinearExpectileSVRCV` on Dask collections.

    A C, or a C and an ε, for every level. As in :class:`LinearSVRCV`, all levels, folds and points
    of the grid are fitted in the same passes.

    Parameters
    ----------
    Cs, epsilons, cv, scoring, refit, selection_tol, n_jobs
        As in :class:`LinearSVRCV`.
    tau, ordered, epsilon, tol, scale_C, fit_intercept, intercept_scaling, dual, solver, \
time_limit, verbose, random_state, max_iter
        As in :class:`tausvm.dask.LinearExpectileSVR`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, dual_gap_, cv_results_, Cs_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearExpectileSVRCV`; the machines are
        :class:`tausvm.dask.LinearExpectileSVR`.
    n_passes_ : int
        Passes over the data, for the selection and the last fits.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearExpectileSVRCV
    >>> draw = da.random.default_rng(0)
    >>> X = draw.normal(size=(600, 4), chunks=(200, 4)).persist()
    >>> y = (X[:, 0] + 0.1 * draw.normal(size=600, chunks=200)).persist()
    >>> model = LinearExpectileSVRCV(tau=[0.2, 0.8], Cs=[1e-5, 1e-1], cv=3).fit(X, y)
    >>> model.best_params_
    [{'C': 0.1}, {'C': 0.1}]
    """

    _machine_class = LinearExpectileSVR


@dataclass(frozen=True)
class Model:
    """The solution of a job, in the user's units, and the loss that it is judged by."""

    job: Job
    judge: Loss
    w: Array
    b: float


def validation(block: Block, given: tuple[Draw, float, list[Model]]) -> Array:
    """Sums over the rows of each model's fold, one row a model; y is taken from its mean on."""
    draw, mean, models = given
    fold = draw.fold_of(block)
    folds = {model.job.fold for model in models}
    parts = {left_out: Part.only(block, fold, left_out) for left_out in folds}
    return np.array([_validated(parts[model.job.fold], mean, model) for model in models])


def _validated(part: Part, mean: float, model: Model) -> Array:
    rows = part.rows
    if len(part.index) == 0:
        return np.zeros(8)
    predicted = LinearOperator(rows.X).values(model.w) + model.b
    residual = rows.y - predicted
    y, p, weight = rows.y - mean, predicted - mean, rows.weight
    columns = [
        np.ones(len(y)),
        model.judge.value(residual, rows.y),
        residual**2,
        *(y, p, y * y, p * p, y * p),
    ]
    return np.array([float(weight @ column) for column in columns])


def added(parts: list[Array]) -> Array:
    """The sums of several partitions."""
    return np.sum(parts, axis=0)
