"""How a selection may see the features: kernels, and maps that were learned, in competition.

kernel ridge regression of every view    those leave that clearly err more than the best one
the machine itself, the best view first  the view with the least loss is chosen
the features as they are                 stay unless learned ones err less by a standard error
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..estimators.data import Matrix
from ..estimators.parameters import check_choice, refuse
from ..solvers.many import Stop
from .metric import MetricLearner, Round, errs_less, spread_share
from .search import Search
from .task import Task

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: what competes for ``kernel="auto"``: smooth, and rough along each feature
SMOOTH_AND_ROUGH = ("rbf", "laplacian")
#: and under a whole matrix, which turns the features
TURNED = ("rbf", "exponential")
#: kernels whose features can be learned
LEARNABLE = ("auto", "rbf", "laplacian", "exponential", "poly")
#: a deviation below this share of a feature's largest value is the rounding of a constant
CONSTANT = 1e-12
#: metrics that can be learned
METRICS = ("auto", "diagonal", "full")


@dataclass(frozen=True)
class View:
    """A kernel and what it sees.

    Attributes
    ----------
    kernel : str or callable
    weights : array or None
        The map of all rows, with respect to the features of the task: (d,) or (d, d).
    maps : tuple of arrays or None
        Those of the folds.
    gamma : float or None
        About where the best γ is; None where nothing is known of it.
    beside : bool
        Whether the targets are those that a trend leaves.
    """

    kernel: str | Callable[..., Array]
    weights: Array | None = None
    maps: tuple[Array, ...] | None = None
    gamma: float | None = None
    beside: bool = False

    @property
    def learned(self) -> bool:
        return self.maps is not None


@dataclass
class Views:
    """Chooses among the views of one task, or of one and the same beside a trend.

    Attributes
    ----------
    tasks : tuple of Task
        Their features as they are; the second one is beside the trend.
    kernels : tuple
        Those that compete.
    metric : str or None
        "auto", "diagonal" or "full"; None for features as they are.
    feature_groups : int array or None
    levels : tuple of float
        At which the machines are, for what the spread of y counts.
    n_jobs : int or None
    search : callable
        Makes the search of a view with a rival, and runs it.
    """

    tasks: tuple[Task, ...]
    kernels: tuple[str | Callable[..., Array], ...]
    metric: str | None
    feature_groups: Index | None
    levels: tuple[float, ...]
    n_jobs: int | None
    search: Callable[[View, Search | None], Search]

    @property
    def task(self) -> Task:
        """That of the targets as they are."""
        return self.tasks[0]

    def choose(self) -> tuple[View, Search]:
        """The view that predicts best, with its search."""
        views = self._in_the_race()
        best = views[0], self.search(views[0], None)
        for view in views[1:]:
            if best[1].cut_short:
                break
            search = self.search(view, best[1])
            if self._wins(view, search, *best):
                best = view, search
        return best

    def _wins(self, view: View, search: Search, other: View, rival: Search) -> bool:
        """Whether a view takes the place of another; learned features have to be clearly better."""
        if search.beaten or search.cut_short:
            return False
        errors = self.task.settings.metric.standard_errors
        if other.learned and not view.learned:
            return not beats(rival, search, errors)
        return beats(search, rival, errors if view.learned and not other.learned else 0.0)

    def _in_the_race(self) -> list[View]:
        """The views that the proxy does not rule out, the best one first."""
        if self.metric is None and len(self.kernels) == len(self.tasks) == 1:
            return [View(self.kernels[0])]
        tried = [one for task in self.tasks for one in self._tried(task)]
        known = [(view, now) for view, now in tried if now.proxy is not None]
        if not known or not self.task.by_own_losses:
            return [view for view, _ in tried]
        known.sort(key=lambda pair: float(pair[1].weight @ np.nan_to_num(pair[1].losses)))
        errors = self.task.settings.metric.screening_errors
        best = known[0][1]
        return [view for view, now in known if not best.beats(now, errors)]

    def _tried(self, task: Task) -> list[tuple[View, Round]]:
        """All views of a task, and how the proxy predicts with them, in units of the first task."""
        learner = self._learner(task)
        plain = learner.tried(learner.task.kernel, None)
        learned = plain if self.metric is None else learner.learn(self.metric, plain)
        found: list[tuple[View, Round]] = []
        if learned.maps is not None:
            turned = learned.final is not None and learned.final.ndim == 2
            kernels = TURNED if turned and len(self.kernels) > 1 else self.kernels
            found += [self._view(learner, kernel, learned) for kernel in kernels]
        found += [self._view(learner, kernel, plain) for kernel in self.kernels]
        if task is self.task:
            return found
        unit = (task.units.scale / self.task.units.scale) ** 2
        return [
            (replace(view, beside=True), replace(now, losses=unit * now.losses))
            for view, now in found
        ]

    def _view(self, learner: MetricLearner, kernel: Any, seen: Round) -> tuple[View, Round]:
        """A kernel under the maps of a round."""
        now = seen if kernel == learner.task.kernel else learner.tried(kernel, seen)
        gamma = None if now.proxy is None else now.proxy.gamma
        return View(kernel, now.final, now.maps, gamma), now

    def _learner(self, task: Task) -> MetricLearner:
        settings = task.settings.metric
        left = task.stop.left
        if left is not None:
            ends = task.stop.clock() + settings.time_share * left
            task = replace(task, stop=Stop(task.stop.clock, ends))
        share = spread_share(self.levels)
        return MetricLearner(task, share, self.feature_groups, self.n_jobs)


def beats(search: Search, other: Search, standard_errors: float) -> bool:
    """Whether a search has found what errs less than another, by so many standard errors."""
    if search.beaten:
        return False
    levels = range(len(search.task.losses))
    if any(found.best(level) is None for found in (search, other) for level in levels):
        return False  # nothing of its grid could be fitted and scored
    losses, others = _losses(search, search.task), _losses(other, search.task)
    if search.task.by_own_losses:
        return errs_less(losses, others, search.task.weight, standard_errors)
    unit = max(float(np.abs(others).mean()), np.finfo(np.float64).tiny)
    return errs_less(losses / unit, others / unit, np.ones(len(losses)), standard_errors)


def _losses(search: Search, task: Task) -> Array:
    """What the best points of all levels cost, row by row, or fold by fold for other scores.

    Each level counts by what the best constant costs in a task.
    """
    if not task.by_own_losses:
        best = [search.best(level) for level in range(len(task.losses))]
        return -np.sum([search.scores[k][place] for k, place in enumerate(best)], axis=0)
    total = np.zeros(len(task.y))
    for level in range(len(task.losses)):
        constant = max(task.constant_loss(level), np.finfo(np.float64).tiny)
        total += search.row_losses(level) / task.weight / constant
    return total


def equal_spread(X: Array, weight: Array) -> Array | None:
    """Weights (d,) that give every feature the standard deviation 1; None where none can.

    A feature that does not vary gets 0: nothing can be learned of it.
    """
    size = np.abs(X).max(axis=0)
    size[size == 0] = 1.0
    share = weight / weight.sum()
    scaled = X / size
    deviation = np.sqrt(share @ np.square(scaled - share @ scaled))
    varies = deviation > CONSTANT
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        weights = np.where(varies, 1.0 / np.where(varies, deviation, 1.0) / size, 0.0)
    return weights if np.isfinite(weights).all() and weights.any() else None


def composed(first: Array | None, second: Array | None) -> Array | None:
    """One map for two, the first of which is by weights."""
    if first is None or second is None:
        return second if first is None else first
    return first * second if second.ndim == 1 else first[:, None] * second


def importances(weights: Array | None, spread_of: Array | None, d: int) -> Array:
    """What d features count in a metric, as shares that sum to 1.

    Parameters
    ----------
    weights : array (d,) or (d, d), or None
        The map of features of equal spread; None where none was learned.
    spread_of : array (d,) or None
        What made the spread equal.
    """
    if weights is None:
        weights = np.ones(d) if spread_of is None else (spread_of > 0).astype(np.float64)
    squares = weights**2 if weights.ndim == 1 else (weights**2).sum(axis=1)
    return np.asarray(squares / max(float(squares.sum()), np.finfo(np.float64).tiny))


def check_metric(name: str, metric: object, X: Matrix, otherwise: str = "") -> None:
    """A ValueError unless this metric of these features can be learned."""
    check_choice(name, metric, METRICS, otherwise)
    if metric == "full" and sp.issparse(X):
        raise refuse(name, "'auto' or 'diagonal' for a sparse X", metric)


def check_feature_groups(groups: Any, d: int) -> Index | None:
    """Groups of d features as an array."""
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (d,) or found.dtype.kind not in "iu":
        raise refuse("feature_groups", f"None or {d} integers, one a feature", groups)
    return found.astype(np.int64)
