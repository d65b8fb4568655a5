"""A random search for peers: as many seconds as our call took, their defaults the first candidate.

Candidates are judged by cross-validation of the relative loss, every level by itself, since ours
chooses for every level too. The defaults are always judged; a further candidate is begun where one
of mean length and the last fit are expected to end within the budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from .table_methods import SEED, Method, Parameters, Task

Array = NDArray[np.float64]
#: y and predictions to one loss a level
Losses = Callable[[Array, Array], Array]

FOLDS = 3


def draw(space: dict[str, Any], rng: np.random.Generator) -> Parameters:
    """One candidate: (low, high) on a log scale, or one of a list."""
    drawn: Parameters = {}
    for name, values in space.items():
        if isinstance(values, tuple):
            low, high = np.log(values)
            drawn[name] = float(np.exp(rng.uniform(low, high)))
        else:
            drawn[name] = values[int(rng.integers(len(values)))]
    return drawn


class Search:
    """Looks for parameters and then predicts; ``tried`` says how many candidates there were.

    Parameters
    ----------
    method : Method
        One with a space.
    losses : callable
        What is averaged over the folds, one value a level.
    budget : float
        Seconds for all of it.
    clock : callable
        Seconds; a test hands in its own.
    """

    def __init__(
        self,
        method: Method,
        losses: Losses,
        budget: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.method = method
        self.losses = losses
        self.budget = budget
        self.clock = clock
        self.tried = 0

    def run(self, task: Task, parameters: Parameters) -> Array:
        """Predictions at the best candidate of each level; ``parameters`` go to all of them."""
        started = self.clock()
        rng = np.random.default_rng(SEED)
        candidate = dict(parameters)
        candidates: list[Parameters] = []
        scores: list[Array] = []
        while True:
            candidates.append(candidate)
            scores.append(self._score(task, candidate))
            self.tried += 1
            spent = self.clock() - started
            # one more candidate, and a fit on all rows, which takes about half as long
            if spent + 1.5 * spent / self.tried > self.budget:
                break
            candidate = {**parameters, **draw(self.method.space, rng)}
        return self._predict(task, candidates, np.argmin(scores, axis=0))

    def _score(self, task: Task, candidate: Parameters) -> Array:
        """The mean loss of each level over the folds."""
        folds = KFold(FOLDS, shuffle=True, random_state=SEED).split(task.X)
        found = []
        for train, test in folds:
            part = replace(task, X=task.X[train], y=task.y[train], new=task.X[test])
            found.append(self.losses(task.y[test], self.method.run(part, candidate)))
        return np.mean(found, axis=0)

    def _predict(self, task: Task, candidates: list[Parameters], best: Array) -> Array:
        """Levels that chose the same candidate are fitted together."""
        if best.ndim == 0:
            return self.method.run(task, candidates[int(best)])
        predictions = np.empty((len(task.new), len(task.taus)))
        for chosen in np.unique(best):
            levels = np.flatnonzero(best == chosen)
            part = replace(task, taus=tuple(task.taus[level] for level in levels))
            predictions[:, levels] = self.method.run(part, candidates[int(chosen)])
        return predictions
