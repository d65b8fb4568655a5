"""Tuned levels of a table in one call: preparation and machine as one estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..estimators.atomic import atomic
from ..estimators.parameters import refuse
from ..selection import ExpectileSVRCV, QuantileSVRCV
from .preparation import FramePreparation
from .values import read_table

Array = NDArray[np.float64]


def _has_intervals(estimator: Any) -> bool:
    return hasattr(estimator._machine_class, "predict_interval")


def _of_the_machine(name: str, told: str) -> Any:
    """A fitted attribute of the tuned machine as one of the estimator."""

    def read(estimator: Any) -> Any:
        return getattr(estimator.machine_, name)

    return property(read, doc=told)


class TabularRegressor(RegressorMixin, BaseEstimator):
    """Base of the estimators that prepare a table and tune a machine on it."""

    #: the tuned machine
    _machine_class: type[Any]

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        kinds: Mapping[Any, str] | None = None,
        max_categories: int = 50,
        ordered: bool = True,
        Cs: int | Sequence[float] = 10,
        gammas: int | Sequence[float] = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool | str = "committee",
        prune: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        feature_metric: str | None = "auto",
        kernel: str | Callable[..., Array] = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = True,
        epsilon: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        approximation: str | None = "auto",
        landmarks: int | None = None,
        landmark_tol: float | None = None,
        cache_size: float = 2000,
        clip: float | str | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
    ) -> None:
        self.tau = tau
        self.kinds = kinds
        self.max_categories = max_categories
        self.ordered = ordered
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.prune = prune
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.feature_metric = feature_metric
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.scale_C = scale_C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.approximation = approximation
        self.landmarks = landmarks
        self.landmark_tol = landmark_tol
        self.cache_size = cache_size
        self.clip = clip
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    def _machine(self, groups: NDArray[np.int64]) -> Any:
        """The tuned machine, with every parameter of its own; ``groups`` are the features'."""
        known = signature(self._machine_class).parameters
        given = {**self.get_params(deep=False), "feature_groups": groups}
        return self._machine_class(**{name: given[name] for name in known if name in given})

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Prepare the columns, choose C and γ, and fit.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            Numbers, categories, dates, missing values.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the preparation, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            Rows that stay together in the validation.

        Returns
        -------
        self
        """
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise refuse("kernel", "one of features, as X is prepared", self.kernel)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        preparation = FramePreparation(kinds=self.kinds, max_categories=self.max_categories)
        table = read_table(self, X, reset=True)
        preparation.learn(table, y, sample_weight)
        features = preparation.training_matrix(table, y, sample_weight, groups)
        machine = self._machine(preparation.feature_groups_)
        machine.fit(features, y, sample_weight, groups=groups)
        self.preparation_, self.machine_ = preparation, machine
        return self

    def predict(self, X: Any) -> Array:
        """Predict at the rows of a table.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
            With the columns of the fit, in their order.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        check_is_fitted(self, "machine_")
        return np.asarray(self.machine_.predict(self._prepared(X)))

    @available_if(_has_intervals)
    def predict_interval(self, X: Any, **options: Any) -> Array:
        """Intervals at the rows of a table, as the tuned machine gives them."""
        check_is_fitted(self, "machine_")
        return np.asarray(self.machine_.predict_interval(self._prepared(X), **options))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """What the tuned machine's ``score`` is at the rows of a table.

        Parameters
        ----------
        X : data frame, array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        float
        """
        check_is_fitted(self, "machine_")
        return float(self.machine_.score(self._prepared(X), y, sample_weight))

    def _prepared(self, X: Any) -> Any:
        return self.preparation_.matrix(read_table(self, X, reset=False))

    @property
    def pipeline_(self) -> Pipeline:
        """Preparation and machine as the two steps of a pipeline, both fitted."""
        return Pipeline([("prepare", self.preparation_), ("model", self.machine_)])

    @property
    def columns_(self) -> list[dict[str, Any]]:
        """What each column is taken for, and why."""
        return list(self.preparation_.columns_)

    best_params_ = _of_the_machine("best_params_", "C and γ, a dict a level.")
    best_score_ = _of_the_machine("best_score_", "The score of these points.")
    best_index_ = _of_the_machine("best_index_", "Their places in ``cv_results_``.")
    best_estimator_ = _of_the_machine("best_estimator_", "What predicts from features, a level.")
    fold_params_ = _of_the_machine("fold_params_", "The best point of every fold, a level.")
    members_ = _of_the_machine("members_", "What the machines that predict are, a level.")
    dual_gap_ = _of_the_machine("dual_gap_", "The largest gap of these machines, a level.")
    cv_results_ = _of_the_machine("cv_results_", "The scores of the selection, a table a level.")
    scores_ = _of_the_machine("scores_", "The same as an array.")
    Cs_ = _of_the_machine("Cs_", "The grid in C.")
    gammas_ = _of_the_machine("gammas_", "The grid in γ.")
    fold_rows_ = _of_the_machine("fold_rows_", "The training rows of every fold.")
    n_splits_ = _of_the_machine("n_splits_", "The number of folds.")
    n_iter_ = _of_the_machine("n_iter_", "Fits of the selection.")
    kernel_ = _of_the_machine("kernel_", "The kernel that was chosen.")

    @property
    def feature_importances_(self) -> Array:
        """What the columns count, as shares: the sums of those of their features."""
        check_is_fitted(self, "machine_")
        groups, shares = self.preparation_.feature_groups_, self.machine_.feature_importances_
        return np.asarray(np.bincount(groups, shares, minlength=self.n_features_in_))


class TabularQuantileSVR(TabularRegressor):
    """Quantiles of a table with numbers, categories, dates and missing values, in one call.

    :class:`~tausvm.tabular.FramePreparation` makes features of the columns, and
    :class:`~tausvm.QuantileSVRCV` chooses C and γ on them and fits. What the columns were taken for
    is told in ``columns_``.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)).
    kinds, max_categories
        As in :class:`~tausvm.tabular.FramePreparation`.
    ordered, calibrate, Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, \
feature_metric, kernel, degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, \
approximation, landmarks, landmark_tol, cache_size, \
clip, time_limit, verbose, max_iter, random_state
        As in :class:`~tausvm.QuantileSVRCV`; not ``kernel="precomputed"``. The features of one
        column that is no number are weighed together.

    Attributes
    ----------
    columns_ : list of dict
        A row a column: its ``name``, ``kind``, ``why`` it is taken for that, and its ``features``.
    preparation_ : FramePreparation
    machine_ : QuantileSVRCV
    pipeline_ : Pipeline
        These two as its steps.
    best_params_, best_score_, best_index_, best_estimator_, fold_params_, members_, dual_gap_, \
cv_results_, scores_, Cs_, gammas_, fold_rows_, n_splits_, n_iter_, kernel_
        Those of ``machine_``.
    feature_importances_ : array (n_columns,)
        What the columns count, as shares: the sums of those of their features.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : array of str
        Where X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TabularQuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> size, place = rng.uniform(20, 120, 100), rng.choice(["centre", "edge"], 100)
    >>> rent = size * np.where(place == "centre", 15, 10) + rng.normal(0, 80, 100)
    >>> X = np.column_stack([size, place]).astype(object)
    >>> X[:3, 0] = None
    >>> model = TabularQuantileSVR(tau=[0.1, 0.9], Cs=4, gammas=4).fit(X, rent)
    >>> [column["kind"] for column in model.columns_]
    ['number', 'category']
    >>> low, high = model.predict([[70, "centre"]])[0]
    >>> bool(low < 70 * 15 < high)
    True
    """

    _machine_class = QuantileSVRCV

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        kinds: Mapping[Any, str] | None = None,
        max_categories: int = 50,
        ordered: bool = True,
        calibrate: str | None = "oof",
        Cs: int | Sequence[float] = 10,
        gammas: int | Sequence[float] = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool | str = "committee",
        prune: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        feature_metric: str | None = "auto",
        kernel: str | Callable[..., Array] = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = True,
        epsilon: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        approximation: str | None = "auto",
        landmarks: int | None = None,
        landmark_tol: float | None = None,
        cache_size: float = 2000,
        clip: float | str | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            tau=tau,
            kinds=kinds,
            max_categories=max_categories,
            ordered=ordered,
            Cs=Cs,
            gammas=gammas,
            cv=cv,
            scoring=scoring,
            refit=refit,
            prune=prune,
            selection_tol=selection_tol,
            n_jobs=n_jobs,
            feature_metric=feature_metric,
            kernel=kernel,
            degree=degree,
            coef0=coef0,
            tol=tol,
            scale_C=scale_C,
            epsilon=epsilon,
            fit_intercept=fit_intercept,
            solver=solver,
            approximation=approximation,
            landmarks=landmarks,
            landmark_tol=landmark_tol,
            cache_size=cache_size,
            clip=clip,
            time_limit=time_limit,
            verbose=verbose,
            max_iter=max_iter,
            random_state=random_state,
        )
        self.calibrate = calibrate


class TabularExpectileSVR(TabularRegressor):
    """Expectiles of a table with numbers, categories, dates and missing values, in one call.

    :class:`~tausvm.tabular.FramePreparation` makes features of the columns, and
    :class:`~tausvm.ExpectileSVRCV` chooses C and γ on them and fits. What the columns were taken
    for is told in ``columns_``.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1; ½ is the mean. A list gives predictions
        of shape (n, len(tau)).
    kinds, max_categories
        As in :class:`~tausvm.tabular.FramePreparation`.
    ordered, Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, feature_metric, kernel, \
degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, approximation, landmarks, \
landmark_tol, cache_size, clip, time_limit, \
verbose, max_iter, random_state
        As in :class:`~tausvm.ExpectileSVRCV`; not ``kernel="precomputed"``.

    Attributes
    ----------
    columns_, preparation_, machine_, pipeline_, n_features_in_, feature_names_in_
        As in :class:`TabularQuantileSVR`, and those of ``machine_`` as there.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TabularExpectileSVR
    >>> rng = np.random.default_rng(0)
    >>> day = np.datetime64("2024-01-01") + rng.integers(0, 900, 120)
    >>> warmth = 10 - 9 * np.cos(2 * np.pi * day.astype(int) / 365.25) + rng.normal(size=120)
    >>> model = TabularExpectileSVR(Cs=4, gammas=4).fit(day[:, None], warmth)
    >>> model.columns_[0]["kind"]
    'date'
    >>> bool(abs(model.predict([[np.datetime64("2025-07-01")]])[0] - 19) < 1.5)
    True
    """

    _machine_class = ExpectileSVRCV
