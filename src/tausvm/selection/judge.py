"""The validation part of a fold: scores, and which fits are still worth it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from .scoring import OwnLoss
from .task import Fold, Task

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: from rows of β to values at the validation rows of a fold
Predictor = Callable[[NDArray[np.floating]], NDArray[np.floating]]

#: fits are given up when they are worse than another one by so many standard errors of the
#: difference, with so many rows to tell from
OVERFIT_ERRORS = 3.0
ENOUGH_ROWS = 50


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
        self.gives_up = task.prune and task.by_own_losses and len(self.y) >= ENOUGH_ROWS

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


class PathEnd:
    """Ends a path along C when two fits in a row are clearly worse than an earlier one."""

    def __init__(self, judge: Judge, level: int) -> None:
        self.judge = judge
        self.level = level
        self._best: Array | None = None
        self._worse = 0

    def reached(self, beta: Array, intercept: float) -> bool:
        """Whether this fit and the one before overfit."""
        if not self.judge.gives_up:
            return False
        values = self.judge.values(beta[None], np.array([intercept]))[0]
        self.note(self.judge.losses(self.level, values))
        return self.overfits

    def note(self, losses: Array) -> None:
        """The losses of the next fit."""
        if self._best is None or losses.sum() <= self._best.sum():
            self._best, self._worse = losses, 0
        elif clearly_worse(losses, self._best, OVERFIT_ERRORS):
            self._worse += 1
        else:
            self._worse = 0

    @property
    def overfits(self) -> bool:
        return self._worse >= 2


class ColumnWatch:
    """The same for columns that are fitted together and end in any order.

    ``levels`` are those of the columns, among which those of a level have ascending C.
    """

    def __init__(self, judge: Judge, levels: Sequence[int]) -> None:
        self.judge = judge
        self.levels = np.asarray(levels)
        self._losses: dict[int, Array] = {}
        self._ended: list[tuple[NDArray[np.int64], NDArray[np.float32], Array]] = []

    def ended(self, index: NDArray[np.int64], beta: NDArray[np.float32], b: Array) -> None:
        """These columns are done."""
        self._ended.append((index, beta, b))

    def _look(self) -> None:
        """The losses of the columns that have ended since the last look."""
        if not self._ended:
            return
        index, beta, b = (np.concatenate(parts) for parts in zip(*self._ended, strict=True))
        self._ended.clear()
        values = self.judge.values(beta, b)
        levels = self.levels[index]
        for level in np.unique(levels).tolist():
            losses = self.judge.losses(level, values[levels == level])
            self._losses.update(zip(index[levels == level].tolist(), losses, strict=True))

    def hopeless(self, index: NDArray[np.int64]) -> Mask:
        """Which of these columns come after an end."""
        self._look()
        found = np.zeros(len(index), dtype=bool)
        for k, column in enumerate(index.tolist()):
            path = PathEnd(self.judge, int(self.levels[column]))
            for other in sorted(self._losses):
                if self.levels[other] == path.level and other < column and not path.overfits:
                    path.note(self._losses[other])
            found[k] = path.overfits
        return found
