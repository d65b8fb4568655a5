"""Many problems on one matrix against each of them by itself."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tausvm._core.validation import clearly_worse

from tausvm.losses import EpsilonInsensitive, Pinball, SquaredEpsilonInsensitive, SquaredPinball
from tausvm.operators import GivenKernel, HeldKernel
from tausvm.solvers import Family, Goal, Many, Point, Stop, certificate, solve, solve_many
from tausvm.solvers.many import Validation
from tausvm.solvers.many.columns import LowRank
from tausvm.solvers.result import SolverOptions

from ..estimators.data import wave

X, Y = wave(150)
COSTS = np.array([0.1, 1.0, 10.0, 100.0])
LINEAR = [Pinball(0.2), Pinball(0.7, epsilon=0.05), EpsilonInsensitive(0.1)]
SQUARED = [SquaredPinball(0.1), SquaredPinball(0.5), SquaredPinball(0.8)]
#: a gap, as a share of what the best constant costs and of the primal objective
GOAL = Goal(1e-3, 1e-2)


def weights(seed):
    """All equal for seed 0, else spread over two decades."""
    rng = np.random.default_rng(seed)
    return 10.0 ** rng.uniform(-1.0, 1.0, len(Y)) if seed else np.ones(len(Y))


def family(losses, offset=True, weight=None, dtype=np.float32, gamma=1.0):
    weight = np.ones(len(Y)) if weight is None else weight
    operator = HeldKernel(rbf_kernel(X, gamma=gamma).astype(dtype))
    terms = [loss.dual_terms(Y, weight) for loss in losses]
    return Family(operator, Y, terms, COSTS, offset)


def check(problems, result, goal, slack=1.2):
    """Gaps from the matrix, and objectives against exact solutions."""
    for place in np.ndindex(*problems.shape):
        problem = problems.problem(place)
        beta = result.beta[place]
        lower, upper = problem.terms.lower, problem.terms.upper
        size = np.abs(beta).sum()
        assert (beta >= lower - 1e-5 * size).all() and (beta <= upper + 1e-5 * size).all()
        if problems.offset:  # single precision keeps the sum only so far
            assert abs(beta.sum()) <= 1e-4 * size
        here = certificate(problem, Point.of(problem.feasible(beta)))
        limit = min(goal.gap * problems.limits[place], goal.share * here.primal)
        assert here.primal - here.dual <= slack * limit + 5e-4 * here.primal
        exact = solve(problem, "auto", SolverOptions(tol=1e-9))
        assert here.primal <= exact.primal_objective + slack * limit + 5e-4 * here.primal
        assert result.intercept[place] == pytest.approx(here.intercept, abs=0.1)
        assert result.primal[place] == pytest.approx(here.primal, rel=2e-2)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_problem_reaches_the_goal(losses, offset, seed, dtype):
    problems = family(losses, offset, weights(seed), dtype)
    result = solve_many(problems, GOAL)
    assert result.reached.all() and result.solved.all() and not result.failed.any()
    check(problems, result, GOAL)


@pytest.mark.parametrize("settings", [Many(factor_order=0), Many(landmarks=(1, 1))])
def test_squared_losses_without_factors_or_landmarks(settings):
    problems = family(SQUARED)
    result = solve_many(problems, GOAL, settings=settings)
    assert result.reached.all()
    check(problems, result, GOAL)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
def test_what_steps_do_not_solve_is_finished_one_by_one(losses):
    problems = family(losses, dtype=np.float64)
    few = Many(steps=1.0, iterations=1, factor_after_least=1, finish=False)
    rough = solve_many(problems, GOAL, settings=few)
    assert rough.solved.all() and not rough.reached.all()
    finished = solve_many(problems, GOAL, settings=Many(steps=1.0, iterations=1))
    assert finished.reached.all()
    check(problems, finished, GOAL)


@pytest.mark.parametrize(
    "losses", [[SquaredEpsilonInsensitive(0.2)], LINEAR[:1]], ids=["with-epsilon", "to-rounding"]
)
def test_other_problems_are_solved_one_by_one(losses):
    goal = Goal(1e-7, 1e-7) if losses == LINEAR[:1] else GOAL
    problems = family(losses, dtype=np.float64)
    result = solve_many(problems, goal)
    assert result.reached.all()
    check(problems, result, goal)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
def test_a_good_start_stays_where_it_is(losses, offset):
    problems = family(losses, offset)
    first = solve_many(problems, Goal(1e-4, 1e-3))
    again = solve_many(problems, GOAL, starts=first.beta)
    np.testing.assert_allclose(again.beta, first.beta, atol=1e-5 * np.abs(first.beta).max())


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
def test_only_what_is_wanted(losses, offset):
    problems = family(losses, offset)
    wanted = np.zeros(problems.shape, dtype=bool)
    wanted[0, 1] = wanted[2, 2:] = True
    result = solve_many(problems, GOAL, wanted)
    np.testing.assert_array_equal(result.solved, wanted)


def far_away(rows, matrix):
    """Validation rows whose losses a prediction makes worse the larger C is."""
    rng = np.random.default_rng(0)
    terms = np.array([loss.dual_terms(np.zeros(rows), np.ones(rows)).numbers for loss in LINEAR])
    y = -20.0 + 0.01 * rng.normal(size=rows)
    predict = lambda beta: np.abs(beta) @ matrix.T.astype(np.float64)  # noqa: E731
    return Validation(predict, matrix, y, terms, len(COSTS), (-np.inf, np.inf), 3.0)


@pytest.mark.parametrize("offset", [True, False])
def test_a_walk_ends_where_it_overfits(offset):
    """Two C in a row are clearly worse than the first one; the losses are those of the rows."""
    problems = family(LINEAR, offset)
    matrix = np.full((30, len(Y)), 0.01, dtype=np.float32)
    validation = far_away(30, matrix if not offset else np.zeros_like(matrix))
    result = solve_many(problems, GOAL, validation=validation)
    np.testing.assert_array_equal(result.solved, ~np.isnan(validation.losses).any(axis=2))
    losses = validation.losses.sum(axis=2)
    for level, loss in enumerate(LINEAR):
        assert result.solved[level, :2].all()
        if not offset:  # the fits grow with C, away from the targets
            assert not result.solved[level, 3].any() and losses[level, 1] > losses[level, 0]
        for k in np.flatnonzero(result.solved[level]):
            values = validation.predict(result.beta[level, k][None])[0] + result.intercept[level, k]
            residual = validation_targets() - values
            np.testing.assert_allclose(
                validation.losses[level, k], loss.value(residual), rtol=1e-5, atol=1e-6
            )


def validation_targets():
    return -20.0 + 0.01 * np.random.default_rng(0).normal(size=30)


def test_clearly_worse_is_by_standard_errors_of_the_differences():
    rng = np.random.default_rng(1)
    best = rng.uniform(size=40)
    more = best + rng.normal(0.1, 0.3, size=(50, 40))
    difference = more - best
    errors = difference.mean(axis=1) / (difference.std(axis=1) / np.sqrt(40))
    np.testing.assert_array_equal(clearly_worse(more, best, 2.0), errors > 2.0)
    assert not clearly_worse(1.01 * best[None], best, 0.0, 0.02)[0]
    assert clearly_worse(1.03 * best[None], best, 0.0, 0.02)[0]


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
def test_stop_leaves_at_once(losses, offset):
    result = solve_many(family(losses, offset), GOAL, stop=Stop(raised=True))
    assert not result.solved.any()


def test_a_walk_in_small_parts_is_the_same():
    """How often one looks at whether to stop changes nothing."""
    problems = family(LINEAR)
    whole = solve_many(problems, GOAL)
    parts = solve_many(problems, GOAL, settings=Many(work=1))
    np.testing.assert_array_equal(whole.beta, parts.beta)


def test_steps_end_when_nothing_is_left():
    """Copies of one row: f is a constant, and no pair of rows has any curvature."""
    y = np.linspace(-1, 1, 40)
    operator = HeldKernel(np.ones((40, 40), dtype=np.float32))
    problems = Family(operator, y, [Pinball(0.5).dual_terms(y, np.ones(40))], COSTS)
    result = solve_many(problems, Goal(0.0, 0.0), settings=Many(tight=0.0, finish=False))
    np.testing.assert_allclose(result.gap, 0.0, atol=1e-4)
    np.testing.assert_allclose(result.beta.sum(axis=2), 0.0, atol=1e-4)


def test_a_matrix_that_is_no_kernel_does_no_harm():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(150, 150)).astype(np.float32)
    terms = [loss.dual_terms(Y, np.ones(150)) for loss in SQUARED]
    problems = Family(HeldKernel(matrix + matrix.T), Y, terms, COSTS, False)
    result = solve_many(problems, GOAL, settings=Many(finish=False))
    assert result.beta.shape == (3, 4, 150)


def test_single_precision_tells_of_double_precision():
    problems = family(SQUARED, dtype=np.float64)
    result = solve_many(problems, GOAL)
    exact = GivenKernel(rbf_kernel(X, gamma=1.0))
    for place in np.ndindex(*problems.shape):
        problem = problems.problem(place)
        problem.operator = exact
        here = certificate(problem, Point.of(problem.feasible(result.beta[place])))
        limit = GOAL.gap * problems.limits[place]
        assert here.primal - here.dual <= 1.2 * limit + 5e-4 * here.primal


def test_low_rank_approximation_of_a_smooth_kernel():
    matrix = rbf_kernel(X, gamma=0.1).astype(np.float32)
    low = LowRank.of(matrix, 40)
    assert low.vectors.shape[1] < len(Y)
    np.testing.assert_allclose(low.vectors.T @ low.vectors, np.eye(len(low.values)), atol=1e-2)
    near = (low.vectors * low.values) @ low.vectors.T
    np.testing.assert_allclose(near, matrix, atol=1e-2)


def test_steps_that_overflow_show_in_gaps_and_not_in_warnings():
    """Kernel values that float32 can hold, and whose products it cannot."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    matrix = (1e9 * (rows @ rows.T) ** 3).astype(np.float32)
    y = np.sin(rows[:, 0])
    terms = [SquaredPinball(0.5).dual_terms(y, np.ones(60))]
    problems = Family(HeldKernel(1e20 * matrix), y, terms, np.array([1e-3, 1e8]))
    result = solve_many(problems, GOAL, settings=Many(finish=False))
    assert not result.reached[~np.isfinite(result.gap)].any()
