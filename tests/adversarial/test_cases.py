"""No estimator claims to be closer to optimal than it is, on problems hard on arithmetic.

A failure names its seed: ``run(make_case(seed))`` is the case again.
"""

from __future__ import annotations

from typing import Any

import pytest

from .judging import run
from .problems import make_case
from .summary import PROPERTY, tally

FAST, SLOW = 300, 5000
FAST_BATCH, SLOW_BATCH = 10, 25


def judge(first: int, count: int, record_property: Any) -> None:
    outcomes = [run(make_case(seed)) for seed in range(first, first + count)]
    record_property(PROPERTY, tally(outcomes))
    failed = [outcome.report() for outcome in outcomes if outcome.failures]
    assert not failed, f"{len(failed)} of {count} cases failed:\n" + "\n".join(failed)


@pytest.mark.parametrize("first", range(0, FAST, FAST_BATCH))
def test_claims_hold(first: int, record_property: Any) -> None:
    judge(first, FAST_BATCH, record_property)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FAST, FAST + SLOW, SLOW_BATCH))
def test_claims_hold_in_many_cases(first: int, record_property: Any) -> None:
    judge(first, SLOW_BATCH, record_property)


@pytest.mark.parametrize("seed", [877, 2174, 2245])
def test_all_rows_within_the_tube(seed: int) -> None:
    """The optimum is 0, and what is left above it may be below the least number of float64; a
    selection then has fits whose primal is 0."""
    outcome = run(make_case(seed))
    assert not outcome.failures, outcome.report()
