"""The joint problem of Figure 3: seconds to a relative duality gap, against CVXOPT's coneqp.

Gram matrix included for neither side, one BLAS thread, the sides in turn. The gap of each is the
true one, certified from its α alone.
"""

from __future__ import annotations

import argparse
import resource
import time

from threadpoolctl import threadpool_limits

from tausvm import JointExpectileSVR, JointQuantileSVR
from tausvm.solvers import PrimalDualCD, Problem, Solver, SolverOptions, solve

from .joint_problems import EPSILONS, build, certify, coneqp, five_features, sine
from .timing import alternate


def ours(problem: Problem, solver: str | Solver, options: SolverOptions) -> object:
    problem.operator.kept.clear()  # every run factorises anew
    return solve(problem, solver, options).beta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 5000])
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for primal_dual_cd")
    parser.add_argument("--largest-coneqp", type=int, default=500, help="largest n for CVXOPT")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--full-rank", action="store_true", help="data of five features, whose K has full rank"
    )
    parser.add_argument("--large", action="store_true", help="whole fits of 9 levels, 5 features")
    options = parser.parse_args()
    if options.large:
        for n in options.sizes:
            large(n)
        return
    print(f"{'n':>5} {'ε':>4}  {'method':<28} {'seconds':>8} {'gap':>9} {'coneqp/it':>9}")
    with threadpool_limits(1):
        for n in options.sizes:
            for epsilon in EPSILONS:
                compare(n, epsilon, options)


def compare(n: int, epsilon: float, options: argparse.Namespace) -> None:
    problem = build(*(five_features if options.full_rank else sine)(n), epsilon)
    limited = SolverOptions(tol=options.tol, time_limit=options.limit)
    sides = {
        "auto": lambda: ours(problem, "auto", SolverOptions(tol=options.tol)),
        "primal_dual_cd, active set": lambda: ours(problem, PrimalDualCD(), limited),
        "primal_dual_cd": lambda: ours(problem, PrimalDualCD(shrinking=False), limited),
    }
    if n <= options.largest_coneqp:
        sides["CVXOPT coneqp"] = lambda: coneqp(problem, tol=options.tol)
    timings = dict(zip(sides, alternate(list(sides.values()), options.repeats), strict=True))
    peer = timings.get("CVXOPT coneqp")
    for name, timing in timings.items():
        gap = certify(problem, timing.value).gap
        ratio = f"{peer.seconds / timing.seconds:9.1f}" if peer else f"{'–':>9}"
        print(
            f"{n:5d} {epsilon:4g}  {name:<28} {timing.seconds:8.3f} {gap:9.1e} {ratio}",
            flush=True,
        )


def large(n: int) -> None:
    """Whole fits, Gram matrix and checks included, at the default tolerance."""
    X, y = five_features(n)
    taus = [k / 10 for k in range(1, 10)]
    for estimator in (JointQuantileSVR, JointExpectileSVR):
        for epsilon in (0.0, 0.5):
            model = estimator(tau=taus, epsilon=epsilon)
            began = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - began
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{n:5d} {epsilon:4g}  {estimator.__name__:<18} {seconds:8.2f} s, gap "
                f"{model.dual_gap_:.1e}, {model.result_.n_iter} steps, {len(model.support_)} "
                f"support vectors, {memory:.2f} GB",
                flush=True,
            )


if __name__ == "__main__":
    main()
