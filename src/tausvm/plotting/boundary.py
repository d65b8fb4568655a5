"""A classifier's path: its boundary at a few τ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..cuts import cut_through, feature_label
from ..inspection import last_step
from .support import CLASS_HUES, hide_frame, require_pyplot

Array = NDArray[np.float64]

#: points of the grid along each feature
GRID = 150


@dataclass(kw_only=True, eq=False, repr=False)
class PathBoundaryDisplay:
    """The decision boundary in the plane of two features, one panel a level.

    Parameters
    ----------
    tau : array (n_levels,)
    grid : pair of arrays (m,)
        Where the decision was evaluated along each feature.
    decisions : array (n_levels, m, m)
        Decision values, the second feature along the rows.
    points : array (n, 2)
    positive : bool array (n,)
        The data, and which of them are positive.
    feature_names : pair of str

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    """

    tau: Array
    grid: tuple[Array, Array]
    decisions: Array
    points: Array
    positive: NDArray[np.bool_]
    feature_names: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        tau: Sequence[float] = (0.1, 0.5, 0.9),
        features: tuple[int, int] = (0, 1),
        axes: Any = None,
        **plot_options: Any,
    ) -> PathBoundaryDisplay:
        """Draw the boundary of a fitted path; other features are held at their medians.

        Parameters
        ----------
        estimator : fitted TauPathSVC of two classes
        X : array or DataFrame (n, d)
        y : array (n,)
        tau : levels, one panel each
        features : two columns
        axes : sequence of matplotlib Axes, optional
            One a level.
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : PathBoundaryDisplay
        """
        positive = positive_class(estimator)
        if sp.issparse(X):
            raise ValueError("X must be dense for a boundary: draw two dense columns of it")
        values = np.asarray(X, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] < 2:
            raise ValueError(f"X must have two features at least, got shape {values.shape}")
        first, second = features
        for feature in features:
            if not 0 <= feature < values.shape[1]:
                raise ValueError(
                    f"features must lie between 0 and {values.shape[1] - 1}, got {features!r}"
                )
        across, up = _around(values[:, first]), _around(values[:, second])
        plane = cut_through(X, {first: np.tile(across, GRID), second: np.repeat(up, GRID)})
        taus = np.asarray(tau, dtype=np.float64)
        decisions = estimator.decision_function(plane, tau=taus)
        display = cls(
            tau=taus,
            grid=(across, up),
            decisions=decisions.T.reshape(len(taus), GRID, GRID),
            points=values[:, list(features)],
            positive=np.asarray(y) == positive,
            feature_names=(feature_label(X, first), feature_label(X, second)),
        )
        return display.plot(axes=axes, **plot_options)

    def plot(
        self, axes: Any = None, *, colours: tuple[str, str] = CLASS_HUES
    ) -> PathBoundaryDisplay:
        """Draw the panels: positive points as squares, negative ones as dots, the boundary.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One a level; a new figure if None.
        colours : pair of colours
            For the positive and the negative class.

        Returns
        -------
        self : PathBoundaryDisplay
        """
        plt = require_pyplot(type(self).__name__)
        count = len(self.tau)
        if axes is None:
            _, axes = plt.subplots(
                1, count, figsize=(3.2 * count, 3.2), sharey=True, layout="constrained"
            )
        self.axes_ = list(np.atleast_1d(axes))
        if len(self.axes_) != count:
            raise ValueError(f"axes must be {count}, one a level of tau, got {len(self.axes_)}")
        self.figure_ = self.axes_[0].figure
        for ax, tau, decision in zip(self.axes_, self.tau, self.decisions, strict=True):
            ax.contourf(
                *self.grid, decision > 0, levels=[-0.5, 0.5, 1.5], colors=colours[::-1], alpha=0.12
            )
            if decision.min() < 0 < decision.max():
                ax.contour(*self.grid, decision, levels=[0.0], colors="0.1", linewidths=1.4)
            for side, marker, colour in ((True, "s", colours[0]), (False, "o", colours[1])):
                points = self.points[self.positive == side]
                ax.scatter(*points.T, s=9, marker=marker, color=colour, linewidths=0, alpha=0.7)
            ax.set(title=f"τ = {tau:.3g}", xlabel=self.feature_names[0])
            hide_frame(ax)
        self.axes_[0].set_ylabel(self.feature_names[1])
        return self


def _around(values: Array) -> Array:
    """A grid over the range of a feature and a little beyond."""
    low, high = values.min(), values.max()
    pad = 0.05 * (high - low)
    return np.linspace(low - pad, high + pad, GRID)


def positive_class(estimator: Any) -> Any:
    """The positive one of a path's two classes."""
    classes = getattr(estimator, "classes_", None)
    last = last_step(estimator)
    if classes is None or not hasattr(last, "taus_"):
        raise TypeError(f"a path needs a fitted TauPathSVC, got {type(last).__name__}")
    if len(classes) != 2:
        raise ValueError(f"estimator must have two classes, got {len(classes)}")
    return classes[1]
