"""Estimators that choose their C and γ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..estimators import SVR, ExpectileSVR, QuantileSVR
from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet, check_weights
from ..estimators.levels import OrderedLevels
from ..estimators.parameters import check_choice
from ..losses import Loss
from .calibration import (
    WAYS,
    Rule,
    conformal_quantile,
    held_out,
    plain_quantile,
    shifts,
)
from .machine import MEANS, KernelRegressorCV
from .outcome import warn_of_calibration
from .search import Search

Array = NDArray[np.float64]


class SVRCV(KernelRegressorCV):
    """:class:`~tausvm.SVR` with C, γ, kernel and features chosen by cross-validation.

    The features are learned: a linear map, by which those count that move y, is used where it
    predicts better than the features as they are. The folds share what they can: a Gram matrix
    a γ for all C, each fit starting from its neighbours. Selection stops its fits at a relative
    duality gap of ``selection_tol``. The machines that predict are then solved to ``tol``, each
    with its certificate. The search is in units of its own: y → a·y + b does not change the choice,
    and with a metric and a dense X the unit of a feature does not either.

    Parameters
    ----------
    Cs : int or list of float
        Values of C, or how many to take. A number spreads them geometrically over
        C = 1/(2nλ) for λ from 1 to 0.001/n, multiplied by twice the spread of y for losses that
        grow linearly (by 2 with ``scale_C``), and adds a few where the best one lies on the
        border.
    gammas : int or list of float
        Values of γ, or how many. A number spreads them over the widths that the number, the
        dimension and the distances of the points call for (for features in [−1, 1]: from
        5·(1 + 5/n)^d down to 0.2·n^(−1/d)), and adds a few at the border. Kernels without γ
        ignore it. With a metric γ counts for the features under ``feature_metric_``.
    cv : int, splitter or iterable of (train, test)
        An integer makes so many folds of shuffled rows, or of ``groups`` where ``fit`` is
        given them. Splitters that need neither X nor y work as they are.
    scoring : None, str or callable
        None is minus the model's own loss, which for ``SVRCV`` is its ε-insensitive loss. A
        name is one of scikit-learn's scores for regression, a callable takes (y_true, y_pred)
        and returns a number, larger is better; scikit-learn's scorers work too. The mean over
        the folds decides, and among equals the smallest C, then the smallest γ.
    refit : {"committee", True, "average", False}
        "committee" lets every fold choose its own point and takes the mean of the models of all
        rows at these points: at points that the scores can hardly tell apart models err
        differently, and their mean mostly errs less than each. Up to 600 rows the models of the
        folds are in the mean too. True fits one model with ``best_params_`` on all data.
        "average" takes the mean of the models of the folds, each at the point that is best on
        it. Every model is solved to ``tol`` on its own rows. False leaves it at the scores.
    prune : bool
        Leave points out that cannot win: a race over the folds between rough fits, in which a
        point leaves when its loss exceeds the leader's by three standard errors of the difference,
        row by row; those close to the best one are then fitted to ``selection_tol``. Only with the
        model's own loss, 60 rows or more and folds that are alike: an integer ``cv`` without
        groups, or ``KFold``, ``RepeatedKFold``, ``ShuffleSplit``.
    selection_tol : float
        The duality gap of the fits in the selection, as a share of the loss of the best constant,
        and times ten of the primal objective. Squared losses are fitted to a tenth of it, losses
        that grow linearly to 50 times it of the primal objective.
    n_jobs : int or None
        Jobs of joblib, which share the values of γ and, where those are few, the folds. They
        are threads unless a backend was chosen by :func:`joblib.parallel_config`. The result
        does not depend on them. Squared losses on up to 500 rows are done by one.
    feature_metric : {"auto", "diagonal", "full", None}
        The linear map of the features that is learned before the search, from what moves y and, for
        levels off the middle, its spread. "diagonal" gives every feature a weight, "full" turns
        them too. "auto" learns weights, and turns the features where that errs less (dense X with
        2 to 100 features); it learns nothing for kernels that cannot have it ("linear", "sigmoid",
        "precomputed" and callables). A learned map is used if it errs less out of fold than the
        features as they are, by a standard error. None leaves X as it is. Otherwise a dense X
        is first brought to equal spread. Every fold learns its own map from its own rows.
    feature_groups : array of int (n_features,) or None
        Features with the same number share their weight, for example the columns of one category.
        A full metric has no weights to share, and does not know of groups.
    kernel : {"auto", "rbf", "laplacian", "exponential", "linear", "poly", "sigmoid", \
"precomputed"} or callable
        "auto" is the better one of "rbf", for smooth functions, and "laplacian", for rough ones;
        "exponential" takes the place of the latter where a full metric has turned the features. A
        sparse X takes "rbf".
    degree, coef0, tol, scale_C, epsilon, loss, fit_intercept, solver, clip, max_iter
        As in :class:`~tausvm.SVR`, for every fit. With ``scale_C`` the values of C count in
        spreads of y on the rows of a fit. With ``clip`` validation predictions are clipped as well.
    approximation : {"auto", "landmarks", None}
        "landmarks" chooses on at most 5,000 rows and fits functions of ``landmarks`` rows to all
        of them, at one γ for all levels, with a certificate against the full problem; see
        :class:`~tausvm.SVR`. "auto" does so above 20,000 rows. None solves the full problem at any
        size.
    landmarks : int or None
        How many; None for as many as ``landmark_tol`` needs, or without one as fit in
        ``cache_size`` (250 to 1,000).
    landmark_tol : float or None
        The relative gap to the full problem that landmarks are to reach.
    cache_size : float
        Megabytes for kernel values, shared among the jobs. Where a matrix of all rows does not
        fit, every fold computes the rows it needs.
    time_limit : float or None
        Seconds for the whole call. The search ends after 70 % of them at the latest, of which
        learning features has 30 % at most, and the best point so far is fitted on all rows in what
        is left; a
        :class:`~sklearn.exceptions.ConvergenceWarning` tells how much of the grid was looked at.
    verbose : bool
        Say beforehand which way the fit takes, about how long and with how much memory, and show
        how far it is: by a bar in a terminal if rich is installed, else by log lines to "tausvm".
    random_state : int, RandomState or None
        Of the shuffle with an integer ``cv``; None is 0, so that equal data give equal folds.

    Attributes
    ----------
    best_params_ : dict
        ``C``, ``gamma`` where the kernel has one, and ``kernel`` where it was chosen.
    best_score_ : float
    best_index_ : int
        Its place in ``cv_results_``.
    fold_params_ : list of dict
        The best point of every fold by itself.
    best_estimator_ : SVR or Committee
        Unless ``refit=False``. An :class:`SVR` for ``refit=True``, else the mean of its
        ``machines``, of which each counts by its ``shares``.
    members_ : list of dict
        What the machines that predict are, unless ``refit=False``: a point as above; ``fold``,
        on whose training rows one was fitted, None for all rows; its ``weight`` in the mean; its
        ``dual_gap``, computed from the data for the function that predicts.
    dual_gap_ : float
        The largest of these gaps, unless ``refit=False``.
    fold_rows_ : list of int arrays
        The training rows of every fold, without those of weight 0.
    cv_results_ : dict
        As in :class:`~sklearn.model_selection.GridSearchCV`, without times: the points share
        their work. NaN for points that were left out.
    kernel_ : str or callable
        The kernel that was chosen.
    feature_metric_ : array (n_features,) or (n_features, n_features), or None
        The weights or the matrix under which the kernel sees X: k(x·w, x'·w) or k(xW, x'W). Weights
        of equal spread where nothing was learned from y; None for X as it is.
    learned_ : bool
        Whether the map was learned from y.
    linear_trend_ : array (n_features,) or None
        With landmarks, the weights of a line beside which the machines were fitted, to what it
        leaves of y; it is learned from rows that are not chosen on, and taken where the levels
        beside it err less. It is part of what they predict. None where there is none.
    feature_importances_ : array (n_features,)
        What the features count in the metric, as shares: they sum to 1. Of features in units of
        their own spread; equal where none were learned.
    scores_ : array (n_levels, n_gammas, n_Cs, n_folds)
    Cs_, gammas_ : arrays
        The grid, with what was added to it. ``gammas_`` is empty for a kernel without γ.
    n_splits_ : int
    n_iter_ : int
        Fits of the selection.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    References
    ----------
    M. Farooq and I. Steinwart, "An SVM-like Approach for Expectile Regression" (2015),
    sections 3.2 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import SVRCV
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> model = SVRCV(epsilon=0.01, Cs=[1.0, 10.0], gammas=[0.1, 1.0]).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.05)
    True

    The third of three features is the one that matters:

    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(120, 3))
    >>> model = SVRCV(Cs=4, gammas=4).fit(X, np.sin(4 * X[:, 2]))
    >>> model.learned_, bool(model.feature_importances_[2] > 0.9)
    (True, True)
    """

    _machine_class = SVR

    def __init__(
        self,
        *,
        Cs: int | Sequence[float] = 10,
        gammas: int | Sequence[float] = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool | str = "committee",
        prune: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        feature_metric: str | None = "auto",
        feature_groups: Any = None,
        kernel: str | Callable[..., Array] = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = False,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
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
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.prune = prune
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.feature_metric = feature_metric
        self.feature_groups = feature_groups
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.scale_C = scale_C
        self.epsilon = epsilon
        self.loss = loss
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


class _LevelRegressorCV(OrderedLevels, KernelRegressorCV):
    """Base of the selecting estimators with a level τ or a list of them."""

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
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
        feature_groups: Any = None,
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
        self.feature_groups = feature_groups
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

    def _score_loss(self, tau: float) -> Loss:
        machine: Any = self._machine_class
        return cast("Loss", machine._loss(tau, 0.0))

    def _finished(self, values: Array) -> Array:
        """In order, then moved by the calibration: shifts rise with τ, so that order stays."""
        values, shift = self._in_order(values), getattr(self, "calibration_", None)
        if shift is None:
            return values
        values = values + np.atleast_1d(shift)
        return values if self._range is None else np.clip(values, *self._range)

    def _level(self, level: int) -> dict[str, Any]:
        return {"tau": float(np.atleast_1d(self.tau)[level])}

    def _judges(self, losses: Sequence[Loss]) -> list[Loss]:
        # ε makes solutions sparse; what is asked for is the level itself
        exact = self._machine_class(tau=np.atleast_1d(self.tau).tolist())
        return list(exact._losses())


class QuantileSVRCV(_LevelRegressorCV):
    """:class:`~tausvm.QuantileSVR` with C and γ chosen by cross-validation, for each level.

    The levels and folds share what they can: the kernel and the learned features, a Gram matrix a γ
    for all of them and all C, each fit starting from its neighbours in C and τ. The choice is by
    the pinball loss of the level, without ε.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)), and its own C and γ to every level.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`~tausvm.QuantileSVR`.
    calibrate : {None, "oof", "split"}
        Whether intervals between a level and its counterpart 1 − τ are widened until rows that
        were not fitted lie in them as often as they should; a level without counterpart is moved
        outwards by itself. "oof" goes by the predictions of the folds' models for the rows that
        they have not seen: no row is given up and nothing is guaranteed, since these rows have
        helped to choose C and γ; with landmarks it goes by at most 10,000 rows that are held out
        of the fit. "split" holds a fifth of the rows out, and intervals then hold
        the share that they should or more, on average and for exchangeable rows (split-conformal).
    Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, approximation, landmarks, \
landmark_tol, cache_size, time_limit, verbose, random_state
        As in :class:`SVRCV`.
    feature_metric, feature_groups, kernel
        As in :class:`SVRCV`; all levels share them. The further the levels lie from ½, the more
        does what moves the spread of y count beside what moves its mean.
    degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, clip, max_iter
        As in :class:`~tausvm.QuantileSVR`.

    Attributes
    ----------
    best_params_, fold_params_, best_estimator_, members_, cv_results_
        As in :class:`SVRCV` for a single level, a list of them for a list.
    best_score_, best_index_, dual_gap_
        As in :class:`SVRCV` for a single level, an array of them for a list.
    kernel_, feature_metric_, learned_, feature_importances_, linear_trend_
        As in :class:`SVRCV`, for all levels.
    calibration_ : float or array (n_levels,)
        What is added to the levels in order, where they are calibrated; it rises with τ.
    scores_, Cs_, gammas_, fold_rows_, n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`SVRCV`.

    References
    ----------
    - M. Farooq and I. Steinwart, "An SVM-like Approach for Expectile Regression" (2015),
      sections 3.2 and 5.
    - Y. Romano, E. Patterson and E. Candès, "Conformalized Quantile Regression" (2019).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import QuantileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = QuantileSVRCV(tau=[0.1, 0.9], Cs=[1.0, 10.0], gammas=[0.1, 1.0]).fit(X, y)
    >>> [sorted(point) for point in model.best_params_]
    [['C', 'gamma', 'kernel'], ['C', 'gamma', 'kernel']]
    >>> model.predict(X).shape
    (200, 2)

    Here y moves with one feature and its spread with another, and both are found:

    >>> X = rng.uniform(-1, 1, size=(250, 6))
    >>> y = np.sin(3 * X[:, 1]) + (0.1 + 0.4 * (X[:, 4] > 0)) * rng.normal(size=250)
    >>> model = QuantileSVRCV(tau=0.9, Cs=4, gammas=4, feature_metric="diagonal").fit(X, y)
    >>> sorted(int(k) for k in model.feature_importances_.argsort()[-2:])
    [1, 4]
    """

    _machine_class = QuantileSVR

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
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
        feature_groups: Any = None,
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
            feature_groups=feature_groups,
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

    def _check_own_parameters(self) -> tuple[int | Array, int | Array]:
        if self.calibrate is not None:
            check_choice("calibrate", self.calibrate, WAYS, "None")
        return super()._check_own_parameters()

    @property
    def _needs_models(self) -> bool:
        return self.calibrate == "oof" and bool(self.refit)

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose C and γ, fit, and calibrate where that is asked for.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits, in the validation and in the calibration.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together; with an integer ``cv`` it makes
            :class:`~sklearn.model_selection.GroupKFold` of it. Groups are held out whole.

        Returns
        -------
        self
        """
        if self.calibrate != "split" or not self.refit:
            super().fit(X, y, sample_weight, groups=groups)
            return self
        weight = check_weights(sample_weight, _num_samples(X))
        share = self._settings.calibration.held_out
        rows = held_out(weight, share, groups, self.random_state)
        fitted = weight.copy()
        fitted[rows] = 0.0  # to the fit as if they were not there
        super().fit(X, y, fitted, groups=groups)
        predicted = self.predict(_safe_indexing(X, rows)).reshape(len(rows), -1)
        targets = np.asarray(y, dtype=np.float64).ravel()[rows]
        self._move(targets, predicted, weight[rows], conformal_quantile)
        return self

    def _calibrate(self, search: Search, data: TrainingSet) -> None:
        self.__dict__.pop("calibration_", None)
        if self.calibrate != "oof" or not self.refit:
            return
        levels, mean = range(len(search.task.losses)), self.refit in MEANS
        unseen = np.stack([search.oof_predictions(level, mean) for level in levels], axis=1)
        known = ~np.isnan(unseen).any(axis=1)
        if not known.any():
            warn_of_calibration(type(self).__name__, self.time_limit)
            return
        values = self._in_order(unseen[known])
        self._move(data.y[known], values, data.weight[known], plain_quantile)

    def _held_out_rows(self, n: int) -> int:
        return self._settings.large.held_out_count(n) if self.calibrate == "oof" else 0

    def _calibrate_by(self, X: Any, data: TrainingSet) -> None:
        self.__dict__.pop("calibration_", None)
        if len(data):
            values = self.predict(X).reshape(len(data), -1)
            self._move(data.y, values, data.weight, conformal_quantile)

    def _move(self, y: Array, values: Array, weight: Array, rule: Rule) -> None:
        """Set the shifts of the levels from rows that were not fitted."""
        shift = shifts(np.atleast_1d(np.asarray(self.tau, dtype=float)), y, values, weight, rule)
        self.calibration_ = float(shift[0]) if self._single_level else shift


class ExpectileSVRCV(_LevelRegressorCV):
    """:class:`~tausvm.ExpectileSVR` with C and γ chosen by cross-validation, for each level.

    ``ExpectileSVRCV(fit_intercept=False, feature_metric=None, kernel="rbf")`` is the selection of
    the paper. The levels and folds
    share what they can: the kernel and the learned features, a Gram matrix a γ for all of them and
    all C, each fit starting from its neighbours in C and τ. The choice is by the squared pinball
    loss of the level, without ε.

    Parameters
    ----------
    tau : float or list of float
        The level or levels, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)), and its own C and γ to every level.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`~tausvm.ExpectileSVR`.
    Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, approximation, landmarks, \
landmark_tol, cache_size, time_limit, verbose, random_state
        As in :class:`SVRCV`.
    feature_metric, feature_groups, kernel
        As in :class:`SVRCV`; all levels share them. The further the levels lie from ½, the more
        does what moves the spread of y count beside what moves its mean.
    degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, clip, max_iter
        As in :class:`~tausvm.ExpectileSVR`.

    Attributes
    ----------
    best_params_, fold_params_, best_estimator_, members_, cv_results_
        As in :class:`SVRCV` for a single level, a list of them for a list.
    best_score_, best_index_, dual_gap_
        As in :class:`SVRCV` for a single level, an array of them for a list.
    kernel_, feature_metric_, learned_, feature_importances_, linear_trend_
        As in :class:`SVRCV`, for all levels.
    scores_, Cs_, gammas_, fold_rows_, n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`SVRCV`.

    References
    ----------
    M. Farooq and I. Steinwart, "An SVM-like Approach for Expectile Regression" (2015),
    sections 3.2 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import ExpectileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = X.ravel() + rng.normal(size=100)
    >>> model = ExpectileSVRCV(tau=0.75, Cs=[1.0, 10.0], gammas=[0.1, 1.0]).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'gamma', 'kernel']
    """

    _machine_class = ExpectileSVR
