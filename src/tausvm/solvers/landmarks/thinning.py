"""Fewer centres for a function that is there: f̃ ≈ f = Σⱼ αⱼ k(zⱼ, ·), with a bound everywhere.

    |f(x) − f̃(x)| ≤ ‖f − f̃‖ √k(x, x)

f̃ is the projection of f onto the functions of some centres. They are the pivots of a Cholesky
factorisation of K(Z, Z), each the one that brings the projection closest: with r = f − f̃ and R what
the pivots leave of the matrix, a centre z gains r(z)²/R(z, z) of ‖f − f̃‖².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...operators import StreamedKernel

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Thinning:
    """The numbers of the choice among centres."""

    #: centres that compete for the next pivots, and how many of them are taken at a time: products
    #: of matrices instead of vectors
    candidates: int = 64
    taken: int = 16
    #: a centre waits for the next choice where it gains less than this share of the best
    share: float = 0.5
    #: no pivot is taken that leaves less than this share of the largest k(z, z): coefficients
    #: would grow by its inverse root, and their rounding with them
    floor: float = 1e-10
    #: how often sums are compared with the data where they promised too much
    attempts: int = 5


@dataclass(frozen=True)
class Sparsification:
    """What fewer centres cost.

    Attributes
    ----------
    centres_before, centres_after : int
    bound : array (n_levels,)
        How far f̃ may be from f wherever k(x, x) is at most that of the centres, so everywhere for
        kernels of distances; in the unit of y.
    at_centres : array (n_levels,)
        How far f̃ is from f at most at the centres that there were, most or all of the rows of a
        full fit.
    tol : float
        What was asked for, in spreads of y.
    loss_before, loss_after : array (n_levels,) or None
        The mean training loss, where rows were given.
    """

    centres_before: int
    centres_after: int
    bound: Array
    at_centres: Array
    tol: float
    loss_before: Array | None = None
    loss_after: Array | None = None


@dataclass(frozen=True)
class Thinned:
    """Functions of few centres.

    Attributes
    ----------
    kept : int64 array (k,)
        Which of the centres.
    coefficients : array (p, k)
    distance : array (p,)
        ‖f − f̃‖.
    at_centres : array (p,)
        The largest |f − f̃| at all the centres there were.
    """

    kept: Index
    coefficients: Array
    distance: Array
    at_centres: Array


def thinned(
    gram: StreamedKernel,
    coefficients: Array,
    largest: float,
    everywhere: bool = True,
    settings: Thinning | None = None,
) -> Thinned:
    """Functions of few centres near those of many.

    Parameters
    ----------
    gram : StreamedKernel
        Of the centres.
    coefficients : array (p, m)
        Of p functions of the same centres.
    largest : float
        What ‖f − f̃‖ may be for any of them; or |f − f̃| at the centres, where it is not to hold
        ``everywhere``.
    settings : Thinning
    """
    settings = settings or Thinning()
    choice = _Choice(gram, coefficients, everywhere, settings)
    for _ in range(settings.attempts):
        more = choice.reach(largest)
        kept, short = choice.projection()
        change = coefficients.T.copy()
        change[kept] -= short
        distance = np.sqrt(np.maximum(gram.energies(change), 0.0))
        if len(kept) == len(gram):
            break
        choice.refresh(change, distance)  # the sums may have promised more than the data keep
        if choice.near(largest):
            return Thinned(kept, short.T, distance, np.abs(choice.rest).max(axis=0, initial=0.0))
        if not more:
            break
    # nothing shorter is near enough: the functions as they are
    nothing = np.zeros(len(coefficients))
    return Thinned(np.arange(len(gram)), coefficients, nothing, nothing)


class _Choice:
    """Pivots for some functions, and what they leave of these.

    ``rest`` has r(z) of every function, ``energy`` is ‖r‖² and ``left`` R(z, z).
    """

    def __init__(
        self, gram: StreamedKernel, coefficients: Array, everywhere: bool, settings: Thinning
    ) -> None:
        self.gram, self.everywhere, self.settings = gram, everywhere, settings
        m = len(gram)
        self.rest = gram.combined(np.arange(m), coefficients.T)
        self.energy = np.einsum("pm,mp->p", coefficients, self.rest)
        self.left = gram.diagonal.copy()
        self.least = settings.floor * float(self.left.max(initial=0.0))
        self.pivots: list[int] = []
        self.weights: list[Array] = []
        self.factor = np.empty((0, m))

    def near(self, goal: float) -> bool:
        """Whether every ‖r‖, or every |r| at the centres, is at most ``goal``."""
        if self.everywhere:
            return bool((self.energy <= goal * goal).all())
        return float(np.abs(self.rest).max(initial=0.0)) <= goal

    def reach(self, goal: float) -> bool:
        """Take pivots until r is near enough to 0; False where there are none left."""
        while not self.near(goal):
            free = self.left > self.least
            if not free.any():
                return False
            gain = np.zeros(len(self.left))
            np.divide(np.square(self.rest).sum(axis=1), self.left, out=gain, where=free)
            count = min(self.settings.candidates, int(np.count_nonzero(free)))
            some = np.argpartition(-np.where(free, gain, -1.0), count - 1)[:count]
            self._take(some, goal)
        return True

    def refresh(self, change: Array, distance: Array) -> None:
        """r and ‖r‖ from the coefficients of r, without what updates rounded."""
        self.rest = self.gram.combined(np.arange(len(self.gram)), change)
        self.energy = np.square(distance)

    def _take(self, some: Index, goal: float) -> None:
        """The best of some centres, one after the other, and then what they change elsewhere."""
        points, before = self.gram.points.take(some), self.factor[:, some]
        left = self.gram.kernel.between(points, points) - before.T @ before
        rest, best = self.rest[some].copy(), 0.0
        taken: list[int] = []
        columns: list[Array] = []
        for _ in range(min(self.settings.taken, len(some))):
            own = np.diagonal(left)
            gain = np.where(own > self.least, np.square(rest).sum(axis=1), 0.0)
            gain /= np.maximum(own, self.least)
            i = int(gain.argmax())
            best = max(best, float(gain[i]))
            if not own[i] > self.least or gain[i] < self.settings.share * best:
                break
            column = left[:, i] / np.sqrt(own[i])
            weight = rest[i] / np.sqrt(own[i])
            left = left - np.outer(column, column)
            rest -= np.outer(column, weight)
            taken.append(i)
            columns.append(column)
            self.weights.append(weight)
            self.energy = self.energy - np.square(weight)
            if self.everywhere and self.near(goal):
                break
        if not taken:  # rounding: nothing is left of these
            self.left[some] = 0.0
            return
        lower = np.tril(np.stack(columns, axis=1)[taken])
        pivots = some[taken]
        values = self.gram.kernel.between(self.gram.points.take(pivots), self.gram.points)
        values -= self.factor[:, pivots].T @ self.factor
        fresh = solve_triangular(lower, values, lower=True, check_finite=False)
        self.rest -= fresh.T @ np.array(self.weights[len(self.pivots) :])
        self.left -= np.square(fresh).sum(axis=0)
        self.factor = np.vstack([self.factor, fresh])
        self.pivots.extend(int(k) for k in pivots)
        self.left[pivots] = 0.0

    def projection(self) -> tuple[Index, Array]:
        """The pivots and the coefficients (k, p) of f̃."""
        kept = np.array(self.pivots, dtype=np.int64)
        if len(kept) == 0:
            return kept, np.empty((0, self.rest.shape[1]))
        lower = np.tril(self.factor[:, kept].T)
        weights = np.array(self.weights)
        return kept, solve_triangular(lower, weights, lower=True, trans=1, check_finite=False)


__all__ = ["Sparsification", "Thinned", "Thinning", "thinned"]
