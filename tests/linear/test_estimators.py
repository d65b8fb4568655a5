"""The linear estimators: drop-in for scikit-learn's, weights, levels, memory, limits, bad input."""

from __future__ import annotations

import threading
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor, Ridge

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR
from tausvm.losses import EpsilonInsensitive, SquaredEpsilonInsensitive
from tausvm.operators import LinearOperator
from tausvm.solvers import Problem, SolverOptions, Status, solve

SQUARED = "squared_epsilon_insensitive"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
Y = X @ [1.0, -1.0, 0.5, 0.0, 0.0, 2.0] + 0.5 * RNG.standard_t(3, size=80) + 3.0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
def test_drop_in_for_scikit_learn(loss: str) -> None:
    """With its penalised intercept asked for, the same model."""
    parameters = dict(
        epsilon=0.2, C=0.3, loss=loss, intercept_scaling=1.0, tol=1e-10, random_state=0
    )
    ours = LinearSVR(max_iter=10**5, dual=True, verbose=0, **parameters).fit(X, Y)
    theirs = sklearn.svm.LinearSVR(max_iter=10**6, dual=True, **parameters).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    signature = set(sklearn.svm.LinearSVR().get_params())
    assert signature <= set(LinearSVR().get_params())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dual_chooses_the_solver() -> None:
    assert LinearSVR(dual=True).fit(X, Y).result_.solver == "dual_cd"
    assert LinearSVR(dual=False).fit(X, Y).result_.solver == "newton"
    assert LinearSVR(dual=False, solver="dual_cd").fit(X, Y).result_.solver == "dual_cd"


def test_expectile_at_one_half_is_ridge() -> None:
    model = LinearExpectileSVR(C=2.0, tol=1e-14).fit(X, Y)
    ridge = Ridge(alpha=0.5).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, atol=1e-8)


def test_quantile_with_large_C_is_quantile_regression() -> None:
    model = LinearQuantileSVR(tau=0.8, C=1e6).fit(X, Y)
    reference = QuantileRegressor(quantile=0.8, alpha=0.0, solver="highs").fit(X, Y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)


def test_offset_is_not_penalised() -> None:
    """A shift of y moves b alone, with every solver; the penalised column resists."""
    for solver in ("auto", "dual_cd", "newton", "interior_point"):
        machine = LinearSVR(C=0.01, solver=solver, tol=1e-8, max_iter=10**5)
        near, far = machine.fit(X, Y).predict(X), machine.fit(X, Y + 1000.0).predict(X)
        np.testing.assert_allclose(near + 1000.0, far, atol=1e-2)
    column = LinearSVR(C=0.01, intercept_scaling=1.0).fit(X, Y + 1000.0)
    assert column.intercept_[0] < 990.0


MACHINES = [
    LinearSVR(epsilon=0.1),
    LinearSVR(loss=SQUARED, epsilon=0.1),
    LinearQuantileSVR(tau=0.3),
    LinearExpectileSVR(tau=0.8, epsilon=0.1),
]


@given(st.integers(0, 10**6), st.sampled_from(MACHINES), st.booleans())
def test_weights_are_repetitions(seed: int, machine: LinearSVR, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=30)
    counts[:2] = 1
    machine = type(machine)(**{**machine.get_params(), "fit_intercept": intercept})
    weighted = machine.fit(X[:30], Y[:30], sample_weight=counts).result_
    index = np.repeat(np.arange(30), counts)
    repeated = machine.fit(X[index], Y[index]).result_
    assert weighted.primal_objective == pytest.approx(repeated.primal_objective, rel=1e-8)
    np.testing.assert_allclose(weighted.function, repeated.function, atol=1e-5)


@given(st.integers(0, 10**6), st.sampled_from(MACHINES))
def test_order_of_the_rows_is_no_matter(seed: int, machine: LinearSVR) -> None:
    order = np.random.default_rng(seed).permutation(80)
    machine = clone(machine).set_params(tol=1e-10)
    straight, mixed = (
        machine.fit(X, Y).predict(X),
        machine.fit(X[order], Y[order]).predict(X),
    )
    np.testing.assert_allclose(straight, mixed, atol=1e-4)


@given(st.floats(0.05, 0.95), st.booleans(), st.floats(0.1, 100.0))
def test_levels_mirror_and_y_scales(tau: float, expectile: bool, scale: float) -> None:
    kind = LinearExpectileSVR if expectile else LinearQuantileSVR
    plain = kind(tau=tau, tol=1e-9).fit(X, Y).result_
    mirrored = kind(tau=1.0 - tau, tol=1e-9).fit(X, -Y).result_
    assert plain.primal_objective == pytest.approx(mirrored.primal_objective, rel=1e-7)
    scaled = kind(tau=tau, tol=1e-9).fit(X, scale * Y).result_
    assert scaled.primal_objective == pytest.approx(scale**2 * plain.primal_objective, rel=1e-7)


def test_several_levels() -> None:
    model = LinearQuantileSVR(tau=[0.9, 0.1]).fit(X, Y)
    assert model.coef_.shape == (2, 6) and model.predict(X).shape == (80, 2)
    for k, tau in enumerate((0.9, 0.1)):
        single = LinearQuantileSVR(tau=tau).fit(X, Y)
        np.testing.assert_allclose(single.predict(X), model.predict(X)[:, k], atol=1e-5)
    assert len(model.result_) == 2 and model.dual_gap_.shape == (2,)


# ---- sparse and large ----


def wide(
    n: int = 20_000, d: int = 50_000, dtype: str = "float64", entries: int = 40
) -> tuple[sp.csr_matrix, object]:
    rng = np.random.default_rng(1)
    indices = np.sort(rng.integers(0, d, size=(n, entries)), axis=1).ravel().astype(np.int32)
    data = rng.normal(size=entries * n).astype(dtype)
    indptr = np.arange(0, entries * n + 1, entries, dtype=np.int32)
    matrix = sp.csr_matrix((data, indices, indptr), (n, d))
    matrix.sum_duplicates()
    return matrix, matrix[:, :100].sum(axis=1).A1 + rng.normal(size=n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("intercept", [False, True])
def test_memory_is_a_share_of_the_input(intercept: bool, loss: str, dtype: str) -> None:
    """Beyond X itself less than 0.3 of it, as long as a row has 30 entries."""
    A, y = wide(50_000, 50_000, dtype, entries=30)
    size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    machine = LinearSVR(loss=loss, C=0.01, epsilon=0.1, fit_intercept=intercept, tol=1e-3)
    machine.fit(A[:500], y[:500])  # what imports and caches need
    tracemalloc.start()
    machine.fit(A, y)
    machine.predict(A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert machine.dual_gap_ <= 1e-3
    assert peak <= 0.3 * size


def test_kinds_of_indices_and_values_agree() -> None:
    A, y = wide(300, 2000, "float32")
    machine = LinearSVR(C=0.1, tol=1e-7)
    expected = machine.fit(A.astype(np.float64), y).predict(A)
    unsorted = A.copy()
    for i in range(0, 300, 3):
        part = slice(*unsorted.indptr[i : i + 2])
        unsorted.indices[part] = unsorted.indices[part][::-1]
        unsorted.data[part] = unsorted.data[part][::-1]
    unsorted.has_sorted_indices = False
    long = A.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    halves = sp.csr_matrix(
        (np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape
    )
    zeros = A.copy()
    zeros.data[::7] = 0.0
    for other in (A, unsorted, long, halves):
        np.testing.assert_allclose(machine.fit(other, y).predict(A), expected, atol=1e-4)
    kept, removed = machine.fit(zeros, y).coef_, zeros.copy()
    removed.eliminate_zeros()
    np.testing.assert_allclose(kept, machine.fit(removed, y).coef_, atol=1e-5)
    assert halves.nnz == 2 * A.nnz  # the caller's matrix is left alone


def test_entries_beyond_32_bits(tmp_path: Path) -> None:
    """Rows that begin beyond 2³¹ entries, in files that are holes but for those rows."""
    A, y = wide(200, 700, "float32")
    start, count = 2**31 + 11, int(A.indptr[100])
    entries = start + A.nnz - count
    held = []
    for name, values in (("data", A.data), ("indices", A.indices)):
        part = np.memmap(tmp_path / name, dtype=values.dtype, mode="w+", shape=(entries,))
        part[:count], part[start:] = values[:count], values[count:]
        held.append(part)
    far = sp.csr_matrix((201, 700), dtype=np.float32)
    # row 100 is the hole, and takes no part
    far.indptr = np.concatenate([A.indptr[:101], A.indptr[100:] + np.int64(start - count)])
    far.data, far.indices = held
    assert far.indptr.dtype == np.int64 and far.indptr[-1] > 2**31
    rows = np.delete(np.arange(201), 100)
    for loss in (EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.1)):
        terms = loss.dual_terms(y, np.full(200, 0.05))
        results = [
            solve(Problem(part, y, terms, False), "dual_cd", SolverOptions(tol=1e-6))
            for part in (LinearOperator(A), LinearOperator(far, rows))
        ]
        assert results[1].dual_gap <= 1e-6
        np.testing.assert_allclose(results[0].function, results[1].function, atol=1e-4)
    near, distant = LinearOperator(A), LinearOperator(far, rows)
    assert distant.entries == A.nnz
    weight = RNG.normal(size=200)
    for name in ("function", "column_squares"):
        np.testing.assert_allclose(getattr(near, name)(weight), getattr(distant, name)(weight))
    np.testing.assert_allclose(near.squares(), distant.squares())


@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("intercept", [False, True])
def test_raw_features_and_targets_far_from_zero(intercept: bool, loss: str) -> None:
    """Nearly all rows lie beyond a corner, and the scales of the features are unlike: holding
    the rows far from the corners lets the weights run away, which has to be noticed."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30_000, 30)) * np.sqrt(4.0 / rng.chisquare(6, size=30_000))[:, None]
    z = np.clip(1.0 - 0.02 * np.exp(0.5 * Z[:, 0] + rng.standard_t(4, size=30_000)), 0.0, 1.0)
    Z *= np.geomspace(1.0, 300.0, 30)
    machine = LinearSVR(
        loss=loss, C=2.0, epsilon=0.0625, fit_intercept=intercept, tol=1e-8, time_limit=20.0
    )
    model = machine.fit(Z, z)
    assert model.dual_gap_ <= 1e-8
    assert model.n_iter_ < 120  # 155 where it is not noticed


def test_zero_rows_and_columns() -> None:
    Z = X.copy()
    Z[::4] = 0.0
    Z[:, 2] = 0.0
    for solver in ("dual_cd", "newton"):
        for loss in ("epsilon_insensitive", SQUARED):
            model = LinearSVR(loss=loss, solver=solver, C=0.1, tol=1e-6).fit(sp.csr_matrix(Z), Y)
            assert model.coef_[2] == 0.0
            assert model.dual_gap_ <= 1e-6
    empty = LinearSVR().fit(sp.csr_matrix((10, 3)), np.arange(10.0))
    np.testing.assert_allclose(empty.predict(sp.csr_matrix((1, 3))), 4.5)


# ---- bad input and limits ----


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(bad: float) -> None:
    A = sp.csr_matrix(X)
    A.data[5] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LinearSVR().fit(A, Y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LinearSVR().fit(X, np.where(Y[0] == Y, bad, Y))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be a finite number > 0, got 0.0"),
        ({"tol": -1.0}, "tol must be a finite number > 0, got -1.0"),
        ({"epsilon": -0.1}, "epsilon must be a finite number >= 0, got -0.1"),
        ({"solver": "smo"}, "solver must be one of 'auto', 'dual_cd', 'newton', .*, got 'smo'"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"intercept_scaling": 0.0}, "intercept_scaling must be a finite number > 0, got 0.0"),
        ({"dual": "yes"}, "dual must be one of 'auto' or True or False, got 'yes'"),
        ({"max_iter": -2}, "max_iter must be an integer >= -1, got -2"),
    ],
)
def test_parameters_that_cannot_be_used(parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearSVR(**parameters).fit(X, Y)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton", "interior_point"])
def test_features_of_extreme_scale(scale: float, loss: str, solver: str) -> None:
    """A right answer, or a warning that tells the gap and what to do; never a hang."""
    Z = X.copy()
    Z[:, 0] *= scale
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVR(loss=loss, solver=solver, time_limit=5.0).fit(Z, Y)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.dual_gap_)
    if model.dual_gap_ > model.tol:
        message = str(caught[-1].message)
        assert f"{model.dual_gap_:.2e}" in message and "scale the columns" in message


def test_a_fit_that_stops_early_says_so() -> None:
    with pytest.warns(ConvergenceWarning, match=r"gap is .* max_iter=3.*another solver"):
        model = LinearSVR(solver="dual_cd", max_iter=3, tol=1e-9).fit(X, Y)
    assert model.result_.status is Status.MAX_ITER and model.n_iter_ == 3
    A, y = wide()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        LinearSVR(C=1e3, tol=1e-12, time_limit=0.3).fit(A, y)


@pytest.mark.parametrize("solver", ["dual_cd", "newton"])
def test_ctrl_c_stops_a_fit(solver: str) -> None:
    import _thread

    A, y = wide()
    machine = LinearSVR(C=1e4, tol=1e-12, solver=solver, max_iter=-1)
    timer = threading.Timer(0.7, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        machine.fit(A, y)


def test_same_seed_same_bits() -> None:
    A, y = wide(2000, 3000)
    fits: list[Callable[[], np.ndarray]] = [
        lambda: LinearSVR(random_state=3, C=0.1).fit(A, y).coef_,
        lambda: LinearSVR(C=0.1).fit(A, y).coef_,
    ]
    for fit in fits:
        np.testing.assert_array_equal(fit(), fit())


def test_progress_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="tausvm"):
        LinearSVR(verbose=True).fit(X, Y)
    assert "relative gap" in caplog.text
