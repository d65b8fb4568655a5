"""Losses that grow linearly, without an offset: along C, each problem from the one before.

    β ← 0
    for C ascending
        β ← s·β with the best s in [0, C/C_before]      (variables at their bounds stay there)
        repeat
            a batch of steps on coordinates
        until the duality gap is small enough

A gap of some permille of what a constant costs is reached in a few steps a variable. With an
offset the walk is :mod:`tausvm._core.single`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._core.coordinates import HALVES, CoordinateState
from ...losses.terms import DualTerms
from .family import Work

Array = NDArray[np.float64]


def solve_along_costs(work: Work) -> None:
    """Solve the problems wanted, as far as the steps go."""
    family, settings, result, stop = work.family, work.settings, work.result, work.asked.stop
    y, operator, n = family.y, work.operator, len(family.y)
    slots, most = np.arange(n), settings.steps * n
    for loss in range(family.shape[0]):
        beta, gradient, last = np.zeros(n), -y, 0.0
        for k in np.flatnonzero(work.asked.wanted[loss]).tolist():
            place, C = (loss, k), float(family.costs[k])
            if work.hopeless(place):
                break
            terms = family.terms_at(place)
            if work.begun[place]:
                beta = np.clip(result.beta[place], terms.lower, terms.upper)
                gradient = operator.product(beta) - y
            elif last > 0:
                fitted = gradient + y
                factor = _best_factor(beta, fitted, y, terms, C / last)
                beta, gradient = factor * beta, factor * fitted - y
            last = C
            state = CoordinateState(beta, gradient, terms.numbers, operator.diagonal, HALVES)
            while True:
                gap, primal = _gap(beta, gradient, y, terms)
                if gap <= work.limit(place, primal) or state.steps >= most or stop():
                    break
                batch = max(settings.batch * n, state.steps / 8)
                if state.run(operator.rows, slots, None, 0.0, int(batch) + 1) == 0:
                    break  # nothing is left to gain
            if stop():
                return
            result.note(place, beta, 0.0, gap, primal)
            work.ended(place, beta, 0.0)


def _best_factor(beta: Array, fitted: Array, y: Array, terms: DualTerms, most: float) -> float:
    """The multiple of β up to ``most`` that is best for the dual."""
    norm = float(beta @ fitted)
    gain = float(beta @ y - terms.kink @ np.abs(beta))
    return most if norm <= 0 else min(max(gain / norm, 0.0), most)


def _gap(beta: Array, gradient: Array, y: Array, terms: DualTerms) -> tuple[float, float]:
    """The duality gap and the primal objective without an offset."""
    norm = float(beta @ (gradient + y))
    dual = float(beta @ y) - 0.5 * norm - float(terms.kink @ np.abs(beta))
    primal = 0.5 * norm + float(terms.conjugate(-gradient).sum())
    return primal - dual, primal
