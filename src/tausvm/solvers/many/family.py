"""A family of problems on one matrix: what is asked of them, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._core.validation import Validation
from ...losses.terms import LOWER, RIDGE_MINUS, RIDGE_PLUS, UPPER, DualTerms
from ...operators import KernelOperator
from ..monitor import OutOfTime
from ..onedim import best_offset
from ..problem import Problem

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]
#: numbers of losses, and as many of C
Problems = tuple[Index | Sequence[int], Index | Sequence[int]]
#: the number of a loss and of a C
Place = tuple[int, int]


@dataclass(frozen=True)
class Goal:
    """When a problem is solved well enough: at a duality gap of both shares."""

    #: of what the best constant costs: where data are noisy, objectives of all C are of that size
    gap: float = 1e-3
    #: of the primal objective: where data have little noise, constants cost much more than that
    share: float = 1e-2

    def reached(self, gap: Floats, primal: Floats, constant: Floats) -> Mask:
        """Whether an absolute gap is small enough; that of a β in float32 is its own by a tenth."""
        return np.asarray(gap <= 1.1 * np.minimum(self.gap * constant, self.share * primal))


@dataclass(frozen=True)
class Many:
    """What :func:`solve_many` spends on problems."""

    #: steps a variable that a problem along C may take. Data without noise take them all at the
    #: largest C of a grid; what is left is then solved directly
    steps: float = 100.0
    #: steps a variable between two looks at the gap, which cost as much as a tenth of them
    batch: float = 0.25
    #: steps times variables, or multiplications of columns, between two looks at whether to stop:
    #: some hundredths of a second
    work: int = 50_000_000
    #: conjugate gradient steps that a squared problem may take
    iterations: int = 300
    #: landmarks of the columns' preconditioner, as a share of the samples
    landmark_share: float = 0.15
    #: and their least and largest number
    landmarks: tuple[int, int] = (30, 300)
    #: up to this order a Cholesky factor takes the place of landmarks where those are not enough
    factor_order: int = 3000
    #: steps with landmarks before that at order 1000, in proportion to the order elsewhere
    factor_after: int = 12
    #: but not less than this, however small the matrix
    factor_after_least: int = 8
    #: steps between two looks at which problems are worth going on with, where there are no factors
    look_after: int = 20
    #: one factor serves ridges of this ratio: with 3 the problems of 200 to 600 rows take a tenth
    #: longer, with 30 as long
    factor_ratio: float = 12.0
    #: bytes of factors held at a time
    factor_bytes: int = 32 << 20
    #: up to this many samples all problems are solved to rounding, by steps in float64: a third of
    #: a second for 1500 problems
    few: int = 50
    #: steps a variable that this may take: twenty thousand a millisecond
    few_steps: float = 500.0
    #: what the shared methods leave unsolved is solved one by one
    finish: bool = True
    #: goals below this are for the solvers, which work in float64
    tight: float = 1e-5
    #: whether problems share their work at all
    shared: bool = True
    #: the solver of what is solved one by one
    solver: str = "auto"
    #: blocks or systems that one of these may take: grids have corners where no solver gets far
    max_iter: int = 200


@dataclass
class Stop:
    """Tells work to stop: on demand, or when its time is up.

    Attributes
    ----------
    clock : callable
        Seconds.
    deadline : float
        When time is up, as the clock counts.
    """

    clock: Callable[[], float] = time.perf_counter
    deadline: float = np.inf
    raised: bool = False

    def __call__(self) -> bool:
        return self.raised or self.clock() >= self.deadline

    @property
    def left(self) -> float | None:
        """Seconds until then; None without a limit."""
        return max(self.deadline - self.clock(), 0.0) if np.isfinite(self.deadline) else None

    def pause(self) -> None:
        """A moment at which long work is ended."""
        if self():
            raise OutOfTime


@dataclass
class Family:
    """The problems of some losses and some C on one matrix.

    Attributes
    ----------
    operator : KernelOperator
        K.
    y : array (n,)
    terms : sequence of DualTerms
        One a loss, those of C = 1.
    costs : array
        Values of C, ascending.
    offset : bool
        Whether b is free.
    constants : array (losses,)
        What the best constant costs at C = 1; computed unless it is known.
    """

    operator: KernelOperator
    y: Array
    terms: Sequence[DualTerms]
    costs: Array
    offset: bool = True
    constants: Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        self.costs = np.ascontiguousarray(self.costs, dtype=np.float64)
        if len(self.constants) != len(self.terms):
            self.constants = np.array([self.constant_loss(terms) for terms in self.terms])

    def on(self, operator: KernelOperator, costs: Array) -> Family:
        """The same losses and targets on another matrix, for other C."""
        _ = self.weight, self.linear  # which the copy then knows
        other = copy(self)
        other.operator, other.costs = operator, np.ascontiguousarray(costs, dtype=np.float64)
        other.__dict__.pop("limits", None)
        return other

    @property
    def shape(self) -> tuple[int, int]:
        """How many losses and how many C."""
        return len(self.terms), len(self.costs)

    def constant_loss(self, terms: DualTerms) -> float:
        """What the best constant costs; where that is nothing, what f = 0 costs."""
        loss = float(terms.conjugate(self.y - best_offset(terms, self.y)).sum())
        return loss if loss > 0 else float(terms.conjugate(self.y).sum())

    def terms_at(self, place: Place) -> DualTerms:
        """The terms of a loss at a C."""
        loss, k = place
        numbers = np.array(self.terms[loss].numbers)
        numbers[[LOWER, UPPER]] *= self.costs[k]
        numbers[[RIDGE_MINUS, RIDGE_PLUS]] /= self.costs[k]
        return DualTerms(numbers)

    def problem(self, place: Place) -> Problem:
        """One of the problems."""
        return Problem(self.operator, self.y, self.terms_at(place), self.offset)

    @cached_property
    def limits(self) -> Array:
        """What the best constant costs, (losses, costs)."""
        return self.constants[:, None] * self.costs

    @cached_property
    def weight(self) -> Array | None:
        """What the samples weigh, where the losses are squared and differ by factors alone.

        The ridges of a sample are then those of the loss divided by its weight; the largest is 1.
        """
        if any(np.isfinite(terms.numbers[[LOWER, UPPER]]).any() for terms in self.terms):
            return None
        if any(terms.kink.any() for terms in self.terms):
            return None
        ridges = np.array([terms.numbers[[RIDGE_MINUS, RIDGE_PLUS]] for terms in self.terms])
        weights = ridges.min(axis=2, keepdims=True) / ridges
        alike = np.abs(weights - weights[:1, :1]) <= 1e-9 * weights
        return weights[0, 0] if alike.all() else None

    @cached_property
    def linear(self) -> bool:
        """Whether the losses grow linearly."""
        ridges = (terms.numbers[[RIDGE_MINUS, RIDGE_PLUS]] for terms in self.terms)
        return not any(ridge.any() for ridge in ridges)


@dataclass
class ManyResult:
    """Where the problems ended, as arrays of losses and costs.

    Attributes
    ----------
    beta : array (losses, costs, n)
    intercept : array
        NaN where there is no solution.
    gap, primal : arrays
        Absolute, by the matrix as it is held; infinite without a solution.
    reached : bool array
        Whether the goal was.
    failed : bool array
        Where a solver found no solution.
    """

    beta: Array
    intercept: Array
    gap: Array
    primal: Array
    reached: Mask
    failed: Mask

    @classmethod
    def of(cls, family: Family) -> ManyResult:
        """Nothing yet."""
        shape = family.shape
        return cls(
            np.zeros((*shape, len(family.y))),
            np.full(shape, np.nan),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.zeros(shape, dtype=bool),
            np.zeros(shape, dtype=bool),
        )

    def note(self, place: Place, beta: Floats, intercept: float, gap: float, primal: float) -> None:
        """Keep a solution."""
        self.beta[place], self.intercept[place] = beta, intercept
        self.gap[place], self.primal[place] = gap, primal

    def judge(self, family: Family, goal: Goal) -> None:
        """Set what has reached the goal."""
        self.reached |= np.isfinite(self.gap) & goal.reached(self.gap, self.primal, family.limits)

    @property
    def solved(self) -> Mask:
        """Where there is a solution."""
        return np.isfinite(self.intercept)


@dataclass(frozen=True)
class Work:
    """A call of :func:`solve_many`: what is asked for, and what is known so far."""

    family: Family
    goal: Goal
    wanted: Mask
    starts: Array | None
    validation: Validation | None
    stop: Stop
    settings: Many
    result: ManyResult

    def limit(self, place: Place, primal: float) -> float:
        """The gap at which a problem ends."""
        constant = float(self.family.limits[place])
        return min(self.goal.gap * constant, self.goal.share * primal)

    def ended(self, problems: Problems, beta: Floats, intercept: Array) -> None:
        """Have problems that are solved judged by the validation rows."""
        if self.validation is not None:
            self.validation.ended(problems, beta, intercept)

    def hopeless(self, problems: Problems) -> Mask:
        """Which problems are not worth it."""
        if self.validation is None:
            return np.zeros(len(problems[0]), dtype=bool)
        return np.asarray(self.validation.hopeless(problems))
