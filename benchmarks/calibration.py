"""Calibrated levels: how many test rows their intervals hold, and what that costs.

Random splits of small tables, 70 % of the rows for training, features standardised on these,
levels 0.05, 0.25, 0.5, 0.75 and 0.95. Prints for every table the share of test rows inside the
central 90 % and 50 % intervals, the summed pinball loss against that without calibration, and the
mean width of the 90 % interval against the same. ``oof`` is of the same fit as ``none``; ``split``
and ``mapie`` are other fits, and leave tables out that have too few rows to hold some out.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from tausvm import QuantileSVRCV
from tausvm.estimators.levels import in_order

from . import data

Array = NDArray[np.float64]

TAUS = [0.05, 0.25, 0.5, 0.75, 0.95]
TRAINING = 0.7
#: tables with at most 1,000 training rows
TABLES = (
    *("caution", "ftcollinssnow", "highway", "sniffer", "snowgeese", "ufc", "birthwt", "crabs"),
    *("GAGurine", "geyser", "gilgais", "topo", "BostonHousing", "CobarOre", "engel", "mcycle"),
    *("BigMac2003", "UN3", "cpus", "bodyfat", "eunite2001", "mpg", "pyrim", "yacht", "servo"),
    *("machine", "forest", "nc_crime", "energy", "heights", "concrete_comp", "solar"),
    "year_msd_1176",
)
#: rows to hold out for intervals of 90 %
FEWEST = 9
#: of the same fit, of a fit of their own, and of MAPIE on top of one
WAYS = ("none", "oof", "split", "mapie")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    records = kept(args.out)
    with threadpool_limits(1):
        for split in range(args.first, args.splits):
            for name in args.tables:
                for record in measured(name, split, args.ways, records):
                    records.append(record)
                    if args.out is not None:
                        with args.out.open("a") as file:
                            print(json.dumps(record), file=file)
    print_table(records)


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--tables", nargs="+", default=TABLES, metavar="NAME")
    parse.add_argument("--splits", type=int, default=20, help="random splits of each table")
    parse.add_argument("--first", type=int, default=0, help="the first of them")
    parse.add_argument("--ways", nargs="+", default=["none", "oof"], choices=WAYS)
    parse.add_argument(
        "--out", type=Path, default=None, help="JSON lines; rows that it has are not run again"
    )
    return parse


def kept(out: Path | None) -> list[dict[str, Any]]:
    """The records that a file has already."""
    if out is None or not out.is_file():
        return []
    return [json.loads(line) for line in out.read_text().splitlines()]


def measured(
    name: str, split: int, ways: Sequence[str], records: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """What is wanted of one split and not known yet."""
    known = {r["way"] for r in records if (r["table"], r["split"]) == (name, split)}
    wanted = [way for way in ways if way not in known]
    if not wanted:
        return
    X, y = data.load(name)
    rows = np.random.default_rng(split).permutation(len(y))
    size = int(TRAINING * len(y))
    train, test = rows[:size], rows[size:]
    scaler = StandardScaler().fit(X[train])
    Z, new = scaler.transform(X[train]), scaler.transform(X[test])
    told = {"table": name, "split": split, "rows": size}
    for way, predicted in predictions(wanted, Z, y[train], new):
        losses = [
            mean_pinball_loss(y[test], level, alpha=tau)
            for tau, level in zip(TAUS, predicted.T, strict=True)
        ]
        low, inner_low, _, inner_high, high = predicted.T
        yield {
            **told,
            "way": way,
            "inside90": float(np.mean((low <= y[test]) & (y[test] <= high))),
            "inside50": float(np.mean((inner_low <= y[test]) & (y[test] <= inner_high))),
            "width90": float(np.mean(high - low)),
            "loss": float(np.sum(losses)),
        }


def predictions(ways: Sequence[str], Z: Array, y: Array, new: Array) -> Iterator[tuple[str, Array]]:
    """The levels at new rows, in order, of each way."""
    if "none" in ways or "oof" in ways:
        model = QuantileSVRCV(tau=TAUS, calibrate="oof").fit(Z, y)
        yield "none", in_order(model.predict(new, raw=True), TAUS)
        yield "oof", model.predict(new)
    few = QuantileSVRCV._settings.calibration.held_out * len(y) < FEWEST
    if "split" in ways and not few:
        yield "split", QuantileSVRCV(tau=TAUS, calibrate="split").fit(Z, y).predict(new)
    if "mapie" in ways and not few:
        yield "mapie", conformalised(Z, y, new)


def conformalised(Z: Array, y: Array, new: Array) -> Array:
    """MAPIE's conformalised quantile regression, on as many rows as ``split`` holds out."""
    from mapie.regression import ConformalizedQuantileRegressor  # an extra

    logging.disable(logging.INFO)  # MAPIE tells of every crossing of the quantiles

    held = QuantileSVRCV._settings.calibration.held_out
    rows = np.random.default_rng(0).permutation(len(y))
    size = int(np.ceil(held * len(y)))
    fitted, calibrated = rows[size:], rows[:size]
    levels = np.empty((len(new), len(TAUS)))
    for low, high, share in ((0, 4, 0.9), (1, 3, 0.5)):
        models = [
            QuantileSVRCV(tau=TAUS[k], calibrate=None).fit(Z[fitted], y[fitted])
            for k in (low, high, 2)
        ]
        conformal = ConformalizedQuantileRegressor(models, confidence_level=share, prefit=True)
        conformal.conformalize(Z[calibrated], y[calibrated])
        middle, bounds = conformal.predict_interval(new, symmetric_correction=True)
        levels[:, [low, high]] = bounds[:, :, 0]
        levels[:, 2] = middle
    return in_order(levels, TAUS)


def print_table(records: list[dict[str, Any]]) -> None:
    """Means over the splits of every table, and over the tables."""
    ways = [way for way in WAYS if any(r["way"] == way for r in records)]
    print(f"{'table':<16}{'rows':>6}{'splits':>8}", end="")
    print("".join(f"{way + ' 90 %':>12}{'50 %':>8}{'loss':>9}{'width':>8}" for way in ways))
    rows: dict[str, list[list[float]]] = {way: [] for way in ways}
    for name in dict.fromkeys(r["table"] for r in records):
        here = [r for r in records if r["table"] == name]
        splits = len({r["split"] for r in here})
        print(f"{name:<16}{here[0]['rows']:>6}{splits:>8}", end="")
        for way in ways:
            part = [r for r in here if r["way"] == way]
            seen = {r["split"] for r in part}
            base = [r for r in here if r["way"] == "none" and r["split"] in seen]
            if not part or not base:
                print(f"{'':>37}", end="")
                continue
            row = [
                100.0 * float(np.mean([r["inside90"] for r in part])),
                100.0 * float(np.mean([r["inside50"] for r in part])),
                100.0 * (sum(r["loss"] for r in part) / sum(r["loss"] for r in base) - 1.0),
                sum(r["width90"] for r in part) / max(sum(r["width90"] for r in base), 1e-300),
            ]
            rows[way].append(row)
            print(f"{row[0]:>12.1f}{row[1]:>8.1f}{row[2]:>+8.2f}%{row[3]:>8.2f}", end="")
        print()
    for way in (way for way in ways if rows[way]):
        mean, least = np.mean(rows[way], axis=0), np.min(rows[way], axis=0)
        below = np.sum(np.array(rows[way])[:, :2] < [87.0, 47.0], axis=0)
        print(
            f"{way}: inside {mean[0]:.1f} % and {mean[1]:.1f} %, least {least[0]:.1f} and "
            f"{least[1]:.1f}, more than three below on {below[0]} and {below[1]} tables; "
            f"loss {mean[2]:+.2f} %, width {mean[3]:.2f}"
        )


if __name__ == "__main__":
    main()
