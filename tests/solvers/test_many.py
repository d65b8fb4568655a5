"""Many problems on one matrix against each of them by itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from tausvm._core.validation import Judged, clearly_worse, in_the_race

from tausvm.losses import EpsilonInsensitive, Pinball, SquaredEpsilonInsensitive, SquaredPinball
from tausvm.operators import GivenKernel, HeldKernel
from tausvm.solvers import Family, Goal, Many, Point, Stop, certificate, solve, solve_many
from tausvm.solvers.many import Asked, Starts, solve_parts
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


@pytest.mark.parametrize(
    "settings",
    [
        Many(factor_order=0),
        Many(factor_first=0),
        Many(factor_first=0, landmarks=(1, 1)),
        Many(factor_first=0, probe=1, factor_price=0.0),
        Many(factor_ratio=1.0, factor_bytes=1),
    ],
    ids=["landmarks", "landmarks first", "no landmarks", "factors soon", "a factor at a time"],
)
@pytest.mark.parametrize("offset", [True, False])
def test_squared_losses_with_other_inverses(settings, offset):
    problems = family(SQUARED, offset, weights(1))
    result = solve_many(problems, GOAL, settings=settings)
    assert result.reached.all()
    check(problems, result, GOAL)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_samples_are_solved_to_rounding(losses, offset, dtype):
    rows = np.random.default_rng(2).permutation(len(Y))[:40]
    operator = HeldKernel(rbf_kernel(X[rows], gamma=1.0).astype(dtype))
    weight = weights(1)[rows]
    terms = [loss.dual_terms(Y[rows], weight) for loss in losses]
    problems = Family(operator, Y[rows], terms, COSTS, offset)
    result = solve_many(problems, GOAL)
    # steps on coordinates end where they gain nothing any more
    gap = 1e-9 if offset or losses == SQUARED else 1e-4
    assert (result.gap <= gap * result.primal).all() and result.reached.all()
    for place in np.ndindex(*problems.shape):
        exact = solve(problems.problem(place), "auto", SolverOptions(tol=1e-10))
        np.testing.assert_allclose(result.primal[place], exact.primal_objective, rtol=10 * gap)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
def test_what_steps_do_not_solve_is_finished_one_by_one(losses):
    problems = family(losses, dtype=np.float64)
    few = Many(steps=1.0, iterations=1, faces_order=0)
    rough = solve_many(problems, GOAL, settings=replace(few, finish=False))
    assert rough.solved.all() and not rough.reached.all()
    finished = solve_many(problems, GOAL, settings=few)
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


@given(st.data())
def test_problems_that_steps_get_nowhere_with_are_solved_directly(data):
    """Large C, hardly any noise, copies, tubes and flat kernels, from poor starts."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6), label="seed"))
    n = data.draw(st.integers(1, 60), label="n")
    rows = rng.normal(size=(n, data.draw(st.integers(1, 4), label="d")))
    if data.draw(st.booleans(), label="copies"):
        rows = rows[rng.integers(0, n, size=n)]
    y = np.sin(2 * rows[:, 0]) + data.draw(st.sampled_from([0.0, 0.3]), label="noise") * (
        rng.normal(size=n)
    )
    gamma = 10.0 ** data.draw(st.integers(-3, 2), label="log gamma")
    weight = 10.0 ** rng.uniform(-1, 1, n) if data.draw(st.booleans(), label="weights") else 1.0
    epsilon = data.draw(st.sampled_from([0.0, 0.1]), label="epsilon")
    loss = Pinball(data.draw(st.sampled_from([0.1, 0.5]), label="tau"), epsilon=epsilon)
    terms = [loss.dual_terms(y, weight * np.ones(n))]
    offset = data.draw(st.booleans(), label="offset")
    operator = HeldKernel(rbf_kernel(rows, gamma=gamma))
    problems = Family(operator, y, terms, np.array([0.1, 10.0, 1e4]), offset)
    settings = Many(few=100, faces_after=1.0, finish=False)
    result = solve_many(problems, GOAL, settings=settings)
    assert result.solved.all()
    for place in np.ndindex(*problems.shape):
        problem = problems.problem(place)
        here = certificate(problem, Point.of(problem.feasible(result.beta[place])))
        assert here.primal - here.dual <= 1e-8 * here.primal + 1e-10 * problems.limits[place]
        assert result.primal[place] == pytest.approx(here.primal, rel=1e-6, abs=1e-10)


class Held:
    """The matrix of all rows, or of one part with the rows that judge it below."""

    def __init__(self, matrix, parts=()):
        self.matrix, self.parts = matrix, parts

    def operator(self, k):
        train, _ = self.parts[k]
        return HeldKernel(self.matrix[np.ix_(train, train)])

    def values(self, k):
        train, judges = self.parts[k]
        return lambda beta: beta @ self.matrix[np.ix_(judges, train)].T

    def double(self, k):
        train, judges = self.parts[k]
        rows = np.concatenate([train, judges])
        return np.ascontiguousarray(self.matrix[np.ix_(rows, train)], dtype=np.float64)


def folds(losses, offset=True, weight=None, n_folds=3):
    """Families of the folds of the rows, and which rows these are."""
    weight = np.ones(len(Y)) if weight is None else weight
    found, parts = [], []
    for k in range(n_folds):
        judges = np.arange(k, len(Y), n_folds)[: 40 + k]  # of unequal size
        train = np.setdiff1d(np.arange(len(Y)), np.arange(k, len(Y), n_folds))[: 95 - k]
        numbers = [loss.dual_terms(Y[judges], weight[judges]).numbers for loss in losses]
        judged = Judged(Y[judges], np.array(numbers), (-1.5, 1.5))
        terms = [loss.dual_terms(Y[train], weight[train]) for loss in losses]
        rows = np.concatenate([train, judges])
        found.append(Family(None, Y[train], terms, COSTS, offset, rows=rows, judged=judged))
        parts.append((train, judges))
    return found, parts


@pytest.mark.parametrize(
    "losses",
    [LINEAR, SQUARED, [SquaredEpsilonInsensitive(0.2)]],
    ids=["linear", "squared", "one by one"],
)
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_are_solved_as_by_themselves_and_judged_by_their_rows(losses, offset, dtype):
    families, parts = folds(losses, offset, weights(1))
    matrix = rbf_kernel(X, gamma=1.0).astype(dtype)
    wanted = np.ones(families[0].shape, dtype=bool)
    wanted[0, 1] = False
    asked = Asked(COSTS, wanted, GOAL, Stop())
    result = solve_parts(families, Held(matrix, parts), asked, None, Many())
    assert (result.solved == wanted).all() and result.reached[:, wanted].all()
    for k, (problems, (train, judges)) in enumerate(zip(families, parts, strict=True)):
        alone = problems.on(HeldKernel(np.ascontiguousarray(matrix[np.ix_(train, train)])), COSTS)
        same = solve_many(alone, GOAL, wanted)
        here = result.part(k)
        np.testing.assert_array_equal(here.beta[wanted], same.beta[wanted])
        np.testing.assert_array_equal(here.intercept[wanted], same.intercept[wanted])
        for place in np.argwhere(wanted):
            values = matrix[np.ix_(judges, train)] @ here.beta[tuple(place)]
            residual = Y[judges] - np.clip(values + here.intercept[tuple(place)], -1.5, 1.5)
            cost = weights(1)[judges] * losses[place[0]].value(residual)
            found = result.losses[(k, *place)]
            np.testing.assert_allclose(found[: len(judges)], cost, rtol=1e-4, atol=1e-4)
            assert not found[len(judges) :].any()
        assert np.isnan(result.losses[k, ~wanted, 0]).all()


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
def test_parts_go_on_from_where_they_were(losses):
    families, parts = folds(losses)
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    asked = Asked(COSTS, np.ones(families[0].shape, dtype=bool), Goal(1e-4, 1e-3), Stop())
    first = solve_parts(families, Held(matrix, parts), asked, None, Many())
    begin = Starts(first.beta, first.solved)
    rough = Asked(COSTS, asked.wanted, GOAL, Stop())
    again = solve_parts(families, Held(matrix, parts), rough, begin, Many())
    np.testing.assert_allclose(again.beta, first.beta, atol=1e-5 * np.abs(first.beta).max())
    assert again.beta is not first.beta


def test_a_part_may_bring_its_own_matrix():
    families, parts = folds(SQUARED)
    train, judges = parts[0]
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    asked = Asked(COSTS, np.ones(families[0].shape, dtype=bool), GOAL, Stop())
    whole = solve_parts(families[:1], Held(matrix, parts), asked, None, Many())
    both = np.ascontiguousarray(matrix[np.ix_(np.concatenate([train, judges]), train)])
    alone = Family(None, Y[train], families[0].terms, COSTS, judged=families[0].judged)
    for dtype in (np.float32, np.float64):
        own = solve_parts([alone], Held(both.astype(dtype)), asked, None, Many())
        np.testing.assert_array_equal(own.beta, whole.beta)
        np.testing.assert_array_equal(own.losses, whole.losses)


@pytest.mark.parametrize("losses", [LINEAR, SQUARED], ids=["linear", "squared"])
@pytest.mark.parametrize("offset", [True, False])
def test_a_walk_ends_where_it_overfits(losses, offset):
    """Targets that judge lie where the fits move away from the further the larger C is."""
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    train, judges = np.arange(100), np.arange(100, 150)
    matrix[np.ix_(judges, train)] = matrix[np.ix_(train[:50], train)]
    below = Y[:50] - 20.0 * (Y[:50] - Y[:100].mean())  # what a constant knows best
    numbers = [loss.dual_terms(below, np.ones(50)).numbers for loss in losses]
    judged = Judged(below, np.array(numbers), (-np.inf, np.inf))
    terms = [loss.dual_terms(Y[:100], np.ones(100)) for loss in losses]
    rows = np.concatenate([train, judges])
    costs = np.geomspace(1e-4, 1e2, 7)
    problems = Family(None, Y[:100], terms, costs, offset, rows=rows, judged=judged)
    asked = Asked(costs, np.ones(problems.shape, dtype=bool), GOAL, Stop(), errors=3.0)
    settings = Many(factor_ratio=1.0, factor_bytes=1)  # a factor a C, so that some can be left out
    result = solve_parts([problems], Held(matrix, [(train, judges)]), asked, None, settings)
    for level in range(len(losses)):
        known = result.solved[0, level]
        assert known[:2].all() and not known[-1]
        assert not np.diff(known.astype(int)).max() > 0  # nothing after the end
        totals = result.losses[0, level].sum(axis=1)[known]
        assert (totals[-2:] > totals[:-2].min()).all()


def test_the_race_is_by_the_folds_that_points_share():
    """Against the losses of all points, gathered and compared in NumPy."""
    rng = np.random.default_rng(3)
    rows = np.array([12, 10, 11])
    losses = rng.gamma(2.0, size=(4, 3, 2, 5, 12)) + rng.uniform(0, 1.5, size=(4, 1, 2, 5, 1))
    losses[rng.uniform(size=(4, 3, 2, 5)) < 0.3] = np.nan
    for fold, count in enumerate(rows):
        losses[:, fold, :, :, count:] = 0.0
    alive = in_the_race(losses, rows, 1.0, 0.02)
    for level in range(2):
        known = ~np.isnan(losses[:, :, level, :, 0])
        sums = np.where(known, losses[:, :, level].sum(axis=3), 0.0).sum(axis=1)
        count = known.sum(axis=1)
        leading = [tuple(p) for p in np.argwhere(count == count.max())]
        leader = min(leading, key=lambda place: sums[place])
        for g, c in np.ndindex(4, 5):
            common = np.flatnonzero(known[g, :, c] & known[leader[0], :, leader[1]])
            expected = bool(known[g, :, c].any())
            if len(common):
                here, best = (
                    np.concatenate([losses[at, k, level, cost, : rows[k]] for k in common])
                    for at, cost in ((g, c), leader)
                )
                expected = not clearly_worse(here[None], best, 1.0, 0.02)[0]
            assert alive[level, g, c] == expected


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


def test_steps_that_overflow_show_in_gaps_and_not_in_warnings():
    """Kernel values that float32 can hold, and whose products it cannot."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    matrix = (1e9 * (rows @ rows.T) ** 3).astype(np.float32)
    y = np.sin(rows[:, 0])
    terms = [SquaredPinball(0.5).dual_terms(y, np.ones(60))]
    problems = Family(HeldKernel(1e20 * matrix), y, terms, np.array([1e-3, 1e8]))
    result = solve_many(problems, GOAL, settings=Many(finish=False))
    assert not result.reached[~np.isfinite(result.gap)].any()
