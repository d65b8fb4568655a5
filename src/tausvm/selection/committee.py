"""Several machines as one: their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..estimators.data import TrainingSet
from ..estimators.regression import KernelRegressor
from ..kernels import make_kernel
from .task import Task

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

    def predict(self, X: Any) -> Array:
        """The weighted mean of what the machines predict."""
        check_is_fitted(self)
        predictions = [machine.predict(X) for machine in self.machines]
        return np.average(predictions, axis=0, weights=self.shares)


def fitted_with(
    machine: KernelRegressor,
    data: TrainingSet,
    task: Task,
    centre: Array | None,
    rows: Index,
    model: tuple[Array, float],
) -> KernelRegressor:
    """Give a machine the β of some rows and an offset; it then has no certificate of its own."""
    beta, offset = model
    inside = np.flatnonzero(beta)
    support = rows[inside]
    machine._clip_to(task.y[rows])
    machine._centre = centre
    machine.n_features_in_ = data.X.shape[1]
    if not machine._precomputed:
        gamma = machine.gamma if isinstance(machine.gamma, float) else 1.0
        machine._kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
    machine.support_ = data.rows[support]
    machine.support_vectors_ = np.empty((0, 0)) if machine._precomputed else data.X[support]
    machine.dual_coef_ = np.asarray(beta[None, inside], dtype=np.float64)
    machine.n_support_ = np.array([len(support)])
    machine.intercept_ = np.array([offset])
    return machine
