"""Steps of the core without offset: one variable, and exact pairs (Theorem 7)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tausvm._core.coordinates import (
    ALL,
    HALVES,
    NEAREST,
    NEED_ROW,
    OPTIMAL,
    RULED,
    SINGLE,
    STEPS_DONE,
    CoordinateState,
)

from tausvm import ExpectileSVR
from tausvm.kernels import Points, make_kernel
from tausvm.losses import DualTerms, EpsilonInsensitive, SquaredPinball
from tausvm.operators import CachedKernel, GivenKernel
from tausvm.solvers import SMO, Problem, SolverOptions, Status, solve

from ..reference.ersvm import one_variable, theorem_7
from .checks import certified

seeds = st.integers(0, 100_000)
KINDS = {"single": SINGLE, "halves": HALVES, "nearest": NEAREST, "all": ALL}


def core_steps(
    beta: np.ndarray, K: np.ndarray, y: np.ndarray, terms: DualTerms, kind: int, steps: int = 1
) -> np.ndarray:
    """β after some steps of the core; the gradient is checked on the way."""
    beta = beta.copy()
    gradient = K @ beta - y
    diagonal = np.diagonal(K).copy()
    state = CoordinateState(beta, gradient, terms.numbers, diagonal, kind)
    assert state.run(K, np.arange(len(y)), None, 0.0, steps) in (OPTIMAL, STEPS_DONE)
    np.testing.assert_allclose(gradient, K @ beta - y, atol=1e-10 * (1 + np.abs(y).max()))
    return beta


def dual_value(beta: np.ndarray, K: np.ndarray, y: np.ndarray, terms: DualTerms) -> float:
    return float(0.5 * beta @ K @ beta - y @ beta + terms.value(beta).sum())


@pytest.mark.parametrize("kind", [HALVES, NEAREST, ALL])
def test_theorem_7(kind: int) -> None:
    """All four cases, from zero and from elsewhere, for kernels with k(x, x) ≠ 1."""
    rng = np.random.default_rng(0)
    met = set()
    for _ in range(400):
        root = rng.normal(size=(2, 3)) * 10 ** rng.uniform(-1, 1)
        K = root @ root.T
        C, tau = 10 ** rng.uniform(-2, 3), rng.uniform(0.01, 0.99)
        c = rng.normal(size=2)
        terms = SquaredPinball(tau).dual_terms(c, np.full(2, C))
        expected, cases = theorem_7(c, K, C, tau)
        assert len(cases) == 1, "exactly one of the four cases is feasible"
        met.update(cases)
        for start in (np.zeros(2), rng.normal(size=2)):
            found = core_steps(start, K, c, terms, kind)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
        # the reference is right: the gradient of the dual is zero there
        ridge = terms.ridge(expected)
        np.testing.assert_allclose(K @ expected + ridge * expected, c, atol=1e-10)
    assert met == {38, 39, 40, 41}


def test_theorem_3() -> None:
    """One variable alone."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        k, C = rng.exponential(), 10 ** rng.uniform(-3, 3)
        tau, c = rng.uniform(0.01, 0.99), float(rng.normal())
        terms = SquaredPinball(tau).dual_terms(np.ones(1), np.array([C]))
        found = core_steps(rng.normal(size=1), np.array([[k]]), np.array([c]), terms, SINGLE)
        assert found[0] == pytest.approx(one_variable(c, k, C, tau), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("kind", [HALVES, NEAREST])
@given(seed=seeds)
def test_pair_is_exact_for_any_terms(kind: int, seed: int) -> None:
    """Bounds, kinks, ridges, singular matrices: no point of a grid is better than the step."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.exponential(size=2), rng.exponential(size=2)
    lower[rng.random(2) < 0.15] = 0.0
    upper[rng.random(2) < 0.15] = 0.0
    kink = rng.exponential(size=2) * (rng.random(2) < 0.7)
    ridges = rng.exponential(size=(2, 2)) * (rng.random((2, 1)) < 0.5)
    terms = DualTerms.build(2, lower, upper, kink, *ridges)
    root = rng.normal(size=(2, 2))
    if rng.random() < 0.3:
        root[1] = root[0] * rng.choice([1.0, -2.0, 0.0])
    K = root @ root.T
    y = 3 * rng.normal(size=2)
    start = rng.uniform(lower, upper)
    found = core_steps(start, K, y, terms, kind)
    assert (found >= lower).all() and (found <= upper).all()
    grids = [
        np.unique(np.concatenate([np.linspace(a, b, 40), [0.0, s]]))
        for a, b, s in zip(lower, upper, start, strict=True)
    ]
    points = np.stack(np.meshgrid(*grids), axis=-1).reshape(-1, 2)
    quadratic = 0.5 * np.einsum("pi,ij,pj->p", points, K, points) - points @ y
    best = float((quadratic + terms.value(points).sum(axis=1)).min())
    assert dual_value(found, K, y, terms) <= best + 1e-9 * (1 + abs(best))


@given(seeds, st.sampled_from([SINGLE, HALVES, NEAREST]))
def test_every_step_lowers_the_dual(seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    X = rng.normal(size=(n, 2))
    if rng.random() < 0.5:
        X[n // 2 :] = X[: n - n // 2]
    K, y = X @ X.T + rng.exponential() * (rng.random() < 0.5), rng.normal(size=n)
    cost = rng.exponential(size=n) * 10 ** rng.uniform(-2, 2)
    loss = SquaredPinball(0.3, 0.1) if rng.random() < 0.5 else EpsilonInsensitive(0.2)
    terms = loss.dual_terms(y, cost)
    beta = np.zeros(n)
    for _ in range(15):
        after = core_steps(beta, K, y, terms, kind)
        assert (after >= terms.lower).all() and (after <= terms.upper).all()
        before = dual_value(beta, K, y, terms)
        assert dual_value(after, K, y, terms) <= before + 1e-12 * (1 + abs(before))
        assert np.count_nonzero(after != beta) <= (1 if kind == SINGLE else 2)
        beta = after


@pytest.mark.parametrize("kind", KINDS)
def test_steps_reach_the_optimum(kind: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    y = np.sin(X[:, 0])
    terms = EpsilonInsensitive(0.05).dual_terms(y, np.ones(40))
    beta = core_steps(np.zeros(40), K, y, terms, KINDS[kind], 20_000)
    problem = Problem(GivenKernel(K), y, terms, offset=False)
    assert certified(problem, beta).gap <= 1e-8


def test_single_takes_the_variable_of_greatest_gain() -> None:
    """Procedure 1: the exact gain decides, not the gradient."""
    K = np.diag([100.0, 1.0, 1.0])
    y = np.array([5.0, 2.0, -1.0])
    terms = EpsilonInsensitive(0.0).dual_terms(y, np.full(3, 10.0))
    # gains y²/(2K): 0.125, 2, 0.5
    assert core_steps(np.zeros(3), K, y, terms, SINGLE).tolist() == [0.0, 2.0, 0.0]
    # WSS 1: the best of each half, {0} and {1, 2}
    halves = core_steps(np.zeros(3), K, y, terms, HALVES)
    assert halves.tolist() == pytest.approx([0.05, 2.0, 0.0])


def test_nearest_pairs_the_best_with_a_neighbour() -> None:
    """WSS 2: the partner comes from the neighbours in the feature space, by gain of the pair."""
    X = np.array([0.0, 0.1, 5.0, 5.1, 9.0, 9.1])
    K = np.exp(-((X[:, None] - X) ** 2))
    y = np.array([1.0, -1.0, 0.2, 0.2, 0.2, 0.2])
    terms = EpsilonInsensitive(0.0).dual_terms(y, np.full(6, 1000.0))
    beta, gradient = np.zeros(6), -y.copy()
    state = CoordinateState(beta, gradient, terms.numbers, np.ones(6), NEAREST, 1)
    assert state.run(K, np.arange(6), None, 0.0, 1) == STEPS_DONE
    assert np.flatnonzero(beta).tolist() == [0, 1]
    np.testing.assert_allclose(beta[:2], np.linalg.solve(K[:2, :2], y[:2]), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_diagonal_goes_to_a_bound_or_zero(kind: str) -> None:
    """A zero row with a linear loss: by the sign of y, and nothing divides by zero."""
    K = np.zeros((4, 4))
    y = np.array([0.5, -0.5, 0.05, -0.05])
    terms = EpsilonInsensitive(0.1).dual_terms(y, np.full(4, 2.0))
    beta = core_steps(np.zeros(4), K, y, terms, KINDS[kind], 50)
    assert beta.tolist() == [2.0, -2.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_rows_are_asked_for(kind: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    y = rng.normal(size=30)
    terms = SquaredPinball(0.4).dual_terms(y, np.ones(30))
    beta, gradient = np.zeros(30), -y.copy()
    state = CoordinateState(beta, gradient, terms.numbers, np.ones(30), KINDS[kind])
    slots = np.full(30, -1)
    asked = 0
    while (status := state.run(K, slots, None, 1e-10, 500)) == NEED_ROW:
        assert slots[state.needed] < 0
        slots[state.needed] = state.needed
        asked += 1
    assert status in (OPTIMAL, STEPS_DONE)
    assert 2 <= asked <= 30
    np.testing.assert_allclose(gradient, K @ beta - y, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_gathered_columns_give_the_same_steps(kind: str, dtype: type) -> None:
    rng = np.random.default_rng(5)
    n, m = 90, 50
    X = rng.normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)).astype(dtype)
    y = rng.normal(size=n)
    index = np.sort(rng.permutation(n)[:m])
    terms = SquaredPinball(0.7, 0.05).dual_terms(y[index], np.full(m, 3.0))

    def run(rows: np.ndarray, slots: np.ndarray, gather: np.ndarray | None) -> np.ndarray:
        beta, gradient = np.zeros(m), -y[index]
        state = CoordinateState(beta, gradient, terms.numbers, np.ones(m), KINDS[kind])
        state.run(rows, slots, gather, 1e-12, 300)
        block = K[np.ix_(index, index)].astype(float)
        np.testing.assert_allclose(gradient, block @ beta - y[index], atol=1e-5)
        return beta

    plain = run(np.ascontiguousarray(K[np.ix_(index, index)]), np.arange(m), None)
    np.testing.assert_array_equal(plain, run(K, index, index))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_far_smaller_than_beta_still_count(kind: str) -> None:
    """Gains below the rounding of the objective are gains: the gap closes to the last digits."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 2))
    K, y = X @ X.T + 1.0, X[:, 0] + rng.normal(size=40)
    terms = EpsilonInsensitive(0.5).dual_terms(y, np.full(40, 3.0))
    beta = core_steps(np.zeros(40), K, y, terms, KINDS[kind], 60_000)
    assert certified(Problem(GivenKernel(K), y, terms, offset=False), beta).gap <= 1e-11


def expectile(n: int, tau: float, C: float) -> tuple[np.ndarray, np.ndarray, DualTerms]:
    """A Gram matrix with its targets in [−1, 1] and the terms of an expectile machine."""
    rng = np.random.default_rng(n)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = np.clip(np.sin(3 * X[:, 0]) + 0.4 * rng.normal(size=n), -1, 1)
    K = np.exp(-4.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    return K, y, SquaredPinball(tau).dual_terms(y, np.full(n, C))


def test_all_pairs_take_the_pair_of_greatest_gain() -> None:
    K, y, terms = expectile(9, 0.3, 5.0)
    before = dual_value(np.zeros(9), K, y, terms)
    gain = before - dual_value(core_steps(np.zeros(9), K, y, terms, ALL), K, y, terms)
    for i in range(9):
        for j in range(i):
            pair = np.ix_([i, j], [i, j])
            value, _ = theorem_7(y[[i, j]], K[pair], 5.0, 0.3)
            beta = np.zeros(9)
            beta[[i, j]] = value
            assert before - dual_value(beta, K, y, terms) <= gain + 1e-12


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
@pytest.mark.parametrize("bound", [np.inf, 0.6])
def test_the_running_gap_is_the_gap(kind: int, bound: float) -> None:
    """T by what steps change, E afresh: S after every step, clipped or not (Procedure 2)."""
    n, tau, C = 21, 0.25, 3.0
    K, y, terms = expectile(n, tau, C)
    rng = np.random.default_rng(1)
    beta = rng.normal(size=n)
    gradient = K @ beta - y
    state = CoordinateState(beta, gradient, terms.numbers, np.diagonal(K).copy(), kind)
    state.watch(y, 1e-6, bound)
    for _ in range(40):
        f = K @ beta
        r = y - np.clip(f, -bound, bound)
        loss = C * (np.where(r > 0, tau, 1 - tau) * r**2).sum()
        S = 0.5 * beta @ f + loss + dual_value(beta, K, y, terms)
        np.testing.assert_allclose(state.gap, S, rtol=1e-9, atol=1e-9)
        if state.run(K, np.arange(n), None, 0.0, 1) == RULED:
            assert state.gap <= 1e-6
            break


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_the_papers_rule_ends_a_fit(scale: float, clip: float | None) -> None:
    """S ≤ ε·n·C at the end and not a step before, from an estimator, whatever the unit of y."""
    n, tau, C, epsilon = 60, 0.3, 20.0, 1e-3
    K, y, _ = expectile(n, tau, C)
    solver = SMO(
        paper_tol=epsilon * scale**2, clip=None if clip is None else clip * scale, neighbours=7
    )
    model = ExpectileSVR(
        tau=tau, C=C, kernel="precomputed", fit_intercept=False, solver=solver, tol=1e-12
    )
    with pytest.warns(match="another rule than the gap ended it"):
        result = model.fit(K, scale * y).result_
    assert result.status is Status.STOPPED_BY_RULE

    def share(at: np.ndarray) -> float:
        f = K @ at
        r = scale * y - (f if clip is None else np.clip(f, -clip * scale, clip * scale))
        loss = C * (np.where(r > 0, tau, 1 - tau) * r**2).sum()
        terms = SquaredPinball(tau).dual_terms(y, np.full(n, C))
        S = 0.5 * at @ f + loss + dual_value(at, K, scale * y, terms)
        return float(S / (n * C * scale**2))

    assert share(result.beta) <= epsilon * (1 + 1e-9)
    shorter = model.set_params(max_iter=result.n_iter - 1)
    with pytest.warns(match="did not converge"):
        assert share(shorter.fit(K, scale * y).result_.beta) > 0.999 * epsilon


def test_settings_that_do_not_go_together_are_refused() -> None:
    K, y, terms = expectile(12, 0.3, 1.0)
    with pytest.raises(ValueError, match="paper_tol must be None or a number > 0, got 0"):
        SMO(paper_tol=0)
    with pytest.raises(ValueError, match="clip is of the rule paper_tol"):
        SMO(clip=1.0)
    for offset, numbers in ((True, terms), (False, EpsilonInsensitive(0.1).dual_terms(y, 1 + y))):
        problem = Problem(GivenKernel(K), y, numbers, offset=offset)
        with pytest.raises(ValueError, match="squared losses with epsilon=0 and without an offset"):
            solve(problem, SMO(paper_tol=1e-3))
    X = np.random.default_rng(0).normal(size=(4000, 1))
    few = CachedKernel(make_kernel("rbf", 1.0), Points(X), cache_size=1.0)
    target = X.ravel()
    posed = Problem(few, target, SquaredPinball(0.5).dual_terms(target, np.ones(4000)), False)
    with pytest.raises(ValueError, match="working_set='all' needs all rows"):
        solve(posed, SMO(working_set="all"), SolverOptions(max_iter=1))
