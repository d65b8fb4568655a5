"""Linear machines on partitions, out of core, against SGDRegressor at equal objective.

    python -m benchmarks.dask_linear                     # 1e6 × 50 rows, some minutes
    python -m benchmarks.dask_linear --rows 1e5          # a quick look
    python -m benchmarks.dask_linear --rows 1e7 --folder /big/disk   # 4 GB of Parquet files
    python -m benchmarks.dask_linear --keep --folder rows        # the files stay, and then
    python -m benchmarks.dask_linear --dask-ml --folder rows     # by dask-ml

Rows are drawn once, written to Parquet files of 100,000 rows, and read from there by both sides in
every pass. Two problems that both sides know: the squared loss (expectiles at ½) and the absolute
loss (the median), ½‖w‖² + C·Σ ½r² and C·Σ ½|r|, the offset free. scikit-learn's SGDRegressor takes
the files in turn by ``partial_fit`` with its default settings, and is given the epochs it needs to
come within 1 %, 0.1 % and 0.01 % of the optimum, ten at most; what it takes to evaluate its
objective is not counted. dask-ml knows the squared loss alone, shrinks the offset too, and holds
back versions of Dask: ``--dask-ml`` needs nothing else of this project, so that another environment
may run it on files that are there. Its ADMM is left out: 15 s for 100,000 rows, far from solved.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

FILE_ROWS = 100_000
SHARES = (1e-2, 1e-3, 1e-4)
MOST_EPOCHS = 10


def write(folder: Path, rows: int, features: int) -> list[Path]:
    """Files of rows: y linear in X with noise of four degrees of freedom."""
    truth = np.random.default_rng(1).normal(size=features)
    files = []
    for k, start in enumerate(range(0, rows, FILE_ROWS)):
        rng = np.random.default_rng([2, k])
        X = rng.normal(size=(min(FILE_ROWS, rows - start), features))
        y = X @ truth + (1.0 + 0.3 * X[:, 0]) * rng.standard_t(4, size=len(X)) + 10.0
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(features)])
        file = folder / f"rows-{k:05d}.parquet"
        frame.assign(y=y).to_parquet(file, index=False)
        files.append(file)
    return files


def parts(files: list[Path]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """X and y of one file after another."""
    for file in files:
        frame = pd.read_parquet(file)
        yield frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()


@dataclass(frozen=True)
class Question:
    """A problem both sides know: our machine, their loss, and the objective."""

    name: str
    machine: str
    theirs: str
    value: Callable[[np.ndarray], np.ndarray]
    #: SGDRegressor's α is this over C·n
    penalty: float


QUESTIONS = (
    Question(
        "squared loss", "LinearExpectileSVR", "squared_error", lambda r: 0.5 * np.square(r), 1.0
    ),
    Question(
        "absolute loss", "LinearQuantileSVR", "epsilon_insensitive", lambda r: 0.5 * np.abs(r), 2.0
    ),
)


def objective(question: Question, C: float, w: np.ndarray, b: float, files: list[Path]) -> float:
    """½‖w‖² + C·Σ ℓ(y − Xw − b)."""
    total = sum(float(question.value(y - X @ w - b).sum()) for X, y in parts(files))
    return 0.5 * float(w @ w) + C * total


def ours(question: Question, C: float, files: list[Path], scheduler: str) -> float:
    """Fit by passes, and tell; the optimum, as the certificate bounds it."""
    import dask
    import dask.dataframe as dd

    import tausvm.dask as lazy

    with dask.config.set(scheduler=scheduler):
        frame = dd.read_parquet([str(file) for file in files])
        X = frame[[name for name in frame.columns if name != "y"]]
        model = getattr(lazy, question.machine)(tau=0.5, C=C, scale_C=False)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, frame["y"])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    found = model.result_
    print(
        f"  tausvm.dask        {model.n_passes_:2d} passes  {cpu:7.1f} s cpu {wall:7.1f} s wall  "
        f"objective {found.primal_objective:.8g}, certified gap {found.dual_gap:.1e}"
    )
    return float(found.dual_objective)


def sgd(question: Question, C: float, rows: int, files: list[Path], optimum: float) -> None:
    """Epochs of SGDRegressor until it is as good, and what they take."""
    from sklearn.linear_model import SGDRegressor

    given = {"epsilon": 0.0} if question.theirs == "epsilon_insensitive" else {}
    model = SGDRegressor(
        loss=question.theirs, alpha=question.penalty / (C * rows), random_state=0, **given
    )
    wall = cpu = 0.0
    wanted = list(SHARES)
    above = math.inf
    for epoch in range(1, MOST_EPOCHS + 1):
        started = time.perf_counter(), time.process_time()
        for X, y in parts(files):
            model.partial_fit(X, y)
        wall += time.perf_counter() - started[0]
        cpu += time.process_time() - started[1]
        value = objective(question, C, model.coef_, float(model.intercept_[0]), files)
        above = value / optimum - 1.0
        while wanted and above <= wanted[0]:
            print(
                f"  SGDRegressor       {epoch:2d} epochs  {cpu:7.1f} s cpu {wall:7.1f} s wall  "
                f"objective {value:.8g}, within {wanted.pop(0):.2%}"
            )
        if not wanted:
            return
    print(
        f"  SGDRegressor       {MOST_EPOCHS:2d} epochs  {cpu:7.1f} s cpu {wall:7.1f} s wall  "
        f"not within {wanted[0]:.2%}: {above:.2e} above the optimum"
    )


def dask_ml(C: float, files: list[Path], scheduler: str) -> None:
    """dask-ml's solvers on the squared loss, with their defaults, and the objective they reach."""
    import dask
    import dask.dataframe as dd
    from dask_ml.linear_model import LinearRegression

    with dask.config.set(scheduler=scheduler):
        frame = dd.read_parquet([str(file) for file in files])
        names = [name for name in frame.columns if name != "y"]
        X = frame[names].to_dask_array().compute_chunk_sizes()
        y = frame["y"].to_dask_array().compute_chunk_sizes()
        for solver in ("newton", "lbfgs"):
            model = LinearRegression(penalty="l2", C=C / 2.0, solver=solver)
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                model.fit(X, y)
            except Exception as error:  # what it cannot do is told, and the next one tried
                print(f"  dask-ml {solver:<10s} {type(error).__name__}: {str(error)[:80]}")
                continue
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
            value = objective(QUESTIONS[0], C, w, b, files)
            took = f"{cpu:7.1f} s cpu {wall:7.1f} s wall"
            print(f"  dask-ml {solver:<10s} {took}  objective {value:.8g}", flush=True)


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Files of rows, and both sides on both problems."""
    rows = int(options.rows)
    files = write(folder, rows, options.features)
    size = sum(file.stat().st_size for file in files)
    print(f"{rows} × {options.features} rows, {len(files)} files, {size / 1e6:.0f} MB", flush=True)
    for question in QUESTIONS:
        print(question.name, flush=True)
        optimum = ours(question, options.C, files, options.scheduler)
        sgd(question, options.C, rows, files, optimum)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--C", type=float, default=1e-3)
    parser.add_argument("--scheduler", choices=("synchronous", "threads"), default="synchronous")
    parser.add_argument("--folder", type=Path, help="where the files go, a temporary one if not")
    parser.add_argument(
        "--dask-ml", action="store_true", help="dask-ml alone, on files of --folder"
    )
    parser.add_argument("--keep", action="store_true", help="leave the files in --folder")
    options = parser.parse_args()
    if options.dask_ml:
        dask_ml(options.C, sorted(options.folder.glob("rows-*.parquet")), options.scheduler)
        return
    if options.keep:
        options.folder.mkdir(parents=True, exist_ok=True)
        compare(options, options.folder)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        compare(options, Path(folder))


if __name__ == "__main__":
    main()
