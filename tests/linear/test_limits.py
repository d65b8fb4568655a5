"""Limits of the linear machines: time by an injected clock, iterations, callbacks, Ctrl-C."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tausvm._core.rows import Matrix

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR, LinearSVRCV
from tausvm.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from tausvm.operators import LinearOperator, Portions
from tausvm.solvers import Problem, Progress, SolverOptions, Status, solve
from tausvm.solvers.linear import (
    LinearAuto,
    LinearInteriorPoint,
    LinearNewton,
    Pace,
    Proximal,
)

SQUARED = "squared_epsilon_insensitive"
SOLVERS = ["auto", "dual_cd", "newton", "interior_point"]


class Clock:
    """A second passes whenever it is looked at."""

    def __init__(self, step: float = 1.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def hard(
    loss: str, offset: bool, shape: tuple[int, int] = (300, 700), **portions: float
) -> Problem:
    rng = np.random.default_rng(0)
    A = sp.random(*shape, density=0.05, random_state=0, format="csr")
    y = A @ rng.normal(size=shape[1]) + rng.normal(size=shape[0])
    kind = SquaredEpsilonInsensitive if loss == SQUARED else EpsilonInsensitive
    operator = LinearOperator(A, portions=Portions(**portions))
    return Problem(operator, y, kind(0.01).dual_terms(y, np.full(shape[0], 1e3)), offset)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("limit", [0.0, 5.0, 40.0])
def test_time_limit_by_an_injected_clock(
    limit: float, solver: str, loss: str, offset: bool
) -> None:
    clock = Clock()
    options = SolverOptions(tol=1e-15, time_limit=limit, clock=clock)
    result = solve(hard(loss, offset), solver, options)
    assert result.status is Status.TIME_LIMIT
    # the clock goes on for every look at it, so that a few come after the end
    assert clock.now <= limit + 12
    assert np.isfinite(result.dual_gap) and np.isfinite(result.function).all()


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_limit_keeps_time_for_the_certificate(solver: str, loss: str, offset: bool) -> None:
    """Where the products of a certificate take all of it, the best constant is what there is."""

    class Untouchable(Matrix):
        def dots(self, *_: Any) -> None:
            pytest.fail("a product with X")

        sum = column_squares = dots

    problem = hard(loss, offset, seconds_an_entry=1.0)
    X = problem.operator.X
    problem.operator.matrix = Untouchable(X.data, X.indices, X.indptr, None, X.shape[1])
    result = solve(problem, solver, SolverOptions(tol=1e-15, time_limit=100.0))
    assert result.status is Status.TIME_LIMIT
    assert not result.function.any() and not result.beta.any()
    assert result.dual_gap == pytest.approx(1.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_long_pass_ends_in_its_middle(solver: str) -> None:
    """Work on X is done in batches, and the limit is looked at between them."""
    clock = Clock(0.1)
    options = SolverOptions(tol=1e-15, time_limit=8.0, clock=clock)
    problem = hard("epsilon_insensitive", True, batch=300)  # entries: nine rows
    result = solve(problem, solver, options)
    assert result.status is Status.TIME_LIMIT and clock.now <= 10.0


#: three passes, and not one more
HASTY = Pace(hopeful=0.0, least=3, most=3, patience=1e-9, newton_patience=1e18)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
def test_auto_hands_on_what_is_left_of_the_time(loss: str) -> None:
    hasty = LinearAuto(interior_point=LinearInteriorPoint(most=0), pace=HASTY)
    clock = Clock()
    options = SolverOptions(tol=1e-15, time_limit=120.0, clock=clock)
    result = solve(hard(loss, True), hasty, options)
    assert result.solver == "dual_cd, newton" and clock.now <= 132.0


def test_a_rescue_has_what_is_left_of_the_limits() -> None:
    """Where rounding stops the others, coordinate descent goes on, within both limits."""
    problem = hard("epsilon_insensitive", True, (60, 20))
    clock = Clock()
    impatient = LinearAuto(
        newton=LinearNewton(proximal=Proximal(patience=1, progress=0.0)),
        interior_point=LinearInteriorPoint(most=0),
        pace=Pace(hopeful=1e9),
    )
    options = SolverOptions(tol=1e-15, time_limit=1000.0, max_iter=50, clock=clock)
    result = solve(problem, impatient, options)
    assert result.solver == "newton, dual_cd" and result.status is Status.MAX_ITER
    assert result.n_iter <= 50 and clock.now <= 1000.0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("solver", SOLVERS)
def test_max_iter_and_callback(solver: str, loss: str) -> None:
    problem = hard(loss, True)
    for limit in (0, 1, 3):
        result = solve(problem, solver, SolverOptions(tol=1e-15, max_iter=limit))
        assert result.status is Status.MAX_ITER and result.n_iter == limit
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 2

    result = solve(problem, solver, SolverOptions(tol=1e-15, callback=stop))
    assert result.status is Status.STOPPED_BY_CALLBACK and seen == result.trace


RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 30))
Y = X @ RNG.normal(size=30) + RNG.normal(size=200)


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVR(),
        LinearSVR(loss=SQUARED),
        LinearQuantileSVR(tau=[0.1, 0.5, 0.9]),
        LinearExpectileSVR(tau=[0.1, 0.9]),
    ],
)
def test_no_time_at_all_is_the_best_constant(machine: Any) -> None:
    machine = machine.set_params(time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"gap is 1.00e\+00.*time_limit"):
        model = machine.fit(X, Y)
    assert np.ptp(model.predict(X), axis=0).max() == 0.0


def test_selection_within_a_time_limit() -> None:
    with (
        pytest.raises(ValueError, match=r"no C could be scored on all folds.*time_limit=1e-09"),
        pytest.warns(ConvergenceWarning, match="did not come to an end within time_limit"),
    ):
        LinearSVRCV(time_limit=1e-9).fit(X, Y)
    model = LinearSVRCV(time_limit=1e4, Cs=3).fit(X, Y)
    assert model.dual_gap_ <= model.tol and model.best_estimator_.time_limit == 1e4
    with pytest.raises(ValueError, match="time_limit must be a finite number > 0, got 0"):
        LinearSVRCV(time_limit=0).fit(X, Y)


def test_C_without_time_on_every_fold_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock lets each fold come to an end of its first two C only."""
    from tausvm.selection import walk as module

    real, calls = module.solve, []

    def late(problem: Any, solver: str, options: SolverOptions, start: Any) -> Any:
        result = real(problem, solver, options, start)
        calls.append(options.time_limit)
        if len(calls) % 3 == 0:
            result.status = Status.TIME_LIMIT
        return result

    monkeypatch.setattr(module, "solve", late)
    with pytest.warns(ConvergenceWarning, match="4 fits of the selection did not come"):
        model = LinearSVRCV(Cs=[1e-6, 1e-5, 10.0, 11.0], cv=2, time_limit=100.0).fit(X, Y)
    assert model.best_params_["C"] == 1e-5
    assert np.isnan(model.cv_results_["mean_test_score"][2:]).all()
    assert max(calls) <= 40.0  # four fifths, in two parts


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [None, 2])
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVRCV(tol=1e-12, selection_tol=1e-12, max_iter=-1, Cs=[1e3, 1e4]),
        LinearSVRCV(tol=1e-12, selection_tol=1e-12, max_iter=-1, Cs=[1e3, 1e4], loss=SQUARED),
        LinearQuantileSVR(tau=[0.2, 0.5, 0.8], C=1e4, tol=1e-12, max_iter=-1),
        LinearSVR(C=1e4, tol=1e-12, max_iter=-1, solver="newton"),
        LinearSVR(C=1e4, tol=1e-12, max_iter=-1, solver="dual_cd"),
    ],
)
def test_ctrl_c_and_real_time(machine: Any, jobs: int | None) -> None:
    import _thread

    if isinstance(machine, LinearSVRCV):
        machine = machine.set_params(n_jobs=jobs)
    rng = np.random.default_rng(0)
    n, d, entries = 20_000, 30_000, 1_200_000
    places = np.repeat(np.arange(n), entries // n), rng.integers(0, d, size=entries)
    A = sp.csr_matrix((rng.normal(size=entries), places), (n, d))
    A.sum_duplicates()
    y = A @ rng.normal(size=d) + rng.normal(size=n)
    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.perf_counter())
        _thread.interrupt_main()

    timer = threading.Timer(2.0, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        machine.fit(A, y)
    assert time.perf_counter() - pressed[0] < 1.5
    machine = machine.set_params(time_limit=4.0)
    if isinstance(machine, LinearSVRCV):
        machine = machine.set_params(selection_tol=1e-1, Cs=[1e-4, 1e4])
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning):
        machine.fit(A, y)
    assert time.perf_counter() - started < 5.0
