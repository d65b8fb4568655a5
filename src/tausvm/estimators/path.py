"""Machines for all levels at once: the whole τ path from one fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d

from ..losses import Pinball
from ..solvers.path import MovingBox, PathProblem
from ..solvers.units import Units, spread
from .atomic import atomic
from .classification import TauSVC
from .data import check_weights, costs
from .level_curves import distribution_at, flip_levels, quantiles_at
from .levels import central_levels, d2, in_order
from .machine import slices
from .parameters import check_flag, check_positive
from .path_machine import (
    MIDDLE,
    MOST_LEVELS,
    MarginSets,
    PathMachine,
    check_inner_level,
    check_level,
    check_levels,
)
from .regression import QuantileSVR

Array = NDArray[np.float64]


class TauPathSVC(ClassifierMixin, PathMachine):
    """Support vector classification at every cost level τ, from one fit.

    Fits the path of :class:`TauSVC` from τ = 0 to τ = 1: the dual solution is piecewise linear
    in τ, and all its kinks are found. Afterwards any cost ratio can be asked for, at the price
    of a prediction: ``predict(X, tau=0.2)``. The level at which the decision of a point flips
    estimates the probability of the positive class, so ``predict_proba`` needs no further
    calibration data.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ(τ) max(0, 1 − yᵢ(f(xᵢ) + b))
                 yᵢ = ±1,  cᵢ = 2(1 − τ)·C·wᵢ for yᵢ = 1,  2τ·C·wᵢ for yᵢ = −1
        dual     max_β  yᵀβ − ½βᵀKβ      [Σβᵢ = 0 with a free intercept],  0 ≤ yᵢβᵢ ≤ cᵢ(τ)
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|), at every τ

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed"} or callable
        As in :class:`SVR`. ``linear`` goes through the features, dense or CSR.
    degree, gamma, coef0
        As in :class:`SVR`.
    tol : float
        The relative duality gap that must hold at every τ.
    C : float
        Cost of a unit of loss. The λ of a risk averaged over n rows is C = 1/(λn).
    fit_intercept : bool
        Whether there is an offset b.
    penalise_intercept : bool
        With False b is free, as everywhere else in this package; with True it is the weight of
        a constant feature 1 and part of ‖f‖², as in the paper and in LIBLINEAR's ``-B 1``.
    cache_size : float
        Megabytes for kernel values while fitting.
    memory_limit : float
        Megabytes for the path that is kept. Where it would outgrow them only some of the kinks
        are kept; between them the solution is interpolated, which keeps it feasible, and a
        warning tells the gap.
    time_limit : float or None
        Bound on the seconds of a fit. Levels that were not reached by then get the straight line
        from the last solution to the trivial one at the end of the path, which is feasible; a
        warning tells the levels and the gap.
    verbose : bool
        Log every batch of kinks to the logger "tausvm", on stderr unless logging is set up.
    max_iter : int
        Bound on the kinks of a path, with the same consequence; −1 for none.

    Attributes
    ----------
    classes_ : array (n_classes,)
    taus_ : array
        The kinks, ascending, with 0 and 1; a list of arrays for several classes.
    n_kinks_ : int or array (n_classes,)
    paths_ : list of TauPath
        One for two classes, else one a class.
    result_ : PathResult
        Kinks, the pieces between them with a bound on the gap of each, seconds; a list for
        several classes.
    dual_gap_ : float or array
        No level has a larger relative duality gap: the largest bound of all pieces.
    n_iter_ : int
        Kinks of all paths together.
    n_features_in_, feature_names_in_
        As in :class:`SVR`.

    Notes
    -----
    ``coef_`` exists at a level only: ``coef(tau)``, ``intercept(tau)``, ``dual_coef(tau)``,
    ``sets(tau)`` and ``certificate(tau)`` give what :class:`TauSVC` has as attributes, and
    ``margin_sets(tau)`` the rows in error, on the margin and well classified.

    At τ = 0 a false alarm costs nothing and ``predict`` answers with the positive class
    everywhere, at τ = 1 with the negative one.

    References
    ----------
    J. Yu, S. V. N. Vishwanathan and J. Zhang, "The Entire Quantile Path of a Risk-Agnostic
    SVM Classifier" (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TauPathSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> y = rng.uniform(size=200) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> model = TauPathSVC(kernel="linear").fit(X, y)
    >>> [int(model.predict(X, tau=tau).sum()) for tau in (0.0, 0.3, 0.5, 0.7, 1.0)]
    [200, 135, 91, 59, 0]
    >>> model.predict_proba([[-1.0], [1.0]])[:, 1].round(1)
    array([0.2, 0.8])
    """

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        cache_size: float = 2000,
        memory_limit: float = 1000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.cache_size = cache_size
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter

    @property
    def _single_level(self) -> bool:
        return len(self.classes_) == 2

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the path of the training data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Labels of two classes or more, of any type.
        sample_weight : array of shape (n_samples,) or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        self._check_parameters()
        data = self._training_set(X, y, sample_weight)
        check_classification_targets(data.y)
        self.classes_ = np.unique(data.y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class only: {self.classes_[0]!r}"
            )
        data, group = self._distinct(data)
        products = self._products(data)
        positives = self.classes_[1:] if self._single_level else self.classes_
        problems = []
        for label in positives:
            signs = np.where(data.y == label, 1.0, -1.0)
            box = MovingBox.hinge(signs, costs(self.C, data.weight))
            problems.append(PathProblem(products, signs, box, self._free_offset))
        self._fit_paths(data, group, problems)
        return self

    def decision_function(self, X: Any, tau: Any = None) -> Array:
        """f(x) + b at one level or several, positive on the side of the positive class.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        tau : float, array (n_levels,) or None
            In [0, 1]. None asks no single level but all: the score is 2·P − 1 with the
            probabilities P of :meth:`predict_proba`, and ranks points as they do.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for more than two classes; for an
        array of levels (n_samples, n_levels), or (n_samples, n_levels, n_classes)
        """
        if tau is None:
            score = 2.0 * self.predict_proba(X) - 1.0
            return score[:, 1] if self._single_level else score
        taus = check_levels(tau)
        X = self._rows_to_predict(X)
        values = np.stack([self._values(X, k, taus) for k in range(len(self.paths_))], axis=2)
        if np.ndim(tau) == 0:
            values = values[:, 0]
        return values[..., 0] if self._single_level else values

    def predict(self, X: Any, tau: Any = None) -> NDArray[Any]:
        """The class of each row of X at one level or several.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.
        tau : float, array (n_levels,) or None
            In [0, 1]. None is ½ for two classes, and the most probable one of several.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for an array of levels
        """
        check_is_fitted(self)
        if tau is None and self._single_level:
            tau = MIDDLE
        values = self.decision_function(X, tau)
        if self._single_level:
            taus = np.asarray(tau, dtype=np.float64)
            best = np.where((taus <= 0) | (taus >= 1), taus <= 0, values > 0).astype(np.intp)
        else:
            best = values.argmax(axis=-1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes: the level at which the decision of a point flips.

        Where it flips more than once they are ½ and the length of the positive levels above ½ for
        points that are positive at ½, and the length of those below ½ for the others. So P > ½
        is the decision at ½, and {x : P(x) > τ} shrinks as τ grows however single decisions
        cross. Exact up to 1,000 kinks, else to three digits. For several classes the estimates
        of all classes are divided by their sum.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        X = self._rows_to_predict(X)
        flips = np.column_stack([self._flip(X, k) for k in range(len(self.paths_))])
        if self._single_level:
            return np.column_stack([1.0 - flips[:, 0], flips[:, 0]])
        total = flips.sum(axis=1, keepdims=True)
        equal = np.full_like(flips, 1.0 / flips.shape[1])
        return np.divide(flips, total, out=equal, where=total > 0)

    def _flip(self, X: Any, path: int) -> Array:
        """The level at which the decision flips."""
        taus = self._levels(path)
        flip = np.empty(X.shape[0])
        for part in slices(X.shape[0], 24 * len(taus)):
            flip[part] = flip_levels(self._values(X[part], path, taus), taus, MIDDLE)
        return flip

    def margin_sets(self, tau: float) -> MarginSets | list[MarginSets]:
        """Which training rows are in error, on the margin and well classified at a level; a list
        for several classes, one entry a class against the rest."""
        check_is_fitted(self)
        tau = check_level(tau)
        out = []
        for path, problem in zip(self.paths_, self._problems, strict=True):
            # residuals above zero are errors of positive rows, below zero those of negative ones
            out.append(MarginSets(*self._split(-path.sets(tau) * np.sign(problem.y))))
        return out[0] if self._single_level else out

    def at(self, tau: float) -> TauSVC:
        """The classifier of one level as an ordinary, fitted :class:`TauSVC`.

        Copies of a training row stand in it as one support vector. Its ``result_`` is the
        certificate at this level.

        Parameters
        ----------
        tau : float
            Strictly between 0 and 1.
        """
        check_is_fitted(self)
        tau = check_inner_level(tau)
        machine = TauSVC(tau=tau, **self._shared_parameters())
        machine.classes_ = self.classes_
        self._as_machine(machine, tau)
        return machine

    def for_costs(self, false_positive: float, false_negative: float) -> TauSVC:
        """The classifier for these costs of a false alarm and of a missed positive.

        Their level is τ = false_positive / (false_positive + false_negative): the positive class
        is worth predicting where its probability exceeds τ.

        Parameters
        ----------
        false_positive, false_negative : float
            Above 0; only their ratio matters.
        """
        check_positive("false_positive", false_positive)
        check_positive("false_negative", false_negative)
        return self.at(false_positive / (false_positive + false_negative))


class TauPathSVR(RegressorMixin, PathMachine):
    """Kernel quantile regression at every level τ, from one fit.

    Fits the path of :class:`QuantileSVR` (without its ε) from τ = 0 to τ = 1 and so the whole
    conditional distribution of y: quantiles at any level, its distribution function, and draws
    from it.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)            cᵢ = C·wᵢ
                 ℓ(r) = τr for r ≥ 0, (τ − 1)r for r < 0
        dual     max_β  yᵀβ − ½βᵀKβ      [Σβᵢ = 0 with a free intercept]
                 −(1 − τ)cᵢ ≤ βᵢ ≤ τcᵢ
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|), at every τ

    Parameters
    ----------
    ordered : bool
        Whether ``predict`` puts the levels that it is asked for together in order: the values of
        a row are sorted along τ, which never raises the sum of their pinball losses. One level
        alone is what was fitted; :meth:`ppf` sorts along all levels, whichever are asked for.
    monotone : bool or None
        The earlier name, which counts where it is given: with True ``predict`` is :meth:`ppf`,
        with False the levels are as fitted. Deprecated.
    scale_C : bool
        Whether C counts in standard deviations of y, as in :class:`QuantileSVR`.
    kernel, degree, gamma, coef0, tol, C, fit_intercept, penalise_intercept, cache_size, \
memory_limit, time_limit, verbose, max_iter
        As in :class:`TauPathSVC`.

    Attributes
    ----------
    taus_, n_kinks_, paths_, result_, dual_gap_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TauPathSVC`.

    Notes
    -----
    ``coef_`` exists at a level only: ``coef(tau)``, ``intercept(tau)``, ``dual_coef(tau)``,
    ``sets(tau)`` and ``certificate(tau)`` give what :class:`QuantileSVR` has as attributes.

    The levels 0 and 1 can be asked for: they are the limits of the path. With a free intercept
    f vanishes there, so that the ends are the smallest and the largest target for every x.

    References
    ----------
    J. Yu, S. V. N. Vishwanathan and J. Zhang, "The Entire Quantile Path of a Risk-Agnostic
    SVM Classifier" (2009), section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TauPathSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 1))
    >>> y = X.ravel() + rng.normal(size=200)
    >>> model = TauPathSVR().fit(X, y)
    >>> (y[:, None] <= model.predict(X, tau=[0.1, 0.5, 0.9])).mean(axis=0).round(1)
    array([0.1, 0.5, 0.9])
    >>> float(model.sample([[0.5]], 1000, random_state=0).mean().round(1))
    0.4
    """

    #: models of versions that did not order their levels go on without
    ordered: bool = False
    monotone: bool | None = None

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        C: float = 1.0,
        scale_C: bool = True,
        fit_intercept: bool = True,
        penalise_intercept: bool = False,
        ordered: bool = True,
        cache_size: float = 2000,
        memory_limit: float = 1000,
        time_limit: float | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        monotone: bool | None = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.penalise_intercept = penalise_intercept
        self.ordered = ordered
        self.cache_size = cache_size
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.verbose = verbose
        self.max_iter = max_iter
        self.monotone = monotone

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("ordered", self.ordered)
        if self.monotone is not None:
            check_flag("monotone", self.monotone)

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the path of the training data.

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
        self._check_parameters()
        data = self._training_set(X, y, sample_weight, y_numeric=True)
        data, group = self._distinct(data)
        targets = np.ascontiguousarray(data.y, dtype=np.float64)
        box = MovingBox.pinball(costs(self.C, data.weight))
        if self.scale_C:
            box = box.times(spread(targets, data.weight))
        units = Units.of(targets, data.weight, self._free_offset)
        products = self._products(data)
        problem = PathProblem.posed(products, targets, box, self._free_offset, units)
        self._fit_paths(data, group, [problem])
        return self

    def predict(self, X: Any, tau: Any = 0.5, raw: bool = False) -> Array:
        """The quantiles of y at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.
        tau : float or array (n_levels,)
            In [0, 1].
        raw : bool
            Whether to return the levels as they were fitted and certified, before ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for an array of levels
        """
        check_is_fitted(self)
        if self.monotone and not raw:
            return self.ppf(X, tau)
        taus = check_levels(tau)
        values = self._values(self._rows_to_predict(X), 0, taus)
        if self._orders and not raw:
            values = in_order(values, taus)
        return values[:, 0] if np.ndim(tau) == 0 else values

    @property
    def _orders(self) -> bool:
        """Whether ``predict`` puts levels in order."""
        return bool(self.ordered if self.monotone is None else self.monotone)

    def score(self, X: Any, y: Any, sample_weight: Any = None, tau: Any = 0.5) -> float:
        """D² of the pinball loss: the share of the loss of the best constants that is saved.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None
        tau : float or array (n_levels,)
            Of which levels the mean is taken; strictly between 0 and 1.

        Returns
        -------
        float
            1 at best, 0 for constants.
        """
        taus = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        predicted = self.predict(X, taus)
        y = column_or_1d(y).astype(np.float64)
        weight = check_weights(sample_weight, len(y))
        levels = zip(taus.tolist(), predicted.T, strict=True)
        return float(np.mean([d2(Pinball(level), y, values, weight) for level, values in levels]))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """The central interval at the rows of X: from level (1 − coverage)/2 to (1 + coverage)/2.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        coverage : float
            Strictly between 0 and 1.

        Returns
        -------
        array of shape (n_samples, 2)
            Lower and upper ends, as ``predict`` has these levels.
        """
        return self.predict(X, tau=np.array(central_levels(coverage)))

    def ppf(self, X: Any, tau: Any) -> Array:
        """The inverse of the distribution function: quantiles in order at each x.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        tau : float or array (n_levels,)
            In [0, 1].

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for an array of levels
        """
        taus = check_levels(tau)
        X = self._rows_to_predict(X)
        values = self._rearranged_at(X, np.tile(taus, (X.shape[0], 1)))
        return values[:, 0] if np.ndim(tau) == 0 else values

    def cdf(self, X: Any, y: Any) -> Array:
        """P(Y ≤ y | x): the share of levels whose quantile at x is at most y.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : float or array (n_samples,)

        Returns
        -------
        array of shape (n_samples,)
        """
        X = self._rows_to_predict(X)
        targets = np.broadcast_to(np.asarray(y, dtype=np.float64), (X.shape[0],))
        out = np.empty(X.shape[0])
        for part, taus, values in self._rearranged(X):
            out[part] = distribution_at(values, taus, targets[part])
        return out

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws from the conditional distribution at each row of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
        n_samples : int
            Draws a row.
        random_state : int, RandomState or None

        Returns
        -------
        array of shape (n_rows, n_samples)
        """
        X = self._rows_to_predict(X)
        levels = check_random_state(random_state).uniform(size=(X.shape[0], n_samples))
        return self._rearranged_at(X, levels)

    def _rearranged(self, X: Any) -> Iterator[tuple[slice, Array, Array]]:
        """Quantiles on even levels, in order at each x."""
        taus = np.linspace(0.0, 1.0, MOST_LEVELS + 1)
        for part in slices(X.shape[0], 16 * len(taus)):
            yield part, taus, np.sort(self._values(X[part], 0, taus), axis=1)

    def _rearranged_at(self, X: Any, levels: Array) -> Array:
        """The rearranged quantiles at the levels of each row."""
        out = np.empty(levels.shape)
        for part, taus, values in self._rearranged(X):
            out[part] = quantiles_at(values, taus, levels[part])
        return out

    def at(self, tau: float) -> QuantileSVR:
        """The machine of one level as an ordinary, fitted :class:`QuantileSVR`.

        Copies of a training row stand in it as one support vector. Its ``result_`` is the
        certificate at this level.

        Parameters
        ----------
        tau : float
            Strictly between 0 and 1.
        """
        check_is_fitted(self)
        tau = check_inner_level(tau)
        machine = QuantileSVR(tau=tau, scale_C=self.scale_C, **self._shared_parameters())
        machine._range = None
        self._as_machine(machine, tau)
        return machine
