"""``FeatureMetric``: learned features for any method that comes after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..estimators.atomic import atomic
from ..estimators.data import prediction_rows, training_set
from ..estimators.parameters import check_integer
from ..kernels import mapped
from .estimators import ExpectileSVRCV
from .metric import MetricLearner, spread_share
from .views import check_feature_groups, check_metric, composed, importances

Array = NDArray[np.float64]


class FeatureMetric(TransformerMixin, BaseEstimator):
    """A linear map of the features under which a kernel sees what matters.

    Kernel ridge regressions predict y, and where ``tau`` has levels off the middle also the size
    of their own errors. What the mean squared slope of a prediction along a feature is, that
    feature counts:

        M = mean ∇f ∇fᵀ + z²·mean ∇s ∇sᵀ,    x ↦ M^½ x

    Then both are predicted again from the mapped features, and so on; a later round counts if it
    errs less out of fold, by a standard error of the difference.
    :class:`~tausvm.QuantileSVRCV` and its kin do this by themselves; as a transformer the map
    serves any method of distances or inner products.

    Parameters
    ----------
    metric : {"auto", "diagonal", "full"}
        "diagonal" gives every feature a weight, "full" also turns the features. "auto" learns
        weights, and turns them where that errs less (dense X with 2 to 100 features).
    tau : float or list of float
        The levels that are predicted afterwards: the further from ½ they lie, the more does what
        moves the spread of y count beside what moves its mean.
    rounds : int
        At most so many; with "auto" those of a full metric come after those of a diagonal one.
    cv : int, splitter or iterable of (train, test)
        The folds by which rounds are judged, as in :class:`~tausvm.SVRCV`.
    feature_groups : array of int (n_features,) or None
        Features with the same number share their weight, for example the columns of one category.
        A full metric has no weights to share, and does not know of groups.
    n_jobs : int or None
        As in :class:`~tausvm.SVRCV`.
    random_state : int, RandomState or None
        Of the shuffle with an integer ``cv``; None is 0.

    Attributes
    ----------
    feature_metric_ : array (n_features,) or (n_features, n_features)
        The weights or the matrix, for X as given. Weights that give the features of a dense X
        equal spread where no round won anything.
    feature_importances_ : array (n_features,)
        What the features count, as shares: they sum to 1. Of features in units of their own
        spread; equal where no round won anything.
    n_rounds_ : int
        How many rounds the map took, 0 where none was taken.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where X has column names.

    Notes
    -----
    The map has seen the targets of all rows that it was fitted to. Whatever comes after it is
    judged fairly only if the map is learned anew in every fold: cross-validate the pipeline, not
    the step after it.

    With levels off the middle the first round is taken in any case: what moves the spread alone
    does not show in the errors of a mean. The tuned machines compare it by their own loss, this
    transformer does not.

    Examples
    --------
    Of five features one matters, and nearest neighbours hear of it:

    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from tausvm import FeatureMetric
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 5))
    >>> y = np.sin(6 * X[:, 3]) + 0.1 * rng.normal(size=200)
    >>> learned = FeatureMetric(metric="diagonal").fit(X, y)
    >>> int(learned.feature_importances_.argmax())
    3
    >>> plain = KNeighborsRegressor().fit(X[:100], y[:100])
    >>> better = make_pipeline(FeatureMetric(), KNeighborsRegressor()).fit(X[:100], y[:100])
    >>> bool(better.score(X[100:], y[100:]) > plain.score(X[100:], y[100:]) + 0.1)
    True
    """

    def __init__(
        self,
        metric: str = "auto",
        *,
        tau: float | Sequence[float] = 0.5,
        rounds: int = 3,
        cv: Any = 5,
        feature_groups: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.metric = metric
        self.tau = tau
        self.rounds = rounds
        self.cv = cv
        self.feature_groups = feature_groups
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.metric != "full"
        return tags

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            Weights of the rows, in the fits and in the validation.
        groups : array of shape (n_samples,) or None
            For splitters that keep groups together; with an integer ``cv`` it makes
            :class:`~sklearn.model_selection.GroupKFold` of it.

        Returns
        -------
        self
        """
        check_integer("rounds", self.rounds, 1)
        proxy = self._proxy()
        list(proxy._machine()._losses())  # the levels are checked there
        proxy._check_own_parameters()
        data = training_set(self, X, y, sample_weight, False, y_numeric=True)
        check_metric("metric", self.metric, data.X)
        groups_of = check_feature_groups(self.feature_groups, data.X.shape[1])
        data, task, spread_of = proxy._posed(data, groups, proxy.gammas, proxy._clock())
        share = spread_share(np.atleast_1d(self.tau).tolist())
        found = MetricLearner(task, share, groups_of, self.n_jobs).learn(self.metric)
        d = self.n_features_in_
        learned = composed(spread_of, found.final)
        self.feature_metric_ = np.ones(d) if learned is None else learned
        self.feature_importances_ = importances(found.final, spread_of, d)
        self.n_rounds_ = found.number
        return self

    def _proxy(self) -> ExpectileSVRCV:
        """The selection whose folds, units and features these are."""
        proxy = ExpectileSVRCV(
            tau=self.tau,
            cv=self.cv,
            kernel="rbf",
            feature_metric=self.metric,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        settings = proxy._settings
        metric = replace(settings.metric, rounds=self.rounds)
        proxy._settings = replace(settings, metric=metric)
        return proxy

    def transform(self, X: Any) -> Any:
        """The mapped features: X times the weights, or the matrix product with ``feature_metric_``.

        A sparse X stays sparse under weights.
        """
        check_is_fitted(self)
        return mapped(prediction_rows(self, X, False), self.feature_metric_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the mapped features: their own under weights, numbered ones under a matrix."""
        check_is_fitted(self)
        names = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        if self.feature_metric_.ndim == 1:
            return names
        return np.array([f"featuremetric{k}" for k in range(len(names))], dtype=object)
