"""The estimate on paper and its simulation: what the page says about workers."""

from __future__ import annotations

import pytest

from benchmarks import cluster
from benchmarks.cluster import (
    Cluster,
    Simulation,
    Trouble,
    Work,
    emulate,
    gathered,
    one_pass,
    paper,
    simulated,
)

EVEN = Trouble(spread=0.0)


def test_the_formula() -> None:
    c = Cluster(read=1e8, flops=1e9, network=1e9, task=0.0, partition=8e6)
    found = one_pass(1e5, 10, 2, 1, c)
    assert found.tasks == 1
    assert found.moved == 0.0
    assert found.flops == 2 * 1e5 * (4 * 10 + 10**2)
    assert found.seconds == pytest.approx(8e6 / 1e8 + found.flops / 1e9)
    assert found.efficiency == 1.0
    # ten partitions: two partial sums and the last; half of what is sent stays at home
    found = one_pass(1e6, 10, 1, 2, c)
    assert found.tasks == 10 + 2 + 1
    assert found.moved == 12 * 8 * (10**2 + 4 * 10) * 0.5


def test_where_it_stops_paying() -> None:
    """A billion rows keep a hundred workers busy, ten million do not."""
    assert one_pass(1e9, 50, 1, 100).efficiency > 0.8
    assert one_pass(1e7, 50, 1, 16).efficiency > 0.8
    assert one_pass(1e7, 50, 1, 100).efficiency < 0.5
    assert one_pass(1e9, 50, 1, 100).seconds < 60


def test_what_is_moved_is_little_beside_the_data() -> None:
    data = 8.0 * 1e9 * 50
    assert one_pass(1e9, 50, 5, 100).moved < 0.01 * data
    # with many features the sums are a good part of it
    assert one_pass(1e9, 1000, 1, 100).moved > 0.05 * 8.0 * 1e9 * 1000


def test_rows_near_corners() -> None:
    """A sample of 40,000 rows: a million rows of 50 features fit the client, a billion do not."""
    assert gathered(1e6, 50, 4e4) < 100e6
    assert gathered(1e9, 50, 4e4) > 1e9


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_the_simulation_is_the_formula_where_nothing_is_uneven(workers: int) -> None:
    rows, features = 3.2e8, 50
    told, played = one_pass(rows, features, 1, workers), simulated(rows, features, 1, workers)
    even = simulated(rows, features, 1, workers, trouble=EVEN)
    assert even.seconds == pytest.approx(told.seconds, rel=0.05)
    assert played.seconds == pytest.approx(told.seconds, rel=0.15)
    assert even.computed == Work.of(rows, features, 1, Cluster()).partitions
    assert 0.0 <= even.idle < 0.1
    assert even.moved <= told.moved  # a sum is added up where most of its parts are


def test_one_worker_does_everything_one_after_the_other() -> None:
    work = Work(partitions=10, flops=0.0, one_sum=8.0, leaf=2.0)
    rates = Cluster(task=0.0, memory=4.0)
    outcome = Simulation(work, 1, rates, EVEN).run()
    # ten partitions of two seconds; sums of eight, of two and of two parts at four bytes a second
    assert outcome.seconds == pytest.approx(10 * 2.0 + (8 + 2 + 2) * 8.0 / 4.0)
    assert (outcome.moved, outcome.idle) == (0.0, pytest.approx(0.0))


def test_sums_wait_for_the_network_and_for_the_scheduler() -> None:
    work = Work(partitions=2, flops=0.0, one_sum=10.0, leaf=1.0)
    rates = Cluster(task=0.25, memory=1e9, network=5.0)
    outcome = Simulation(work, 2, rates, EVEN).run()
    # one second, two results told one after the other, one of them sent for two seconds
    assert outcome.seconds == pytest.approx(1.0 + 0.5 + 2.0, abs=1e-6)
    assert outcome.moved == 10.0


@pytest.mark.parametrize("workers", [2, 4, 16])
@pytest.mark.parametrize("lost_at", [0.02, 0.5, 0.97])
def test_what_a_lost_worker_held_is_computed_again(workers: int, lost_at: float) -> None:
    usual = simulated(1e8, 50, 1, workers)
    hit = simulated(1e8, 50, 1, workers, trouble=Trouble(lost_at=lost_at))
    partitions = Work.of(1e8, 50, 1, Cluster()).partitions
    assert usual.computed == partitions <= hit.computed <= 2 * partitions
    assert usual.seconds < hit.seconds < usual.seconds * (1 + 2.5 / (workers - 1))


def test_a_slow_worker_is_given_less() -> None:
    slow = simulated(1e8, 50, 1, 4, trouble=Trouble(slow=2.0))
    assert slow.seconds < 1.25 * simulated(1e8, 50, 1, 4).seconds  # 4 / 3.5, not twice


def test_dasks_scheduler_runs_the_same_graph() -> None:
    work = Work(partitions=20, flops=0.0, one_sum=80.0, leaf=0.01)
    found = emulate(work, 2, repeats=1)
    assert found.seconds >= 10 * 0.01
    assert found.a_task == pytest.approx((found.seconds - 0.1) / (20 + 3 + 1))


def test_the_tables_have_every_case() -> None:
    assert len(paper(((1e7, 50), (1e8, 50))).splitlines()) == 1 + 2 * len(cluster.WORKERS)
    assert len(cluster.emulated([2], leaf=0.001, each=3).splitlines()) == 2
