"""The validation part of a fold: scores, and which fits are still worth it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..solvers.many import Place
from .scoring import OwnLoss
from .task import Fold, Task

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: from rows of β to values at the validation rows of a fold
Predictor = Callable[[NDArray[np.floating]], NDArray[np.floating]]


def clearly_worse(losses: Array, best: Array, errors: float, slack: float = 0.0) -> Mask:
    """Whether losses, (..., rows), exceed those of another model on the same rows beyond doubt.

    They are compared row by row: much of what a fold does to a score it does to both. ``slack``
    is a share of the other model's loss that does not count.
    """
    more = losses - best
    doubt = errors * more.std(axis=-1) / np.sqrt(len(best))
    return np.asarray(more.mean(axis=-1) > doubt + slack * best.mean())


class Judge:
    """The validation rows of one fold."""

    def __init__(self, task: Task, fold: Fold, predict: Predictor) -> None:
        self.task = task
        self.predict = predict
        self.bounds = task.clip_bounds(fold)
        self.rows = fold.validation
        self.y, self.weight = task.y[self.rows], task.weight[self.rows]
        self.race = task.settings.race

    def watch(self) -> Overfit | None:
        """Leaves fits of large C out, where there are enough rows to tell."""
        task = self.task
        enough = len(self.y) >= self.race.path_rows
        return Overfit(self) if task.prune and task.by_own_losses and enough else None

    def scores(self, level: int, values: Array) -> Array:
        """The score of each row of predictions, in the user's units."""
        score = self.task.scores[level]
        if isinstance(score, OwnLoss):
            return -self.losses(level, values).sum(axis=1) / self.weight.sum()
        given = self.task.targets[self.rows]
        return np.array([score(given, self.task.units.offset(row), self.weight) for row in values])

    def values(self, beta: NDArray[np.floating], intercept: Array) -> Array:
        """Predictions, (fits, rows), in units of the task, clipped as they are later."""
        values = np.asarray(self.predict(beta), dtype=np.float64) + intercept[:, None]
        return values if self.bounds is None else np.clip(values, *self.bounds)

    def losses(self, level: int, values: Array) -> Array:
        """The weighted loss of every row, by the level's own loss, in the user's units.

        ``values`` is (..., rows).
        """
        score = self.task.scores[level]
        assert isinstance(score, OwnLoss)
        residual = self.task.units.coefficients(self.y - values)
        return np.asarray(self.weight * score.loss.value(residual))


class Overfit:
    """Leaves problems out that come, along C, after two in a row that clearly overfit."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        #: by level and number of C: the losses of the validation rows
        self._losses: dict[Place, Array] = {}

    def ended(self, places: Sequence[Place], beta: NDArray[np.floating], intercept: Array) -> None:
        """These problems are solved."""
        if not places:
            return
        values = self.judge.values(beta, intercept[: len(places)])
        for place, row in zip(places, values, strict=True):
            self._losses[place] = self.judge.losses(place[0], row)

    def hopeless(self, places: Sequence[Place]) -> Mask:
        """Which of these come after such an end."""
        ends = {level: self._end(level) for level in {level for level, _ in places}}
        return np.array([k > ends[level] for level, k in places], dtype=bool)

    def _end(self, level: int) -> float:
        """The C, by number, at which a level overfits; ∞ for none."""
        best: Array | None = None
        worse = 0
        for k in sorted(k for other, k in self._losses if other == level):
            losses = self._losses[level, k]
            if best is None or losses.sum() <= best.sum():
                best, worse = losses, 0
            elif clearly_worse(losses, best, self.judge.race.standard_errors):
                worse += 1
            else:
                worse = 0
            if worse >= 2:
                return k
        return np.inf
