"""A problem in units of its own: targets centred and scaled, an exact change of variables.

With y = shift + scale·z the problem of z is that of y again::

    f = scale·g,  b = shift + scale·h,  β = scale·cost·γ
    ½‖f‖² + Σ cᵢ ℓ(yᵢ − f − b)  =  scale²·cost·(½‖g‖² + Σ (cᵢ ℓ)′(zᵢ − g − h))

where (cℓ)′ has the bounds and the kink of cℓ divided by ``scale``, and its ridges as they are. With
a ``cost`` other than 1 all costs are divided by it and the kernel matrix, so ‖g‖², multiplied.
Sums then cancel nothing but what the problem itself cancels, whatever the unit and the mean
of y. A shift is possible where the offset is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: objectives have the unit of squared targets
SMALLEST_SIZE = 1e-150


@dataclass(frozen=True)
class Units:
    """How targets were moved and scaled, and how a solution is taken back.

    Parameters
    ----------
    shift : float, or array (p,)
        One a column for targets (n, p).
    scale : float
        A power of two, so that multiplying by it rounds nothing.
    cost : float
        What the costs were divided by and the kernel matrix multiplied with; a power of two.
    """

    shift: Any = 0.0
    scale: float = 1.0
    cost: float = 1.0

    @classmethod
    def of(cls, y: Array, weight: Array, offset: bool) -> Units:
        """Units in which y has its weighted median at 0, where the offset is free, and size 1."""
        shift: Any = 0.0
        if offset:
            shift = (
                weighted_median(y, weight)
                if y.ndim == 1
                else np.array([weighted_median(column, weight) for column in y.T])
            )
        with np.errstate(over="ignore", invalid="ignore"):
            size = root_mean_square(y - shift, weight)
        if size == 0:
            return cls(shift, 1.0)
        if not SMALLEST_SIZE < size < 1.0 / SMALLEST_SIZE:
            raise ValueError(
                f"y must have differences between {SMALLEST_SIZE:g} and {1 / SMALLEST_SIZE:g}, "
                "whose squares float64 can hold, got targets from "
                f"{y.min():.3g} to {y.max():.3g}"
            )
        return cls(shift, 2.0 ** float(np.round(np.log2(size))))

    def targets(self, y: Array) -> Array:
        """z of y."""
        z = y - self.shift
        z /= self.scale
        return z

    def coefficients(self, gamma: Array) -> Array:
        """β of its counterpart for z."""
        return gamma * (self.scale * self.cost)

    def into(self, beta: Array) -> Array:
        """The inverse of :meth:`coefficients`."""
        return beta / (self.scale * self.cost)

    def values(self, g: Any) -> Any:
        """f's values, or residuals, of their counterparts for z."""
        return g * self.scale

    def values_into(self, f: Any) -> Any:
        """The inverse of :meth:`values`."""
        return f / self.scale

    def offset(self, h: Any) -> Any:
        """b of its counterpart for z, as it is rounded and predicts."""
        return self.shift + self.scale * h

    def offset_into(self, b: Any) -> Any:
        """The counterpart for z of an offset b."""
        return (b - self.shift) / self.scale

    def settled(self, h: Any) -> Any:
        """The h that the rounded b stands for: what predicts is what is certified."""
        return self.offset_into(self.offset(h))

    def objective(self, value: float) -> float:
        """A primal, dual or violation-times-β of y's problem from that of z."""
        return value * self.scale * self.scale * self.cost


def weighted_median(y: Array, weight: Array) -> float:
    """The smallest entry with at least half of the weight at or below it."""
    if weight.min() == weight.max():  # no need to sort
        middle = (len(y) - 1) // 2
        return float(np.partition(y, middle)[middle])
    order = np.argsort(y, kind="stable")
    total = np.cumsum(weight[order] / weight.max())
    return float(y[order[np.searchsorted(total, 0.5 * total[-1])]])


def root_mean_square(deviation: Array, weight: Array) -> float:
    """√ of the weighted mean square, over columns too, without overflow."""
    largest = float(np.abs(deviation).max())
    if not 0 < largest < np.inf:
        return largest
    share = weight / weight.max()
    squares = np.square(deviation / largest)
    if squares.ndim == 2:
        squares = squares.mean(axis=1)
    return largest * float(np.sqrt(share @ squares / share.sum()))


def spread(y: Array, weight: Array) -> float:
    """The weighted standard deviation of y, over columns too; 1 where y is constant.

    It is what C counts in with ``scale_C``.
    """
    share = weight / weight.max()
    low = y.min(axis=0)
    deviation = y - low  # a mean far from 0 must not round
    deviation = deviation - share @ deviation / share.sum()
    if float(np.ptp(y, axis=0).max()) == 0:
        return 1.0
    return root_mean_square(deviation, weight)
