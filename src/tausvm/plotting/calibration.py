"""Calibration of levels: nominal against observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inspection import (
    EXPECTILE,
    QUANTILE,
    as_columns,
    functional,
    levels,
    observed_level,
    predictions,
)
from .support import HUE, AxesDisplay

Array = NDArray[np.float64]

#: half-width of a 95 % interval in standard deviations
SPREAD = 1.96
SHARES = {
    QUANTILE: "share of targets at or below",
    EXPECTILE: "share of absolute deviations below",
}


@dataclass(kw_only=True, eq=False, repr=False)
class LevelCalibrationDisplay(AxesDisplay):
    """The level that predictions have on data against the level that they should have.

    A calibrated τ-quantile has a share τ of the targets at or below it; a calibrated τ-expectile
    has a share τ of the absolute deviations below it. Make one with :meth:`from_estimator` or
    :meth:`from_predictions`.

    Parameters
    ----------
    tau, observed : arrays (n_levels,)
        Nominal levels, rising, and what was observed.
    n_samples : int
    functional : {"quantile", "expectile"}

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
        The observed levels.
    ideal_ : Line2D
        The diagonal.
    band_ : PolyCollection or None
        Where 95 % of calibrated quantiles would be on so many samples; None for expectiles,
        for which it depends on the distribution.
    """

    tau: Array
    observed: Array
    n_samples: int
    functional: str = QUANTILE

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Any = None, **plot_options: Any
    ) -> LevelCalibrationDisplay:
        """Draw the calibration of a fitted estimator on data, best data it has not seen.

        Parameters
        ----------
        estimator : fitted estimator with ``tau``
            Of quantiles or expectiles, or a pipeline that ends with one.
        X : array or DataFrame (n, d)
        y : array (n,)
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : LevelCalibrationDisplay
        """
        estimated = functional(estimator)
        if estimated not in SHARES:
            raise TypeError(
                "calibration of levels needs an estimator of quantiles or expectiles, got "
                f"{type(estimator).__name__}"
            )
        return cls.from_predictions(
            y,
            predictions(estimator, X),
            tau=levels(estimator),
            functional=estimated,
            ax=ax,
            **plot_options,
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        predictions: ArrayLike,
        *,
        tau: float | ArrayLike,
        functional: str = QUANTILE,
        ax: Any = None,
        **plot_options: Any,
    ) -> LevelCalibrationDisplay:
        """Draw the calibration of levels that were predicted elsewhere.

        Parameters
        ----------
        y : array (n,)
        predictions : array (n,) or (n, n_levels)
        tau : float or array (n_levels,)
        functional : {"quantile", "expectile"}
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : LevelCalibrationDisplay
        """
        if functional not in SHARES:
            raise ValueError(f"functional must be one of {', '.join(SHARES)}, got {functional!r}")
        taus = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        target, columns = np.asarray(y, dtype=np.float64), as_columns(predictions)
        if columns.shape != (len(target), len(taus)):
            raise ValueError(
                f"predictions must have shape ({len(target)}, {len(taus)}) for {len(target)} "
                f"targets and {len(taus)} levels of tau, got {columns.shape}"
            )
        order = np.argsort(taus, kind="stable")
        observed = observed_level(target, columns, functional)
        display = cls(
            tau=taus[order],
            observed=observed[order],
            n_samples=len(target),
            functional=functional,
        )
        return display.plot(ax=ax, **plot_options)

    def plot(self, ax: Any = None, *, colour: str = HUE) -> LevelCalibrationDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        colour : str

        Returns
        -------
        self : LevelCalibrationDisplay
        """
        ax = self._take_axes(ax)
        self.band_ = self._draw_band()
        (self.ideal_,) = ax.plot([0, 1], [0, 1], "--", color="0.5", linewidth=1, label="calibrated")
        (self.line_,) = ax.plot(
            self.tau, self.observed, "o-", color=colour, markersize=5, linewidth=1.2, label="model"
        )
        ax.set(xlabel="level τ", ylabel=SHARES[self.functional], xlim=(0, 1), ylim=(0, 1))
        ax.set_aspect("equal")
        ax.legend(loc="upper left", frameon=False)
        return self

    def _draw_band(self) -> Any:
        """What chance does to calibrated quantiles: the count below is binomial."""
        if self.functional != QUANTILE:
            return None
        grid = np.linspace(0, 1, 201)
        half = SPREAD * np.sqrt(grid * (1 - grid) / self.n_samples)
        return self.ax_.fill_between(
            grid,
            np.maximum(grid - half, 0),
            np.minimum(grid + half, 1),
            color="0.9",
            linewidth=0,
            label=f"95 % of calibrated models on {self.n_samples} samples",
        )
