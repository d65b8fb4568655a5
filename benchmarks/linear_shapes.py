"""Linear machines over random shapes: ``auto`` against its own solvers, lists against single fits.

    python -m benchmarks.linear_shapes                     # 200 shapes, some minutes
    python -m benchmarks.linear_shapes --shapes 17 42      # these alone
    python -m benchmarks.linear_shapes --lists --count 50  # lists of 2 to 19 levels
    python -m benchmarks.linear_shapes --seed 30           # other shapes, to judge by

A shape is drawn by its number and the seed alone: dense or sparse, n/d from 0.1 to 1,000, columns
whose scales lie within none to four decades, a loss with corners or a squared one, C from 1e-3 to
1e4, with and without an offset. Seconds are those of the processor with one thread, limits too, so
that a busy machine says the same; the sides run in turn, again where a ratio looks bad, and the
best of each counts.

Our other solvers get little more time than ``auto`` took: what takes longer has lost. Where
``auto`` does not arrive within ``--limit`` they get that, and the ratio is a lower bound.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR
from tausvm.solvers import SolverOptions
from tausvm.solvers.linear import LinearInteriorPoint

from .linear_data import linear_target, sparse_rows

Array = NDArray[np.float64]

#: by name; the first two have corners
LOSSES = ("epsilon_insensitive", "pinball", "squared_epsilon_insensitive", "expectile")
RIVALS = ("dual_cd", "newton", "interior_point")
#: ratios above these are measured again, and those above the second are listed
DOUBTFUL, BAD = 1.3, 1.5
#: rounds of a doubtful ratio
ROUNDS = 3


@dataclass(frozen=True)
class Shape:
    """A fit, drawn by its number and a seed."""

    seed: int
    number: int
    n: int
    d: int
    #: share of entries that are not 0; 1 is a dense matrix
    density: float
    #: whether some columns of a sparse matrix have most of its entries
    uneven: bool
    #: decades within which the scales of the columns lie
    decades: float
    loss: str
    tau: float
    C: float
    offset: bool

    @classmethod
    def draw(cls, number: int, seed: int = 20) -> Shape:
        """The shape of this number."""
        rng = np.random.default_rng([seed, number])
        tall = 10 ** rng.uniform(-1, 3)
        entries = 10 ** rng.uniform(4.4, 6.0)  # fewer are solved to rounding by auto alone
        density = 1.0 if rng.random() < 0.5 else 10 ** rng.uniform(-3, -1)
        d = max(2, round(np.sqrt(entries / density / tall)))
        n = max(20, round(entries / density / d))
        if density < 1:  # a row has two entries at least
            density = max(density, 2.0 / d)
            n = max(20, round(min(n, entries / (density * d))))
        return cls(
            seed,
            number,
            n,
            d,
            min(density, 1.0),
            bool(rng.random() < 0.5),
            float(rng.uniform(0, 4)),
            str(rng.choice(LOSSES)),
            float(np.round(rng.uniform(0.05, 0.95), 2)),
            float(f"{10 ** rng.uniform(-3, 4):.2g}"),
            bool(rng.random() < 0.5),
        )

    @property
    def title(self) -> str:
        kind = "dense" if self.density == 1 else f"{self.density:.2g}{' uneven' * self.uneven}"
        offset = "b" if self.offset else "-"
        return (
            f"{self.number:>4} {self.n:>7,} x {self.d:<6,} {kind:<15} 10^{self.decades:.1f} "
            f"{self.loss:<27} C = {self.C:<7g} {offset}"
        )

    def data(self) -> tuple[Any, Array]:
        """X and y: linear in columns of one scale, which then get their own."""
        rng = np.random.default_rng([self.seed + 1, self.number])
        if self.density == 1:
            X: Any = rng.normal(size=(self.n, self.d))
        elif self.uneven:
            X = sparse_rows(self.n, self.d, max(2, round(self.density * self.d)), self.number)
        else:
            X = sp.random(self.n, self.d, self.density, format="csr", random_state=rng)
        y = linear_target(X, self.number, 0.5) + rng.normal()
        scales = 10 ** (self.decades * rng.uniform(-0.5, 0.5, size=self.d))
        if self.density == 1:
            X *= scales
        else:
            X.data *= scales[X.indices]
        return X, y

    def model(self, solver: str, limit: float, tau: float | Sequence[float] | None = None) -> Any:
        """The machine, unfitted."""
        given: dict[str, Any] = {
            "C": self.C,
            "fit_intercept": self.offset,
            "solver": solver,
            "time_limit": limit,
            "max_iter": -1,
        }
        if self.loss.endswith("insensitive"):
            return Tube(loss=self.loss, epsilon=0.1, **given)
        machine = Quantile if self.loss == "pinball" else Expectile
        return machine(tau=self.tau if tau is None else tau, **given)


class OfTheProcessor:
    """Has a time limit of processor seconds."""

    def _options(self) -> SolverOptions:
        return super()._options().with_(clock=time.process_time)  # type: ignore[misc]


class Tube(OfTheProcessor, LinearSVR):
    pass


class Quantile(OfTheProcessor, LinearQuantileSVR):
    pass


class Expectile(OfTheProcessor, LinearExpectileSVR):
    pass


@dataclass
class Run:
    """Seconds of a side, and whether all of its gaps are within ``tol``."""

    seconds: float
    solved: bool

    def text(self) -> str:
        return f"{1e3 * self.seconds:7.1f}{' ' if self.solved else '+'}"


def timed(model: Any, X: Any, y: Array) -> Run:
    """Processor seconds of a fit, and whether it is solved."""
    started = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - started
    return Run(seconds, bool(np.all(model.dual_gap_ <= model.tol)))


def against_solvers(shape: Shape, limit: float) -> tuple[float, dict[str, Run]]:
    """The ratio of ``auto`` to the better of its solvers, and the best run of each."""
    X, y = shape.data()
    # others are refused
    few = min(shape.n, shape.d) <= LinearInteriorPoint().most
    rivals = [side for side in RIVALS if few or side != "interior_point"]
    best: dict[str, Run] = {}
    ratio = 0.0
    for turn in range(ROUNDS):
        for side in ("auto", *rivals):
            allowed = limit
            if side != "auto" and best["auto"].solved:
                allowed = 2.0 * best["auto"].seconds + 0.05
            run = timed(shape.model(side, allowed), X, y)
            keep(best, side, run)
        others = [best[side].seconds for side in rivals if best[side].solved]
        ratio = best["auto"].seconds / min(others) if others else 0.0
        if ratio <= DOUBTFUL or (turn == 0 and best["auto"].seconds > 1.0):
            break
    return ratio, best


def against_single_fits(shape: Shape, limit: float) -> tuple[float, dict[str, Run]]:
    """The ratio of a list of levels to as many single fits."""
    X, y = shape.data()
    rng = np.random.default_rng([shape.seed + 2, shape.number])
    taus = np.sort(np.round(rng.uniform(0.02, 0.98, size=rng.integers(2, 20)), 3))
    best: dict[str, Run] = {}
    ratio = 0.0
    for turn in range(ROUNDS):
        many = shape.model("auto", limit * len(taus), list(taus))
        keep(best, "list", timed(many, X, y))
        single = [timed(shape.model("auto", limit, float(tau)), X, y) for tau in taus]
        keep(
            best,
            "single",
            Run(sum(run.seconds for run in single), all(run.solved for run in single)),
        )
        ratio = best["list"].seconds / best["single"].seconds
        if best["single"].solved and not best["list"].solved:
            ratio = np.inf
        if ratio <= 1.0 or (turn == 0 and best["list"].seconds > 3.0):
            break
    return ratio, best


def keep(best: dict[str, Run], side: str, run: Run) -> None:
    """The better of two runs: one that is solved, or the shorter one."""
    old = best.get(side)
    if old is None or (not run.solved, run.seconds) < (not old.solved, old.seconds):
        best[side] = run


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linear_shapes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=200, help="shapes 0, 1, …; 200")
    parser.add_argument("--shapes", type=int, nargs="+", help="these numbers alone")
    parser.add_argument("--seed", type=int, default=20, help="of the shapes; 20")
    parser.add_argument("--limit", type=float, default=3.0, help="seconds of a fit; 3")
    parser.add_argument("--lists", action="store_true", help="lists of levels and single fits")
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    shapes = [Shape.draw(number, args.seed) for number in args.shapes or range(args.count)]
    if args.lists:
        shapes = [shape for shape in shapes if not shape.loss.endswith("insensitive")]
    measure = against_single_fits if args.lists else against_solvers
    found = []
    with threadpool_limits(1):
        for shape in shapes:
            ratio, best = measure(shape, args.limit)
            found.append((ratio, shape, best))
            print(line(*found[-1]), flush=True)
    report(found, 1.0 if args.lists else BAD)


def line(ratio: float, shape: Shape, best: dict[str, Run]) -> str:
    sides = "  ".join(f"{side} {run.text()}" for side, run in best.items())
    return f"{ratio:5.2f}  {shape.title}  ms: {sides}"


def report(found: list[tuple[float, Shape, dict[str, Run]]], bad: float) -> None:
    """Quantiles of the ratios, and the worst places."""
    ratios = np.array([ratio for ratio, _, _ in found])
    print(f"\n{len(found)} shapes; a + stands where the gap asked for was not reached")
    for level in (0.5, 0.75, 0.9, 0.95, 0.99, 1.0):
        most = np.quantile(ratios, level, method="higher")
        print(f"{level:5.0%} of the ratios are at most {most:.2f}")
    unsolved = sum(not next(iter(best.values())).solved for _, _, best in found)
    print(f"{unsolved} not solved; {np.count_nonzero(ratios > bad)} ratios above {bad:g}:")
    for entry in sorted(found, key=lambda entry: -entry[0]):
        if entry[0] > bad:
            print(line(*entry))


if __name__ == "__main__":
    main()
