"""C of a linear machine by cross-validation: a path of warm starts on every fold."""

from __future__ import annotations

import threading
import time
import warnings
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet
from ..estimators.linear import LinearSVR
from ..estimators.linear_data import linear_training_set
from ..estimators.parameters import check_flag, check_integer, check_positive, refuse
from ..estimators.progress import caller_level
from ..losses import Loss
from ..metrics import squared_correlation
from ..operators import LinearOperator
from ..solvers import SolverOptions, SolverResult, Status, solve
from ..solvers.units import spread
from ..threads import in_threads, one_blas_thread
from .grid import check_axis
from .results import cv_results, equal_to_best
from .scoring import Score, make_scores

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: the share of ``time_limit`` that the fits on folds may take; the rest is for the last fit
SELECTION_SHARE = 0.8
#: the default grid: C = 1/(2nλ) for λ from 1 down to this over n, in units of the data
SMALLEST_LAMBDA = 1e-3


class LinearSVRCV(RegressorMixin, BaseEstimator):
    """:class:`LinearSVR` with C chosen by cross-validation.

    On every fold the values of C are fitted from the smallest to the largest, each from the
    solution of the one before; X is never copied, whole or in folds.

    Parameters
    ----------
    Cs : int or list of float
        How many values, spread over what the data can need, or the values.
    cv : int, splitter or iterable
        Folds, shuffled where it is a number; as in scikit-learn otherwise.
    scoring : str, callable or None
        The name of a scikit-learn score or a callable of (y_true, y_pred), larger is better;
        None is minus the mean of the machine's own loss.
    refit : bool
        Whether to fit all data with the best C.
    selection_tol : float
        The relative duality gap of the fits on folds.
    n_jobs : int or None
        Folds at a time, in threads.
    time_limit : float or None
        Seconds for everything: four fifths for the folds, in equal parts, and what is left for the
        last fit. Values of C for which there was no time on every fold are not chosen; a
        :class:`~sklearn.exceptions.ConvergenceWarning` tells how many these are.
    epsilon, tol, scale_C, loss, fit_intercept, intercept_scaling, dual, solver, verbose, \
random_state, max_iter
        As in :class:`LinearSVR`; ``tol`` is that of the last fit, the machine that predicts.

    Attributes
    ----------
    best_params_ : dict
        The best C; the smallest where several are equal.
    best_score_ : float
    best_index_ : int
    best_estimator_ : LinearSVR
        With ``refit=True``.
    dual_gap_ : float
        The certificate of ``best_estimator_``: the relative duality gap of the machine that
        predicts, on all data.
    cv_results_ : dict
        As scikit-learn's searches have it, and beside the scores the mean squared error and the
        squared correlation of every fold: ``split0_test_mse``, ``mean_test_mse``, … and
        ``split0_test_squared_correlation``, ….
    Cs_ : array
    n_splits_ : int
    n_iter_ : int
        Fits of the selection.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import LinearSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=300)
    >>> model = LinearSVRCV(Cs=[1e-4, 1e-2, 1.0]).fit(X, y)
    >>> model.best_params_
    {'C': 1.0}
    >>> bool(model.cv_results_["mean_test_squared_correlation"][2] > 0.95)
    True
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = False,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: bool | str = "auto",
        solver: str = "auto",
        time_limit: float | None = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.tol = tol
        self.scale_C = scale_C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.solver = solver
        self.time_limit = time_limit
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _machine(self, C: float) -> LinearSVR:
        own = ("Cs", "cv", "scoring", "refit", "selection_tol", "n_jobs")
        given = {k: v for k, v in self.get_params(deep=False).items() if k not in own}
        return LinearSVR(C=C, **given)

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose C, and fit.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together.

        Returns
        -------
        self
        """
        started = time.perf_counter()
        machine = self._machine(1.0)
        loss = machine._losses()[0]
        machine._check_parameters()
        asked = self._check_own_parameters()
        data = linear_training_set(self, X, y, sample_weight)
        score = make_scores(self.scoring, [loss], data.y)[0]
        costs = asked if isinstance(asked, np.ndarray) else self._default_costs(data, loss, asked)
        folds = self._folds(data, groups)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            done = self._scored(machine, data, loss, score, costs, folds)
        self._warn(done)
        self.n_iter_ = len(folds) * len(costs)
        tables = np.array([fold.table for fold in done])  # fold, C, measure
        self._choose(tables.transpose(2, 1, 0), costs)
        for name in ("best_estimator_", "dual_gap_"):
            self.__dict__.pop(name, None)
        if self.refit:
            best = self._machine(self.best_params_["C"])
            if self.time_limit is not None:
                # never nothing: the best constant takes no time
                best.time_limit = max(self.time_limit - (time.perf_counter() - started), 1e-9)
            best.fit(data.X, data.y, sample_weight=data.weight)
            best.time_limit = self.time_limit
            if hasattr(self, "feature_names_in_"):
                best.feature_names_in_ = self.feature_names_in_
            self.best_estimator_, self.dual_gap_ = best, best.dual_gap_
        return self

    def _scored(
        self,
        machine: LinearSVR,
        data: TrainingSet,
        loss: Loss,
        score: Score,
        costs: Array,
        folds: list[tuple[Index, Index]],
    ) -> list[Fold]:
        """The measures of every fold, each within its part of the time."""
        options = machine._options().with_(tol=self.selection_tol)
        halted = threading.Event()
        options = options.with_(callback=lambda _: halted.is_set())
        if self.time_limit is not None:
            workers = min(effective_n_jobs(self.n_jobs), len(folds))
            rounds = -(-len(folds) // workers)
            options = options.with_(time_limit=SELECTION_SHARE * self.time_limit / rounds)
        jobs = [partial(_fold, machine, data, loss, score, costs, options, *fold) for fold in folds]
        try:
            done: list[Fold] = list(in_threads(jobs, self.n_jobs, shared=True))
        except BaseException:  # Ctrl-C too: folds in other threads end at their next check
            halted.set()
            raise
        return done

    def _default_costs(self, data: TrainingSet, loss: Loss, number: int) -> Array:
        return default_costs(LinearOperator(data.X), data, loss, number, bool(self.scale_C))

    def _check_own_parameters(self) -> int | Array:
        check_positive("selection_tol", self.selection_tol)
        check_flag("refit", self.refit)
        if self.n_jobs is not None:
            check_integer("n_jobs", self.n_jobs, -(2**31))
            if self.n_jobs == 0:
                raise refuse("n_jobs", "None or an integer other than 0", 0)
        return check_axis("Cs", self.Cs)

    def _folds(self, data: TrainingSet, groups: Any) -> list[tuple[Index, Index]]:
        """Training and validation rows of positive weight."""
        splitter = self.cv
        if isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool):
            check_integer("cv", self.cv, 2)
            if data.n_given < self.cv:
                raise ValueError(
                    f"cv={self.cv} folds need as many rows, got n_samples = {data.n_given}"
                )
            seed = check_random_state(0 if self.random_state is None else self.random_state)
            splitter = KFold(self.cv, shuffle=True, random_state=seed)
        try:
            splitter = check_cv(splitter)
        except ValueError as error:
            raise ValueError(f"cv: {error}") from error
        place = np.full(data.n_given, -1, dtype=np.int64)
        place[data.rows] = np.arange(len(data))
        folds = []
        blank = np.zeros((data.n_given, 1))
        for parts in splitter.split(blank, blank[:, 0], groups):
            train, validation = (place[np.asarray(part)] for part in parts)
            folds.append((train[train >= 0], validation[validation >= 0]))
            if len(folds[-1][0]) < 2 or len(folds[-1][1]) < 1:
                raise ValueError(
                    "cv must leave 2 rows of positive weight for training and 1 for validation "
                    f"in every fold, got {len(folds[-1][0])} and {len(folds[-1][1])}"
                )
        if not folds:
            raise ValueError("cv must give at least one split, got none")
        return folds

    def _warn(self, done: list[Fold]) -> None:
        gaps = [gap for fold in done for gap in fold.unsolved]
        late = sum(np.isnan(fold.table[:, 0]).sum() for fold in done) if self.time_limit else 0
        told = []
        if late:
            told.append(
                f"{late} fits of the selection did not come to an end within "
                f"time_limit={self.time_limit} s, and their C were not considered. Raise time_limit"
            )
        if gaps:
            told.append(
                f"{len(gaps)} fits of the selection did not reach a "
                f"relative duality gap of selection_tol={self.selection_tol:g}; the largest is "
                f"{max(gaps):.2e}. Their scores count as they are. Raise max_iter, scale the "
                "data (StandardScaler), try another solver, or leave out the largest C"
            )
        if told:
            warnings.warn(
                f"{type(self).__name__}: {'. '.join(told)}.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def _choose(self, tables: Array, costs: Array) -> None:
        """Set the fitted attributes from the measures, each (n_costs, n_folds)."""
        scores, errors, correlations = tables
        means = scores.mean(axis=1)
        if np.isnan(means).all():
            raise ValueError(
                f"no C could be scored on all folds, scoring={self.scoring!r}, "
                f"time_limit={self.time_limit!r}"
            )
        self.cv_results_ = cv_results(scores[None], None, costs)
        for name, table in (("mse", errors), ("squared_correlation", correlations)):
            for fold, column in enumerate(table.T):
                self.cv_results_[f"split{fold}_test_{name}"] = column
            self.cv_results_[f"mean_test_{name}"] = table.mean(axis=1)
        self.best_index_ = int(np.flatnonzero(equal_to_best(means))[0])
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = {"C": float(costs[self.best_index_])}
        self.Cs_, self.n_splits_ = costs, scores.shape[1]

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X with the chosen machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        raw : bool
            The function that was fitted and certified; here it is what predicts anyway.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        return self.best_estimator_.predict(X, raw=raw)


class Fold(NamedTuple):
    """Score, mean squared error and squared correlation of every C, and the gaps not closed.

    NaN where the time ended before.
    """

    table: Array
    unsolved: list[float]


def _fold(
    machine: LinearSVR,
    data: TrainingSet,
    loss: Loss,
    score: Score,
    costs: Array,
    options: SolverOptions,
    train: Index,
    validation: Index,
) -> Fold:
    """All C on one fold, each from the solution of the one before."""
    started = options.clock()
    part = TrainingSet(None, data.y[train], data.weight[train], train, len(train))
    posing = machine._posing(part)
    # rows of their own: folds may run side by side
    inside, outside = LinearOperator(data.X, train), LinearOperator(data.X, validation)
    y, weight = data.y[validation], data.weight[validation]
    last: SolverResult | None = None
    table, unsolved = np.full((len(costs), 3), np.nan), []
    limit = options.time_limit
    for k, C in enumerate(costs):
        if limit is not None:
            left = limit - (options.clock() - started)
            options = options.with_(time_limit=max(left, 0.0))
        problem = posing.problem(inside, loss, float(C))
        last = solve(problem, machine._solver, options, last)
        if last.status in (Status.TIME_LIMIT, Status.STOPPED_BY_CALLBACK):
            break
        if last.status is not Status.SOLVED:
            unsolved.append(last.dual_gap)
        prediction = outside.values(last.function) + last.intercept
        error = float(weight @ (y - prediction) ** 2 / weight.sum())
        table[k] = (
            score(y, prediction, weight),
            error,
            squared_correlation(y, prediction, weight),
        )
    return Fold(table, unsolved)


def default_costs(
    rows: LinearOperator, data: TrainingSet, loss: Loss, number: int, scale_C: bool = False
) -> Array:
    """The values of C for these rows."""
    weight = data.weight
    n = float(weight.sum())
    unit = 1.0 if scale_C else spread(data.y, weight)
    return cost_grid(n, float(weight @ rows.squares()) / n, unit, loss, number)


def cost_grid(n: float, length: float, unit: float, loss: Loss, number: int) -> Array:
    """C = 1/(2nλ), λ from 1 to 0.001/n, for rows of length one and y of spread one.

    ``length`` is the mean square of the rows' lengths, ``unit`` the spread of y in units of C.
    """
    scale = 1.0 / length if length > 0 else 1.0
    if np.isfinite(loss.dual_terms(np.ones(1), np.ones(1)).upper[0]):  # grows linearly
        scale *= 2.0 * unit
    low, high = scale / (2.0 * n), scale / (2.0 * SMALLEST_LAMBDA)
    if not 0 < low < high < np.inf:
        raise ValueError(
            f"Cs must be given as values where X, y or sample_weight have such a size: {number} of "
            f"them would be spread from {low:g} to {high:g}"
        )
    return np.geomspace(low, high, number) if number > 1 else np.array([np.sqrt(low * high)])
