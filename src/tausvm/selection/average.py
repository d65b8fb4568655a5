"""The fold models at one point as one machine: their mean is a kernel expansion too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..estimators.data import TrainingSet
from ..estimators.regression import KernelRegressor
from ..kernels import make_kernel
from .task import Task

Array = NDArray[np.float64]


def averaged(
    machine: KernelRegressor,
    data: TrainingSet,
    task: Task,
    centre: Array | None,
    gamma: float,
    models: dict[int, tuple[Array, float]],
) -> None:
    """Make ``machine`` the mean of the folds' models; it then has no certificate of its own."""
    beta = np.zeros(len(data))
    for fold, (part, _) in models.items():
        beta[task.folds[fold].train] += part / len(models)
    support = np.flatnonzero(beta)
    machine._clip_to(task.y)
    machine._centre = centre
    machine.n_features_in_ = data.X.shape[1]
    if not machine._precomputed:
        machine._kernel = make_kernel(task.kernel, gamma, task.degree, task.coef0)
    machine.support_ = data.rows[support]
    machine.support_vectors_ = np.empty((0, 0)) if machine._precomputed else data.X[support]
    machine.dual_coef_ = beta[None, support]
    machine.n_support_ = np.array([len(support)])
    machine.intercept_ = np.array([np.mean([offset for _, offset in models.values()])])
