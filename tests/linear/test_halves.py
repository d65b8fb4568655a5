"""Long rows cut in two: the same bits from one thread and from two."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import scipy.sparse as sp
from tausvm._core.sweeps import BOTH, FIRST, SECOND, halve, sparse_sweep

from tausvm.losses import EpsilonInsensitive, Loss, SquaredPinball
from tausvm.solvers import SolverOptions
from tausvm.solvers.linear import LinearProblem, Rows, halves, solve_linear
from tausvm.solvers.linear.dual_cd import Sweeps
from tausvm.solvers.linear.halves import Halves, worth_halving
from tausvm.solvers.linear.monitor import LinearResult

#: where the first visit stands among the arguments of a sweep over CSR rows
BEGIN = 12

LOSSES = {"corners": EpsilonInsensitive(0.1), "squared": SquaredPinball(0.3)}


def long_rows(dtype: str = "float64") -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random(150, 900, density=0.2, format="csr", random_state=1, dtype=np.float64)
    X.sort_indices()
    y = X @ rng.normal(size=900) + rng.normal(size=150)
    return X.astype(dtype), y


def problem(loss: Loss, offset: bool = False, dtype: str = "float64") -> LinearProblem:
    X, y = long_rows(dtype)
    return LinearProblem(Rows(X), y, loss.dual_terms(y, np.full(len(y), 2.0)), offset)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Rows of these tests are long enough."""
    monkeypatch.setattr(halves, "LONG_ROW", 10)
    monkeypatch.setattr(halves, "MANY_ENTRIES", 1)
    return monkeypatch


def solved(
    threads: int | None, given: LinearProblem, patch: pytest.MonkeyPatch, max_iter: int = 400
) -> LinearResult:
    """By ``dual_cd`` with so many threads; None leaves the choice to the clock."""
    if threads is not None:
        patch.setattr(Halves, "_threads", lambda self: threads)
    options = SolverOptions(tol=1e-7, max_iter=max_iter)
    return solve_linear(given, "dual_cd", options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_two_threads_give_the_bits_of_one(
    loss: str, offset: bool, dtype: str, always: pytest.MonkeyPatch
) -> None:
    given = problem(LOSSES[loss], offset, dtype)
    assert worth_halving(given.rows)
    one, two, again, chosen = (solved(k, given, always, max_iter=20) for k in (1, 2, 2, None))
    assert one.n_iter > 12  # visits by gain, of which some are repeated, too
    for other in (two, again, chosen):
        assert other.n_iter == one.n_iter
        np.testing.assert_array_equal(other.beta, one.beta)
        np.testing.assert_array_equal(other.coef, one.coef)


@pytest.mark.parametrize("loss", list(LOSSES))
def test_the_solution_is_that_of_whole_rows(loss: str, always: pytest.MonkeyPatch) -> None:
    given = problem(LOSSES[loss])
    cut = solved(2, given, always)
    always.setattr(halves, "LONG_ROW", 10**9)
    assert not worth_halving(given.rows)
    whole = solved(None, given, always)
    assert max(cut.dual_gap, whole.dual_gap) <= 1e-7
    np.testing.assert_allclose(cut.primal_objective, whole.primal_objective, rtol=2e-7)


def test_some_rows_alone(always: pytest.MonkeyPatch) -> None:
    X, y = long_rows()
    chosen = np.array([3, 10, 11, 50, 149])
    terms = LOSSES["squared"].dual_terms(y[chosen], np.full(5, 2.0))
    part = LinearProblem(Rows(X, chosen), y[chosen], terms, False)
    copy = LinearProblem(Rows(X[chosen].tocsr()), y[chosen], terms, False)
    found, expected = solved(2, part, always), solved(2, copy, always)
    np.testing.assert_allclose(found.primal_objective, expected.primal_objective, rtol=2e-7)


def test_rows_are_cut_at_a_column() -> None:
    X, _ = long_rows()
    middle = np.empty(X.shape[0], dtype=np.int64)
    halve(X.indices, X.indptr, np.empty(0, dtype=np.int64), 450, middle)
    for row, at in enumerate(middle):
        assert (X.indices[X.indptr[row] : at] < 450).all()
        assert (X.indices[at : X.indptr[row + 1]] >= 450).all()


def test_unsorted_dense_and_short_rows_stay_whole(always: pytest.MonkeyPatch) -> None:
    X, _ = long_rows()
    assert worth_halving(Rows(X))
    assert not worth_halving(Rows(X.toarray()))
    unsorted = X.copy()
    unsorted.indices[:2] = unsorted.indices[1::-1]
    unsorted.has_sorted_indices = False
    assert not worth_halving(Rows(unsorted))
    always.setattr(halves, "LONG_ROW", 500)
    assert not worth_halving(Rows(X))


def test_threads_that_wait_long_end_at_the_same_visit(always: pytest.MonkeyPatch) -> None:
    """One thread alone: nobody answers, and it ends where it is."""
    given = problem(LOSSES["squared"])
    sweeps = Sweeps(given, SolverOptions(), None)
    order = sweeps._drawn()
    alone = sweeps.halves
    assert alone is not None
    seen: list[Any] = []
    always.setattr(
        Halves, "sweep", lambda self, begin, end, given, written: seen.append(given) or (0.0, 0)
    )
    sweeps._sweep(order, 0, given.n, np.zeros(5))
    _, ended = sparse_sweep(*seen[0], alone.middle, FIRST, alone.table)
    assert ended == 0 and not sweeps.beta.any()
    _, late = sparse_sweep(*seen[0], alone.middle, SECOND, alone.table)
    assert late == 0 and not sweeps.beta.any()  # the other one is told


@pytest.mark.parametrize("loss", list(LOSSES))
def test_sweeps_broken_off_change_nothing(loss: str, always: pytest.MonkeyPatch) -> None:
    """Two threads that stop after any number of visits: one goes on from there."""
    given = problem(LOSSES[loss])
    expected = solved(1, given, always, max_iter=20)
    real, calls = halves.sparse_sweep, iter(range(10**9))

    def shortened(*arguments: Any) -> tuple[float, int]:
        given, half = list(arguments), arguments[-2]
        if half != BOTH:
            given[BEGIN + 1] = min(given[BEGIN] + lengths[half](), given[BEGIN + 1])
        return cast(tuple[float, int], real(*given))

    counts = {half: iter(np.random.default_rng(2).integers(1, 150, 10**5)) for half in (0, 1)}
    lengths = {half: (lambda half=half: int(next(counts[half]))) for half in (0, 1)}
    always.setattr(halves, "sparse_sweep", shortened)
    always.setattr(Halves, "_threads", lambda self: 1 + next(calls) % 2)
    found = solved(None, given, always, max_iter=20)
    np.testing.assert_array_equal(found.beta, expected.beta)
    np.testing.assert_array_equal(found.coef, expected.coef)


def test_a_busy_machine_is_left_to_one_thread(always: pytest.MonkeyPatch) -> None:
    X, _ = long_rows()
    always.setattr(halves, "thread_count", lambda: 2)
    chosen = Halves(Rows(X))
    assert chosen._threads() == 1  # to know its pace
    chosen.pace = {1: 2.0}
    assert chosen._threads() == 2
    chosen.pace = {1: 2.0, 2: 1.0}
    assert chosen._threads() == 2
    chosen.pace = {1: 2.0, 2: 3.0}
    assert chosen._threads() == 1
    chosen.pace = {1: 2.0, 2: 1.0}
    chosen.resting = True  # two have just been held up
    assert chosen._threads() == 1
    chosen.resting = False
    chosen.broken_off = halves.PATIENCE + 1
    assert chosen._threads() == 1
    chosen.count = 20  # not that many of them
    assert chosen._threads() == 2
    always.setattr(halves, "thread_count", lambda: 1)
    assert chosen._threads() == 1


def test_an_interrupt_frees_the_other_thread(always: pytest.MonkeyPatch) -> None:
    given = problem(LOSSES["squared"])
    always.setattr(Halves, "_threads", lambda self: 2)
    sweeps = Sweeps(given, SolverOptions(), None)
    assert sweeps.halves is not None
    real = halves.sparse_sweep

    def interrupted(*arguments: Any) -> tuple[float, int]:
        if arguments[-2] == FIRST:
            raise KeyboardInterrupt
        return cast(tuple[float, int], real(*arguments))

    always.setattr(halves, "sparse_sweep", interrupted)
    order = sweeps._drawn()
    with pytest.raises(KeyboardInterrupt):
        sweeps._sweep(order, 0, given.n, np.zeros(5))
    # the pool's thread is soon free again: work given to it now is done
    assert sweeps.halves.pool.submit(lambda: 7).result(timeout=10) == 7
