"""Selections of kernel machines by tasks of a cluster: the same result, whatever happens to it."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client

import tausvm.dask as lazy
from tausvm.dask.jobs import ClusterJobs
from tausvm.selection.jobs import Threads
from tausvm.selection.settings import LargeSettings
from tausvm.solvers.many import Stop

from .test_cluster import PATIENCE, _tasks, cluster_of

RNG = np.random.default_rng(0)
N = 1200
X = RNG.uniform(-1, 1, size=(N, 3))
Y = np.sin(3 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0)) * RNG.normal(size=N)


@pytest.fixture(scope="module", params=[2, 4], ids=["two workers", "four workers"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with cluster_of(request.param, memory_limit=0) as cluster, Client(cluster) as client:
        client.wait_for_workers(request.param, timeout=PATIENCE)
        yield client


def collections() -> tuple[Any, Any]:
    return da.from_array(X, chunks=(300, 3)), da.from_array(Y, chunks=300)


def made(**given: Any) -> Any:
    """A selection that chooses on few rows and holds few out."""
    grid = {"Cs": [1.0, 10.0], "gammas": [0.3, 1.0, 3.0], "cv": 3, "landmarks": 60}
    model = lazy.QuantileSVRCV(**{"tau": [0.1, 0.5, 0.9], **grid, **given})
    model._settings = replace(model._settings, large=LargeSettings(250, held_out_rows=100))
    return model


def by_threads(**given: Any) -> Any:
    """The same without the cluster."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        return made(**given).fit(*collections())


def assert_equal(model: Any, other: Any) -> None:
    np.testing.assert_array_equal(model.scores_, other.scores_)
    assert model.best_params_ == other.best_params_
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-9)


def assert_nothing_left(client: Client) -> None:
    """Neither here nor at the scheduler, which hears of it a little later."""
    ends = time.monotonic() + PATIENCE
    while (client.futures or _tasks(client)) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not client.futures and _tasks(client) == 0


def test_equal_to_threads_and_nothing_is_left(client: Client) -> None:
    model = made().fit(*collections())
    assert_equal(model, by_threads())
    assert_nothing_left(client)
    assert (model.landmark_gap_ <= model.tol).all()
    lazily = model.predict(collections()[0]).compute()
    np.testing.assert_allclose(lazily, model.predict(X), atol=1e-12)


class Killing:
    """An RBF kernel; the worker that computes it for the ``at``-th time is killed.

    Not in the process that made it.
    """

    def __init__(self, folder: Path, at: int) -> None:
        self.folder, self.at, self.home = str(folder), at, os.getpid()

    def __call__(self, a: Any, b: Any) -> Any:
        if os.getpid() != self.home:
            calls = Path(self.folder)
            (calls / f"{time.time_ns()}-{os.getpid()}").touch()
            if len(list(calls.iterdir())) == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("at", [1, 3, 6], ids=["at once", "in the race", "in a pass"])
def test_a_killed_worker_costs_its_jobs_alone(client: Client, tmp_path: Path, at: int) -> None:
    """Whichever job it has; what it has left for others is computed again."""
    whole = made(kernel=Killing(tmp_path, 0), Cs=[0.1, 1.0, 10.0, 100.0, 1000.0])
    undisturbed = whole.fit(*collections())
    for file in tmp_path.iterdir():
        file.unlink()
    model = made(kernel=Killing(tmp_path, at), Cs=[0.1, 1.0, 10.0, 100.0, 1000.0])
    model.fit(*collections())
    assert len(list(tmp_path.iterdir())) >= at
    assert_equal(model, undisturbed)


class Slow:
    """A kernel that says that it has begun, and takes its time."""

    def __init__(self, marker: Path, seconds: float = 0.5) -> None:
        self.marker, self.seconds, self.home = str(marker), seconds, os.getpid()

    def __call__(self, a: Any, b: Any) -> Any:
        if os.getpid() != self.home:
            Path(self.marker).touch()
            time.sleep(self.seconds)
        return a @ b.T


def when_begun(marker: Path, then: Callable[[], None]) -> threading.Thread:
    """A thread that waits for a marker and does something."""

    def wait() -> None:
        ends = time.monotonic() + PATIENCE
        while not marker.exists() and time.monotonic() < ends:
            time.sleep(0.02)
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_nothing_is_left_behind_after_an_interrupt(client: Client, tmp_path: Path) -> None:
    marker = tmp_path / "begun"
    model = made(kernel=Slow(marker))
    thread = when_begun(marker, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt, match="selection interrupted"):
        model.fit(*collections())
    thread.join()
    assert not hasattr(model, "scores_")
    assert_nothing_left(client)


@pytest.mark.slow
def test_a_lost_scheduler_is_told(tmp_path: Path) -> None:
    marker = tmp_path / "begun"
    cluster = cluster_of(1, memory_limit=0)
    client = Client(cluster)
    try:
        model = made(kernel=Slow(marker, 10.0))
        thread = when_begun(marker, cluster.close)
        lost = r"the Dask scheduler at .* was lost before the end of the selection"
        with client.as_current(), pytest.raises(RuntimeError, match=lost):
            model.fit(*collections())
        thread.join()
    finally:
        client.close()
        cluster.close()


class Deadly(Slow):
    """A kernel that kills whoever computes it elsewhere."""

    def __call__(self, a: Any, b: Any) -> Any:
        if os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return a @ b.T


@pytest.mark.slow
def test_a_job_that_kills_every_worker_is_told(tmp_path: Path) -> None:
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        cluster_of(2, memory_limit=0) as cluster,
        Client(cluster),
        pytest.raises(RuntimeError, match=r"died again and again at the same job of the selection"),
    ):
        made(kernel=Deadly(tmp_path)).fit(*collections())


# ---- jobs by themselves ----


def counted(task: Any, ask: int, before: Sequence[list[int]]) -> tuple[Any, list[int]]:
    """Tells its process, the sum of the targets and what is left of the time."""
    left = [*chain.from_iterable(before), ask]
    return (os.getpid(), float(task.targets.sum()), task.stop.left, ask), left


def a_task() -> Any:
    """That of a small selection."""
    model = made()
    model.n_features_in_ = 3
    from tausvm.estimators.data import TrainingSet

    data = TrainingSet(X[:60], Y[:60], np.ones(60), np.arange(60), 60)
    return model._posed(data, None, 3, 0.0)[1]


def test_jobs_tell_in_order_and_leave_what_later_ones_begin_with(client: Client) -> None:
    task = a_task()
    task = replace(task, stop=Stop(lambda: 0.0, 100.0))
    with ClusterJobs(client, 1.0) as jobs:
        first = list(jobs.run(counted, task, [(k, ()) for k in range(7)]))
        lefts = [left for _, left in first]
        later = list(jobs.run(counted, task, [(10 + k, lefts[: k + 1]) for k in range(3)]))
        shared = len(jobs._shared)
        values = [jobs.value(left)[1] for _, left in later]
    assert [told[3] for told, _ in first] == list(range(7))
    assert values == [[0, 10], [0, 1, 11], [0, 1, 2, 12]]
    pids = {told[0] for told, _ in first}
    assert os.getpid() not in pids
    np.testing.assert_allclose([told[1] for told, _ in first], Y[:60].sum())
    assert all(0 < told[2] <= 100.0 for told, _ in first + later)  # by a clock of its own
    assert shared == 4  # X, targets, weights and folds went once
    assert_nothing_left(client)


def test_threads_do_the_same() -> None:
    jobs = Threads(2)
    first = list(jobs.run(counted, a_task(), [(k, ()) for k in range(3)]))
    later = list(jobs.run(counted, a_task(), [(3, [left for _, left in first])]))
    assert later[0][1] == [0, 1, 2, 3]


def test_an_error_of_a_job_is_the_users(client: Client) -> None:
    """As it is on one machine, and nothing stays."""

    def broken(a: Any, b: Any) -> Any:
        if len(a) > 3:
            raise ZeroDivisionError("a kernel that fails")
        return a @ b.T

    with pytest.raises(ZeroDivisionError, match="a kernel that fails"):
        made(kernel=broken).fit(*collections())
    assert_nothing_left(client)
