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


def test_a_fall_with_the_square_of_the_work():
    slow = walked((0, 1.0), (10, 1.0 / 101.0))  # gap / (1 − gap) = 1 / work²
    assert slow.square_work_left(1e-4) == pytest.approx(90.0)
    assert slow.square_work_left(1e-2) == 0.0
    assert slow.work_left(1e-4) < 30.0  # a steady fall would be faster
    risen = walked((0, 1.0), (10, 1e-3), (20, 0.5))
    assert risen.square_work_left(1e-4) == walked((20, 1e-3)).square_work_left(1e-4)
    assert 1e6 < walked((10, 1.0)).square_work_left(1e-3) < math.inf
