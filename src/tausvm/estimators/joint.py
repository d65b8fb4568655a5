"""Several levels or outputs at once: joint quantiles, joint expectiles, vector targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels import level_kernel
from ..losses import (
    EpsilonInsensitive,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from ..losses.base import check_tau
from .atomic import atomic
from .joint_machine import JointMachine, OutputKernel
from .levels import OrderedLevels, listed_levels
from .parameters import check_choice, check_flag, is_real, refuse

Array = NDArray[np.float64]


class JointLevels(OrderedLevels, JointMachine):
    """Base of the joint machines for levels τ of one target."""

    #: the name that ``ordered`` had; where it is given it counts
    rearrange: bool | None = None

    #: the loss of a level: a function of τ
    _loss: Callable[[float], Loss]

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        gamma_tau: float = 1.0,
        output_kernel: OutputKernel = "levels",
        epsilon: float = 0.0,
        ordered: bool = True,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        scale_C: bool = True,
        fit_intercept: bool = True,
        solver: str = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        random_state: Any = None,
        rearrange: bool | None = None,
    ) -> None:
        self.tau = tau
        self.gamma_tau = gamma_tau
        self.output_kernel = output_kernel
        self.epsilon = epsilon
        self.ordered = ordered
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state
        self.rearrange = rearrange

    @property
    def _orders(self) -> bool:
        return bool(self.ordered if self.rearrange is None else self.rearrange)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("ordered", self.ordered)
        if self.rearrange is not None:
            check_flag("rearrange", self.rearrange)

    def _levels(self) -> Array:
        """τ as an array; a ValueError unless in (0, 1) and rising."""
        given = listed_levels(self.tau, "a number in (0, 1) or a rising list of them")
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

    @atomic
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
        self._check_joint()
        self._fit_joint(self._training_set(X, y, sample_weight, **self._target_checks))
        return self

    def _check_joint(self) -> None:
        taus = self._levels()
        super()._check_joint()
        if not (is_real(self.gamma_tau) and self.gamma_tau >= 0):
            raise refuse("gamma_tau", "a finite number >= 0", self.gamma_tau)
        self._mixing(len(taus))

    def _output_losses(self, p: int) -> list[Loss]:
        return [type(self)._loss(float(tau)) for tau in self._levels()]

    def _targets(self, y: NDArray[Any]) -> Array:
        column = np.asarray(y, dtype=np.float64)
        return np.ascontiguousarray(np.repeat(column[:, None], len(self._levels()), axis=1))

    def _one_axis(self, y: NDArray[Any]) -> bool:
        return self._single_level

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X.

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
        values = self._decision_values(X)
        if not raw:
            values = self._in_order(values)
        return values[:, 0] if self._single_level else values


class JointQuantileSVR(JointLevels):
    """Several quantiles at once, coupled so that their curves are alike.

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
    ordered : bool
        Whether the levels of each prediction are sorted, so that they never cross. It costs
        nothing at training, and never raises the summed pinball loss at a point; a curve may then
        have a kink where two levels met. The certificate is of the function before that.
    rearrange : bool or None
        The earlier name of ``ordered``, which counts where it is given. Deprecated.
    C : float
        Cost of a unit of loss. The paper's λ is C = 1/(λn).
    scale_C : bool
        Whether C counts in standard deviations of y (weighted; 1 where y is constant): cᵢ is
        C·wᵢ times that, and C = 1 is sensible in any unit. False takes C as it is.
    solver : {"auto", "interior_point", "primal_dual_cd"}
    shrinking : bool
        For ``primal_dual_cd``: leave settled samples out between checks.
    cache_size : float
        Megabytes for the Gram matrix, which is held whole in float64: 8n² bytes, and for what
        the solver keeps beside it. An error tells where that is not enough.
    max_iter : int
        Bound on the iterations, −1 for none: Newton steps, or passes of ``primal_dual_cd``.
    random_state : int, RandomState or None
        Of the order of samples in ``primal_dual_cd``; None is the same order every time.
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
    result_ : SolverResult
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
    """Several expectiles at once, coupled so that their curves are alike.

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
    tau, gamma_tau, output_kernel, epsilon, ordered, rearrange, C, solver, shrinking, cache_size, \
max_iter, random_state, kernel, degree, gamma, coef0, tol, fit_intercept, time_limit, verbose
        As in :class:`JointQuantileSVR`. Ordering never raises the summed expectile loss at a point.
    scale_C : bool
        For :class:`JointQuantileSVR`'s sake: a squared loss has the unit of ½‖f‖², so C has none.

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
    scale_C : bool
        Whether C counts in standard deviations of y, over all outputs, so that it means the
        same in any unit. The squared loss makes no difference between them.
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
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
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

    _target_checks: ClassVar[dict[str, bool]] = {"y_numeric": True, "multi_output": True}

    def _output_matrix(self, p: int) -> Array:
        names = ("identity",)
        check_choice("output_kernel", self.output_kernel, names, "a matrix or TransformableKernel")
        return np.eye(p)

    @atomic
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
        self._check_joint()
        data = self._training_set(X, y, sample_weight, **self._target_checks)
        self._fit_joint(data)
        self._flat = self._one_axis(data.y)
        return self

    def _check_joint(self) -> None:
        check_choice("loss", self.loss, tuple(JOINT_LOSSES))
        super()._check_joint()
        if isinstance(self.output_kernel, str):
            self._output_matrix(1)

    def _output_losses(self, p: int) -> list[Loss]:
        return [JOINT_LOSSES[self.loss]()] * p

    def _targets(self, y: NDArray[Any]) -> Array:
        return np.ascontiguousarray(y[:, None] if self._one_axis(y) else y, dtype=np.float64)

    def _one_axis(self, y: NDArray[Any]) -> bool:
        return y.ndim == 1

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
