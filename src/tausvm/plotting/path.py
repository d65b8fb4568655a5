"""A classifier's path: its rates against τ, and its boundary at a few τ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .labels import spread
from .support import require_pyplot

Array = NDArray[np.float64]

#: levels along a curve, and points of a boundary's grid along each feature
LEVELS, GRID = 201, 150
#: share of the axes' height that a label takes
LABEL_HEIGHT = 0.05
RATES = ("true positive rate", "true negative rate", "accuracy")
COLOURS = ("#1f4e79", "#b1452c", "0.25")


class PathDisplay:
    """True positive rate, true negative rate and accuracy against the level τ.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`; :meth:`boundaries` draws
    the boundary in the plane of two features instead.

    Parameters
    ----------
    tau : array (n_levels,)
        Ascending.
    rates : array (3, n_levels)
        The three rates there.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of Line2D
        In the order of the rates.
    labels_ : list of Annotation
    """

    def __init__(self, *, tau: Array, rates: Array) -> None:
        self.tau = tau
        self.rates = rates

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        tau: ArrayLike | None = None,
        ax: Any = None,
        **plot_options: Any,
    ) -> PathDisplay:
        """Draw the rates of a fitted path on some data.

        Parameters
        ----------
        estimator : fitted TauPathSVC of two classes, or a pipeline that ends with one
        X : array or CSR matrix (n, d)
        y : array (n,)
            The labels; ``classes_[1]`` is the positive one.
        tau : array (n_levels,), optional
            By default 201 levels from 0 to 1.
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : PathDisplay
        """
        positive = _positive_class(estimator)
        taus = np.linspace(0, 1, LEVELS) if tau is None else np.sort(np.asarray(tau, np.float64))
        predicted = estimator.predict(X, tau=taus) == positive
        truth = np.asarray(y) == positive
        return cls.from_predictions(truth, predicted, tau=taus, ax=ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        tau: ArrayLike,
        ax: Any = None,
        **plot_options: Any,
    ) -> PathDisplay:
        """Draw the rates of predictions that were made elsewhere.

        Parameters
        ----------
        y_true : bool array (n,)
            Whether a row is positive.
        y_pred : bool array (n, n_levels)
            Whether it was predicted to be.
        tau : array (n_levels,)
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : PathDisplay
        """
        truth, predicted = np.asarray(y_true, dtype=bool), np.asarray(y_pred, dtype=bool)
        taus = np.asarray(tau, dtype=np.float64)
        if predicted.shape != (len(truth), len(taus)):
            raise ValueError(
                f"y_pred must have shape ({len(truth)}, {len(taus)}), one row a label and one "
                f"column a level of tau, got {predicted.shape}"
            )
        if truth.all() or not truth.any():
            raise ValueError("y_true must hold both classes: a rate of each is drawn")
        order = np.argsort(taus, kind="stable")
        predicted = predicted[:, order]
        rates = np.vstack(
            [
                predicted[truth].mean(axis=0),
                1.0 - predicted[~truth].mean(axis=0),
                (predicted == truth[:, None]).mean(axis=0),
            ]
        )
        return cls(tau=taus[order], rates=rates).plot(ax=ax, **plot_options)

    def plot(self, ax: Any = None, *, colours: Sequence[str] = COLOURS) -> PathDisplay:
        """Draw the three curves, each named at its right end.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        colours : three colours

        Returns
        -------
        self : PathDisplay
        """
        plt = require_pyplot(type(self).__name__)
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_ = [
            ax.plot(self.tau, rate, color=colour, linestyle=style, linewidth=1.6)[0]
            for rate, colour, style in zip(self.rates, colours, ("-", "-", "--"), strict=True)
        ]
        ax.set(xlabel="level τ", ylabel="rate", ylim=(-0.02, 1.02))
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(x=0.01)
        bottom, top = ax.get_ylim()
        ends = (self.rates[:, -1] - bottom) / (top - bottom)
        self.labels_ = [
            ax.annotate(
                name,
                xy=(self.tau[-1], rate[-1]),
                xytext=(1.02, place),
                textcoords=ax.transAxes,
                va="center",
                fontsize="small",
                color=colour,
                annotation_clip=False,
            )
            for name, rate, colour, place in zip(
                RATES, self.rates, colours, spread(ends, LABEL_HEIGHT), strict=True
            )
        ]
        return self

    @staticmethod
    def boundaries(estimator: Any, X: Any, y: ArrayLike, **options: Any) -> PathBoundaryDisplay:
        """The decision boundary at a few levels: :meth:`PathBoundaryDisplay.from_estimator`."""
        return PathBoundaryDisplay.from_estimator(estimator, X, y, **options)


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

    def __init__(
        self,
        *,
        tau: Array,
        grid: tuple[Array, Array],
        decisions: Array,
        points: Array,
        positive: NDArray[np.bool_],
        feature_names: tuple[str, str],
    ) -> None:
        self.tau = tau
        self.grid = grid
        self.decisions = decisions
        self.points = points
        self.positive = positive
        self.feature_names = feature_names

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
        positive = _positive_class(estimator)
        if sp.issparse(X):
            raise ValueError("X must be dense for a boundary: draw two dense columns of it")
        columns = getattr(X, "columns", None)
        values = np.asarray(X, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] < 2:
            raise ValueError(f"X must have two features at least, got shape {values.shape}")
        first, second = features
        for feature in features:
            if not 0 <= feature < values.shape[1]:
                raise ValueError(
                    f"features must lie between 0 and {values.shape[1] - 1}, got {features!r}"
                )
        ends = [(values[:, k].min(), values[:, k].max()) for k in features]
        pads = [0.05 * (high - low) for low, high in ends]
        across, up = (
            np.linspace(low - pad, high + pad, GRID)
            for (low, high), pad in zip(ends, pads, strict=True)
        )
        plane = np.tile(np.median(values, axis=0), (GRID * GRID, 1))
        plane[:, first], plane[:, second] = np.tile(across, GRID), np.repeat(up, GRID)
        asked = plane if columns is None else type(X)(plane, columns=columns)
        taus = np.asarray(tau, dtype=np.float64)
        decisions = estimator.decision_function(asked, tau=taus)
        names = [f"feature {k}" if columns is None else str(columns[k]) for k in features]
        display = cls(
            tau=taus,
            grid=(across, up),
            decisions=decisions.T.reshape(len(taus), GRID, GRID),
            points=values[:, list(features)],
            positive=np.asarray(y) == positive,
            feature_names=(names[0], names[1]),
        )
        return display.plot(axes=axes, **plot_options)

    def plot(
        self, axes: Any = None, *, colours: tuple[str, str] = (COLOURS[0], COLOURS[1])
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
            ax.spines[["top", "right"]].set_visible(False)
        self.axes_[0].set_ylabel(self.feature_names[1])
        return self


def _positive_class(estimator: Any) -> Any:
    """The positive one of two classes."""
    classes = getattr(estimator, "classes_", None)
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if classes is None or not hasattr(last, "taus_"):
        raise TypeError(f"a path needs a fitted TauPathSVC, got {type(last).__name__}")
    if len(classes) != 2:
        raise ValueError(f"estimator must have two classes, got {len(classes)}")
    return classes[1]
