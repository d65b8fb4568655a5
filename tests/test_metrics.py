"""The scores of predicted levels."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error

import tausvm.metrics
from tausvm.metrics import coverage, crossing_rate, mean_expectile_loss


@pytest.fixture
def levels() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.normal(size=60)
    return y, y[:, None] + rng.normal(size=(60, 3))


def test_docstrings() -> None:
    assert doctest.testmod(tausvm.metrics).failed == 0


def test_expectile_loss_at_one_half_is_half_the_squared_error(levels) -> None:
    y, predictions = levels
    expected = 0.5 * mean_squared_error(y, predictions[:, 0])
    assert mean_expectile_loss(y, predictions[:, 0]) == pytest.approx(expected)


def test_expectile_loss_weighs_the_two_sides(levels) -> None:
    y, predictions = levels
    taus = [0.1, 0.5, 0.8]
    for tau, f, loss in zip(
        taus, predictions.T, mean_expectile_loss(y, predictions, tau=taus), strict=True
    ):
        assert loss == pytest.approx(np.mean(np.abs(tau - (y < f)) * (y - f) ** 2))


def test_the_expectile_minimises_its_loss() -> None:
    y = np.random.default_rng(0).exponential(size=400)
    tau, e = 0.9, float(y.mean())
    for _ in range(100):  # the expectile's fixed point
        weight = np.where(y >= e, tau, 1 - tau)
        e = float(np.average(y, weights=weight))
    best = mean_expectile_loss(y, np.full(400, e), tau=tau)
    for shift in (-0.05, 0.05):
        assert mean_expectile_loss(y, np.full(400, e + shift), tau=tau) > best


def test_coverage_counts_ties_as_covered() -> None:
    assert coverage([0.0, 1.0, 2.0], [1.0, 1.0, 1.0]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("score", ["loss", "coverage", "crossing"])
def test_a_weight_is_as_many_copies(levels, score) -> None:
    y, predictions = levels
    weight = np.random.default_rng(1).integers(0, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    taus = [0.2, 0.5, 0.8]
    call = {
        "loss": lambda i, w: mean_expectile_loss(y[i], predictions[i], tau=taus, sample_weight=w),
        "coverage": lambda i, w: coverage(y[i], predictions[i], sample_weight=w),
        "crossing": lambda i, w: crossing_rate(predictions[i], tau=taus, sample_weight=w),
    }[score]
    np.testing.assert_allclose(call(np.arange(60), weight), call(copies, None))


def test_crossings_follow_the_levels_not_the_columns() -> None:
    predictions = np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]])
    assert crossing_rate(predictions, tau=[0.9, 0.1, 0.5]) == 0.5
    assert crossing_rate(np.ones((4, 3)), tau=[0.1, 0.5, 0.9]) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_expectile_loss([1.0, 2.0], [1.0, 2.0], tau=1.0), "tau"),
        (lambda: mean_expectile_loss([1.0], [[1.0, 2.0]], tau=[0.1, 0.2, 0.3]), "tau"),
        (lambda: coverage([1.0, 2.0], [1.0]), "inconsistent"),
        (lambda: coverage([1.0, np.nan], [1.0, 2.0]), "y_true"),
        (lambda: coverage([[1.0, 2.0]], [1.0]), "y_true"),
        (lambda: crossing_rate([[1.0, 2.0]], tau=[0.1]), "tau"),
    ],
)
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
