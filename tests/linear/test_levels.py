"""Lists of levels: never less sure than each level on its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm import LinearExpectileSVR, LinearQuantileSVR
from tausvm.losses import Pinball
from tausvm.operators import LinearOperator
from tausvm.solvers import Problem, SolverOptions, Status, solve
from tausvm.solvers.linear import LinearAuto, LinearNewton, Pace
from tausvm.solvers.linear.proximal import Proximal, ProximalSteps

COUNTS = (1, 2, 5, 9, 19, 49, 99)


def drawn(seed: int) -> tuple[object, np.ndarray, object, dict]:
    """Rows, targets, weights and parameters; fewer rows than features as often as not."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 120)), int(rng.integers(1, 80))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X = np.round(X)
    if rng.random() < 0.2:
        X *= 10 ** rng.uniform(-2, 2, size=d)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    if rng.random() < 0.2:
        y = np.round(y)
    weight = rng.exponential(size=n) if rng.random() < 0.3 else None
    intercept = bool(rng.random() < 0.7)
    parameters = dict(
        tau=list(rng.uniform(0.01, 0.99, size=COUNTS[seed % len(COUNTS)])),
        C=10 ** rng.uniform(-3, 4),
        epsilon=float(rng.choice([0.0, 0.0, 0.1, 1.0])),
        fit_intercept=intercept,
        intercept_scaling=2.0 if intercept and rng.random() < 0.3 else None,
    )
    return (sp.csr_matrix(X) if rng.random() < 0.3 else X), y, weight, parameters


@pytest.mark.parametrize("seed", range(63))
def test_all_levels_are_solved(seed: int) -> None:
    X, y, weight, parameters = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearQuantileSVR(**parameters, tol=1e-5).fit(X, y, weight)
        LinearExpectileSVR(**parameters | {"tau": parameters["tau"][:5]}).fit(X, y, weight)
    assert np.max(model.dual_gap_) <= 1e-5


@pytest.mark.parametrize("shape", [(100, 50), (50, 10)])
def test_gaussian_rows(shape: tuple[int, int]) -> None:
    taus = np.linspace(0.05, 0.95, 19)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=shape)
        y = X @ rng.normal(size=shape[1]) + rng.normal(size=shape[0])
        model = LinearQuantileSVR(tau=list(taus), tol=1e-9).fit(X, y)
        assert np.max(model.dual_gap_) <= 1e-9
        for k in (0, 9, 18):
            single = LinearQuantileSVR(tau=taus[k], tol=1e-9).fit(X, y).result_
            assert model.result_[k].primal_objective == pytest.approx(
                single.primal_objective, rel=1e-8
            )


def interpolating() -> tuple[LinearOperator, np.ndarray]:
    """More features than rows: all residuals of a solution may be 0."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(25, 66))
    return LinearOperator(X), X @ rng.normal(size=66) + rng.normal(size=25)


def test_a_start_at_its_corners_says_nothing_of_the_way_to_go() -> None:
    """Where every row of the old solution lies at its corner, the new one is found as well."""
    rows, y = interpolating()
    options = SolverOptions(tol=1e-11, max_iter=1000)
    last = None
    for tau in (0.4, 0.73, 0.95):
        terms = Pinball(tau).dual_terms(y[:1], np.array([8.0])).shared(len(y))
        last = solve(Problem(rows, y, terms, True), "newton", options, last)
        assert last.status is Status.SOLVED and last.n_iter < 60


def test_a_start_that_fails_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a start from another level not work out, the level is solved without."""
    rows, y = interpolating()
    options = SolverOptions(tol=1e-10, max_iter=1000)
    posed = [
        Problem(rows, y, Pinball(tau).dual_terms(y[:1], np.ones(1)).shared(len(y)), True)
        for tau in (0.3, 0.9)
    ]
    first = solve(posed[0], "newton", options)
    monkeypatch.setattr(ProximalSteps, "_to_go", lambda self: 1e-15)
    impatient = LinearNewton(proximal=Proximal(patience=0))
    assert solve(posed[1], impatient, options, first).status is Status.SOLVED


def tall(decades: float) -> tuple[LinearOperator, np.ndarray]:
    """Many rows a feature, with columns whose scales lie within some decades."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 30))
    y = X @ rng.normal(size=30) + rng.normal(size=4000)
    return LinearOperator(X * 10 ** (decades * rng.uniform(-0.5, 0.5, size=30))), y


def level(rows: LinearOperator, y: np.ndarray, tau: float, C: float) -> Problem:
    return Problem(rows, y, Pinball(tau).dual_terms(y[:1], np.array([C])).shared(len(y)), True)


@pytest.mark.parametrize("decades, C", [(2.6, 6500.0), (3.8, 3.5), (0.0, 100.0)])
def test_a_start_saves_newton_steps(decades: float, C: float) -> None:
    """From the level below every level takes fewer steps than on its own."""
    rows, y = tall(decades)
    options = SolverOptions(tol=1e-4, max_iter=1000)
    problems = [level(rows, y, tau, C) for tau in (0.2, 0.35, 0.36, 0.5, 0.7, 0.8)]
    cold = [solve(problem, "newton", options) for problem in problems]
    last = cold[0]
    for problem, alone in zip(problems[1:], cold[1:], strict=True):
        last = solve(problem, "newton", options, last)
        assert last.status is Status.SOLVED and last.n_iter <= alone.n_iter


@pytest.mark.parametrize("C", [3.5, 5000.0])
def test_coordinate_descent_does_not_spoil_a_start(C: float) -> None:
    """Where passes lead away from the level below, Newton's method begins at that level's w."""
    rows, y = tall(3.8)
    options = SolverOptions(tol=1e-4, max_iter=1000)
    relayed = LinearAuto(pace=Pace(hopeful=0.0))  # passes first, whatever they cost
    first = solve(level(rows, y, 0.4, C), relayed, options)
    second = level(rows, y, 0.41, C)
    cold = solve(second, relayed, options)
    warm = solve(second, relayed, options, first)
    assert warm.solver == cold.solver == "dual_cd, newton"
    assert warm.status is Status.SOLVED and warm.n_iter < cold.n_iter
