"""Several levels or outputs at once: joint quantiles, joint expectiles, vector targets."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..kernels import (
    KernelGram,
    MatrixGram,
    Points,
    SeparableGram,
    TransformableGram,
    TransformableKernel,
    check_output_matrix,
    level_kernel,
    make_kernel,
)
from ..losses import (
    EpsilonInsensitive,
    GroupTerms,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from ..losses.base import check_epsilon, check_tau
from ..solvers.joint import JOINT_SOLVERS, JointOptions, JointProblem, JointResult, solve_joint
from ..solvers.onedim import best_offset
from .data import TrainingSet, check_weights
from .machine import KernelMachine
from .parameters import check_choice, check_flag, is_real, refuse
from .progress import progress_log, warn_unless_solved
from .threads import one_blas_thread

Array = NDArray[np.float64]
OutputKernel = str | Array | TransformableKernel


class JointMachine(RegressorMixin, KernelMachine):
    """Base of the joint regressors: one group of outputs a sample, one matrix-valued kernel.

    A subclass gives one loss an output and the matrix B of its named output kernels.
    """

    _solver_names = JOINT_SOLVERS

    epsilon: float
    output_kernel: Any

    #: B, None for a transformable kernel
    output_matrix_: Array | None

    result_: JointResult  # type: ignore[assignment]
    dual_gap_: float
    n_iter_: int

    @abstractmethod
    def _output_matrix(self, p: int) -> Array:
        """B where ``output_kernel`` is a name; a ValueError for a name that is none."""

    def _fit_joint(self, data: TrainingSet, y: Array, losses: Sequence[Loss], mixing: Any) -> None:
        """Solve for targets (n, p) and keep what prediction needs."""
        started = time.perf_counter()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        options = JointOptions(
            tol=self.tol, max_iter=self.max_iter, shrinking=bool(self.shrinking), seed=seed
        )
        with one_blas_thread():
            gram = self._matrix_gram(data, mixing)
            terms = GroupTerms.build(losses, y, self.C * data.weight, self.epsilon)
            problem = JointProblem(gram, y, terms, bool(self.fit_intercept))
            with progress_log(self.verbose) as callback:
                options = options.with_(callback=callback)  # type: ignore[assignment]
                if self.time_limit is not None:
                    left = self.time_limit - (time.perf_counter() - started)
                    options = options.with_(time_limit=max(left, 0.0))  # type: ignore[assignment]
                result = solve_joint(problem, self.solver, options)
        if not np.isfinite(result.dual_gap):
            raise ValueError(
                f"kernel must be positive semidefinite, got {self.kernel!r}, for which "
                "the dual problem of these data is unbounded"
            )
        support = np.flatnonzero(result.alpha.any(axis=1))
        self.support_ = data.rows[support]
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else data.X[support]
        self.dual_coef_ = np.ascontiguousarray(result.alpha[support].T)
        self.n_support_ = np.full(y.shape[1], len(support))
        self.intercept_ = result.intercept
        self.result_, self.dual_gap_ = result, result.dual_gap
        # a fit that is optimal at its start counts as one iteration
        self.n_iter_ = max(result.n_iter, 1)
        warn_unless_solved(type(self).__name__, [result], options, self.time_limit)

    def _mixing(self, p: int) -> Array | TransformableKernel:
        """B, or the kernel that has none; a ValueError for an output kernel of no use."""
        given = self.output_kernel
        if isinstance(given, TransformableKernel):
            if len(given) != p:
                raise refuse("output_kernel", f"of {p} transformations, one an output", len(given))
            if self._precomputed:
                raise ValueError(
                    "output_kernel must be a matrix or a name for kernel='precomputed', got "
                    f"{given!r}"
                )
            return given
        if isinstance(given, str):
            return self._output_matrix(p)
        return check_output_matrix(given, p)

    def _matrix_gram(self, data: TrainingSet, mixing: Array | TransformableKernel) -> MatrixGram:
        """The Gram matrix; fixes the kernel, its γ and B."""
        n = len(data)
        if isinstance(mixing, TransformableKernel):
            self.output_matrix_ = None
            self._centre = None
            self._kernel = make_kernel(
                self.kernel, self._gamma_value(data), self.degree, self.coef0
            )
            return TransformableGram(self._kernel, [Points(X) for X in mixing.images(data.X)])
        self.output_matrix_ = mixing
        if self._precomputed:
            self._centre = None
            return SeparableGram(data.X, mixing)
        if 8 * n * n > self.cache_size * 2**20:
            raise refuse(
                "cache_size",
                f"at least {8 * n * n / 2**20:.0f}, the megabytes of the Gram matrix of {n} rows",
                self.cache_size,
            )
        points = self._kernel_points(data)
        gram = self._checked(KernelGram(self._kernel, points, self.cache_size, np.float64))
        gram.require(np.arange(n))
        return SeparableGram(gram.rows.astype(np.float64, copy=False), mixing)

    @property
    def _weights(self) -> Array:
        assert self.output_matrix_ is not None
        return np.asarray(self.output_matrix_ @ self.dual_coef_)

    def _decision_values(self, X: Any) -> Array:
        check_is_fitted(self)
        if self.output_matrix_ is not None:
            return super()._decision_values(X)
        X = self._checked_rows(X)
        values = np.tile(self.intercept_, (X.shape[0], 1))
        if len(self.support_) == 0:
            return values
        kernel: TransformableKernel = self.output_kernel
        support = [Points(image) for image in kernel.images(self.support_vectors_)]
        for i, image in enumerate(kernel.images(X)):
            for j, points in enumerate(support):
                values[:, i] += self._kernel.between(Points(image), points) @ self.dual_coef_[j]
        return values

    @property
    def coef_(self) -> Array:
        """The weights of the features, shape (n_outputs, n_features); linear kernel only."""
        if self.kernel != "linear" or isinstance(self.output_kernel, TransformableKernel):
            raise AttributeError("coef_ exists for kernel='linear' with a matrix B only")
        return super().coef_


class JointLevels(JointMachine):
    """Base of the joint machines for levels τ of one target."""

    #: the loss of a level: a function of τ
    _loss: Callable[[float], Loss]

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        gamma_tau: float = 1.0,
        output_kernel: OutputKernel = "levels",
        epsilon: float = 0.0,
        rearrange: bool = False,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
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
        self.rearrange = rearrange
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    @property
    def _single_level(self) -> bool:
        return np.ndim(self.tau) == 0

    def _levels(self) -> Array:
        """τ as an array; a ValueError unless in (0, 1) and rising."""
        if np.ndim(self.tau) > 1 or np.size(self.tau) == 0:
            raise refuse("tau", "a number in (0, 1) or a rising list of them", self.tau)
        given: Any = [self.tau] if self._single_level else list(self.tau)  # type: ignore[arg-type]
        taus = np.array([check_tau(tau) for tau in given])
        if (np.diff(taus) <= 0).any():
            raise refuse("tau", "a list of levels that rise, none of them twice", self.tau)
        return taus

    def _output_matrix(self, p: int) -> Array:
        names = ("levels", "identity")
        check_choice("output_kernel", self.output_kernel, names, "a matrix or TransformableKernel")
        if self.output_kernel == "identity":
            return np.eye(p)
        return level_kernel(self._levels(), float(self.gamma_tau))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all levels to training data.

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
        taus = self._levels()
        check_epsilon(self.epsilon)
        self._check_parameters()
        if not (is_real(self.gamma_tau) and self.gamma_tau >= 0):
            raise refuse("gamma_tau", "a finite number >= 0", self.gamma_tau)
        check_flag("rearrange", self.rearrange)
        mixing = self._mixing(len(taus))
        data = self._training_set(X, y, sample_weight, y_numeric=True)
        column = np.asarray(data.y, dtype=np.float64)
        targets = np.ascontiguousarray(np.repeat(column[:, None], len(taus), axis=1))
        losses = [type(self)._loss(float(tau)) for tau in taus]
        self._fit_joint(data, targets, losses, mixing)
        return self

    def predict(self, X: Any) -> Array:
        """Predict at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        values = self._decision_values(X)
        if self.rearrange:
            values.sort(axis=1)
        return values[:, 0] if self._single_level else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the loss of the best constants that the curves save.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        float
            1 − Σⱼ loss of level j / Σⱼ loss of the best constant for level j: 1 at best, 0 for
            constants. The losses are those at ε = 0.
        """
        predicted = self.predict(X).reshape(-1, np.size(self.tau))
        y = np.asarray(y, dtype=np.float64).ravel()
        weight = check_weights(sample_weight, len(y))
        paid = constant = 0.0
        for tau, column in zip(self._levels(), predicted.T, strict=True):
            loss = type(self)._loss(float(tau))
            paid += float(weight @ loss.value(y - column))
            centre = best_offset(loss.dual_terms(y, weight), y)
            constant += float(weight @ loss.value(y - centre))
        if constant == 0.0:
            return 1.0 if paid == 0.0 else 0.0
        return 1.0 - paid / constant


class JointQuantileSVR(JointLevels):
    """Several quantiles at once, coupled so that they hardly cross.

    All levels are fitted as one function with values in Rᵖ. Its kernel k(x, x')·B says how
    alike the curves of two levels are, and ε makes samples support vectors for all levels or
    for none.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
                 ℓ_ε(r) = inf over ‖u‖₂ ≤ ε of Σⱼ ρⱼ(rⱼ − uⱼ)
                 ρⱼ(t) = τⱼt for t ≥ 0, (τⱼ − 1)t for t < 0
        dual     max_α  Σᵢ⟨αᵢ, yᵢ⟩ − ½ Σᵢⱼ k(xᵢ, xⱼ)⟨αᵢ, Bαⱼ⟩ − ε Σᵢ ‖αᵢ‖₂
                 −(1 − τⱼ)cᵢ ≤ αᵢⱼ ≤ τⱼcᵢ       [Σᵢ αᵢ = 0 with intercepts]
        link     f = Σᵢ k(xᵢ, ·) Bαᵢ
        gap      (primal − dual) / max(|primal|, |dual|)

    Parameters
    ----------
    tau : float or list of float
        The levels, rising, each strictly between 0 and 1. A list gives predictions of shape
        (n, len(tau)); one number gives what :class:`QuantileSVR` gives.
    gamma_tau : float
        Of B = exp(−gamma_tau·(τᵢ − τⱼ)²): small for curves that are parallel, large for curves
        that do not know of each other.
    output_kernel : {"levels", "identity"}, array (p, p) or TransformableKernel
        B: from ``gamma_tau``, the identity (levels coupled by ε alone, independent at ε = 0),
        or a positive semidefinite matrix. A :class:`~tausvm.kernels.TransformableKernel` has
        k(Tᵢ(x), Tⱼ(x')) in place of k(x, x')Bᵢⱼ.
    epsilon : float
        Residuals (over all levels) of Euclidean length up to ε cost nothing; larger values
        leave fewer support vectors.
    rearrange : bool
        Sort the levels of each prediction, so that they never cross. It costs nothing at
        training, and never raises the summed pinball loss at a point; a curve may then have a
        kink where two levels met.
    C : float
        Cost of a unit of loss. The paper's λ is C = 1/(λn).
    solver : {"auto", "interior_point", "primal_dual_cd"}
    shrinking : bool
        For ``primal_dual_cd``: leave settled samples out between checks.
    cache_size : float
        Megabytes for the Gram matrix, which is held whole in float64: 8n² bytes. An error
        tells where that is not enough.
    max_iter : int
        Bound on the iterations, −1 for none: Newton steps, or passes of ``primal_dual_cd``.
    random_state : int, RandomState or None
        Of the order of samples in ``primal_dual_cd``.
    kernel, degree, gamma, coef0, tol, fit_intercept, time_limit, verbose
        As in :class:`SVR`.

    Attributes
    ----------
    dual_coef_ : array (n_levels, n_support)
        α of the support vectors.
    support_, support_vectors_, n_features_in_, feature_names_in_
        As in :class:`SVR`.
    n_support_, intercept_ : arrays (n_levels,)
    output_matrix_ : array (n_levels, n_levels)
        B, None for a transformable kernel.
    coef_ : array (n_levels, n_features)
        For ``kernel="linear"``.
    result_ : JointResult
        Status, both objectives, gap, KKT violation, iterations, seconds and trace.
    dual_gap_ : float
    n_iter_ : int

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointQuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = JointQuantileSVR(tau=[0.1, 0.5, 0.9]).fit(X, y)
    >>> (y[:, None] <= model.predict(X)).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    """

    _loss = Pinball


class JointExpectileSVR(JointLevels):
    """Several expectiles at once, coupled so that they hardly cross.

    As :class:`JointQuantileSVR`, with asymmetric squares in place of the pinball loss.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
                 ℓ_ε(r) = inf over ‖u‖₂ ≤ ε of Σⱼ ψⱼ(rⱼ − uⱼ)
                 ψⱼ(t) = τⱼt² for t ≥ 0, (1 − τⱼ)t² for t < 0
        dual     max_α  Σᵢ⟨αᵢ, yᵢ⟩ − ½ Σᵢⱼ k(xᵢ, xⱼ)⟨αᵢ, Bαⱼ⟩ − Σᵢ (ε‖αᵢ‖₂ + Σⱼ αᵢⱼ²/(4cᵢτᵢⱼ))
                 τᵢⱼ = τⱼ where αᵢⱼ > 0, 1 − τⱼ elsewhere       [Σᵢ αᵢ = 0 with intercepts]
        link     f = Σᵢ k(xᵢ, ·) Bαᵢ
        gap      (primal − dual) / max(|primal|, |dual|)

    Parameters
    ----------
    tau, gamma_tau, output_kernel, epsilon, rearrange, C, solver, shrinking, cache_size, \
max_iter, random_state, kernel, degree, gamma, coef0, tol, fit_intercept, time_limit, verbose
        As in :class:`JointQuantileSVR`. Rearranging lowers the summed loss of quantiles; for
        expectiles it orders them, and no more is claimed.

    Attributes
    ----------
    dual_coef_, support_, support_vectors_, n_support_, intercept_, output_matrix_, coef_, \
result_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`JointQuantileSVR`.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointExpectileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = JointExpectileSVR(tau=[0.1, 0.5, 0.9], epsilon=0.5).fit(X, y)
    >>> low, middle, high = model.predict([[0.5]])[0]
    >>> bool(low < middle < high)
    True
    """

    _loss = SquaredPinball


JOINT_LOSSES: dict[str, Callable[[], Loss]] = {
    "epsilon_insensitive": lambda: EpsilonInsensitive(0.0),
    "squared_epsilon_insensitive": lambda: SquaredEpsilonInsensitive(0.0),
}


class JointSVR(JointMachine):
    """Support vector regression for vector targets.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
        dual     max_α  Σᵢ⟨αᵢ, yᵢ⟩ − ½ Σᵢⱼ k(xᵢ, xⱼ)⟨αᵢ, Bαⱼ⟩ − Σᵢ (ε‖αᵢ‖₂ + g(αᵢ))
                 [Σᵢ αᵢ = 0 with intercepts]
        link     f = Σᵢ k(xᵢ, ·) Bαᵢ
        gap      (primal − dual) / max(|primal|, |dual|)

        squared_epsilon_insensitive  ℓ_ε(r) = max(‖r‖₂ − ε, 0)²            g(a) = ‖a‖₂²/(4c)
        epsilon_insensitive          ℓ_ε(r) = inf over ‖u‖₂ ≤ ε of ‖r − u‖₁   |aⱼ| ≤ c

    Parameters
    ----------
    loss : {"squared_epsilon_insensitive", "epsilon_insensitive"}
    epsilon : float
        Residuals of Euclidean length up to ε cost nothing.
    output_kernel : {"identity"}, array (p, p) or TransformableKernel
        B, which says how alike the outputs are, as in :class:`JointQuantileSVR`.
    C, solver, shrinking, cache_size, max_iter, random_state, kernel, degree, gamma, coef0, tol, \
fit_intercept, time_limit, verbose
        As in :class:`JointQuantileSVR`.

    Attributes
    ----------
    dual_coef_, support_, support_vectors_, n_support_, intercept_, output_matrix_, coef_, \
result_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`JointQuantileSVR`, one row an output.

    References
    ----------
    M. Sangnier, O. Fercoq and F. d'Alché-Buc, "Data sparse nonparametric regression with
    ε-insensitive losses" (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import JointSVR
    >>> X = np.linspace(0, 6, 60).reshape(-1, 1)
    >>> Y = np.hstack([np.sin(X), np.cos(X)])
    >>> model = JointSVR(C=10.0, epsilon=0.1).fit(X, Y)
    >>> model.predict([[0.0]]).shape
    (1, 2)
    """

    def __init__(
        self,
        *,
        loss: str = "squared_epsilon_insensitive",
        epsilon: float = 0.1,
        output_kernel: OutputKernel = "identity",
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
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

    def _output_matrix(self, p: int) -> Array:
        names = ("identity",)
        check_choice("output_kernel", self.output_kernel, names, "a matrix or TransformableKernel")
        return np.eye(p)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples, n_outputs) or (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        check_choice("loss", self.loss, tuple(JOINT_LOSSES))
        check_epsilon(self.epsilon)
        self._check_parameters()
        if isinstance(self.output_kernel, str):
            self._output_matrix(1)
        data = self._training_set(X, y, sample_weight, y_numeric=True, multi_output=True)
        self._flat = data.y.ndim == 1
        targets = np.ascontiguousarray(data.y[:, None] if self._flat else data.y, dtype=np.float64)
        p = targets.shape[1]
        self._fit_joint(data, targets, [JOINT_LOSSES[self.loss]()] * p, self._mixing(p))
        return self

    def predict(self, X: Any) -> Array:
        """Predict at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.

        Returns
        -------
        array of the shape of y in ``fit``
        """
        values = self._decision_values(X)
        return values[:, 0] if self._flat else values
