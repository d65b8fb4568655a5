"""Five tuned quantiles of many rows: seconds, memory and losses, ours and other libraries'.

    python -m benchmarks.large --out large.jsonl                 # up to a million rows, and real
    python -m benchmarks.large --sizes 1e4 --data protein        # less of it
    python -m benchmarks.large --ours 'few={"landmarks": 250}'   # a variant of ours as well
    python -m benchmarks.large --ours 'some={"large": {"selection_rows": 2500}}'
    python -m benchmarks.large --summary --plot docs/images/large.png    # what is there

Every fit has a process of its own, whose memory is measured. Every result is a line of ``--out``
at once, and what is there is not run again; a run that failed is. Data: ``large_data.py``. Methods:
our default call, LightGBM's, LightGBM tuned for as long as ours took (``table_search.py``), and
liquidSVM with cells of 2,000 rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from . import large_data
from .map import about
from .table_methods import OURS, QUANTILES, missing
from .tables import (
    PACKAGES,
    TUNED_PATIENCE,
    Expected,
    Results,
    Run,
    budget_of,
    span,
    variant,
)
from .worker import Died, TooLong, Worker

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
#: seconds that one fit may take
LIMIT = 3_600.0
#: cells of about so many rows, found by a tree; few values of the grid are tried
CELLS = {"partition_choice": 6, "partition_param": 2000, "adaptivity_control": 1}
SIDES: tuple[dict[str, Any], ...] = (
    {"method": OURS},
    {"method": "lightgbm"},
    {"method": "lightgbm", "tuned": True},
    {"method": "liquidSVM", "variant": "cells", "arguments": CELLS},
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    results = Results(args.out)
    if not args.summary:
        measure(results, wanted(args), args)
    print(page(results))
    if args.plot is not None:
        draw(results, args.plot)


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--out", type=Path, default=Path("large.jsonl"), help="JSON lines")
    parse.add_argument("--sizes", nargs="*", type=float, default=list(SIZES), help="generated rows")
    parse.add_argument("--data", nargs="*", default=list(large_data.REAL), help="real tables")
    parse.add_argument("--methods", nargs="*", help="labels; by default all")
    parse.add_argument("--ours", nargs="+", default=[], metavar="NAME=JSON", help="variants")
    parse.add_argument("--jobs", type=int, default=2, help="threads a method may use")
    parse.add_argument("--limit", type=float, default=LIMIT, help="seconds a fit may take")
    parse.add_argument("--hours", type=float, default=24.0, help="begin nothing after these")
    parse.add_argument("--tree", type=Path, help="a folder whose src/tausvm is built: that one")
    parse.add_argument("--plot", type=Path, help="a picture of seconds and memory against rows")
    parse.add_argument("--summary", action="store_true", help="measure nothing")
    return parse


# ------------------------------------------------------------------- what to run


def wanted(args: argparse.Namespace) -> list[Run]:
    """The runs in their order: small data first, and ours before those that take its time."""
    places: list[tuple[str, int | None]] = [(large_data.GENERATED, int(n)) for n in args.sizes]
    for name in args.data:
        reason = large_data.missing(name)
        if reason:
            print(f"left out: {name}: {reason}")
        else:
            places.append((name, None))
    return [Run(name, 0, rows, **side) for name, rows in places for side in sides(args)]


def sides(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Methods with their arguments that can be had here."""
    found = []
    for side in (*SIDES, *(variant(text) for text in args.ours)):
        label = Run("", 0, None, **side).label
        if args.methods is not None and label not in args.methods and side in SIDES:
            continue
        if missing(QUANTILES[side["method"]]):
            print(f"left out: {label}: not installed")
        else:
            found.append(side)
    return found


def measure(results: Results, runs: Sequence[Run], args: argparse.Namespace) -> None:
    """Run what is not known, until the time is over."""
    rest = [run for run in runs if not results.known(run)]
    print(f"{len(runs)} runs, {len(runs) - len(rest)} of them known", flush=True)
    if not rest:
        return
    results.write({"about": {**about(PACKAGES), "jobs": args.jobs}})
    # threads that wait for others turn in circles by default, which a busy machine pays dearly for
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    expected, ends = Expected(results), time.monotonic() + 3600.0 * args.hours
    for done, run in enumerate(rest):
        if time.monotonic() > ends:
            print(f"the time is over; {len(rest) - done} runs are left for another call")
            return
        budget = budget_of(results, run)
        if budget is None:
            print(f"left out: {run.table} {run.label}: run {OURS} first, it sets the budget")
            continue
        measures = ask(run, args, budget)
        results.note(run, measures)
        if "seconds" in measures:
            expected.add(run, measures["seconds"])
        left = span(expected.seconds(rest[done + 1 :]))
        print(f"{line_of(run, measures)}   {done + 1}/{len(rest)}, about {left} left", flush=True)


def ask(run: Run, args: argparse.Namespace, budget: float) -> dict[str, Any]:
    """The measures of a run in a process of its own, or why there are none."""
    limit = max(args.limit, TUNED_PATIENCE * budget)
    try:
        with Worker(args.tree, "benchmarks.large_worker") as worker:
            return worker.ask({**asdict(run), "jobs": args.jobs, "budget": budget}, limit)
    except TooLong:
        return {"over": limit}
    except Died:
        return {"failed": "the process died"}


# -------------------------------------------------------------------- what is told


def name_of(run: Run) -> str:
    """The data of a run."""
    return run.table if run.rows is None else f"{run.table} {run.rows:,}"


def line_of(run: Run, measures: dict[str, Any]) -> str:
    """A result in one line."""
    start = f"{name_of(run):<20} {run.label:<18}"
    if "loss" in measures:
        return (
            f"{start} loss {measures['loss']:.4f} {measures['seconds']:7.1f} s "
            f"{measures['cpu']:7.1f} s of processors {measures['megabytes'] / 1024:5.2f} GB"
        )
    if "over" in measures:
        return f"{start} more than {measures['over']:.0f} s"
    return f"{start} failed: {measures['failed']}"


def page(results: Results) -> str:
    """A table of all runs, in Markdown."""
    lines = [
        "| data | n × d | method | seconds | of processors | GB | pinball loss by level | gap |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run, found in sorted(results.ended(), key=lambda pair: _order(*pair)):
        if "loss" not in found:
            why = f"more than {span(found['over'])}" if "over" in found else found["failed"]
            lines.append(f"| {name_of(run)} | | {run.label} | {why} | | | | |")
            continue
        levels = ", ".join(f"{loss:.4g}" for loss in found["pinball"])
        gap = f"{max(found['gaps']):.0e}" if "gaps" in found else ""
        about_it = "" if found.get("exact", True) else "about "
        lines.append(
            f"| {name_of(run)} | {found['n']:,} × {found['d']} | {run.label} "
            f"| {found['seconds']:.0f} | {found['cpu']:.0f} | {found['megabytes'] / 1024:.2f} "
            f"| {levels} | {about_it}{gap} |"
        )
    return "\n".join(lines)


def _order(run: Run, found: dict[str, Any]) -> tuple[bool, str, int, bool, str]:
    """Generated data first, by their size, and ours before others."""
    generated = run.table != large_data.GENERATED
    return generated, run.table, run.rows or 0, run.method != OURS, run.label


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of a line through the logarithms; NaN for fewer than two sizes."""
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def draw(results: Results, path: Path) -> None:
    """Processor seconds, memory and loss against generated rows, with slopes."""
    from matplotlib.figure import Figure

    shown = {"cpu": "seconds of processors", "megabytes": "MB at most", "loss": "relative loss"}
    figure = Figure(figsize=(13.0, 4.2), layout="constrained")
    axes = figure.subplots(1, len(shown))
    by_label: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for run, found in sorted(results.ended(), key=lambda pair: _order(*pair)):
        if run.table == large_data.GENERATED and "loss" in found:
            by_label.setdefault(run.label, []).append((found["n"], found))
    for axis, (what, title) in zip(axes, shown.items(), strict=True):
        for label, found_there in by_label.items():
            sizes = [n for n, _ in found_there]
            values = [found[what] for _, found in found_there]
            told = label if what == "loss" else f"{label}: slope {slope(sizes, values):.2f}"
            axis.plot(sizes, values, "o-", label=told)
        axis.set_xscale("log")
        if what != "loss":
            axis.set_yscale("log")
        axis.set_xlabel("training rows")
        axis.set_ylabel(title)
        axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
