"""The costs of a loss that grows linearly, one after the other on one matrix.

    β ← 0
    for C ascending
        β ← s·β with the best s in [0, C/C_before]      (variables at their bounds stay there)
        repeat
            a batch of steps                            (pairs with an offset, else coordinates)
        until the duality gap is small enough

A gap of some permille of what a constant costs is reached in a few steps a variable. Gap and
steps are those of the matrix as it is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.coordinates import HALVES, CoordinateState
from .._core.pairs import PairState
from .._core.single import SinglePairs
from ..losses.terms import DualTerms
from ..operators import HeldKernel
from ..solvers.onedim import best_offset, project_onto_sum

Array = NDArray[np.float64]

#: steps a variable that a fit may take
MOST_STEPS = 100.0
#: steps a variable between two looks at the gap
BATCH = 0.25
#: but not less than this share of the steps taken
GROWTH = 0.125
#: steps times variables between two looks at whether to stop: some hundredths of a second
BATCH_WORK = 50_000_000


@dataclass(frozen=True)
class Fit:
    """One fit of a path; ``gap`` and ``primal`` are absolute."""

    beta: Array
    intercept: float
    gap: float
    primal: float
    steps: int


@dataclass(frozen=True)
class PathProblem:
    """One problem of a path.

    It ends at a duality gap of ``allowed`` and of ``share`` times the primal objective. ``start``
    is a β that is good already, in place of that of the problem before.
    """

    C: float
    terms: DualTerms
    allowed: float
    share: float
    start: NDArray[np.floating] | None = None


def solve_path(
    gram: HeldKernel,
    y: Array,
    problems: Iterable[PathProblem],
    offset: bool,
    stop: Callable[[], bool],
) -> Iterator[Fit]:
    """Solve problems of ascending C, each from the one before.

    Parameters
    ----------
    gram : HeldKernel
    y : array (n,)
    problems : iterable of PathProblem
    offset : bool
    stop : callable
        Whether to leave at once.
    """
    steps = SingleSteps(gram, y) if offset and gram.rows.dtype == np.float32 else Steps(gram, y)
    last = 0.0
    for problem in problems:
        beta, gradient = steps.beta, steps.gradient
        if problem.start is not None:
            beta = _feasible(problem.start.astype(np.float64), problem.terms, offset)
            gradient = gram.product(beta) - y
        elif last > 0:
            fitted = gradient + y
            factor = _best_factor(beta, fitted, y, problem.terms, problem.C / last)
            beta, gradient = factor * beta, factor * fitted - y
        last = problem.C
        yield steps.solve(problem, beta, gradient, offset, stop)


class Steps:
    """Batches of pair or coordinate steps in double precision."""

    def __init__(self, gram: HeldKernel, y: Array) -> None:
        self.gram = gram
        self.y = y
        self.beta, self.gradient = np.zeros(len(y)), -y
        self.most = MOST_STEPS * len(y)

    def solve(
        self,
        problem: PathProblem,
        beta: Array,
        gradient: Array,
        offset: bool,
        stop: Callable[[], bool],
    ) -> Fit:
        """From β to the gap of the problem, or as far as the steps go."""
        self.beta, self.gradient = beta, gradient
        terms, diagonal = problem.terms, self.gram.diagonal
        slots = np.arange(len(beta))
        state: PairState | CoordinateState
        if offset:
            state = PairState(beta, gradient, terms.numbers, diagonal)
        else:
            state = CoordinateState(beta, gradient, terms.numbers, diagonal, HALVES)
        while True:
            b = _offset(beta, gradient, terms) if offset else 0.0
            gap, primal = _gap(beta, gradient, self.y, terms, b)
            enough = min(problem.allowed, problem.share * primal)
            if gap <= enough or state.steps >= self.most or stop():
                break
            batch = max(BATCH * len(beta), GROWTH * state.steps)
            if state.run(self.gram.rows, slots, None, 0.0, int(batch) + 1) == 0:
                break  # nothing is left to gain
        b = best_offset(terms, -gradient) if offset else 0.0
        gap, primal = _gap(beta, gradient, self.y, terms, b)
        return Fit(beta.copy(), b, gap, primal, state.steps)


class SingleSteps(Steps):
    """The same with an offset in single precision."""

    def __init__(self, gram: HeldKernel, y: Array) -> None:
        super().__init__(gram, y)
        self.core = SinglePairs(gram.rows, y)

    def solve(
        self,
        problem: PathProblem,
        beta: Array,
        gradient: Array,
        offset: bool,
        stop: Callable[[], bool],
    ) -> Fit:
        core, n = self.core, len(beta)
        core.begin(beta, gradient, problem.terms.numbers)
        some = min(max(n, BATCH_WORK // n), int(self.most))
        each = int(BATCH * n) + 1
        while not core.run(problem.allowed, problem.share, each, some):
            if core.steps >= self.most or stop():
                break
        self.beta, self.gradient = core.beta, core.gradient
        return Fit(self.beta, core.offset, core.gap, core.primal, core.steps)


def _feasible(beta: Array, terms: DualTerms, offset: bool) -> Array:
    """The feasible point next to β, which other rows and another C may have made."""
    if offset:
        return project_onto_sum(beta, terms.lower, terms.upper, 0.0)
    return np.clip(beta, terms.lower, terms.upper)


def _best_factor(beta: Array, fitted: Array, y: Array, terms: DualTerms, most: float) -> float:
    """The multiple of β up to ``most`` that is best for the dual."""
    norm = float(beta @ fitted)
    gain = float(beta @ y - terms.kink @ np.abs(beta))
    return most if norm <= 0 else min(max(gain / norm, 0.0), most)


def _offset(beta: Array, gradient: Array, terms: DualTerms) -> float:
    """What the variables inside a piece of the dual ask for, in their middle."""
    inside = (beta > terms.lower) & (beta < terms.upper) & ((beta != 0) | (terms.kink == 0))
    if not inside.any():
        return best_offset(terms, -gradient)
    return float(np.median(-gradient[inside] - np.sign(beta[inside]) * terms.kink[inside]))


def _gap(beta: Array, gradient: Array, y: Array, terms: DualTerms, b: float) -> tuple[float, float]:
    """The duality gap and the primal objective."""
    residual = -gradient - b
    bound = np.where(residual > 0, terms.upper, -terms.lower)
    losses = float(bound @ np.maximum(np.abs(residual) - terms.kink, 0.0))
    norm = float(beta @ (gradient + y))
    dual = float(beta @ y) - 0.5 * norm - float(terms.kink @ np.abs(beta))
    primal = 0.5 * norm + losses
    return primal - dual, primal
