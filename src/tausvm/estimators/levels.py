"""The levels τ of a machine: one or a list, predicted in order, and intervals between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ..losses import Loss
from ..solvers.onedim import best_offset
from .data import check_weights
from .parameters import is_real, refuse

Array = NDArray[np.float64]

#: levels that differ by less are one and the same: (1 − 0.9) / 2 is not 0.05 to the last digit
SAME_LEVEL = 1e-9


def listed_levels(tau: Any, wanted: str) -> list[Any]:
    """The levels as a list; a ValueError for what is neither a number nor a list."""
    if np.ndim(tau) > 1 or np.size(tau) == 0:
        raise refuse("tau", wanted, tau)
    return [tau] if np.ndim(tau) == 0 else list(tau)


def in_order(values: Array, tau: Any) -> Array:
    """Values, (n, n_levels), with those of each row in the order of their levels.

    The value at the k-th smallest level becomes the k-th smallest of the row. For the losses of
    quantiles and expectiles the difference of two levels' losses falls along f, so that no sum of
    losses over the levels rises by it (the proof is in docs/estimators.md).
    """
    order = np.argsort(np.atleast_1d(tau), kind="stable")
    out = np.empty_like(values)
    out[:, order] = np.sort(values, axis=1)
    return out


def central_levels(coverage: Any) -> tuple[float, float]:
    """(1 − coverage)/2 and (1 + coverage)/2."""
    if not (is_real(coverage) and 0 < coverage < 1):
        raise refuse("coverage", "a number in (0, 1)", coverage)
    return (1.0 - float(coverage)) / 2.0, (1.0 + float(coverage)) / 2.0


def interval_columns(tau: Any, coverage: Any) -> list[int]:
    """The places of both ends of a central interval; a ValueError where one was not fitted."""
    wanted = central_levels(coverage)
    given = np.atleast_1d(np.asarray(tau, dtype=np.float64))
    places = [int(np.abs(given - level).argmin()) for level in wanted]
    if any(abs(given[k] - level) > SAME_LEVEL for k, level in zip(places, wanted, strict=True)):
        needed = " and ".join(f"{level:.6g}" for level in wanted)
        there = ", ".join(f"{level:.6g}" for level in given)
        raise ValueError(
            f"coverage={coverage!r} needs the levels {needed}, and fitted are {there}: add them "
            "to tau, or ask for a coverage whose levels are there"
        )
    return places


class OrderedLevels:
    """Mixin of the machines with a parameter ``tau``: levels in order, intervals between two."""

    tau: float | Sequence[float]
    #: models of versions that did not order their levels go on without
    ordered: bool = False

    @property
    def _single_level(self) -> bool:
        return np.ndim(self.tau) == 0

    @property
    def _orders(self) -> bool:
        """Whether ``predict`` puts the levels in order."""
        return bool(self.ordered)

    def _in_order(self, values: Array) -> Array:
        """Values, (n, n_levels), as ``ordered`` wants them."""
        return in_order(values, self.tau) if self._orders and values.shape[1] > 1 else values

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """The central interval at the rows of X: from level (1 − coverage)/2 to (1 + coverage)/2.

        Between two quantiles a share ``coverage`` of the targets is to lie. Expectiles of the same
        levels lie closer together as a rule, and no share of the targets is claimed of them.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As ``predict`` takes it.
        coverage : float
            Strictly between 0 and 1. Both levels have to be among those fitted.

        Returns
        -------
        array of shape (n_samples, 2)
            Lower and upper ends, as ``predict`` has these levels.
        """
        places = interval_columns(self.tau, coverage)
        machine: Any = self
        values: Array = machine.predict(X)
        return values.reshape(len(values), -1)[:, places]

    def _score_loss(self, tau: float) -> Loss:
        """The loss of a level without ε, by which a prediction is judged."""
        return cast("Loss", type(self)._loss(tau))  # type: ignore[attr-defined]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the loss of the best constants that the levels save.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            As ``predict`` takes it.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        float
            The mean over the levels of 1 − loss / loss of the best constant for that level: 1 at
            best, 0 for constants. The losses are those at ε = 0. For expectiles it is
            :func:`tausvm.metrics.d2_expectile_score`, which is R² at τ = ½; for quantiles it is
            :func:`sklearn.metrics.d2_pinball_score` but for the constant, which there is an
            interpolated quantile and not quite the best one.
        """
        machine: Any = self
        taus = np.atleast_1d(np.asarray(self.tau, dtype=np.float64))
        predicted = machine.predict(X).reshape(-1, len(taus))
        y = column_or_1d(y).astype(np.float64)
        weight = check_weights(sample_weight, len(y))
        levels = zip(taus.tolist(), predicted.T, strict=True)
        return float(
            np.mean([d2(self._score_loss(tau), y, values, weight) for tau, values in levels])
        )


def d2(loss: Loss, y: Array, predicted: Array, weight: Array) -> float:
    """1 − Σ loss / Σ loss of the best constant; where that is 0: 1 for no loss, else 0."""
    paid = float(weight @ loss.value(y - predicted))
    centre = best_offset(loss.dual_terms(y, weight), y)
    constant = float(weight @ loss.value(y - centre))
    if constant == 0.0:
        return 1.0 if paid == 0.0 else 0.0
    return 1.0 - paid / constant


class SeparateLevels(OrderedLevels):
    """Mixin of the regressors that fit each level on its own."""

    epsilon: float
    #: the loss of a level: a function of τ and ε
    _loss: Callable[[float, float], Loss]

    def _losses(self) -> list[Loss]:
        """One loss a level; a ValueError for a τ or ε that cannot be used."""
        taus = listed_levels(self.tau, "a number in (0, 1) or a list of them")
        return [type(self)._loss(tau, self.epsilon) for tau in taus]

    def _score_loss(self, tau: float) -> Loss:
        return type(self)._loss(tau, 0.0)

    def _order(self) -> list[int]:
        """Ascending: neighbours are alike."""
        return [int(k) for k in np.argsort(np.atleast_1d(self.tau), kind="stable")]
