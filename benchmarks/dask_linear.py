"""Linear machines on partitions, out of core, against SGDRegressor at equal objective.

    python -m benchmarks.dask_linear                     # 1e6 × 50 rows, some minutes
    python -m benchmarks.dask_linear --rows 1e5          # a quick look
    python -m benchmarks.dask_linear --rows 1e7 --folder /big/disk   # 4 GB of Parquet files
    python -m benchmarks.dask_linear --keep --folder rows        # the files stay, and then
    python -m benchmarks.dask_linear --dask-ml --folder rows     # by dask-ml
    python -m benchmarks.dask_linear --paper             # bytes, flops and seconds against workers

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


# ---- on paper ----


@dataclass(frozen=True)
class Cluster:
    """Rates of one worker core and of the network, for the estimate on paper."""

    #: bytes of rows that a core reads from Parquet in a second: assumed. Three passes over 400 MB
    #: took 3.3 s of processor time, sums and the client's solve included
    read: float = 4e8
    #: operations a second of XᵀDX and of products with X: assumed
    flops: float = 4e9
    #: bytes a second between two machines: 10 Gbit/s, assumed
    network: float = 1.25e9
    #: seconds of the scheduler for a task: assumed
    task: float = 5e-4
    #: partial sums that one task adds up, as in Plan.branch
    branch: int = 8
    #: bytes of a partition
    partition: float = 1e8


@dataclass(frozen=True)
class Pass:
    """What one pass costs.

    Attributes
    ----------
    tasks : int
        One a partition, and the tree of sums.
    moved : float
        Bytes between machines.
    flops : float
        Of all workers.
    seconds : float
    efficiency : float
        Seconds of one worker, over workers times seconds.
    """

    tasks: int
    moved: float
    flops: float
    seconds: float
    efficiency: float


def one_pass(
    rows: float, features: int, levels: int, workers: int, cluster: Cluster | None = None
) -> Pass:
    """A pass with the matrix XᵀDX of every level.

    ::

        partitions  P = 8nd / bytes of a partition
        tasks       P·(1 + 1/8 + 1/64 + …)
        flops       levels·n·(4d + d²)
        moved       levels·8(d² + 4d) bytes for every task whose sum goes to another machine
        seconds     (read + flops)/workers + moved/(workers·network) + tasks·(a task's seconds)
                    + (the depth of the tree)·(one sum over the network)
    """
    c = cluster or Cluster()
    data = 8.0 * rows * features
    partitions = max(1, math.ceil(data / c.partition))
    tasks, width, depth = partitions, partitions, 0
    while width > 1:
        width = math.ceil(width / c.branch)
        tasks, depth = tasks + width, depth + 1
    flops = levels * rows * (4.0 * features + features**2)
    one_sum = levels * 8.0 * (features**2 + 4.0 * features)
    moved = (tasks - 1) * one_sum * (1.0 - 1.0 / workers)
    busy = min(workers, partitions)
    work = data / c.read + flops / c.flops
    overhead = tasks * c.task + depth * one_sum / c.network * (workers > 1)
    seconds = work / busy + moved / (busy * c.network) + overhead
    alone = work + tasks * c.task
    return Pass(tasks, moved, flops, seconds, alone / (workers * seconds))


def gathered(rows: float, features: int, sample: float) -> float:
    """Bytes of rows near the corners after a solve of a sample: 8d·n·share.

    A sample of m rows leaves predictions of the median off by about 1.25·√(d/m) standard deviations
    of normal residuals; a band of three times that on both sides holds a share of 0.4·6·1.25·√(d/m)
    of them.
    """
    share = min(1.0, 0.4 * 6.0 * 1.25 * math.sqrt(features / sample))
    return 8.0 * features * rows * share


def paper() -> str:
    """The table: seconds a pass and what they are worth, by rows and workers."""
    lines = ["rows     features  workers  tasks   moved       flops     s/pass   efficiency"]
    for rows, features in ((1e7, 50), (1e8, 50), (1e9, 50), (1e9, 1000)):
        for workers in (1, 4, 16, 100):
            p = one_pass(rows, features, 1, workers)
            lines.append(
                f"{rows:<8.0e} {features:<9d} {workers:<8d} {p.tasks:<7d} {p.moved / 1e6:>8.1f} MB "
                f"{p.flops:>9.1e} {p.seconds:>9.1f}  {p.efficiency:>8.0%}"
            )
    return "\n".join(lines)


# ---- measured ----


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
    parser.add_argument("--paper", action="store_true", help="the estimate alone")
    parser.add_argument(
        "--dask-ml", action="store_true", help="dask-ml alone, on files of --folder"
    )
    parser.add_argument("--keep", action="store_true", help="leave the files in --folder")
    options = parser.parse_args()
    if options.paper:
        print(paper())
        return
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
