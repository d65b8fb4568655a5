"""Places on the map: an estimator, its data and its parameters, as plain numbers.

A place is written to JSON and handed to other processes, other interpreters and other versions of
tausvm, so it holds no object. :func:`data_of` gives the same rows for the same place everywhere.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import data
from .machines import MACHINES

Array = NDArray[np.float64]

#: rows; from 400 on they double
SIZES = (50, 100, 200, 300, 400, *(400 * 2**k for k in range(1, 9)))
DIMENSIONS = (10, 2, 100)
#: what y is; :func:`generated` says it in formulas
TARGETS = ("easy", "hard", "noise_free")
#: data of the other benchmarks; :func:`special` makes or reads them
SPECIAL = ("counts", "splice_sites", "sine", "u00", "u01", "u00_raw")
COSTS = (1.0, 0.01, 1000.0)
LEVELS = (1, 5, 19)
#: rows that a prediction is asked for
NEW_ROWS = 5_000


@dataclass(frozen=True)
class Place:
    """One fit or one prediction."""

    #: a public name of tausvm
    estimator: str
    #: rows; of a file: at most so many
    n: int
    #: features; of a file: 0, as it has them
    d: int = DIMENSIONS[0]
    #: one of ``TARGETS`` or ``SPECIAL``, or a data set in the folder of ``benchmarks.data``
    target: str = TARGETS[0]
    C: float = COSTS[0]
    #: how many τ, or outputs of a joint machine, share the fit
    levels: int = LEVELS[0]
    #: "fit" or "predict"
    task: str = "fit"
    #: further parameters of the estimator, as JSON
    params: str = "{}"

    @property
    def key(self) -> str:
        """The place in one line, the same in every run."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def title(self) -> str:
        """The place for a reader, what is as everywhere left out."""
        rows = f"n = {self.n:,}, d = {self.d}" if self.d else f"n ≤ {self.n:,}"
        parts = [rows, self.target]
        parts += [f"C = {self.C:g}"] if MACHINES[self.estimator].takes_C else []
        parts += [f"{self.levels} levels"] if self.levels > 1 else []
        parts += [self.task] if self.task != "fit" else []
        parts += [f"{name}={value}" for name, value in json.loads(self.params).items()]
        return ", ".join(parts)

    @property
    def taus(self) -> list[float]:
        """The levels, evenly spread: 0.5; 0.1, 0.3, …, 0.9; 0.05, 0.10, …, 0.95."""
        step = 1.0 / (self.levels + 1) if self.levels == 19 else 1.0 / self.levels
        first = step if self.levels == 19 else step / 2
        return [round(first + step * k, 12) for k in range(self.levels)]


# ------------------------------------------------------------------------- data


def data_of(place: Place) -> tuple[Any, Array, Any]:
    """X, y, and rows to predict for. A classifier's y is ±1, a joint machine's may be a matrix."""
    machine = MACHINES[place.estimator]
    if place.target in TARGETS:
        X, y = generated(place.n + NEW_ROWS, place.d, place.target)
        X, y, new = X[: place.n], y[: place.n], X[place.n :]
    else:
        X, y = special(place) if place.target in SPECIAL else file_rows(place)
        new = X[:NEW_ROWS]
    if machine.classifies:
        y = (
            np.where(y > np.median(y), 1.0, -1.0)
            if len(np.unique(y)) > 2
            else np.sign(y - y.mean())
        )
    elif machine.outputs:
        # further outputs: the first, tilted along one feature each
        y = np.column_stack([y + 0.3 * X[:, k % X.shape[1]] for k in range(place.levels)])
    return X, y, new


def file_rows(place: Place) -> tuple[Array, Array]:
    """A data set of the folder; levels and classes want the range that their papers gave it."""
    return data.load(place.target, MACHINES[place.estimator].scaling, place.n)


def generated(n: int, d: int, target: str) -> tuple[Array, Array]:
    """Rows from a seed of their own for each d and target; fewer rows are the first of more.

    easy: a smooth curve in two features, noise of half its size. hard: a wave of short length,
    noise whose spread changes with x and has heavy tails, and columns that are correlated.
    noise_free: the smooth curve alone.
    """
    seed = zlib.crc32(f"{d} {target}".encode())
    X = np.random.default_rng([seed, 0]).normal(size=(n, d))
    noise = np.random.default_rng([seed, 1])
    if target == "hard":
        X[:, 1:] = 0.7 * X[:, 1:] + 0.7 * X[:, :1]
        spread = 0.3 * np.exp(0.5 * X[:, 1])
        wave = np.sin(5.0 * X[:, 0]) * np.cos(3.0 * X[:, 1])
        return X, wave + spread * noise.standard_t(2, size=n)
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    return X, y + (0.5 * noise.normal(size=n) if target == "easy" else 0.0)


def sine(n: int) -> tuple[Array, Array]:
    """One feature, a sine within a slower one, noise that falls along x: a K of small rank."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 1.5, n))
    wave = np.sin(2 * np.pi * x) * (1.0 + np.sin(2 * np.pi * x / 3))
    return x[:, None], wave + (1.2 - x / 1.5) * rng.normal(size=n)


def special(place: Place) -> tuple[Any, Array]:
    """Data of the other benchmarks: sparse counts, inboxes (rows of length 1 or raw), splice
    sites, a sine."""
    from . import linear_data
    from .splice_sites import splice_sites

    if place.target == "counts":
        X = linear_data.sparse_rows(place.n, place.d, 30, seed=1)
        return X, linear_data.linear_target(X, 2, 0.5)
    if place.target == "splice_sites":
        return splice_sites(place.n)
    if place.target == "sine":
        return sine(place.n)
    X, y = linear_data.inbox(place.target.removesuffix("_raw"))
    X = X if place.target.endswith("_raw") else linear_data.unit_rows(X)
    return X[: place.n], y[: place.n]


# ------------------------------------------------------------------- the places


def centre(estimator: str, n: int) -> Place:
    """Where every factor but n has its middle value."""
    machine = MACHINES[estimator]
    return Place(estimator, n, levels=machine.levels[0], task=machine.task)


def profiles(estimator: str) -> dict[str, dict[str, Any]]:
    """What changes about the centre, one factor at a time; a profile is then followed along n."""
    machine = MACHINES[estimator]
    changes: dict[str, dict[str, Any]] = {"centre": {}}
    for d in DIMENSIONS[1:]:
        changes[f"d = {d}"] = {"d": d}
    for target in TARGETS[1:]:
        changes[target] = {"target": target}
    if machine.takes_C:
        for C in COSTS[1:]:
            changes[f"C = {C:g}"] = {"C": C}
    for levels in machine.levels[1:]:
        changes[f"{levels} levels"] = {"levels": levels}
    return changes


def along(estimator: str, change: dict[str, Any], most: int) -> Iterator[Place]:
    """The places of one profile, small n first."""
    for n in SIZES:
        if n <= min(most, MACHINES[estimator].largest):
            yield replace(centre(estimator, n), **change)


def random_places(count: int, estimators: list[str], most: int, seed: int = 0) -> list[Place]:
    """Places drawn from the whole box, so that no combination is safe from being looked at."""
    rng = np.random.default_rng(seed)
    places = []
    for _ in range(count):
        estimator = estimators[rng.integers(len(estimators))]
        machine = MACHINES[estimator]
        largest = min(most, machine.largest, 3_200)
        places.append(
            Place(
                estimator,
                n=round(float(np.exp(rng.uniform(np.log(SIZES[0]), np.log(largest))))),
                d=round(float(np.exp(rng.uniform(np.log(2), np.log(100))))),
                target=TARGETS[rng.integers(len(TARGETS))],
                C=float(f"{10 ** rng.uniform(-3, 4):.2g}") if machine.takes_C else 1.0,
                levels=int(rng.choice(machine.levels)),
                task=machine.task,
            )
        )
    return places


def of_json(line: dict[str, Any]) -> Place:
    """A place from what ``asdict`` wrote; fields of other versions are refused by name."""
    known = {field.name for field in fields(Place)}
    if set(line) - known:
        raise ValueError(f"unknown fields of a place: {', '.join(sorted(set(line) - known))}")
    return Place(**line)
