"""The linear machines with C, and ε, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..estimators.levels import OrderedLevels
from ..estimators.linear import LinearExpectileSVR, LinearQuantileSVR, LinearSVR
from ..losses import Loss
from ..solvers import Solver
from .linear_machine import LinearSelection

Array = NDArray[np.float64]


class LinearSVRCV(LinearSelection):
    """:class:`LinearSVR` with C, or C and ε together, chosen by cross-validation.

    On every fold the values of C are fitted from the smallest to the largest, each from the
    solution of the one before, and only as far as C makes a difference: where no dual variable is
    near its bound C, all larger ones have the same solution. X is never copied, whole or in folds.

    Parameters
    ----------
    Cs : int or list of float
        How many values, spread over what the data can need, or the values.
    epsilons : None, int or list of float
        The values of ε to choose from, together with C; a number of them lies between 2⁻¹⁰ and
        2⁻² standard deviations of y, as in the paper. None takes ``epsilon``.
    cv : int, splitter or iterable
        Folds, shuffled where it is a number (of whole groups where ``groups`` are given); as in
        scikit-learn otherwise.
    scoring : str, callable or None
        The name of a scikit-learn score or a callable of (y_true, y_pred), larger is better;
        None is minus the mean of the machine's own loss, without ε where that is chosen.
    refit : bool
        Whether to fit all data with the best point.
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
        The best C, and ε where that is chosen; the smallest C and then ε where several are equal.
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
        Points of the grid times folds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    References
    ----------
    C.-H. Ho and C.-J. Lin, "Large-scale Linear Support Vector Regression" (2012), section 4.3.

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
    >>> both = LinearSVRCV(Cs=[0.01, 1.0], epsilons=[0.0, 0.05, 2.0]).fit(X, y)
    >>> sorted(both.best_params_)
    ['C', 'epsilon']
    """

    _machine_class = LinearSVR

    def __init__(
        self,
        *,
        Cs: Any = 10,
        epsilons: Any = None,
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
        solver: str | Solver = "auto",
        time_limit: float | None = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.Cs = Cs
        self.epsilons = epsilons
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


class LinearLevelSelection(OrderedLevels, LinearSelection):
    """Base of the selecting linear machines with a level τ or a list of them."""

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        ordered: bool = True,
        Cs: Any = 10,
        epsilons: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = True,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: bool | str = "auto",
        solver: str | Solver = "auto",
        time_limit: float | None = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.tau = tau
        self.ordered = ordered
        self.Cs = Cs
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.epsilon = epsilon
        self.tol = tol
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.solver = solver
        self.time_limit = time_limit
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    @property
    def _one_choice(self) -> bool:
        return self._single_level

    def _level(self, level: int) -> dict[str, Any]:
        return {} if self._single_level else {"tau": float(np.asarray(self.tau)[level])}

    def _judges(self, losses: Sequence[Loss]) -> list[Loss]:
        # ε makes solutions sparse; what is asked for is the level itself
        return list(self._machine(epsilon=0.0)._losses())

    def _score_loss(self, tau: float) -> Loss:
        machine: Any = self._machine_class
        return cast("Loss", machine._loss(tau, 0.0))


class LinearQuantileSVRCV(LinearLevelSelection):
    """:class:`LinearQuantileSVR` with C, or C and ε together, chosen for each level.

    By cross-validation as in :class:`LinearSVRCV`, and by the pinball loss of the level, without
    ε. On every fold each level walks up C from warm starts; X is never copied.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)), and its own C and ε to every level.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`LinearQuantileSVR`.
    scoring : str, callable or None
        As in :class:`LinearSVRCV`; None is minus the mean of the pinball loss.
    Cs, epsilons, cv, refit, selection_tol, n_jobs, time_limit
        As in :class:`LinearSVRCV`. ``time_limit`` covers all levels together.
    epsilon, tol, scale_C, fit_intercept, intercept_scaling, dual, solver, verbose, random_state, \
max_iter
        As in :class:`LinearQuantileSVR`; ``tol`` is that of the machines that predict.

    Attributes
    ----------
    best_params_, best_estimator_, cv_results_
        As in :class:`LinearSVRCV` for a single level, a list of them for a list.
    best_score_, best_index_, dual_gap_
        As in :class:`LinearSVRCV` for a single level, an array of them for a list.
    Cs_, n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`LinearSVRCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import LinearQuantileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 4))
    >>> y = X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=300)
    >>> model = LinearQuantileSVRCV(tau=[0.1, 0.9], Cs=[0.01, 1.0, 100.0]).fit(X, y)
    >>> [sorted(point) for point in model.best_params_]
    [['C'], ['C']]
    >>> low, high = model.predict_interval(X, coverage=0.8).T
    >>> bool(0.7 < np.mean((low <= y) & (y <= high)) < 0.9)
    True
    """

    _machine_class = LinearQuantileSVR


class LinearExpectileSVRCV(LinearLevelSelection):
    """:class:`LinearExpectileSVR` with C, or C and ε together, chosen for each level.

    By cross-validation as in :class:`LinearSVRCV`, and by the squared pinball loss of the level,
    without ε. On every fold each level walks up C from warm starts; X is never copied.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)), and its own C and ε to every level.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`LinearExpectileSVR`.
    scoring : str, callable or None
        As in :class:`LinearSVRCV`; None is minus the mean of the squared pinball loss.
    Cs, epsilons, cv, refit, selection_tol, n_jobs, time_limit
        As in :class:`LinearSVRCV`. ``time_limit`` covers all levels together.
    epsilon, tol, scale_C, fit_intercept, intercept_scaling, dual, solver, verbose, random_state, \
max_iter
        As in :class:`LinearExpectileSVR`; ``tol`` is that of the machines that predict.

    Attributes
    ----------
    best_params_, best_estimator_, cv_results_
        As in :class:`LinearSVRCV` for a single level, a list of them for a list.
    best_score_, best_index_, dual_gap_
        As in :class:`LinearSVRCV` for a single level, an array of them for a list.
    Cs_, n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`LinearSVRCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import LinearExpectileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 4))
    >>> y = X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=300)
    >>> model = LinearExpectileSVRCV(tau=[0.1, 0.9], Cs=[0.01, 1.0, 100.0]).fit(X, y)
    >>> [sorted(point) for point in model.best_params_]
    [['C'], ['C']]
    >>> bool((model.dual_gap_ <= model.tol).all())
    True
    """

    _machine_class = LinearExpectileSVR
