"""Table 2 of the joint quantile paper: test loss and support vectors as ε grows.

For each of 20 data sets and ten values of ε: ten random splits into 70 % for training and 30 %
for testing, C = 1/(λn) from ten values by 3-fold cross-validation of the pinball loss, levels
0.25, 0.5 and 0.75, B = exp(−0.1·(τᵢ − τⱼ)²), RBF kernel with σ the 0.7-quantile of the distances
between training points. Folds, Gram matrices and their factors are shared by all C and ε.

Every split is written to the folder ``--out`` as it is done; a run that was stopped goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from threadpoolctl import threadpool_limits

from tausvm.kernels import Points, level_kernel, make_kernel
from tausvm.losses import GroupTerms, Pinball
from tausvm.operators import SeparableKernel
from tausvm.solvers import Problem, SolverOptions, SolverResult, solve

from . import data
from .joint_reference import EPSILONS, PAPER

Array = NDArray[np.float64]

TAUS = np.array([0.25, 0.5, 0.75])
GAMMA_TAU = 0.1
CS = np.logspace(-3, 3, 10)
SPLITS = 10
FOLDS = 3
TRAINING = 0.7
#: relative duality gap of the fits on folds, and of the last ones
FOLD_TOL = 1e-3
TOL = 1e-4
#: a support vector has ‖αᵢ‖/p above this, α in the paper's scaling
SUPPORT = 1e-3

#: sets whose columns or rows are not known to be the paper's
NOT_THE_SAME = (
    "snowgeese",
    "birthwt",
    "crabs",
    "geyser",
    "gilgais",
    "BostonHousing",
    "cpus",
    "CobarOre",
)


def rows_of(name: str) -> int:
    return len(data.load(name)[1])


def pinball(y: Array, predicted: Array) -> float:
    """The mean over samples of the pinball losses, summed over the levels."""
    residual = y[:, None] - predicted
    return float(np.maximum(TAUS * residual, (TAUS - 1.0) * residual).sum(axis=1).mean())


class Fits:
    """Fits on one set of training rows, all C and ε on one Gram matrix."""

    def __init__(self, K: Array, train: NDArray[np.int64], test: NDArray[np.int64], y: Array):
        self.operator = SeparableKernel(K[np.ix_(train, train)], level_kernel(TAUS, GAMMA_TAU))
        self.cross = K[np.ix_(test, train)]
        self.y = np.ascontiguousarray(np.repeat(y[train, None], len(TAUS), axis=1))
        self.target = y[test]

    def fit(self, C: float, epsilon: float, tol: float) -> SolverResult:
        cost = np.full(len(self.y), C)
        terms = GroupTerms.build([Pinball(t) for t in TAUS], self.y, cost, epsilon)
        problem = Problem(self.operator, self.y, terms, offset=True)
        return solve(problem, "auto", SolverOptions(tol=tol))

    def loss(self, result: SolverResult) -> float:
        predicted = self.cross @ (result.beta @ self.operator.B) + result.intercept
        return pinball(self.target, predicted)


def run_split(X: Array, y: Array, seed: int, epsilons: Sequence[float]) -> dict[str, list[float]]:
    """Test losses, percentages of support vectors and chosen C of one split, for every ε."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    count = round(TRAINING * len(y))
    train, test = order[:count], order[count:]
    sigma = float(np.quantile(pdist(X[train]), 0.7))
    points = Points(X)
    K = np.asarray(make_kernel("rbf", 1.0 / (2.0 * sigma**2)).between(points, points), np.float64)
    whole = Fits(K, train, test, y)
    parts = np.array_split(rng.permutation(train), FOLDS)
    folds = [Fits(K, np.concatenate(parts[:k] + parts[k + 1 :]), parts[k], y) for k in range(FOLDS)]
    out: dict[str, list[float]] = {"loss": [], "support": [], "C": [], "gap": []}
    for epsilon in epsilons:
        risks = [sum(fold.loss(fold.fit(C, epsilon, FOLD_TOL)) for fold in folds) for C in CS]
        C = float(CS[int(np.argmin(risks))])
        result = whole.fit(C, epsilon, TOL)
        size = np.linalg.norm(result.beta / C, axis=1) / len(TAUS)
        out["loss"].append(100.0 * whole.loss(result))
        out["support"].append(100.0 * float((size > SUPPORT).mean()))
        out["C"].append(C)
        out["gap"].append(result.dual_gap)
    return out


def run_set(name: str, splits: int, folder: Path) -> list[dict[str, list[float]]]:
    """The splits of one data set; those already in the folder are read."""
    X, y = data.load(name)
    done = []
    for seed in range(splits):
        file = folder / f"{name}-{seed}.json"
        if not file.is_file():
            began = time.perf_counter()
            record = run_split(X, y, seed, EPSILONS)
            file.write_text(json.dumps(record))
            print(f"{name} split {seed}: {time.perf_counter() - began:.1f} s", flush=True)
        done.append(json.loads(file.read_text()))
    return done


def print_set(name: str, splits: list[dict[str, list[float]]]) -> tuple[int, int]:
    """Our figures beside the paper's; how many losses are within two of its deviations."""
    losses = np.array([split["loss"] for split in splits])
    support = np.array([split["support"] for split in splits])
    note = " (data not known to be the paper's)" if name in NOT_THE_SAME else ""
    print(f"\n{name}{note}")
    print("  ε       ours                    paper")
    within = 0
    for k, epsilon in enumerate(EPSILONS):
        loss, deviation, percent = PAPER[name][k]
        near = abs(losses[:, k].mean() - loss) <= 2.0 * deviation
        within += near
        print(
            f"  {epsilon:<5g}{losses[:, k].mean():8.2f} ± {losses[:, k].std():5.2f} "
            f"({support[:, k].mean():3.0f} %)  {loss:8.2f} ± {deviation:5.2f} ({percent:3d} %)"
            f"{'' if near else '  *'}"
        )
    return within, len(EPSILONS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(PAPER), help="all 20 by default")
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--out", type=Path, default=Path("joint_table"))
    parser.add_argument("--report", action="store_true", help="print what is there, run nothing")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    names = sorted(options.sets or PAPER, key=rows_of)
    totals: dict[bool, list[int]] = {True: [0, 0], False: [0, 0]}
    with threadpool_limits(1):
        for name in names:
            have = len(list(options.out.glob(f"{name}-*.json")))
            splits = min(options.splits, have) if options.report else options.splits
            if splits == 0:
                print(f"\n{name}: not run")
                continue
            within, of = print_set(name, run_set(name, splits, options.out))
            total = totals[name in NOT_THE_SAME]
            total[0] += within
            total[1] += of
    print("\nlosses within two of the paper's standard deviations (the others are marked *):")
    print(f"  same data: {totals[False][0]} of {totals[False][1]}")
    print(f"  data not known to be the same: {totals[True][0]} of {totals[True][1]}")


if __name__ == "__main__":
    main()
