"""Out-of-fold predictions: what the folds' models say about rows that they were not fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..solvers.many import Goal, Place, solve_many
from ..solvers.monitor import OutOfTime
from ..threads import in_threads, one_blas_thread
from .folds import fold_families
from .judge import Judge
from .matrices import fold_grams
from .task import Task

if TYPE_CHECKING:
    from .search import Model, Search

Array = NDArray[np.float64]
#: by fold, and by level and number of C
Models = Mapping[int, Mapping[Place, "Model"]]


def out_of_fold(search: Search, mean: bool) -> Array:
    """Out-of-fold predictions of all levels, (n_levels, n_rows), in units of y.

    As :meth:`Search.oof_predictions` says, with the models solved to the gap of the settings.
    """
    task, levels = search.task, range(len(search.task.losses))
    nothing = np.full((len(levels), len(task.y)), np.nan)
    shares: dict[int, dict[int, Counter[Place]]] = {}  # by γ, fold, and level with C
    for level in levels:
        choices, best = search.fold_choices(level), search.best(level)
        assert best is not None
        for fold in range(len(task.folds)):
            # what a fold has chosen, it has chosen by its validation rows
            others = choices[:fold] + choices[fold + 1 :] or choices
            for g, c in others if mean else [best]:
                shares.setdefault(g, {}).setdefault(fold, Counter())[level, c] += 1
    if search.cut_short or task.stop():
        return nothing
    jobs = [(g, {k: _known(search, g, k, shares[g][k]) for k in shares[g]}) for g in shares]
    calls = [
        partial(_values, task, float(search.gammas.values[g]), search.costs.values, models)
        for g, models in jobs
    ]
    try:
        found = list(in_threads(calls, search.jobs.count, shared=True))
    except OutOfTime:
        return nothing
    except KeyboardInterrupt:  # jobs in other threads end at their next look
        task.stop.raised = True
        raise
    if task.stop():  # in the middle of a solve
        return nothing
    total, times = np.zeros_like(nothing), np.zeros_like(nothing)
    for (g, _), by_fold in zip(jobs, found, strict=True):
        for fold, values in by_fold.items():
            rows = task.folds[fold].validation
            for (level, c), count in shares[g][fold].items():
                total[level, rows] += count * values[level, c]
                times[level, rows] += count
    total[times == 0] = np.nan
    return np.asarray(task.units.offset(total / np.maximum(times, 1.0)))


def _known(search: Search, g: int, fold: int, places: Counter[Place]) -> dict[Place, Model]:
    """The models of a fold as the search has left them."""
    return {(level, c): search.models(level, (g, c))[fold] for level, c in places}


def _values(
    task: Task, gamma: float, costs: Array, models: Models
) -> dict[int, dict[Place, Array]]:
    """The values of models at one γ at the validation rows of their folds, in units of the task."""
    found: dict[int, dict[Place, Array]] = {}
    # direct solves, which cost the cube of the rows, are for few of them (sml, 2,000 rows: 18 s
    # with them and 4 s without, for intervals that hold 91 % where they should hold 90)
    few = len(task.y) <= task.settings.race.hard_rows
    many = replace(task.many(rough=False), finish=few)
    with one_blas_thread():
        for k, fold, gram, predict in fold_grams(task, gamma, list(models)):
            places = list(models[k])
            beta = [np.asarray(models[k][place][0]) for place in places]
            intercept = np.array([models[k][place][1] for place in places])
            if not task.fitted_by_constant(fold):
                wanted = np.zeros((len(task.losses), len(costs)), dtype=bool)
                starts = np.full((*wanted.shape, len(fold.train)), np.nan)
                for place, start in zip(places, beta, strict=True):
                    wanted[place], starts[place] = True, start
                (family,) = fold_families(task, range(k, k + 1), costs, gram)
                goal = Goal(task.options.tol, task.settings.calibration.gap)
                fits = solve_many(family, goal, wanted, starts, task.stop, many)
                for at, place in enumerate(places):
                    if fits.solved[place]:  # else the one of the search stays
                        beta[at], intercept[at] = fits.beta[place], fits.intercept[place]
            values = Judge(task, fold, predict).values(np.array(beta), intercept)
            found[k] = dict(zip(places, values, strict=True))
    return found
