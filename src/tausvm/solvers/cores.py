"""The compiled cores for a set of variables: pairs, and coordinates as in the ER-SVM paper."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import CoordinateState
from .._core.pairs import PairState
from .problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Rows = NDArray[np.float32] | NDArray[np.float64]


class Core(Protocol):
    """What the compiled states have in common."""

    steps: int
    needed: int

    def run(
        self, rows: Rows, slots: Index, gather: Index | None, tol: float, max_steps: int
    ) -> int: ...


def core_on(
    problem: Problem, index: Index, beta: Array, gradient: Array, single_from: float = np.inf
) -> Core:
    """Pair steps on the variables ``index``, whose ``beta`` and ``gradient`` they change in place.

    ``single_from`` is as in :class:`~tausvm._core.pairs.PairState`.
    """
    terms, diagonal = _numbers(problem, index)
    return PairState(beta, gradient, terms, diagonal, single_from, problem.offset)


def coordinates_on(
    problem: Problem, index: Index, beta: Array, gradient: Array, working_set: int, neighbours: int
) -> CoordinateState:
    """Steps of one variable or of exact pairs, for problems without an offset."""
    return CoordinateState(beta, gradient, *_numbers(problem, index), working_set, neighbours)


def _numbers(problem: Problem, index: Index) -> tuple[Array, Array]:
    """The terms of some variables, and their part of K's diagonal."""
    terms = np.ascontiguousarray(problem.terms.numbers[:, index])
    return terms, np.ascontiguousarray(problem.operator.diagonal[index])
