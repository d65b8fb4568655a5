"""The warning about a C that holds a fit at a constant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..exceptions import SmallCWarning
from ..losses import Loss
from ..solvers import SolverResult, Status
from ..solvers.units import spread
from .progress import caller_level

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SmallCost:
    """What counts as a fit that C holds at a constant.

    A small C has f = C·Σᵢ uᵢ k(xᵢ, ·) with u that does not depend on C: f grows with C in
    proportion. That f is small says nothing yet: targets may have nothing to do with X. But where
    the loss of the same f still falls as it is stretched, it was C that held it back.
    """

    #: fitted values that span less than this, in standard deviations of y, are looked at
    span: float = 0.01
    #: what f is stretched to for that, in standard deviations of y; above ``span``, as the best
    #: function of noise may span a little more than that too
    stretched: float = 0.1
    #: a span below this share of Σ|βᵢ|·max k(x, x) is rounding: rows that the kernel cannot tell
    #: apart, which no C helps
    rounding: float = 1e-10

    def held_at(
        self,
        target: tuple[Array, Array, Loss],
        result: SolverResult,
        largest: Callable[[], float],
    ) -> tuple[float, float] | None:
        """The span of the fitted values and the spread of y, where C holds the one down.

        Parameters
        ----------
        target : y, weights, loss
        result : SolverResult
        largest : callable
            The largest k(x, x); called where it is needed only.
        """
        y, weight, loss = target
        wide, f = spread(y, weight), result.fitted
        span = float(np.ptp(f))
        if not 0.0 < span < self.span * wide or np.ptp(y) == 0:
            return None
        if span <= self.rounding * float(np.abs(result.beta).sum()) * largest():
            return None
        residual = y - result.intercept - f
        # of fewer digits lost than by two sums: row by row, then added up
        further = (self.stretched * wide / span - 1.0) * f
        gain = loss.value(residual, y) - loss.value(residual - further, y)
        return (span, wide) if float(weight @ gain) > 0 else None


def warn_of_small_cost(
    machine: tuple[str, float, bool],
    targets: Sequence[tuple[Array, Array, Loss]],
    results: Sequence[SolverResult],
    largest: Callable[[], float],
    settings: SmallCost | None = None,
) -> None:
    """A SmallCWarning about the level that needs the largest C, where most are held at constants.

    Parameters
    ----------
    machine : name, C, whether ``scale_C=True`` would help
    targets : sequence of (y, weights, loss), one a level
    results : sequence of SolverResult
    largest : callable
        The largest k(x, x) of the training rows.
    settings : SmallCost
    """
    name, C, can_scale = machine
    if any(result.status is not Status.SOLVED for result in results):
        return  # that is told, and a function on its way says nothing about C
    settings = settings or SmallCost()
    pairs = zip(targets, results, strict=True)
    held = [found for t, r in pairs if (found := settings.held_at(t, r, largest)) is not None]
    if 2 * len(held) <= len(results):  # of many levels the outermost are always held more
        return
    span, wide = min(held)
    among = f" for {len(held)} of {len(results)} levels" if len(results) > 1 else ""
    scaling = ", or set scale_C=True, with which C counts in them" if can_scale else ""
    warnings.warn(
        f"{name}: C={C:g} is too small{among} for predictions to differ by a hundredth of the "
        f"spread of y: at the training rows they span {span:.3g}, and the standard deviation of y "
        f"is {wide:.3g}. C={C * settings.span * wide / span:.2g} could move them by a hundredth, "
        f"C={C * wide / span:.2g} by a standard deviation. Raise C{scaling}.",
        SmallCWarning,
        stacklevel=caller_level(),
    )
