"""A scheduler over loopback with worker processes: equal results, faults, nothing left behind."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import tausvm
import tausvm.dask as lazy

from .data import SMALL, assert_same, rows

#: seconds that a cluster may take for what takes one: a busy machine
PATIENCE = 120.0


def cluster_of(n_workers: int, **given: Any) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        **given,
    )


@pytest.fixture(scope="module", params=[2, 4], ids=["two workers", "four workers"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with cluster_of(request.param, memory_limit=0) as cluster, Client(cluster) as client:
        client.wait_for_workers(request.param, timeout=PATIENCE)
        yield client


X, Y, WEIGHT = rows(6000)


def from_blocks(read: Callable[[int], Any], n_blocks: int = 8) -> tuple[Any, Any]:
    """X by blocks of 750 rows that ``read`` makes, and y."""
    size = len(X) // n_blocks
    index = da.arange(n_blocks, chunks=1)
    lazy_X = index.map_blocks(
        lambda k: read(int(k[0])),
        new_axis=1,
        chunks=((size,) * n_blocks, (X.shape[1],)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    return lazy_X, da.from_array(Y, chunks=size)


def block(k: int) -> Any:
    return X[k * 750 : (k + 1) * 750]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("LinearQuantileSVR", {"tau": [0.1, 0.9]}),
        ("LinearExpectileSVR", {"tau": [0.1, 0.9]}),
        ("LinearSVR", {"epsilon": 0.2}),
    ],
)
def test_equal_to_the_single_machine(client: Client, name: str, given: dict[str, Any]) -> None:
    lazy_X, y = from_blocks(block)
    model = getattr(lazy, name)(**given).fit(lazy_X, y, sample_weight=WEIGHT, plan=SMALL)
    assert_same(model, getattr(tausvm, name)(**given).fit(X, Y, sample_weight=WEIGHT))
    predicted = model.predict(lazy_X)
    np.testing.assert_allclose(predicted.compute(), model.predict(X))


def read_and_die(k: int, folder: str, at: int) -> Any:
    """A block; the process that reads block 3 for the ``at``-th time is killed."""
    if k == 3:
        reads = Path(folder)
        (reads / f"{time.time_ns()}-{os.getpid()}").touch()
        if len(list(reads.iterdir())) == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return block(k)


@pytest.mark.parametrize("name", ["LinearQuantileSVR", "LinearExpectileSVR"])
def test_a_killed_worker_costs_its_tasks_alone(client: Client, name: str, tmp_path: Path) -> None:
    """Killed in the second pass: the fit goes on, and finds the same."""
    folder = str(tmp_path)
    lazy_X, y = from_blocks(lambda k: read_and_die(k, folder, 2))
    model = getattr(lazy, name)(tau=0.3).fit(lazy_X, y, plan=SMALL)
    reads = list(tmp_path.iterdir())
    assert len(reads) > model.n_passes_
    assert len({file.name.split("-")[1] for file in reads}) > 1
    assert_same(model, getattr(tausvm, name)(tau=0.3).fit(X, Y))
    undisturbed = getattr(lazy, name)(tau=0.3).fit(*from_blocks(block), plan=SMALL)
    np.testing.assert_array_equal(model.coef_, undisturbed.coef_)


def test_a_bad_partition_is_named(client: Client) -> None:
    def read(k: int) -> Any:
        part = block(k).copy()
        if k == 5:
            part[2, 1] = np.inf
        return part

    with pytest.raises(ValueError, match="partition 5: X must be finite, got inf in row 2, col"):
        lazy.LinearSVR().fit(*from_blocks(read))


def slow_read(k: int, started: str) -> Any:
    Path(started).touch()
    time.sleep(0.5)
    return block(k)


def test_nothing_is_left_behind_after_an_interrupt(client: Client, tmp_path: Path) -> None:
    marker = tmp_path / "started"

    def interrupt() -> None:
        ends = time.monotonic() + PATIENCE
        while not marker.exists() and time.monotonic() < ends:
            time.sleep(0.02)
        _thread.interrupt_main()

    lazy_X, y = from_blocks(lambda k: slow_read(k, str(marker)))
    thread = threading.Thread(target=interrupt)
    thread.start()
    model = lazy.LinearSVR()
    with pytest.raises(KeyboardInterrupt):
        model.fit(lazy_X, y)
    thread.join()
    assert not hasattr(model, "coef_")
    assert not client.futures
    ends = time.monotonic() + PATIENCE
    while _tasks(client) and time.monotonic() < ends:
        time.sleep(0.1)
    assert _tasks(client) == 0


def _tasks(client: Client) -> int:
    """How many tasks the scheduler knows of."""
    return int(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


@pytest.mark.slow
def test_a_lost_scheduler_is_told(tmp_path: Path) -> None:
    marker = tmp_path / "started"
    cluster = cluster_of(1, memory_limit=0)
    client = Client(cluster)
    try:

        def close() -> None:
            ends = time.monotonic() + PATIENCE
            while not marker.exists() and time.monotonic() < ends:
                time.sleep(0.02)
            cluster.close()

        thread = threading.Thread(target=close)
        lazy_X, y = from_blocks(lambda k: slow_read(k, str(marker)))
        thread.start()
        lost = pytest.raises(RuntimeError, match=r"the Dask scheduler at .* was lost")
        with client.as_current(), lost:
            lazy.LinearSVR().fit(lazy_X, y)
        thread.join()
    finally:
        client.close()
        cluster.close()


def made_by_blocks(n_blocks: int, size: int, d: int) -> tuple[Any, Any]:
    """X and y that are made block by block where they are needed."""

    def made(k: Any) -> Any:
        return np.random.default_rng(int(k[0])).normal(size=(size, d))

    lazy_X = da.arange(n_blocks, chunks=1).map_blocks(
        made, new_axis=1, chunks=((size,) * n_blocks, (d,)), dtype=float, meta=np.empty((0, 0))
    )
    noise = da.random.default_rng(0).normal(size=size * n_blocks, chunks=size)
    return lazy_X, lazy_X[:, 0] + noise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "shape"),
    [
        # 20 MB a block, 1.8 GB of rows; a worker without data takes 200 MB
        (lazy.LinearExpectileSVR(tau=[0.2, 0.8]), (95, 50_000, 50)),
        # 8 MB a block, but 400 MB of features, and as much again to make them
        (lazy.ExpectileSVR(tau=[0.2, 0.8], landmarks=500, gamma=0.05), (4, 100_000, 10)),
    ],
    ids=["linear", "landmarks"],
)
def test_workers_stay_within_their_memory(machine: Any, shape: tuple[int, int, int]) -> None:
    """Data of three times a worker's limit, made block by block; a worker above it is killed."""
    limit = 600 * 2**20
    with cluster_of(1, memory_limit=limit) as cluster, Client(cluster) as client:
        before = set(client.nthreads())
        model = machine.fit(*made_by_blocks(*shape))
        gaps = getattr(model, "landmark_gap_", model.dual_gap_)
        assert max(gaps) <= model.tol
        # none was killed for its memory and started anew
        assert set(client.nthreads()) == before
