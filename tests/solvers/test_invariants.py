"""What must not change an objective, or must change it in a known way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from tausvm.operators import GivenKernel
from tausvm.solvers import Problem, SolverResult, solve

from .cases import KERNELS, LOSSES, Case, random_case
from .checks import OPTIONS

seeds = st.integers(0, 100_000)
flags = st.booleans()
kernels = st.sampled_from(KERNELS)
of_residuals = st.sampled_from([loss for loss in LOSSES if loss != "hinge"])
solvers = st.sampled_from(["auto", "block"])


def draw(seed: int, loss: str, kernel: str, offset: bool, weighted: bool = False) -> Case:
    return random_case(seed, loss, kernel, offset, weighted, largest_n=30, log_C=(-2, 2))


def fit(case: Case, solver: str = "auto") -> SolverResult:
    result = solve(case.problem(), solver, OPTIONS)
    assert result.dual_gap <= OPTIONS.tol, str(case)
    return result


def assert_same(one: float, two: float) -> None:
    assert one == pytest.approx(two, rel=1e-7, abs=1e-10)


@given(seeds, st.sampled_from(LOSSES), kernels, flags, flags, solvers)
def test_order_of_the_rows(
    seed: int, loss: str, kernel: str, offset: bool, weighted: bool, solver: str
) -> None:
    case = draw(seed, loss, kernel, offset, weighted)
    order = np.random.default_rng(seed).permutation(len(case.y))
    shuffled = replace(case, X=case.X[order], y=case.y[order], weights=case.weights[order])
    one, two = fit(case, solver), fit(shuffled, solver)
    assert_same(one.dual_objective, two.dual_objective)
    size = np.abs(case.y).max() + np.abs(one.fitted).max()
    if loss.startswith("squared"):  # f is unique
        np.testing.assert_allclose(one.fitted[order], two.fitted, atol=2e-3 * size)


@given(seeds, st.sampled_from(LOSSES), kernels, flags, solvers)
def test_weight_is_repetition(seed: int, loss: str, kernel: str, offset: bool, solver: str) -> None:
    case = draw(seed, loss, kernel, offset)
    counts = np.random.default_rng(seed).integers(0, 4, size=len(case.y))
    counts[0] = 1
    weighted = replace(case, weights=counts.astype(float))
    repeated = replace(
        case,
        X=np.repeat(case.X, counts, axis=0),
        y=np.repeat(case.y, counts),
        weights=np.ones(counts.sum()),
    )
    assert_same(fit(weighted, solver).dual_objective, fit(repeated, solver).dual_objective)


@given(seeds, of_residuals, kernels, flags, st.sampled_from([1e-3, 0.2, 7.0, 1e3]))
def test_scale_of_y(seed: int, loss: str, kernel: str, offset: bool, scale: float) -> None:
    """y → s·y, ε → s·ε: f → s·f and the objective → s² times, if C → s·C where ℓ is linear."""
    case = draw(seed, loss, kernel, offset)
    C = case.C if loss.startswith("squared") else scale * case.C
    scaled = replace(case, y=scale * case.y, epsilon=scale * case.epsilon, C=C)
    one, two = fit(case).dual_objective, fit(scaled).dual_objective
    assert two / scale**2 == pytest.approx(one, rel=1e-7, abs=1e-10)


@given(seeds, st.sampled_from(LOSSES), kernels, flags, st.sampled_from([0.01, 0.3, 50.0]))
def test_scale_of_the_kernel(seed: int, loss: str, kernel: str, offset: bool, scale: float) -> None:
    """K → a·K and C → C/a: the same f, the objective over a."""
    case = draw(seed, loss, kernel, offset)
    scaled = replace(case, C=case.C / scale)
    terms = scaled.package_loss.dual_terms(scaled.y, scaled.cost)
    problem = Problem(GivenKernel(scale * case.K), case.y, terms, offset)
    two = solve(problem, "auto", OPTIONS).dual_objective * scale
    assert_same(fit(case).dual_objective, two)


@given(seeds, of_residuals, kernels, st.sampled_from([-3.0, 0.5, 100.0]))
def test_shift_of_y_with_an_offset(seed: int, loss: str, kernel: str, shift: float) -> None:
    """The offset takes it up and costs nothing."""
    case = draw(seed, loss, kernel, True)
    one, two = fit(case), fit(replace(case, y=case.y + shift))
    assert two.dual_objective == pytest.approx(one.dual_objective, rel=1e-6, abs=1e-8 * case.C)


@given(seeds, st.sampled_from(["pinball", "squared_pinball", "hinge"]), kernels, flags)
def test_mirror(seed: int, loss: str, kernel: str, offset: bool) -> None:
    """y → −y turns the level τ into 1 − τ."""
    case = draw(seed, loss, kernel, offset)
    mirrored = replace(case, y=-case.y, tau=1.0 - case.tau)
    assert_same(fit(case).dual_objective, fit(mirrored).dual_objective)


@given(seeds, st.sampled_from(LOSSES), kernels, flags)
def test_objective_grows_with_C(seed: int, loss: str, kernel: str, offset: bool) -> None:
    """And per unit of C it falls: the primal is concave in C."""
    case = draw(seed, loss, kernel, offset)
    small, large = fit(case).primal_objective, fit(replace(case, C=2 * case.C)).primal_objective
    assert small <= large * (1 + 1e-7) + 1e-12
    assert large <= 2 * small * (1 + 1e-7) + 1e-12


@given(seeds, kernels)
def test_expectile_at_one_half_is_kernel_ridge(seed: int, kernel: str) -> None:
    case = replace(draw(seed, "squared_pinball", kernel, False), tau=0.5, epsilon=0.0)
    ridge = KernelRidge(alpha=1.0 / case.C, kernel="precomputed").fit(case.K, case.y)
    objective = 0.5 * case.y @ ridge.dual_coef_
    result = fit(case)
    assert_same(result.dual_objective, float(objective))
    prediction = ridge.predict(case.K)
    np.testing.assert_allclose(result.fitted, prediction, atol=1e-3 * np.abs(case.y).max())


@given(seeds, kernels)
def test_least_squares_with_an_offset(seed: int, kernel: str) -> None:
    """The bordered system (K + I/(2C)) β + b = y, Σβ = 0."""
    case = replace(draw(seed, "squared_epsilon_insensitive", kernel, True), epsilon=0.0)
    n = len(case.y)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = case.K + np.eye(n) / (2 * case.C)
    system[n, n] = 0.0
    solution = np.linalg.solve(system, np.append(case.y, 0.0))
    result = fit(case)
    assert_same(result.dual_objective, 0.5 * float(case.y @ solution[:n]))
    size = 1e-3 * np.abs(case.y).max()
    assert result.intercept == pytest.approx(solution[n], abs=size)


@given(seeds, kernels)
def test_quantile_property(seed: int, kernel: str) -> None:
    """With an offset at most a share τ lies below the fit, and at most 1 − τ above."""
    case = replace(draw(seed, "pinball", kernel, True), epsilon=0.0)
    result = fit(case)
    residual = case.y - result.fitted - result.intercept
    size = 1e-5 * (np.abs(case.y).max() + np.abs(result.fitted).max())
    n = len(case.y)
    assert (residual < -size).sum() <= case.tau * n + 1e-9
    assert (residual > size).sum() <= (1 - case.tau) * n + 1e-9
