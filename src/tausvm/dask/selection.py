"""C of a linear machine by cross-validation on Dask collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..estimators.atomic import atomic
from ..estimators.parameters import check_choice, check_integer, refuse
from ..estimators.progress import progress_log
from ..operators import LinearOperator
from ..selection import linear as single
from ..selection.linear import Fold, cost_grid
from ..solvers import SolverOptions, SolverResult, Status
from .fitting import Fit
from .linear import LinearSVR, note_features, warn_unless_solved, without_dask
from .partitions import Block, Partitions, collection_kind
from .settings import Plan
from .sums import Draw, Job, Part

Array = NDArray[np.float64]

#: scores that are sums over rows
SCORES = (None, "neg_mean_squared_error")


class LinearSVRCV(single.LinearSVRCV):
    """:class:`tausvm.LinearSVRCV` on Dask collections: C chosen by cross-validation.

    Every row is dealt into a fold at random. All folds and all values of C are fitted in the same
    passes over the data, and scored in one more.

    Parameters
    ----------
    Cs, refit, selection_tol
        As in :class:`tausvm.LinearSVRCV`.
    cv : int
        How many folds.
    scoring : {None, "neg_mean_squared_error"}
        None is minus the mean of the machine's own loss.
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

    def _machine(self, C: float) -> LinearSVR:
        return LinearSVR(**super()._machine(C).get_params(deep=False))

    @atomic
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, plan: Plan | None = None
    ) -> Self:
        """Choose C, and fit.

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
        machine = self._machine(1.0)
        loss = machine._losses()[0]
        machine._check_parameters()
        asked = self._check_own_parameters()
        if isinstance(self.cv, bool) or not isinstance(self.cv, int | np.integer):
            raise refuse("cv", "a number of folds", self.cv)
        check_integer("cv", self.cv, 2)
        if self.scoring is not None:
            check_choice("scoring", self.scoring, SCORES[1:], "None")
        partitions = Partitions(X, y, sample_weight, plan or Plan())
        options = machine._options().with_(tol=self.selection_tol, time_limit=self._time(0.8))
        with progress_log(bool(self.verbose)):
            fit = Fit(partitions, machine._offset, machine._solver, options, int(self.cv))
            found = fit.summary
            if int(found.fold_sizes.min()) < 1:
                raise ValueError(f"cv={self.cv} folds need more rows, got n_samples = {found.n}")
            costs = asked if isinstance(asked, np.ndarray) else self._costs(fit, loss, asked)
            jobs = [Job(loss, float(C), fold) for fold in range(self.cv) for C in costs]
            results = fit.run(jobs)
            tables = self._tables(fit, jobs, results).reshape(self.cv, len(costs), 3)
            late = [result.status is Status.TIME_LIMIT for result in results]
            tables[np.reshape(late, tables.shape[:2])] = np.nan
            gaps = [r.dual_gap for r in results if r.status is not Status.SOLVED]
            self._warn([Fold(tables[0], gaps), *(Fold(table, []) for table in tables[1:])])
            self.n_iter_ = len(jobs)
            self._choose(tables.transpose(2, 1, 0), costs)
            self._refit(fit, machine._options().with_(time_limit=self._time(1.0)))
        note_features(self, partitions)
        self.n_passes_ = partitions.n_passes
        return self

    def _time(self, share: float) -> float | None:
        return None if self.time_limit is None else share * self.time_limit

    def _costs(self, fit: Fit, loss: Any, number: int) -> Array:
        found = fit.summary
        unit = 1.0 if self.scale_C else fit.spread
        return cost_grid(found.weight, found.norms / found.weight, unit, loss, number)

    def _tables(self, fit: Fit, jobs: list[Job], results: list[SolverResult]) -> Array:
        """Score, mean squared error and squared correlation of every job on its fold."""
        models = [
            Model(job, result.function, float(result.intercept))
            for job, result in zip(jobs, results, strict=True)
        ]
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

    def _refit(self, fit: Fit, options: SolverOptions) -> None:
        for name in ("best_estimator_", "dual_gap_"):
            self.__dict__.pop(name, None)
        if not self.refit:
            return
        best = self._machine(self.best_params_["C"])
        fit.options = options
        results = fit.run([Job(best._losses()[0], best.C)])
        best._keep(results)
        best._note(fit.partitions)
        warn_unless_solved(self, results, fit.partitions)
        self.best_estimator_, self.dual_gap_ = best, best.dual_gap_

    def single(self) -> Any:
        """The same as an estimator of :mod:`tausvm` itself, which needs no Dask."""
        out = without_dask(self, single.LinearSVRCV)
        if hasattr(self, "best_estimator_"):
            out.best_estimator_ = self.best_estimator_.single()
        return out

    def predict(self, X: Any, raw: bool = False) -> Any:
        """Predict at the rows of X with the chosen machine.

        Parameters
        ----------
        X : dask array or dataframe, or array or CSR matrix, of shape (n_samples, n_features)
        raw : bool
            The function that was fitted and certified; here it is what predicts anyway.

        Returns
        -------
        a lazy collection for a lazy X, else an array, of shape (n_samples,)
        """
        if collection_kind(X) and hasattr(self, "best_estimator_"):
            return self.best_estimator_.predict(X, raw=raw)
        return super().predict(X, raw=raw)


@dataclass(frozen=True)
class Model:
    """The solution of a job, in the user's units."""

    job: Job
    w: Array
    b: float


def validation(block: Block, given: tuple[Draw, float, list[Model]]) -> Array:
    """Sums over the rows of each model's fold, one row a model; y is taken from its mean on."""
    draw, mean, models = given
    fold = draw.fold_of(block.index, len(block))
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
        model.job.loss.value(residual, rows.y),
        residual**2,
        *(y, p, y * y, p * p, y * p),
    ]
    return np.array([float(weight @ column) for column in columns])


def added(parts: list[Array]) -> Array:
    """The sums of several partitions."""
    return np.sum(parts, axis=0)
