"""The scores of predicted levels."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.metrics import mean_pinball_loss, mean_squared_error, r2_score

import tausvm.metrics
from tausvm.metrics import (
    coverage,
    crossing_rate,
    d2_expectile_score,
    mean_expectile_loss,
    mean_interval_score,
)


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


def test_d2_at_one_half_is_r2(levels) -> None:
    y, predictions = levels
    assert d2_expectile_score(y, predictions[:, 0]) == pytest.approx(r2_score(y, predictions[:, 0]))


@pytest.mark.parametrize("tau", [0.02, 0.3, 0.95])
def test_d2_compares_with_the_best_constant(levels, tau) -> None:
    y, predictions = levels
    weight = np.random.default_rng(2).uniform(0.1, 3, size=60)
    best = minimize_scalar(
        lambda e: mean_expectile_loss(y, np.full(60, e), tau=tau, sample_weight=weight),
        bounds=(y.min(), y.max()),
        options={"xatol": 1e-9},
    )
    loss = mean_expectile_loss(y, predictions[:, 1], tau=tau, sample_weight=weight)
    score = d2_expectile_score(y, predictions[:, 1], tau=tau, sample_weight=weight)
    assert score == pytest.approx(1 - loss / best.fun, rel=1e-6)
    assert d2_expectile_score(y, np.full(60, best.x), tau=tau, sample_weight=weight) == (
        pytest.approx(0.0, abs=1e-9)
    )


def test_d2_of_a_constant_target() -> None:
    assert d2_expectile_score([2.0, 2.0], [2.0, 2.0], tau=0.3) == 1.0
    assert d2_expectile_score([2.0, 2.0], [2.0, 1.0], tau=0.3) == 0.0


def test_interval_score_is_two_pinball_losses(levels) -> None:
    y, predictions = levels
    low, high = np.sort(predictions[:, :2], axis=1).T
    pinball = mean_pinball_loss(y, low, alpha=0.1) + mean_pinball_loss(y, high, alpha=0.9)
    assert mean_interval_score(y, low, high, share=0.8) == pytest.approx(2 / 0.2 * pinball)


@pytest.mark.parametrize("score", ["loss", "coverage", "crossing", "d2", "interval"])
def test_a_weight_is_as_many_copies(levels, score) -> None:
    y, predictions = levels
    weight = np.random.default_rng(1).integers(0, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    taus = [0.2, 0.5, 0.8]
    call = {
        "loss": lambda i, w: mean_expectile_loss(y[i], predictions[i], tau=taus, sample_weight=w),
        "d2": lambda i, w: d2_expectile_score(y[i], predictions[i], tau=taus, sample_weight=w),
        "interval": lambda i, w: mean_interval_score(
            y[i], predictions[i, 0], predictions[i, 1], sample_weight=w
        ),
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
        (lambda: mean_interval_score([1.0], [0.0], [2.0], share=1.0), "share"),
        (lambda: mean_interval_score([1.0], [[0.0, 1.0]], [2.0]), "one-dimensional"),
    ],
)
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
