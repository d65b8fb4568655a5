"""Values, conjugates, derivatives and dual terms of every loss, checked by numbers alone."""

from __future__ import annotations

import doctest
import inspect
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import tausvm.losses
from tausvm.losses import (
    DualTerms,
    EpsilonInsensitive,
    Hinge,
    Loss,
    Pinball,
    SquaredEpsilonInsensitive,
    SquaredPinball,
)

from ..reference.objective import side_costs

EVERY_LOSS = [
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.3),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.3),
    Pinball(0.1),
    Pinball(0.8, 0.4),
    SquaredPinball(0.1),
    SquaredPinball(0.8, 0.4),
    Hinge(0.5),
    Hinge(0.2),
]
REFERENCE_NAME = {
    EpsilonInsensitive: "epsilon_insensitive",
    SquaredEpsilonInsensitive: "squared_epsilon_insensitive",
    Pinball: "pinball",
    SquaredPinball: "squared_pinball",
    Hinge: "hinge",
}

finite = st.floats(-5, 5)
levels = st.floats(0.01, 0.99)
widths = st.sampled_from([0.0, 0.1, 1.0])


def name(loss: Loss) -> str:
    numbers = [getattr(loss, key) for key in ("tau", "epsilon") if hasattr(loss, key)]
    return f"{type(loss).__name__}{numbers}"


def labels(loss: Loss, count: int) -> list[np.ndarray]:
    """Both labels for the hinge; any y for a loss of the residual alone."""
    return [np.ones(count), -np.ones(count)] if isinstance(loss, Hinge) else [np.zeros(count)]


@st.composite
def losses(draw: st.DrawFn) -> Loss:
    kind = draw(st.sampled_from(list(REFERENCE_NAME)))
    if kind in (Pinball, SquaredPinball):
        return kind(draw(levels), draw(widths))
    return kind(draw(levels)) if kind is Hinge else kind(draw(widths))


@given(losses(), finite, finite, st.sampled_from([-1.0, 1.0]))
def test_fenchel_young_inequality(loss: Loss, residual: float, beta: float, label: float) -> None:
    r, b, y = np.array([residual]), np.array([beta]), np.array([label])
    assert loss.value(r, y) + loss.conjugate(b, y) >= r * b - 1e-12


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=name)
def test_conjugate_is_the_supremum(loss: Loss) -> None:
    """sup_r (rβ − ℓ(r)) on a fine grid of residuals is the conjugate, inside its domain."""
    grid = np.linspace(-40, 40, 80_001)
    for y in labels(loss, len(grid)):
        value = loss.value(grid, y)
        for beta in np.linspace(-3, 3, 60):  # no end of a domain among them
            conjugate = float(loss.conjugate(np.array([beta]), y[:1])[0])
            difference = grid * beta - value
            supremum = float(difference.max())
            if np.isinf(conjugate):
                assert supremum > 1.2 * difference[np.abs(grid) < 20].max()  # grows for ever
            else:
                assert supremum == pytest.approx(conjugate, abs=1e-6)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=name)
def test_value_is_the_biconjugate(loss: Loss) -> None:
    """sup_β (rβ − ℓ*(β)) gives the loss back: it is convex and closed."""
    grid = np.linspace(-25, 25, 100_001)
    for y in labels(loss, len(grid)):
        conjugate = loss.conjugate(grid, y)
        for residual in np.linspace(-6, 6, 49):
            supremum = float((grid * residual - conjugate).max())
            value = float(loss.value(np.array([residual]), y[:1])[0])
            assert supremum == pytest.approx(value, abs=4e-3)


@given(losses(), st.floats(1e-3, 1e3), finite, st.sampled_from([-1.0, 1.0]))
def test_dual_terms_are_the_conjugate_of_the_weighted_loss(
    loss: Loss, cost: float, number: float, label: float
) -> None:
    """g = (cℓ)* is c·ℓ*(β/c), and its own conjugate is c·ℓ."""
    y, c, r = np.array([label]), np.array([cost]), np.array([number])
    terms = loss.dual_terms(y, c)
    assert terms.conjugate(r) == pytest.approx(cost * loss.value(r, y), rel=1e-12, abs=1e-12)
    conjugate = cost * loss.conjugate(r / cost, y)
    if np.isfinite(conjugate):
        assert terms.lower <= r <= terms.upper
        assert terms.value(r) == pytest.approx(conjugate, rel=1e-12, abs=1e-12)
    else:
        assert r < terms.lower or r > terms.upper


@given(losses(), st.floats(1e-3, 1e3), finite, st.sampled_from([-1.0, 1.0]))
def test_response_attains_the_supremum(
    loss: Loss, cost: float, number: float, label: float
) -> None:
    """Fenchel–Young holds with equality at the response, and nothing smaller attains it."""
    y, c, r = np.array([label]), np.array([cost]), np.array([number])
    terms = loss.dual_terms(y, c)
    beta = terms.response(r)
    assert terms.lower <= beta <= terms.upper
    attained = r * beta - terms.value(beta)
    assert attained == pytest.approx(cost * loss.value(r, y), rel=1e-12, abs=1e-12)


@given(losses(), st.floats(-3, 3), st.sampled_from([-1.0, 1.0]))
def test_slopes_are_the_one_sided_derivatives(loss: Loss, beta: float, label: float) -> None:
    terms = loss.dual_terms(np.array([label]), np.array([4.0]))
    beta = float(np.clip(beta, terms.lower[0], terms.upper[0]))
    at, step = np.array([beta]), 1e-7
    if beta < terms.upper[0] - step:
        rise = (terms.value(at + step) - terms.value(at)) / step
        crosses = -step < beta < 0
        assert crosses or terms.slope_up(at) == pytest.approx(rise, abs=1e-5)
    elif beta == terms.upper[0]:
        assert terms.slope_up(at) == np.inf
    if beta > terms.lower[0] + step:
        fall = (terms.value(at) - terms.value(at - step)) / step
        crosses = 0 < beta < step
        assert crosses or terms.slope_down(at) == pytest.approx(fall, abs=1e-5)
    elif beta == terms.lower[0]:
        assert terms.slope_down(at) == -np.inf


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=name)
def test_values_agree_with_the_reference(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    residual, cost = rng.normal(size=200), rng.exponential(size=200)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    tau, epsilon = getattr(loss, "tau", 0.5), getattr(loss, "epsilon", 0.0)
    costs = side_costs(REFERENCE_NAME[type(loss)], y, cost, tau, epsilon)
    np.testing.assert_allclose(cost * loss.value(residual, y), costs.value(residual), rtol=1e-12)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=name)
def test_table_of_the_design(loss: Loss) -> None:
    """The five numbers, written out."""
    y, c = np.array([1.0, -1.0]), np.array([2.0, 3.0])
    terms = loss.dual_terms(y, c)
    tau, epsilon = getattr(loss, "tau", 0.5), getattr(loss, "epsilon", 0.0)
    infinite, none = np.full(2, np.inf), np.zeros(2)
    match loss:
        case EpsilonInsensitive():
            expected = [-c, c, epsilon, none, none]
        case SquaredEpsilonInsensitive():
            expected = [-infinite, infinite, epsilon, 1 / (2 * c), 1 / (2 * c)]
        case Pinball():
            expected = [-(1 - tau) * c, tau * c, epsilon, none, none]
        case SquaredPinball():
            ridges = [1 / (2 * c * (1 - tau)), 1 / (2 * c * tau)]
            expected = [-infinite, infinite, epsilon, *ridges]
        case _:
            ends = y * np.array([2 * (1 - tau), 2 * tau]) * c
            expected = [np.minimum(0, ends), np.maximum(0, ends), none, none, none]
    for number, value in zip(terms.numbers, expected, strict=True):
        np.testing.assert_allclose(number, np.broadcast_to(value, 2), rtol=1e-14)


@given(losses(), st.floats(-3, 3), st.sampled_from([-1.0, 1.0]))
def test_responses_are_derivatives_of_the_loss(loss: Loss, number: float, label: float) -> None:
    """Between its slopes to the left and to the right, which differ at corners only."""
    y, r, step = np.array([label]), np.array([number]), 1e-6
    beta = loss.dual_terms(y, np.ones(1)).response(r)
    left, here, right = (loss.value(r + by, y) for by in (-step, 0.0, step))
    assert (here - left) / step - 1e-5 <= beta <= (right - here) / step + 1e-5


@pytest.mark.parametrize(
    ("plain", "insensitive"),
    [
        (EpsilonInsensitive(0.0), EpsilonInsensitive(0.4)),
        (SquaredEpsilonInsensitive(0.0), SquaredEpsilonInsensitive(0.4)),
        (Pinball(0.15), Pinball(0.15, 0.4)),
        (Pinball(0.7), Pinball(0.7, 0.4)),
        (SquaredPinball(0.15), SquaredPinball(0.15, 0.4)),
        (SquaredPinball(0.7), SquaredPinball(0.7, 0.4)),
    ],
    ids=lambda loss: name(loss),
)
def test_epsilon_insensitive_form_is_an_infimal_convolution(plain: Loss, insensitive: Loss) -> None:
    """ℓ_ε(r) = inf over |d| ≤ ε of ℓ(r − d): the loss □ the indicator of the ε-ball.

    The infimum is found by a numerical search, and its conjugate is ℓ* + ε|·|.
    """
    epsilon = 0.4
    for residual in np.linspace(-3, 3, 121):
        inner = minimize_scalar(
            lambda d, r=residual: float(plain.value(np.array([r - d]))[0]),
            bounds=(-epsilon, epsilon),
            method="bounded",
            options={"xatol": 1e-12},
        )
        ends = plain.value(np.array([residual - epsilon, residual + epsilon]))
        infimum = min(inner.fun, *ends)
        value = float(insensitive.value(np.array([residual]))[0])
        assert value == pytest.approx(infimum, abs=1e-8)
    beta = np.linspace(-2, 2, 81)
    np.testing.assert_allclose(
        insensitive.conjugate(beta), plain.conjugate(beta) + epsilon * np.abs(beta), rtol=1e-14
    )


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=name)
def test_cost_zero_pins_the_variable(loss: Loss) -> None:
    """A weight of 0 leaves no freedom, no loss, and nothing divides by zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        terms = loss.dual_terms(np.array([1.0, -1.0]), np.array([0.0, 1.0]))
        residual = np.array([5.0, 5.0])
        assert terms.lower[0] == terms.upper[0] == 0.0
        assert np.isfinite(terms.numbers[2:]).all()
        assert terms.conjugate(residual)[0] == 0.0
        assert terms.response(residual)[0] == 0.0
        assert terms.slope_up(np.zeros(2))[0] == np.inf
        assert terms.slope_down(np.zeros(2))[0] == -np.inf


def test_special_cases() -> None:
    r = np.linspace(-2, 2, 41)
    np.testing.assert_allclose(EpsilonInsensitive(0.3).value(r), 2 * Pinball(0.5, 0.3).value(r))
    np.testing.assert_allclose(
        SquaredEpsilonInsensitive(0.3).value(r), 2 * SquaredPinball(0.5, 0.3).value(r)
    )
    np.testing.assert_allclose(SquaredEpsilonInsensitive(0.0).value(r), r**2)
    np.testing.assert_allclose(Pinball(0.3).value(r), Pinball(0.7).value(-r))
    np.testing.assert_allclose(SquaredPinball(0.3).value(r), SquaredPinball(0.7).value(-r))
    y, f = np.array([1.0, 1.0, -1.0, -1.0]), np.array([0.5, 2.0, 0.5, -2.0])
    np.testing.assert_allclose(Hinge(0.5).value(y - f, y), np.maximum(0, 1 - y * f))


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.1, np.nan, np.inf, None, "0.5", [0.5], 1j])
@pytest.mark.parametrize("kind", [Pinball, SquaredPinball, Hinge])
def test_bad_tau(kind: type[Loss], tau: object) -> None:
    with pytest.raises(ValueError, match="tau must lie strictly between 0 and 1, got"):
        kind(tau)  # type: ignore[call-arg]


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, None, "0.1", [0.1], 1j])
@pytest.mark.parametrize(
    "make",
    [
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
        lambda epsilon: Pinball(0.5, epsilon),
        lambda epsilon: SquaredPinball(0.5, epsilon),
    ],
)
def test_bad_epsilon(make: type[Loss], epsilon: object) -> None:
    with pytest.raises(ValueError, match="epsilon must be a finite number >= 0, got"):
        make(epsilon)  # type: ignore[call-arg]


def test_hinge_needs_labels() -> None:
    with pytest.raises(ValueError, match="needs y, the labels"):
        Hinge().value(np.zeros(1))
    with pytest.raises(ValueError, match="needs y, the labels"):
        Hinge().conjugate(np.zeros(1))


def test_take_and_build() -> None:
    terms = DualTerms.build(3, lower=-1.0, upper=[1.0, 2.0, 3.0], kink=0.5)
    part = terms.take(np.array([2, 0]))
    assert part.upper.tolist() == [3.0, 1.0]
    assert part.lower.tolist() == [-1.0, -1.0]
    assert part.kink.tolist() == [0.5, 0.5]
    assert part.numbers.flags.c_contiguous


@pytest.mark.parametrize(
    "module",
    [m for _, m in inspect.getmembers(tausvm.losses, inspect.ismodule)],
    ids=lambda module: module.__name__,
)
def test_docstring_examples(module: object) -> None:
    failures, _ = doctest.testmod(module)  # type: ignore[arg-type]
    assert failures == 0
