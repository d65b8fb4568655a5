"""Points of the dual's domain: boxes, and sums that a free offset fixes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.terms import balance
from ..losses.group import GroupTerms
from ..losses.terms import DualTerms
from .onedim import project_onto_sum

Array = NDArray[np.float64]


def nearest_feasible(terms: DualTerms | GroupTerms, beta: Array, total: float | None) -> Array:
    """A point of the box next to β whose sum, of every level, is ``total``; None for any sum."""
    if isinstance(terms, GroupTerms):
        return _feasible_groups(terms, beta, total)
    if total is None:
        return np.clip(beta, terms.lower, terms.upper)
    return project_onto_sum(beta, terms.lower, terms.upper, total)


def balanced(terms: DualTerms, beta: Array, total: float) -> Array:
    """β with this sum, moved where the dual is smooth: that costs little, of second order.

    Where the smooth stretches around β do not have the room, it is the nearest point.
    """
    excess = float(beta.sum()) - total
    if excess == 0:
        return beta.copy()
    moved = np.empty(len(beta))
    share, widest = balance(terms.numbers, beta, excess, moved)
    if share >= 0.5:
        return project_onto_sum(beta, terms.lower, terms.upper, total)
    moved[widest] -= float(moved.sum()) - total  # what the division rounded
    return moved


def _feasible_groups(terms: GroupTerms, alpha: Array, total: float | None) -> Array:
    """Next to α, with zero rows and entries at bounds left alone.

    What the sum lacks is spread over the entries between their bounds, by how far they reach;
    where they do not have the room, others move too.
    """
    lower, upper = terms.outputs.lower, terms.outputs.upper
    clipped = np.clip(alpha, lower, upper)
    if total is None:
        return clipped
    held = ~np.any(clipped, axis=1, keepdims=True)
    inside = (clipped > lower) & (clipped < upper) & ~held
    falls, rises = terms.reaches()
    share = np.where(inside, falls + rises, 0.0)
    share /= np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)
    excess = clipped.sum(axis=0) - total
    moved = clipped - share * excess
    # once more, for the rounding of the first sum
    moved -= share * (moved.sum(axis=0) - total)
    for j in range(alpha.shape[1]):
        column = moved[:, j]
        within = bool(np.all((column >= lower[:, j]) & (column <= upper[:, j])))
        if within and (inside[:, j].any() or excess[j] == 0):
            continue
        low = np.where(held[:, 0], 0.0, lower[:, j])
        high = np.where(held[:, 0], 0.0, upper[:, j])
        moved[:, j] = project_onto_sum(clipped[:, j], low, high, total)
    return moved
