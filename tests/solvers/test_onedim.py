"""The offset and the projection: exact, whatever the terms."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tausvm.losses import (
    DualTerms,
    EpsilonInsensitive,
    Hinge,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)
from tausvm.solvers.offsets import best_free_offset
from tausvm.solvers.onedim import best_offset, increasing_zero, project_onto_sum

LOSSES = [
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.5),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.5),
    Pinball(0.05),
    Pinball(0.7, 0.3),
    SquaredPinball(0.05),
    SquaredPinball(0.7, 0.3),
    Hinge(0.3),
]

seeds = st.integers(0, 10_000)
ONE = np.ones(1)


def sample(seed: int, loss: Loss) -> tuple[DualTerms, np.ndarray]:
    """Terms and residuals, with ties, weights of 0 and round numbers among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    residual = rng.normal(size=n) * 10 ** rng.uniform(-3, 3)
    if rng.random() < 0.5:
        residual = np.round(residual, int(rng.integers(0, 3)))
    cost = rng.exponential(size=n) if rng.random() < 0.5 else np.ones(n)
    cost[rng.random(n) < 0.1] = 0.0
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return loss.dual_terms(y, cost * 10 ** rng.uniform(-3, 4)), residual


def corners(terms: DualTerms, residual: np.ndarray) -> np.ndarray:
    return np.concatenate([residual - terms.kink, residual + terms.kink])


@given(seeds, st.sampled_from(LOSSES))
def test_best_offset_minimises_the_primal(seed: int, loss: Loss) -> None:
    terms, residual = sample(seed, loss)

    def primal(b: float) -> float:
        return float(terms.conjugate(residual - b).sum())

    found = primal(best_offset(terms, residual))
    candidates = [primal(b) for b in corners(terms, residual)]
    low, high = residual.min() - 1, residual.max() + 1
    candidates += [primal(b) for b in np.linspace(low, high, 200)]
    candidates.append(
        minimize_scalar(primal, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).fun
    )
    assert found <= min(candidates) * (1 + 1e-10) + 1e-12 * primal(0.0)


def grows_linearly(loss: Loss) -> bool:
    return not loss.dual_terms(np.ones(1), np.ones(1)).smooth


@given(seeds, st.sampled_from([loss for loss in LOSSES if grows_linearly(loss)]))
def test_best_offset_is_the_middle_of_its_interval(seed: int, loss: Loss) -> None:
    """Losses that grow linearly are least on an interval between two corners."""
    terms, residual = sample(seed, loss)
    active = terms.upper > terms.lower
    if not active.any():
        assert best_offset(terms, residual) == 0.0
        return
    b = best_offset(terms, residual)
    knots = np.unique(corners(terms, residual)[np.tile(active, 2)])
    values = np.array([terms.conjugate(residual - knot).sum() for knot in knots])
    beyond = 1.0 + np.ptp(knots)
    far_left = terms.conjugate(residual - (knots[0] - beyond)).sum()
    far_right = terms.conjugate(residual - (knots[-1] + beyond)).sum()
    least = values.min() + 1e-12 * (far_left + far_right)
    left, right = knots[values <= least].min(), knots[values <= least].max()
    size = 1e-9 * np.abs(knots).max() + 1e-300
    if far_right <= least:
        assert b == pytest.approx(left, abs=size)  # any b above does: the finite end
    elif far_left <= least:
        assert b == pytest.approx(right, abs=size)
    else:
        assert b == pytest.approx(0.5 * (left + right), abs=size)


def test_best_offset_of_known_samples() -> None:
    y = np.array([1.0, 2.0, 5.0, 9.0])
    one = np.ones(4)
    assert best_offset(EpsilonInsensitive(0.0).dual_terms(y, one), y) == pytest.approx(3.5)
    assert best_offset(SquaredEpsilonInsensitive(0.0).dual_terms(y, one), y) == pytest.approx(4.25)
    assert best_offset(Pinball(0.25).dual_terms(y, one), y) == pytest.approx(1.5)
    assert best_offset(Pinball(0.9).dual_terms(y, one), y) == pytest.approx(9.0)
    # tube wider than the data: every b from 9 − 10 to 1 + 10 has no loss
    assert best_offset(EpsilonInsensitive(10.0).dual_terms(y, one), y) == pytest.approx(5.0)
    # an expectile: 0.8·Σ(y − b)₊ = 0.2·Σ(b − y)₊
    b = best_offset(SquaredPinball(0.8).dual_terms(y, one), y)
    assert 0.8 * np.maximum(y - b, 0).sum() == pytest.approx(0.2 * np.maximum(b - y, 0).sum())


def test_best_offset_without_freedom_or_with_one_label() -> None:
    y = np.ones(3)
    assert best_offset(EpsilonInsensitive(0.1).dual_terms(y, np.zeros(3)), y) == 0.0
    residual = np.array([0.5, 2.0, 1.0])
    # y = +1 everywhere: the loss is 0 for every b ≥ max residual
    assert best_offset(Hinge().dual_terms(y, y), residual) == pytest.approx(2.0)
    assert best_offset(Hinge().dual_terms(-y, y), residual) == pytest.approx(0.5)


@given(seeds)
def test_projection_meets_its_conditions(seed: int) -> None:
    """In the box, with the sum, and point − x constant where x is inside."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    scale = 10 ** rng.uniform(-6, 6)
    lower, upper = -rng.exponential(size=n) * scale, rng.exponential(size=n) * scale
    lower[rng.random(n) < 0.2] = 0.0
    upper[rng.random(n) < 0.2] = 0.0
    lower[rng.random(n) < 0.2] = -np.inf
    upper[rng.random(n) < 0.2] = np.inf
    point = rng.normal(size=n) * scale * rng.choice([0.1, 1.0, 10.0])
    ends = max(lower.sum(), -10 * scale), min(upper.sum(), 10 * scale)
    total = float(rng.choice([0.0, rng.uniform(*ends)]))
    x = project_onto_sum(point, lower, upper, total)
    assert (x >= lower).all() and (x <= upper).all()
    assert x.sum() == pytest.approx(total, abs=1e-13 * max(np.abs(x).sum(), abs(total)))
    inside = (x > lower) & (x < upper)
    shift = point - x
    slack = 1e-9 * max(np.abs(point).max(), scale)
    if inside.any():
        s = float(np.median(shift[inside]))
        assert np.ptp(shift[inside]) <= slack
        assert (shift[x == lower] <= s + slack).all() or (lower == upper).any()
        moved = lower < upper
        assert (shift[(x == lower) & moved] <= s + slack).all()
        assert (shift[(x == upper) & moved] >= s - slack).all()


def test_projection_against_a_quadratic_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        n = int(rng.integers(2, 10))
        lower, upper = -rng.exponential(size=n), rng.exponential(size=n)
        point = 2 * rng.normal(size=n)
        total = rng.uniform(lower.sum(), upper.sum())
        identity = sp.identity(n, format="csc")
        A = sp.vstack([sp.csc_matrix(np.ones((1, n))), identity, -identity], format="csc")
        right = np.concatenate([[total], upper, -lower])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
        program = clarabel.DefaultSolver(identity, -point, A, right, cones, settings)
        expected = np.asarray(program.solve().x)
        found = project_onto_sum(point, lower, upper, total)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert ((found - point) ** 2).sum() <= ((expected - point) ** 2).sum() + 1e-9


def test_projection_without_bounds_and_at_the_only_point() -> None:
    free = np.full(3, np.inf)
    np.testing.assert_allclose(
        project_onto_sum(np.array([1.0, 2.0, 6.0]), -free, free, 0.0), [-2.0, -1.0, 3.0]
    )
    lower, upper = np.array([-1.0, -2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(project_onto_sum(np.zeros(2), lower, upper, 7.0), upper)
    np.testing.assert_allclose(project_onto_sum(np.zeros(2), lower, upper, -3.0), lower)
    point = np.array([0.5, -0.5])
    np.testing.assert_array_equal(project_onto_sum(point, lower, upper, 0.0), point)


@given(seeds, st.booleans())
def test_zero_of_an_increasing_function(seed: int, flat: bool) -> None:
    """Piecewise linear, with stretches that are flat; from any start."""
    rng = np.random.default_rng(seed)
    knots, bends = rng.normal(size=6), rng.exponential(size=6)
    slope, height = (0.0 if flat else 1.0), rng.normal()

    def function(t: float) -> tuple[float, float]:
        steps = np.clip(t - knots, 0.0, 0.5)
        inside = (steps > 0) & (steps < 0.5)
        return slope * t + float(bends @ steps) - height, slope + float(bends @ inside)

    if flat and not 0.0 < height < 0.5 * bends.sum():
        return  # it has no zero
    for start in (-30.0, 0.0, 7.0):
        found = increasing_zero(function, start, 1e-12)
        assert abs(function(found)[0]) <= 1e-9


def test_the_offset_of_rows_that_differ_by_rounding() -> None:
    """With rows held, a bisection between two neighbouring numbers comes to an end."""
    y = np.ones(5)
    y[0] = np.nextafter(1.0, 2.0)
    terms = Pinball(0.3).dual_terms(y, np.ones(5))
    assert best_free_offset(terms, y, np.zeros(5), 0.1) == pytest.approx(1.0)


@given(seeds, st.sampled_from([loss for loss in LOSSES if not loss.dual_terms(ONE, ONE).smooth]))
def test_the_offset_of_many_rows(seed: int, loss: Loss) -> None:
    """By few of them: the same as by sorting all, with ties, far tails and rows held."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1_001, 4_000))
    y = rng.normal(size=n) if rng.random() < 0.5 else rng.standard_cauchy(size=n)
    if rng.random() < 0.5:
        y = np.round(y, int(rng.integers(0, 3)))
    cost = np.ones(n) if rng.random() < 0.5 else rng.exponential(size=n) * (rng.random(n) < 0.9)
    terms = loss.dual_terms(np.where(rng.random(n) < 0.5, 1.0, -1.0), cost)
    fitted = rng.normal(size=n) if rng.random() < 0.5 else np.zeros(n)
    found = best_free_offset(terms, y, fitted, 0.0)
    assert found == pytest.approx(best_offset(terms, y - fitted), rel=1e-12, abs=1e-12)
    # rows held: the slope of what is minimised has its sign changed there
    held = -float(rng.uniform(0.9 * terms.lower.sum(), 0.9 * terms.upper.sum()))
    b = best_free_offset(terms, y, fitted, held)
    step = 1e-9 * (1.0 + abs(b))
    before, after = (terms.response(y - fitted - at).sum() + held for at in (b - step, b + step))
    slack = 1e-9 * terms.room
    assert before >= -slack
    assert after <= slack
