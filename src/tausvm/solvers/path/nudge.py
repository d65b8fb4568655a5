"""Labels moved apart and boxes made narrower, by nothing that counts.

Points that would reach the margin together, or depend on each other there, then come one after
the other. What is feasible for narrower boxes is feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .box import MovingBox
from .family import PathProblem
from .settings import PathSettings

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Nudged:
    """A problem as it is walked.

    Attributes
    ----------
    problem : PathProblem
        As it was posed.
    y, box : array (n,) and MovingBox
        Moved apart.
    share : float
        By which share at most.
    spread : float
        The mean distance of labels from their median.
    """

    problem: PathProblem
    y: Array
    box: MovingBox
    share: float
    spread: float

    @classmethod
    def of(cls, problem: PathProblem, tol: float, settings: PathSettings) -> Nudged:
        """Always the same for the same data."""
        rng = np.random.default_rng(0)
        y = problem.y
        middle = float(np.median(y))
        spread = float(np.abs(y - middle).mean() or np.abs(y).max())
        share = min(settings.apart, settings.apart_of_tol * tol)
        # outwards: then those with the largest and the smallest targets, where a path ends, lose
        # nothing that counts, and for labels ±1 it costs a share of the objective at most
        inner = middle if problem.offset and (y < 0).any() != (y > 0).any() else 0.0
        outwards = np.where(y < inner, -1.0, 1.0)
        moved = y + share * spread * outwards * rng.uniform(size=problem.n)
        box = problem.box.times(1.0 - share * rng.uniform(size=problem.n))
        return cls(problem, moved, box, share, spread)

    def take(self, rows: NDArray[np.intp]) -> Nudged:
        """The problem of some points alone, without a free offset."""
        box = MovingBox(self.box.numbers[:, rows])
        products = self.problem.products.take(rows)
        products.watch = self.problem.products.watch
        part = PathProblem(products, self.problem.y[rows], box, False)
        return Nudged(part, self.y[rows], box, self.share, self.spread)
