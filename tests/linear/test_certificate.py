"""What is claimed is computed from the data, for the very w and b that predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR, LinearSVRCV
from tausvm.operators import LinearOperator
from tausvm.solvers import SolverOptions, Status, solve
from tausvm.solvers.linear import DualCD
from tausvm.solvers.linear.dual_cd import Descent
from tausvm.solvers.linear.steps import NewtonSteps

from .cases import LOSSES, OFFSETS, LinearCase, random_case

SQUARED = "squared_epsilon_insensitive"


def gap_by_formula(case: LinearCase, result: Any) -> float:
    """The relative gap, by dense products of the tests' own."""
    column = OFFSETS[case.offset][1]
    w, b, beta = result.function, result.intercept, result.beta
    primal = 0.5 * w @ w + case.costs.value(case.y - case.X @ w - b).sum()
    terms = case.package_loss.dual_terms(case.y, case.C * case.weights)
    pulled = case.X.T @ beta
    dual = case.y @ beta - 0.5 * pulled @ pulled - terms.value(beta).sum()
    if column:
        primal += 0.5 * (b / column) ** 2
        dual -= 0.5 * (column * beta.sum()) ** 2
    if case.free:
        assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    return float((primal - dual) / max(abs(primal), abs(dual)))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_rounded_sums_of_coordinate_descent_are_not_believed(
    loss: str, offset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running w is off after every pass: it ends with the gap of what it returns."""
    real = Descent.run

    def worn(self: Descent) -> float:
        gap = real(self)
        self.w *= 1.0 + 1e-3
        return gap

    monkeypatch.setattr(Descent, "run", worn)
    case = random_case(3, loss, offset, log_C=(-1.0, 0.0), shape=(40, 60))
    result = solve(case.problem("csr"), "dual_cd", SolverOptions(tol=1e-9, max_iter=60))
    assert result.dual_gap == pytest.approx(gap_by_formula(case, result), rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_newton_goes_on_from_corrected_sums(
    loss: str, offset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residuals that were rounded promise what the data do not keep; it is noticed and mended."""
    real, steps = NewtonSteps.step, []

    def worn(self: NewtonSteps, *arguments: Any) -> bool:
        moved = real(self, *arguments)
        if len(steps) < 12:
            self.residual += 1e-4 * np.sin(np.arange(len(self.residual)))
        steps.append(moved)
        return moved

    monkeypatch.setattr(NewtonSteps, "step", worn)
    case = random_case(3, loss, offset, log_C=(-1.0, 0.0), shape=(80, 6))
    result = solve(case.problem(), "newton", SolverOptions(tol=1e-9, max_iter=500))
    assert result.status is Status.SOLVED
    assert gap_by_formula(case, result) <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_sums_that_stay_wrong_end_with_the_gap_of_the_data(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residuals that are off after every step: the solve ends, and claims no more than is true."""
    real = NewtonSteps.step

    def worn(self: NewtonSteps, *arguments: Any) -> bool:
        moved = real(self, *arguments)
        self.residual += 1e-4 * np.sin(np.arange(len(self.residual)))
        return moved

    monkeypatch.setattr(NewtonSteps, "step", worn)
    case = random_case(3, loss, "free", log_C=(-1.0, 0.0), shape=(40, 6))
    result = solve(case.problem(), "newton", SolverOptions(tol=1e-9, max_iter=2000))
    assert result.status in (Status.NUMERICAL_ERROR, Status.MAX_ITER)
    assert result.dual_gap == pytest.approx(gap_by_formula(case, result), rel=1e-5)


def test_few_products_with_small_sparse_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate from the data costs two products a look, and no more at the end."""
    case = random_case(3, "epsilon_insensitive", "none", log_C=(-1.0, 0.0), shape=(40, 60))
    calls: list[str] = []
    for name in ("values", "function"):
        real = getattr(LinearOperator, name)
        monkeypatch.setattr(
            LinearOperator,
            name,
            lambda self, *a, real=real, name=name, **k: calls.append(name) or real(self, *a, **k),
        )
    result = solve(case.problem("csr"), "dual_cd", SolverOptions(tol=1e-3))
    looks = len(result.trace) - 1  # the first is at w = 0, which takes none
    assert result.status is Status.SOLVED
    assert calls.count("values") <= looks and calls.count("function") <= looks + 2


@pytest.mark.parametrize("rule", [1e-1, 1e-3])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_papers_rule_is_an_end_of_its_own(loss: str, offset: str, rule: float) -> None:
    """Rule (25), the sum of violations: neither an error nor a claim about the gap."""
    case = random_case(4, loss, offset, log_C=(-1.0, 0.0), shape=(60, 90))
    options, solver = SolverOptions(tol=1e-13, max_iter=5000), DualCD(violation_tol=rule)
    result = solve(case.problem("csr"), solver, options)
    assert result.status is Status.VIOLATION_TOL
    assert result.dual_gap == pytest.approx(gap_by_formula(case, result), rel=1e-6, abs=1e-13)
    within = solve(case.problem("csr"), solver, options.with_(tol=0.5))
    assert within.status is Status.SOLVED and within.dual_gap <= 0.5


def test_the_rule_is_warned_of_with_its_gap() -> None:
    from sklearn.exceptions import ConvergenceWarning

    from tausvm.estimators.progress import warn_unless_solved

    case = random_case(4, "pinball", "free", log_C=(-1.0, 0.0), shape=(60, 90))
    options = SolverOptions(tol=1e-13)
    result = solve(case.problem("csr"), DualCD(violation_tol=1e-2), options)
    with pytest.warns(ConvergenceWarning, match=f"gap is {result.dual_gap:.2e}.*violation_tol"):
        warn_unless_solved("LinearSVR", [result], options, None)


RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 5))
Y = X[:, 0] + RNG.normal(size=60)


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVR(epsilon=0.1),
        LinearQuantileSVR(tau=[0.2, 0.7]),
        LinearExpectileSVR(tau=0.3),
        LinearSVRCV(Cs=3, cv=3),
    ],
)
def test_raw_predictions_are_what_predicts(machine: Any) -> None:
    model = machine.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X, raw=True), model.predict(X))
    assert np.max(model.dual_gap_) <= model.tol


@pytest.mark.parametrize("density", [0.01, 0.02])
@pytest.mark.parametrize("shape", [(1500, 5000), (3000, 2000)])
def test_auto_on_sparse_counts_is_no_slower_than_its_parts(
    shape: tuple[int, int], density: float
) -> None:
    """By what its parts count: passes, Newton steps, and products in conjugate gradients."""
    rng = np.random.default_rng(0)
    A = sp.random(*shape, density=density, random_state=0, format="csr")
    A.data = rng.poisson(2.0, size=A.nnz) + 1.0
    y = A @ rng.normal(size=shape[1]) + rng.normal(size=shape[0])
    machine = LinearSVR(loss=SQUARED)
    auto = machine.set_params(solver="auto").fit(A, y)
    assert auto.dual_gap_ <= 1e-4 and auto.n_iter_ <= 60
    newton = machine.set_params(solver="newton").fit(A, y)
    assert newton.dual_gap_ <= 1e-4 and newton.n_iter_ <= 20


def test_the_offset_follows_in_conjugate_gradients() -> None:
    """Features far from 0: an offset left behind would undo a truncated step of w, again and
    again."""
    rng = np.random.default_rng(1)
    popular = 1.0 / np.arange(1, 4001) ** 0.8
    columns = rng.choice(4000, size=(800, 60), p=popular / popular.sum())
    A = sp.csr_matrix((np.ones(48_000), (np.repeat(np.arange(800), 60), columns.ravel())))
    A.sum_duplicates()
    y = A @ (rng.normal(size=A.shape[1]) * (rng.random(A.shape[1]) < 0.1)) + rng.normal(size=800)
    model = LinearSVR(loss=SQUARED, solver="newton", tol=1e-6).fit(A, y)
    assert model.dual_gap_ <= 1e-6 and model.n_iter_ <= 20
