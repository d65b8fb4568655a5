"""The benchmark of landmarks: gaps against the full problem, and a picture of them."""

import pytest

from benchmarks import landmarks


def test_gaps_reported_are_never_below_the_true_ones(tmp_path):
    found = landmarks.measure(landmarks.CASES[0], 300, [20, 80])
    assert [line["landmarks"] for line in found] == [0, 20, 80]
    assert all(line["reported"] >= line["true"] - 1e-5 for line in found)
    assert found[1]["true"] > found[2]["true"] > 0
    pytest.importorskip("matplotlib", reason="an extra")
    landmarks.draw({"friedman": found}, tmp_path / "gaps.png")
    assert (tmp_path / "gaps.png").stat().st_size > 0
