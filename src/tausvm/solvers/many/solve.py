"""Many problems on one matrix: several losses, each for many C, with warm starts.

    primal   min_{f, b}  ½‖f‖² + C Σᵢ ℓ(yᵢ − f(xᵢ) − b)        for every loss and every C

The problems share K and y. How they share the work depends on the loss:

- squared losses without ε: all problems at a time by conjugate gradients, so that products with K
  are products of matrices (:mod:`tausvm._core.columns`);
- losses that grow linearly: along C by steps on a few variables, each problem from the one before
  (:mod:`tausvm._core.single`, and :mod:`~tausvm.solvers.many.cost_path` without an offset);
- few samples: to rounding, by direct solves (:mod:`tausvm._core.patterns`,
  :mod:`tausvm._core.faces`), which also go on where steps on a few variables get nowhere;
- whatever else: one after the other by :func:`~tausvm.solvers.solve`, from the best neighbour.

:func:`solve_parts` does so for several parts of the rows, such as the folds of a selection.

Gaps are those of the matrix as it is held, mostly in float32: good enough to choose among models.
A machine that predicts is certified by :func:`~tausvm.solvers.solve`, from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..._core.columns import Columns
from ..._core.faces import Faces
from ..._core.patterns import Patterns
from ..._core.single import SinglePairs
from ..._core.validation import Validation
from ...operators import KernelOperator
from .cost_path import solve_along_costs
from .family import (
    Asked,
    Family,
    Goal,
    Many,
    ManyResult,
    Mask,
    PartResults,
    Predictor,
    Starts,
    Stop,
    Work,
)
from .one_by_one import solve_one_by_one

Array = NDArray[np.float64]
Floats = NDArray[np.floating]

#: the largest number in float32
MOST_SINGLE = float(np.finfo(np.float32).max)


class Matrices(Protocol):
    """The kernel values of parts."""

    @property
    def matrix(self) -> Floats | None:
        """What compiled code gathers them from: K of all rows, or of the only part with those that
        judge below; None where it is not held."""

    def operator(self, k: int) -> KernelOperator:
        """K of a part."""

    def values(self, k: int) -> Predictor:
        """From β of a part to values at the rows that judge it."""

    def double(self, k: int) -> Array:
        """K of a part, with the rows that judge it below, computed in float64."""


class _Own:
    """The matrix of one family."""

    def __init__(self, operator: KernelOperator) -> None:
        self._operator = operator
        identity = operator.whole and bool((operator.slots == np.arange(len(operator))).all())
        self.matrix = operator.rows[: len(operator)] if identity else None

    def operator(self, k: int) -> KernelOperator:
        return self._operator

    def values(self, k: int) -> Predictor:
        raise AssertionError("nothing is judged")

    def double(self, k: int) -> Array:
        every = np.arange(len(self._operator))
        return self._operator.block(every, every)


def solve_many(
    family: Family,
    goal: Goal | None = None,
    wanted: Mask | None = None,
    starts: Array | None = None,
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
    stop : Stop or None
        Asked between parts of the work whether to leave at once. What is done then is kept.
    settings : Many
    """
    family = family.alone
    assert family.operator is not None
    wanted = np.ones(family.shape, dtype=bool) if wanted is None else wanted
    begin = None
    if starts is not None:
        known = np.isfinite(starts[None, :, :, 0]) & wanted
        begin = Starts(np.where(known[..., None], starts, 0.0), known)
    asked = Asked(family.costs, wanted, goal or Goal(), stop or Stop())
    own = _Own(family.operator)
    return solve_parts([family], own, asked, begin, settings or Many()).part(0)


def solve_parts(
    families: Sequence[Family],
    matrices: Matrices,
    asked: Asked,
    starts: Starts | None,
    settings: Many,
) -> PartResults:
    """Solve the same problems on several parts of the rows.

    Parameters
    ----------
    families : sequence of Family
        One a part, with the same losses and C.
    matrices : Matrices
    asked : Asked
    starts : Starts or None
    settings : Many
    """
    results = PartResults.of(families, starts)
    rest = np.broadcast_to(asked.wanted, results.solved.shape)
    # a step that overflows shows in the objectives, which every gap is made of
    with np.errstate(over="ignore", invalid="ignore"):
        if _is_shared(families[0], matrices, asked, settings):
            _share(families, matrices, asked, settings, results)
            results.judge(families, asked.goal)
            rest = results.solved & ~results.reached & settings.finish
            if asked.stop():  # in the middle of these
                results.intercept[~results.reached] = np.nan
        for k in np.flatnonzero(rest.any(axis=(1, 2))).tolist():
            if not asked.stop():
                work = _work(k, families[k], matrices, asked, settings, results)
                solve_one_by_one(work, rest[k])
        if rest.any():
            results.judge(families, asked.goal)
    return results


def _share(
    families: Sequence[Family],
    matrices: Matrices,
    asked: Asked,
    settings: Many,
    results: PartResults,
) -> None:
    """Solve the problems of parts together, as far as that goes."""
    parts, family = [family.part for family in families], families[0]
    few = max(results.sizes) <= settings.few
    if family.weight is not None:
        squared = Patterns(settings) if few else Columns(settings)
        squared.solve(parts, matrices.matrix, asked, results)
        return
    direct = max(results.sizes) <= max(settings.few, settings.faces_order)
    if family.offset:
        steps = min(settings.steps, settings.faces_after) if direct else settings.steps
        SinglePairs(settings, steps).solve(parts, matrices.matrix, asked, results)
    else:
        for k, family in enumerate(families):
            solve_along_costs(_work(k, family, matrices, asked, settings, results))
    if direct:
        core = Faces(settings, max(results.sizes), not few)
        _go_on_directly(core, families, matrices, asked, results)


def _go_on_directly(
    core: Faces,
    families: Sequence[Family],
    matrices: Matrices,
    asked: Asked,
    results: PartResults,
) -> None:
    """Solve directly what steps have left, in float64."""
    matrix = matrices.matrix
    assert matrix is not None
    if matrix.dtype == np.float64:
        core.solve([family.part for family in families], matrix, asked, results)
        return
    results.judge(families, asked.goal)
    left = results.solved & ~results.reached
    for k in np.flatnonzero(left.any(axis=(1, 2))).tolist():
        part = replace(families[k], rows=None).part
        core.solve([part], matrices.double(k), asked, results.row(k))


def _is_shared(family: Family, matrices: Matrices, asked: Asked, settings: Many) -> bool:
    """Whether problems share their work: on a matrix that is held, to a rough goal."""
    rough = min(asked.goal.gap, asked.goal.share) >= settings.tight
    if not (rough and settings.shared and (family.weight is not None or family.linear)):
        return False
    matrix = matrices.matrix
    if matrix is None or matrix.dtype == np.float32:
        return matrix is not None
    return float(max(matrix.max(), -matrix.min())) <= MOST_SINGLE


def _work(
    k: int,
    family: Family,
    matrices: Matrices,
    asked: Asked,
    settings: Many,
    results: PartResults,
) -> Work:
    """One part for solvers in Python."""
    validation, predict = None, None
    if family.judged is not None:
        assert results.losses is not None
        validation = Validation(family.judged, results.losses[k], asked.errors)
        predict = matrices.values(k)
    family = family.on(matrices.operator(k), family.costs)
    return Work(family, asked, settings, results.part(k), results.begun[k], validation, predict)
