"""Solutions level by level, where a path cannot be followed.

Bounds are straight lines in τ: on the straight line between two feasible points every point is
feasible for its τ, and its duality gap tells how good it is. Levels are added in the middle of
pieces until the gaps there are small enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import PrecomputedGram
from ..losses import DualTerms
from .moving_box import MovingBox
from .path_problem import PathError, PathOptions, PathProblem
from .problem import Problem
from .result import SolverOptions, relative_gap

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

#: pieces to begin with, and at most
PIECES, MOST_PIECES = 16, 512
#: β this near to its bound, as a share of the box, is at it
AT_BOUND = 1e-9


@dataclass
class Found:
    """A solution at a level, and the gap in the middle of the piece that leads to it."""

    tau: float
    beta: Array
    offset: float
    status: Signs
    gap: float


def solve_one_by_one(
    problem: PathProblem,
    box: MovingBox,
    start: tuple[Array, float],
    first: float,
    last: float,
    options: PathOptions,
) -> Iterator[Found]:
    """Solutions from one level to another, in this order, without the first.

    ``box`` is the one of the path's records: values at bounds are its bounds.
    """
    gram = _gram(problem, options)
    beta, offset = start
    pieces = [(a, b, 0) for a, b in _pairs(np.linspace(first, last, PIECES + 1))][::-1]
    count = PIECES
    while pieces:
        left, right, depth = pieces.pop()
        found = _solve(problem, box, gram, right, options)
        middle = 0.5 * (left + right)
        fitted = gram.product(between := 0.5 * (beta + found.beta))
        b = 0.5 * (offset + found.offset)
        found.gap = relative_gap(*problem.objectives(between, fitted, b, middle))
        if found.gap > options.tol and count < MOST_PIECES and depth < 8:
            count += 1
            pieces += [(middle, right, depth + 1), (left, middle, depth + 1)]
            continue
        yield found
        beta, offset = found.beta, found.offset


def solve_level(problem: PathProblem, box: MovingBox, tau: float, options: PathOptions) -> Found:
    """The solution at one level."""
    return _solve(problem, box, _gram(problem, options), tau, options)


def _gram(problem: PathProblem, options: PathOptions) -> PrecomputedGram:
    n = problem.n
    if 8.0 * n * n > options.cache_size * 2**20:
        raise PathError(False)
    everything = np.arange(n)
    return PrecomputedGram(problem.products.block(everything, everything))


def _pairs(levels: Array) -> list[tuple[float, float]]:
    return list(zip(levels[:-1].tolist(), levels[1:].tolist(), strict=True))


def _solve(
    problem: PathProblem, box: MovingBox, gram: PrecomputedGram, tau: float, options: PathOptions
) -> Found:
    from . import solve  # the table of solvers knows this module's neighbours

    lower, upper = box.lower(tau), box.upper(tau)
    terms = DualTerms.build(problem.n, lower=np.minimum(lower, 0), upper=np.maximum(upper, 0))
    posed = Problem(gram, problem.y, terms, problem.offset)
    result = solve(posed, "auto", SolverOptions(tol=0.1 * options.tol))
    width = upper - lower
    status = np.zeros(problem.n, dtype=np.int8)
    status[result.beta >= upper - AT_BOUND * width] = 1
    status[result.beta <= lower + AT_BOUND * width] = -1
    beta = np.where(status > 0, upper, np.where(status < 0, lower, result.beta))
    return Found(tau, beta, result.intercept, status, np.inf)
