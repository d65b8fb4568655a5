"""Figure 3 of the joint quantile paper from results of ``benchopt run benchmarks/joint_levels``.

    python -m benchmarks.joint_figure benchmarks/joint_levels/outputs/*.parquet --plot gaps.png

Prints the seconds to a relative duality gap of 1e-6 and draws gap against time.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pandas as pd

GOAL = 1e-6
#: a gap that is zero to rounding is drawn here
FLOOR = 1e-12
STYLES = {
    "auto": "C0o-",
    "primal_dual_cd with active set": "C1s-",
    "primal_dual_cd": "C2^-",
    "CVXOPT": "0.4",
}


def read(files: list[Path]) -> pd.DataFrame:
    """All points of all curves: n, epsilon, method, steps, time, gap."""
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    name = table["solver_name"].str
    return pd.DataFrame(
        {
            "n": table["dataset_name"].map(lambda text: int(_number(text))),
            "epsilon": table["objective_name"].map(_number),
            "method": name.extract(r"variant=(.*)\]", expand=False).fillna(table["solver_name"]),
            "steps": table["stop_val"],
            "time": table["time"],
            "gap": table["objective_value"],
        }
    )


def _number(text: str) -> float:
    found = re.search(r"=([\d.]+)\]", text)
    assert found is not None
    return float(found.group(1))


def show(points: pd.DataFrame) -> None:
    print(f"{'n':>5} {'ε':>4}  {'method':<31} {'s to 1e-6':>10} {'least gap':>10} {'after s':>8}")
    for (n, epsilon, method), curve in points.groupby(["n", "epsilon", "method"]):
        reached = curve.loc[curve["gap"] <= GOAL, "time"]
        best = curve.loc[curve["gap"].idxmin()]
        first = f"{reached.min():10.4f}" if len(reached) else f"{'–':>10}"
        print(f"{n:5d} {epsilon:4g}  {method:<31} {first} {best.gap:10.1e} {best.time:8.2f}")


def draw(points: pd.DataFrame, file: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    sizes, epsilons = sorted(points["n"].unique()), sorted(points["epsilon"].unique())
    _, axes = plt.subplots(
        len(sizes), len(epsilons), figsize=(3.2 * len(epsilons), 2.4 * len(sizes)),
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for (n, epsilon, method), curve in points.groupby(["n", "epsilon", "method"]):
        ax = axes[sizes.index(n), epsilons.index(epsilon)]
        ordered = curve.sort_values("steps")
        style = STYLES[method]
        line = {"color": style} if style[0] != "C" else {"color": style[:2], "marker": style[2]}
        ax.plot(ordered["time"], ordered["gap"].clip(lower=FLOOR), label=method, ms=3, lw=1, **line)
        ax.set(xscale="log", yscale="log", title=f"n = {n:,}, ε = {epsilon:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.axhline(GOAL, color="0.8", lw=0.8, zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("seconds")
    for ax in axes[:, 0]:
        ax.set_ylabel("relative gap")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure = axes[0, 0].figure
    figure.legend(lines, names, loc="outside lower center", ncols=len(names), frameon=False)
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--plot", help="file for the picture")
    options = parser.parse_args()
    points = read(options.files)
    show(points)
    if options.plot:
        draw(points, options.plot)


if __name__ == "__main__":
    main()
