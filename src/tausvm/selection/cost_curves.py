"""What a classifier's errors cost at every level τ: step functions of τ, exact between kinks.

A curve is an array (3, m): from which level on it holds, the share of the rows that are missed
positives there, and the share that are false alarms. The cost at τ is

    2(1 − τ)·missed(τ) + 2τ·alarms(τ),

so that it is the share of wrong decisions at τ = ½.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def cost_curve(
    values: Array, taus: Array, positive: NDArray[np.bool_], weight: Array, total: float
) -> Array:
    """The curve of some rows.

    Parameters
    ----------
    values : array (n, n_levels)
        Decision values, linear between two levels; positive ones decide for the positive class.
    taus : array (n_levels,)
        Ascending.
    positive : bool array (n,)
        The rows of the positive class.
    weight : array (n,)
    total : float
        What the weights of all rows sum to.
    """
    yes = values > 0
    row, place = np.nonzero(yes[:, 1:] != yes[:, :-1])
    left, right = values[row, place], values[row, place + 1]
    flip = taus[place] + np.diff(taus)[place] * left / (left - right)
    # a row that turns to the negative class becomes a missed positive, or no false alarm any more
    step = np.where(yes[row, place], 1.0, -1.0) * weight[row] / total
    order = np.argsort(flip, kind="stable")
    flip, step, of_positive = flip[order], step[order], positive[row][order]
    missed = float(weight[positive & ~yes[:, 0]].sum()) / total
    alarms = float(weight[~positive & yes[:, 0]].sum()) / total
    return np.stack(
        [
            np.concatenate([[0.0], flip]),
            missed + np.concatenate([[0.0], np.cumsum(np.where(of_positive, step, 0.0))]),
            alarms - np.concatenate([[0.0], np.cumsum(np.where(of_positive, 0.0, step))]),
        ]
    )


def joined(curves: Sequence[Array]) -> Array:
    """The sum of several curves, such as those of parts of the rows."""
    begin = np.concatenate([curve[0, 1:] for curve in curves])
    steps = np.concatenate([np.diff(curve[1:], axis=1) for curve in curves], axis=1)
    order = np.argsort(begin, kind="stable")
    first = np.sum([curve[1:, :1] for curve in curves], axis=0)
    sums = np.concatenate([first, first + np.cumsum(steps[:, order], axis=1)], axis=1)
    return np.vstack([np.concatenate([[0.0], begin[order]]), sums])


def cost_at(curve: Array, tau: float) -> float:
    """The cost at one level; 0 at the ends, where one of the errors costs nothing and is made."""
    if tau <= 0 or tau >= 1:
        return 0.0
    place = int(np.searchsorted(curve[0], tau, side="right")) - 1
    return float(2.0 * (1.0 - tau) * curve[1, place] + 2.0 * tau * curve[2, place])


def integrated_cost(curve: Array) -> float:
    """The cost integrated over all levels.

    Where decisions flip once, at the probability P of the positive class, it is the Brier score:
    the integral of 2(1 − τ) from P to 1 is (1 − P)², that of 2τ from 0 to P is P².
    """
    ends = np.append(curve[0], 1.0)
    squares = np.diff(np.square(ends))
    return float(curve[1] @ (2.0 * np.diff(ends) - squares) + curve[2] @ squares)
