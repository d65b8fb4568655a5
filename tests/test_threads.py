"""The policy for threads: BLAS is as before after any fits, and OMP_NUM_THREADS is honoured."""

import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from tausvm import (
    SVR,
    ExpectileSVR,
    JointQuantileSVR,
    LinearSVR,
    LinearSVRCV,
    QuantileSVR,
    TauPathSVC,
    TauPathSVR,
    threads,
)
from tausvm.operators import LinearOperator, Operator, Portions, SeparableKernel
from tausvm.operators.products import LinearProducts
from tausvm.solvers.joint.factors import KroneckerFactor
from tausvm.threads import (
    _libraries,
    _set_threads,
    in_threads,
    one_blas_thread,
    share_out,
    thread_count,
)

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X[:, 0] + np.sin(2 * X[:, 1])


def blas_threads() -> list[int]:
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.fixture
def several():
    """BLAS on three threads, however many the machine or the environment gives it."""
    libraries = [*_libraries().pooled, *_libraries().by_thread]
    before = _set_threads(libraries, 3)
    yield blas_threads()
    _set_threads(libraries, *before)


def test_contexts_that_overlap_in_threads(several):
    """The first to come leaves first, which is where setting back what one found goes wrong."""
    entered, leave = threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            entered.set()
            leave.wait(10)
            inside.append(blas_threads())

    inside = []
    other = threading.Thread(target=second)
    with one_blas_thread():
        other.start()
        entered.wait(10)
    leave.set()
    other.join()
    assert set(inside[0]) == {1}  # the second was still inside
    assert blas_threads() == several


def test_contexts_inside_each_other_and_exceptions(several):
    with one_blas_thread(), one_blas_thread():
        pass
    assert blas_threads() == several
    with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
        raise KeyError
    assert blas_threads() == several


def test_limits_that_the_user_changes_meanwhile(several):
    with one_blas_thread():
        threadpool_limits(2, user_api="blas")
    assert blas_threads() == several


def test_fits_in_many_threads(several):
    """Among them such that fail."""

    def fit(k):
        try:
            (SVR, TauPathSVR, LinearSVR, LinearSVRCV)[k % 4]().fit(X, Y if k % 5 else Y[:7])
        except ValueError:
            return 1
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(fit, range(40))) == 8
    assert blas_threads() == several


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_started_during_a_fit_can_fit():
    with one_blas_thread():
        backend = joblib.parallel_config(backend="multiprocessing")
        with backend:
            done = joblib.Parallel(2)(joblib.delayed(_gap)() for _ in range(2))
    assert max(done) <= 1e-4


def _gap():
    return SVR().fit(X, Y).dual_gap_


@pytest.mark.parametrize(("value", "most"), [("1", 1), ("1,2", 1), ("", None), ("x", None)])
def test_omp_num_threads(value, most, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert thread_count() == (most or joblib.cpu_count())


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_one_thread_in_workers(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    counts = joblib.Parallel(2, backend=backend)(joblib.delayed(thread_count)() for _ in range(4))
    assert counts == [1, 1, 1, 1]


def test_one_thread_in_dask(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    worker = type(sys)("distributed.worker")
    worker.thread_state = threading.local()
    monkeypatch.setitem(sys.modules, "distributed.worker", worker)
    assert thread_count() == joblib.cpu_count()
    worker.thread_state.execution_state = {"worker": object()}
    assert thread_count() == 1


def test_products_of_a_linear_machine_start_no_thread(monkeypatch):
    def refuse(*args):
        raise AssertionError("a thread was started")

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(threads.threading, "Thread", refuse)
    for matrix in (X, sp.csr_matrix(X)):
        rows = LinearOperator(matrix, portions=Portions(shared=1))
        np.testing.assert_allclose(rows.values(np.ones(3)), X.sum(axis=1))
        np.testing.assert_allclose(rows.outer(np.ones(40)), X.T @ X)


def test_calls_in_threads_come_back_in_order_and_know_that_they_share() -> None:
    calls = [partial(lambda k: (k, thread_count()), k) for k in range(5)]
    assert [k for k, _ in in_threads(calls, 1)] == list(range(5))
    found = list(in_threads(calls, 2))
    assert found == [(k, 1) for k in range(5)]


def test_an_error_in_a_thread_is_raised() -> None:
    def fails() -> None:
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        list(in_threads([fails, fails], 2, shared=True))


def test_parts_that_are_shared_out_come_back_in_order() -> None:
    def work(part, halted):
        assert not halted()
        return part, thread_count()

    found = share_out(work, range(20), 3)
    assert [part for part, _ in found] == list(range(20))


def test_an_error_in_a_part_halts_the_others() -> None:
    begun = threading.Event()
    seen = []

    def work(part, halted):
        if part == 0:
            begun.wait(10)
            raise KeyError("here")
        begun.set()
        while not halted():
            pass
        seen.append(part)

    with pytest.raises(KeyError, match="here"):
        share_out(work, range(2), 2)
    assert seen == [1]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential", "poly"])
@pytest.mark.parametrize("machine", [QuantileSVR, SVR, ExpectileSVR])
@pytest.mark.parametrize("features", [3, 30])
def test_a_fit_has_the_same_bits_in_any_number_of_threads(machine, kernel, features, monkeypatch):
    """Work is cut as it would be for one thread, and everything is shared out here."""
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(700, features))
    y = np.sin(Z[:, 0]) + 0.3 * rng.normal(size=700)
    for name, least in (("shared_values", 1), ("shared_entries", 1), ("chunk_bytes", 1 << 16)):
        monkeypatch.setattr(Operator, name, least)
    monkeypatch.setattr(Operator, "strip", 64)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "_processors", lambda count=count: count)
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        assert thread_count() == count
        model = machine(C=3.0, kernel=kernel, max_iter=40, time_limit=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Z, y)
        found.append((model.dual_coef_, model.intercept_, model.predict(Z), model.dual_gap_))
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("solver", ["interior_point", "primal_dual_cd"])
def test_a_joint_fit_has_the_same_bits_in_any_number_of_threads(solver, monkeypatch):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(300, 5))
    y = np.sin(Z[:, 0]) + 0.3 * rng.normal(size=300)
    monkeypatch.setattr(SeparableKernel, "piece", 64 * 300)
    monkeypatch.setattr(KroneckerFactor, "shared", 0.0)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "_processors", lambda count=count: count)
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        model = JointQuantileSVR(tau=[0.2, 0.5, 0.8], C=0.1, solver=solver).fit(Z, y)
        found.append((model.dual_coef_, model.intercept_, model.dual_gap_))
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_path_has_the_same_bits_in_any_number_of_threads(sparse, monkeypatch):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(150, 12)) * (rng.uniform(size=(150, 12)) < 0.5)
    y = np.where(Z[:, 0] + 0.5 * rng.normal(size=150) > 0, 1.0, -1.0)
    for name, least in (("part_entries", 100), ("part_columns", 5), ("part_products", 1000)):
        monkeypatch.setattr(LinearProducts, name, least)
    monkeypatch.setattr(Operator, "shared_entries", 1)
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "_processors", lambda count=count: count)
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        model = TauPathSVC(kernel="linear", C=1.0).fit(sp.csr_matrix(Z) if sparse else Z, y)
        found.append((model.taus_, model.decision_function(Z, tau=0.3), model.dual_gap_))
    for other in found[1:]:
        for first, second in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, second)
    monkeypatch.undo()
    whole = TauPathSVC(kernel="linear", C=1.0).fit(Z, y)
    np.testing.assert_allclose(whole.decision_function(Z, tau=0.3), found[0][1], atol=1e-6)


def test_a_kernel_of_the_users_own_is_called_by_one_thread(monkeypatch):
    monkeypatch.setattr(Operator, "shared_values", 1)
    callers = set()

    def kernel(a, b):
        callers.add(threading.get_ident())
        return a @ b.T

    rng = np.random.default_rng(1)
    Z = rng.normal(size=(400, 3))
    SVR(kernel=kernel).fit(Z, Z[:, 0]).predict(Z)
    assert callers == {threading.get_ident()}
