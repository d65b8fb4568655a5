"""The group ε-insensitive loss: values, responses and proximal operators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tausvm.losses import (
    EpsilonInsensitive,
    GroupTerms,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)

from ..reference.joint import loss_program, solve_program


def violation(terms: GroupTerms, alpha: np.ndarray, residual: np.ndarray) -> float:
    return terms.violation(alpha, residual, np.zeros_like(residual), np.zeros(1), True)


def random_terms(seed: int) -> tuple[GroupTerms, np.ndarray]:
    """Terms of one of the four losses and residuals, some of them short, some zero."""
    rng = np.random.default_rng(seed)
    n, p = 6, int(rng.integers(1, 6))
    epsilon = float(rng.choice([0.0, 1e-3, 0.3, 1.0, 3.0]))
    taus = rng.uniform(0.02, 0.98, p)
    losses = [
        [Pinball(t) for t in taus],
        [SquaredPinball(t) for t in taus],
        [EpsilonInsensitive(0.0)] * p,
        [SquaredEpsilonInsensitive(0.0)] * p,
    ][seed % 4]
    residual = rng.normal(size=(n, p)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    residual[0] = 0.0
    cost = 10.0 ** rng.uniform(-1, 1, n)
    return GroupTerms.build(losses, residual, cost, epsilon), residual


def sides(terms: GroupTerms) -> tuple[np.ndarray, ...]:
    outputs = terms.outputs
    return outputs.lower, outputs.upper, outputs.ridge_minus, outputs.ridge_plus


@pytest.mark.parametrize("seed", range(24))
def test_loss_against_clarabel(seed):
    terms, residual = random_terms(seed)
    expected = loss_program(residual, sides(terms), terms.epsilon)
    assert terms.conjugate(residual).sum() == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(24))
def test_prox_against_clarabel(seed):
    terms, z = random_terms(seed)
    step = 10.0 ** np.random.default_rng(seed).uniform(-1, 1, len(z))
    found = terms.prox(z, step)
    inverse = np.repeat(1.0 / step, z.shape[1])
    expected, _ = solve_program(
        np.diag(inverse), z / step[:, None], sides(terms), terms.epsilon, False
    )
    np.testing.assert_allclose(found, expected, atol=2e-5 * max(1.0, np.abs(expected).max()))


@given(seed=st.integers(0, 10**6))
def test_prox_is_exact_to_rounding(seed):
    """(z − prox)/step is a subgradient of h at the prox."""
    terms, z = random_terms(seed)
    step = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, len(z))
    point = terms.prox(z, step)
    slope = (z - point) / step[:, None]
    assert violation(terms, point, slope) <= 1e-12 * (np.abs(z / step[:, None]).max() + 1e-300)
    assert ((point >= terms.outputs.lower) & (point <= terms.outputs.upper)).all()


@given(seed=st.integers(0, 10**6))
def test_conjugate_equals_the_supremum_at_the_response(seed):
    terms, residual = random_terms(seed)
    response = terms.response(residual)
    attained = float(np.vdot(response, residual)) - terms.total_value(response)
    assert terms.conjugate(residual).sum() == pytest.approx(attained, rel=1e-12, abs=1e-12)
    assert violation(terms, response, residual) <= 1e-12 * (1 + np.abs(residual).max())


@given(seed=st.integers(0, 10**6))
def test_rows_are_zero_where_residuals_are_short(seed):
    terms, residual = random_terms(seed)
    short = np.linalg.norm(residual, axis=1) <= terms.epsilon
    response = terms.response(residual)
    assert not response[short].any()
    assert (terms.conjugate(residual)[short] == 0).all()
    if terms.epsilon > 0:
        assert response[~short].any(axis=1).all()


@given(seed=st.integers(0, 10**6))
def test_loss_is_below_the_papers_bound(seed):
    """Remark 3: ℓ_ε(r) ≤ ℓ(r·(1 − min(ε, ‖r‖)/‖r‖)), and it grows as ε falls."""
    terms, residual = random_terms(seed)
    lengths = np.linalg.norm(residual, axis=1, keepdims=True)
    shrunk = residual * (1 - np.minimum(terms.epsilon, lengths) / np.where(lengths, lengths, 1))
    bound = terms.outputs.conjugate(shrunk).sum(axis=1)
    values = terms.conjugate(residual)
    assert (values <= bound * (1 + 1e-12) + 1e-14).all()
    wider = GroupTerms(terms.outputs, terms.epsilon + 0.5).conjugate(residual)
    assert (wider <= values * (1 + 1e-12) + 1e-14).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
@pytest.mark.parametrize("kind", [Pinball, SquaredPinball])
def test_one_output_is_the_scalar_loss(kind, epsilon):
    residual = np.linspace(-2, 2, 41)[:, None]
    cost = np.full(41, 1.7)
    terms = GroupTerms.build([kind(0.3)], residual, cost, epsilon)
    expected = 1.7 * kind(0.3, epsilon).value(residual[:, 0])
    np.testing.assert_allclose(terms.conjugate(residual), expected, rtol=1e-12, atol=1e-15)
    alpha = terms.response(residual)[:, 0]
    inside = np.abs(np.abs(residual[:, 0]) - epsilon) > 1e-9
    scalar = kind(0.3, epsilon).dual_terms(residual[:, 0], cost).response(residual[:, 0])
    np.testing.assert_allclose(alpha[inside], scalar[inside], rtol=1e-12)


def test_euclidean_loss_has_its_closed_form():
    residual = np.random.default_rng(0).normal(size=(50, 3))
    terms = GroupTerms.build([SquaredEpsilonInsensitive(0.0)] * 3, residual, np.full(50, 2.0), 0.8)
    expected = 2.0 * np.maximum(np.linalg.norm(residual, axis=1) - 0.8, 0.0) ** 2
    np.testing.assert_allclose(terms.conjugate(residual), expected, rtol=1e-12)


def test_violation_sees_what_is_wrong():
    y = np.zeros((1, 2))
    terms = GroupTerms.build([Pinball(0.5), Pinball(0.5)], y, np.ones(1), 1.0)
    zero, bound = np.zeros((1, 2)), np.array([[0.5, 0.5]])
    assert violation(terms, zero, np.array([[3.0, 4.0]])) == pytest.approx(4.0)
    assert violation(terms, zero, np.array([[0.3, 0.4]])) == 0.0
    assert violation(terms, bound, np.array([[5.0, 5.0]])) == 0.0
    assert violation(terms, bound, np.array([[0.0, 5.0]])) == pytest.approx(np.sqrt(0.5))


@given(seed=st.integers(0, 10**6), factor=st.sampled_from([1e-9, 0.5, 1e9]))
def test_terms_in_other_units_are_the_same_loss(seed, factor):
    terms, residual = random_terms(seed)
    losses = terms.conjugate(residual)
    scaled = terms.in_units(1.0 / factor).conjugate(residual * factor)
    np.testing.assert_allclose(scaled, losses * factor**2, rtol=1e-9, atol=1e-13 * factor**2)
    dearer = terms.costing(factor).conjugate(residual)
    np.testing.assert_allclose(dearer, losses * factor, rtol=1e-9, atol=1e-13 * factor)


def test_reaches_are_bounds_or_what_ridges_allow():
    y = np.zeros((2, 2))
    terms = GroupTerms.build([Pinball(0.25), SquaredPinball(0.25)], y, np.array([1.0, 4.0]), 0.0)
    falls, rises = terms.reaches(2.0)
    np.testing.assert_allclose(falls, [[0.75, 3.0], [3.0, 12.0]])
    np.testing.assert_allclose(rises, [[0.25, 1.0], [1.0, 4.0]])
    assert terms.widest == 6.0


@pytest.mark.parametrize("cost", [5e-324, 1e-300])
def test_costs_too_small_to_divide_by_count_as_none(cost):
    y = np.zeros((2, 1))
    terms = GroupTerms.build([SquaredPinball(0.5)], y, np.array([cost, 1.0]), 0.0)
    assert np.isfinite(terms.conjugate(np.ones((2, 1)))).all()
    assert terms.outputs.upper[0, 0] == terms.outputs.ridge_plus[0, 0] == 0.0


def test_an_epsilon_whose_square_is_none():
    residual = np.array([[3.0, -4.0]])
    for kind in (Pinball, SquaredPinball):
        losses = [kind(0.3), kind(0.6)]
        exact = GroupTerms.build(losses, residual, np.ones(1), 0.0)
        tiny = GroupTerms.build(losses, residual, np.ones(1), 1e-300)
        np.testing.assert_allclose(tiny.conjugate(residual), exact.conjugate(residual), rtol=1e-14)
        assert np.array_equal(tiny.response(residual), exact.response(residual))
