"""Calibrated levels: intervals widened until rows that were not fitted lie in them.

Levels that follow the training rows closely hold too few of new ones. With e the distance by which
a row that was not fitted lies outside the interval between the levels τ and 1 − τ,

    e = max(f_τ(x) − y, y − f_{1−τ}(x)),    s = the weighted quantile of e at 1 − 2τ,

f_τ − s and f_{1−τ} + s hold the share 1 − 2τ of these rows. A level without its counterpart is
moved by the quantile of its own residuals. Nothing is moved inwards, and no level by less than one
nearer to the middle: shifts then rise with τ, and levels in order stay so. The median stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import check_random_state

from ..estimators.levels import SAME_LEVEL

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: how far outside rows may lie: a function of their e, their weights and the share to be inside
Rule = Callable[[Array, Array, float], float]

#: what ``calibrate`` may be beside None
WAYS = ("oof", "split")


@dataclass(frozen=True)
class Interval:
    """Rows lie inside between two levels, or on the inner side of one; by their places."""

    lower: int | None
    upper: int | None
    share: float

    def outside(self, y: Array, values: Array) -> Array:
        """How far targets lie outside, negative inside; ``values`` is (n, n_levels)."""
        sides = []
        if self.lower is not None:
            sides.append(values[:, self.lower] - y)
        if self.upper is not None:
            sides.append(y - values[:, self.upper])
        return np.max(sides, axis=0)


def intervals(taus: Array) -> Iterator[Interval]:
    """Every level but the median, with its counterpart 1 − τ where there is one; inner first."""
    places = np.argsort(np.abs(taus - 0.5), kind="stable")
    done: set[int] = set()
    for k in places.tolist():
        if k in done or abs(taus[k] - 0.5) <= SAME_LEVEL:
            continue
        others = np.flatnonzero(np.abs(taus + taus[k] - 1.0) <= SAME_LEVEL)
        other = next((int(j) for j in others if int(j) not in done), None)
        lower, upper = (k, other) if taus[k] < 0.5 else (other, k)
        done.update(j for j in (lower, upper) if j is not None)
        outer = abs(float(taus[k]) - 0.5)
        yield Interval(lower, upper, 0.5 + outer if other is None else 2.0 * outer)


def shifts(taus: Array, y: Array, values: Array, weight: Array, rule: Rule) -> Array:
    """What to add to every level, from targets and values, (n, n_levels), of rows not fitted."""
    shift, least = np.zeros(len(taus)), {-1: 0.0, 1: 0.0}
    for interval in intervals(taus):
        width = rule(interval.outside(y, values), weight, interval.share)
        for side, place in ((-1, interval.lower), (1, interval.upper)):
            if place is not None:
                least[side] = max(least[side], width)
                # equal levels, fitted differently, move together
                shift[np.abs(taus - taus[place]) <= SAME_LEVEL] = side * least[side]
    return shift


def plain_quantile(outside: Array, weight: Array, share: float) -> float:
    """The least number that a share of the rows, by weight, does not exceed."""
    return _smallest(outside, weight, share * float(weight.sum()))


def conformal_quantile(outside: Array, weight: Array, share: float) -> float:
    """The same with the row to come among them, as if it lay outside of all and weighed the most.

    For equal weights it is the ⌈(n + 1)·share⌉-th smallest.
    """
    needed = share * float(weight.sum() + weight.max())
    if needed > float(weight.sum()) * (1.0 + 1e-12):
        rows = int(np.ceil(share / (1.0 - share) - 1e-9))
        raise ValueError(
            f"calibrate needs {rows} rows of equal weight held out for intervals that hold "
            f"{share:.6g}, got {len(weight)}: give more rows, levels nearer to the middle, or "
            "calibrate=None"
        )
    return _smallest(outside, weight, needed)


def _smallest(outside: Array, weight: Array, needed: float) -> float:
    """The smallest of them up to which the weights sum to what is needed, but for rounding."""
    order = np.argsort(outside, kind="stable")
    sums = np.cumsum(weight[order])
    place = int(np.searchsorted(sums, needed - 1e-12 * sums[-1]))
    return float(outside[order[min(place, len(order) - 1)]])


def held_out(weight: Array, share: float, groups: Any, random_state: Any) -> Index:
    """Rows to calibrate on: a share of those of positive weight, drawn at random, groups whole."""
    rows = np.flatnonzero(weight > 0)
    state = check_random_state(0 if random_state is None else random_state)
    # a stream of its own: the shuffle of the folds starts from the same seed
    seed = int(state.randint(2**31 - 1))
    if groups is not None:
        splitter = GroupShuffleSplit(1, test_size=share, random_state=seed)
        _, taken = next(splitter.split(rows, groups=np.asarray(groups)[rows]))
        return np.sort(rows[taken])
    taken = np.random.default_rng(seed).permutation(len(rows))[: int(np.ceil(share * len(rows)))]
    return np.sort(rows[taken])
