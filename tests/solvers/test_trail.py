"""The fall of a gap, and the work that it leaves."""

from __future__ import annotations

import math

import pytest

from tausvm.solvers.trail import Trail


def walked(*entries: tuple[float, float]) -> Trail:
    trail = Trail()
    for work, gap in entries:
        trail.note(work, gap)
    return trail


def test_a_steady_fall_goes_on():
    trail = walked(*((k, 10.0**-k) for k in range(1, 6)))
    assert trail.work_left(1e-8) == pytest.approx(3.0)
    assert trail.work_left(1e-5) == 0.0
    assert trail.fall == pytest.approx(math.log(1e4))


def test_a_gap_that_rises_once_does_not_count():
    assert walked((1, 1.0), (2, 1e-2), (3, 1e-3), (4, 5e-3)).work_left(1e-4) < math.inf


def test_no_fall_takes_for_ever():
    assert walked((1, 1.0), (2, 1.0), (4, 1.0)).work_left(1e-3) == math.inf
    assert walked((1, math.inf), (4, math.inf)).work_left(1e-3) == math.inf


def test_what_is_not_known_is_not_held_against_a_solve():
    assert walked((1, 0.5)).work_left(1e-3) == 0.0
    assert walked((1, math.inf), (4, 0.5)).work_left(1e-3) == 0.0


def test_a_fall_that_slows_down_leaves_more():
    steady = walked(*((k, 10.0**-k) for k in range(1, 9)))
    assert steady.slowed_work_left(1e-12) == pytest.approx(steady.work_left(1e-12))
    slowing = walked(*((k, 1.0 / k**2) for k in range(1, 33)))
    assert slowing.slowed_work_left(1e-4) > 2.0 * slowing.work_left(1e-4)
    assert slowing.slowed_work_left(1e-4) < 1000.0  # 68 in truth
