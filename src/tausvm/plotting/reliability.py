"""Reliability: what is observed where a value was predicted. Through model-diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inspection import (
    EXPECTILE,
    LOCATION,
    QUANTILE,
    as_columns,
    functional,
    levels,
    predictions,
)
from .support import HUE, AxesDisplay, place_of, require_pyplot

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(AxesDisplay):
    """The reliability diagram of one level: conditional level given the prediction.

    Where the curve, an isotonic regression of the targets on the predictions, follows the
    diagonal, a predicted value can be taken at its word. Above it the model predicts too low,
    below it too high. Make one with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    y, predictions : arrays (n,)
    tau : float
    functional : {"expectile", "quantile"}
    target_name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    y: Array
    predictions: Array
    tau: float = 0.5
    functional: str = EXPECTILE
    target_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        tau: float | None = None,
        ax: Any = None,
        target_name: str | None = None,
        **plot_options: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a fitted estimator on data, best data it has not seen.

        Parameters
        ----------
        estimator : fitted estimator
            Of expectiles, quantiles or, as the mean, a regressor without levels; or a pipeline
            that ends with one.
        X : array or DataFrame (n, d)
        y : array (n,)
        tau : float, optional
            Which of the estimator's levels; the one nearest to ½ by default.
        ax : matplotlib Axes, optional
        target_name : str, optional
            By default the name of a Series.
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        estimated = functional(estimator)
        if estimated not in (EXPECTILE, QUANTILE, LOCATION):
            raise TypeError(f"reliability needs a regressor, got {type(estimator).__name__}")
        columns = as_columns(predictions(estimator, X))
        taus = levels(estimator) or [0.5]
        middle = int(np.argmin(np.abs(np.array(taus) - 0.5)))
        place = middle if tau is None else place_of(tau, taus)
        return cls.from_predictions(
            y,
            columns[:, place],
            tau=taus[place],
            functional=EXPECTILE if estimated == LOCATION else estimated,
            ax=ax,
            target_name=target_name if target_name is not None else getattr(y, "name", None),
            **plot_options,
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        predictions: ArrayLike,
        *,
        tau: float = 0.5,
        functional: str = EXPECTILE,
        ax: Any = None,
        target_name: str | None = None,
        **plot_options: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a level that was predicted elsewhere.

        Parameters
        ----------
        y, predictions : arrays (n,)
        tau : float
        functional : {"expectile", "quantile"}
        ax : matplotlib Axes, optional
        target_name : str, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        if functional not in (EXPECTILE, QUANTILE):
            raise ValueError(f"functional must be expectile or quantile, got {functional!r}")
        if not 0 < tau < 1:
            raise ValueError(f"tau must lie strictly between 0 and 1, got {tau!r}")
        display = cls(
            y=np.asarray(y, dtype=np.float64),
            predictions=np.asarray(predictions, dtype=np.float64),
            tau=float(tau),
            functional=functional,
            target_name=target_name,
        )
        return display.plot(ax=ax, **plot_options)

    def plot(
        self,
        ax: Any = None,
        *,
        colour: str = HUE,
        n_bootstrap: int | None = None,
        confidence_level: float = 0.9,
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        colour : str
        n_bootstrap : int, optional
            Resamples for a band of uncertainty; none by default.
        confidence_level : float
            Of that band.

        Returns
        -------
        self : ReliabilityDisplay
        """
        require_pyplot(type(self).__name__)
        try:
            from model_diagnostics import config_context
            from model_diagnostics.calibration import plot_reliability_diagram
        except ImportError as error:
            raise ImportError(
                "ReliabilityDisplay needs model-diagnostics, which is not installed: "
                "pip install 'tausvm[diagnostics]'"
            ) from error
        ax = self._take_axes(ax)
        before = len(ax.lines)
        with config_context(plot_backend="matplotlib"):
            plot_reliability_diagram(
                self.y,
                self.predictions,
                functional=self.functional,
                level=self.tau,
                n_bootstrap=n_bootstrap,
                confidence_level=confidence_level,
                ax=ax,
            )
        for line in ax.lines[before:]:
            line.set_color("0.5" if line.get_linestyle() in (":", "--", "dotted") else colour)
        for band in ax.collections:
            band.set_color(colour)
            band.set_alpha(0.18)
        name = self.target_name or "target"
        ax.set(
            title=f"Reliability of the {self.functional} at τ = {self.tau:g}",
            xlabel=f"predicted {self.functional} of {name}",
            ylabel=f"observed {self.functional} of {name} there",
        )
        return self
