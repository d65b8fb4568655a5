"""What features count in a learned metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..estimators.parameters import check_integer
from ..inspection import feature_names as names_of
from ..inspection import last_step
from .support import HUE, AxesDisplay

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureImportanceDisplay(AxesDisplay):
    """A bar a feature: its share in the metric, the largest on top.

    The last bar is what the features share that are not shown. Make one with
    :meth:`from_estimator`.

    Parameters
    ----------
    importances : array (n_features,)
        Shares, in the order of the features.
    names : list of str
    max_features : int
        Bars at most.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : BarContainer
        From top to bottom.
    """

    importances: Array
    names: list[str]
    max_features: int = 20

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Any = None,
        **plot_options: Any,
    ) -> FeatureImportanceDisplay:
        """Draw what the features count for a fitted estimator that learns them.

        Parameters
        ----------
        estimator : SVRCV, QuantileSVRCV, ExpectileSVRCV or FeatureMetric
            Or a pipeline that ends with one.
        feature_names : sequence of str, optional
            By default the names that the estimator, or the step before it, knows.
        max_features : int
            Bars at most; one for all the others comes on top of it.
        ax : matplotlib Axes, optional
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        display : FeatureImportanceDisplay
        """
        machine = last_step(estimator)
        if not hasattr(type(machine), "fit"):
            raise TypeError(f"importances need an estimator, got {type(machine).__name__}")
        check_is_fitted(machine)
        shares = getattr(machine, "feature_importances_", None)
        if shares is None:
            raise TypeError(f"{type(machine).__name__} learns no features")
        names = names_of(estimator, feature_names)
        display = cls(importances=np.asarray(shares), names=names, max_features=max_features)
        return display.plot(ax=ax, **plot_options)

    def plot(self, ax: Any = None, *, colour: str = HUE) -> FeatureImportanceDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure if None.
        colour : str

        Returns
        -------
        self : FeatureImportanceDisplay
        """
        check_integer("max_features", self.max_features, 1)
        ax = self._take_axes(ax)
        order = np.argsort(-self.importances, kind="stable")
        shown, rest = order[: self.max_features], order[self.max_features :]
        shares = [float(self.importances[k]) for k in shown]
        labels = [self.names[k] for k in shown]
        colours = [colour] * len(shown)
        if len(rest):
            shares.append(float(self.importances[rest].sum()))
            labels.append(f"{len(rest)} others")
            colours.append("0.75")
        places = np.arange(len(shares))
        self.bars_ = ax.barh(places, shares, color=colours, height=0.72)
        percent = [f"{100 * share:.1f} %" for share in shares]
        ax.bar_label(self.bars_, percent, padding=3, fontsize="small", color="0.4")
        ax.set_yticks(places, labels)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.set_xlim(0.0, 1.12 * max(shares))
        ax.set_xlabel("share in the metric")
        return self
