"""Pictures of :mod:`benchmarks.tables`: mean ranks with their critical difference, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from .table_methods import OURS
from .table_report import Comparison, against, complete, critical_difference, geometric, ranks

Array = NDArray[np.float64]

INK = "#1f2937"
MINE = "#0072b2"
OTHERS = "#6b7280"


def draw(comparison: Comparison, base: Path) -> None:
    """Write ``base_<what>_ranks.png`` and ``base_<what>_losses.png``."""
    if len(comparison.labels) < 2:
        return
    losses = complete(comparison, range(len(comparison.labels)))
    ranks_file = base.with_name(f"{base.name}_{comparison.stem}_ranks.png")
    if len(losses):
        rank_diagram(comparison.labels, ranks(losses).mean(axis=0), len(losses), ranks_file)
    losses_figure(comparison, base.with_name(f"{base.name}_{comparison.stem}_losses.png"))


def colour(label: str) -> str:
    """Ours stand out."""
    return MINE if label.startswith(OURS) else OTHERS


# ------------------------------------------------------------------------ ranks


def cliques(mean_ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Longest runs of methods, sorted by rank, whose ends are no further apart than this."""
    found: list[tuple[int, int]] = []
    for first, low in enumerate(mean_ranks):
        last = max(k for k, high in enumerate(mean_ranks) if high - low <= difference)
        if last > first and not any(last <= end for _, end in found):
            found.append((first, last))
    return found


def rank_diagram(labels: Sequence[str], mean_ranks: Array, tables: int, file: Path) -> None:
    """Demšar's diagram: an axis of mean ranks, the best left; bars join what is not told apart."""
    order = np.argsort(mean_ranks)
    sorted_ranks = [float(mean_ranks[k]) for k in order]
    names = [labels[k] for k in order]
    count, difference = len(names), critical_difference(len(names), tables)
    bars = cliques(sorted_ranks, difference)
    half = (count + 1) // 2
    top = 0.35 + 0.22 * len(bars)
    figure, axis = plt.subplots(figsize=(8.0, 1.2 + 0.25 * len(bars) + 0.3 * half))
    axis.set(xlim=(1 - 0.45 * count, count + 0.45 * count), ylim=(top + 0.45 * half, -1.3))
    axis.axis("off")
    axis.plot([1, count], [0, 0], color=INK, lw=1)
    for tick in range(1, count + 1):
        axis.plot([tick, tick], [0, -0.12], color=INK, lw=1)
        axis.text(tick, -0.18, str(tick), ha="center", va="bottom", fontsize=9)
    axis.plot([1, 1 + difference], [-0.85, -0.85], color=INK, lw=2)
    words = f"critical difference {difference:.2f} ({tables} tables)"
    axis.text(1, -0.95, words, va="bottom", fontsize=9)
    for level, (first, last) in enumerate(bars):
        ends = [sorted_ranks[first] - 0.04, sorted_ranks[last] + 0.04]
        axis.plot(ends, [0.25 + 0.22 * level] * 2, color=INK, lw=3, solid_capstyle="butt")
    for k, (rank, name) in enumerate(zip(sorted_ranks, names, strict=True)):
        left = k < half
        height = top + 0.4 * (k if left else count - 1 - k)
        side = 1 - 0.08 * count if left else count + 0.08 * count
        axis.plot([rank, rank, side], [0, height, height], color=colour(name), lw=1)
        text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        where: dict[str, Any] = {"ha": "right" if left else "left", "va": "center"}
        axis.text(side, height, f" {text} ", color=colour(name), fontsize=9, **where)
    figure.savefig(file, dpi=150, bbox_inches="tight")
    plt.close(figure)


# ----------------------------------------------------------------------- losses


def losses_figure(comparison: Comparison, file: Path) -> None:
    """Left: a point a table, loss over the reference's. Right: mean loss against seconds."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.0, 1.8 + 0.35 * len(comparison.labels)), width_ratios=(3, 2)
    )
    _ratios(left, comparison)
    _seconds(right, comparison)
    figure.suptitle(comparison.title, x=0.02, ha="left", fontweight="bold", fontsize=10)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def _ratios(axis: Any, comparison: Comparison) -> None:
    """Every method a line of points, and the geometric mean with two standard errors."""
    losses = comparison.values["loss"]
    others = [j for j in range(len(comparison.labels)) if j != comparison.reference]
    others.sort(key=lambda j: against(comparison, j)[0])
    for height, j in enumerate(others):
        ratios = losses[:, j] / losses[:, comparison.reference]
        spread = np.linspace(-0.2, 0.2, len(ratios))
        hue = colour(comparison.labels[j])
        axis.plot(ratios, height + spread, "o", ms=3, alpha=0.5, color=hue)
        mean, error = against(comparison, j)
        ends = mean * np.exp(2 * error * np.array([-1, 1]))
        axis.plot(ends, [height] * 2, color=INK, lw=2)
        axis.plot(mean, height, "D", color=INK, ms=5)
    axis.axvline(1.0, color=MINE, lw=1)
    axis.set_yticks(range(len(others)), [comparison.labels[j] for j in others])
    name = comparison.labels[comparison.reference]
    axis.set(xscale="log", xlabel=f"loss over {name}'s; right of 1: {name} is better")
    _plain_ticks(axis)
    axis.invert_yaxis()


def _plain_ticks(axis: Any) -> None:
    """Ratios are read as decimals, and not more of them than fit."""
    low, high = axis.get_xlim()
    steps = [0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50]
    shown = [step for step in steps if low <= step <= high]
    if len(shown) > 9:
        shown = [step for step in shown if step in (0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20, 50)]
    axis.set_xticks(shown, [f"{step:g}" for step in shown])
    axis.minorticks_off()
    axis.set_xlim(low, high)


def _seconds(axis: Any, comparison: Comparison) -> None:
    """What a better prediction costs."""
    for j, label in enumerate(comparison.labels):
        seconds = float(np.nanmedian(comparison.values["seconds"][:, j]))
        loss = geometric(comparison.values["loss"][:, j])
        axis.plot(seconds, loss, "o", color=colour(label))
        axis.annotate(
            label, (seconds, loss), (4, 4), textcoords="offset points", fontsize=8, color=INK
        )
    what = "1 − R²" if comparison.mean else "loss over constants'"
    axis.set(xscale="log", xlabel="seconds, median", ylabel=f"{what}, geometric mean")
    axis.margins(x=0.25, y=0.12)
    low, high = axis.get_xlim()
    steps = [size * 10.0**k for k in range(-3, 5) for size in (1, 2, 5)]
    shown = [step for step in steps if low <= step <= high]
    axis.set_xticks(shown, [f"{step:g}" for step in shown])
    axis.minorticks_off()
    axis.grid(alpha=0.25)
