"""Selection of C and γ on the nine data sets of the ER-SVM paper, and on small tables, against
liquidSVM.

Features and targets in [−1, 1], 70 % for training, a 10 × 10 grid, 5 folds, three levels
together. Prints test losses beside the paper's Table 2 (ER-SVM* for both readings of its levels)
and liquidSVM's in the same run, and the seconds of both. Where liquidSVM takes too long,
``--liquid-rows`` has it and us run on that many of the training rows as well, and the ratio is of
those two times; the output says so.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from tausvm import SVRCV, ExpectileSVRCV, QuantileSVRCV
from tausvm.metrics import mean_expectile_loss

from . import data
from .er_svm import DATA_SETS, TRAINING
from .liquid import cores_given_back, decimal, load_liquidsvm
from .machines import plain_parameters

Array = NDArray[np.float64]
#: seconds, and the test loss of each level
Row = tuple[float, list[float]]
#: by method
Table = dict[str, Row]
Run = Callable[[], Row]
#: runs that take less than these seconds together take turns
SHORT = 20.0

TAUS = (0.25, 0.5, 0.75)
FOLDS = 5
SELECTIONS = {"expectile": ExpectileSVRCV, "quantile": QuantileSVRCV}
LOSSES = {
    "expectile": lambda y, f, tau: mean_expectile_loss(y, f, tau=tau),
    "quantile": lambda y, f, tau: mean_pinball_loss(y, f, alpha=tau),
}
#: ways to a model from the scores, the default first
REFITS = ("committee", "average", True)
#: tables of 27 to 274 training rows, for ``--sets``
SMALL = ("highway", "snowgeese", "caution", "sniffer", "birthwt", "cpus", "bodyfat", "ufc", "mpg")
#: its learning scenarios, by loss
LIQUID = {"expectile": "exSVM", "quantile": "qtSVM"}

#: test errors of ER-SVM* and ER-Boost in the paper's Table 2, by level. On data with a long tail
#: its two methods order the levels in opposite ways (cal_housing: ER-Boost errs more at 0.75,
#: ER-SVM* at 0.25), and ours and liquidSVM's order them as ER-Boost does: ER-SVM*'s τ seems to be
#: 1 − τ, so both readings are printed
PAPER = {
    "nc_crime": ((0.00555, 0.00605, 0.00509), (0.00948, 0.01367, 0.01459)),
    "concrete_comp": ((0.00893, 0.01013, 0.00879), (0.03961, 0.05038, 0.04556)),
    "airfoil_noise": ((0.00806, 0.00939, 0.00850), (0.04223, 0.04817, 0.03832)),
    "munich_rent": ((0.00126, 0.00121, 0.00101), (0.01569, 0.01812, 0.01598)),
    "updrs_motor": ((0.02502, 0.02828, 0.02569), (0.05345, 0.06257, 0.015229)),
    "head_circum": ((0.00323, 0.00390, 0.00333), (0.02419, 0.02482, 0.01855)),
    "cycle_pp": ((0.00421, 0.00516, 0.00477), (0.03588, 0.04536, 0.03930)),
    "hour": ((0.01543, 0.01627, 0.01259), (0.02888, 0.04021, 0.03821)),
    "cal_housing": ((0.02415, 0.02518, 0.01912), (0.05406, 0.07473, 0.07337)),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    ratios: dict[str, list[float]] = {kind: [] for kind in args.losses}
    records = Records(args.out)
    warm_up(args)
    with threadpool_limits(1):
        for name in args.sets:
            tables: dict[str, list[Table]] = {kind: [] for kind in args.losses}
            for split in range(args.splits):
                parts = split_data(name, args.max_rows, split)
                for kind in args.losses:
                    ratio, table = compare(name, kind, split, parts, records, args)
                    ratios[kind].append(ratio)
                    tables[kind].append(table)
                if args.grid_search:
                    compare_grid_search(parts, args)
            if args.splits > 1:
                print_means(name, tables)
    for kind, values in ratios.items():
        known = [value for value in values if np.isfinite(value)]
        if known:
            mean = np.exp(np.mean(np.log(known)))
            print(f"{kind}: liquidSVM's time over ours, geometric mean {mean:.2f}, least", end=" ")
            print(f"{min(known):.2f}")


def print_means(name: str, tables: dict[str, list[Table]]) -> None:
    """The means over the splits, which tell more about the losses than one split does."""
    for kind, parts in tables.items():
        mean = {
            label: (
                float(np.mean([part[label][0] for part in parts])),
                np.mean([part[label][1] for part in parts], axis=0).tolist(),
            )
            for label in parts[0]
        }
        print_table(f"{name}, mean of {len(parts)} splits, {kind}", mean)


def print_table(title: str, rows: Table) -> None:
    """Seconds and the loss of each level."""
    print(f"\n{title}")
    print(f"{'':<32}{'seconds':>10}" + "".join(f"{f'tau {tau}':>12}" for tau in TAUS))
    for label, (seconds, losses) in rows.items():
        print(f"{label:<32}{seconds:>10.3f}" + "".join(f"{loss:>12.5f}" for loss in losses))


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.selection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument(
        "--sets", nargs="+", default=DATA_SETS, choices=(*DATA_SETS, *SMALL), metavar="NAME"
    )
    parse.add_argument("--losses", nargs="+", default=list(SELECTIONS), choices=SELECTIONS)
    parse.add_argument("--max-rows", type=int, default=None, help="of a data set")
    parse.add_argument("--splits", type=int, default=1, help="random splits")
    parse.add_argument("--repeats", type=int, default=3, help="turns of short runs")
    parse.add_argument("--grid", type=int, default=10, help="values of C and of γ")
    parse.add_argument("--jobs", type=int, default=2, help="jobs, and threads of liquidSVM")
    parse.add_argument(
        "--cpu", action="store_true", help="processor seconds; for machines that are not idle"
    )
    parse.add_argument("--no-prune", action="store_true", help="every point on every fold")
    parse.add_argument("--no-liquidsvm", action="store_true", help="ours alone")
    parse.add_argument("--adaptive", action="store_true", help="its adaptive grid as well")
    parse.add_argument(
        "--default-call", action="store_true", help="ours with learned features and all as well"
    )
    parse.add_argument("--no-offset", action="store_true", help="ours without offset too")
    parse.add_argument("--liquid-rows", type=int, default=None, help="most rows for liquidSVM")
    parse.add_argument(
        "--all-refits", action="store_true", help="the other ways to a model as well"
    )
    parse.add_argument(
        "--out", type=Path, default=None, help="JSON lines; rows that it has are not run again"
    )
    parse.add_argument("--grid-search", action="store_true", help="GridSearchCV as well")
    return parse


def split_data(name: str, max_rows: int | None, seed: int) -> tuple[Array, Array, Array, Array]:
    """Training and test parts."""
    X, y = data.load(name, "unit", max_rows)
    order = np.random.default_rng(seed + 1).permutation(len(y))
    train, test = np.split(order, [round(TRAINING * len(y))])
    return X[train], y[train], X[test], y[test]


def liquid_grid(n: int, d: int, size: int) -> tuple[Array, Array]:
    """Its default grid for n training rows: C for targets in [−1, 1], and γ."""
    rows = n * (FOLDS - 1) // FOLDS
    lambdas = np.geomspace(0.01, 0.001 / rows, size)
    widths = np.geomspace(5.0 * (1.0 + 5.0 / rows) ** d, 0.2 * rows ** (-1.0 / d), size)
    return 1.0 / (2.0 * rows * lambdas), widths**-2.0


def warm_up(args: argparse.Namespace) -> None:
    """A tiny selection by both sides: what is loaded once is not counted."""
    X, y, *_ = split_data("nc_crime", 100, 0)
    for kind in args.losses:
        run_ours(kind, X, y, REFITS[0], True, args)
        if args.default_call:
            run_default(kind, X, y, args)
        if not args.no_liquidsvm:
            run_liquid(kind, X, y, False, args)


class Records:
    """Rows of the tables; with a file, those in it are not measured again."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.known: Table = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                row = json.loads(line)
                self.known[json.dumps(row["of"])] = row["seconds"], row["losses"]

    def rows(self, runs: dict[str, tuple[dict[str, Any], Run]], repeats: int) -> Table:
        """What is known of these rows, or what is measured now.

        Short runs take turns, several times, and the best seconds of each count: a machine is
        never wholly at rest.
        """
        fresh = {
            json.dumps(of): run for of, run in runs.values() if json.dumps(of) not in self.known
        }
        for turn in range(repeats):
            for key, run in fresh.items():
                seconds, losses = run()
                self._keep(key, min(seconds, self.known[key][0]) if turn else seconds, losses)
            if sum(self.known[key][0] for key in fresh) > SHORT:
                break
        return {label: self.known[json.dumps(of)] for label, (of, _) in runs.items()}

    def _keep(self, key: str, seconds: float, losses: list[float]) -> None:
        """Note a row at once, before the next run; a later line of the file takes its place."""
        self.known[key] = seconds, losses
        if self.file is not None:
            row = {"of": json.loads(key), "seconds": seconds, "losses": losses}
            with self.file.open("a") as out:
                print(json.dumps(row), file=out)


def compare(
    name: str,
    kind: str,
    split: int,
    parts: tuple[Array, Array, Array, Array],
    records: Records,
    args: argparse.Namespace,
) -> tuple[float, Table]:
    """Print the table of one data set and loss; liquidSVM's time over ours, and the table."""
    X, y, X_test, y_test = parts
    runs: dict[str, tuple[dict[str, Any], Run]] = {}

    def add(label: str, some: int, run: Callable[[Array, Array], tuple[float, Array]]) -> str:
        """A row of the table, trained on some of the rows; its label."""

        def measured() -> tuple[float, list[float]]:
            seconds, predictions = run(X[:some], y[:some])
            return seconds, test_losses(kind, y_test, predictions)

        settings = {"cpu": args.cpu, "jobs": args.jobs, "grid": args.grid}
        of = {"set": name, "loss": kind, "split": split, "rows": some, "who": label, **settings}
        if some < len(y):
            label = f"{label}, {some} rows"
        runs[label] = of, measured
        return label

    def ours(refit: bool | str, offset: bool) -> Callable[[Array, Array], tuple[float, Array]]:
        def run(X: Array, y: Array) -> tuple[float, Array]:
            seconds, model = run_ours(kind, X, y, refit, offset, args)
            return seconds, model.predict(X_test)

        return run

    def liquid(adaptive: bool) -> Callable[[Array, Array], tuple[float, Array]]:
        def run(X: Array, y: Array) -> tuple[float, Array]:
            seconds, peer = run_liquid(kind, X, y, adaptive, args)
            with cores_given_back():
                return seconds, np.asarray(peer.test(X_test, y_test)[0], dtype=np.float64)

        return run

    def default_call(X: Array, y: Array) -> tuple[float, Array]:
        seconds, model = run_default(kind, X, y, args)
        return seconds, model.predict(X_test)

    some = len(y) if args.liquid_rows is None else min(len(y), args.liquid_rows)
    theirs = ""
    if not args.no_liquidsvm:
        theirs = add("liquidSVM", some, liquid(False))
        if args.adaptive:
            add("liquidSVM, adaptive", some, liquid(True))
    for refit in REFITS if args.all_refits else REFITS[:1]:
        add(f"tausvm, refit={refit}", len(y), ours(refit, True))
    if args.default_call:
        add("tausvm, default call", some, default_call)
    if args.no_offset:
        add("tausvm, no offset", len(y), ours(REFITS[0], False))
    mine = add(f"tausvm, refit={REFITS[0]}", some, ours(REFITS[0], True))
    rows = records.rows(runs, args.repeats)
    ratio = rows[theirs][0] / rows[mine][0] if theirs else np.nan
    if kind == "expectile" and name in PAPER:
        for label, losses in zip(("ER-SVM*", "ER-Boost"), PAPER[name], strict=True):
            rows[f"paper, {label}"] = np.nan, list(losses)
        rows["paper, ER-SVM*, as 1 - tau"] = np.nan, list(PAPER[name][0][::-1])
    print_table(f"{name}, {len(y)} training rows, split {split}, {kind}", rows)
    print(f"liquidSVM's time over ours: {ratio:.2f}", flush=True)
    return ratio, rows


def run_ours(
    kind: str, X: Array, y: Array, refit: bool | str, offset: bool, args: argparse.Namespace
) -> tuple[float, Any]:
    """The seconds of our selection on liquidSVM's grid, and the model."""
    costs, gammas = liquid_grid(len(y), X.shape[1], args.grid)
    model = SELECTIONS[kind](
        tau=list(TAUS),
        Cs=costs,
        gammas=gammas,
        cv=FOLDS,
        refit=refit,
        prune=not args.no_prune,
        fit_intercept=offset,
        clip="range",
        n_jobs=args.jobs,
        **plain_parameters(SELECTIONS[kind]),
    )
    clock = time.process_time if args.cpu else time.perf_counter
    started = clock()
    model.fit(X, y)
    return clock() - started, model


def run_default(kind: str, X: Array, y: Array, args: argparse.Namespace) -> tuple[float, Any]:
    """The seconds of a call with nothing but levels and jobs: own grid, kernels that compete,
    learned features, order and calibration included; and the model."""
    model = SELECTIONS[kind](tau=list(TAUS), n_jobs=args.jobs)
    clock = time.process_time if args.cpu else time.perf_counter
    started = clock()
    model.fit(X, y)
    return clock() - started, model


def run_liquid(
    kind: str, X: Array, y: Array, adaptive: bool, args: argparse.Namespace
) -> tuple[float, Any]:
    """The seconds of its selection on the same grid, and the model."""
    costs, gammas = liquid_grid(len(y), X.shape[1], args.grid)
    extra: dict[str, Any] = {"adaptivity_control": 1} if adaptive else {}
    library = load_liquidsvm()
    clock = time.process_time if args.cpu else time.perf_counter
    with cores_given_back():
        started = clock()
        peer = getattr(library, LIQUID[kind])(
            X,
            y,
            weights=list(TAUS),
            threads=args.jobs,
            folds=FOLDS,
            gammas=[decimal(gamma**-0.5) for gamma in gammas],
            lambdas=[decimal(0.5 / (C * (len(y) * (FOLDS - 1) // FOLDS))) for C in costs],
            **extra,
        )
        seconds = clock() - started
    return seconds, peer


def test_losses(kind: str, y: Array, predictions: Array) -> list[float]:
    """The mean loss of each level."""
    columns = zip(TAUS, predictions.T, strict=True)
    return [float(LOSSES[kind](y, column, tau)) for tau, column in columns]


def compare_grid_search(parts: tuple[Array, Array, Array, Array], args: argparse.Namespace) -> None:
    """Print the time of scikit-learn's search beside ours, on the same grid, folds and score."""
    from sklearn.svm import SVR

    X, y, *_ = parts
    costs, gammas = liquid_grid(len(y), X.shape[1], args.grid)
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    same_grid = {"Cs": costs, "gammas": gammas, **plain_parameters(SVRCV)}
    ours = SVRCV(cv=folds, prune=not args.no_prune, n_jobs=args.jobs, **same_grid)
    grid = {"C": costs, "gamma": gammas}
    score = make_scorer(tube_loss, greater_is_better=False)
    theirs = GridSearchCV(SVR(), grid, cv=folds, scoring=score, n_jobs=args.jobs)
    clock = time.process_time if args.cpu else time.perf_counter
    seconds = []
    for search in (ours, theirs):
        started = clock()
        search.fit(X, y)
        seconds.append(clock() - started)
    print(
        f"SVRCV {seconds[0]:.2f} s, GridSearchCV {seconds[1]:.2f} s, ratio "
        f"{seconds[1] / seconds[0]:.1f}; chosen {ours.best_params_} and {theirs.best_params_}"
    )


def tube_loss(y: Array, f: Array, epsilon: float = 0.1) -> float:
    """The ε-insensitive loss, by which SVRCV chooses."""
    return float(np.maximum(np.abs(y - f) - epsilon, 0.0).mean())


if __name__ == "__main__":
    main()
