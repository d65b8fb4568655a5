"""C of a linear machine by cross-validation: a path of warm starts on every fold."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
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
from ..estimators.threads import one_blas_thread
from ..losses import Loss
from ..metrics import squared_correlation
from ..solvers import SolverOptions, Status
from ..solvers.linear import LinearResult, Rows, solve_linear
from .grid import check_axis
from .results import cv_results, equal_to_best
from .scoring import Score, make_scores

Array = NDArray[np.float64]
Index = NDArray[np.int64]

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
    epsilon, tol, loss, fit_intercept, intercept_scaling, dual, solver, verbose, random_state, \
max_iter
        As in :class:`LinearSVR`.

    Attributes
    ----------
    best_params_ : dict
        The best C; the smallest where several are equal.
    best_score_ : float
    best_index_ : int
    best_estimator_ : LinearSVR
        With ``refit=True``.
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
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: bool | str = "auto",
        solver: str = "auto",
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
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.solver = solver
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
        machine = self._machine(1.0)
        loss = machine._losses()[0]
        machine._check_parameters()
        asked = self._check_own_parameters()
        data = linear_training_set(self, X, y, sample_weight)
        score = make_scores(self.scoring, [loss], data.y)[0]
        rows = Rows(data.X)
        costs = asked if isinstance(asked, np.ndarray) else default_costs(rows, data, loss, asked)
        folds = self._folds(data, groups)
        with one_blas_thread():
            jobs = (
                delayed(_fold)(machine, rows, data, loss, score, costs, self.selection_tol, *fold)
                for fold in folds
            )
            done = Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs)
        self._warn(done)
        self.n_iter_ = len(folds) * len(costs)
        tables = np.array([table for table, _ in done])  # fold, C, measure
        self._choose(tables.transpose(2, 1, 0), costs)
        self.__dict__.pop("best_estimator_", None)
        if self.refit:
            best = self._machine(self.best_params_["C"])
            best.fit(data.X, data.y, sample_weight=data.weight)
            if hasattr(self, "feature_names_in_"):
                best.feature_names_in_ = self.feature_names_in_
            self.best_estimator_ = best
        return self

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

    def _warn(self, done: list[tuple[Array, list[float]]]) -> None:
        gaps = [gap for _, unsolved in done for gap in unsolved]
        if gaps:
            warnings.warn(
                f"{type(self).__name__}: {len(gaps)} fits of the selection did not reach a "
                f"relative duality gap of selection_tol={self.selection_tol:g}; the largest is "
                f"{max(gaps):.2e}. Their scores count as they are. Raise max_iter, scale the "
                "data, try another solver, or leave out the largest C.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def _choose(self, tables: Array, costs: Array) -> None:
        """Set the fitted attributes from the measures, each (n_costs, n_folds)."""
        scores, errors, correlations = tables
        self.cv_results_ = cv_results(scores[None], None, costs)
        for name, table in (("mse", errors), ("squared_correlation", correlations)):
            for fold, column in enumerate(table.T):
                self.cv_results_[f"split{fold}_test_{name}"] = column
            self.cv_results_[f"mean_test_{name}"] = table.mean(axis=1)
        means = scores.mean(axis=1)
        if np.isnan(means).all():
            raise ValueError(f"no C could be scored on all folds, scoring={self.scoring!r}")
        self.best_index_ = int(np.flatnonzero(equal_to_best(means))[0])
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = {"C": float(costs[self.best_index_])}
        self.Cs_, self.n_splits_ = costs, scores.shape[1]

    def predict(self, X: Any) -> Array:
        """Predict at the rows of X with the chosen machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        return self.best_estimator_.predict(X)


def _fold(
    machine: LinearSVR,
    rows: Rows,
    data: TrainingSet,
    loss: Loss,
    score: Score,
    costs: Array,
    tol: float,
    train: Index,
    validation: Index,
) -> tuple[Array, list[float]]:
    """Score, mean squared error and squared correlation of every C, and the gaps not closed."""
    part = TrainingSet(None, data.y[train], data.weight[train], train, len(train))
    inside, outside = rows.take(train), rows.take(validation)
    y, weight = data.y[validation], data.weight[validation]
    options: SolverOptions = machine._options().with_(tol=tol)
    last: LinearResult | None = None
    table, unsolved = [], []
    for C in costs:
        problem = machine._problem(inside, part, loss, float(C))
        last = solve_linear(problem, machine._solver, options, last)
        if last.status is not Status.SOLVED:
            unsolved.append(last.dual_gap)
        prediction = outside.dot(last.coef) + last.intercept
        error = float(weight @ (y - prediction) ** 2 / weight.sum())
        table.append(
            (score(y, prediction, weight), error, squared_correlation(y, prediction, weight))
        )
    return np.array(table), unsolved


def default_costs(rows: Rows, data: TrainingSet, loss: Loss, number: int) -> Array:
    """C = 1/(2nλ), λ from 1 to 0.001/n, for rows of length one and y of spread one."""
    weight = data.weight
    n = float(weight.sum())
    length = float(weight @ rows.squares()) / n
    scale = 1.0 / length if length > 0 else 1.0
    if np.isfinite(loss.dual_terms(np.ones(1), np.ones(1)).upper[0]):  # grows linearly
        mean = float(weight @ data.y) / n
        spread = float(np.sqrt(weight @ (data.y - mean) ** 2 / n))
        scale *= 2.0 * spread if spread > 0 else 1.0
    low, high = scale / (2.0 * n), scale / (2.0 * SMALLEST_LAMBDA)
    return np.geomspace(low, high, number) if number > 1 else np.array([np.sqrt(low * high)])
