"""Pictures of the first page, light and dark: ``python docs/images/hero.py`` writes them."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tausvm import QuantileSVR

HERE = Path(__file__).parent
THEMES = {
    "light": {"text": "#475066", "points": "#5b6475", "fan": "#1f6feb", "dual": "#b45309"},
    "dark": {"text": "#b9c4d6", "points": "#aab4c5", "fan": "#6cb6ff", "dual": "#ffb27a"},
}
TAUS = [0.05, 0.15, 0.25, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95]


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A wave whose spread grows and falls."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.uniform(0, 1, n))
    spread = 0.05 + 0.5 * np.exp(-(((x - 0.68) / 0.2) ** 2))
    return x[:, None], 0.9 * np.sin(6 * x) + 0.6 * x + spread * rng.normal(size=n)


def style(colours: dict[str, str]) -> dict[str, object]:
    """What all pictures share."""
    return {
        "svg.hashsalt": "hero",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 11,
        "text.color": colours["text"],
        "axes.edgecolor": colours["text"],
        "axes.labelcolor": colours["text"],
        "xtick.color": colours["text"],
        "ytick.color": colours["text"],
        "axes.spines.top": False,
        "axes.spines.right": False,
    }


def draw_fan(colours: dict[str, str]) -> plt.Figure:
    """Points and nine quantiles, the named ones at the right."""
    X, y = sample(320)
    model = QuantileSVR(tau=TAUS, C=4, gamma=12).fit(X, y)
    grid = np.linspace(0, 1, 240)
    levels = model.predict(grid[:, None])
    figure, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
    for k in range(4):
        ax.fill_between(
            grid, levels[:, k], levels[:, -1 - k], color=colours["fan"], alpha=0.13, lw=0
        )
    for k, tau in enumerate(TAUS):
        ax.plot(grid, levels[:, k], color=colours["fan"], lw=2.6 if tau == 0.5 else 0.8)
    ax.scatter(X[:, 0], y, s=9, color=colours["points"], alpha=0.65, linewidths=0)
    widest = np.argmax(levels[:, -1] - levels[:, 0])
    for k, name in ((-1, "95 %"), (0, "5 %")):
        ax.annotate(
            name,
            (grid[widest], levels[widest, k]),
            xytext=(0, 7 if k else -7),
            textcoords="offset points",
            ha="center",
            va="bottom" if k else "top",
            fontweight="bold",
        )
    ax.set(xlim=(0, 1), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return figure


def draw_certificate(colours: dict[str, str]) -> plt.Figure:
    """The two objectives on their way to each other, by fits that were stopped early."""
    X, y = sample(320)
    stops = np.unique(np.geomspace(20, 1500, 40).astype(int))
    primal, dual = [], []
    for stop in stops:
        machine = QuantileSVR(tau=0.9, C=4, gamma=12, solver="smo", max_iter=int(stop))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they were stopped
            result = machine.fit(X, y).result_
        primal.append(result.primal_objective)
        dual.append(result.dual_objective)
    best = primal[-1]
    figure, ax = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
    ax.fill_between(stops, primal, dual, color=colours["fan"], alpha=0.13, lw=0)
    ax.plot(stops, primal, color=colours["fan"], lw=2.4)
    ax.plot(stops, dual, color=colours["dual"], lw=2.4)
    ax.text(stops[0], primal[0], " what the fit has (primal)", va="bottom", color=colours["fan"])
    ax.text(stops[0], dual[0], " what no fit goes below (dual)", va="top", color=colours["dual"])
    ax.annotate("gap", (stops[6], best), ha="center", va="center", fontweight="bold")
    ax.set(xscale="log", xlabel="steps", yticks=[], xticks=[])
    ax.minorticks_off()
    ax.spines["left"].set_visible(False)
    ax.margins(x=0.01, y=0.16)
    return figure


for theme, chosen in THEMES.items():
    with plt.rc_context(style(chosen)):
        for name, draw in (("fan", draw_fan), ("gap", draw_certificate)):
            made = draw(chosen)
            made.savefig(
                HERE / f"hero_{name}_{theme}.svg", transparent=True, metadata={"Date": None}
            )
            plt.close(made)
