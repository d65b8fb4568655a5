"""Conjugate gradients against a direct solution, and triangles against products."""

from __future__ import annotations

import numpy as np
import pytest

from tausvm.solvers.linalg import cholesky, cholesky_solve, conjugate_gradients, solve_lower

RNG = np.random.default_rng(0)
FACTOR = RNG.normal(size=(30, 30))
A = FACTOR @ FACTOR.T + np.diag(np.geomspace(1.0, 1e3, 30))


@pytest.mark.parametrize("shape", [(30,), (30, 2)])
@pytest.mark.parametrize("started", [False, True])
def test_conjugate_gradients_solve(shape: tuple[int, ...], started: bool) -> None:
    right = RNG.normal(size=shape)
    diagonal = np.diag(A).reshape(-1, *([1] * (len(shape) - 1)))
    x, arrived = conjugate_gradients(
        lambda v: A @ v,
        right,
        lambda r: r / diagonal,
        lambda r, energy: energy <= 1e-24,
        500,
        RNG.normal(size=shape) if started else None,
    )
    assert arrived
    np.testing.assert_allclose(x, np.linalg.solve(A, right), atol=1e-9)


def test_conjugate_gradients_stop_where_they_are_told() -> None:
    right = RNG.normal(size=30)
    asked: list[float] = []

    def enough(residual: np.ndarray, energy: float) -> bool:
        asked.append(float(residual @ residual))
        return len(asked) == 4

    x, arrived = conjugate_gradients(lambda v: A @ v, right, lambda r: r, enough, 500)
    assert arrived and asked[-1] == pytest.approx(np.sum((right - A @ x) ** 2))
    _, arrived = conjugate_gradients(
        lambda v: A @ v, right, lambda r: r, lambda r, energy: False, 3
    )
    assert not arrived


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 4, 5, 40])
def test_triangles_solve_any_number_of_columns(columns: int, dtype: type) -> None:
    """Few columns are solved as vectors, more as a matrix."""
    rng = np.random.default_rng(columns)
    root = rng.normal(size=(60, 60)) + 20.0 * np.eye(60)
    A = root @ root.T
    right = rng.normal(size=(60, columns)).astype(dtype)
    factor = cholesky(np.asfortranarray(A.astype(dtype)))
    assert factor.dtype == dtype
    tolerance = 1e3 * np.finfo(dtype).eps
    np.testing.assert_allclose(A @ cholesky_solve(factor, right), right, atol=tolerance)
    lower = np.tril(factor).astype(np.float64)
    np.testing.assert_allclose(lower @ solve_lower(factor, right), right, atol=tolerance)
