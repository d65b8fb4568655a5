"""Would cells predict better than landmarks? A plain version, which is not in the library.

    python -m benchmarks.cells --data protein
    python -m benchmarks.cells --data friedman --rows 100000
    python -m benchmarks.cells --data friedman --rows 3000 --leaf 600 --chosen 500    # small

The kernel, the learned features, C and γ are chosen on some rows, as for landmarks. A tree then
splits the mapped rows at medians along their leading principal direction, down to leaves of
``--leaf`` rows, and every leaf has a tuned machine with few points about that choice. Children
share the rows next to their border (``--overlap`` of them to each side), and predictions there go
from one to the other in a straight line.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tausvm import QuantileSVRCV

from . import large_data
from .large_worker import ours
from .table_methods import TAUS, Task
from .table_worker import pinballs

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: factors of the C and the γ that were chosen, which the machine of a leaf chooses among
COSTS = (0.1, 1.0, 10.0)
GAMMAS = (0.5, 1.0, 3.0)
FOLDS = 3


@dataclass
class Cell:
    """A node of the tree: a leaf with a machine, or a split at a median."""

    rows: Index
    direction: Array | None = None
    low: float = 0.0
    high: float = 0.0
    children: tuple[Cell, ...] = ()
    machine: Any = None

    def leaves(self) -> Iterator[Cell]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def predict(self, X: Array) -> Array:
        """Of the leaves that rows belong to, blended where two of them share rows."""
        if not self.children:
            return np.asarray(self.machine.predict(X))
        assert self.direction is not None
        place = X @ self.direction
        gap = max(self.high - self.low, np.finfo(float).tiny)
        right = np.clip((place - self.low) / gap, 0.0, 1.0)
        out = np.zeros((len(X), len(TAUS)))
        for child, share in zip(self.children, (1.0 - right, right), strict=True):
            here = np.flatnonzero(share > 0)
            if len(here):
                out[here] += share[here, None] * child.predict(X[here])
        return out


def grown(X: Array, rows: Index, leaf: int, overlap: float) -> Cell:
    """A tree over some rows of X."""
    if len(rows) <= leaf:
        return Cell(rows)
    part = X[rows]
    spread = np.cov(part, rowvar=False).reshape(X.shape[1], -1)
    direction = np.linalg.eigh(spread)[1][:, -1]
    place = part @ direction
    low, high = np.quantile(place, [0.5 - overlap, 0.5 + overlap])
    sides = place <= high, place >= low
    if min(side.sum() for side in sides) == 0 or max(side.sum() for side in sides) == len(rows):
        return Cell(rows)  # too many rows in one place to tell sides apart
    children = tuple(grown(X, rows[side], leaf, overlap) for side in sides)
    return Cell(rows, direction, float(low), float(high), children)


def mapped(X: Array, metric: Array | None) -> Array:
    """Features under a learned map."""
    if metric is None:
        return X
    return X * metric if metric.ndim == 1 else X @ metric


def by_cells(task: Task, args: argparse.Namespace) -> tuple[Array, dict[str, Any]]:
    """Predictions of a tree of tuned machines."""
    rng = np.random.default_rng(0)
    some = rng.permutation(len(task.y))[: args.chosen]
    chosen = QuantileSVRCV(tau=list(task.taus), refit=False, n_jobs=task.jobs)
    chosen.fit(task.X[some], task.y[some])
    points = chosen.best_params_
    C, gamma = (float(np.median([point[name] for point in points])) for name in ("C", "gamma"))
    X = mapped(task.X, chosen.feature_metric_)
    tree = grown(X, np.arange(len(X)), args.leaf, args.overlap)
    leaves = list(tree.leaves())
    for count, cell in enumerate(leaves):
        cell.machine = QuantileSVRCV(
            tau=list(task.taus),
            Cs=[factor * C for factor in COSTS],
            gammas=[factor * gamma for factor in GAMMAS],
            kernel=chosen.kernel_,
            feature_metric=None,
            cv=FOLDS,
            refit=True,
            calibrate=None,
            n_jobs=task.jobs,
        ).fit(X[cell.rows], task.y[cell.rows])
        print(f"    leaf {count + 1} of {len(leaves)}: {len(cell.rows):,} rows", flush=True)
    found = np.sort(tree.predict(mapped(task.new, chosen.feature_metric_)), axis=1)
    return found, {"leaves": len(leaves), "kernel": chosen.kernel_}


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="protein")
    parser.add_argument("--rows", type=int, help="training rows at most")
    parser.add_argument("--leaf", type=int, default=3000, help="rows of a leaf at most")
    parser.add_argument("--chosen", type=int, default=5000, help="rows to choose on")
    parser.add_argument("--overlap", type=float, default=0.05, help="share, to each side")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=["landmarks", "cells"])
    args = parser.parse_args(arguments)
    split = large_data.split(args.data, args.rows)
    X, new = split.standardised()
    task = Task(X, split.y, new, TAUS, args.jobs)
    for name in args.methods:
        wall, cpu = time.perf_counter(), time.process_time()
        if name == "cells":
            found, more = by_cells(task, args)
        else:
            changes = {"selection_rows": args.chosen}
            found, more = ours(task, {"approximation": "landmarks", "large": changes})
        spent = time.perf_counter() - wall, time.process_time() - cpu
        losses = pinballs(split.y_test, found)
        told = ", ".join(f"{loss:.4g}" for loss in losses)
        print(
            f"{args.data} {len(X):,} × {X.shape[1]} {name}: {told} (mean {losses.mean():.5g}), "
            f"{spent[0]:.0f} s, {spent[1]:.0f} s of processors, {more}",
            flush=True,
        )


if __name__ == "__main__":
    main()
