"""Scores of predicted levels that scikit-learn does not have.

The pinball loss of a quantile is :func:`sklearn.metrics.mean_pinball_loss`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length

from .losses import Loss, Pinball, SquaredPinball

Array = NDArray[np.float64]


def mean_expectile_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    tau: float | ArrayLike = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """The mean asymmetric squared error, which the τ-expectile minimises.

    ``Σ wᵢ |τ − 1(yᵢ < fᵢ)| (yᵢ − fᵢ)² / Σ wᵢ``

    At τ = ½ it is half the mean squared error.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n,) or (n, n_levels)
    tau : float or array (n_levels,)
        One level a column of ``y_pred``, or one for all of them.
    sample_weight : array (n,), optional

    Returns
    -------
    loss : float or array (n_levels,)
        One number for each column of a two-dimensional ``y_pred``.

    Examples
    --------
    >>> from tausvm.metrics import mean_expectile_loss
    >>> float(mean_expectile_loss([1.0, 4.0], [2.0, 2.0], tau=0.75))
    1.625
    """
    return _mean_loss(SquaredPinball, y_true, y_pred, tau, sample_weight)


def mean_levels_pinball_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    tau: float | ArrayLike = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """The mean pinball loss of each of several predicted quantiles.

    For one level it is :func:`sklearn.metrics.mean_pinball_loss`, which knows of one alone.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n,) or (n, n_levels)
    tau : float or array (n_levels,)
        One level a column of ``y_pred``, or one for all of them.
    sample_weight : array (n,), optional

    Returns
    -------
    loss : float or array (n_levels,)
        One number for each column of a two-dimensional ``y_pred``.

    Examples
    --------
    >>> from tausvm.metrics import mean_levels_pinball_loss
    >>> mean_levels_pinball_loss([1.0, 3.0], [[1.0, 2.0], [1.0, 2.0]], tau=[0.25, 0.75])
    array([0.25, 0.5 ])
    """
    return _mean_loss(Pinball, y_true, y_pred, tau, sample_weight)


def _mean_loss(
    kind: Callable[[float], Loss],
    y_true: ArrayLike,
    y_pred: ArrayLike,
    tau: float | ArrayLike,
    sample_weight: ArrayLike | None,
) -> float | Array:
    y, columns, flat = _columns(y_true, y_pred)
    taus = np.atleast_1d(np.asarray(tau, dtype=np.float64))
    if taus.shape not in {(1,), (columns.shape[1],)}:
        raise ValueError(
            f"tau must be one level or one for each of the {columns.shape[1]} columns of "
            f"y_pred, got {len(taus)}"
        )
    taus = np.broadcast_to(taus, columns.shape[1])
    losses = [
        kind(float(level)).value(y - column) for level, column in zip(taus, columns.T, strict=True)
    ]
    return _mean(np.stack(losses, axis=1), sample_weight, flat)


def d2_expectile_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    tau: float | ArrayLike = 0.5,
    sample_weight: ArrayLike | None = None,
) -> float | Array:
    """The share of the expectile loss that a prediction saves over the best constant.

    ``D² = 1 − loss(y, f) / loss(y, e)``, with e the τ-expectile of y. 1 is perfect, 0 is as good
    as the constant, below 0 is worse. At τ = ½ it is R². The same for quantiles is
    :func:`sklearn.metrics.d2_pinball_score`.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n,) or (n, n_levels)
    tau : float or array (n_levels,)
        One level a column of ``y_pred``, or one for all of them.
    sample_weight : array (n,), optional

    Returns
    -------
    score : float or array (n_levels,)
        Where y is constant: 1 for a perfect prediction, 0 for any other.

    Examples
    --------
    >>> from tausvm.metrics import d2_expectile_score
    >>> float(d2_expectile_score([1.0, 2.0, 6.0], [1.0, 3.0, 5.0], tau=0.5).round(3))
    0.857
    """
    y, columns, flat = _columns(y_true, y_pred)
    loss = np.atleast_1d(mean_expectile_loss(y, columns, tau=tau, sample_weight=sample_weight))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    taus = np.broadcast_to(np.atleast_1d(np.asarray(tau, dtype=np.float64)), loss.shape)
    constant = np.column_stack([np.full(len(y), _expectile(y, float(t), weight)) for t in taus])
    worst = np.atleast_1d(mean_expectile_loss(y, constant, tau=taus, sample_weight=sample_weight))
    scores = np.where(loss == 0, 1.0, 0.0)
    np.divide(worst - loss, worst, out=scores, where=worst > 0)
    return scores[0] if flat else scores


def _expectile(y: Array, tau: float, weight: Array | None) -> float:
    """The τ-expectile of a sample: the root of an increasing, piecewise linear function."""
    order = np.argsort(y, kind="stable")
    values = y[order]
    w = np.ones(len(y)) if weight is None else weight[order]
    below, total = np.cumsum(w), w.sum()
    mass, whole = np.cumsum(w * values), float(w @ values)
    # at values[k]: (1 − τ)·Σ_{i ≤ k} wᵢ(v − yᵢ) − τ·Σ_{i > k} wᵢ(yᵢ − v)
    slope = (1 - tau) * below + tau * (total - below)
    level = (1 - tau) * mass + tau * (whole - mass)
    k = min(int(np.searchsorted(slope * values - level >= 0, True)), len(values) - 1)
    k = max(k - 1, 0)  # the root lies on the piece that starts at the value before
    return float(level[k] / slope[k]) if slope[k] > 0 else float(values[k])


def mean_interval_score(
    y_true: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    share: float = 0.9,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The mean interval score (Winkler's) of intervals that should hold a share of the targets.

    ``(u − l) + 2/α·(l − y)₊ + 2/α·(y − u)₊`` with α = 1 − share. Narrow is good, missing costs.
    The best interval is that of the quantiles α/2 and 1 − α/2, and the score is 2/α times
    the sum of their pinball losses.

    Parameters
    ----------
    y_true, lower, upper : arrays (n,)
    share : float
        The nominal share of targets inside, strictly between 0 and 1.
    sample_weight : array (n,), optional

    Examples
    --------
    >>> from tausvm.metrics import mean_interval_score
    >>> mean_interval_score([1.0, 5.0], [0.0, 0.0], [2.0, 4.0], share=0.5)
    5.0
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie strictly between 0 and 1, got {share!r}")
    y, low, _ = _columns(y_true, lower)
    _, high, _ = _columns(y_true, upper)
    if low.shape[1] != 1 or high.shape[1] != 1:
        raise ValueError("lower and upper must be one-dimensional")
    short, long = np.maximum(low[:, 0] - y, 0.0), np.maximum(y - high[:, 0], 0.0)
    values = (high - low)[:, 0] + 2.0 / (1.0 - share) * (short + long)
    return float(_mean(values[:, None], sample_weight, flat=True))


@dataclass(frozen=True)
class LevelScorer:
    """A scorer of levels: minus the mean loss of what an estimator predicts, greater is better.

    :func:`pinball_scorer` and :func:`expectile_scorer` make them.
    """

    loss: Callable[..., float | Array]
    tau: float | Sequence[float] | None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        tau = self.tau
        if tau is None:
            tau = _own_levels(estimator)
        predicted = np.asarray(estimator.predict(X), dtype=np.float64)
        columns = predicted.reshape(len(predicted), -1)
        losses = self.loss(y, columns, tau=tau, sample_weight=sample_weight)
        return -float(np.mean(losses))


def _own_levels(estimator: Any) -> Any:
    """The τ of an estimator, or of the last step of a pipeline, or of what a search has chosen."""
    for name in ("best_estimator_", "estimator", "regressor_"):
        if not hasattr(estimator, "tau") and hasattr(estimator, name):
            return _own_levels(getattr(estimator, name))
    if hasattr(estimator, "steps"):
        return _own_levels(estimator.steps[-1][1])
    if not hasattr(estimator, "tau"):
        raise ValueError(
            f"tau must be given for {type(estimator).__name__}, which has no levels of its own"
        )
    return estimator.tau


def pinball_scorer(tau: float | Sequence[float] | None = None) -> LevelScorer:
    """A scorer by the pinball loss, for ``cross_val_score``, ``GridSearchCV`` and the like.

    Parameters
    ----------
    tau : float, sequence of floats or None
        The levels of the columns of a prediction; None for those that an estimator has itself. Of
        several levels the mean counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from tausvm import QuantileSVR
    >>> from tausvm.metrics import pinball_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(60, 1))
    >>> y = X.ravel() + rng.normal(scale=0.1, size=60)
    >>> grid = {"C": [0.01, 10.0]}
    >>> search = GridSearchCV(QuantileSVR(tau=[0.1, 0.9]), grid, scoring=pinball_scorer())
    >>> search.fit(X, y).best_params_
    {'C': 10.0}
    """
    return LevelScorer(mean_levels_pinball_loss, tau)


def expectile_scorer(tau: float | Sequence[float] | None = None) -> LevelScorer:
    """A scorer by the expectile loss, as :func:`pinball_scorer` is one by the pinball loss.

    Parameters
    ----------
    tau : float, sequence of floats or None
        The levels of the columns of a prediction; None for those that an estimator has itself.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from tausvm.metrics import expectile_scorer
    >>> model = DummyRegressor().fit([[0.0], [1.0]], [0.0, 2.0])
    >>> expectile_scorer(0.5)(model, [[0.0], [1.0]], [0.0, 2.0])
    -0.5
    """
    return LevelScorer(mean_expectile_loss, tau)


def coverage(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float | Array:
    """The weighted fraction of targets at or below each predicted level.

    For a calibrated τ-quantile it is close to τ. For an expectile it is whatever the
    distribution makes it.

    Parameters
    ----------
    y_true : array (n,)
    y_pred : array (n,) or (n, n_levels)
    sample_weight : array (n,), optional

    Returns
    -------
    coverage : float or array (n_levels,)

    Examples
    --------
    >>> from tausvm.metrics import coverage
    >>> coverage([1.0, 2.0, 3.0, 4.0], [[1.0, 3.5]] * 4)
    array([0.25, 0.75])
    """
    y, columns, flat = _columns(y_true, y_pred)
    return _mean((y[:, None] <= columns).astype(np.float64), sample_weight, flat)


def crossing_rate(
    y_pred: ArrayLike, *, tau: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The weighted fraction of samples where a higher level lies below a lower one.

    Levels fitted one by one may cross; true quantiles and expectiles never do.

    Parameters
    ----------
    y_pred : array (n, n_levels)
    tau : array (n_levels,)
        The levels of the columns, in any order.
    sample_weight : array (n,), optional

    Examples
    --------
    >>> from tausvm.metrics import crossing_rate
    >>> crossing_rate([[1.0, 2.0], [3.0, 2.0]], tau=[0.1, 0.9])
    0.5
    """
    columns = check_array(y_pred, dtype=np.float64, input_name="y_pred")
    taus = np.asarray(tau, dtype=np.float64)
    if taus.shape != (columns.shape[1],):
        raise ValueError(
            f"tau must hold one level for each of the {columns.shape[1]} columns of y_pred, "
            f"got shape {taus.shape}"
        )
    ordered = columns[:, np.argsort(taus, kind="stable")]
    crossed = (np.diff(ordered, axis=1) < 0).any(axis=1, keepdims=True)
    return float(_mean(crossed.astype(np.float64), sample_weight, flat=True))


def squared_correlation(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The square of the correlation between targets and predictions.

    Unlike R² it forgives a wrong scale and shift. It is 0 where either side is constant.

    Parameters
    ----------
    y_true, y_pred : arrays (n,)
    sample_weight : array (n,), optional

    Returns
    -------
    squared correlation : float in [0, 1]

    Examples
    --------
    >>> round(squared_correlation([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]), 12)
    1.0
    """
    check_consistent_length(y_true, y_pred, sample_weight)
    true, predicted = (
        check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)
        for y, name in ((y_true, "y_true"), (y_pred, "y_pred"))
    )
    weight = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    if np.ptp(true) == 0 or np.ptp(predicted) == 0:
        return 0.0
    share = weight / weight.sum()
    true = true - share @ true
    predicted = predicted - share @ predicted
    spread = float(share @ true**2) * float(share @ predicted**2)
    return min(float(share @ (true * predicted)) ** 2 / spread, 1.0) if spread > 0 else 0.0


def _columns(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Array, Array, bool]:
    """y, the predictions as columns, and whether they were one flat array."""
    y = check_array(y_true, ensure_2d=False, dtype=np.float64, input_name="y_true")
    columns = check_array(y_pred, ensure_2d=False, dtype=np.float64, input_name="y_pred")
    if y.ndim != 1:
        raise ValueError(f"y_true must be one-dimensional, got shape {y.shape}")
    check_consistent_length(y, columns)
    flat = columns.ndim == 1
    return y, columns[:, None] if flat else columns, flat


def _mean(values: Array, sample_weight: ArrayLike | None, flat: bool) -> float | Array:
    """The weighted mean of each column; one number where the input was flat."""
    if sample_weight is not None:
        weight = check_array(sample_weight, ensure_2d=False, input_name="sample_weight")
        check_consistent_length(values, weight)
        means = np.average(values, axis=0, weights=weight)
    else:
        means = values.mean(axis=0)
    return float(means[0]) if flat else means


__all__ = [
    "coverage",
    "crossing_rate",
    "d2_expectile_score",
    "expectile_scorer",
    "mean_expectile_loss",
    "mean_interval_score",
    "mean_levels_pinball_loss",
    "pinball_scorer",
    "squared_correlation",
]
