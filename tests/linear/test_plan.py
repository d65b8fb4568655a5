"""What ``auto`` expects of its solvers, and when it gives them up."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm.losses import EpsilonInsensitive, Loss, Pinball, SquaredPinball
from tausvm.operators import LinearOperator, Tally
from tausvm.solvers import Problem, SolverOptions, solve
from tausvm.solvers.linear import LinearAuto, LinearNewton, warm_start
from tausvm.solvers.linear.auto import NewtonWatch, PaceWatch, Plan
from tausvm.solvers.linear.work import Costs, stiffness

SQUARED, CORNERS = SquaredPinball(0.5), Pinball(0.4)


def posed(loss: Loss, C: float, shape: tuple[int, int] = (300, 100), scale: float = 1.0) -> Problem:
    rng = np.random.default_rng(0)
    n, d = shape
    X = rng.normal(size=shape) * scale
    y = X @ rng.normal(size=d) / scale + rng.normal(size=n)
    terms = loss.dual_terms(y[:1], np.array([C])).shared(n)
    return Problem(LinearOperator(X), y, terms, True)


def plan(problem: Problem, tol: float = 1e-4) -> Plan:
    return LinearAuto()._plan(problem, tol)


def costs(problem: Problem, tol: float = 1e-4) -> Costs:
    return plan(problem, tol).costs


def test_stiffness_is_the_rows_next_to_the_loss() -> None:
    problem = posed(SQUARED, 3.0)
    squares = np.square(problem.operator.X).sum(axis=1)
    # c (r² / 2) has the ridge 1 / c, where both sides have weight one half
    assert stiffness(problem, 1000) == pytest.approx(3.0 * squares.mean())
    tube = posed(EpsilonInsensitive(0.1), 3.0)
    assert stiffness(tube, 1000) == pytest.approx(3.0 * squares.mean() / tube.y.std())
    few = stiffness(tube, 30)  # by every tenth row
    assert few == pytest.approx(stiffness(tube, 1000), rel=0.2)


@pytest.mark.parametrize("loss", [SQUARED, CORNERS])
def test_the_unit_of_the_rows_belongs_to_the_cost(loss: Loss) -> None:
    """Rows ten times as long are as a C a hundred times as large."""
    large, long = costs(posed(loss, 2.0)), costs(posed(loss, 0.02, scale=10.0))
    assert large.stiffness == pytest.approx(long.stiffness, rel=1e-9)
    assert large.passes == pytest.approx(long.passes, rel=1e-9)


@pytest.mark.parametrize("loss", [SQUARED, CORNERS])
def test_stiff_problems_take_more_passes(loss: Loss) -> None:
    found = [costs(posed(loss, C)).passes for C in (1e-6, 1e-2, 1.0, 100.0)]
    assert found == sorted(found) and found[-1] > 10 * found[0]
    # where features are many more than rows, their Gram matrix is well conditioned
    wide = [costs(posed(loss, C, (30, 1000))).passes for C in (1.0, 1e4, 1e8)]
    assert wide[2] < 1.5 * wide[1]


def test_more_digits_take_more_passes() -> None:
    problem = posed(SQUARED, 1.0)
    assert costs(problem, 1e-8).passes == pytest.approx(2.0 * costs(problem).passes)


@pytest.mark.parametrize("loss", [SQUARED, CORNERS])
def test_newton_is_nearer_from_a_solution_nearby(loss: Loss) -> None:
    """The other levels of a list begin there, and the interior-point method cannot."""
    problem = posed(loss, 10.0, (300, 10))
    cold, warm = plan(problem), LinearAuto()._plan(problem, 1e-4, started=True)
    assert warm.way < cold.way == 1.0
    assert warm.interior_point == cold.interior_point
    assert warm.worth_newton(math.inf) or loss is CORNERS


def test_levels_begin_at_their_neighbours() -> None:
    problem = posed(SQUARED, 10.0, (300, 10))
    first = solve(problem, options=SolverOptions(tol=1e-4))
    second = solve(problem, options=SolverOptions(tol=1e-4), start=warm_start(problem, first))
    assert first.solver == "interior_point" and second.solver == "newton"


def test_constant_targets_and_empty_rows_have_a_plan() -> None:
    X = sp.csr_matrix((20, 5))
    y = np.ones(20)
    for loss in (SQUARED, CORNERS):
        problem = Problem(LinearOperator(X), y, loss.dual_terms(y, np.ones(20)), True)
        assert plan(problem).first >= 1


def test_large_orders_are_not_for_the_interior_point_method() -> None:
    X = sp.random(6000, 6000, 1e-3, format="csr", random_state=0)
    y = np.ones(6000)
    problem = Problem(LinearOperator(X), y, SQUARED.dual_terms(y, y), False)
    assert costs(problem).interior_point == math.inf


def test_what_newton_does_is_counted() -> None:
    """A tally of entries, pairs, operations and rows tells what a solve has taken."""
    problem = posed(SQUARED, 1.0)
    estimate = costs(problem)
    before = estimate.spent(problem.operator.tally)
    solve(problem, LinearNewton(), SolverOptions(tol=1e-8))
    tally = problem.operator.tally
    assert min(tally.entries, tally.pairs, tally.operations, tally.rows, tally.steps) > 0
    assert estimate.spent(tally) > before
    assert estimate.spent(Tally()) == 0.0


def test_passes_that_promise_their_end_go_on() -> None:
    """A gap that halves with every pass is left alone; one that stays is not."""
    for fall, given_up in ((0.5, False), (1.0, True)):
        drawn = plan(posed(SQUARED, 1e-3, (300, 1000)))
        watch = PaceWatch(drawn)
        found = [watch.slow(k, 1e4 * fall**k) for k in range(1, 14)]
        assert any(found) == given_up
        assert not any(found[: int(drawn.first) - 1])


def test_newton_is_given_up_where_another_is_faster() -> None:
    """With corners by the proximal steps to come, each as long as the last one at least."""
    problem = posed(CORNERS, 1.0)
    drawn = plan(problem)
    drawn.interior_point = 1e6
    watch = NewtonWatch(drawn, problem, math.inf)
    monitor = SimpleNamespace(gap=1.0)
    assert not watch.slow(monitor)
    problem.operator.tally.operations += 1e6 / drawn.costs.work.operation
    assert watch.slow(monitor) and watch.left > 3e6
    monitor.gap = 2e-4  # one more step, and short
    problem.operator.tally.operations += 1.0
    assert not watch.slow(monitor)


def test_a_squared_loss_may_take_as_long_as_it_took() -> None:
    problem = posed(SQUARED, 1.0)
    drawn = plan(problem)
    drawn.newton = drawn.interior_point = 1e6
    watch = NewtonWatch(drawn, problem, math.inf)
    monitor = SimpleNamespace(gap=1.0)
    for spent, given_up in ((1e6, False), (1e6, True)):
        problem.operator.tally.operations += spent / drawn.costs.work.operation
        assert watch.slow(monitor) == given_up
    monitor.gap = 1e-3
    assert not watch.slow(monitor)
