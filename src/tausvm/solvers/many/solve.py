"""Many problems on one matrix: several losses, each for many C, with warm starts.

    primal   min_{f, b}  ½‖f‖² + C Σᵢ ℓ(yᵢ − f(xᵢ) − b)        for every loss and every C

The problems share K and y. How they share the work depends on the loss:

- squared losses without ε: all problems at a time by conjugate gradients, so that products with K
  are products of matrices (:mod:`~tausvm.solvers.many.columns`);
- losses that grow linearly: along C by steps on a few variables, each problem from the one before
  (:mod:`~tausvm.solvers.many.cost_path`);
- whatever else: one after the other by :func:`~tausvm.solvers.solve`, from the best neighbour.

Gaps are those of the matrix as it is held, mostly in float32: good enough to choose among models.
A machine that predicts is certified by :func:`~tausvm.solvers.solve`, from the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .columns import solve_columns
from .cost_path import solve_along_costs
from .family import Family, Goal, Many, ManyResult, Mask, Stop, Validation, Work
from .few import polish
from .one_by_one import solve_one_by_one

Array = NDArray[np.float64]


def solve_many(
    family: Family,
    goal: Goal | None = None,
    wanted: Mask | None = None,
    starts: Array | None = None,
    validation: Validation | None = None,
    stop: Stop | None = None,
    settings: Many | None = None,
) -> ManyResult:
    """Solve many problems on one matrix.

    Parameters
    ----------
    family : Family
    goal : Goal
    wanted : bool array (losses, costs) or None
        Which problems; None for all.
    starts : array (losses, costs, n) or None
        A β to begin with, NaN where there is none.
    validation : Validation or None
        Judges solutions, and leaves problems out by what those of smaller C are worth.
    stop : Stop or None
        Asked between parts of the work whether to leave at once. What is done then is kept.
    settings : Many
    """
    work = Work(
        family,
        goal or Goal(),
        np.ones(family.shape, dtype=bool) if wanted is None else wanted,
        starts,
        validation,
        stop or Stop(),
        settings or Many(),
        ManyResult.of(family),
    )
    # a step that overflows shows in the objectives, which every gap is made of
    with np.errstate(over="ignore", invalid="ignore"):
        _solve(work)
    return work.result


def _solve(work: Work) -> None:
    """By what the problems can share, and one by one what that leaves."""
    family = work.family
    result, rest = work.result, work.wanted
    if _shared(work) and (family.weight is not None or family.linear):
        if family.weight is not None:
            solve_columns(work)
        else:
            solve_along_costs(work)
        if len(family.y) <= work.settings.few:
            polish(work, result.solved)
        result.judge(family, work.goal)
        rest = result.solved & ~result.reached & work.settings.finish
        if work.stop():  # in the middle of these
            result.intercept[~result.reached] = np.nan
    if rest.any() and not work.stop():
        solve_one_by_one(work, rest)


def _shared(work: Work) -> bool:
    """Whether the problems may share their work: on a matrix that is held, to a rough goal."""
    operator = work.family.operator
    held = operator.whole and bool((operator.slots == np.arange(len(operator))).all())
    rough = min(work.goal.gap, work.goal.share) >= work.settings.tight
    return held and rough and work.settings.shared
