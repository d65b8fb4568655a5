"""Kernel values against scikit-learn's pairwise functions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

from tausvm.kernels import KERNELS, Points, make_kernel
from tausvm.kernels.scalar import Linear

GAMMA, DEGREE, COEF0 = 0.07, 3, 0.5
NAMES = [name for name in KERNELS if name != "precomputed"]
#: few features, the last with fused distances, the first without, many
FEATURES = [1, 3, 24, 25, 70]


def expected(name: str, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    match name:
        case "linear":
            return pairwise.linear_kernel(A, B)
        case "poly":
            return pairwise.polynomial_kernel(A, B, degree=DEGREE, gamma=GAMMA, coef0=COEF0)
        case "sigmoid":
            return pairwise.sigmoid_kernel(A, B, gamma=GAMMA, coef0=COEF0)
        case "rbf":
            return pairwise.rbf_kernel(A, B, gamma=GAMMA)
        case "exponential":
            return np.exp(-GAMMA * cdist(A, B))
    return pairwise.laplacian_kernel(A, B, gamma=GAMMA)


def data(n_features: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_features)
    A, B = rng.normal(size=(17, n_features)), rng.normal(size=(75, n_features))
    A[rng.random(A.shape) < 0.3] = 0.0
    B[rng.random(B.shape) < 0.3] = 0.0
    B[3] = A[5]  # distance 0
    B[4] = 0.0
    return A, B


def points(X: np.ndarray, storage: str) -> Points:
    if storage == "dense":
        return Points(X)
    return Points(sp.csr_matrix(X) if storage == "csr_matrix" else sp.csr_array(X))


@pytest.mark.parametrize("storage", ["dense", "csr_matrix", "csr_array"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", FEATURES)
@pytest.mark.parametrize("name", NAMES)
def test_between(name: str, n_features: int, dtype: type, storage: str) -> None:
    A, B = data(n_features)
    kernel = make_kernel(name, GAMMA, DEGREE, COEF0)
    values = kernel.between(points(A, storage), points(B, storage), dtype)
    assert values.dtype == dtype
    wanted = expected(name, A, B)
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("storage", ["dense", "csr_matrix", "csr_array"])
@pytest.mark.parametrize("n_features", FEATURES)
@pytest.mark.parametrize("name", NAMES)
def test_diagonal_and_product(name: str, n_features: int, storage: str) -> None:
    A, B = data(n_features)
    kernel = make_kernel(name, GAMMA, DEGREE, COEF0)
    a, b = points(A, storage), points(B, storage)
    np.testing.assert_allclose(kernel.diagonal(a), np.diagonal(expected(name, A, A)), rtol=1e-12)
    beta = np.random.default_rng(0).normal(size=len(A))
    product = kernel.product(a, b, beta)
    assert product.dtype == np.float64
    np.testing.assert_allclose(product, beta @ expected(name, A, B), rtol=1e-10, atol=1e-11)
    other = np.random.default_rng(1).normal(size=len(B))
    to_b, to_a = kernel.both_products(a, b, beta, other)
    np.testing.assert_allclose(to_b, product, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(to_a, expected(name, A, B) @ other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("name", NAMES)
def test_fill_writes_only_its_places(name: str, n_features: int, dtype: type) -> None:
    A, B = data(n_features)
    kernel = make_kernel(name, GAMMA, DEGREE, COEF0)
    out = np.full((20, len(B)), 7.0, dtype=dtype)
    places = np.array([4, 0, 19])
    kernel.fill(Points(A[:3]), Points(B), out, places)
    np.testing.assert_array_equal(out[places], kernel.between(Points(A[:3]), Points(B), dtype))
    assert (np.delete(out, places, axis=0) == 7.0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_to_the_last_digits(dtype: type) -> None:
    """The core's own exp, over its whole range and past it, on every length of the tail."""
    exponent = np.concatenate([np.linspace(0, 3, 500), np.linspace(3, 900, 2001)])
    exponent = exponent.astype(dtype).astype(np.float64)
    kernel = make_kernel("laplacian", 1.0)
    zero, there = Points(np.zeros((1, 1))), Points(exponent[:, None])
    values = kernel.between(zero, there, dtype)[0].astype(np.float64)
    wanted = np.exp(-exponent)
    normal = wanted > 1e-307 if dtype is np.float64 else wanted > 2e-38
    error = np.abs(values - wanted)[normal] / wanted[normal]
    assert error.max() <= 3 * np.finfo(dtype).eps
    assert values[0] == 1.0
    assert (values[~normal] <= np.finfo(dtype).tiny * 4).all()
    for n in range(1, 70):
        part = kernel.between(zero, Points(exponent[:n, None]), dtype)[0]
        np.testing.assert_allclose(part, values[:n], rtol=3 * np.finfo(dtype).eps)


def test_near_points_far_from_the_origin() -> None:
    """Distances by differences do not cancel."""
    X = 1e6 + np.random.default_rng(0).integers(0, 100, size=(30, 4)) / 64
    values = make_kernel("rbf", 0.5).between(Points(X), Points(X))
    differences = X[:, None] - X
    np.testing.assert_allclose(values, np.exp(-0.5 * (differences**2).sum(axis=2)), rtol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "csr_matrix"])
def test_callable(storage: str) -> None:
    A, B = data(3)
    kernel = make_kernel(lambda a, b: a @ b.T + 1.0 if storage == "dense" else a @ b.T, 0.0)
    a, b = points(A, storage), points(B, storage)
    wanted = A @ B.T + (1.0 if storage == "dense" else 0.0)
    np.testing.assert_allclose(kernel.between(a, b), wanted, atol=1e-12)
    assert kernel.between(a, b, np.float32).dtype == np.float32
    own = A @ A.T + (1.0 if storage == "dense" else 0.0)
    np.testing.assert_allclose(kernel.diagonal(a), np.diagonal(own), atol=1e-12)
    many = Points(np.random.default_rng(1).normal(size=(150, 3)))  # more than one step
    np.testing.assert_allclose(
        make_kernel(lambda a, b: a @ b.T, 0.0).diagonal(many), (many.X**2).sum(axis=1)
    )


def test_callable_of_a_wrong_shape() -> None:
    kernel = make_kernel(lambda a, b: np.zeros((len(a), 1)), 0.0)
    a = Points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"kernel: the callable returned shape \(4, 1\)"):
        kernel.between(a, a)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda a, b: np.full((len(a), len(b)), 1j), "values of type complex128, expected real"),
        (lambda a, b: np.full((len(a), len(b)), "x"), "values of type <U1, expected real numbers"),
        (
            lambda a, b: np.where(np.eye(len(a)), 1.0, np.nan),
            "kernel values must be finite, got nan",
        ),
        (lambda a, b: np.where(np.eye(len(a)), 1.0, -np.inf), "must be finite, got -inf"),
    ],
)
def test_callable_of_wrong_values(returned, message) -> None:
    a = Points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=message):
        make_kernel(returned, 0.0).between(a, a)


def test_callable_out_of_single_precision() -> None:
    kernel = make_kernel(lambda a, b: np.full((len(a), len(b)), 1e60), 0.0)
    a = Points(np.zeros((4, 2)))
    assert (kernel.between(a, a) == 1e60).all()
    with pytest.raises(ValueError, match=r"kernel values must be finite, got 1e\+60 .* as float32"):
        kernel.between(a, a, np.float32)


@pytest.mark.parametrize("degree", range(12))
def test_every_degree(degree: int) -> None:
    A, B = data(3)
    values = make_kernel("poly", GAMMA, degree, COEF0).between(Points(A), Points(B))
    np.testing.assert_allclose(values, (GAMMA * (A @ B.T) + COEF0) ** degree, rtol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "csr_matrix"])
@pytest.mark.parametrize(
    ("name", "gamma", "size"),
    [("linear", 1.0, 1e160), ("poly", 1.0, 1e60), ("poly", 1e300, 1e10), ("sigmoid", 1.0, 1e200)],
)
def test_overflow_is_named(name: str, gamma: float, size: float, storage: str) -> None:
    A, _ = data(5)
    a, ordinary = points(size * A, storage), points(A, storage)
    kernel = make_kernel(name, gamma, DEGREE, COEF0)
    message = rf"kernel values must be finite, got an overflow .* in kernel='{name}'.* scale X"
    with pytest.raises(ValueError, match=message):
        kernel.between(a, a)
    with pytest.raises(ValueError, match=message):
        kernel.product(a, ordinary if gamma > 1 else a, np.ones(len(a)))
    with pytest.raises(ValueError, match=message):
        kernel.diagonal(a)


def test_values_that_do_not_overflow_though_norms_do() -> None:
    a, b = Points(np.array([[1e200, 0.0]])), Points(np.array([[1e-190, 1e-180]]))
    np.testing.assert_allclose(Linear().between(a, b), [[1e10]])


def test_out_of_single_precision() -> None:
    A, B = data(3)
    a, b = Points(1e25 * A), Points(1e25 * B)
    assert np.isfinite(Linear().between(a, b)).all()
    with pytest.raises(ValueError, match="an overflow of float32 in kernel='linear'"):
        Linear().between(a, b, np.float32)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("exponent", [-140, -60, -20, 20, 60, 140])
def test_distances_in_any_unit(name: str, exponent: int, dtype: type) -> None:
    """A unit of the points that is a power of two changes no bit, in range or out of it."""
    A, B = data(3)
    unit = 2.0 ** (3 * exponent)
    power = 2 if name == "rbf" else 1
    values = make_kernel(name, GAMMA).between(Points(A), Points(B), dtype)
    scaled = make_kernel(name, GAMMA / unit**power)
    np.testing.assert_array_equal(scaled.between(Points(unit * A), Points(unit * B), dtype), values)
    beta = np.ones(len(A))
    product = make_kernel(name, GAMMA).product(Points(A), Points(B), beta)
    moved = scaled.product(Points(unit * A), Points(unit * B), beta)
    np.testing.assert_array_equal(moved, product)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 1e-8, 1.0, 1e8, 1e300])
def test_rows_far_away(name: str, gamma: float, dtype: type) -> None:
    A, _ = data(3)
    A[2:5] = np.array([1.0, 2.0, 3.0])[:, None] * 1e200
    values = make_kernel(name, gamma).between(Points(A), Points(A), dtype)
    assert np.isfinite(values).all()
    np.testing.assert_array_equal(np.diagonal(values), 1.0)
    if gamma >= 1e-8:
        np.testing.assert_array_equal(values[2:5], np.eye(len(A))[2:5])


@pytest.mark.parametrize("storage", ["dense", "csr_matrix"])
def test_a_row_far_away_by_products(storage: str) -> None:
    A, _ = data(40)
    A[2] = 1e200
    with pytest.raises(ValueError, match=r"kernel values must be finite, got an overflow .*'rbf'"):
        make_kernel("rbf", 1.0).between(points(A, storage), points(A, storage))


@pytest.mark.parametrize("name", NAMES)
def test_wide_indices(name: str) -> None:
    A, B = data(5)
    wide = [sp.csr_matrix(X) for X in (A, B)]
    for X in wide:
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    values = make_kernel(name, GAMMA, DEGREE, COEF0).between(*map(Points, wide))
    np.testing.assert_allclose(values, expected(name, A, B), rtol=1e-10)


def test_pickled_points_are_the_coordinates_alone() -> None:
    A, _ = data(3)
    a = Points(A)
    make_kernel("rbf", GAMMA).product(a, a, np.ones(len(A)))
    assert a.longest > 0
    assert len(pickle.dumps(a)) < A.nbytes + 1000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(a)).X, A)


def test_unknown_kernel() -> None:
    with pytest.raises(ValueError, match=r"kernel must be one of linear, poly, .* got 'cubic'"):
        make_kernel("cubic", 1.0)


@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**20),
    d=st.integers(1, 4),
    storage=st.sampled_from(["dense", "csr_matrix", "csr_array"]),
)
def test_gradients_are_those_of_finite_differences(
    name: str, seed: int, d: int, storage: str
) -> None:
    rng = np.random.default_rng(seed)
    A, B, beta = rng.normal(size=(3, d)), rng.normal(size=(6, d)), rng.normal(size=6)
    # the rough kernels have corners: no point lies within a step of one
    B += 0.02 * np.sign(B - A[rng.integers(0, 3, 6)])
    kernel = make_kernel(name, 0.7, DEGREE, COEF0)
    found = kernel.gradients(points(A, storage), points(B, storage), beta)
    assert found.shape == (3, d)
    step = 1e-5
    for k in range(d):
        moved = step * np.eye(d)[k]
        above, below = (kernel.between(Points(A + s * moved), Points(B)) @ beta for s in (1, -1))
        apart = np.abs(A[:, k, None] - B[:, k]).min(axis=1) > 2 * step
        slope = (above - below) / (2 * step)
        np.testing.assert_allclose(found[apart, k], slope[apart], rtol=1e-5, atol=1e-7)
        some = kernel.gradients(points(A, storage), points(B, storage), beta, slice(k, k + 1))
        np.testing.assert_allclose(some[:, 0], found[:, k], rtol=1e-10, atol=1e-12)


def test_coinciding_points_have_no_slope_in_the_exponential_kernel() -> None:
    A = np.array([[1.0, 2.0]])
    for storage in ("dense", "csr_matrix"):
        kernel = make_kernel("exponential", 1.0, 3, 0.0)
        found = kernel.gradients(points(A, storage), points(A, storage), np.ones(1))
        np.testing.assert_array_equal(found, 0.0)


def test_sparse_points_close_to_each_other_keep_their_digits() -> None:
    rng = np.random.default_rng(0)
    A = 1e3 + rng.normal(size=(20, 5))
    B = A + 1e-6 * rng.normal(size=A.shape)
    kernel = make_kernel("exponential", 1.0, 3, 0.0)
    sparse = kernel.between(points(A, "csr_matrix"), points(B, "csr_matrix"))
    np.testing.assert_allclose(sparse, np.exp(-cdist(A, B)), rtol=1e-9, atol=1e-9)
    assert np.diagonal(sparse).max() < 1.0


def test_callables_have_no_gradients() -> None:
    kernel = make_kernel(lambda A, B: A @ B.T, 1.0, 3, 0.0)
    with pytest.raises(ValueError, match="no gradients"):
        kernel.gradients(Points(np.ones((1, 1))), Points(np.ones((1, 1))), np.ones(1))
