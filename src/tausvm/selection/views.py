"""How a selection may see the features: kernels, and maps that were learned, in competition.

learned features with each kernel       the kernel with the least loss goes on
the features as they are, with it       stay unless learned ones err less by a standard error
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """

    kernel: str | Callable[..., Array]
    weights: Array | None = None
    maps: tuple[Array, ...] | None = None

    @property
    def learned(self) -> bool:
        return self.maps is not None


@dataclass
class Views:
    """Chooses among the views of one task.

    Attributes
    ----------
    task : Task
        Its features as they are.
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

    task: Task
    kernels: tuple[str | Callable[..., Array], ...]
    metric: str | None
    feature_groups: Index | None
    levels: tuple[float, ...]
    n_jobs: int | None
    search: Callable[[View, Search | None], Search]

    def choose(self) -> tuple[View, Search]:
        """The view that predicts best, with its search."""
        found = self._best(self._learned())
        if found is None:
            found = self._best(View(kernel) for kernel in self.kernels)
            assert found is not None
            return found
        view, search = found
        if search.cut_short:
            return found
        plain = View(self._plain(view.kernel))
        other = self.search(plain, search)
        errors = self.task.settings.metric.standard_errors
        if other.beaten or other.cut_short or beats(search, other, errors):
            return found
        return plain, other

    def _plain(self, kernel: str | Callable[..., Array]) -> str | Callable[..., Array]:
        """The kernel of features as they are that is as smooth."""
        return "laplacian" if kernel == "exponential" and len(self.kernels) > 1 else kernel

    def _best(self, views: Iterator[View] | list[View]) -> tuple[View, Search] | None:
        best: tuple[View, Search] | None = None
        for view in views:
            if best is not None and best[1].cut_short:
                break
            search = self.search(view, None if best is None else best[1])
            if best is None or beats(search, best[1], 0.0):
                best = view, search
        return best

    def _learned(self) -> Iterator[View]:
        """Learned features under each of the kernels."""
        found = self._round()
        if found is None or found.maps is None:
            return
        turned = found.final is not None and found.final.ndim == 2
        kernels = TURNED if turned and len(self.kernels) > 1 else self.kernels
        for kernel in kernels:
            yield View(kernel, found.final, found.maps)

    def _round(self) -> Round | None:
        """The best round of a diagonal metric, or of a full one where that wins."""
        if self.metric is None:
            return None
        task, settings = self.task, self.task.settings.metric
        left = task.stop.left
        if left is not None:
            ends = task.stop.clock() + settings.time_share * left
            task = replace(task, stop=Stop(task.stop.clock, ends))
        share = spread_share(self.levels)
        return MetricLearner(task, share, self.feature_groups, self.n_jobs).learn(self.metric)


def beats(search: Search, other: Search, standard_errors: float) -> bool:
    """Whether a search has found what errs less than another, by so many standard errors."""
    if search.beaten:
        return False
    levels = range(len(search.task.losses))
    if any(found.best(level) is None for found in (search, other) for level in levels):
        return False  # nothing of its grid could be fitted and scored
    losses, others = _losses(search), _losses(other)
    if search.task.by_own_losses:
        return errs_less(losses, others, search.task.weight, standard_errors)
    unit = max(float(np.abs(others).mean()), np.finfo(np.float64).tiny)
    return errs_less(losses / unit, others / unit, np.ones(len(losses)), standard_errors)


def _losses(search: Search) -> Array:
    """What the best points of all levels cost, row by row, or fold by fold for other scores.

    Each level counts by what the best constant costs.
    """
    task = search.task
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
