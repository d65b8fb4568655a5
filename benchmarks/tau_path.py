"""The whole τ path against fits of LIBLINEAR: Table 2 of the quantile-path paper.

    python -m benchmarks.tau_path                 # the table, then kinks against n
    python -m benchmarks.tau_path --data pima splice
    python -m benchmarks.tau_path --kinks 10000 --plot kinks.png

Per data set: seconds for the path, seconds to recover the weights of one τ from it, seconds of
one LIBLINEAR fit (`-s 3 -B 1 -e 1e-3`, weights 2 − 2τ and 2τ, c = 1/(nλ)) averaged over
τ = 0.1, …, 0.9, and the number of kinks, each beside the paper's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from tausvm import TauPathSVC
from tausvm.threads import one_blas_thread

from . import data
from .splice_sites import splice_sites

Array = Any
TAUS = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Paper:
    """A row of Table 2: seconds to recover, of LIBLINEAR, of the path, and kinks."""

    recover: float
    liblinear: float
    path: float
    kinks: int


PAPER = {
    "pima": Paper(0.003, 0.004, 11.104, 1886),
    "inbox": Paper(0.012, 0.467, 1106.413, 6660),
    "generated": Paper(0.103, 0.363, 1315.878, 22611),
}
LAMBDA = {
    "pima": 1e-3,
    "inbox": 1e-6,
    "splice": 1e-2,
    "splice [-1, 1]": 1e-2,
    "generated": 1e-2,
    "profile": 1e-2,
}
#: measured only where asked for: it takes minutes
SLOW = ("profile",)


def profile_letters(n: int, seed: int = 0) -> tuple[Array, Array]:
    """The hardest form of such data: 201 letters, all of one frequency for −1, and 40 of them from
    a random profile for +1. Nothing but the profile tells the classes, and the margin takes up
    all of the 604 dimensions that the letters span.
    """
    rng = np.random.default_rng(seed)
    length = 201
    profile = np.full((length, 4), 0.25)
    middle = slice(80, 120)
    profile[middle] = rng.dirichlet(np.full(4, 1.0), size=40)
    positive = rng.uniform(size=n) < 0.055
    draws = rng.uniform(size=(n, length))
    plain = (draws * 4).astype(int)
    shaped = (draws[:, :, None] > np.cumsum(profile, axis=1)[None, :, :3]).sum(axis=2)
    letter = np.where(positive[:, None], shaped, plain)
    X = np.zeros((n, 4 * length))
    X[np.arange(n)[:, None], 4 * np.arange(length) + letter] = 1.0
    return X, np.where(positive, 1.0, -1.0)


def load(name: str) -> tuple[Array, Array]:
    if name == "generated":
        return splice_sites(10_000)
    if name == "profile":
        return profile_letters(10_000)
    if name == "inbox":
        file = data.data_folder() / "ecml2006_spam_a_u00.svm.gz"
        return load_svmlight_file(str(file), n_features=106780)
    X, y = data.load(name.split()[0], "raw" if name == "splice" else "unit")
    return (X[:668], y[:668]) if name == "pima" else (X, y)


def best(
    run: Callable[[], Any],
    least_seconds: float = 1.0,
    most: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Any]:
    """The best time of a few runs, and the last result."""
    times: list[float] = []
    while not times or (len(times) < most and sum(times) < least_seconds):
        started = clock()
        result = run()
        times.append(clock() - started)
    return min(times), result


def liblinear_seconds(
    X: Array, y: Array, C: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """One fit, averaged over nine levels; the conversion of the data is not counted."""
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import train

    posed = problem(list(y), sp.csr_matrix(X), bias=1)
    seconds = []
    for tau in TAUS:
        weights = f"-w1 {2 - 2 * tau} -w-1 {2 * tau}"
        options = parameter(f"-s 3 -B 1 -e 1e-3 {weights} -c {C} -q")
        seconds.append(best(lambda options=options: train(posed, options), 0.5, 3, clock)[0])
    return float(np.mean(seconds))


def recover_seconds(model: TauPathSVC, clock: Callable[[], float] = time.perf_counter) -> float:
    """β, the weights of the features and the offset at one level, averaged over nine."""
    path, products = model.paths_[0], model._problems[0].products

    def recover(tau: float) -> Any:
        beta, _ = path.solution(tau)
        return products.weights(beta), beta.sum()

    runs = [lambda tau=tau: recover(tau) for tau in TAUS]
    return float(np.mean([best(run, 0.2, 20, clock)[0] for run in runs]))


def table(names: list[str]) -> None:
    """One row a data set, the paper's figures in brackets."""
    print(
        f"{'data':<16}{'n':>7}{'d':>8}{'path s':>9}{'recover ms':>12}{'LIBLINEAR ms':>14}"
        f"{'kinks':>8}{'path/fit':>10}{'fit/recover':>13}{'largest gap':>13}{'MB':>7}"
    )
    for name in names:
        X, y = load(name)
        C = 1 / (LAMBDA[name] * len(y))
        model = TauPathSVC(kernel="linear", C=C, penalise_intercept=True)
        seconds, _ = best(lambda model=model, X=X, y=y: model.fit(X, y), 20.0, 3)
        recover = recover_seconds(model)
        fit = liblinear_seconds(X, y, C)
        print(
            f"{name:<16}{X.shape[0]:>7}{X.shape[1]:>8}{seconds:>9.3f}{1e3 * recover:>12.3f}"
            f"{1e3 * fit:>14.2f}{model.n_kinks_:>8}{seconds / fit:>10.1f}{fit / recover:>13.1f}"
            f"{model.dual_gap_:>13.1e}{model.paths_[0].nbytes / 2**20:>7.1f}",
            flush=True,
        )
        if name in PAPER:
            paper = PAPER[name]
            print(
                f"{'  the paper':<31}{paper.path:>9.3f}{1e3 * paper.recover:>12.3f}"
                f"{1e3 * paper.liblinear:>14.2f}{paper.kinks:>8}"
                f"{paper.path / paper.liblinear:>10.1f}{paper.liblinear / paper.recover:>13.1f}"
            )


def kinks_against_n(largest: int, plot: str | None) -> None:
    """Kinks of growing parts of generated data beside n·log n."""
    sizes = [n for n in (100, 200, 500, 1000, 2000, 5000, 10_000) if n <= largest]
    counts: dict[str, list[int]] = {"20 features": [], "RBF": []}
    print(f"{'n':>7}{'20 features':>13}{'RBF':>9}{'n log n':>10}")
    for n in sizes:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 20))
        y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0, 1, -1)
        linear = TauPathSVC(kernel="linear", C=1.0, penalise_intercept=True).fit(X, y)
        counts["20 features"].append(int(linear.n_kinks_))
        if n <= 2000:
            rbf = TauPathSVC(gamma=0.05, C=1.0, penalise_intercept=True).fit(X, y)
            counts["RBF"].append(int(rbf.n_kinks_))
        shown = counts["RBF"][-1] if n <= 2000 else "–"
        print(f"{n:>7}{counts['20 features'][-1]:>13}{shown:>9}{n * np.log(n):>10.0f}", flush=True)
    if plot is not None:
        draw_kinks(sizes, counts, plot)


def draw_kinks(sizes: list[int], counts: dict[str, list[int]], file: str) -> None:
    """Kinks against n on logarithmic axes, with the line n·log n."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    n = np.array(sizes, dtype=float)
    ax.plot(n, n * np.log(n), color="0.4", linestyle="--", label="n log n")
    for (name, found), marker in zip(counts.items(), "os", strict=True):
        ax.plot(n[: len(found)], found, marker=marker, label=name)
    ax.set(xscale="log", yscale="log", xlabel="rows n", ylabel="kinks")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    ax.figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", choices=list(LAMBDA))
    parser.add_argument("--kinks", type=int, default=10_000, help="largest n, 0 for no such table")
    parser.add_argument("--plot", help="file for the picture of kinks against n")
    args = parser.parse_args()
    with one_blas_thread():
        table([name for name in LAMBDA if name not in SLOW] if args.data is None else args.data)
        if args.kinks:
            kinks_against_n(args.kinks, args.plot)


if __name__ == "__main__":
    main()
