"""Linear regression without a Gram matrix: ε-insensitive, quantiles, expectiles."""

from __future__ import annotations

from typing import Any

from ..losses import Loss, Pinball, SquaredPinball
from ..solvers import Solver
from .linear_machine import LinearLevelMachine, LinearMachine
from .parameters import check_choice
from .regression import SVR_LOSSES


class LinearSVR(LinearMachine):
    """Linear support vector regression for many rows and many features, dense or sparse.

    Takes the parameters of :class:`sklearn.svm.LinearSVR`: changing the import is enough. Time
    is linear in the entries of X, and every fit carries its certificate, the duality gap
    ``dual_gap_``.

    ::

        primal   min_{w, b}  ½‖w‖² + Σᵢ cᵢ ℓ(yᵢ − xᵢᵀw − b)            cᵢ = C·wᵢ
        dual     max_β  yᵀβ − ½‖Σᵢ βᵢxᵢ‖² − Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 with a free intercept]
        link     w = Σᵢ βᵢ xᵢ
        gap      (primal − dual) / max(|primal|, |dual|)

        epsilon_insensitive          ℓ(r) = max(|r| − ε, 0)     g(β) = ε|β|,  |β| ≤ c
        squared_epsilon_insensitive  ℓ(r) = max(|r| − ε, 0)²    g(β) = ε|β| + β²/(4c)

    Parameters
    ----------
    epsilon : float
        Half-width of the tube inside which residuals cost nothing.
    tol : float
        The relative duality gap at which to stop.
    C : float
        Cost of a unit of loss; large C, little regularisation.
    scale_C : bool
        Whether C counts in standard deviations of y, so that it means the same in any unit.
        False is scikit-learn's meaning. The squared loss makes no difference between them.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
    fit_intercept : bool
        Whether there is an offset b.
    intercept_scaling : float or None
        None leaves b unpenalised. A number s puts a constant column s beside X, as LIBLINEAR
        and scikit-learn do (theirs is 1): b = s·w₀, and w₀ is penalised like the other weights.
    dual : {"auto", True, False}
        For ``solver="auto"``: True asks for ``dual_cd``, False for ``newton``.
    solver : {"auto", "dual_cd", "newton", "interior_point"} or Solver
        A solver with settings of its own, such as ``tausvm.solvers.linear.DualCD(adaptive=False)``,
        may stand for its name.
        All serve both losses, with and without an offset; ``interior_point`` up to 5,000 rows or
        features. ``auto`` is ``dual_cd`` while that promises to arrive first, and else one of
        the others.
    time_limit : float or None
        Seconds for the whole fit; a :class:`~sklearn.exceptions.ConvergenceWarning` tells the
        gap reached.
    verbose : bool or int
        Log every gap check to the logger "tausvm", on stderr unless logging is set up.
    random_state : int, RandomState or None
        Seeds the order of the rows in ``dual_cd`` and samples in ``newton``; None is the same
        order in every fit.
    max_iter : int
        Bound on the passes over X of ``dual_cd`` and on the steps of ``newton``, −1 for none.
    warm_start : bool
        Begin from the solution of the last fit where that had as many rows and features. What is
        found does not depend on it but for ``tol``.

    Attributes
    ----------
    coef_ : array (n_features,)
        w.
    intercept_ : array (1,)
        b, 0 without an intercept.
    result_ : SolverResult
        Status, β, both objectives, gap, KKT violation, iterations, seconds and trace.
    dual_gap_ : float
        The relative duality gap, recomputed from the data after the solve.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    References
    ----------
    C.-H. Ho and C.-J. Lin, "Large-scale Linear Support Vector Regression" (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import LinearSVR
    >>> X = np.arange(60.0).reshape(-1, 2)
    >>> model = LinearSVR(C=10.0, epsilon=0.1).fit(X, X @ [1.0, -2.0] + 5.0)
    >>> bool(abs(model.predict([[10.0, 11.0]])[0] + 7.0) < 0.2)
    True
    >>> model.dual_gap_ <= model.tol
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
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
        warm_start: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
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
        self.warm_start = warm_start

    def _losses(self) -> list[Loss]:
        check_choice("loss", self.loss, tuple(SVR_LOSSES))
        return [SVR_LOSSES[self.loss](self.epsilon)]


class LinearQuantileSVR(LinearLevelMachine):
    """Linear quantile regression: the pinball loss at one level τ or at several.

    ::

        primal   min_{w, b}  ½‖w‖² + Σᵢ cᵢ ℓ(yᵢ − xᵢᵀw − b)            cᵢ = C·wᵢ
                 ℓ(r) = τt for t ≥ 0, (τ − 1)t for t < 0,  t = sign(r)·max(|r| − ε, 0)
        dual     max_β  yᵀβ − ½‖Σᵢ βᵢxᵢ‖² − ε Σᵢ |βᵢ|      [Σβᵢ = 0 with a free intercept]
                 −(1 − τ)cᵢ ≤ βᵢ ≤ τcᵢ
        link     w = Σᵢ βᵢ xᵢ

    Parameters
    ----------
    tau : float or list of float
        The level, or levels in any order, each strictly between 0 and 1. A list gives
        predictions of shape (n, len(tau)); each level starts from the solution of the one
        below it.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`QuantileSVR`.
    epsilon : float
        Half-width of the tube inside which residuals cost nothing.
    C : float
        Cost of a unit of loss; large C, little regularisation.
    scale_C : bool
        Whether C counts in standard deviations of y (weighted; 1 where y is constant): cᵢ is
        C·wᵢ times that, and C = 1 is sensible in any unit. False takes C as it is.
    tol, fit_intercept, intercept_scaling, dual, solver, time_limit, verbose, random_state, \
max_iter, warm_start
        As in :class:`LinearSVR`. ``time_limit`` covers all levels together, ``max_iter`` each.

    Attributes
    ----------
    coef_ : array (n_features,), or (n_levels, n_features) for a list
    intercept_ : array (n_levels,)
    result_, dual_gap_, n_iter_
        As in :class:`LinearSVR` for a single level, a list or array of them for a list.
    n_features_in_, feature_names_in_
        As in :class:`LinearSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import LinearQuantileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 2))
    >>> y = X[:, 0] + rng.normal(size=400)
    >>> model = LinearQuantileSVR(tau=[0.1, 0.5, 0.9]).fit(X, y)
    >>> (y[:, None] <= model.predict(X)).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    """

    _loss = Pinball


class LinearExpectileSVR(LinearLevelMachine):
    """Linear expectile regression: asymmetric least squares at one level τ or at several.

    At τ = ½ and ε = 0 it is ridge regression with penalty 1/C.

    ::

        primal   min_{w, b}  ½‖w‖² + Σᵢ cᵢ ℓ(yᵢ − xᵢᵀw − b)            cᵢ = C·wᵢ
                 ℓ(r) = τt² for t ≥ 0, (1 − τ)t² for t < 0,  t = sign(r)·max(|r| − ε, 0)
        dual     max_β  yᵀβ − ½‖Σᵢ βᵢxᵢ‖² − Σᵢ (ε|βᵢ| + βᵢ²/(4cᵢτᵢ))
                 τᵢ = τ where βᵢ > 0, 1 − τ elsewhere      [Σβᵢ = 0 with a free intercept]
        link     w = Σᵢ βᵢ xᵢ

    Parameters
    ----------
    tau : float or list of float
        The level, or levels in any order, each strictly between 0 and 1. A list gives
        predictions of shape (n, len(tau)); each level starts from the solution of the one
        below it.
    ordered : bool
        Whether the levels of a prediction are put in order, as in :class:`ExpectileSVR`.
    epsilon : float
        Half-width of the tube inside which residuals cost nothing.
    C : float
        Cost of a unit of loss; large C, little regularisation.
    scale_C : bool
        For :class:`LinearQuantileSVR`'s sake: a squared loss has the unit of ½‖w‖², so C has none.
    tol, fit_intercept, intercept_scaling, dual, solver, time_limit, verbose, random_state, \
max_iter, warm_start
        As in :class:`LinearSVR`. ``time_limit`` covers all levels together, ``max_iter`` each.

    Attributes
    ----------
    coef_ : array (n_features,), or (n_levels, n_features) for a list
    intercept_ : array (n_levels,)
    result_, dual_gap_, n_iter_
        As in :class:`LinearSVR` for a single level, a list or array of them for a list.
    n_features_in_, feature_names_in_
        As in :class:`LinearSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from tausvm import LinearExpectileSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> model = LinearExpectileSVR(tau=0.5, C=2.0).fit(X, y)
    >>> ridge = Ridge(alpha=0.5).fit(X, y)
    >>> bool(np.allclose(model.coef_, ridge.coef_))
    True
    """

    _loss = SquaredPinball
