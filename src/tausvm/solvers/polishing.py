"""Direct solves where coordinates crawl: the interior-point method, then a few core steps.

The method ends strictly inside all bounds. Variables that are as good as at one are put there, and
core steps settle on which side of a bound or a kink the others are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms
from .barrier import Barrier, interior_point
from .cores import core_on
from .monitor import Monitor
from .onedim import project_onto_sum
from .problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: bytes that a direct solve takes for every pair of its variables: their matrix in float64, that of
#: the free ones, and a factor of each
BYTES_A_PAIR = 32.0


@dataclass(frozen=True)
class Polishing:
    """The numbers of direct solves: an interior-point solve, then core steps."""

    barrier: Barrier = field(default_factory=Barrier)
    #: core steps per variable after the interior-point solve: they settle who is at a bound
    settling_steps: int = 4
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
    K = problem.operator.block(work, work)
    start = beta[work]
    # what the others leave of y: nothing is rounded where there are none
    linear = problem.y[work] if len(work) == problem.n else K @ start - gradient[work]
    terms = problem.terms.take(work)
    total = float(start.sum()) if problem.offset else None
    before = problem.gap_from(beta, gradient)
    found = interior_point(K, linear, terms, total, monitor.out_of_time, settings.barrier)
    target = found.snapped
    if total is not None:
        target = restore_sum(terms, target, total)
    _settle(problem, work, K, linear, target, settings.settling_steps)
    decrease = move_to(problem, beta, gradient, work, target)
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
    could not tell.
    """
    gradient = K @ beta - linear
    core = core_on(problem, work, beta, gradient)
    core.run(K, np.arange(len(work)), None, 0.0, steps * len(work))


def restore_sum(terms: DualTerms, target: Array, total: float) -> Array:
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


def move_to(problem: Problem, beta: Array, gradient: Array, index: Index, target: Array) -> float:
    """Go to ``target`` (on ``index``) where the dual is lower there; returns by how much.

    The gradient changes by an exact product, so that large steps do not carry the rounding
    of the rows held.
    """
    start = beta[index]
    step = target - start
    moved = np.zeros(problem.n)
    moved[index] = step
    change = problem.operator.product(moved)
    decrease = _decrease(problem.terms.take(index), start, step, gradient[index], change[index])
    if not decrease > 0:
        return 0.0
    beta[index] = target
    gradient += change
    return decrease


def _decrease(terms: DualTerms, start: Array, step: Array, gradient: Array, change: Array) -> float:
    """What the dual falls by: each sample's terms cancel before they are summed."""
    sign = np.where(start != 0, np.sign(start), np.sign(step))
    ridge = np.where(sign > 0, terms.ridge_plus, terms.ridge_minus)
    other = np.where(sign > 0, terms.ridge_minus, terms.ridge_plus)
    at = start + step
    rise = step * (gradient + 0.5 * change + terms.kink * sign + ridge * (start + 0.5 * step))
    beyond = np.where(sign * at < 0, at, 0.0)
    rise += 2 * terms.kink * np.abs(beyond) + 0.5 * (other - ridge) * beyond**2
    return -float(rise.sum())
