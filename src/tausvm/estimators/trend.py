"""A line beside a kernel machine: what a target owes to a line, f need not learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..solvers.units import spread
from .data import TrainingSet
from .linear import LinearQuantileSVR

Array = NDArray[np.float64]

#: the gap of the line's own fit: any line will do, a better one leaves less to f
ROUGH = 1e-3


@dataclass(frozen=True)
class Trend:
    """t(x) = xᵀv, within its range at the rows that it was learned from.

    A machine with a trend is fitted to y − t(x) and predicts f(x) + b + t(x). The trend is given
    when the fit begins, as a learned map of the features is: the certificate is of f. Beyond its
    range t stays where it is, since a line leads anywhere.

    Attributes
    ----------
    weights : array (d,)
        v.
    low, high : float
    """

    weights: Array
    low: float
    high: float

    @classmethod
    def learned(cls, data: TrainingSet, time_limit: float | None = None) -> Trend | None:
        """The line with the least absolute errors on some rows; None where there is none."""
        share = data.weight / data.weight.sum()
        centre = share @ data.X
        size = np.array([spread(column, data.weight) for column in data.X.T])
        size[np.ptp(data.X, axis=0) == 0] = np.inf  # of what does not vary nothing is learned
        line = LinearQuantileSVR(tau=0.5, tol=ROUGH, time_limit=time_limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            line.fit((data.X - centre) / size, data.y, sample_weight=data.weight)
        weights = np.ravel(line.coef_) / size
        if not (np.isfinite(weights).all() and weights.any()):
            return None
        values = data.X @ weights
        return cls(weights, float(values.min()), float(values.max()))

    def __call__(self, X: Any) -> Array:
        return np.clip(np.asarray(X @ self.weights).ravel(), self.low, self.high)
