"""How validation predictions are judged: the model's own loss, a named score, or a callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from ..losses import Loss

Array = NDArray[np.float64]


class Score:
    """Larger is better: a function of targets, predictions and weights."""

    def __call__(self, y: Array, prediction: Array, weight: Array) -> float:
        raise NotImplementedError


class OwnLoss(Score):
    """Minus the mean of a loss."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def __call__(self, y: Array, prediction: Array, weight: Array) -> float:
        return -float(weight @ self.loss.value(y - prediction) / weight.sum())


class JointLoss(Score):
    """Minus the mean of one loss an output, over rows and outputs."""

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.losses = losses

    def __call__(self, y: Array, prediction: Array, weight: Array) -> float:
        residual = y.reshape(len(y), -1) - prediction.reshape(len(y), -1)
        columns = zip(self.losses, residual.T, strict=True)
        paid = [float(weight @ loss.value(column)) for loss, column in columns]
        return -float(np.mean(paid)) / float(weight.sum())


class Metric(Score):
    """A callable of (y_true, y_pred), told the weights where it takes them."""

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function
        self.weighted = "sample_weight" in inspect.signature(function).parameters

    def __call__(self, y: Array, prediction: Array, weight: Array) -> float:
        if self.weighted:
            return float(self.function(y, prediction, sample_weight=weight))
        return float(self.function(y, prediction))


class Scorer(Score):
    """A scorer of scikit-learn, which asks an estimator for predictions."""

    def __init__(self, scorer: Callable[..., float]) -> None:
        self.scorer = scorer

    def __call__(self, y: Array, prediction: Array, weight: Array) -> float:
        known, column = _Known().fit(None), prediction[:, None]
        if (weight == weight[0]).all():
            return float(self.scorer(known, column, y))
        return float(self.scorer(known, column, y, sample_weight=weight))


class _Known(RegressorMixin, BaseEstimator):
    """Predicts what it is given."""

    def fit(self, X: Any, y: Any = None) -> _Known:
        self.fitted_ = True
        return self

    def predict(self, X: Array) -> Array:
        return X[:, 0]


def make_scores(scoring: Any, losses: list[Loss], y: Array) -> list[Score]:
    """One score a level; a ValueError for a scoring that cannot judge predictions of y."""
    return [make_score(scoring, OwnLoss(loss), y, y) for loss in losses]


def make_score(scoring: Any, own: Score, y: Array, trial: Array) -> Score:
    """What a scoring asks for, ``own`` where it is None.

    A ValueError for one that cannot judge predictions such as ``trial``.
    """
    if scoring is None:
        return own
    if isinstance(scoring, str):
        if scoring not in get_scorer_names():
            raise ValueError(
                "scoring must be None (the model's own loss), the name of a scikit-learn score "
                "for regression such as 'neg_mean_absolute_error' or 'r2', or a callable of "
                f"(y_true, y_pred), got {scoring!r}"
            )
        score: Score = Scorer(get_scorer(scoring))
    elif not callable(scoring):
        raise ValueError(
            "scoring must be None, the name of a scikit-learn score or a callable of "
            f"(y_true, y_pred), got {scoring!r}"
        )
    else:
        score = Scorer(scoring) if _required(scoring) >= 3 else Metric(scoring)
    try:
        score(y, trial, np.ones(len(y)))
    except Exception as error:
        raise ValueError(
            f"scoring must judge predictions of a regression, got {scoring!r}, which fails on y: "
            f"{error}"
        ) from error
    return score


def _required(function: Callable[..., Any]) -> int:
    """How many arguments it needs by position."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
