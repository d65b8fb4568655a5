"""Two solvers of one problem give one objective, every compatible pair of them."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from tausvm.solvers import SMO, Block, InteriorPoint, Newton, Solver, SolverResult, solve

from ..reference.qp import natural_size
from .cases import FLAWS, KERNELS, LOSSES, Case, random_case
from .checks import OPTIONS, assert_feasible

PROBLEMS = list(product(LOSSES, KERNELS, (False, True)))


def every_way(case: Case) -> dict[str, SolverResult]:
    """The problem solved by every solver and working set that serves it."""
    problem = case.problem()
    ways: dict[str, Solver] = {
        "block": Block(),
        "block of 8": Block(block_size=8),
        "interior_point": InteriorPoint(),
    }
    if case.offset:
        ways["smo"] = SMO()
        ways["smo without shrinking"] = SMO(shrinking=False)
    else:
        for kind in ("single", "halves", "nearest"):
            ways[f"smo {kind}"] = SMO(working_set=kind)
        ways["smo nearest 3"] = SMO(neighbours=3)
    if case.loss.startswith("squared"):
        ways["newton"] = Newton()
    return {name: solve(problem, solver, OPTIONS) for name, solver in ways.items()}


@pytest.mark.parametrize(
    "number",
    range(len(PROBLEMS)),
    ids=lambda number: "-".join(str(part) for part in PROBLEMS[number]),
)
def test_same_optimum(number: int) -> None:
    loss, kernel, offset = PROBLEMS[number]
    for flaw in ("none", FLAWS[1 + number % 3]):
        case = random_case(
            700 + number, loss, kernel, offset, False, flaw, largest_n=50, log_C=(-2, 0.7)
        )
        results = every_way(case)
        floor = 1e-6 * natural_size(case.y, case.costs)
        for name, result in results.items():
            assert result.dual_gap <= OPTIONS.tol, (name, str(case))
            assert result.solver == name.split()[0]
            assert_feasible(case, result)
        for (one, a), (two, b) in combinations(results.items(), 2):
            scale = max(a.primal_objective, floor)
            assert abs(a.dual_objective - b.dual_objective) <= 3e-8 * scale, (one, two, str(case))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("loss", ["squared_pinball", "squared_epsilon_insensitive"])
def test_newton_by_conjugate_gradients(loss: str, kernel: str, dtype: type) -> None:
    """Systems past the order that is factorised, here a small one, reach the same optimum."""
    for seed in range(6):
        case = random_case(
            800 + seed, loss, kernel, seed % 2 == 0, False, FLAWS[seed % 3], log_C=(-2, 3)
        )
        direct = solve(case.problem(dtype=dtype), "newton", OPTIONS)
        iterated = solve(
            case.problem(dtype=dtype), Newton(few=30, direct=30, factor_cost=1e300), OPTIONS
        )
        for result in (direct, iterated):
            assert result.dual_gap <= OPTIONS.tol, str(case)
            assert_feasible(case, result)
        assert iterated.dual_objective == pytest.approx(direct.dual_objective, rel=3e-8), str(case)


@pytest.mark.parametrize("cache_rows", [None, 40])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_block_and_smo_on_more_samples(loss: str, offset: bool, cache_rows: int | None) -> None:
    """Enough samples that blocks are blocks, rows leave the cache and variables shrink."""
    rng = np.random.default_rng(0)
    n = 600
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    y = np.sign(y) if loss == "hinge" else y
    case = Case(X, y, np.ones(n), loss, "rbf", offset, C=1.0, tau=0.7, epsilon=0.1, gamma=0.5)
    size = 100.0 if cache_rows is None else cache_rows * n * 4 / 2**20
    options = OPTIONS.with_(tol=1e-5)
    results = [
        solve(case.problem(size, np.float32), solver, options)
        for solver in (Block(block_size=64), SMO())
    ]
    for result in results:
        assert result.dual_gap <= 1e-5
        assert_feasible(case, result)
    assert results[0].dual_objective == pytest.approx(results[1].dual_objective, rel=2e-5)
