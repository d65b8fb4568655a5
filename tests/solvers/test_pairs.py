"""One pair step of the core, against the SMO-SVR note's tables and against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tausvm._core.pairs import NEED_ROW, OPTIMAL, STEPS_DONE, PairState

from tausvm.losses import DualTerms, EpsilonInsensitive
from tausvm.solvers import SolverOptions, Status, solve

from ..reference.objective import dual_objective, primal_objective
from ..reference.qp import reference_optimum
from ..reference.smo_note import (
    TABLE_2_ROWS,
    TABLE_4_ROWS,
    line_objective,
    smo_svr,
    table_step,
)
from .cases import LOSSES, random_case

C, EPSILON = 1.0, 0.25
#: quarters, so that sums and comparisons are exact
BETAS = np.arange(-4, 5) / 4.0
#: with η and ε these reach every row; multiples of ε are the rows' own borders
DIFFERENCES = np.array([-9, -4, -1.125, -0.5, -0.375, -0.125, 0, 0.125, 0.375, 0.5, 1.125, 4, 9])


def core_step(
    beta: tuple[float, float],
    gradient: tuple[float, float],
    matrix: np.ndarray,
    terms: DualTerms,
    dtype: type = np.float64,
) -> np.ndarray:
    """β after at most one step of the core on two variables."""
    point, slope = np.array(beta), np.array(gradient)
    state = PairState(point, slope, terms.numbers, np.ascontiguousarray(np.diagonal(matrix)))
    status = state.run(matrix.astype(dtype), np.arange(2), None, 0.0, 1)
    assert status in (OPTIMAL, STEPS_DONE)
    expected = np.array(gradient) + matrix.astype(dtype) @ (point - np.array(beta))
    np.testing.assert_allclose(slope, expected, atol=1e-12)
    return point


def matrix_with(eta: float) -> np.ndarray:
    """A kernel matrix whose diagonal is not constant, let alone 1."""
    return np.array([[2.0 + eta, 2.0], [2.0, 2.0]])


def every_pair() -> list[tuple[float, float, float, float]]:
    """(βᵢ, βⱼ, Fᵢ − Fⱼ, η)"""
    return list(product(BETAS, BETAS, DIFFERENCES, (0.0, 0.5, 4.0)))


def test_pair_step_is_the_tables() -> None:
    """Every row of Tables 2 and 4 is met, and the core gives what the row says."""
    terms = EpsilonInsensitive(EPSILON).dual_terms(np.zeros(2), np.full(2, C))
    met = set()
    for beta_i, beta_j, difference, eta in every_pair():
        F = (0.3125 + difference, 0.3125)
        expected, row = table_step(beta_i, beta_j, *F, eta, C, EPSILON)
        met.add(row)
        after = core_step((beta_i, beta_j), F, matrix_with(eta), terms)
        assert after.sum() == pytest.approx(beta_i + beta_j, abs=1e-15)
        assert (np.abs(after) <= C).all()
        values = [
            line_objective(float(b), (beta_i, beta_j), F, eta, EPSILON)
            for b in (after[1], expected)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-14), row
        if eta > 0:  # the maximiser is unique
            assert after[1] == pytest.approx(expected, abs=1e-15), row
    met.discard((0, "2C", 1))
    rows = {(2, case, row + 1) for case, count in TABLE_2_ROWS.items() for row in range(count)}
    rows |= {(4, case, row + 1) for case, count in TABLE_4_ROWS.items() for row in range(count)}
    assert met == rows


def test_tables_are_right() -> None:
    """The reference itself: no point of a fine grid on the line is better than the row's."""
    for beta_i, beta_j, difference, eta in every_pair()[::5]:
        F = (difference, 0.0)
        new, row = table_step(beta_i, beta_j, *F, eta, C, EPSILON)
        gamma = beta_i + beta_j
        grid = np.linspace(max(-C, gamma - C), min(C, gamma + C), 401)
        best = max(line_objective(b, (beta_i, beta_j), F, eta, EPSILON) for b in grid)
        assert line_objective(new, (beta_i, beta_j), F, eta, EPSILON) >= best - 1e-12, row


def test_pair_step_at_epsilon_zero() -> None:
    terms = EpsilonInsensitive(0.0).dual_terms(np.zeros(2), np.full(2, C))
    for beta_i, beta_j, difference, eta in every_pair():
        expected, _ = table_step(beta_i, beta_j, difference, 0.0, eta, C, 0.0)
        after = core_step((beta_i, beta_j), (difference, 0.0), matrix_with(eta), terms)
        if eta > 0:
            assert after[1] == pytest.approx(expected, abs=1e-15)
        else:
            assert difference * after[1] == pytest.approx(difference * expected, abs=1e-14)


@given(st.integers(0, 100_000))
def test_pair_step_is_exact_for_any_terms(seed: int) -> None:
    """Bounds, kinks and ridges that differ: no point of a grid on the line is better."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.exponential(size=2), rng.exponential(size=2)
    lower[rng.random(2) < 0.2] = 0.0
    upper[rng.random(2) < 0.2] = 0.0
    ridges = rng.exponential(size=(2, 2)) * (rng.random((2, 1)) < 0.6)
    kink = rng.exponential(size=2) * (rng.random(2) < 0.7)
    terms = DualTerms.build(2, lower, upper, kink, *ridges)
    draw = rng.uniform(lower, upper)
    beta = np.where(rng.random(2) < 0.3, rng.choice([lower, upper, np.zeros(2)]), draw)
    root = rng.normal(size=(2, 2)) * (rng.random() < 0.8)
    matrix = root @ root.T
    gradient = 3 * rng.normal(size=2)
    after = core_step(tuple(beta), tuple(gradient), matrix, terms)

    def value(step: float) -> float:
        moved = np.array([step, -step])
        quadratic = gradient @ moved + 0.5 * moved @ matrix @ moved
        return float(quadratic + terms.value(beta + moved).sum())

    found = after[0] - beta[0]
    assert after.sum() == pytest.approx(beta.sum(), abs=1e-12)
    assert (after >= lower).all() and (after <= upper).all()
    ends = (
        max(lower[0] - beta[0], beta[1] - upper[1]),
        min(upper[0] - beta[0], beta[1] - lower[1]),
    )
    grid = [*np.linspace(*ends, 300), 0.0, -beta[0], beta[1]]
    best = min(value(step) for step in grid if ends[0] <= step <= ends[1])
    assert value(found) <= best + 1e-10 * (1 + abs(best))


def test_unbounded_pair_with_ridges() -> None:
    """Squared losses: no bounds, and the ridge of the side where each variable lies."""
    infinite = np.full(2, np.inf)
    terms = DualTerms.build(2, -infinite, infinite, 0.0, [0.5, 1.0], [2.0, 4.0])
    after = core_step((0.0, 0.0), (-6.0, 0.0), matrix_with(1.0), terms)
    # slope −6 + t·(η + ridge₊ of i + ridge₋ of j) = 0
    assert after == pytest.approx([6 / 4, -6 / 4])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_by_slot_and_by_gather(dtype: type) -> None:
    """Rows elsewhere in the cache, columns picked from longer rows: the same steps."""
    rng = np.random.default_rng(0)
    n, m = 150, 70
    X = rng.normal(size=(n, 3))
    K = (X @ X.T + 1.0).astype(dtype)
    y = rng.normal(size=n)
    index = np.sort(rng.permutation(n)[:m])
    terms = EpsilonInsensitive(0.1).dual_terms(y[index], np.full(m, 2.0))
    diagonal = np.ascontiguousarray(np.diagonal(K)[index], dtype=np.float64)

    def run(rows: np.ndarray, slots: np.ndarray, gather: np.ndarray | None) -> np.ndarray:
        beta, gradient = np.zeros(m), -y[index]
        state = PairState(beta, gradient, terms.numbers, diagonal)
        state.run(rows, slots, gather, 1e-6, 200)
        np.testing.assert_allclose(
            gradient, K[np.ix_(index, index)].astype(float) @ beta - y[index], atol=1e-5
        )
        return beta

    plain = run(np.ascontiguousarray(K[np.ix_(index, index)]), np.arange(m), None)
    gathered = run(K, index, index)
    places = rng.permutation(n)
    cache = np.empty_like(K)
    cache[places] = K
    shuffled = run(cache, places[index], index)
    assert np.abs(plain).sum() > 0
    np.testing.assert_array_equal(plain, gathered)
    np.testing.assert_array_equal(plain, shuffled)


def test_missing_row_is_asked_for() -> None:
    terms = EpsilonInsensitive(0.0).dual_terms(np.zeros(3), np.ones(3))
    beta, gradient = np.zeros(3), np.array([0.0, -2.0, 1.0])
    state = PairState(beta, gradient, terms.numbers, np.ones(3))
    slots = np.full(3, -1)
    assert state.run(np.eye(3), slots, None, 0.0, 5) == NEED_ROW
    assert state.needed == 1  # the largest up
    slots[1] = 1
    assert state.run(np.eye(3), slots, None, 0.0, 5) == NEED_ROW
    assert state.needed == 2
    assert (beta == 0).all()
    slots[:] = np.arange(3)
    assert state.run(np.eye(3), slots, None, 1e-12, 100) == OPTIMAL
    assert state.violation <= 1e-12


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_note_smo_reaches_the_optimum_of_the_package(kernel: str) -> None:
    """SMO by the tables alone, in plain NumPy, and the package: one objective."""
    for seed in range(3):
        case = random_case(
            seed, "epsilon_insensitive", kernel, True, False, largest_n=30, log_C=(-1, 0.5)
        )
        beta, b = smo_svr(case.K, case.y, case.C, case.epsilon)
        lower = dual_objective(case.K, case.y, case.costs, beta)
        upper = primal_objective(case.K, case.y, case.costs, beta, b)
        assert upper - lower <= 1e-8 * upper + 1e-12
        result = solve(case.problem(), "smo", SolverOptions(tol=1e-8, time_limit=20))
        assert result.status is Status.SOLVED
        assert result.dual_objective == pytest.approx(lower, rel=1e-7, abs=1e-10)


def test_many_steps_keep_the_sum_and_lower_the_dual() -> None:
    """Down to rounding, where a variable must not be paired with itself."""
    for seed in range(6):
        case = random_case(
            5000 + seed, "epsilon_insensitive", "rbf", True, False, log_C=(3.5, 4), largest_n=60
        )
        terms = case.package_loss.dual_terms(case.y, case.cost)
        beta, gradient = np.zeros(len(case.y)), -case.y
        state = PairState(beta, gradient, terms.numbers, np.diagonal(case.K).copy())
        best = 0.0
        for _ in range(40):
            state.run(case.K, np.arange(len(case.y)), None, 0.0, 500)
            assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
            value = dual_objective(case.K, case.y, case.costs, beta)
            assert value >= best * (1 - 1e-9)
            best = value


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "pinball", "squared_pinball"])
def test_searches_in_single_precision_go_as_far_as_they_are_asked_to(loss: str) -> None:
    """The violation that is asked for, judged in float64, and a gradient that belongs to β."""
    for seed in range(6):
        case = random_case(7000 + seed, loss, "rbf", True, False, largest_n=60, log_C=(0, 2))
        terms = case.package_loss.dual_terms(case.y, case.cost)
        K, n = case.K.astype(np.float32), len(case.y)
        diagonal = np.diagonal(K).astype(np.float64)
        largest = np.abs(case.y).max()
        duals = []
        for single_from in (np.inf, 1e-5):
            beta, gradient = np.zeros(n), -case.y
            state = PairState(beta, gradient, terms.numbers, diagonal, single_from)
            status = state.run(K, np.arange(n), None, 1e-3 * largest, 100_000)
            assert status == OPTIMAL
            exact = K.astype(np.float64) @ beta - case.y
            np.testing.assert_allclose(gradient, exact, atol=2e-5 * largest)
            up = -exact - terms.slope_up(beta)
            down = -exact - terms.slope_down(beta)
            assert up.max() - down.min() <= 1.05e-3 * largest
            assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
            duals.append(dual_objective(case.K, case.y, case.costs, beta))
        assert duals[0] == pytest.approx(duals[1], rel=1e-2)


def test_small_tolerances_and_large_numbers_are_searched_for_in_double_precision() -> None:
    """Where float32 would not see a violation, or not hold it, the steps are those of float64."""
    case = random_case(7100, "epsilon_insensitive", "rbf", True, False, largest_n=60)
    n = len(case.y)
    K = case.K.astype(np.float32)
    for scale, tol in ((1.0, 1e-9), (1e32, 1e-3)):
        found = []
        for single_from in (np.inf, 1e-5):
            terms = case.package_loss.dual_terms(case.y, case.cost).numbers.copy()
            terms[:3] *= scale
            beta, gradient = np.zeros(n), -scale * case.y
            state = PairState(beta, gradient, terms, np.diagonal(K).astype(float), single_from)
            state.run(K, np.arange(n), None, tol * scale, 300)
            found.append((beta, gradient))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("single", [True, False])
def test_without_an_offset_nobody_is_a_partner(loss: str, single: bool) -> None:
    """Steps of one variable among those of pairs: max up ≤ 0 ≤ min down at the optimum."""
    for seed in range(6):
        case = random_case(7200 + seed, loss, "rbf", False, False, largest_n=50, log_C=(-1, 2))
        terms = case.package_loss.dual_terms(case.y, case.cost)
        K, n = case.K.astype(np.float32 if single else np.float64), len(case.y)
        largest = np.abs(case.y).max()
        tol = (1e-3 if single else 1e-9) * largest
        beta, gradient = np.zeros(n), -case.y
        diagonal = np.diagonal(K).astype(np.float64)
        state = PairState(beta, gradient, terms.numbers, diagonal, 1e-5, False)
        assert state.run(K, np.arange(n), None, tol, 200_000) == OPTIMAL
        exact = K.astype(np.float64) @ beta - case.y
        np.testing.assert_allclose(gradient, exact, atol=2e-5 * largest)
        up, down = -exact - terms.slope_up(beta), -exact - terms.slope_down(beta)
        assert max(up.max(), 0.0) - min(down.min(), 0.0) <= 1.05 * tol
        optimum = reference_optimum(case.K, case.y, case.costs, False)
        value = dual_objective(case.K, case.y, case.costs, beta)
        assert value == pytest.approx(optimum.upper, rel=2e-2 if single else 1e-6, abs=1e-6)


def test_rows_of_pairs_with_nobody_are_asked_for_one_at_a_time() -> None:
    """A step of one variable needs one row, whichever way it goes."""
    terms = EpsilonInsensitive(0.1).dual_terms(np.zeros(2), np.full(2, 10.0))
    for y, sign in ((np.array([1.0, 0.0]), 1.0), (np.array([-1.0, 0.0]), -1.0)):
        beta, gradient = np.zeros(2), -y
        state = PairState(beta, gradient, terms.numbers, np.ones(2), np.inf, False)
        assert state.run(np.eye(2), np.array([-1, -1]), None, 1e-9, 10) == NEED_ROW
        assert state.needed == 0
        assert state.run(np.eye(2), np.array([0, -1]), None, 1e-9, 10) == OPTIMAL
        np.testing.assert_allclose(beta, [0.9 * sign, 0.0], atol=1e-15)
