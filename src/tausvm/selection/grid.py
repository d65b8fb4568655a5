"""Grids of C and γ: given, or spread over what the data can need."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from ..estimators.data import Matrix, TrainingSet
from ..estimators.machine import DISTANCE_KERNELS
from ..estimators.parameters import refuse
from ..kernels import Points, make_kernel
from .settings import DistanceSettings

Array = NDArray[np.float64]

#: kernels with a γ
GAMMA_KERNELS = (*DISTANCE_KERNELS, "poly", "sigmoid")
#: up to this many features the narrowest width shrinks with the number of samples alone
FEW_FEATURES = 24


@dataclass(frozen=True)
class Axis:
    """The values of one parameter, ascending; one that was not given may grow."""

    values: Array
    grows: bool

    def near(self, value: float, reach: int) -> Axis:
        """The points next to a value, so many to each side; all of an axis that cannot grow."""
        if not self.grows:
            return self
        at = int(np.abs(np.log(self.values / value)).argmin())
        return Axis(self.values[max(at - reach, 0) : at + reach + 1], True)

    def grown(self, at: int, count: int, largest_step: float) -> Axis | None:
        """The axis with ``count`` more points beyond the border at which ``at`` lies, or None."""
        if not self.grows or len(self.values) < 2:
            return None
        ratio = min(self.values[1] / self.values[0], largest_step)
        beyond = ratio ** np.arange(1, count + 1)
        if at == 0:
            return Axis(np.concatenate([self.values[0] / beyond[::-1], self.values]), True)
        if at == len(self.values) - 1:
            return Axis(np.concatenate([self.values, self.values[-1] * beyond]), True)
        return None


def check_axis(name: str, given: Any) -> int | Array:
    """A number of points, or the values sorted and without repetition; else a ValueError."""
    wanted = "a number of grid points >= 1 or a list of finite values > 0"
    if isinstance(given, Integral) and not isinstance(given, bool):
        if given < 1:
            raise refuse(name, wanted, given)
        return int(given)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise refuse(name, wanted, given) from None
    if values.ndim != 1:
        raise refuse(name, wanted, given)
    if len(values) == 0:
        raise ValueError(f"{name} must be {wanted}, got an empty grid")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise refuse(name, wanted, given)
    return np.unique(values)


def make_axis(asked: int | Array, low: float, high: float) -> Axis:
    """The values asked for, or so many between ``low`` and ``high`` in equal ratios."""
    if isinstance(asked, int):
        middle = np.sqrt(low * high)
        values = np.geomspace(low, high, asked) if asked > 1 else np.array([middle])
        return Axis(values, True)
    return Axis(asked, False)


def gamma_range(kernel: Any, data: TrainingSet) -> tuple[float, float]:
    """The γ worth trying: from the scale of the distances, the dimension and the size.

    For features that fill [−1, 1]^d the widths γ^(−1/2) of the RBF kernel run from
    5·(1 + 5/n)^d down to 0.2·n^(−1/d). Other data have them multiplied by what the spread of
    their features is against that. A row of weight k counts as k rows.
    """
    d = data.X.shape[1]
    n = max(float(data.weight.sum()), float(len(data)))
    variance = mean_feature_variance(data.X, data.weight)
    if variance <= 0:
        return 0.1, 10.0
    if kernel not in DISTANCE_KERNELS:  # of inner products
        centre = 1.0 / (d * variance)
        return 1e-3 * centre, 1e2 * centre
    half_range = np.sqrt(3.0 * variance)  # of a uniform feature of that variance
    typical = np.sqrt(2.0 * d * variance)  # root mean square distance of two points
    # the power itself overflows for hundreds of thousands of features
    growth = (1.0 + 5.0 / n) ** d if d * np.log1p(5.0 / n) < np.log(2.0) else 2.0
    widest = max(5.0 * half_range * growth, 2.0 * typical)
    narrowest = 0.2 * half_range * n ** (-1.0 / d) * max(1.0, np.sqrt(d / FEW_FEATURES))
    if kernel == "laplacian":  # city-block distances are √d as large
        return 1.0 / (widest * np.sqrt(d)), 1.0 / (narrowest * np.sqrt(d))
    if kernel == "exponential":
        return 1.0 / widest, 1.0 / narrowest
    return widest**-2.0, narrowest**-2.0


def cost_range(weight: Array, unit: float, diagonal: float) -> tuple[float, float]:
    """The C worth trying: C = 1/(2nλ) for λ from 1 down to 0.001/n.

    Parameters
    ----------
    weight : array (n,)
        A row of weight k counts as k rows. Weights below that, as those that sum to 1, are shares
        of n rows, and C has the rest.
    unit : float
        What C counts in: for losses that grow linearly twice the standard deviation of y.
    diagonal : float
        The mean of k(x, x), by which C is divided.
    """
    scale = unit / diagonal if diagonal > 0 else unit
    total = float(weight.sum())
    return scale / (2.0 * total), 500.0 * scale * max(1.0, len(weight) / total)


def mean_diagonal(kernel: Any, X: Matrix, gamma: float, degree: int, coef0: float) -> float:
    """The mean of k(x, x); of a Gram matrix where the kernel is given as one."""
    if isinstance(kernel, str) and kernel in DISTANCE_KERNELS:
        return 1.0
    if isinstance(kernel, str) and kernel == "precomputed":
        return float(np.diagonal(X).mean())
    return float(make_kernel(kernel, gamma, degree, coef0).diagonal(Points(X)).mean())


def distance_gamma(
    X: Matrix, weight: Array, random_state: np.random.RandomState, settings: DistanceSettings
) -> float:
    """γ = 1/(2σ²) with σ the 0.7-quantile of the distances between rows.

    A row of weight k counts as k rows, whose distances to each other are 0. Of many rows a sample
    is taken. Where the quantile is 0 it is that of the distances above 0, and 1 without any.
    """
    if X.shape[0] > settings.rows:
        chosen = np.sort(random_state.choice(X.shape[0], settings.rows, replace=False))
        X, weight = X[chosen], weight[chosen]
    distance = pairwise_distances(X)
    above = np.triu_indices(len(distance), 1)
    values = np.concatenate([[0.0], distance[above]])
    copies = np.maximum(weight * (weight - 1.0), 0.0).sum() / 2.0
    counts = np.concatenate([[copies], np.outer(weight, weight)[above]])
    for part in (np.ones(len(values), dtype=bool), values > 0):
        order = np.argsort(values[part])
        total = np.cumsum(counts[part][order])
        if len(total):
            place = np.searchsorted(total, settings.share * total[-1] * (1.0 - 1e-12))
            sigma = float(values[part][order][min(place, len(total) - 1)])
            if sigma > 0:
                return 0.5 / sigma**2
    return 1.0


def mean_feature_variance(X: Matrix, weight: Array) -> float:
    """The variance within a feature, averaged over the features."""
    share = weight / weight.sum()
    if sp.issparse(X):
        means = np.asarray(X.T @ share).ravel()
        squares = np.asarray(X.multiply(X).T @ share).ravel()
        return float(np.maximum(squares - means**2, 0.0).mean())
    return float((share @ np.square(X - share @ X)).mean())
