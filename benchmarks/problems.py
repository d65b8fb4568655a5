"""The problems that are timed: data sets, parameters, and their duals for the check."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from tausvm.kernels import Points, make_kernel
from tausvm.losses import Loss
from tausvm.operators import CachedKernel
from tausvm.solvers import Certificate, Point, Problem, certificate

Array = NDArray[np.float64]

#: from 1,030 to 20,640 rows
DATA_SETS = ("concrete_comp", "airfoil_noise", "updrs_motor", "cycle_pp", "cal_housing")

#: (C, γ) for ε-SVR on standardised data
SVR_SETTINGS = {"easy": (1.0, 0.1), "medium": (10.0, 0.3), "hard": (100.0, 0.5)}

#: ε, in units of the target's standard deviation
EPSILON = 0.1

#: megabytes for kernel rows, on both sides
CACHE_SIZE = 2000


def kernel_problem(
    X: Array,
    y: Array,
    loss: Loss,
    C: float,
    gamma: float,
    offset: bool,
    cache_size: float = CACHE_SIZE,
) -> Problem:
    """The dual of a fit with the RBF kernel and equal costs."""
    gram = CachedKernel(make_kernel("rbf", gamma), Points(X), cache_size)
    return Problem(gram, y, loss.dual_terms(y, np.full(len(y), C)), offset)


def dual_vector(model: RegressorMixin, n: int) -> Array:
    """β of all samples from ``dual_coef_`` and ``support_`` of a fitted machine."""
    beta = np.zeros(n)
    beta[model.support_] = np.ravel(model.dual_coef_)
    return beta


def certify(
    beta: Array, X: Array, y: Array, loss: Loss, C: float, gamma: float, offset: bool
) -> Certificate:
    """Both objectives and the gap at β, whoever found it, recomputed from the data."""
    problem = kernel_problem(X, y, loss, C, gamma, offset)
    nearest = problem.feasible(beta)  # rounding may have left the bounds or Σβ = 0 by a hair
    if np.abs(nearest - beta).max(initial=0.0) > 1e-6 * max(1.0, np.abs(beta).max(initial=0.0)):
        raise ValueError("the coefficients are not a feasible point of the dual")
    return certificate(problem, Point.of(nearest))
