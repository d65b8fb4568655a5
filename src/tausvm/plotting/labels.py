"""Labels beside the ends of lines, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def spread(positions: Array, distance: float) -> Array:
    """The nearest positions, in the same order, that are at least ``distance`` apart.

    Nearest in the sum of squares: overlapping labels form clusters, and each cluster is
    centred on its own mean.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([0.0, 1.0, 1.5, 9.0]), 1.0)
    array([-0.16666667,  0.83333333,  1.83333333,  9.        ])
    """
    order = np.argsort(positions, kind="stable")
    steps = distance * np.arange(len(positions))
    # with y = x − steps the condition is that y does not fall: pool adjacent violators
    pools: list[tuple[float, int]] = []
    for value in positions[order] - steps:
        mean, count = float(value), 1
        while pools and pools[-1][0] > mean:
            other, size = pools.pop()
            mean = (mean * count + other * size) / (count + size)
            count += size
        pools.append((mean, count))
    out = np.empty(len(positions))
    out[order] = np.concatenate([np.full(size, mean) for mean, size in pools] or [steps]) + steps
    return out


def label_ends(
    ax: Any,
    ends: tuple[float, Array],
    texts: Sequence[str],
    looks: Sequence[dict[str, Any]],
    *,
    beside: float,
    height: float,
) -> list[Any]:
    """Name lines at their right ends; the limits of the axes must be final.

    Parameters
    ----------
    ax : matplotlib Axes
    ends : float and array (n_lines,)
        Where the lines end: x, and the y of each.
    texts : list of str
    looks : list of dict
        Passed to ``Axes.annotate``, one a label.
    beside, height : float
        Where labels stand and the height one of them takes, as shares of the axes.

    Returns
    -------
    labels : list of Annotation
    """
    x, heights = ends
    bottom, top = ax.get_ylim()
    placed = spread((heights - bottom) / (top - bottom), height)
    return [
        ax.annotate(
            text,
            xy=(x, y),
            xytext=(beside, place),
            textcoords=ax.transAxes,
            va="center",
            fontsize="small",
            annotation_clip=False,
            **look,
        )
        for text, y, place, look in zip(texts, heights, placed, looks, strict=True)
    ]
