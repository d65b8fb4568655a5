"""The fan: levels of a distribution against one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..cuts import cut_through, feature_label
from ..inspection import last_step
from .labels import label_ends
from .support import HUE, AxesDisplay

Array = NDArray[np.float64]

#: points of the curve along the feature
GRID = 200
#: share of the axes' height that a label takes
LABEL_HEIGHT = 0.045


@dataclass(kw_only=True, eq=False, repr=False)
class FanDisplay(AxesDisplay):
    """Levels as bands of one hue, darker towards the middle, over the data.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    grid : array (m,)
        Where the levels are drawn, ascending.
    predictions : array (m, n_levels)
        The levels there, one column a level.
    tau : array (n_levels,)
        The level of each column.
    x, y : arrays (n,), optional
        Data to scatter under the fan.
    feature_name, target_name : str, optional
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    scatter_ : PathCollection or None
    bands_ : list of PolyCollection
        Between neighbouring levels, lowest first.
    lines_ : list of Line2D
        One a level, lowest first.
    labels_ : list of Annotation
        One a level, lowest first.
    """

    grid: Array
    predictions: Array
    tau: Array
    x: Array | None = None
    y: Array | None = None
    feature_name: str | None = None
    target_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        ax: Any = None,
        feature_name: str | None = None,
        target_name: str | None = None,
        **plot_options: Any,
    ) -> FanDisplay:
        """Draw what a fitted estimator predicts along one feature.

        The other features are held at their medians, so with several features the curves
        are a cut through the model while the scatter shows all of the data.

        Parameters
        ----------
        estimator : fitted estimator with ``tau``
            A QuantileSVR or ExpectileSVR, or a pipeline that ends with one.
        X : array or DataFrame (n, d)
        y : array (n,), optional
            Targets to scatter.
        feature : int or str
            The feature along the horizontal axis: its column, or its name in a DataFrame.
        ax : matplotlib Axes, optional
        feature_name, target_name : str, optional
            Labels of the axes; by default the names of a DataFrame and a Series.
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : FanDisplay
        """
        if sp.issparse(X):
            raise ValueError("X must be dense for a fan: draw a dense column of it")
        tau = _levels(estimator)
        values = np.asarray(X, dtype=np.float64)
        if values.ndim != 2:
            raise ValueError(f"X must have two dimensions, got shape {values.shape}")
        column = _column(feature, getattr(X, "columns", None), values.shape[1])
        x = values[:, column]
        grid = np.linspace(x.min(), x.max(), GRID)
        if feature_name is None:
            feature_name = feature_label(X, column)
        if target_name is None:
            target_name = getattr(y, "name", None)
        return cls.from_predictions(
            grid,
            estimator.predict(cut_through(X, {column: grid})),
            tau=tau,
            x=None if y is None else x,
            y=y,
            ax=ax,
            feature_name=feature_name,
            target_name=target_name,
            **plot_options,
        )

    @classmethod
    def from_predictions(
        cls,
        grid: ArrayLike,
        predictions: ArrayLike,
        *,
        tau: float | ArrayLike,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        ax: Any = None,
        feature_name: str | None = None,
        target_name: str | None = None,
        **plot_options: Any,
    ) -> FanDisplay:
        """Draw levels that were predicted elsewhere.

        Parameters
        ----------
        grid : array (m,)
            Where the levels were predicted, in any order.
        predictions : array (m,) or (m, n_levels)
        tau : float or array (n_levels,)
        x, y : arrays (n,), optional
            Data to scatter.
        ax : matplotlib Axes, optional
        feature_name, target_name : str, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : FanDisplay
        """
        places = np.asarray(grid, dtype=np.float64)
        taus = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        levels = np.asarray(predictions, dtype=np.float64)
        levels = levels[:, None] if levels.ndim == 1 else levels
        if levels.shape != (len(places), len(taus)):
            raise ValueError(
                f"predictions must have shape ({len(places)}, {len(taus)}) for {len(places)} "
                f"points and {len(taus)} levels of tau, got {levels.shape}"
            )
        if (x is None) != (y is None):
            raise ValueError("x and y must be given together")
        order, rising = np.argsort(places, kind="stable"), np.argsort(taus, kind="stable")
        display = cls(
            grid=places[order],
            predictions=levels[order][:, rising],
            tau=taus[rising],
            x=None if x is None else np.asarray(x, dtype=np.float64),
            y=None if y is None else np.asarray(y, dtype=np.float64),
            feature_name=feature_name,
            target_name=target_name,
        )
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        ax: Any = None,
        *,
        colour: str = HUE,
        level_format: str = "{:.3g}",
        scatter_options: dict[str, Any] | None = None,
    ) -> FanDisplay:
        """Draw the fan.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        colour : str
            The hue of the fan; bands are tints of it.
        level_format : str
            How a level is written at the right end of its line.
        scatter_options : dict, optional
            Passed to ``Axes.scatter``.

        Returns
        -------
        self : FanDisplay
        """
        ax = self._take_axes(ax)
        self.bands_ = self._draw_bands(colour)
        self.scatter_ = self._draw_data(scatter_options or {})
        self.lines_ = self._draw_lines(colour)
        ax.margins(x=0.02)
        ax.set(xlabel=self.feature_name or "", ylabel=self.target_name or "")
        self.labels_ = self._draw_labels(colour, level_format)
        return self

    def _draw_bands(self, colour: str) -> list[Any]:
        """Between neighbouring levels, the darker the nearer to the middle."""
        middles = 0.5 * (self.tau[1:] + self.tau[:-1])
        return [
            self.ax_.fill_between(
                self.grid,
                self.predictions[:, k],
                self.predictions[:, k + 1],
                color=_tint(colour, 0.14 + 0.46 * (1.0 - 2.0 * abs(middle - 0.5))),
                linewidth=0,
                zorder=1,
            )
            for k, middle in enumerate(middles)
        ]

    def _draw_data(self, options: dict[str, Any]) -> Any:
        if self.x is None:
            return None
        defaults: dict[str, Any] = {
            "s": 10,
            "color": "0.1",
            "alpha": 0.45,
            "linewidths": 0,
            "zorder": 2,
        }
        return self.ax_.scatter(self.x, self.y, **(defaults | options))

    def _draw_lines(self, colour: str) -> list[Any]:
        """A heavy line on a white edge at ½, thin ones elsewhere."""
        from matplotlib import patheffects

        edge = [patheffects.Stroke(linewidth=3.6, foreground="white"), patheffects.Normal()]
        lines = []
        for tau, level in zip(self.tau, self.predictions.T, strict=True):
            middle = bool(np.isclose(tau, 0.5))
            (line,) = self.ax_.plot(
                self.grid,
                level,
                color=colour,
                linewidth=2.0 if middle else 0.7,
                zorder=4 if middle else 3,
                path_effects=edge if middle else None,
            )
            lines.append(line)
        return lines

    def _draw_labels(self, colour: str, level_format: str) -> list[Any]:
        """Each level at the right end of its line, joined to it where it had to move."""
        joint = {
            "arrowstyle": "-",
            "color": _tint(colour, 0.5),
            "linewidth": 0.6,
            "shrinkA": 0,
            "shrinkB": 1,
            "relpos": (0.0, 0.5),
        }
        weights = ["bold" if np.isclose(tau, 0.5) else "normal" for tau in self.tau]
        return label_ends(
            self.ax_,
            (self.grid[-1], self.predictions[-1]),
            [level_format.format(tau) for tau in self.tau],
            [{"color": colour, "fontweight": weight, "arrowprops": joint} for weight in weights],
            beside=1.03,
            height=LABEL_HEIGHT,
        )


def _column(feature: int | str, columns: Any, width: int) -> int:
    """The position of a feature given by position or name."""
    if isinstance(feature, str):
        names = [] if columns is None else [str(name) for name in columns]
        if feature not in names:
            raise ValueError(f"feature must name a column of X, got {feature!r}")
        return names.index(feature)
    if not 0 <= feature < width:
        raise ValueError(f"feature must lie between 0 and {width - 1}, got {feature!r}")
    return int(feature)


def _levels(estimator: Any) -> Array:
    """τ of an estimator, or of the last step of a pipeline."""
    last = last_step(estimator)
    tau = getattr(last, "tau", None)
    if tau is None:
        raise TypeError(f"a fan needs an estimator with levels tau, got {type(last).__name__}")
    return np.atleast_1d(np.asarray(tau, dtype=np.float64))


def _tint(colour: str, strength: float) -> tuple[float, float, float]:
    """A colour mixed with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (1.0 - strength * (1.0 - part) for part in to_rgb(colour))
    return red, green, blue
