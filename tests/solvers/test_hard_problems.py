"""Problems that are hard on arithmetic: nearly singular matrices, huge costs, raw columns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tausvm import SVR, ExpectileSVR
from tausvm.kernels import Points, make_kernel
from tausvm.losses import EpsilonInsensitive, Loss, Pinball, SquaredPinball
from tausvm.operators import CachedKernel
from tausvm.solvers import Block, Newton, Problem, SolverOptions, Status, solve
from tausvm.solvers.linalg import LinAlgError, lifted_cholesky

from .checks import certified


def smooth_problem(n: int, C: float, loss: Loss, dtype: type = np.float32) -> Problem:
    """Targets without noise on a wide kernel: the matrix is singular to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    gram = CachedKernel(make_kernel("rbf", 1.0), Points(X), dtype=dtype)
    return Problem(gram, y, loss.dual_terms(y, np.full(n, C)), True)


@pytest.mark.parametrize("n", [290, 310, 500])
@pytest.mark.parametrize("C", [1e2, 1e3, 1e4])
def test_noise_free_targets_are_solved_by_few_blocks(n: int, C: float) -> None:
    """Where coordinates crawl, direct solves from the exact gradient end it."""
    result = solve(smooth_problem(n, C, Pinball(0.5)), "auto", SolverOptions(tol=1e-4))
    assert result.status is Status.SOLVED
    assert result.n_iter < n


@pytest.mark.parametrize("n", [310, 450])
def test_a_direct_solve_that_is_good_enough_is_the_end(n: int) -> None:
    """At this C the gap depends on the last digits of the offset: it is judged by the best one."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 0]
    gram = CachedKernel(make_kernel("rbf", 0.5), Points(X))
    problem = Problem(gram, y, Pinball(0.9).dual_terms(y, np.full(n, 1e6)), True)
    result = solve(problem, "block", SolverOptions(tol=1e-3))
    assert result.status is Status.SOLVED
    assert result.n_iter < 150
    assert result.dual_gap == certified(problem, result.beta).gap


@pytest.mark.parametrize("tau", [0.5, 0.9])
@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("gamma", [1.0, 300.0])
def test_blocks_of_a_smooth_loss_end_by_newtons_method(gamma: float, C: float, tau: float) -> None:
    """By conjugate gradients where the kernel has a small rank, by factors elsewhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    terms = SquaredPinball(tau).dual_terms(y, np.full(450, C))
    gram = CachedKernel(make_kernel("rbf", gamma), Points(X))
    problem = Problem(gram, y, terms, True)
    # steps are dear here: the first block is the last
    impatient = Block(pair_cost=1e6, block_cost=1e12)
    result = solve(problem, impatient, SolverOptions(tol=1e-6))
    assert result.status is Status.SOLVED
    assert result.n_iter <= 8
    assert result.dual_gap == certified(problem, result.beta).gap


def test_a_preconditioner_promises_where_the_rank_or_the_cost_is_small() -> None:
    X = np.random.default_rng(0).normal(size=(1500, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1]

    def promises(gamma: float, C: float) -> bool:
        terms = SquaredPinball(0.5).dual_terms(y, np.full(len(y), C))
        gram = CachedKernel(make_kernel("rbf", gamma), Points(X))
        return Newton().promising(Problem(gram, y, terms, True)) is not None

    assert promises(0.3, 1.0) and promises(0.3, 1e3)
    assert promises(300.0, 0.1) and not promises(300.0, 1e3)


def test_newton_goes_on_by_factors_where_rows_are_too_rough() -> None:
    """At this C residuals are far below what products with float32 rows can tell."""
    problem = smooth_problem(600, 1e6, SquaredPinball(0.5))
    result = solve(problem, "newton", SolverOptions(tol=1e-4))
    assert result.status is Status.SOLVED


def test_steps_after_a_direct_solve_are_few() -> None:
    """They find who violates next; crawling on for as long as a direct solve took 222 blocks."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(596, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 0] * X[:, 1] + 0.1 * rng.standard_t(3, size=596)
    gram = CachedKernel(make_kernel("rbf", 1.0), Points(X))
    terms = EpsilonInsensitive(0.1).dual_terms(y, np.full(596, 1100.0))
    result = solve(Problem(gram, y, terms, True), "block", SolverOptions(tol=1e-3))
    assert result.status is Status.SOLVED
    assert result.n_iter <= 80


@pytest.mark.parametrize("solver", ["auto", "block", "interior_point"])
def test_costs_beyond_rounding_end_with_the_best_point(solver: str) -> None:
    """Nobody reaches the tolerance here; what is returned is told truly, and is not a bad one."""
    problem = smooth_problem(200, 1e7, Pinball(0.5))
    result = solve(problem, solver, SolverOptions(tol=1e-9))
    assert result.status is Status.NUMERICAL_ERROR
    found = certified(problem, result.beta)
    assert result.dual_gap == found.gap
    assert result.dual_gap < 0.1


@pytest.mark.parametrize("loss", [EpsilonInsensitive(0.1), Pinball(0.3), SquaredPinball(0.3)])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e8])
def test_raw_columns_end(loss: Loss, C: float) -> None:
    """A linear kernel of columns over twenty decades: an answer or its true gap, and an end."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, 6)) * [1e11, 1e-3, 1e5, 1, 1e-9, 1e8]
    y = rng.normal(size=18)
    gram = CachedKernel(make_kernel("linear", 1.0), Points(X), dtype=np.float64)
    problem = Problem(gram, y, loss.dual_terms(y, np.full(18, C)), True)
    result = solve(problem, "auto", SolverOptions(tol=1e-4))
    assert result.dual_gap == certified(problem, result.beta).gap
    # never worse than the best constant
    nothing = certified(problem, np.zeros(18))
    assert result.primal_objective - result.dual_objective <= nothing.primal - nothing.dual


def test_the_clock_includes_the_certificate() -> None:
    """Time is kept for a product; the solve ends before the limit and not after it."""
    problem = smooth_problem(400, 1e4, EpsilonInsensitive(0.01))
    ticks = itertools.count()
    options = SolverOptions(tol=1e-12, time_limit=50.0, clock=lambda: float(next(ticks)))
    result = solve(problem, "smo", options)
    assert result.status is Status.TIME_LIMIT
    assert next(ticks) <= 60
    assert result.dual_gap == certified(problem, result.beta).gap


def test_without_time_for_a_product_the_best_constant_is_certified() -> None:
    problem = smooth_problem(300, 10.0, EpsilonInsensitive(0.1))
    problem.operator.certificate_seconds = lambda count: 1e3 * (count > 0)  # type: ignore[method-assign]
    result = solve(problem, "block", SolverOptions(time_limit=5.0))
    assert result.status is Status.TIME_LIMIT
    assert not result.beta.any()
    assert result.dual_gap == 1.0
    assert result.primal_objective == pytest.approx(
        certified(problem, np.zeros(problem.n)).primal, rel=1e-12
    )


def test_lifted_cholesky() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 5))
    singular = half @ half.T
    factor = np.tril(lifted_cholesky(singular.copy().T, 1e-6, alike=True))
    np.testing.assert_allclose(factor @ factor.T, singular, atol=1e-10)
    with pytest.raises(LinAlgError):
        lifted_cholesky((singular - np.eye(20)).T, 1e-6, alike=True)


def test_a_kernel_that_is_nearly_constant_is_solved_and_not_taken_for_time_being_up():
    """Conjugate gradients of Newton's method have no first step there in float32."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(620, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=620)
    model = ExpectileSVR(C=5e4, gamma=1.47966e-05).fit(X * np.array([2.4, 2e-7]), y)
    assert model.result_.status is Status.SOLVED
    assert model.dual_gap_ <= model.tol


def test_newton_ends_where_all_lie_within_their_tubes():
    """There is no system to solve then: another solver goes on."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), 1e-3 * rng.normal(size=80)
    for solver in ("auto", "block"):
        model = SVR(loss="squared_epsilon_insensitive", epsilon=1.0, solver=solver, C=1e3)
        model.fit(X, y)
        assert model.dual_gap_ <= model.tol


@pytest.mark.parametrize(
    ("n", "d", "gamma", "C", "epsilon"),
    [(365, 1, 3.4, 1e7, 0.01), (960, 2, 0.12, 1.6e5, 0.0), (1130, 3, 6e-3, 1.6e6, 0.0)],
)
def test_newton_takes_no_rounded_product_for_an_exact_one(n, d, gamma, C, epsilon):
    """Factors solve for what they are given; β of thousands times rows in float32 is not that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(2 * X[:, 0]) + X[:, -1] + 1e-4 * rng.standard_t(3, size=n)
    gram = CachedKernel(make_kernel("rbf", gamma), Points(X))
    terms = SquaredPinball(0.3, epsilon=epsilon).dual_terms(y, np.full(n, C))
    problem = Problem(gram, y, terms, True)
    result = solve(problem, "newton", SolverOptions(tol=1e-4))
    assert result.status is Status.SOLVED
    other = solve(problem, options=SolverOptions(tol=1e-4))
    assert result.primal_objective == pytest.approx(other.primal_objective, rel=2e-4)


class Counted(CachedKernel):
    """Counts exact products."""

    products = 0

    def product(self, beta):
        self.products += 1
        return super().product(beta)


@pytest.mark.parametrize("C", [10.0, 30.0])
def test_no_direct_solve_while_most_variables_are_on_their_way(C: float) -> None:
    """Thousands of samples pull at first, and blocks of some hundred settle them one after the
    other: a direct solve of one block ends nothing, and takes products with all of K."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4200, 4))
    y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1] * X[:, 2]) + 0.5 * rng.normal(size=len(X))
    gram = Counted(make_kernel("rbf", 0.3), Points(X))
    terms = EpsilonInsensitive(0.1).dual_terms(y, np.full(len(y), C))
    result = solve(Problem(gram, y, terms, offset=True), "block", SolverOptions(tol=1e-4))
    assert result.status is Status.SOLVED
    assert gram.products <= 2  # the certificate, and one that rounding did not let pass
