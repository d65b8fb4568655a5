"""The path: certified and equal to independent optima at any τ, on problems full of ties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tausvm._core.path import Outcome, PathCore

from tausvm.kernels import Points, make_kernel
from tausvm.losses import Hinge, Pinball
from tausvm.operators import GivenKernel
from tausvm.operators.products import KernelProducts, LinearProducts
from tausvm.solvers import Point, Problem, certificate
from tausvm.solvers.path import (
    MovingBox,
    PathOptions,
    PathProblem,
    PathSettings,
    follow_path,
)
from tausvm.solvers.result import Status, relative_gap

from ..reference.objective import dual_objective, primal_objective
from ..reference.qp import reference_optimum
from .path_cases import path_case


def gap_at(case, path, tau):
    """The relative gap at τ by the plain formulas of the reference, after feasibility."""
    beta, b = path.solution(tau)
    lower, upper = case.box.lower(tau), case.box.upper(tau)
    rounding = 1e-14 * case.cost
    assert (beta >= lower - rounding).all()
    assert (beta <= upper + rounding).all()
    if case.intercept == "free":
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    costs = case.costs(tau)
    primal = primal_objective(case.K, case.y, costs, beta, b)
    return relative_gap(primal, dual_objective(case.K, case.y, costs, beta)), primal


@pytest.mark.parametrize("seed", range(100))
def test_gap_at_random_levels(seed):
    case = path_case(seed)
    result = follow_path(case.problem)
    assert result.status is Status.SOLVED
    for tau in np.random.default_rng(seed).uniform(size=10):
        assert gap_at(case, result.path, tau)[0] <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_gap_at_a_thousand_levels(seed):
    case = path_case(seed)
    path = follow_path(case.problem).path
    for tau in np.random.default_rng(seed).uniform(size=1000):
        assert gap_at(case, path, tau)[0] <= 1e-6


@pytest.mark.parametrize("seed", range(0, 100, 2))
def test_small_batches_have_the_same_path(seed):
    """Factors and residuals are fresh at every kink then."""
    case = path_case(seed)
    settings = PathSettings(batch_kinks=1)
    result = follow_path(case.problem, None, settings)
    assert result.status is Status.SOLVED
    for tau in np.random.default_rng(seed).uniform(size=10):
        assert gap_at(case, result.path, tau)[0] <= 1e-6


@pytest.mark.parametrize("offset", [True, False])
def test_the_core_keeps_free_points_on_the_margin(offset):
    """While boxes open, with a factor that is updated at every kink: residuals are those of β."""
    rng = np.random.default_rng(8)
    n, c = 91, 1e-2
    A = rng.normal(size=(n, 120))
    K, y = A @ A.T, rng.normal(size=n)
    box = np.repeat([[0.0], [-c], [0.0], [c]], n, axis=1)
    b = float(np.median(y)) if offset else 0.0
    status = np.sign(y - b).astype(np.int8)
    free = np.flatnonzero(status == 0)
    slopes = c * status
    core = PathCore(K, box, offset, 60, PathSettings())
    start = np.zeros(n), y - b, status.copy(), free, np.sqrt(K[np.ix_(free, free)])
    core.start(0.0, b, *start)
    core.drive_with(K @ slopes, slopes.sum(), float(np.abs(slopes) @ np.sqrt(np.diagonal(K))))
    assert core.run(1e9, True) == Outcome.BATCH
    log = core.log
    assert log.count == 60
    for k in (0, 31, 59):
        for place, new in zip(log.index[: k + 1], log.status[: k + 1], strict=True):
            status[place] = new
        beta = log.t[k] * c * status
        part = slice(log.begin[k], log.begin[k + 1])
        np.testing.assert_array_equal(np.sort(log.members[part]), np.flatnonzero(status == 0))
        beta[log.members[part]] = log.values[part]
        residual = y - K @ beta - log.offset[k]
        np.testing.assert_allclose(residual, log.residual[k], atol=1e-12)
        assert (log.residual[k] * status >= 0).all()
        if offset:
            assert beta.sum() == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_clarabels(seed):
    case = path_case(1000 + seed)
    path = follow_path(case.problem).path
    for tau in (0.07, 0.5, 0.81):
        optimum = reference_optimum(case.K, case.y, case.costs(tau), case.intercept == "free")
        _, primal = gap_at(case, path, tau)
        floor = 1e-6 * case.cost.sum() * np.abs(case.y).max()
        assert abs(primal - optimum.upper) <= 2e-6 * max(optimum.upper, floor)


@given(tau=st.floats(0.001, 0.999), seed=st.integers(0, 2**16))
def test_boxes_are_those_of_the_losses(tau, seed):
    rng = np.random.default_rng(seed)
    y, cost = rng.choice([-1.0, 1.0], size=7), rng.uniform(size=7)
    for box, loss in ((MovingBox.hinge(y, cost), Hinge), (MovingBox.pinball(cost), Pinball)):
        terms = loss(tau).dual_terms(y, cost)
        np.testing.assert_allclose(box.lower(tau), terms.lower, atol=1e-15)
        np.testing.assert_allclose(box.upper(tau), terms.upper, atol=1e-15)
        for way in (-1, 1):
            moved = box.from_(0.5, way)
            np.testing.assert_allclose(moved.upper(way * (tau - 0.5)), terms.upper, atol=1e-15)
        np.testing.assert_allclose(box.shrunk(tau).lower(0.5), 0.5 * terms.lower, atol=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_objectives_are_those_of_the_dual_problem(seed):
    case = path_case(2000 + seed)
    tau, problem = 0.3, case.problem
    beta, b = follow_path(problem).path.solution(tau)
    loss = Hinge(tau) if case.loss == "hinge" else Pinball(tau)
    terms = loss.dual_terms(case.y, case.cost)
    posed = Problem(GivenKernel(case.K), case.y, terms, case.intercept == "free")
    found, expected = problem.certificate(beta, b, tau), certificate(posed, Point.of(beta, b))
    assert found.primal == pytest.approx(expected.primal, rel=1e-9, abs=1e-12)
    assert found.dual == pytest.approx(expected.dual, rel=1e-9, abs=1e-12)
    assert problem.violation(beta, found.fitted, tau) <= 1e-6
    # far from the solution too, where the gap is large
    other = problem.feasible(0.7 * beta, tau)
    gap = certificate(posed, Point.of(other, b)).gap
    assert problem.certificate(other, b, tau).gap == pytest.approx(gap, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_sets_tell_the_residuals_signs(seed):
    case = path_case(3000 + seed)
    path = follow_path(case.problem).path
    for tau in np.random.default_rng(seed).uniform(size=10):
        beta, b = path.solution(tau)
        residual = case.y - case.K @ beta - b
        sets = path.sets(tau)
        rounding = 1e-6 * np.abs(case.y).max()
        assert (residual[sets > 0] >= -rounding).all()
        assert (residual[sets < 0] <= rounding).all()
        assert (np.abs(residual[sets == 0]) <= rounding).all()


def test_mirror_image():
    """Labels −y at 1 − τ are the same problem."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    cost = np.ones(60)
    solutions = [
        follow_path(PathProblem(LinearProducts(X), s * y, MovingBox.hinge(s * y, cost), True)).path
        for s in (1, -1)
    ]
    for tau in (0.1, 0.43, 0.8):
        (beta, b), (mirrored, c) = solutions[0].solution(tau), solutions[1].solution(1 - tau)
        np.testing.assert_allclose(X.T @ beta, -X.T @ mirrored, atol=1e-6)
        assert b == pytest.approx(-c, abs=1e-6)


@pytest.mark.parametrize("share", [0.15, 0.85])
def test_a_path_may_begin_at_either_end(share):
    """The walk begins with the smaller class alone; from the middle it finds the same path."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 3))
    signal = X[:, 0] + rng.normal(size=120)
    y = np.where(signal > np.quantile(signal, 1 - share), 1.0, -1.0)
    problem = PathProblem(LinearProducts(X, 1.0), y, MovingBox.hinge(y, np.ones(120)), False)
    from_end = follow_path(problem)
    from_middle = follow_path(problem, None, PathSettings(begin_at_ends=False))
    assert from_end.n_start < from_middle.n_start
    assert abs(from_end.n_kinks - from_middle.n_kinks) <= 0.05 * from_middle.n_kinks
    for tau in rng.uniform(size=30):
        (beta, _), (other, _) = (r.path.solution(tau) for r in (from_end, from_middle))
        np.testing.assert_allclose(X.T @ beta, X.T @ other, atol=1e-6)
        # where many points share the margin β is not unique, and neither are their sets
        off = np.abs(y - problem.products.product(beta)) > 1e-8
        sets, others = (r.path.sets(tau)[off] for r in (from_end, from_middle))
        np.testing.assert_array_equal(sets, others)


def test_pieces_are_straight():
    """Between two kinks β is on the straight line, and the sets are constant."""
    case = path_case(5)
    path = follow_path(case.problem).path
    taus = np.unique(path.chain.tau)
    wide = np.flatnonzero(np.diff(taus) > 1e-3)
    assert len(wide) > 3
    for k in wide:
        left, middle, right = (taus[k] + s * (taus[k + 1] - taus[k]) for s in (0.2, 0.5, 0.8))
        ends = 0.5 * (path.solution(left)[0] + path.solution(right)[0])
        np.testing.assert_allclose(path.solution(middle)[0], ends, atol=1e-12 * case.cost.max())
        np.testing.assert_array_equal(path.sets(left), path.sets(right))


def test_sparse_rows_give_the_same_path():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)) * (rng.uniform(size=(80, 6)) < 0.4)
    y = np.where(X.sum(axis=1) + rng.normal(size=80) > 0, 1.0, -1.0)
    box = MovingBox.hinge(y, np.ones(80))
    dense, sparse = (
        follow_path(PathProblem(LinearProducts(form, 1.0), y, box, False)).path
        for form in (X, sp.csr_matrix(X))
    )
    for tau in (0.2, 0.5, 0.9):
        np.testing.assert_allclose(dense.solution(tau)[0], sparse.solution(tau)[0], atol=1e-7)


def test_memory_grows_with_changes_not_with_rows():
    rng = np.random.default_rng(2)
    sizes = []
    for n in (200, 800):
        X = rng.normal(size=(n, 2))
        y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        box = MovingBox.hinge(y, np.full(n, 1.0 / n))
        path = follow_path(PathProblem(LinearProducts(X, 1.0), y, box, False)).path
        # at most three free points in two dimensions and a constant: 12 bytes each
        assert path.nbytes <= len(path) * (12 * 3 + 48) + (len(path) // 1024 + 2) * n
        sizes.append(path.nbytes / len(path))
    assert sizes[1] < 1.2 * sizes[0]


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse", "rbf"])
def test_windows_miss_nothing(form, offset):
    """A walk on windows of few points has the kinks of one on all points."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    y = np.where(X[:, 0] + rng.normal(size=400) > 0, 1.0, -1.0)
    products = {
        "dense": LinearProducts(X, 0.0 if offset else 1.0),
        "sparse": LinearProducts(sp.csr_matrix(X), 0.0 if offset else 1.0),
        "rbf": KernelProducts(make_kernel("rbf", 0.05), Points(X)),
    }[form]
    problem = PathProblem(products, y, MovingBox.hinge(y, np.full(400, 0.1)), offset)
    whole = follow_path(problem)
    settings = PathSettings(whole=50, whole_held=50, window=30, window_per_free=2.0)
    small = follow_path(problem, None, settings)
    assert small.dual_gap <= 1e-6
    # at the ends boxes close and the objective vanishes: rounding is a larger share of it
    inner = (small.checked[:-1] > 1e-6) & (small.checked[1:] < 1 - 1e-6)
    assert small.gaps[inner].max() <= 1e-7
    assert abs(small.n_kinks - whole.n_kinks) <= 0.02 * whole.n_kinks + 4
    for tau in rng.uniform(size=30):
        (beta, b), (other, c) = whole.path.solution(tau), small.path.solution(tau)
        np.testing.assert_allclose(products.product(beta), products.product(other), atol=1e-6)
        assert b == pytest.approx(c, abs=1e-6)


def test_ctrl_c_stops_between_batches():
    """The callback is asked at every check; what it raises ends the walk at once."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1.0, -1.0)
    problem = PathProblem(LinearProducts(X, 1.0), y, MovingBox.hinge(y, np.ones(300)), False)
    asked = []

    def interrupt(progress):
        asked.append(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        follow_path(problem, PathOptions(callback=interrupt))
    assert len(asked) == 1
    assert asked[0].gap <= 1e-6


def test_equal_bits():
    case = path_case(7)
    first, second = (follow_path(case.problem).path for _ in range(2))
    np.testing.assert_array_equal(first.chain.values, second.chain.values)
    np.testing.assert_array_equal(first.chain.tau, second.chain.tau)
