"""A figure an estimator: seconds against n on log axes, a panel a factor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from .machines import MACHINES
from .marks import OURS, Mark, Record

#: a factor, and which profiles belong to its panel beside the centre
PANELS = {
    "features": lambda profile: profile.startswith("d ="),
    "target": lambda profile: profile in ("hard", "noise_free"),
    "cost": lambda profile: profile.startswith("C ="),
    "levels": lambda profile: profile.endswith("levels"),
}
#: the centre's own value in each panel
CENTRE = {"features": "d = 10", "target": "easy", "cost": "C = 1"}
COLOURS = ("#1f2937", "#0072b2", "#d55e00", "#009e73")
STYLES = ("--", ":", "-.")
#: how a mark is drawn: marker and what it says
MARKERS = {
    "falls": ("v", "more rows cost less"),
    "auto": ("s", "another solver is faster"),
    "peer": ("o", "a peer is faster"),
    "unsolved": ("x", "not solved"),
    "over": ("^", "over the limit"),
}


def draw(records: Sequence[Record], marks: Sequence[Mark], clock: str, file: Path) -> None:
    """Write the figure of one estimator."""
    lines: dict[str, list[Record]] = {}
    for record in records:
        if record.profile != "random":
            lines.setdefault(record.profile, []).append(record)
    if not lines:
        return
    panels = {
        name: [profile for profile in lines if belongs(profile)] for name, belongs in PANELS.items()
    }
    panels = {name: profiles for name, profiles in panels.items() if profiles} or {"rows": []}
    estimator = records[0].place.estimator
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.6 * len(panels) + 0.6, 4.6), sharey=True, squeeze=False
    )
    for axis, (name, profiles) in zip(axes[0], panels.items(), strict=True):
        _panel(axis, name, [p for p in ("centre", *profiles) if p in lines], lines, clock)
        _marked(axis, marks, {r.place for p in ("centre", *profiles) for r in lines.get(p, [])})
    axes[0][0].set_ylabel(f"seconds ({clock})")
    figure.suptitle(estimator, x=0.02, ha="left", fontweight="bold")
    _explain(figure, estimator, marks)
    figure.tight_layout(rect=(0, 0.06 + 0.04 * (len(figure.axes) == 1), 1, 0.99))
    figure.savefig(file, dpi=130)
    plt.close(figure)


def _panel(
    axis: Any, name: str, profiles: Sequence[str], lines: dict[str, list[Record]], clock: str
) -> None:
    """The profiles of one factor: ours solid, peers broken, one colour a value."""
    for colour, profile in zip(COLOURS, profiles, strict=False):
        line = sorted(lines[profile], key=lambda record: record.place.n)
        first = line[0].place
        centre = CENTRE.get(name, f"{first.levels} level{'s' * (first.levels > 1)}")
        label = centre if profile == "centre" else profile.replace("_", "-")
        for side, style in _sides(first.estimator):
            ended = [(r.place.n, r.best(side, clock)) for r in line]
            drawn = [(n, seconds) for n, seconds in ended if seconds is not None]
            if drawn:
                axis.plot(
                    *zip(*drawn, strict=True),
                    style,
                    color=colour,
                    lw=1.8 if side == OURS else 1.1,
                    label=label if side == OURS else None,
                )
    axis.set(xscale="log", yscale="log", xlabel="rows n", title=name)
    axis.grid(alpha=0.25, which="major")
    axis.legend(frameon=False, fontsize=8, loc="upper left")


def _sides(estimator: str) -> list[tuple[str, str]]:
    """Ours and the peers, each with its line style."""
    return [(OURS, "-"), *zip(MACHINES[estimator].peers, STYLES, strict=False)]


def _marked(axis: Any, marks: Sequence[Mark], places: set[Any]) -> None:
    """The marks of the places in a panel, in red."""
    for mark in marks:
        if mark.place in places:
            marker = MARKERS[mark.kind][0]
            face = {} if marker == "x" else {"markerfacecolor": "none"}
            axis.plot(mark.place.n, mark.seconds, marker, color="#cc0000", ms=8, **face)


def _explain(figure: Any, estimator: str, marks: Sequence[Mark]) -> None:
    """Below the panels: line styles, and the markers that occur."""
    handles = [
        Line2D([], [], color="#1f2937", ls=style, label="tausvm" if side == OURS else side)
        for side, style in _sides(estimator)
    ]
    for kind, (marker, words) in MARKERS.items():
        if any(mark.kind == kind for mark in marks):
            face = {} if marker == "x" else {"markerfacecolor": "none"}
            handles.append(
                Line2D([], [], ls="", marker=marker, color="#cc0000", label=words, **face)
            )
    columns = max(2, 2 * len(figure.axes))
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=8)
