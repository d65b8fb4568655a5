"""Several machines as one: their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..estimators.regression import KernelRegressor

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Committee(RegressorMixin, BaseEstimator):
    """The mean of machines that are fitted already.

    Parameters
    ----------
    machines : list of estimators
        With predictions of shape (n,).
    shares : list of float
        How much each one counts; only their ratios matter.
    """

    def __init__(self, machines: Sequence[KernelRegressor], shares: Sequence[float]) -> None:
        self.machines = machines
        self.shares = shares

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Committee:
        """Fit every machine to the same data, with the C and γ that it has."""
        for machine in self.machines:
            machine.fit(X, y, sample_weight=sample_weight)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(machine, "dual_coef_") for machine in self.machines)

    @property
    def n_features_in_(self) -> int:
        return int(self.machines[0].n_features_in_)

    @property
    def support_(self) -> Index:
        """The rows that are support vectors of any machine."""
        return np.unique(np.concatenate([machine.support_ for machine in self.machines]))

    @property
    def n_support_(self) -> Index:
        """How many rows that are, (1,)."""
        return np.array([len(self.support_)])

    @property
    def dual_gap_(self) -> float:
        """The largest relative duality gap of a machine, on the rows that it was fitted on."""
        return max(float(machine.dual_gap_) for machine in self.machines)

    def predict(self, X: Any, raw: bool = False) -> Array:
        """The weighted mean of what the machines predict; ``raw`` before they clip it."""
        check_is_fitted(self)
        predictions = [machine.predict(X, raw=raw) for machine in self.machines]
        return np.average(predictions, axis=0, weights=self.shares)
