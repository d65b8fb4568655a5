"""Kernel classification with a cost level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..losses import Hinge
from ..solvers import Solver
from .approximation import ApproximableMachine
from .atomic import atomic
from .data import TrainingSet
from .machine import Level

Array = NDArray[np.float64]


class TauSVC(ClassifierMixin, ApproximableMachine):
    """Support vector classification at a cost level τ.

    Predicts the positive class (``classes_[1]``) where its probability is likely to exceed
    τ: a miss of a positive costs 2(1 − τ), a false alarm 2τ. At τ = ½ it is the ordinary
    support vector machine. More than two classes are fitted one against the rest, each in
    its turn as the positive one, on one Gram matrix; the largest decision value wins.

    ::

        primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b))
                 yᵢ = ±1,  cᵢ = 2(1 − τ)·C·wᵢ for yᵢ = 1,  2τ·C·wᵢ for yᵢ = −1
        dual     max_β  yᵀβ − ½βᵀKβ      [Σβᵢ = 0 with an intercept],  0 ≤ yᵢβᵢ ≤ cᵢ
        link     f = Σᵢ βᵢ k(xᵢ, ·)
        gap      (primal − dual) / max(|primal|, |dual|)

    Parameters
    ----------
    tau : float
        The level, strictly between 0 and 1.
    C : float
        Cost of a unit of loss. The λ of a risk averaged over n rows is C = 1/(λn).
    kernel, degree, gamma, coef0, tol, fit_intercept, solver, shrinking, cache_size, \
time_limit, verbose, max_iter, warm_start, random_state, approximation, landmarks, \
landmark_tol
        As in :class:`SVR`. ``time_limit`` covers all classes together, ``max_iter`` each.

    Attributes
    ----------
    classes_ : array (n_classes,)
    dual_coef_ : array (n_levels, n_support)
        β of the support vectors, which carries the sign of yᵢ. One level for two classes,
        else one a class.
    support_, support_vectors_, n_features_in_, feature_names_in_
        As in :class:`SVR`.
    n_support_, intercept_ : arrays (n_levels,)
    coef_ : array (n_levels, n_features)
        For ``kernel="linear"``.
    result_, dual_gap_, n_iter_
        As in :class:`SVR` for two classes, else a list or array, one a class.

    References
    ----------
    J. Yu, S. V. N. Vishwanathan and J. Zhang, "The Entire Quantile Path of a Risk-Agnostic
    SVM Classifier" (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import TauSVC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array(["no", "no", "yes", "yes"])
    >>> TauSVC(C=10.0).fit(X, y).predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        tau: float = 0.5,
        kernel: str | Callable[..., Array] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        fit_intercept: bool = True,
        solver: str | Solver = "auto",
        shrinking: bool = True,
        cache_size: float = 2000,
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
        self.warm_start = warm_start
        self.random_state = random_state
        self.approximation = approximation
        self.landmarks = landmarks
        self.landmark_tol = landmark_tol

    @property
    def _single_level(self) -> bool:
        return len(self.classes_) == 2

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Features; the Gram matrix (n_samples, n_samples) for ``kernel="precomputed"``.
        y : array of shape (n_samples,)
            Labels of two classes or more, of any type.
        sample_weight : array of shape (n_samples,) or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out,
            and so are classes that have no other rows.

        Returns
        -------
        self
        """
        Hinge(self.tau)  # a level that cannot be used is told first
        self._check_parameters()
        data = self._training_set(X, y, sample_weight)
        check_classification_targets(data.y)
        self.classes_ = np.unique(data.y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class only: {self.classes_[0]!r}"
            )
        self._fit_levels(data, self._levels(data))
        return self

    def _spread_of(self, data: TrainingSet) -> float:
        return 1.0  # of decision values: margins are at ±1

    def _levels(self, data: TrainingSet) -> list[Level]:
        loss = Hinge(self.tau)
        positives = self.classes_[1:] if self._single_level else self.classes_
        return [Level(np.where(data.y == label, 1.0, -1.0), loss) for label in positives]

    def decision_function(self, X: Any) -> Array:
        """f(x) + b, positive on the side of the positive class.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Kernel values with the training rows, (n_samples, n_training), for
            ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n_samples,) for two classes, else (n_samples, n_classes)
        """
        values = self._decision_values(X)
        return values[:, 0] if self._single_level else values

    @property
    def predict_proba(self) -> NoReturn:
        """Not of one level: an AttributeError that says what has probabilities."""
        raise AttributeError(
            "TauSVC has no predict_proba: at one level it tells on which side of tau a probability "
            "lies. Use TauPathSVC, which has all levels, or "
            "sklearn.calibration.CalibratedClassifierCV(TauSVC())"
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As in :meth:`decision_function`.

        Returns
        -------
        array of shape (n_samples,)
        """
        values = self.decision_function(X)
        best = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels
