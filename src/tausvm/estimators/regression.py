"""Kernel regression: ε-insensitive, quantiles, expectiles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from ..losses import (
    EpsilonInsensitive,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from ..solvers import Solver
from .approximation import ApproximableMachine
from .atomic import atomic
from .data import TrainingSet
from .levels import SeparateLevels
from .machine import Level
from .parameters import check_choice, check_flag, is_real, refuse
from .small_cost import warn_of_small_cost

Array = NDArray[np.float64]

SVR_LOSSES: dict[str, Callable[[float], Loss]] = {
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}


class KernelRegressor(RegressorMixin, ApproximableMachine):
    """Base of the kernel regressors: a subclass names its losses, one a level."""

    epsilon: float
    clip: float | str | None

    @abstractmethod
    def _losses(self) -> Sequence[Loss]:
        """One loss a level; a ValueError for a parameter of theirs that cannot be used."""

    def _order(self) -> Sequence[int]:
        """The levels in the order in which one is a good start for the next."""
        return [0]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.clip is not None and not (is_real(self.clip) and self.clip > 0):  # type: ignore[operator]
            check_choice("clip", self.clip, ("range",), "None or a finite number > 0")

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        self._losses()  # a level that cannot be used is told first
        self._check_parameters()
        data = self._training_set(X, y, sample_weight, y_numeric=True)
        levels = self._levels(data)
        self._clip_to(np.asarray(data.y, dtype=np.float64))
        self._fit_levels(data, levels, self._order())
        self._warn_of_small_cost(data, levels)
        return self

    def _warn_of_small_cost(self, data: TrainingSet, levels: Sequence[Level]) -> None:
        """A SmallCWarning where C holds a level at a constant."""

        def largest() -> float:
            if self._precomputed:
                return float(np.diagonal(data.X).max())
            return float(self._kernel.diagonal(self._points(data.X)).max())

        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        squared = any(loss.dual_terms(data.y[:1], np.ones(1)).smooth for _, loss in levels)
        warn_of_small_cost(
            (type(self).__name__, self.C, not (self.scale_C or squared)),
            [(y, data.weight, loss) for y, loss in levels],
            results,
            largest,
        )

    def _levels(self, data: TrainingSet) -> list[Level]:
        targets = np.ascontiguousarray(data.y, dtype=np.float64)
        if self._trend is not None:
            targets = targets - self._trend(data.X)
        return [Level(targets, loss) for loss in self._losses()]

    def _clip_to(self, y: Array) -> None:
        """Set the range of predictions."""
        self._range: tuple[float, float] | None = None
        if self.clip is None:
            return
        if isinstance(self.clip, str):
            self._range = float(y.min()), float(y.max())
            return
        largest = float(np.abs(y).max())
        if largest > self.clip:
            raise refuse("clip", f"at least the largest |y|, which is {largest:.6g}", self.clip)
        self._range = -float(self.clip), float(self.clip)

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        raw : bool
            The functions that were fitted and certified, before ``clip`` and ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        values = self._decision_values(X)
        if not raw:
            if self._range is not None:
                np.clip(values, *self._range, out=values)
            values = self._in_order(values)
        return values[:, 0] if self._single_level else values

    def _in_order(self, values: Array) -> Array:
        """Values, (n, n_levels), with the levels in order where the machine has several."""
        return values


class LevelRegressor(SeparateLevels, KernelRegressor):
    """Base of the regressors with a level τ, or a list of them on one Gram matrix."""

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        ordered: bool = True,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        scale_C: bool = True,
        epsilon: float = 0.0,
        fit_intercept: bool = True,
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
        clip: float | str | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        warm_start: bool = False,
        random_state: Any = None,
        approximation: str | None = None,
        landmarks: int | None = None,
        landmark_tol: float | None = None,
    ) -> None:
        self.tau = tau
        self.ordered = ordered
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.scale_C = scale_C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.clip = clip
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.approximation = approximation
        self.landmarks = landmarks
        self.landmark_tol = landmark_tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("ordered", self.ordered)


class SVR(KernelRegressor):
    """Support vector regression with an ε-insensitive loss, linear or squared.

    Takes the parameters of :class:`sklearn.svm.SVR`: changing the import is enough. Every
    fit carries its certificate, the duality gap ``dual_gap_``.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
        dual     max_β  yᵀβ − ½βᵀKβ − Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 with an intercept]
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|)

        epsilon_insensitive          ℓ(r) = max(|r| − ε, 0)     g(β) = ε|β|,  |β| ≤ c
        squared_epsilon_insensitive  ℓ(r) = max(|r| − ε, 0)²    g(β) = ε|β| + β²/(4c)

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"} or callable
        ``rbf`` is exp(−γ‖x − x'‖²), ``laplacian`` exp(−γ‖x − x'‖₁), ``poly``
        (γ⟨x, x'⟩ + coef0)^degree, ``sigmoid`` tanh(γ⟨x, x'⟩ + coef0). A callable takes two
        sets of rows and returns the matrix of values between them; rows that are no numbers,
        such as strings, are handed to it as they are.
    degree : int
        Of the ``poly`` kernel.
    gamma : {"scale", "auto"} or float
        ``"scale"`` is 1 / (n_features · variance of X), each row counted with its weight;
        ``"auto"`` is 1 / n_features.
    coef0 : float
        Of the ``poly`` and ``sigmoid`` kernels.
    tol : float
        The relative duality gap at which to stop.
    C : float
        Cost of a unit of loss; large C, little regularisation.
    scale_C : bool
        Whether C counts in standard deviations of y, so that it means the same in any unit.
        False is scikit-learn's meaning. The squared loss makes no difference between them.
    epsilon : float
        Half-width of the tube around f inside which residuals cost nothing.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    fit_intercept : bool
        Whether there is an offset b; it is never penalised.
    solver : {"auto", "block", "smo", "interior_point", "newton"} or Solver
        ``newton`` serves the squared loss. A solver with settings of its own, such as
        ``tausvm.solvers.SMO(working_set="halves")``, may stand for its name.
    shrinking : bool
        For ``smo``: leave settled variables out until a final check.
    cache_size : float
        Megabytes for rows of the Gram matrix.
    clip : None, float or "range"
        Predictions are clipped to ±M for a number M ≥ max|y|, and to the range of y in
        ``fit`` for ``"range"``. The certificate is of the function before that.
    time_limit : float or None
        Seconds for the whole fit; a :class:`~sklearn.exceptions.ConvergenceWarning` tells
        the gap reached.
    verbose : bool
        Log every gap check to the logger "tausvm", on stderr unless logging is set up.
    max_iter : int
        Bound on the iterations of the solver, −1 for none. What an iteration is depends on
        the solver: a pair of variables for ``smo``, a block of them for ``block``, a
        factorisation or a few for ``newton`` and ``interior_point``.
    warm_start : bool
        Begin from the solution of the last fit where that had as many rows: the same rows with
        another C, τ, ε or γ take fewer iterations. What is found does not depend on it but for
        ``tol``.
    random_state : int, RandomState or None
        Of the choice of landmarks; None is a seed like any other. Nothing else is random: equal
        data and threads give equal bits.
    approximation : None, "landmarks" or "auto"
        ``"landmarks"``: the best function of a few rows, with the loss over all of them, for more
        rows than a Gram matrix has room for (docs/scale.md). ``dual_gap_`` then is the gap to the
        full problem, and ``tol`` that among functions of the landmarks. ``"auto"`` takes
        landmarks from 20,000 rows on.
    landmarks : int or None
        Their number; None for as many as ``landmark_tol`` needs, 4,000 at most or what
        ``cache_size`` has room for.
    landmark_tol : float or None
        The relative gap to the full problem that is wanted, with a
        :class:`~sklearn.exceptions.ConvergenceWarning` where it is not met. None is 0.01, or no
        wish where ``landmarks`` is given.

    Attributes
    ----------
    dual_coef_ : array (1, n_support)
        β of the support vectors; the coefficients of the landmarks where there are any.
    support_ : array (n_support,)
        Their rows in X.
    support_vectors_ : array or CSR matrix (n_support, n_features)
        Empty for ``kernel="precomputed"``.
    n_support_ : array (1,)
    intercept_ : array (1,)
        b, 0 without an intercept.
    coef_ : array (1, n_features)
        For ``kernel="linear"``.
    result_ : SolverResult
        Status, both objectives, gap, KKT violation, iterations, seconds and trace. With landmarks
        a :class:`~tausvm.solvers.landmarks.LandmarkResult`: dual variables of all rows, the gap
        among functions of the landmarks, and whether the gap to the full problem is exact.
    dual_gap_ : float
        The relative duality gap, recomputed from the data after the solve.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    References
    ----------
    - C.-C. Lu, "A Supplement of Kernel-based SMO-SVR Algorithm" (2017): pairs of β with an
      offset.
    - C.-H. Ho and C.-J. Lin, "Large-scale Linear Support Vector Regression" (2012): both
      losses.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import SVR
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> model = SVR(C=10.0, epsilon=0.1).fit(X, np.sin(X).ravel())
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.12)
    True
    >>> model.dual_gap_ <= model.tol
    True
    """

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        scale_C: bool = False,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
        clip: float | str | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        warm_start: bool = False,
        random_state: Any = None,
        approximation: str | None = None,
        landmarks: int | None = None,
        landmark_tol: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.scale_C = scale_C
        self.epsilon = epsilon
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.clip = clip
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.approximation = approximation
        self.landmarks = landmarks
        self.landmark_tol = landmark_tol

    def _losses(self) -> list[Loss]:
        check_choice("loss", self.loss, tuple(SVR_LOSSES))
        return [SVR_LOSSES[self.loss](self.epsilon)]


class QuantileSVR(LevelRegressor):
    """Kernel quantile regression: the pinball loss at one level τ or at several.

    f at level τ lies above a share τ of the targets. Several levels share one Gram matrix,
    and each starts from the solution of the level below it.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)            cᵢ = C·s·wᵢ
                 ℓ(r) = τt for t ≥ 0, (τ − 1)t for t < 0,  t = sign(r)·max(|r| − ε, 0)
        dual     max_β  yᵀβ − ½βᵀKβ − ε Σᵢ |βᵢ|      [Σβᵢ = 0 with an intercept]
                 −(1 − τ)cᵢ ≤ βᵢ ≤ τcᵢ
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|)
        scale    s the weighted standard deviation of y with scale_C, else 1

    Parameters
    ----------
    tau : float or list of float
        The level, or levels in any order, each strictly between 0 and 1. A list gives
        predictions of shape (n, len(tau)).
    ordered : bool
        Whether the levels of a prediction are put in order, so that none crosses another: the
        values of a row are sorted along τ, which never raises the sum of their pinball losses.
        The certificates are of the functions before that.
    C : float
        Cost of a unit of loss. The λ of a risk averaged over n rows is C = 1/(2nλ).
    scale_C : bool
        Whether C counts in standard deviations of y (weighted; 1 where y is constant): cᵢ is
        C·wᵢ times that, and C = 1 is sensible in any unit. False takes C as it is.
    epsilon : float
        Half-width of the tube inside which residuals cost nothing; above 0 it makes the
        solution sparser.
    kernel, degree, gamma, coef0, tol, fit_intercept, solver, shrinking, cache_size, clip, \
time_limit, verbose, max_iter, warm_start, random_state, approximation, landmarks, \
landmark_tol
        As in :class:`SVR`. ``time_limit`` covers all levels together, ``max_iter`` each.

    Attributes
    ----------
    dual_coef_ : array (n_levels, n_support)
        β of the support vectors, which are those of all levels together.
    support_, support_vectors_, n_features_in_, feature_names_in_
        As in :class:`SVR`.
    n_support_, intercept_ : arrays (n_levels,)
    coef_ : array (n_levels, n_features)
        For ``kernel="linear"``.
    result_, dual_gap_, n_iter_
        As in :class:`SVR` for a single level, a list or array of them for a list.

    Notes
    -----
    ``score`` is D² for the pinball loss, the mean over the levels, so that searches choose by the
    loss of the level; :func:`tausvm.metrics.pinball_scorer` is that loss itself.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import QuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = QuantileSVR(tau=[0.1, 0.5, 0.9]).fit(X, y)
    >>> (y[:, None] <= model.predict(X)).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    """

    _loss = Pinball


class ExpectileSVR(LevelRegressor):
    """Kernel expectile regression: asymmetric least squares at one level τ or at several.

    At τ = ½ it is kernel ridge regression, with penalty 1/C.
    ``ExpectileSVR(fit_intercept=False)`` is the ER-SVM of the paper. Several levels share
    one Gram matrix, and each starts from the solution of the level below it.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
                 ℓ(r) = τt² for t ≥ 0, (1 − τ)t² for t < 0,  t = sign(r)·max(|r| − ε, 0)
        dual     max_β  yᵀβ − ½βᵀKβ − Σᵢ (ε|βᵢ| + βᵢ²/(4cᵢτᵢ))   [Σβᵢ = 0 with an intercept]
                 τᵢ = τ where βᵢ > 0, 1 − τ elsewhere
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|)

    Parameters
    ----------
    tau : float or list of float
        The level, or levels in any order, each strictly between 0 and 1. A list gives
        predictions of shape (n, len(tau)).
    ordered : bool
        Whether the levels of a prediction are put in order, so that none crosses another: the
        values of a row are sorted along τ, which never raises the sum of their expectile losses.
        The certificates are of the functions before that.
    C : float
        Cost of a unit of loss. The paper's λ is C = 1/(2nλ).
    scale_C : bool
        For :class:`QuantileSVR`'s sake: a squared loss has the unit of ½‖f‖², so C has none.
    epsilon : float
        Half-width of the tube inside which residuals cost nothing; at 0 every row is a
        support vector.
    kernel, degree, gamma, coef0, tol, fit_intercept, solver, shrinking, cache_size, clip, \
time_limit, verbose, max_iter, warm_start, random_state, approximation, landmarks, \
landmark_tol
        As in :class:`SVR`. ``time_limit`` covers all levels together, ``max_iter`` each.

    Attributes
    ----------
    dual_coef_ : array (n_levels, n_support)
        β of the support vectors, which are those of all levels together.
    support_, support_vectors_, n_features_in_, feature_names_in_
        As in :class:`SVR`.
    n_support_, intercept_ : arrays (n_levels,)
    coef_ : array (n_levels, n_features)
        For ``kernel="linear"``.
    result_, dual_gap_, n_iter_
        As in :class:`SVR` for a single level, a list or array of them for a list.

    References
    ----------
    M. Farooq and I. Steinwart, "An SVM-like Approach for Expectile Regression" (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import ExpectileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = ExpectileSVR(tau=[0.1, 0.5, 0.9]).fit(X, y)
    >>> low, middle, high = model.predict([[0.5]])[0]
    >>> bool(low < middle < high)
    True
    """

    _loss = SquaredPinball
