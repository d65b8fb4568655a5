"""The compiled core for a set of variables: pairs with an offset, coordinates without."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import NEAREST, CoordinateState
from .._core.pairs import PairState
from .problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[np.float32] | NDArray[np.float64]


class Core(Protocol):
    """What the compiled states have in common."""

    steps: int
    needed: int
    best_gain: float

    def run(
        self, rows: Rows, slots: Index, gather: Index | None, tol: float, max_steps: int
    ) -> int: ...


def core_on(
    problem: Problem,
    index: Index,
    beta: Array,
    gradient: Array,
    working_set: int = NEAREST,
    neighbours: int = 15,
    single_from: float = np.inf,
) -> Core:
    """A core on the variables ``index``, whose ``beta`` and ``gradient`` it changes in place.

    ``single_from`` is as in :class:`~tausvm._core.pairs.PairState`.
    """
    terms = np.ascontiguousarray(problem.terms.numbers[:, index])
    diagonal = np.ascontiguousarray(problem.operator.diagonal[index])
    if problem.offset:
        return PairState(beta, gradient, terms, diagonal, single_from)
    return CoordinateState(beta, gradient, terms, diagonal, working_set, neighbours)
