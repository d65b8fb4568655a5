"""Landmarks: the choice of centres, features, and the certificate against the full problem."""

import numpy as np
import pytest

from tausvm.kernels import Points, make_kernel
from tausvm.losses import (
    EpsilonInsensitive,
    Hinge,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from tausvm.operators import Blocks, CachedKernel, StreamedKernel
from tausvm.solvers import Point, Problem, SolverOptions, Status, certificate, solve
from tausvm.solvers.landmarks import Landmarks, PivotedCholesky, Pivoting, solve_landmarks
from tausvm.solvers.landmarks.features import LandmarkFeatures
from tausvm.solvers.landmarks.full import best_shrink, loose_energy
from tausvm.solvers.units import Units

LOSSES = {
    "pinball": Pinball(0.2),
    "pinball with a tube": Pinball(0.7, 0.1),
    "expectile": SquaredPinball(0.8),
    "epsilon": EpsilonInsensitive(0.2),
    "squared epsilon": SquaredEpsilonInsensitive(0.2),
    "hinge": Hinge(0.4),
}
N = 900


def rows(n=N, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 4))


def targets(X, seed=0):
    noise = np.random.default_rng(seed + 1).normal(size=len(X))
    return 3 * np.sin(3 * X[:, 0] * X[:, 1]) + 2 * X[:, 2] + (0.2 + X[:, 3]) * noise


def pose(loss, X, offset=True, C=1.0, weight=None, whole=False):
    """The problem of a loss on these rows, by a matrix that is held or by one that is not."""
    y = targets(X)
    if isinstance(loss, Hinge):
        y = np.where(y > np.median(y), 1.0, -1.0)
    weight = np.ones(len(y)) if weight is None else weight
    kernel, points = make_kernel("rbf", 2.0), Points(X)
    gram = (
        CachedKernel(kernel, points, dtype=np.float64) if whole else StreamedKernel(kernel, points)
    )
    terms = loss.dual_terms(y, C * weight)
    return Problem.posed(gram, y, terms, offset, Units.of(y, weight, offset))


# ---- the kernel matrix of which nothing is kept ----


def test_streamed_products_are_those_of_the_matrix():
    X = rows(150)
    kernel = make_kernel("rbf", 2.0)
    K = kernel.between(Points(X), Points(X))
    gram = StreamedKernel(kernel, Points(X), Blocks(bytes=1 << 12, side=40, centres=32))
    beta = np.random.default_rng(0).normal(size=(150, 3))
    beta[::3] = 0.0
    np.testing.assert_allclose(gram.energies(beta), np.einsum("ip,ij,jp->p", beta, K, beta))
    np.testing.assert_allclose(gram.product(beta[:, 0]), K @ beta[:, 0], atol=1e-12)
    np.testing.assert_allclose(gram.norm2(beta[:, 1]), beta[:, 1] @ K @ beta[:, 1])
    assert gram.energies(np.zeros((150, 2))).tolist() == [0.0, 0.0]


# ---- centres ----


def chosen(points, count, seed=0, weight=None, **settings):
    weight = np.ones(len(points)) if weight is None else weight
    rng = np.random.default_rng(seed)
    choice = PivotedCholesky(make_kernel("rbf", 2.0), points, weight, rng, Pivoting(**settings))
    choice.first(count)
    return choice


def test_the_factor_is_that_of_the_pivots():
    points = Points(rows(200))
    choice = chosen(points, 60, block=16, rows=50)
    K = make_kernel("rbf", 2.0).between(points, points)
    at, lower = choice.first(60)
    assert len(set(at)) == 60
    np.testing.assert_allclose(lower @ lower.T, K[np.ix_(at, at)], atol=1e-12)
    at = choice.pivots
    near = K[:, at] @ np.linalg.solve(K[np.ix_(at, at)], K[at])
    np.testing.assert_allclose(choice.left, np.diagonal(K - near), atol=1e-8)


def test_a_choice_goes_on_where_it_was_and_repeats_itself():
    points = Points(rows(200))
    once = chosen(points, 50, block=10)
    twice = chosen(points, 20, block=10)
    assert len(twice.pivots) < 50
    assert np.array_equal(once.first(50)[0], twice.first(50)[0])
    assert chosen(points, 50, seed=1, block=10).pivots != once.pivots


def test_copies_and_rows_beyond_the_rank_are_not_chosen():
    X = np.repeat(rows(30), 5, axis=0)
    choice = chosen(Points(X), 100)
    assert choice.exhausted and len(choice.pivots) == 30
    linear = PivotedCholesky(
        make_kernel("linear", 1.0),
        Points(rows(80)),
        np.ones(80),
        np.random.default_rng(0),
        Pivoting(),
    )
    linear.first(80)
    assert len(linear.pivots) == 4


def test_pivots_leave_about_as_little_as_the_best_rank_could():
    points = Points(rows(500))
    K = make_kernel("rbf", 2.0).between(points, points)
    best = np.linalg.eigvalsh(K)[:-60].sum()

    def left(block):
        choices = [chosen(points, 60, seed, block=block).first(60)[0] for seed in range(10)]
        near = [K[:, at] @ np.linalg.solve(K[np.ix_(at, at)], K[at]) for at in choices]
        return np.mean([np.trace(K - part) for part in near])

    single, blocks = left(1), left(60)
    assert single < 5.0 * best
    assert abs(blocks / single - 1.0) < 0.15  # proposals that are rejected make up for the blocks


def test_weights_draw_pivots():
    X = rows(400)
    heavy = np.where(X[:, 0] < 0.5, 1.0, 1e-6)
    at = chosen(Points(X), 20, weight=heavy).first(20)[0]
    assert (X[at, 0] < 0.5).all()


# ---- features ----


@pytest.mark.parametrize("megabytes", [100.0, 1e-3])
def test_features_have_the_inner_products_of_the_projection(megabytes):
    X = rows(120)
    gram = StreamedKernel(make_kernel("rbf", 2.0), Points(X))
    choice = chosen(Points(X), 40)
    features = LandmarkFeatures(gram, np.float64, megabytes, 400)
    at, lower = choice.first(40)
    features.extend(*choice.first(15))
    features.extend(at, lower)
    np.testing.assert_allclose(features.values, choice.factor[:40].T, atol=1e-9)
    alpha = features.coefficients(np.arange(40.0))
    K = gram.kernel.between(Points(X), Points(X[at]))
    np.testing.assert_allclose(K @ alpha, features.values @ np.arange(40.0), atol=1e-8)


# ---- the certificate ----


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_the_gap_reported_is_never_below_the_true_one(name, offset):
    X = rows()
    best = solve(pose(LOSSES[name], X, offset, whole=True), options=SolverOptions(tol=1e-8))
    for count in (15, 60, 250):
        (found,) = solve_landmarks([pose(LOSSES[name], X, offset)], Landmarks(count=count))
        assert found.status is Status.SOLVED and found.exact
        assert found.landmark_gap <= 1e-4
        assert found.dual_objective <= best.primal_objective * (1 + 1e-9)
        assert found.primal_objective >= best.dual_objective * (1 - 1e-9)
        true = (found.primal_objective - best.primal_objective) / found.primal_objective
        assert true - 1e-8 <= found.dual_gap <= 5.0 * true + 2e-4


def test_the_result_is_what_the_certificate_of_the_problem_says():
    X = rows(300)
    problem = pose(Pinball(0.3), X, whole=True)
    (found,) = solve_landmarks([pose(Pinball(0.3), X)], Landmarks(count=40))
    units = problem.units
    function = np.zeros(300)
    function[found.landmarks] = units.into(found.function)
    again = certificate(problem, Point(units.into(found.beta), function))
    assert abs(found.beta.sum()) < 1e-10
    np.testing.assert_allclose(again.gap, found.dual_gap, rtol=1e-9)
    np.testing.assert_allclose(units.objective(again.primal), found.primal_objective, rtol=1e-12)
    np.testing.assert_allclose(units.values(again.fitted), found.fitted, atol=1e-9)


def test_the_best_multiple_of_beta_is_the_best():
    for loss in (Pinball(0.3, 0.05), SquaredPinball(0.7, 0.05)):
        problem = pose(loss, rows(80), C=3.0)
        beta = problem.feasible(problem.terms.response(problem.y))
        energy = 7.0 * problem.operator.norm2(beta)
        values = [
            problem.dual_value(s * beta, s * beta, energy=s * s * energy)
            for s in np.linspace(0.0, 1.0, 1001)
        ]
        best = best_shrink(problem, beta, energy)
        assert 0 < best < 1
        assert abs(best - np.argmax(values) / 1000) <= 1e-3


def test_the_loose_bound_is_a_bound_and_says_so():
    X = rows(400)
    options = SolverOptions()
    problems = [pose(Pinball(tau), X) for tau in (0.2, 0.5)]
    exact = solve_landmarks(problems, Landmarks(count=150), options)
    loose = solve_landmarks(problems, Landmarks(count=150, exact_rows=10), options)
    for one, other in zip(exact, loose, strict=True):
        assert one.exact and not other.exact
        np.testing.assert_allclose(one.primal_objective, other.primal_objective)
        assert other.dual_gap >= one.dual_gap
    assert max(result.dual_gap for result in loose) < 1.0


def test_the_loose_energy_bounds_the_true_one():
    X = rows(200)
    choice = chosen(Points(X), 50)
    K = make_kernel("rbf", 2.0).between(Points(X), Points(X))
    beta = np.random.default_rng(0).normal(size=(200, 2))
    near = np.square(choice.factor @ beta).sum(axis=0)
    assert (loose_energy(near, beta, choice.left) >= np.einsum("ip,ij,jp->p", beta, K, beta)).all()


# ---- problems ----


def test_as_many_landmarks_as_rows_are_the_full_problem():
    X = rows(300)
    best = solve(pose(Pinball(0.3), X, whole=True), options=SolverOptions(tol=1e-9))
    (found,) = solve_landmarks(
        [pose(Pinball(0.3), X)], Landmarks(count=500), SolverOptions(tol=1e-7)
    )
    assert found.status is Status.SOLVED and found.dual_gap <= 2e-7
    np.testing.assert_allclose(found.primal_objective, best.primal_objective, rtol=1e-6)


def test_landmarks_are_added_until_the_gap_is_met():
    problems = [pose(Pinball(tau), rows()) for tau in (0.1, 0.5, 0.9)]
    found = solve_landmarks(problems, Landmarks(gap=0.005, first=20))
    count = len(found[0].landmarks)
    assert 20 < count < N
    assert max(result.dual_gap for result in found) <= 0.005
    fewer = solve_landmarks(problems, Landmarks(count=count // 2))
    assert max(result.dual_gap for result in fewer) > 0.005
    # the same landmarks, begun cold
    cold = solve_landmarks(problems, Landmarks(count=count))
    assert np.array_equal(found[0].landmarks[: count // 2], fewer[0].landmarks)
    for one, other in zip(found, cold, strict=True):
        np.testing.assert_allclose(one.primal_objective, other.primal_objective, rtol=0.01)


def test_beyond_the_exact_rows_a_sample_says_when_to_stop():
    problems = [pose(Pinball(tau), rows()) for tau in (0.1, 0.5)]
    sampled = Landmarks(gap=0.02, first=20, exact_rows=10, sample_rows=300)
    found = solve_landmarks(problems, sampled)
    assert not found[0].exact and len(found[0].landmarks) < N
    exact = solve_landmarks(problems, Landmarks(count=len(found[0].landmarks)))
    for one, other in zip(found, exact, strict=True):
        assert one.gap_estimate <= 0.02
        assert 0.5 * other.dual_gap <= one.gap_estimate <= 2.0 * other.dual_gap
        assert other.gap_estimate == other.dual_gap <= one.dual_gap


def test_no_more_landmarks_are_added_than_memory_has_room_for():
    settings = Landmarks(gap=1e-9, first=20, megabytes=4 * N * 90 / 2**20)
    assert settings.limit(N) == 90 and Landmarks().limit(1_000_000) == 524
    (found,) = solve_landmarks([pose(SquaredPinball(0.5), rows())], settings)
    assert len(found.landmarks) == 90 and found.dual_gap > 1e-9
    assert Landmarks(first=20, megabytes=1e-6).limit(N) == 20


def test_an_estimate_saves_gaps_that_are_too_large_anyway():
    problems = [pose(Pinball(0.5), rows())]
    plain = solve_landmarks(problems, Landmarks(gap=0.005, first=20))
    estimated = Landmarks(gap=0.005, first=20, few_rows=100, sample_rows=800)
    (found,) = solve_landmarks(problems, estimated)
    assert found.exact and found.dual_gap <= 0.005
    assert len(found.landmarks) == len(plain[0].landmarks)


@pytest.mark.parametrize("loss", [Pinball(0.2), SquaredPinball(0.8)])
def test_a_file_does_as_well_as_memory(loss):
    # few enough rows for landmarks to be chosen from all of them either way
    problems = [pose(loss, rows(150))]
    (held,) = solve_landmarks(problems, Landmarks(count=100))
    (mapped,) = solve_landmarks(problems, Landmarks(count=100, megabytes=0.01))
    assert np.array_equal(held.landmarks, mapped.landmarks)
    np.testing.assert_allclose(held.fitted, mapped.fitted, atol=1e-9)
    np.testing.assert_allclose(held.dual_gap, mapped.dual_gap, rtol=1e-6)


def test_landmarks_from_a_part_of_the_rows_do_nearly_as_well():
    problems = [pose(SquaredPinball(0.8), rows())]
    (held,) = solve_landmarks(problems, Landmarks(count=60))
    (part,) = solve_landmarks(problems, Landmarks(count=60, megabytes=0.1))
    assert not np.array_equal(held.landmarks, part.landmarks)
    np.testing.assert_allclose(held.primal_objective, part.primal_objective, rtol=0.05)
    assert part.landmark_gap <= 1e-4


def test_a_level_of_a_list_is_that_level_alone():
    together = solve_landmarks(
        [pose(Pinball(tau), rows()) for tau in (0.2, 0.5)], Landmarks(count=80)
    )
    for tau, one in zip((0.2, 0.5), together, strict=True):
        (alone,) = solve_landmarks([pose(Pinball(tau), rows())], Landmarks(count=80))
        np.testing.assert_allclose(one.primal_objective, alone.primal_objective, rtol=2e-4)


def ticking(step):
    """A clock that moves on whenever it is looked at."""
    now = [0.0]

    def clock():
        now[0] += step
        return now[0]

    return clock


def test_a_time_limit_is_kept_and_told():
    options = SolverOptions(time_limit=0.2, clock=ticking(0.05))
    (found,) = solve_landmarks([pose(Pinball(0.5), rows())], Landmarks(count=200), options)
    assert found.status is Status.TIME_LIMIT
    assert 0 < found.dual_gap <= 1.0 and np.isfinite(found.intercept)


def test_fewer_landmarks_have_to_do_where_time_is_short():
    pivoting = Pivoting(block=5)
    options = SolverOptions(time_limit=1000.0, clock=ticking(20.0))
    settings = Landmarks(count=300, pivoting=pivoting, choice_share=0.1)
    (found,) = solve_landmarks([pose(SquaredPinball(0.5), rows())], settings, options)
    assert found.cut and 0 < len(found.landmarks) < 300
    assert found.dual_gap < 1.0
    (whole,) = solve_landmarks([pose(SquaredPinball(0.5), rows())], settings)
    assert not whole.cut and len(whole.landmarks) == 300
