"""Linear solvers against clarabel, against each other, and against their docstrings."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tausvm._core.visits import Visits

from tausvm.operators import LinearOperator, Portions
from tausvm.solvers import SMO, Point, SolverOptions, SolverResult, Status, explain, solve
from tausvm.solvers.linear import (
    DualCD,
    LinearAuto,
    LinearInteriorPoint,
    LinearNewton,
    Pace,
    Systems,
    Work,
)
from tausvm.solvers.linear.dual_cd import Descent
from tausvm.solvers.linear.steps import NewtonSteps
from tausvm.solvers.monitor import Monitor

from ..reference.qp import natural_size, reference_optimum
from .cases import KINDS, LOSSES, OFFSETS, LinearCase, as_kind, random_case

OPTIONS = SolverOptions(tol=1e-8, time_limit=10.0, max_iter=200_000)
#: no matrix of the features; and none of the rows either, as for many rows and features
INNER_PRODUCTS = LinearNewton(Systems(direct=0, factor_speed=1e300))
CONJUGATE_GRADIENTS = LinearNewton(Systems(direct=0, most_rows=-1))
#: three passes, and not one more
HASTY = Pace(hopeful=0.0, least=3, most=3, patience=1e-9, newton_patience=1e18)


def assert_optimal(case: LinearCase, result: SolverResult) -> None:
    optimum = reference_optimum(case.K, case.y, case.costs, case.free)
    scale = max(optimum.upper, 1e-6 * natural_size(case.y, case.costs))
    assert result.status is Status.SOLVED, case
    assert result.dual_gap <= 1e-8
    for value in (result.primal_objective, result.dual_objective):
        assert max(optimum.lower - value, value - optimum.upper) <= 1e-6 * scale, case
    terms = case.package_loss.dual_terms(case.y, case.C * case.weights)
    assert (result.beta >= terms.lower).all() and (result.beta <= terms.upper).all()
    if case.free:
        assert abs(result.beta.sum()) <= 1e-9 * np.abs(result.beta).sum()
    if case.offset == "none":
        assert result.intercept == 0.0


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_newton_finds_the_optimum(seed: int, loss: str, offset: str) -> None:
    case = random_case(seed, loss, offset)
    assert_optimal(case, solve(case.problem(KINDS[seed % 5]), "newton", OPTIONS))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_interior_point_finds_the_optimum(seed: int, loss: str, offset: str) -> None:
    """By the matrix of the rows, and by that of the features."""
    case = random_case(seed, loss, offset)
    assert_optimal(case, solve(case.problem(KINDS[seed % 5]), "interior_point", OPTIONS))


def test_interior_point_refuses_what_is_too_large() -> None:
    problem = random_case(0, "pinball", "free", shape=(40, 30)).problem("csr")
    with pytest.raises(ValueError, match="at most 20 rows or features, got 40 rows and 30 f"):
        solve(problem, LinearInteriorPoint(most=20))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(10, 14))
def test_newton_by_inner_products(seed: int, loss: str, offset: str) -> None:
    case = random_case(seed, loss, offset, log_C=(-2.0, 1.0))
    assert_optimal(case, solve(case.problem(KINDS[seed % 5]), INNER_PRODUCTS, OPTIONS))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(14, 18))
def test_newton_by_conjugate_gradients(seed: int, loss: str, offset: str) -> None:
    case = random_case(seed, loss, offset, log_C=(-2.0, 0.0))
    assert_optimal(case, solve(case.problem(KINDS[seed % 5]), CONJUGATE_GRADIENTS, OPTIONS))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_hands_over_what_is_slow(loss: str, offset: str) -> None:
    """Where even one more pass is too many."""
    case = random_case(31, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    dear = Work(newton_step=1e18)
    for most, work, name in ((0, Work(), "newton"), (40, dear, "interior_point")):
        solver = LinearAuto(
            newton=CONJUGATE_GRADIENTS,
            interior_point=LinearInteriorPoint(most=most),
            pace=HASTY,
            work=work,
        )
        result = solve(case.problem("csr"), solver, OPTIONS)
        assert result.solver == f"dual_cd, {name}"
        assert_optimal(case, result)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_gives_up_newton_where_it_is_slow(loss: str, offset: str) -> None:
    """Where it is judged after its first step, and may not take any longer."""
    pace = Pace(hopeful=1e9, sure=1e9, fair=0.0, trial=0.0, newton_patience=0.0)
    case = random_case(31, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    result = solve(case.problem("csr"), LinearAuto(pace=pace), OPTIONS)
    assert result.solver in ("newton, interior_point", "newton")
    assert_optimal(case, result)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_auto_goes_back_to_passes_that_promise_more(loss: str, offset: str) -> None:
    """A trial of Newton's method that leads nowhere ends, and passes go on from there."""
    pace = Pace(hopeful=0.0, least=3, most=3, trial=0.0, fair=0.0, sure=1e9, newton_patience=0.0)
    case = random_case(31, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    solver = LinearAuto(pace=pace, interior_point=LinearInteriorPoint(most=0))
    result = solve(case.problem("csr"), solver, OPTIONS)
    assert result.solver.startswith("dual_cd")
    assert_optimal(case, result)


def test_explain_tells_what_auto_does() -> None:
    small = random_case(31, "pinball", "free", log_C=(-4.0, -4.0), shape=(40, 60))
    assert "-> dual_cd" in explain(small.problem("csr"))
    problem = random_case(31, "pinball", "free", shape=(40, 60)).problem("csr")
    assert "-> interior_point" in explain(problem, LinearAuto(pace=Pace(hopeful=1e9)))
    tall = random_case(31, "squared_pinball", "free", shape=(5000, 5)).problem("dense")
    assert "-> newton" in explain(tall)


def test_solvers_of_other_machines_are_refused() -> None:
    problem = random_case(31, "pinball", "free").problem()
    for solver in ("block", SMO()):
        with pytest.raises(
            ValueError, match="must be one of auto, dual_cd, newton, interior_point"
        ):
            solve(problem, solver)


def test_systems_of_past_steps_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and not when the garbage collector comes by: they have the size of the data."""
    born: list[weakref.ref[NewtonSteps]] = []
    alive: list[int] = []
    real = NewtonSteps.__init__

    def noted(self: NewtonSteps, *arguments: object, **options: object) -> None:
        real(self, *arguments, **options)  # type: ignore[arg-type]
        born.append(weakref.ref(self))
        alive.append(sum(reference() is not None for reference in born))

    monkeypatch.setattr(NewtonSteps, "__init__", noted)
    case = random_case(3, "epsilon_insensitive", "none", log_C=(-1.0, 0.0), shape=(40, 60))
    gc.disable()
    try:
        solve(case.problem("csr"), CONJUGATE_GRADIENTS, OPTIONS)
    finally:
        gc.enable()
    assert len(born) > 5 and max(alive) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_outer_products_with_weights_of_both_signs(kind: str) -> None:
    case = random_case(5, "pinball", "none", shape=(50, 7))
    rows = LinearOperator(as_kind(case.X, kind), portions=Portions(block=70, batch=70))
    weight = np.random.default_rng(0).normal(size=50)
    weight[::4] = 0.0
    X = np.asarray(case.X)
    np.testing.assert_allclose(rows.outer(weight), (X.T * weight) @ X, rtol=1e-5, atol=1e-5)
    some = np.arange(3, 40, 2)
    expected = (X[some].T * weight[some]) @ X[some]
    np.testing.assert_allclose(rows.take(some).outer(weight[some]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(20, 24))
def test_dual_cd_finds_the_optimum(seed: int, loss: str, offset: str, adaptive: bool) -> None:
    """Where rows are fewer than features, as coordinate descent likes it."""
    case = random_case(seed, loss, offset, log_C=(-2.0, 1.0), shape=(15 + seed, 60))
    solver = DualCD(adaptive=adaptive)
    assert_optimal(case, solve(case.problem(KINDS[seed % 5]), solver, OPTIONS))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_gains_add_up_to_the_dual(loss: str, offset: str) -> None:
    """From a start that is not 0, and with visits by gain."""
    case = random_case(7, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    problem = case.problem("csr")
    start = problem.feasible(np.full(problem.n, 0.01))
    monitor = Monitor(problem, OPTIONS, "dual_cd")
    descent = Descent(problem, DualCD(equal_passes=10), monitor, Point(start, start))
    descent.look()
    for _ in range(15):
        descent.run()
    exact = problem.dual_value(descent.beta, descent.w)
    assert descent.visits.adapting
    assert descent.dual_value() == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_visits_by_gain_save_passes(seed: int) -> None:
    """Of problems with many rows at their bounds."""
    case = random_case(seed, "epsilon_insensitive", "none", log_C=(-1.0, -0.9), shape=(200, 150))
    passes = {}
    for adaptive in (True, False):
        solver = DualCD(adaptive=adaptive, shrinking=False)
        options = OPTIONS.with_(tol=1e-6, time_limit=None)
        passes[adaptive] = solve(case.problem("csr"), solver, options).n_iter
    assert passes[True] < 0.85 * passes[False], passes


@given(st.lists(st.floats(0.0, 50.0, width=32), min_size=2, max_size=40), st.integers(1, 9))
def test_visits_are_dealt_out_by_gain(given_gains: list[float], block: int) -> None:
    """Rows that gain the same have the same number of visits, those that gain more have more."""
    n = len(given_gains)
    gain = np.array(given_gains, dtype=np.float32)
    visits = Visits(n, block, 0, 0.2, 0.02, 5.0)
    order = visits.order()
    assert sorted(order) == list(range(n))
    visits.learn(order, gain[order])
    visits.adapt()
    visited = np.zeros(n)
    for _ in range(60):
        order = visits.order()
        times = np.bincount(order, minlength=n)
        if block == 1:
            assert len(order) <= n + n // 8 + 1
        visited += times
        visits.learn(order, gain[order])
    assert visited.min() >= 1 or gain.max() == 0
    for i in range(n):
        assert visited[i] >= visited[gain < 0.8 * gain[i]].max(initial=0) - 3


@pytest.mark.parametrize("divisor", [1.0, 6.0, 90.0])
def test_shrinking_as_hard_as_the_paper_tries_it(divisor: float) -> None:
    """M, M/n̄ and M/n of section 4.6: who left too early comes back, the end is the same."""
    case = random_case(7, "epsilon_insensitive", "none", log_C=(0.0, 0.0), shape=(60, 90))
    solver = DualCD(adaptive=False, shrink_divisor=divisor)
    result = solve(case.problem("csr"), solver, SolverOptions(tol=1e-8))
    assert result.dual_gap <= 1e-8
    best = solve(case.problem("csr"), "newton", SolverOptions(tol=1e-8))
    np.testing.assert_allclose(result.dual_objective, best.dual_objective, rtol=1e-7)
    with pytest.raises(ValueError, match="shrink_divisor must be a number > 0, got 0"):
        DualCD(shrink_divisor=0)


def test_rows_that_leave_are_not_visited() -> None:
    visits = Visits(6, 1, 0, 0.2, 0.02, 5.0)
    order = visits.order()
    visits.learn(order, np.where(order % 2 == 0, -1.0, 1.0).astype(np.float32))
    assert visits.count == 3 and sorted(visits.order()) == [1, 3, 5]
    visits.restore()
    assert sorted(visits.order()) == list(range(6))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(300, 700), (5000, 12)], ids=["wide", "tall"])
def test_solvers_agree(shape: tuple[int, int], loss: str, offset: str) -> None:
    case = random_case(7, loss, offset, log_C=(-2.5, -1.0), shape=shape)
    problem = case.problem("csr" if shape[1] > shape[0] else "dense")
    options = OPTIONS.with_(tol=1e-6)
    results = [solve(problem, s, options) for s in ("auto", "newton", "dual_cd", "interior_point")]
    for result in results:
        assert result.status is Status.SOLVED
        assert result.primal_objective == pytest.approx(results[0].dual_objective, rel=3e-6)


def test_a_switch_that_is_stopped_keeps_the_better_dual() -> None:
    """Newton's method, stopped after a step, has a worse β than the passes before it."""
    solver = LinearAuto(interior_point=LinearInteriorPoint(most=0), pace=HASTY)
    case = random_case(2, "squared_pinball", "none", log_C=(2.0, 2.0), shape=(300, 700))
    result = solve(case.problem("csr"), solver, SolverOptions(tol=1e-12, max_iter=10))
    assert result.solver == "dual_cd, newton" and result.status is Status.MAX_ITER
    assert result.dual_objective >= max(entry.dual_objective for entry in result.trace) * (1 - 1e-9)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["dual_cd", "newton", "interior_point"])
def test_certificate_says_what_the_docstring_says(solver: str, loss: str, offset: str) -> None:
    """Both objectives by their formulas; w = Σ βᵢxᵢ, up to the gap."""
    case = random_case(3, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    result = solve(case.problem(), solver, SolverOptions(tol=1e-3))
    column = OFFSETS[offset][1]
    w, b, beta = result.function, result.intercept, result.beta
    constant = 0.5 * (b / column) ** 2 if column else 0.0
    losses = case.costs.value(case.y - case.X @ w - b).sum()
    assert result.primal_objective == pytest.approx(0.5 * w @ w + constant + losses, rel=1e-12)
    pulled = case.X.T @ beta
    terms = case.package_loss.dual_terms(case.y, case.C * case.weights)
    dual = case.y @ beta - 0.5 * pulled @ pulled - terms.value(beta).sum()
    dual -= 0.5 * (column * beta.sum()) ** 2
    assert result.dual_objective == pytest.approx(dual, rel=1e-12)
    assert result.primal_objective >= result.dual_objective * (1 - 1e-14)
    # ½‖w − Σ βᵢxᵢ‖² is part of the gap
    gap = result.primal_objective - result.dual_objective
    assert 0.5 * np.sum((w - pulled) ** 2) <= gap + 1e-12
