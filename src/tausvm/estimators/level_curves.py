"""Curves over the level τ at single points: where decisions flip, distributions by quantiles.

Curves are rows of values at ascending levels and linear between them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def flip_levels(values: Array, taus: Array, middle: float) -> Array:
    """The level at which each row of decisions f(x, τ) flips from positive to negative;
    ``middle`` is one of the levels.

    Where it flips more than once: ``middle`` and the length of the positive levels above it for
    rows positive there, the length of those below it for the others.
    """
    place = int(np.searchsorted(taus, middle))
    left, right = values[:, :-1], values[:, 1:]
    # max(·, 0) of both ends over their absolute sum is the positive part of a segment
    above = np.maximum(left, 0.0) + np.maximum(right, 0.0)
    size = np.abs(left) + np.abs(right)
    positive = np.divide(above, size, out=np.zeros_like(size), where=size > 0) * np.diff(taus)
    beyond = middle + positive[:, place:].sum(axis=1)
    return np.where(
        values[:, place] > 0,
        np.clip(beyond, np.nextafter(middle, 1.0), 1.0),
        np.minimum(positive[:, :place].sum(axis=1), middle),
    )


def quantiles_at(quantiles: Array, taus: Array, wanted: Array) -> Array:
    """The quantiles at the levels ``wanted`` of each row."""
    return np.array(
        [np.interp(levels, taus, row) for levels, row in zip(wanted, quantiles, strict=True)]
    )


def distribution_at(quantiles: Array, taus: Array, targets: Array) -> Array:
    """The share of levels whose quantile is at most the target of the row; quantiles ascend."""
    inverted = [
        np.interp(target, row, taus) for target, row in zip(targets, quantiles, strict=True)
    ]
    return np.where(targets < quantiles[:, 0], 0.0, inverted)
