"""A family of problems on one matrix: what is asked of them, and what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._core.parts import Part
from ..._core.validation import Judged, Validation
from ...losses.terms import LOWER, RIDGE_MINUS, RIDGE_PLUS, UPPER, DualTerms
from ...operators import KernelOperator
from ..monitor import OutOfTime
from ..onedim import best_offset
from ..problem import Problem

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]
#: the number of a loss and of a C
Place = tuple[int, int]
#: from rows of β to values at the rows that judge, (fits, rows)
Predictor = Callable[[Floats], Floats]


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
    #: landmarks of the columns' preconditioner, as a share of the samples: with twice as many a
    #: selection on 400 and 1,600 rows takes up to 35 % longer, with half of them up to 20 %
    landmark_share: float = 0.06
    #: and their least and largest number
    landmarks: tuple[int, int] = (30, 300)
    #: up to this order Cholesky factors come at once, without landmarks before them
    factor_first: int = 150
    #: and up to this order they take the place of landmarks where those are not enough
    factor_order: int = 3000
    #: what a factor costs, in steps a sample: 8 ms at 1,280 samples, where a step of all columns
    #: takes 0.2 to 0.4; with two fifths of it selections on 400 to 1,600 rows take up to 45 % more
    factor_price: float = 1 / 25
    #: steps between two looks at what is cheaper, and at which problems are worth going on with
    probe: int = 6
    #: one factor serves ridges of this ratio: with 3 the problems of 200 to 600 rows take a tenth
    #: longer, with 30 as long
    factor_ratio: float = 12.0
    #: bytes of factors held at a time
    factor_bytes: int = 32 << 20
    #: up to this many samples all problems are solved to rounding in float64, by direct solves: ten
    #: microseconds each where losses are squared, forty where they grow linearly
    few: int = 50
    #: what the shared methods leave unsolved is solved one by one
    finish: bool = True
    #: losses that grow linearly are solved directly up to this many samples: 2 to 340 ms at 1,150,
    #: where the interior-point method takes 100 to 190
    faces_order: int = 1200
    #: and after so many steps a variable: with 20 and with 5 of them a selection on 170 to 370 rows
    #: takes 1 to 6 % longer and 2 to 5 % less time
    faces_after: float = 10.0
    #: how often a variable may become free, or be fixed, on the way: mostly it is less than once
    faces: float = 5.0
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
    operator : KernelOperator or None
        K; None for a part of a matrix that :func:`solve_parts` is given.
    y : array (n,)
    terms : sequence of DualTerms
        One a loss, those of C = 1.
    costs : array
        Values of C, ascending.
    offset : bool
        Whether b is free.
    constants : array (losses,)
        What the best constant costs at C = 1; computed unless it is known.
    rows : int array or None
        Of a part: where the samples lie in the matrix, and after them the rows that judge.
    judged : Judged or None
        Rows by which solutions are judged.
    """

    operator: KernelOperator | None
    y: Array
    terms: Sequence[DualTerms]
    costs: Array
    offset: bool = True
    constants: Array = field(default_factory=lambda: np.empty(0))
    rows: Index | None = None
    judged: Judged | None = None

    def __post_init__(self) -> None:
        self.costs = np.ascontiguousarray(self.costs, dtype=np.float64)
        if len(self.constants) != len(self.terms):
            self.constants = np.array([self.constant_loss(terms) for terms in self.terms])

    @cached_property
    def part(self) -> Part:
        """The same as compiled code takes it."""
        numbers = np.array([terms.numbers for terms in self.terms])
        y = np.ascontiguousarray(self.y, dtype=np.float64)
        constants = np.ascontiguousarray(self.constants, dtype=np.float64)
        return Part(y, numbers, constants, self.offset, self.weight, self.rows, self.judged)

    def on(self, operator: KernelOperator | None, costs: Array) -> Family:
        """The same losses and targets on another matrix, for other C."""
        _ = self.weight, self.linear, self.part  # which the copy then knows
        other = copy(self)
        other.operator, other.costs = operator, np.ascontiguousarray(costs, dtype=np.float64)
        other.__dict__.pop("limits", None)
        return other

    @property
    def alone(self) -> Family:
        """The family without those that judge it, and with a matrix of its own."""
        if self.rows is None and self.judged is None:
            return self
        return replace(self, rows=None, judged=None)

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

    def note(self, place: Place, beta: Floats, intercept: float, gap: float, primal: float) -> None:
        """Keep a solution."""
        self.beta[place], self.intercept[place] = beta, intercept
        self.gap[place], self.primal[place] = gap, primal

    @property
    def solved(self) -> Mask:
        """Where there is a solution."""
        return np.isfinite(self.intercept)


@dataclass
class PartResults(ManyResult):
    """Where the problems of several parts ended: arrays with a row for each part.

    Attributes
    ----------
    begun : bool array (parts, losses, costs)
        Where ``beta`` was a start, before it was solved.
    losses : array (parts, losses, costs, judges) or None
        Of the rows that judge, 0 beyond those of a part; NaN where there is no solution.
    sizes : sequence of int
        Samples of the parts: β of a smaller one ends with zeros.
    """

    begun: Mask
    losses: Array | None
    sizes: Sequence[int]

    @classmethod
    def of(cls, families: Sequence[Family], starts: Starts | None = None) -> PartResults:
        """Nothing yet, but where to start."""
        shape = len(families), *families[0].shape
        sizes = [len(family.y) for family in families]
        judges = [0 if family.judged is None else family.judged.m for family in families]
        losses = np.full((*shape, max(judges)), np.nan) if max(judges) else None
        if losses is not None:
            for k, count in enumerate(judges):
                losses[k, :, :, count:] = 0.0
        return cls(
            np.zeros((*shape, max(sizes))) if starts is None else starts.beta.copy(),
            np.full(shape, np.nan),
            np.full(shape, np.inf),
            np.full(shape, np.inf),
            np.zeros(shape, dtype=bool),
            np.zeros(shape, dtype=bool),
            np.zeros(shape, dtype=bool) if starts is None else starts.known,
            losses,
            sizes,
        )

    def part(self, k: int) -> ManyResult:
        """The results of one part, in the same memory."""
        arrays = self.intercept, self.gap, self.primal, self.reached, self.failed
        return ManyResult(self.beta[k, :, :, : self.sizes[k]], *(array[k] for array in arrays))

    def row(self, k: int) -> PartResults:
        """The results of one part as those of the only one, in the same memory."""
        one = slice(k, k + 1)
        return PartResults(
            self.beta[one],
            self.intercept[one],
            self.gap[one],
            self.primal[one],
            self.reached[one],
            self.failed[one],
            self.begun[one],
            None if self.losses is None else self.losses[one],
            self.sizes[one],
        )

    def judge(self, families: Sequence[Family], goal: Goal) -> None:
        """Set what has reached the goal."""
        limits = np.array([family.limits for family in families])
        self.reached |= np.isfinite(self.gap) & goal.reached(self.gap, self.primal, limits)


@dataclass(frozen=True)
class Starts:
    """Where problems of parts begin.

    Attributes
    ----------
    beta : array (parts, losses, costs, n)
        n is that of the largest part.
    known : bool array (parts, losses, costs)
        Which of them are.
    """

    beta: Array
    known: Mask


@dataclass(frozen=True)
class Asked:
    """What is asked of problems.

    Attributes
    ----------
    costs : array
    wanted : bool array (losses, costs)
    goal : Goal
    stop : Stop
    errors : float
        Walks along C end where they overfit by so many standard errors; infinite for never.
    """

    costs: Array
    wanted: Mask
    goal: Goal
    stop: Stop
    errors: float = np.inf


@dataclass(frozen=True)
class Work:
    """The problems of one part for solvers in Python: what is asked, and what is known so far."""

    family: Family
    asked: Asked
    settings: Many
    result: ManyResult
    begun: Mask
    validation: Validation | None
    predict: Predictor | None

    @property
    def operator(self) -> KernelOperator:
        assert self.family.operator is not None
        return self.family.operator

    def limit(self, place: Place, primal: float) -> float:
        """The gap at which a problem ends."""
        constant, goal = float(self.family.limits[place]), self.asked.goal
        return min(goal.gap * constant, goal.share * primal)

    def ended(self, place: Place, beta: Floats, intercept: float) -> None:
        """Have a problem that is solved judged by the validation rows."""
        if self.validation is not None and self.predict is not None:
            values = np.asarray(self.predict(beta[None]), dtype=np.float64) + intercept
            self.validation.ended(([place[0]], [place[1]]), values)

    def hopeless(self, place: Place) -> bool:
        """Whether a problem is not worth it."""
        if self.validation is None:
            return False
        return bool(self.validation.hopeless(([place[0]], [place[1]]))[0])
