"""What :mod:`benchmarks.tables` found: means, ranks, wins, as Markdown and as pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from .table_methods import OURS, methods

if TYPE_CHECKING:
    from .tables import Run

Array = NDArray[np.float64]
Measures = dict[str, Any]
Ended = Sequence[tuple["Run", Measures]]

#: of the tests of ranks
SIGNIFICANCE = 0.05
#: losses are not taken to be better than this: a logarithm has to exist
LEAST_LOSS = 1e-6


@dataclass(frozen=True)
class Comparison:
    """Runs of the same rows and kind, the splits averaged: a row a table, a column a method."""

    rows: int | None
    mean: bool
    tables: list[str]
    labels: list[str]
    #: which labels are default calls
    defaults: list[bool]
    #: mean over the splits by measure; NaN where a method has no result
    values: dict[str, Array]
    #: whether a method was run on a table, with or without a result
    tried: NDArray[np.bool_]
    #: standard error of the mean of log losses over the splits, NaN with one split
    split_errors: Array
    #: splits of a table
    splits: list[int]
    #: runs that failed or took too long
    troubles: list[str]

    @property
    def title(self) -> str:
        """What is compared."""
        rows = "all training rows" if self.rows is None else f"at most {self.rows:,} training rows"
        return f"{'Mean' if self.mean else 'Quantiles'}, {rows}"

    @property
    def stem(self) -> str:
        """The same for a file name."""
        return f"{'mean' if self.mean else 'quantiles'}_{self.rows or 'full'}"

    @property
    def reference(self) -> int:
        """The column that others are divided by: ours, or the first."""
        return self.labels.index(OURS) if OURS in self.labels else 0


def compare(ended: Ended) -> list[Comparison]:
    """A comparison for each number of rows and kind."""
    groups: dict[tuple[int, bool], list[tuple[Run, Measures]]] = defaultdict(list)
    for run, measures in ended:
        groups[run.rows or 0, run.mean].append((run, measures))
    return [
        found
        for (rows, mean), group in sorted(groups.items())
        if (found := _one(rows or None, mean, group)) is not None
    ]


def _one(rows: int | None, mean: bool, group: Ended) -> Comparison | None:
    """Only splits of a table that every method ended that has anything of it: pairs, no holes."""
    by: dict[tuple[str, str], dict[int, Measures]] = defaultdict(dict)
    pairs = {(run.table, run.label) for run, _ in group}
    defaults: dict[str, bool] = {}
    troubles = []
    for run, measures in group:
        defaults[run.label] = run.is_default
        if "loss" in measures:
            by[run.table, run.label][run.split] = measures
        else:
            why = measures.get("failed") or f"more than {measures['over']:.0f} s"
            troubles.append(f"{run.table}, split {run.split}, {run.label}: {why}")
    if not by:
        return None
    order = list(methods(mean))

    def place(label: str) -> tuple[int, str]:
        """Ours with its variants, then peers in the list's order, tuned ones last."""
        known = [order.index(name) for name in order if label.startswith(name)]
        return (known[0] if known else len(order)) + 100 * label.endswith(" tuned"), label

    labels = sorted({label for _, label in by}, key=place)
    tables = list(dict.fromkeys(table for table, _ in by))
    measures_of = sorted({name for runs in by.values() for each in runs.values() for name in each})
    names = [name for name in measures_of if name not in ("levels", "tried")]
    values = {name: np.full((len(tables), len(labels)), np.nan) for name in names}
    errors = np.full((len(tables), len(labels)), np.nan)
    splits = []
    for i, table in enumerate(tables):
        there = [set(by[table, label]) for label in labels if by.get((table, label))]
        common = sorted(set.intersection(*there)) if there else []
        splits.append(len(common))
        for j, label in enumerate(labels):
            runs = [by[table, label][split] for split in common if by.get((table, label))]
            for name in names:
                if runs and all(name in run for run in runs):
                    values[name][i, j] = np.mean([run[name] for run in runs])
            if len(runs) > 1:
                logs = np.log([max(run["loss"], LEAST_LOSS) for run in runs])
                errors[i, j] = np.std(logs, ddof=1) / np.sqrt(len(logs))
    tried = np.array([[(table, label) in pairs for label in labels] for table in tables])
    flags = [defaults[label] for label in labels]
    return Comparison(rows, mean, tables, labels, flags, values, tried, errors, splits, troubles)


# -------------------------------------------------------------------- statistics


def complete(comparison: Comparison, columns: Sequence[int]) -> Array:
    """Losses of the tables that all of these methods were run on; who has no result is last."""
    losses = comparison.values["loss"][:, list(columns)]
    everyone = comparison.tried[:, list(columns)].all(axis=1)
    losses = losses[everyone & np.isfinite(losses).any(axis=1)]
    return np.where(np.isfinite(losses), losses, np.inf)


def ranks(losses: Array) -> Array:
    """The rank of each column in each row, 1 for the least; equals share theirs."""
    return np.asarray(rankdata(losses, axis=1)) if losses.size else losses


def critical_difference(k: int, tables: int) -> float:
    """Nemenyi: mean ranks of k methods on so many tables differ when further apart than this.

    ``q·√(k(k + 1)/(6N))``, q the studentised range's quantile over √2 (J. Demšar, "Statistical
    Comparisons of Classifiers over Multiple Data Sets", 2006).
    """
    q = studentized_range.ppf(1.0 - SIGNIFICANCE, k, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(k * (k + 1) / (6.0 * tables)))


def friedman(losses: Array) -> float:
    """The probability of ranks this uneven if all methods were alike; NaN below three of them."""
    if losses.shape[1] < 3 or len(losses) < 2:
        return float("nan")
    return float(friedmanchisquare(*ranks(losses).T).pvalue)


def geometric(values: Array) -> float:
    """The geometric mean of what is there."""
    known = values[np.isfinite(values)]
    return float(np.exp(np.mean(np.log(np.maximum(known, LEAST_LOSS))))) if len(known) else np.nan


def against(comparison: Comparison, column: int) -> tuple[float, float]:
    """Geometric mean of a method's loss over the reference's, and its standard error in logs."""
    losses = np.maximum(comparison.values["loss"], LEAST_LOSS)
    logs = np.log(losses[:, column] / losses[:, comparison.reference])
    logs = logs[np.isfinite(logs)]
    if not len(logs):
        return np.nan, np.nan
    error = float(np.std(logs, ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else np.nan
    return float(np.exp(logs.mean())), error


# ---------------------------------------------------------------------- Markdown


def markdown(comparison: Comparison) -> str:
    """The tables of one comparison."""
    counts = sorted(set(comparison.splits))
    splits = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    everyone = list(range(len(comparison.labels)))
    losses = complete(comparison, everyone)
    lines = [f"## {comparison.title}", ""]
    lines += [f"{len(comparison.tables)} tables, splits of each: {splits}.", ""]
    lines += _summary(comparison)
    if len(everyone) > 1 and len(losses):
        difference = critical_difference(len(everyone), len(losses))
        lines += [
            "",
            f"Ranks and wins are of the {len(losses)} tables that all were run on. Mean ranks "
            f"differ, at {SIGNIFICANCE:.0%}, when further apart than {difference:.2f}; "
            f"Friedman's p = {friedman(losses):.2g}.",
        ]
    lines += ["", "Loss of every table:", "", *_by_table(comparison)]
    if comparison.troubles:
        lines += ["", "Without a result:", "", *(f"- {each}" for each in comparison.troubles)]
    return "\n".join(lines) + "\n"


def _summary(comparison: Comparison) -> list[str]:
    """A line a method."""
    everyone = list(range(len(comparison.labels)))
    plain = [j for j in everyone if comparison.defaults[j]]
    all_losses = complete(comparison, everyone)
    all_ranks = ranks(all_losses)
    plain_ranks = ranks(complete(comparison, plain))
    wins = (all_ranks == all_ranks.min(axis=1, keepdims=True, initial=np.inf)).sum(axis=0)
    name = comparison.labels[comparison.reference]
    head = ["method", "tables", "loss", f"over {name}", "better / worse", "mean rank"]
    head += ["rank of defaults", "wins"]
    head += [] if comparison.mean else ["interval", "in 90 %", "in 50 %", "crossing"]
    head += ["median s", "sum s"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for j in everyone:
        column = comparison.values["loss"][:, j]
        ratio, error = against(comparison, j)
        noise = _split_error(comparison.split_errors[:, j])
        mine = comparison.values["loss"][:, comparison.reference]
        cells = [comparison.labels[j], f"{np.isfinite(column).sum()}"]
        cells += [_with_error(geometric(column), noise, 4)]
        cells += ["1" if j == comparison.reference else _with_error(ratio, error, 3)]
        cells += [f"{np.sum(column < mine)} / {np.sum(column > mine)}"]
        cells += [_mean_rank(all_ranks, j)]
        cells += [_mean_rank(plain_ranks, plain.index(j)) if j in plain else "–"]
        cells += [f"{wins[j]}"]
        if not comparison.mean:
            means = {key: np.nanmean(comparison.values[key][:, j]) for key in SHARES}
            cells += [f"{geometric(comparison.values['interval'][:, j]):.4f}"]
            cells += [f"{means['cover90']:.3f}", f"{means['cover50']:.3f}"]
            cells += [f"{means['crossing']:.3f}"]
        seconds = comparison.values["seconds"][:, j]
        cells += [f"{np.nanmedian(seconds):.2f}", f"{np.nansum(seconds):.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _with_error(value: float, relative: float, digits: int) -> str:
    """A value and its error, where there is one."""
    error = f" ± {relative * value:.{digits}f}" if np.isfinite(relative) else ""
    return f"{value:.{digits}f}{error}"


def _mean_rank(of_tables: Array, column: int) -> str:
    """In words for a cell; none where no table has all methods."""
    return f"{of_tables[:, column].mean():.2f}" if len(of_tables) else "–"


SHARES = ("cover90", "cover50", "crossing")


def _split_error(errors: Array) -> float:
    """Of the mean over tables, from the spread over the splits of each."""
    known = errors[np.isfinite(errors)]
    return float(np.sqrt(np.sum(known**2)) / len(known)) if len(known) else np.nan


def _by_table(comparison: Comparison) -> list[str]:
    """Losses, the least of a table in bold."""
    head = ["table", "n", "d", *comparison.labels]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for i, table in enumerate(comparison.tables):
        losses = comparison.values["loss"][i]
        if not np.isfinite(losses).any():
            continue
        best = np.nanmin(losses)
        cells = [table, *(f"{np.nanmax(comparison.values[key][i]):.0f}" for key in ("n", "d"))]
        for loss in losses:
            text = f"{loss:.4f}" if np.isfinite(loss) else "–"
            cells.append(f"**{text}**" if loss == best else text)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def report(ended: Ended, file: Path) -> None:
    """Print the summaries; write Markdown and pictures beside the file."""
    comparisons = compare(ended)
    if not comparisons:
        print("no results")
        return
    page = file.with_suffix(".md")
    page.write_text("\n".join(markdown(each) for each in comparisons))
    for each in comparisons:
        print(f"\n{each.title}\n")
        print("\n".join(_summary(each)))
    try:
        from .table_figure import draw
    except ImportError:
        print("pictures need matplotlib: left out")
        return
    for each in comparisons:
        draw(each, file.with_suffix(""))
    print(f"\n{page} and pictures beside it")
