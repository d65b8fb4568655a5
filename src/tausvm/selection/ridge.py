"""Kernel ridge regression on the folds of a selection, by direct solves.

    min_{f,b}  ½‖f‖² + ½C Σ wᵢ (yᵢ − f(xᵢ) − b)²        (K + 1/(C w)) β = y − b,  Σβ = 0

It is the proxy by which features are learned and kernels compared: for at most a thousand rows a
Cholesky factor costs some milliseconds, less than the steps of any iteration. γ and C are chosen
on the first folds alone, those that have enough rows to tell; the others are fitted at that point
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from ..solvers.linalg import cholesky, cholesky_solve
from ..solvers.monitor import OutOfTime
from ..threads import in_threads, one_blas_thread
from .judge import Predictor
from .matrices import fold_grams
from .memory import Memory
from .task import Task

Array = NDArray[np.float64]
Floats = NDArray[np.floating]


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
        Validation rows by which γ and C are chosen, of as many folds as have them.
    n_jobs : int or None
    """

    choice_rows: int
    n_jobs: int | None

    def fits(self, task: Task, y: Array, gammas: Array, costs: Array) -> RidgeFits | None:
        """The fits at the best point of a grid; None when time is up or nothing can be fitted.

        Axes of more than three points are looked at from every other one.
        """
        first = self._first_folds(task)
        task = replace(task, memory=Memory())
        with one_blas_thread():
            known: dict[tuple[int, int], list[RidgeFit]] = {}
            shape = len(gammas), len(costs)
            coarse = [np.arange(size)[:: 2 if size > 3 else 1] for size in shape]
            self._fit(task, y, gammas, costs, first, np.ix_(*coarse), known)
            best = self._best(task, known, first)
            if best is None:
                return None
            if any(size > 3 for size in shape):
                near = [
                    np.arange(max(at - 1, 0), min(at + 2, size))
                    for at, size in zip(best, shape, strict=True)
                ]
                self._fit(task, y, gammas, costs, first, np.ix_(*near), known)
                best = self._best(task, known, first) or best
            gamma, cost = float(gammas[best[0]]), float(costs[best[1]])
            rest = range(len(first), len(task.folds))
            calls = [partial(_fold_fits, task, y, gamma, np.array([cost]), k) for k in rest]
            others = list(in_threads(calls, self.n_jobs))
        fits = [*known[best], *(found[0] if found else None for found in others)]
        complete = [fit for fit in fits if fit is not None]
        if len(complete) < len(fits):
            return None
        return RidgeFits(task, gamma, cost, tuple(complete))

    def _first_folds(self, task: Task) -> list[int]:
        rows = np.cumsum([len(fold.validation) for fold in task.folds])
        enough = int(np.searchsorted(rows, self.choice_rows)) + 1
        return list(range(min(enough, len(rows))))

    def _fit(
        self,
        task: Task,
        y: Array,
        gammas: Array,
        costs: Array,
        folds: Sequence[int],
        places: tuple[NDArray[np.intp], ...],
        known: dict[tuple[int, int], list[RidgeFit]],
    ) -> None:
        """Fit the points at some places that are not known yet, a job a γ and fold."""
        rows, columns = (axis.ravel().tolist() for axis in places)
        wanted = {g: [c for c in columns if (g, c) not in known] for g in rows}
        jobs = [(g, k) for g in rows if wanted[g] for k in folds]
        calls = [
            partial(_fold_fits, task, y, float(gammas[g]), costs[wanted[g]], k) for g, k in jobs
        ]
        for (g, _), found in zip(jobs, in_threads(calls, self.n_jobs), strict=True):
            for c, fit in zip(wanted[g], found, strict=False):
                if fit is not None:
                    known.setdefault((g, c), []).append(fit)

    def _best(
        self,
        task: Task,
        known: dict[tuple[int, int], list[RidgeFit]],
        folds: Sequence[int],
    ) -> tuple[int, int] | None:
        """The point with the least error on the first folds; None where none has all of them."""
        weight = np.concatenate([task.weight[task.folds[k].validation] for k in folds])
        losses = {
            place: float(weight @ np.concatenate([fit.squares for fit in fits]))
            for place, fits in known.items()
            if len(fits) == len(folds)
        }
        losses = {place: loss for place, loss in losses.items() if np.isfinite(loss)}
        return min(losses, key=lambda place: (losses[place], place)) if losses else None


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
