"""How a solve may end, what it says then, and that it ends the same way twice."""

from __future__ import annotations

import signal
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tausvm.kernels import Points, make_kernel
from tausvm.losses import EpsilonInsensitive, Pinball, SquaredPinball
from tausvm.operators import CachedKernel, GivenKernel
from tausvm.solvers import (
    SMO,
    SOLVERS,
    Auto,
    Block,
    Point,
    Problem,
    Progress,
    SolverOptions,
    SolverResult,
    Status,
    solve,
)

from .cases import LOSSES, random_case
from .checks import OPTIONS, assert_feasible, certified

ITERATIVE = ["smo", "block"]
NAMED = [name for name in SOLVERS if name != "auto"]


def hard_problem(offset: bool, n: int = 400, smooth: bool = False) -> Problem:
    """Large C and a wide kernel: thousands of steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.sin(3 * X[:, 0]) + rng.normal(size=n)
    loss = SquaredPinball(0.3, 0.01) if smooth else EpsilonInsensitive(0.01)
    gram = CachedKernel(make_kernel("rbf", 0.05), Points(X))
    return Problem(gram, y, loss.dual_terms(y, np.full(n, 1e3)), offset)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("solver", ITERATIVE)
def test_max_iter(solver: str, offset: bool) -> None:
    problem = hard_problem(offset)
    for limit in (0, 1, 3):
        result = solve(problem, solver, SolverOptions(tol=1e-10, max_iter=limit))
        assert result.status is Status.MAX_ITER
        assert result.n_iter == limit
        assert result.dual_gap > 1e-10
        found = certified(problem, result.beta)
        assert result.dual_gap == found.gap
    assert solve(problem, solver, SolverOptions(tol=1e-10, max_iter=0)).beta.any() == 0


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("solver", ["smo", "block", "interior_point"])
def test_time_limit(solver: str, offset: bool) -> None:
    problem = hard_problem(offset, 1200)
    result = solve(problem, solver, SolverOptions(tol=1e-13, time_limit=0.02))
    assert result.status is Status.TIME_LIMIT
    assert np.isfinite(result.dual_gap)


@pytest.mark.parametrize(
    ("solver", "check"), [(name, 1) for name in NAMED] + [(name, 2) for name in ITERATIVE]
)
def test_callback_stops(solver: str, check: int) -> None:
    problem = hard_problem(True, 200, smooth=True)
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == check

    result = solve(problem, solver, SolverOptions(tol=1e-14, callback=stop, time_limit=10))
    assert result.status is Status.STOPPED_BY_CALLBACK
    assert len(seen) == check
    assert seen == result.trace
    assert seen[0].n_iter == 0


@pytest.mark.parametrize("solver", NAMED)
def test_callback_that_never_stops_sees_every_check(solver: str) -> None:
    problem = hard_problem(False, 100, smooth=True)
    seen: list[Progress] = []
    result = solve(problem, solver, SolverOptions(tol=1e-6, callback=seen.append, time_limit=10))
    assert result.status is Status.SOLVED
    assert len(seen) in (len(result.trace), len(result.trace) - 1)  # the last one ended it
    assert all(p.dual_objective <= result.primal_objective * (1 + 1e-9) for p in seen)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("solver", NAMED)
def test_same_bits_twice(solver: str, offset: bool, dtype: type) -> None:
    case = random_case(31, "squared_pinball", "rbf", offset, False, log_C=(0, 2))
    first, second = (solve(case.problem(dtype=dtype), solver, OPTIONS) for _ in range(2))
    np.testing.assert_array_equal(first.beta, second.beta)
    assert first.intercept == second.intercept
    assert first.primal_objective == second.primal_objective
    assert first.n_iter == second.n_iter


@pytest.mark.parametrize("offset", [False, True])
def test_same_bits_twice_in_blocks(offset: bool) -> None:
    options = SolverOptions(tol=1e-4, time_limit=30)
    results = [solve(hard_problem(offset), Block(block_size=64), options) for _ in range(2)]
    np.testing.assert_array_equal(results[0].beta, results[1].beta)


@pytest.mark.parametrize("loss", [name for name in LOSSES if not name.startswith("squared")])
def test_newton_refuses_losses_with_corners(loss: str) -> None:
    case = random_case(1, loss, "rbf", True, False)
    with pytest.raises(ValueError, match=r"solver='newton' serves .*squared"):
        solve(case.problem(), "newton")


def test_interior_point_needs_the_whole_matrix() -> None:
    case = random_case(2, "pinball", "rbf", True, False)
    problem = case.problem(cache_size=3 * len(case.y) * 8 / 2**20)
    with pytest.raises(ValueError, match="solver='interior_point' needs the whole kernel matrix"):
        solve(problem, "interior_point")


def test_unknown_solver() -> None:
    case = random_case(1, "pinball", "rbf", True, False)
    with pytest.raises(ValueError, match=r"solver must be one of auto, .*got 'libsvm'"):
        solve(case.problem(), "libsvm")


def test_options_copy() -> None:
    options = SolverOptions(tol=1e-3)
    changed = options.with_(tol=1e-5, max_iter=7)
    assert (changed.tol, changed.max_iter, options.tol) == (1e-5, 7, 1e-3)


@pytest.mark.parametrize("solver", ["smo", "block", "interior_point", "auto"])
def test_a_matrix_that_is_no_kernel_ends(solver: str) -> None:
    """Bounded losses on an indefinite matrix: no hang, no false found."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 30))
    matrix = matrix + matrix.T
    y = rng.normal(size=30)
    for offset in (False, True):
        terms = Pinball(0.3).dual_terms(y, np.ones(30))
        problem = Problem(GivenKernel(matrix), y, terms, offset)
        result = solve(problem, solver, SolverOptions(time_limit=2.0))
        assert isinstance(result.status, Status)
        if result.status is Status.SOLVED:
            assert result.dual_gap <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("solver", NAMED)
def test_interrupt_within_a_second(solver: str) -> None:
    """Ctrl-C during a long solve is heard between batches."""
    problem = hard_problem(True, 1500, smooth=True)
    problem.operator.require(np.arange(problem.n))
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.15, interrupt)

    def forever() -> None:
        while True:  # fast solvers end before the signal comes
            solve(problem, solver, SolverOptions(tol=1e-15, time_limit=5))

    timer.start()
    with pytest.raises(KeyboardInterrupt):
        forever()
    assert time.perf_counter() - sent[0] < 1.5


def test_shrinking_leaves_no_variable_behind() -> None:
    problem = hard_problem(True, 150)
    plain, shrunk = (
        solve(problem, SMO(shrinking=flag), SolverOptions(tol=1e-6, time_limit=30))
        for flag in (False, True)
    )
    assert plain.status is shrunk.status is Status.SOLVED
    assert plain.dual_objective == pytest.approx(shrunk.dual_objective, rel=2e-6)


def test_feasible_on_every_exit() -> None:
    """Stopped early, β is still in the dual's domain."""
    for seed, loss in enumerate(LOSSES):
        for offset in (False, True):
            case = random_case(seed, loss, "rbf", offset, True)
            for solver in ("smo", "block", "interior_point"):
                for limit in (0, 1, 2, 5):
                    options = SolverOptions(tol=1e-12, max_iter=limit, time_limit=5)
                    assert_feasible(case, solve(case.problem(), solver, options))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ITERATIVE)
def test_fifty_thousand_samples_within_the_cache(solver: str) -> None:
    """No n×n array (20 GB): rows within cache_size, the rest a few chunks and n-vectors."""
    rng = np.random.default_rng(0)
    n, cache_size = 50_000, 400.0
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    tracemalloc.start()
    try:
        gram = CachedKernel(make_kernel("rbf", 0.5), Points(X), cache_size)
        terms = EpsilonInsensitive(0.1).dual_terms(y, np.ones(n))
        result = solve(Problem(gram, y, terms, True), solver, SolverOptions(time_limit=20.0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert gram.rows.nbytes <= cache_size * 2**20
    assert peak <= (cache_size + 300) * 2**20
    assert result.dual_objective > 0.0
    assert np.isfinite(result.dual_gap)


@pytest.mark.parametrize(
    ("settings", "option", "value"),
    [
        (SMO, "neighbours", 0),
        (SMO, "neighbours", 1.5),
        (SMO, "working_set", "x"),
        (Block, "block_size", 1),
        (SolverOptions, "tol", -1.0),
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(
    settings: Callable[..., object], option: str, value: object
) -> None:
    with pytest.raises(ValueError, match=rf"^{option} must be .*, got {value!r}$"):
        settings(**{option: value})


@dataclass(frozen=True)
class Noting(Block):
    """Notes the options it is given, and returns what it was told to."""

    given: list[SolverOptions] = field(default_factory=list)
    returned: list[SolverResult] = field(default_factory=list)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        self.given.append(options)
        return self.returned[0]


def test_the_rescue_has_what_is_left_of_the_time() -> None:
    """Where ``block`` takes over from another solver, the limit counts on."""
    problem = hard_problem(True, 60)
    failed = solve(problem, "interior_point", SolverOptions(tol=1e-300))
    assert failed.status is Status.NUMERICAL_ERROR
    failed.seconds = 7.0
    noting = Noting(returned=[failed])
    auto = Auto(block=noting)
    auto._rescued(problem, SolverOptions(time_limit=10.0), failed)
    auto._rescued(problem, SolverOptions(time_limit=5.0), failed)
    assert [options.time_limit for options in noting.given] == [3.0, 0.0]
