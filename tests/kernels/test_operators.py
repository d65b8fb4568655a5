"""Rows of Gram matrices: computed when needed, kept within the budget."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm.kernels import Points, make_kernel
from tausvm.operators import CachedKernel, GivenKernel, KernelOperator
from tausvm.operators.base import CHUNK_BYTES

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
MATRIX = make_kernel("rbf", 0.4).between(Points(X), Points(X))


def megabytes(rows: int, dtype: type, n: int = N) -> float:
    """A cache_size that holds exactly this many rows."""
    return rows * n * np.dtype(dtype).itemsize / 2**20


def small_gram(rows: int, dtype: type = np.float64) -> CachedKernel:
    return CachedKernel(make_kernel("rbf", 0.4), Points(X), megabytes(rows, dtype), dtype)


def check_rows_held(gram: KernelOperator) -> None:
    """Slots and rows tell the same story, and what is held is right."""
    held = np.flatnonzero(gram.slots >= 0)
    assert len(held) <= gram.capacity
    assert len(np.unique(gram.slots[held])) == len(held)
    tolerance = 1e-14 if gram.rows.dtype == np.float64 else 1e-6
    np.testing.assert_allclose(gram.rows[gram.slots[held]], MATRIX[held], rtol=0, atol=tolerance)


def grams() -> dict[str, KernelOperator]:
    return {
        "whole": small_gram(N),
        "whole float32": small_gram(N, np.float32),
        "seven rows": small_gram(7),
        "three rows float32": small_gram(3, np.float32),
        "csr": CachedKernel(make_kernel("rbf", 0.4), Points(sp.csr_matrix(X)), 1.0, np.float64),
        "precomputed": GivenKernel(MATRIX),
    }


@pytest.mark.parametrize("kind", list(grams()))
def test_products_blocks_and_sums(kind: str) -> None:
    gram = grams()[kind]
    rng = np.random.default_rng(1)
    beta = np.where(rng.random(N) < 0.5, rng.normal(size=N), 0.0)
    assert len(gram) == N
    np.testing.assert_allclose(gram.diagonal, 1.0, atol=1e-15)
    np.testing.assert_allclose(gram.product(beta), MATRIX @ beta, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(gram.product(np.zeros(N)), np.zeros(N))
    i, j = rng.permutation(N)[:9], rng.permutation(N)[:25]
    block = gram.block(i, j)
    assert block.dtype == np.float64
    np.testing.assert_allclose(block, MATRIX[np.ix_(i, j)], atol=1e-14)
    index = rng.permutation(N)[: min(gram.capacity, 30)]
    held = gram.held_block(index)
    assert held.dtype == gram.rows.dtype
    np.testing.assert_allclose(held, MATRIX[np.ix_(index, index)], atol=1e-6)
    tolerance = 1e-12 if gram.rows.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(gram.held_product(beta), MATRIX @ beta, atol=tolerance)
    support = np.flatnonzero(beta)
    out = np.ones(N)
    gram.add_rows(support, beta[support], out)
    np.testing.assert_allclose(out, 1.0 + MATRIX @ beta, atol=tolerance)
    check_rows_held(gram)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 11])
def test_add_rows_of_every_length(count: int) -> None:
    gram = small_gram(N)
    index = np.arange(count)
    delta = np.linspace(-1, 2, count)
    out = np.zeros(N)
    gram.add_rows(index, delta, out)
    np.testing.assert_allclose(out, delta @ MATRIX[:count], atol=1e-14)


def test_whole_matrix_is_computed_once() -> None:
    gram = small_gram(N)
    assert gram.whole
    for _ in range(3):
        gram.require(np.arange(N))
        gram.require(np.array([5, 5, 7]))
    assert gram.rows_computed == N
    check_rows_held(gram)
    np.testing.assert_array_equal(gram.slots, np.arange(N))


def test_least_recently_used_goes_first() -> None:
    gram = small_gram(3)
    assert gram.capacity == 3
    assert not gram.whole
    for row in (10, 11, 12):
        gram.require(np.array([row]))
    gram.require(np.array([10]))  # 11 is now the oldest
    assert gram.rows_computed == 3
    gram.require(np.array([13]))
    assert sorted(np.flatnonzero(gram.slots >= 0)) == [10, 12, 13]
    check_rows_held(gram)
    gram.require(np.array([12, 14]))  # 10 goes: 12 is asked for at the same time
    assert sorted(np.flatnonzero(gram.slots >= 0)) == [12, 13, 14]
    assert gram.rows_computed == 5
    check_rows_held(gram)


def test_random_requests_on_a_small_cache() -> None:
    rng = np.random.default_rng(2)
    for capacity in (3, 5, 17):
        gram = small_gram(capacity, np.float32)
        assert gram.capacity == capacity
        for _ in range(100):
            wanted = rng.integers(0, N, size=rng.integers(1, capacity + 1))
            gram.require(wanted)
            assert (gram.slots[wanted] >= 0).all()
        check_rows_held(gram)


def test_three_rows_always_fit() -> None:
    gram = CachedKernel(make_kernel("rbf", 0.4), Points(X), 1e-9)
    assert gram.capacity == 3
    gram.require(np.array([3, 50]))
    check_rows_held(gram)


def test_more_rows_than_the_cache_holds() -> None:
    gram = small_gram(4)
    with pytest.raises(ValueError, match="5 rows do not fit a cache of 4 rows"):
        gram.require(np.arange(5))
    gram.require(np.arange(2))
    with pytest.raises(ValueError, match="3 rows do not fit a cache of 4 rows"):
        gram.require(np.arange(5))
    check_rows_held(gram)
    gram.require(np.arange(10, 14))
    check_rows_held(gram)


def test_an_interrupted_fill_leaves_no_stale_row() -> None:
    calls = 0

    def sometimes(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 5:  # the first is for the diagonal
            raise KeyboardInterrupt
        return make_kernel("rbf", 0.4).between(Points(a), Points(b))

    gram = CachedKernel(
        make_kernel(sometimes, 0.0), Points(X), megabytes(3, np.float64), np.float64
    )
    gram.require(np.array([0, 1]))
    gram.require(np.array([2]))
    gram.require(np.array([4]))
    with pytest.raises(KeyboardInterrupt):
        gram.require(np.array([3]))
    check_rows_held(gram)
    for row in (3, 0, 2, 1):
        gram.require(np.array([row]))
        check_rows_held(gram)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian"])
def test_diagonal_is_what_the_rows_hold(name: str, dtype: type) -> None:
    """A core must see one matrix: no rounding between K_ii and row i."""
    gram = CachedKernel(make_kernel(name, 0.4, 3, 1.0), Points(X), 100.0, dtype)
    gram.require(np.arange(N))
    rounding = 8 * np.finfo(np.float64).eps
    np.testing.assert_allclose(gram.diagonal, np.diagonal(gram.rows), rtol=rounding)


@pytest.mark.parametrize("n", [1, 2])
def test_tiny(n: int) -> None:
    gram = CachedKernel(make_kernel("linear", 0.0), Points(X[:n]), 100.0)
    assert gram.capacity == n
    gram.require(np.arange(n))
    np.testing.assert_allclose(gram.rows, X[:n] @ X[:n].T, rtol=1e-6)


@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "exponential", "poly", "callable"])
@pytest.mark.parametrize("n_features", [3, 40])
def test_exact_products_over_several_stripes(
    name: str, n_features: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value is computed once for its row and its column, with the same bits by any threads."""
    rng = np.random.default_rng(0)
    n = 530
    points = Points(rng.normal(size=(n, n_features)))
    beta = np.where(rng.random(n) < share, rng.normal(size=n), 0.0)
    kernel = make_kernel((lambda a, b: a @ b.T) if name == "callable" else name, 0.05)
    gram = CachedKernel(kernel, points)
    gram.side, gram.most_stripes, gram.shared_values = 16, 9, 1
    wanted = kernel.between(points, points) @ beta
    products = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        products.append(gram.product(beta))
    np.testing.assert_allclose(products[0], wanted, rtol=1e-10, atol=1e-12 * abs(wanted).max())
    np.testing.assert_array_equal(*products)


def test_precomputed_is_not_copied() -> None:
    gram = GivenKernel(MATRIX)
    assert np.shares_memory(gram.rows, MATRIX)
    assert gram.whole
    gram.require(np.arange(N))
    np.testing.assert_array_equal(gram.slots, np.arange(N))
    single = GivenKernel(MATRIX.astype(np.float32, order="F"))
    assert single.rows.dtype == np.float64
    np.testing.assert_allclose(single.rows, MATRIX, atol=1e-7)


@pytest.mark.parametrize("n_features", [3, 40])
def test_memory_stays_within_the_budget(n_features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No n×n array: rows within cache_size, working memory within a few chunks a thread."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    n, cache_size = 6000, 8.0
    points = Points(np.random.default_rng(0).normal(size=(n, n_features)))
    beta = np.random.default_rng(1).normal(size=n)
    tracemalloc.start()
    try:
        gram = CachedKernel(make_kernel("rbf", 0.1), points, cache_size)
        assert gram.rows.nbytes <= cache_size * 2**20
        out = np.zeros(n)
        gram.add_rows(np.arange(1500), beta[:1500], out)
        product = gram.product(np.where(np.arange(n) < 1500, beta, 0.0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(out, product, atol=1e-3)
    assert peak <= cache_size * 2**20 + 3.5 * CHUNK_BYTES < 8 * n * n / 2


def test_diagonal_of_a_single_read_only_point_is_writable() -> None:
    """The cores take it as a plain array; a view of a 1×1 matrix would be read-only."""
    matrix = np.ones((1, 1))
    matrix.flags.writeable = False
    assert GivenKernel(matrix).diagonal.flags.writeable


@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_values_out_of_single_precision_are_held_in_double(size: float) -> None:
    gram = CachedKernel(make_kernel("linear", 1.0), Points(size * X), dtype=np.float32)
    gram.require(np.arange(N))
    np.testing.assert_allclose(gram.rows[gram.slots] / size**2, X @ X.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e14, 1e80, 1e300])
def test_widths_that_single_precision_does_not_resolve(kernel: str, gamma: float) -> None:
    """Rows of float32 would make points one that are far apart for the kernel."""
    near = np.repeat(X[:30], 2, axis=0) + np.array([0.0, 1e-9] * 30)[:, None]
    gram = CachedKernel(make_kernel(kernel, gamma), Points(near), dtype=np.float32)
    gram.require(np.arange(N))
    distance = np.abs(near[:, None] - near)
    distance = (distance**2 if kernel == "rbf" else distance).sum(axis=2)
    np.testing.assert_allclose(gram.rows[gram.slots], np.exp(-gamma * distance), atol=1e-6)
