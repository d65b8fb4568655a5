"""Displays are drawn without a screen, and their figures closed after each test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def figures():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")
