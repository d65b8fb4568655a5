"""A classifier's path: its rates against τ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .boundary import PathBoundaryDisplay, positive_class
from .labels import label_ends
from .support import CLASS_HUES, AxesDisplay

Array = NDArray[np.float64]

#: levels along a curve
LEVELS = 201
#: share of the axes' height that a label takes
LABEL_HEIGHT = 0.05
RATES = ("true positive rate", "true negative rate", "accuracy")
COLOURS = (*CLASS_HUES, "0.25")


@dataclass(kw_only=True, eq=False, repr=False)
class PathDisplay(AxesDisplay):
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

    tau: Array
    rates: Array

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
        positive = positive_class(estimator)
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
        ax = self._take_axes(ax)
        self.lines_ = [
            ax.plot(self.tau, rate, color=colour, linestyle=style, linewidth=1.6)[0]
            for rate, colour, style in zip(self.rates, colours, ("-", "-", "--"), strict=True)
        ]
        ax.set(xlabel="level τ", ylabel="rate", ylim=(-0.02, 1.02))
        ax.margins(x=0.01)
        self.labels_ = label_ends(
            ax,
            (self.tau[-1], self.rates[:, -1]),
            RATES,
            [{"color": colour} for colour in colours],
            beside=1.02,
            height=LABEL_HEIGHT,
        )
        return self

    @staticmethod
    def boundaries(estimator: Any, X: Any, y: ArrayLike, **options: Any) -> PathBoundaryDisplay:
        """The decision boundary at a few levels: :meth:`PathBoundaryDisplay.from_estimator`."""
        return PathBoundaryDisplay.from_estimator(estimator, X, y, **options)
