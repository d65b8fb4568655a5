"""What displays share: matplotlib or a clear word that it is missing, axes, hues, levels."""

from __future__ import annotations

from typing import Any

import numpy as np

#: the hue of all displays
HUE = "#1f4e79"
#: of the positive and the negative class
CLASS_HUES = (HUE, "#b1452c")


def require_pyplot(caller: str) -> Any:
    """``matplotlib.pyplot``, imported when first needed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed: pip install 'tausvm[plot]'"
        ) from error
    return plt


def place_of(tau: float, taus: list[float]) -> int:
    """Which of an estimator's levels this one is."""
    equal = np.isclose(taus, tau)
    if not equal.any():
        raise ValueError(f"tau must be one of the estimator's levels {taus}, got {tau!r}")
    return int(equal.argmax())


def hide_frame(ax: Any) -> None:
    """Leave the two axes alone: no lines above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)


class AxesDisplay:
    """Base of the displays that draw on one pair of axes."""

    ax_: Any
    figure_: Any

    def _take_axes(self, ax: Any) -> Any:
        """The axes to draw on: those given, or those of a new figure."""
        plt = require_pyplot(type(self).__name__)
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        hide_frame(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return ax
