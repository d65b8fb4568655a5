"""The joint machines with C, γ, γ_τ and ε chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..estimators.joint import JointExpectileSVR, JointQuantileSVR, JointSVR
from ..estimators.joint_machine import OutputKernel
from ..estimators.levels import OrderedLevels
from ..estimators.parameters import refuse
from ..losses import Loss
from .joint_machine import JointSelection
from .walk import check_values

Array = NDArray[np.float64]


class JointLevelSelection(OrderedLevels, JointSelection):
    """Base of the selecting joint machines for levels τ of one target."""

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        gamma_tau: float = 1.0,
        output_kernel: OutputKernel = "levels",
        epsilon: float = 0.0,
        ordered: bool = True,
        Cs: int | Sequence[float] = 10,
        gammas: int | str | Sequence[float] = 5,
        gamma_taus: Sequence[float] | None = None,
        epsilons: Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = True,
        fit_intercept: bool = True,
        solver: str = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
    ) -> None:
        self.tau = tau
        self.gamma_tau = gamma_tau
        self.output_kernel = output_kernel
        self.epsilon = epsilon
        self.ordered = ordered
        self.Cs = Cs
        self.gammas = gammas
        self.gamma_taus = gamma_taus
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    def _lists(self) -> dict[str, Array]:
        if self.gamma_taus is None:
            return super()._lists()
        if not (isinstance(self.output_kernel, str) and self.output_kernel == "levels"):
            raise refuse("output_kernel", "'levels' where gamma_taus are given", self.output_kernel)
        wanted = "None or a list of finite values >= 0"
        values = check_values("gamma_taus", self.gamma_taus, wanted)
        return {"gamma_tau": values, **super()._lists()}

    def _score_loss(self, tau: float) -> Loss:
        machine: Any = self._machine_class
        return cast("Loss", machine._loss(tau))

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X with the chosen machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        raw : bool
            The function that was fitted and certified, before ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        values: Array = self._fitted[0].predict(X, raw=raw)
        return values


class JointQuantileSVRCV(JointLevelSelection):
    """:class:`JointQuantileSVR` with C, γ, γ_τ and ε chosen by cross-validation.

    All levels share one choice, that with the least mean of their pinball losses, without ε. Fits
    share what they can: a Gram matrix a γ for all folds, γ_τ, ε and C, and each fit starts from the
    solution at the C before. Every fit has its certificate.

    Parameters
    ----------
    Cs : int or list of float
        How many values, spread over what the data can need, or the values.
    gammas : int, list of float or "distance_quantile"
        How many values of γ, spread over what the data can need, or the values.
        ``"distance_quantile"`` is one value, γ = 1/(2σ²) with σ the 0.7-quantile of the distances
        between training rows, as the paper has it (of 2,000 rows at most; RBF kernel). Without
        effect for kernels without γ.
    gamma_taus : list of float or None
        The values of ``gamma_tau`` to choose from; None takes ``gamma_tau``.
    epsilons : list of float or None
        The values of ε to choose from; None takes ``epsilon``. Those that leave fewer support
        vectors may cost little: look at ``cv_results_``.
    cv : int, splitter or iterable
        Folds, shuffled where it is a number (of whole groups where ``groups`` are given); as in
        scikit-learn otherwise.
    scoring : callable, str or None
        A callable of (y_true, y_pred), larger is better, where predictions have a column a level;
        for a single level also the name of a scikit-learn score. None is minus the mean of the
        levels' own losses.
    refit : bool
        Whether to fit all data with the best point.
    selection_tol : float
        The relative duality gap of the fits on folds.
    n_jobs : int or None
        Folds and γ at a time, in threads.
    time_limit : float or None
        Seconds for everything: four fifths for the folds, in equal parts, and what is left for the
        last fit. Points for which there was no time on every fold are not chosen; a
        :class:`~sklearn.exceptions.ConvergenceWarning` tells how many these are.
    cache_size : float
        Megabytes for kernel matrices. Where that of all rows does not fit twice for every job,
        each fold computes its own.
    tau, gamma_tau, output_kernel, epsilon, ordered, scale_C, solver, shrinking, max_iter, \
random_state, kernel, degree, coef0, tol, fit_intercept, verbose
        As in :class:`JointQuantileSVR`; ``tol`` is that of the last fit, the machine that predicts.

    Attributes
    ----------
    best_params_ : dict
        The best C, γ (of kernels with one), and γ_τ and ε where they are chosen; the smallest
        where several are equal, C first.
    best_score_ : float
    best_index_ : int
    best_estimator_ : JointQuantileSVR
        With ``refit=True``.
    dual_gap_ : float
        The certificate of ``best_estimator_``.
    cv_results_ : dict
        As scikit-learn's searches have it.
    Cs_, gammas_ : arrays
        The grid; ``gammas_`` is empty for kernels without γ.
    n_splits_ : int
    n_iter_ : int
        Points of the grid times folds.
    n_features_in_, feature_names_in_
        As in :class:`SVR`.

    Notes
    -----
    The interior-point method, which serves all but the largest problems, takes a start only where
    it is good enough as it is; ``primal_dual_cd`` goes on from it.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017), section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointQuantileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(120, 1))
    >>> y = np.sin(6 * X[:, 0]) + (0.1 + 0.3 * X[:, 0]) * rng.normal(size=120)
    >>> model = JointQuantileSVRCV(
    ...     tau=[0.25, 0.5, 0.75], Cs=[0.1, 10.0], gammas="distance_quantile", gamma_taus=[0.1, 10]
    ... ).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'gamma', 'gamma_tau']
    >>> model.predict(X).shape
    (120, 3)
    >>> model.dual_gap_ <= model.tol
    True
    """

    _machine_class = JointQuantileSVR


class JointExpectileSVRCV(JointLevelSelection):
    """:class:`JointExpectileSVR` with C, γ, γ_τ and ε chosen by cross-validation.

    As :class:`JointQuantileSVRCV`, by the mean of the levels' squared pinball losses, without ε.

    Parameters
    ----------
    Cs, gammas, gamma_taus, epsilons, cv, scoring, refit, selection_tol, n_jobs, time_limit, \
cache_size
        As in :class:`JointQuantileSVRCV`.
    tau, gamma_tau, output_kernel, epsilon, ordered, scale_C, solver, shrinking, max_iter, \
random_state, kernel, degree, coef0, tol, fit_intercept, verbose
        As in :class:`JointExpectileSVR`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, dual_gap_, cv_results_, Cs_, gammas_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`JointQuantileSVRCV`.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointExpectileSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=100)
    >>> model = JointExpectileSVRCV(
    ...     tau=[0.2, 0.8], Cs=[0.1, 10.0], gammas=[1.0, 10.0], epsilons=[0.0, 0.2], cv=3
    ... ).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'epsilon', 'gamma']
    """

    _machine_class = JointExpectileSVR


class JointSVRCV(JointSelection):
    """:class:`JointSVR` with C, γ and ε chosen by cross-validation.

    As :class:`JointQuantileSVRCV`, for vector targets: by the mean of the outputs' losses, without
    ε where that is chosen.

    Parameters
    ----------
    Cs, gammas, epsilons, cv, refit, selection_tol, n_jobs, time_limit, cache_size
        As in :class:`JointQuantileSVRCV`.
    scoring : callable, str or None
        A callable of (y_true, y_pred), larger is better, or the name of a scikit-learn score for
        as many outputs as y has. None is minus the mean of ‖r‖²/p, or of ‖r‖₁/p, over the rows.
    loss, epsilon, output_kernel, scale_C, solver, shrinking, max_iter, random_state, kernel, \
degree, coef0, tol, fit_intercept, verbose
        As in :class:`JointSVR`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, dual_gap_, cv_results_, Cs_, gammas_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`JointQuantileSVRCV`.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointSVRCV
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> model = JointSVRCV(Cs=[0.1, 10.0], gammas=[0.01, 1.0], epsilons=[0.01, 0.5]).fit(X, Y)
    >>> model.best_params_
    {'C': 10.0, 'gamma': 1.0, 'epsilon': 0.01}
    >>> model.predict(X).shape
    (60, 2)
    """

    _machine_class = JointSVR

    def __init__(
        self,
        *,
        loss: str = "squared_epsilon_insensitive",
        epsilon: float = 0.1,
        output_kernel: OutputKernel = "identity",
        Cs: int | Sequence[float] = 10,
        gammas: int | str | Sequence[float] = 5,
        epsilons: Sequence[float] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        selection_tol: float = 1e-3,
        n_jobs: int | None = None,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        scale_C: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.output_kernel = output_kernel
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.selection_tol = selection_tol
        self.n_jobs = n_jobs
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
