"""Kernel ridge regression on the folds of a selection, by direct solves.

    min_{f,b}  ½‖f‖² + ½C Σ wᵢ (yᵢ − f(xᵢ) − b)²        (K + 1/(C w)) β = y − b,  Σβ = 0

It is the proxy by which features are learned and kernels compared: for at most a thousand rows a
Cholesky factor costs some milliseconds, less than the steps of any iteration. The first folds,
those that have enough rows to tell, leave a few points of γ and C for the others to choose from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from ..solvers.linalg import cholesky, cholesky_solve
from ..solvers.many import Predictor
from ..solvers.monitor import OutOfTime
from ..threads import in_threads, one_blas_thread
from .matrices import fold_grams
from .memory import Memory
from .task import Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]
#: γ and C by index
Place = tuple[int, int]

#: axes of so many points are looked at whole
FINE = 3


@dataclass(frozen=True)
class RidgeFit:
    """f = Σ βᵢ k(xᵢ, ·) + b of the training rows of a fold.

    Attributes
    ----------
    beta : array (n_train,)
    squares : array (n_validation,)
        Of y − f on the rows that were not seen.
    """

    beta: Array
    squares: Array


@dataclass(frozen=True)
class RidgeFits:
    """The fits of all folds at the γ and C that were chosen.

    Attributes
    ----------
    task : Task
        Whose rows, folds, kernel and maps they are of.
    gamma, cost : float
    fits : tuple of RidgeFit
        One a fold.
    """

    task: Task
    gamma: float
    cost: float
    fits: tuple[RidgeFit, ...]

    @property
    def squares(self) -> Array:
        """The squared errors of every row by the folds that have not seen it, their mean; (n,).

        NaN where a row was in no validation part.
        """
        total, times = np.zeros(len(self.task.y)), np.zeros(len(self.task.y))
        for fold, fit in zip(self.task.folds, self.fits, strict=True):
            total[fold.validation] += fit.squares
            times[fold.validation] += 1.0
        return np.divide(total, times, out=np.full(len(total), np.nan), where=times > 0)


@dataclass(frozen=True)
class RidgeProxy:
    """Chooses γ and C of kernel ridge regressions, and fits them on all folds.

    Attributes
    ----------
    choice_rows : int
        Validation rows by which most points are ruled out, of as many folds as have them.
    finalists : int
        Points that all folds choose from.
    n_jobs : int or None
    """

    choice_rows: int
    finalists: int
    n_jobs: int | None

    def fits(self, task: Task, y: Array, gammas: Array, costs: Array) -> RidgeFits | None:
        """The fits at the best point of a grid; None when time is up or nothing can be fitted.

        Axes of more than three points are looked at from every other one.
        """
        shape = len(gammas), len(costs)
        # a matrix of the few rows of a proxy is held whatever memory is given: some megabytes
        room = max(task.megabytes, 16.0 * len(task.y) ** 2 / 2**20)
        task = replace(task, memory=Memory(), megabytes=room)
        found = Grid(task, y, gammas, costs, self.n_jobs)
        first, rest = self._first_folds(task)
        with one_blas_thread():
            found.fit(
                [(g, c) for g in _every_other(shape[0]) for c in _every_other(shape[1])], first
            )
            best = found.best(first, 1)
            if best and max(shape) > FINE:
                found.fit(_around(best[0], shape), first)
            finalists = found.best(first, self.finalists)
            found.fit(finalists, rest)
            best = found.best([*first, *rest], 1)
        return found.at(best[0]) if best else None

    def _first_folds(self, task: Task) -> tuple[list[int], list[int]]:
        """Those that have enough rows, and the others."""
        rows = np.cumsum([len(fold.validation) for fold in task.folds])
        enough = int(np.searchsorted(rows, self.choice_rows)) + 1
        folds = list(range(len(rows)))
        return folds[:enough], folds[enough:]


@dataclass
class Grid:
    """The fits of a grid of γ and C, as far as they are known."""

    task: Task
    y: Array
    gammas: Array
    costs: Array
    n_jobs: int | None
    #: by place and fold
    known: dict[tuple[Place, int], RidgeFit] = field(default_factory=dict)

    def fit(self, places: Sequence[Place], folds: Sequence[int]) -> None:
        """Fit some folds at some places that are not known yet, a job a γ and fold."""
        jobs: dict[tuple[int, int], list[int]] = {}
        for g, c in places:
            for k in folds:
                if ((g, c), k) not in self.known:
                    jobs.setdefault((g, k), []).append(c)
        calls = [
            partial(_fold_fits, self.task, self.y, float(self.gammas[g]), self.costs[wanted], k)
            for (g, k), wanted in jobs.items()
        ]
        for ((g, k), wanted), found in zip(
            jobs.items(), in_threads(calls, self.n_jobs), strict=True
        ):
            for c, fit in zip(wanted, found, strict=False):
                if fit is not None:
                    self.known[(g, c), k] = fit

    def best(self, folds: Sequence[int], count: int) -> list[Place]:
        """The places that err least on some folds, among those that have all of these."""
        weight = {k: self.task.weight[self.task.folds[k].validation] for k in folds}
        losses: dict[Place, float] = {}
        for place in {place for place, _ in self.known}:
            parts = [self.known.get((place, k)) for k in folds]
            errors = [weight[k] @ fit.squares for k, fit in zip(folds, parts, strict=True) if fit]
            if len(errors) == len(folds) and np.isfinite(errors).all():
                losses[place] = float(np.sum(errors))
        return sorted(losses, key=lambda place: (losses[place], place))[:count]

    def at(self, place: Place) -> RidgeFits:
        """The fits of all folds at a place."""
        fits = tuple(self.known[place, k] for k in range(len(self.task.folds)))
        return RidgeFits(self.task, float(self.gammas[place[0]]), float(self.costs[place[1]]), fits)


def _every_other(size: int) -> range:
    return range(0, size, 2 if size > FINE else 1)


def _around(place: Place, shape: tuple[int, int]) -> list[Place]:
    """A place and those next to it."""
    rows, columns = (
        range(max(at - 1, 0), min(at + 2, size)) for at, size in zip(place, shape, strict=True)
    )
    return [(g, c) for g in rows for c in columns]


def _fold_fits(task: Task, y: Array, gamma: float, costs: Array, k: int) -> list[RidgeFit | None]:
    """The fits of one fold at one γ; fewer than there are C when time is up."""
    found: list[RidgeFit | None] = []
    try:
        for _, fold, gram, values in fold_grams(task, gamma, [k]):
            for C in costs.tolist():
                task.stop.pause()
                ridge = 1.0 / (C * task.weight[fold.train])
                found.append(_ridge_fit(gram.rows, ridge, y, fold.train, fold.validation, values))
    except OutOfTime:
        pass
    return found


def _ridge_fit(
    K: Floats,
    ridge: Array,
    y: Array,
    train: NDArray[np.int64],
    validation: NDArray[np.int64],
    values: Predictor,
) -> RidgeFit | None:
    """One fit; None where rounding leaves K + ridge indefinite even in double precision."""
    sides = np.column_stack([y[train], np.ones(len(train))])
    for dtype in dict.fromkeys([K.dtype, np.dtype(np.float64)]):
        A = np.array(K.T, dtype=dtype, order="F")
        np.einsum("ii->i", A)[:] += ridge.astype(dtype)
        try:
            solved = cholesky_solve(cholesky(A), sides.astype(dtype)).astype(np.float64)
        except LinAlgError:
            continue
        of_one = float(solved[:, 1].sum())
        offset = float(solved[:, 0].sum()) / of_one if of_one > 0 else np.nan
        beta = solved[:, 0] - offset * solved[:, 1]
        with np.errstate(over="ignore", invalid="ignore"):  # rounding may leave nothing of β
            predicted = np.asarray(values(beta[None]), dtype=np.float64)[0] + offset
            return RidgeFit(beta, np.square(y[validation] - predicted))
    return None
