"""The estimate on paper: what the page says about workers, from the formula."""

from __future__ import annotations

import pytest

from benchmarks.dask_linear import Cluster, gathered, one_pass, paper


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


def test_the_table_has_every_case() -> None:
    assert len(paper().splitlines()) == 17
