"""Columns by conjugate gradients against the solvers."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tausvm.losses import SquaredPinball
from tausvm.operators import GivenKernel, HeldKernel
from tausvm.selection import columns
from tausvm.selection.columns import LowRank, solve_columns
from tausvm.solvers import Point, Problem, SolverOptions, certificate, solve

from ..estimators.data import wave

X, Y = wave(150)
COSTS = np.array([0.1, 10.0, 1000.0])
TAUS = (0.1, 0.5, 0.8)
POINTS = [(tau, C) for tau in TAUS for C in COSTS]


def ridges_of(points):
    terms = [SquaredPinball(tau).dual_terms(np.zeros(1), np.array([C])) for tau, C in points]
    return np.array([(t.ridge_plus[0], t.ridge_minus[0]) for t in terms])


def solve_all(matrix, weight, offset, allowed, stop=lambda: False, first=None):
    count = len(POINTS)
    start = np.zeros((count, len(Y)), np.float32) if first is None else first
    return solve_columns(
        matrix,
        Y,
        weight,
        ridges_of(POINTS),
        offset,
        np.full(count, allowed),
        np.inf,
        start,
        300,
        None,
        stop,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("factors", [False, True])
def test_columns_reach_the_gap_they_are_given(offset, weighted, factors, monkeypatch):
    if not factors:
        monkeypatch.setattr(columns, "FACTORED", 0)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 3.0, len(Y)) if weighted else np.ones(len(Y))
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    allowed = 1e-3
    found = solve_all(matrix, weight, offset, allowed)
    gram = HeldKernel(matrix)
    for column, (tau, C) in enumerate(POINTS):
        terms = SquaredPinball(tau).dual_terms(Y, C * weight)
        problem = Problem(gram, Y, terms, offset)
        beta = found.beta[column].astype(np.float64)
        if offset:  # single precision keeps the sum only so far
            assert abs(beta.sum()) <= 1e-4 * np.abs(beta).sum()
            beta = problem.feasible(beta)
        fitted = problem.operator.product(beta)
        primal = problem.primal_value(beta, fitted, found.intercept[column])
        gap = primal - problem.dual_value(beta, beta, fitted)
        assert found.gap[column] <= allowed
        assert gap <= allowed + 5e-4 * primal
        exact = solve(problem, "newton", SolverOptions(tol=1e-10))
        assert primal <= exact.primal_objective + allowed + 5e-4 * primal
        assert found.primal[column] == pytest.approx(primal, rel=1e-3, abs=1e-4)


def test_a_good_start_is_kept():
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    rough = solve_all(matrix, np.ones(len(Y)), True, 1e-2)
    again = solve_all(matrix, np.ones(len(Y)), True, 2e-2, first=rough.beta.copy())
    np.testing.assert_array_equal(again.beta, rough.beta)


def test_stop_leaves_at_once():
    matrix = rbf_kernel(X, gamma=1.0).astype(np.float32)
    found = solve_all(matrix, np.ones(len(Y)), True, 0.0, stop=lambda: True)
    assert not found.beta.any()


def test_low_rank_approximation_of_a_smooth_kernel():
    matrix = rbf_kernel(X, gamma=0.1).astype(np.float32)
    low = LowRank.of(matrix)
    assert low.vectors.shape[1] < len(Y)
    np.testing.assert_allclose(low.vectors.T @ low.vectors, np.eye(len(low.values)), atol=1e-2)
    near = (low.vectors * low.values) @ low.vectors.T
    np.testing.assert_allclose(near, matrix, atol=1e-2)


def test_a_matrix_that_is_no_kernel_does_no_harm():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(150, 150)).astype(np.float32)
    found = solve_all(matrix + matrix.T, np.ones(150), False, 1e-3)
    assert found.beta.shape == (len(POINTS), 150)


def test_exact_matrix_and_held_one_agree():
    """The gap of the matrix in single precision tells of that in double precision."""
    exact = rbf_kernel(X, gamma=1.0)
    found = solve_all(exact.astype(np.float32), np.ones(len(Y)), False, 1e-3)
    for column, (tau, C) in enumerate(POINTS[:2]):
        terms = SquaredPinball(tau).dual_terms(Y, np.full(len(Y), C))
        problem = Problem(GivenKernel(exact), Y, terms, False)
        certified = certificate(problem, Point.of(found.beta[column].astype(np.float64)))
        assert certified.primal - certified.dual <= 2e-3
