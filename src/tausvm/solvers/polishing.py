"""Newton steps on the free variables: direct solves where coordinates crawl.

On the set F of variables strictly inside a smooth piece of the dual, the optimality
conditions are linear,

    (K_FF + R_FF) d + b 1 = −(gradient + g′(β))_F,   1ᵀd = 0 with an offset,

and one Cholesky factorisation solves them, once it is known which variables are free: that is
what the interior-point method finds, and Newton steps then end at the exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms
from .barrier import Barrier, interior_point
from .cores import core_on
from .linalg import LIFT, LinAlgError, cholesky_solve, lifted_cholesky
from .monitor import Monitor
from .onedim import project_onto_sum
from .problem import Problem
from .working import Derivatives

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: bytes that a direct solve takes for every pair of its variables: their matrix in float64, that of
#: the free ones, and a factor of each
BYTES_A_PAIR = 32.0


@dataclass(frozen=True)
class Polishing:
    """The numbers of direct solves: an interior-point solve, core steps, Newton steps."""

    barrier: Barrier = field(default_factory=Barrier)
    #: core steps per variable after the interior-point solve: they settle who is at a bound
    settling_steps: int = 4
    #: Newton steps after those, while variables still reach a bound or a kink
    newton_steps: int = 4
    #: the largest ridge, as a share of the diagonal, for systems of the free variables
    singular: float = 1e-4
    #: the share of the gap that a solve of the whole problem may leave and still count as progress
    worth: float = 0.5


class Gain(NamedTuple):
    """What a step brought: how much the dual fell, the relative gaps before and after, and what
    share of the gap a worthwhile step leaves at most."""

    decrease: float
    gap_before: float
    gap_after: float
    worth: float

    @property
    def some(self) -> bool:
        return self.decrease > 0 or self.gap_after < self.gap_before

    @property
    def worthwhile(self) -> bool:
        """Whether another such step may be: one that solves all there is, from where it ended."""
        return self.gap_after <= self.worth * self.gap_before


def newton_step(
    problem: Problem, beta: Array, gradient: Array, free: Index, singular: float
) -> float:
    """A Newton step on the free set; changes β and gradient, returns the dual's decrease.

    The target is kept inside the pieces, and the exact minimum on the way to it is taken.
    """
    if len(free) == 0:
        return 0.0
    terms = problem.terms.take(free)
    start = beta[free]
    plus = np.where(start == 0, -gradient[free] > 0, start > 0)
    ridge = np.where(plus, terms.ridge_plus, terms.ridge_minus)
    residual = -(gradient[free] + np.where(plus, terms.kink, -terms.kink) + ridge * start)
    low = np.where((terms.kink > 0) & plus, 0.0, terms.lower)
    high = np.where((terms.kink > 0) & ~plus, 0.0, terms.upper)
    try:
        direction = _solve_free(problem, free, ridge, residual, singular)
    except LinAlgError:
        return 0.0
    target = start + direction
    if problem.offset:
        target = project_onto_sum(target, low, high, float(start.sum()))
    else:
        target = np.clip(target, low, high)
    return move_towards(problem, beta, gradient, free, target)


def interior_step(
    problem: Problem,
    beta: Array,
    gradient: Array,
    work: Index,
    monitor: Monitor,
    settings: Polishing,
) -> Gain:
    """Solve the dual restricted to ``work`` by the interior-point method, then polish.

    Where the polished point has a gap above the tolerance and the method's own a smaller one, that
    is taken. Changes β and gradient.
    """
    interrupted = monitor.out_of_time
    K = problem.operator.block(work, work)
    start = beta[work]
    # what the others leave of y: nothing is rounded where there are none
    linear = problem.y[work] if len(work) == problem.n else K @ start - gradient[work]
    terms = problem.terms.take(work)
    total = float(start.sum()) if problem.offset else None
    before = problem.gap_from(beta, gradient)
    found = interior_point(K, linear, terms, total, interrupted, settings.barrier)
    target = found.snapped
    if total is not None:
        target = _restore_sum(terms, target, total)
    _settle(problem, work, K, linear, target, settings.settling_steps)
    decrease = move_towards(problem, beta, gradient, work, target)
    inside = Derivatives.at(problem, beta, gradient).inside
    for _ in range(settings.newton_steps):
        if interrupted():
            break
        free = work[inside[work]]
        decrease += newton_step(problem, beta, gradient, free, settings.singular)
        pattern, inside = inside, Derivatives.at(problem, beta, gradient).inside
        if np.array_equal(pattern, inside):
            break
    after = problem.gap_from(beta, gradient)
    if after > monitor.options.tol:
        after = _take_central(problem, beta, gradient, work, found.central, total, after)
    return Gain(decrease, before, after, settings.worth)


def _take_central(
    problem: Problem,
    beta: Array,
    gradient: Array,
    work: Index,
    central: Array,
    total: float | None,
    gap: float,
) -> float:
    """Go to the interior-point method's own solution if its gap is the smaller one; the gap."""
    terms = problem.terms.take(work)
    target = np.clip(central, terms.lower, terms.upper)
    if total is not None:
        target = project_onto_sum(target, terms.lower, terms.upper, total)
    candidate = beta.copy()
    candidate[work] = target
    there = problem.operator.product(candidate) - problem.y
    gap_there = problem.gap_from(candidate, there)
    if gap_there < gap:
        beta[:], gradient[:] = candidate, there
    return min(gap, gap_there)


def _settle(
    problem: Problem, work: Index, K: Array, linear: Array, beta: Array, steps: int
) -> None:
    """Core steps on the interior-point solution, in place.

    They put a variable on the right side of a bound or a kink where the interior point
    could not tell; Newton's step then has the right pattern.
    """
    gradient = K @ beta - linear
    core = core_on(problem, work, beta, gradient)
    core.run(K, np.arange(len(work)), None, 0.0, steps * len(work))


def _restore_sum(terms: DualTerms, target: Array, total: float) -> Array:
    """Give Σβ its value back by the variables inside a piece, where they can."""
    inside = (target > terms.lower) & (target < terms.upper)
    inside &= (target != 0) | (terms.kink == 0)
    if inside.any():
        low = np.where(inside, np.where((terms.kink > 0) & (target > 0), 0.0, terms.lower), target)
        high = np.where(inside, np.where((terms.kink > 0) & (target < 0), 0.0, terms.upper), target)
        restored = project_onto_sum(target, low, high, total)
        if abs(restored.sum() - total) <= 1e-12 * np.abs(restored).sum():
            return restored
    return project_onto_sum(target, terms.lower, terms.upper, total)


def move_towards(
    problem: Problem, beta: Array, gradient: Array, index: Index, target: Array
) -> float:
    """Go to the dual's minimum on the segment from β to ``target`` (on ``index``).

    The gradient changes by an exact product, so that large steps do not carry the rounding
    of the rows held. Returns the decrease.
    """
    start = beta[index]
    step = target - start
    moved = np.zeros(problem.n)
    moved[index] = step
    change = problem.operator.product(moved)
    length, decrease = _line_minimum(problem, index, start, step, gradient[index], change[index])
    if not decrease > 0:
        return 0.0
    terms = problem.terms
    at = target if length == 1 else start + length * step
    beta[index] = np.clip(at, terms.lower[index], terms.upper[index])
    gradient += length * change
    return decrease


def _solve_free(
    problem: Problem, free: Index, ridge: Array, residual: Array, singular: float
) -> Array:
    """Solve the free system, with a ridge at the level of rounding where K_FF is singular."""
    matrix = problem.operator.block(free, free)
    np.einsum("ii->i", matrix)[:] += ridge
    factor = lifted_cholesky(matrix, LIFT, singular)
    solution = cholesky_solve(factor, residual)
    if problem.offset:
        ones = cholesky_solve(factor, np.ones(len(free)))
        solution -= ones * (solution.sum() / ones.sum())
    return solution


def _line_minimum(
    problem: Problem, index: Index, start: Array, step: Array, gradient: Array, change: Array
) -> tuple[float, float]:
    """The minimum of the dual on start + t·step, 0 ≤ t ≤ 1: its place and the decrease.

    The derivative grows with t, linear but where a variable passes 0: bisection, then
    interpolation inside the last stretch.
    """
    terms = problem.terms.take(index)
    quadratic = float(step @ change)
    sign = np.where(start != 0, np.sign(start), np.sign(step))
    ridge = np.where(sign > 0, terms.ridge_plus, terms.ridge_minus)
    other = np.where(sign > 0, terms.ridge_minus, terms.ridge_plus)

    def slope(t: float) -> float:
        at = start + t * step
        side = np.where(at != 0, np.sign(at), np.sign(step))
        bend = np.where(side > 0, terms.ridge_plus, terms.ridge_minus)
        return t * quadratic + float((gradient + terms.kink * side + bend * at) @ step)

    def gain(t: float) -> float:
        """What the dual falls by: each sample's terms cancel before they are summed."""
        moved = t * step
        at = start + moved
        rise = moved * (gradient + terms.kink * sign + ridge * (start + 0.5 * moved))
        beyond = np.where(sign * at < 0, at, 0.0)
        rise += 2 * terms.kink * np.abs(beyond) + 0.5 * (other - ridge) * beyond**2
        return -(float(rise.sum()) + 0.5 * t * t * quadratic)

    length = 1.0
    if slope(1.0) > 0:
        low, high = 0.0, 1.0
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            if slope(middle) > 0:
                high = middle
            else:
                low = middle
            if high < 1e-12:
                return 0.0, 0.0
        a, b = slope(low), slope(high)
        length = low + (high - low) * (-a / (b - a)) if a < 0 < b else low
    if gain(1.0) >= gain(length):
        length = 1.0
    return length, gain(length)
