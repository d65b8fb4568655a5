"""Certificates of pieces, limits, and what a path is where it was not followed."""

from __future__ import annotations

import numpy as np
import pytest

from tausvm.kernels import Points, make_kernel
from tausvm.operators.products import KernelProducts, LinearProducts
from tausvm.solvers.path import MovingBox, PathOptions, PathProblem, follow_path
from tausvm.solvers.result import Status

from .path_cases import path_case


def gap_along(problem, path, taus):
    """Relative gaps at levels, by the plain formulas."""
    K = problem.products.block(np.arange(problem.n), np.arange(problem.n))
    gaps = []
    for tau in taus:
        beta, b = path.solution(tau)
        lower, upper = problem.box.lower(tau), problem.box.upper(tau)
        assert (beta >= lower - 1e-13 * np.abs(lower).max()).all()
        assert (beta <= upper + 1e-13 * np.abs(upper).max()).all()
        residual = problem.y - K @ beta - b
        norm = beta @ K @ beta
        primal = 0.5 * norm + (residual * np.where(residual > 0, upper, lower)).sum()
        dual = problem.y @ beta - 0.5 * norm
        gaps.append((primal - dual) / max(abs(primal), abs(dual), 1e-300))
    return np.array(gaps)


def blobs(n, kernel="rbf", offset=True):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    products = (
        LinearProducts(X)
        if kernel == "linear"
        else KernelProducts(make_kernel("rbf", 0.3), Points(X))
    )
    return PathProblem(products, y, MovingBox.hinge(y, np.full(n, 1.0)), offset)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_level_of_a_piece_is_beyond_its_bound(seed):
    problem = path_case(seed).problem
    result = follow_path(problem)
    taus, gaps = result.checked, result.gaps
    assert taus[0] == 0
    assert taus[-1] == 1
    assert len(gaps) == len(taus) - 1
    assert np.isfinite(gaps).all()
    assert result.dual_gap == gaps.max()
    wide = np.flatnonzero((np.diff(taus) > 1e-6) & (taus[:-1] > 1e-6) & (taus[1:] < 1 - 1e-6))
    for k in wide[:: max(1, len(wide) // 12)]:
        inside = taus[k] + np.array([0.02, 0.3, 0.5, 0.7, 0.98]) * (taus[k + 1] - taus[k])
        assert (gap_along(problem, result.path, inside) <= gaps[k] + 1e-9).all()


@pytest.mark.parametrize("offset", [True, False])
def test_the_pieces_of_a_thinned_path_have_bounds_of_their_own(offset):
    problem = blobs(60, offset=offset)
    limit = 0.3 * follow_path(problem).path.nbytes / 2**20
    result = follow_path(problem, PathOptions(memory_limit=limit))
    assert result.thinned > 1
    assert result.status is Status.NUMERICAL_ERROR
    taus = result.checked
    middles = 0.5 * (taus[1:] + taus[:-1])
    inner = np.flatnonzero((np.diff(taus) > 1e-6) & (middles > 1e-4) & (middles < 1 - 1e-4))
    found = gap_along(problem, result.path, middles[inner])
    assert (found <= result.gaps[inner] + 1e-9).all()
    # and they are not far from the truth
    assert 2.5 * found.max() >= result.gaps[inner].max()


def test_intervals_above_a_tolerance():
    problem = blobs(60)
    limit = 0.3 * follow_path(problem).path.nbytes / 2**20
    result = follow_path(problem, PathOptions(memory_limit=limit))
    intervals = result.above(1e-6)
    assert max(gap for _, _, gap in intervals) == result.dual_gap
    inside = np.zeros(len(result.gaps), dtype=bool)
    for low, high, _ in intervals:
        inside |= (result.checked[:-1] >= low) & (result.checked[1:] <= high)
    np.testing.assert_array_equal(inside, result.gaps > 1e-6)
    assert result.above(1.0) == []


class Clock:
    """Seconds that pass with every look."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("looks", [0, 3, 8])
def test_a_time_limit_leaves_a_feasible_path_with_its_true_gap(looks, offset):
    problem = blobs(150, offset=offset)
    clock = Clock(1.0)
    result = follow_path(problem, PathOptions(time_limit=looks + 0.5, clock=clock))
    whole = follow_path(problem)
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= looks + 12  # a look or two after the limit, and the seconds told
    assert result.n_kinks < whole.n_kinks
    low, high = result.reached
    assert low <= high
    taus = np.linspace(0.03, 0.97, 23)
    found = gap_along(problem, result.path, taus)
    piece = np.searchsorted(result.checked, taus, side="right") - 1
    assert (found <= result.gaps[piece] + 1e-9).all()
    followed = (taus > low) & (taus < high)
    assert (found[followed] <= 1e-6).all()
    assert result.dual_gap > 1e-6


@pytest.mark.parametrize("most", [0, 1, 40, 200])
def test_max_iter_bounds_the_kinks(most):
    problem = blobs(150)
    result = follow_path(problem, PathOptions(max_iter=most))
    assert result.status is Status.MAX_ITER
    assert result.n_kinks + result.n_start <= most
    assert result.dual_gap > 1e-6
    taus = np.linspace(0.03, 0.97, 9)
    found = gap_along(problem, result.path, taus)
    piece = np.searchsorted(result.checked, taus, side="right") - 1
    assert (found <= result.gaps[piece] + 1e-9).all()


def test_a_limit_that_is_not_reached_changes_nothing():
    problem = blobs(60)
    whole = follow_path(problem)
    limited = follow_path(problem, PathOptions(time_limit=1e9, max_iter=10**6))
    assert limited.status is Status.SOLVED
    np.testing.assert_array_equal(whole.path.chain.values, limited.path.chain.values)
    assert problem.products.watch is None


@pytest.mark.parametrize("offset", [True, False])
def test_long_work_on_the_kernel_ends_in_time(offset):
    """Blocks of kernel values are computed in parts, with a look at the clock between them."""
    problem = blobs(150, offset=offset)
    problem.products.chunk_bytes = 8 * 150
    clock = Clock(1.0)
    result = follow_path(problem, PathOptions(time_limit=5.5, clock=clock))
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= 15
    assert result.dual_gap == pytest.approx(1.0)


def test_bounds_keep_their_digits_next_to_one():
    """Boxes close at τ = 1: β there is a share of their width, not of their size."""
    problem = blobs(40, "linear")
    path = follow_path(problem).path
    for rest in (1e-6, 1e-9, 1e-12):
        beta, _ = path.solution(1.0 - rest)
        rest = 1.0 - (1.0 - rest)
        assert np.abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
        assert np.abs(beta).max() <= 2 * 40 * rest
