"""Fit times against peers, in one process, BLAS on one thread.

sklearn: ε-SVR against scikit-learn's SVR (LIBSVM), both with an offset.
liquidsvm: one quantile or expectile machine against liquidSVM, both without an offset.
README.md here says how the comparison is made.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR as LibsvmSVR
from threadpoolctl import threadpool_limits

from tausvm import SVR, ExpectileSVR, QuantileSVR
from tausvm.losses import EpsilonInsensitive
from tausvm.solvers import SOLVERS, Certificate, SolverResult, Status

from . import data, liquid
from .problems import (
    CACHE_SIZE,
    DATA_SETS,
    EPSILON,
    SVR_SETTINGS,
    certify,
    dual_vector,
)
from .timing import alternate

Array = NDArray[np.float64]

#: two duals are equal within this, relative
SAME_DUAL = 1e-4

#: our relative gap by default: against LIBSVM the one that makes the duals equal for certain
DEFAULT_TOL = {"sklearn": SAME_DUAL, "liquidsvm": 1e-3}

#: (C, γ) of the quantile and expectile machines, on data in [−1, 1]; λ = 1/(2nC)
LIQUID_SETTINGS = {"easy": (1.0, 1.0), "medium": (10.0, 2.0), "hard": (100.0, 4.0)}

#: about what liquidSVM's rule is as a relative gap
MATCHED_TOL = {"quantile": 0.02, "expectile": 0.05}

MACHINES = {"quantile": QuantileSVR, "expectile": ExpectileSVR}

#: rows at most against liquidSVM, which holds two n×n matrices of doubles
LIQUID_ROWS = 10_000

QUICK_ROWS = 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    if args.tol is None:
        args.tol = DEFAULT_TOL[args.peer]
    if args.quick:
        args.max_rows = min(args.max_rows or QUICK_ROWS, QUICK_ROWS)
        args.repeats = min(args.repeats, 2)
    compare = against_libsvm if args.peer == "sklearn" else against_liquidsvm
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row says it
        ratios = list(compare(args))
    mean = np.exp(np.mean(np.log(ratios)))
    print(
        f"ours is faster by: geometric mean {mean:.2f}, minimum {min(ratios):.2f}; "
        f"{len(ratios)} cases, slower in {sum(ratio < 1 for ratio in ratios)}"
    )


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--peer", choices=DEFAULT_TOL, default="sklearn")
    parse.add_argument("--data", nargs="+", default=DATA_SETS, choices=DATA_SETS, metavar="NAME")
    parse.add_argument("--settings", nargs="+", default=list(SVR_SETTINGS), choices=SVR_SETTINGS)
    parse.add_argument("--solver", default="auto", choices=SOLVERS, help="ours")
    parse.add_argument(
        "--tol", type=float, help="our relative gap; 1e-4 against sklearn, else 1e-3"
    )
    parse.add_argument("--max-rows", type=int, help="cut every data set to this many rows")
    parse.add_argument("--repeats", type=int, default=5, help="best of at most this many runs")
    parse.add_argument(
        "--time-limit", type=float, default=600.0, help="seconds for one fit of ours"
    )
    parse.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows, two runs")
    peer = parse.add_argument_group("with --peer liquidsvm")
    peer.add_argument("--loss", nargs="+", default=list(MACHINES), choices=MACHINES)
    peer.add_argument("--tau", nargs="+", type=float, default=[0.25])
    peer.add_argument(
        "--matched",
        choices=("fixed", "rule"),
        default="fixed",
        help="our gap: 0.02 and 0.05, or what liquidSVM's rule is in each case",
    )
    peer.add_argument(
        "--check",
        action="store_true",
        help="also solve both tightly and print the largest difference of their predictions",
    )
    return parse


def remark(result: SolverResult) -> str:
    """What to say of a fit of ours that did not get to its gap."""
    return "" if result.status is Status.SOLVED else f"  not solved: {result.status.value}"


# ---------------------------------------------------------------------- LIBSVM


def against_libsvm(args: argparse.Namespace) -> Iterator[float]:
    """One row a case; yields LIBSVM's seconds over ours."""
    print(
        f"ε-SVR, RBF, ε = {EPSILON}, cache {CACHE_SIZE} MB; ours: {args.solver}, gap {args.tol:g}"
    )
    print(
        f"{'data':<14}{'n':>6} {'setting':<7}{'C':>5}{'gamma':>6}"
        f"{'libsvm s':>10}{'ours s':>9}{'ratio':>7}"
        f"{'libsvm dual':>15}{'our dual':>15}{'difference':>12}{'our gap':>9}"
    )
    common = {"epsilon": EPSILON, "cache_size": CACHE_SIZE}
    own = {"solver": args.solver, "tol": args.tol, "time_limit": args.time_limit}
    X, y = data.load(args.data[0], "standard", 100)  # first calls are not what is measured
    LibsvmSVR(**common).fit(X, y)
    SVR(**common, **own).fit(X, y)
    for name in args.data:
        X, y = data.load(name, "standard", args.max_rows)
        for setting in args.settings:
            C, gamma = SVR_SETTINGS[setting]
            theirs = LibsvmSVR(C=C, gamma=gamma, **common)
            mine = SVR(C=C, gamma=gamma, **common, **own)
            peer, ours = alternate(
                [lambda m=theirs, X=X, y=y: m.fit(X, y), lambda m=mine, X=X, y=y: m.fit(X, y)],
                args.repeats,
            )
            their_dual = svr_certificate(theirs, X, y, C, gamma).dual
            reached = svr_certificate(mine, X, y, C, gamma)
            difference = (reached.dual - their_dual) / abs(their_dual)
            ratio = peer.seconds / ours.seconds
            print(
                f"{name:<14}{len(y):>6} {setting:<7}{C:>5g}{gamma:>6g}"
                f"{peer.seconds:>10.3f}{ours.seconds:>9.3f}{ratio:>7.2f}"
                f"{their_dual:>15.7g}{reached.dual:>15.7g}{difference:>12.1e}{reached.gap:>9.1e}"
                + ("" if abs(difference) <= SAME_DUAL else "  duals differ")
                + remark(mine.result_),
                flush=True,
            )
            yield ratio


def svr_certificate(
    model: LibsvmSVR | SVR, X: Array, y: Array, C: float, gamma: float
) -> Certificate:
    """Both objectives at a fitted machine's coefficients, from the data."""
    return certify(dual_vector(model, len(y)), X, y, EpsilonInsensitive(EPSILON), C, gamma, True)


# ------------------------------------------------------------------- liquidSVM


@dataclass
class LevelCase:
    """One quantile or expectile machine on labels as liquidSVM prepares them."""

    name: str
    X: Array
    y: Array
    kind: str
    tau: float
    setting: str

    @property
    def C(self) -> float:
        return LIQUID_SETTINGS[self.setting][0]

    @property
    def gamma(self) -> float:
        return LIQUID_SETTINGS[self.setting][1]

    def liquid(self) -> liquid.LiquidFit:
        """An untrained model of liquidSVM."""
        return liquid.LiquidFit(self.kind, self.X, self.y, self.tau, self.C, self.gamma)

    def ours(self, args: argparse.Namespace, tol: float) -> SolverResult:
        """Our fit at a relative gap."""
        machine = MACHINES[self.kind](
            tau=self.tau,
            C=self.C,
            gamma=self.gamma,
            fit_intercept=False,
            solver=args.solver,
            tol=tol,
            cache_size=CACHE_SIZE,
            time_limit=args.time_limit,
        )
        return machine.fit(self.X, self.y).result_


def level_cases(args: argparse.Namespace) -> Iterator[LevelCase]:
    """Data sets, losses, levels and settings."""
    rows = min(args.max_rows or LIQUID_ROWS, LIQUID_ROWS)
    for name in args.data:
        X, labels = data.load(name, "unit", rows)
        for kind in args.loss:
            for tau in args.tau:
                y = liquid.prepare_labels(kind, labels, tau)
                for setting in args.settings:
                    yield LevelCase(name, X, y, kind, tau, setting)


def against_liquidsvm(args: argparse.Namespace) -> Iterator[float]:
    """One row a case; yields liquidSVM's seconds over ours at the matched gap."""
    liquid.load_liquidsvm()
    fixed = " and ".join(f"{tol:g} ({kind})" for kind, tol in MATCHED_TOL.items())
    gap = fixed if args.matched == "fixed" else "its rule"
    print(f"one fit without offset, RBF, data in [−1, 1]; ours: {args.solver}, matched gap {gap}")
    print(
        f"{'data':<14}{'n':>6} {'loss':<10}{'tau':>5} {'setting':<7}{'C':>5}{'gamma':>6}"
        f"{'lambda':>9}{'its rule':>10}{'liquid s':>10}{'matched s':>10}{'ratio':>7}{'our gap':>9}"
        f"{f's at {args.tol:g}':>11}{'ratio':>7}" + (f"{'difference':>12}" if args.check else "")
    )
    for case in level_cases(args):
        n = len(case.y)
        rule = liquid.STOP * n * case.C / case.ours(args, args.tol).primal_objective
        tol = rule if args.matched == "rule" else MATCHED_TOL[case.kind]
        model = case.liquid()
        peer, matched, tight = alternate(
            [
                model.train,
                lambda case=case, tol=tol: case.ours(args, tol),
                lambda case=case: case.ours(args, args.tol),
            ],
            args.repeats,
        )
        ratio = peer.seconds / matched.seconds
        row = (
            f"{case.name:<14}{n:>6} {case.kind:<10}{case.tau:>5g} {case.setting:<7}"
            f"{case.C:>5g}{case.gamma:>6g}{1 / (2 * n * case.C):>9.1e}{rule:>10.1e}"
            f"{peer.seconds:>10.3f}{matched.seconds:>10.3f}{ratio:>7.2f}"
            f"{matched.value.dual_gap:>9.1e}"
            f"{tight.seconds:>11.3f}{peer.seconds / tight.seconds:>7.2f}"
        )
        if args.check:
            row += f"{prediction_difference(args, case):>12.1e}"
        print(row + remark(matched.value), flush=True)
        yield ratio


def prediction_difference(args: argparse.Namespace, case: LevelCase) -> float:
    """The largest difference of predictions, both sides solved tightly, liquidSVM unclipped."""
    model = case.liquid()
    model.train(stop=1e-9, clip=0.0)
    theirs = model.predict(case.X, case.y)
    return float(np.abs(theirs - case.ours(args, 1e-8).fitted).max())


if __name__ == "__main__":
    main()
