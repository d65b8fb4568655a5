"""Targets in other units: y → a·y + b gives the same machine in these units, with every solver."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR, LinearSVRCV
from tausvm.solvers.units import spread

SQUARED = "squared_epsilon_insensitive"
RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 5))
Y = X @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.5 * RNG.standard_t(3, size=60)
Y /= Y.std()
WEIGHT = RNG.exponential(size=60)

#: the machine, and whether its C has the unit of y
MACHINES = {
    "svr": (LinearSVR(C=0.3, epsilon=0.1), True),
    "svr scale_C": (LinearSVR(C=0.3, epsilon=0.1, scale_C=True), False),
    "svr squared": (LinearSVR(C=0.3, epsilon=0.1, loss=SQUARED), False),
    "quantile": (LinearQuantileSVR(tau=0.8, C=0.3), False),
    "quantile C": (LinearQuantileSVR(tau=0.8, C=0.3, scale_C=False), True),
    "expectile": (LinearExpectileSVR(tau=0.8, C=0.3, epsilon=0.05), False),
}
SCALES = [1e-12, 1e-6, 1e6, 1e12]
SHIFTS = [1e3, -1e6, 1e9]


def fitted(name: str, scale: float, shift: float, weight: Any = None, **changes: Any) -> Any:
    """The machine for scale·(y + shift), and its data; shift in spreads of y."""
    machine, costs_scale = MACHINES[name]
    parameters = machine.get_params() | changes
    parameters["epsilon"] *= scale
    if costs_scale:
        parameters["C"] *= scale
    data = sp.csr_matrix(X) if parameters.pop("sparse", False) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return type(machine)(**parameters).fit(data, scale * (Y + shift), weight)


@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton", "interior_point"])
@pytest.mark.parametrize("name", MACHINES)
def test_predictions_follow(name: str, solver: str) -> None:
    options = dict(tol=1e-10, solver=solver, max_iter=20_000)
    plain = fitted(name, 1.0, 0.0, WEIGHT, **options)
    expected = plain.predict(X)
    for sparse, (scale, shift) in enumerate(zip([1e-12, 1e12, 1e-6], SHIFTS, strict=True)):
        moved = fitted(name, scale, shift, WEIGHT, sparse=bool(sparse), **options)
        error = np.abs(moved.predict(X) / scale - shift - expected).max()
        assert error <= (1e-5 if abs(shift) > 1e6 else 1e-6), (scale, shift)
        if abs(shift) <= 1e6:  # at 1e9 the rounding of b alone costs more than that
            assert moved.dual_gap_ <= 1e-10


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton", "interior_point"])
@pytest.mark.parametrize("name", MACHINES)
def test_primals_agree_at_the_default_tolerance(name: str, solver: str, intercept: bool) -> None:
    options = dict(solver=solver, fit_intercept=intercept, max_iter=10_000)
    plain = fitted(name, 1.0, 0.0, **options).result_
    for scale in SCALES:
        for shift in SHIFTS if intercept else [0.0]:
            moved = fitted(name, scale, shift, **options).result_
            assert moved.dual_gap <= 1e-4
            primal = moved.primal_objective / scale**2
            # the targets themselves are rounded
            rounding = 1e-15 * abs(shift) * MACHINES[name][0].C * len(Y)
            assert primal == pytest.approx(plain.primal_objective, rel=2e-4, abs=rounding)


@pytest.mark.parametrize("name", MACHINES)
def test_result_is_in_the_units_of_y(name: str) -> None:
    """Objectives, violation, fitted values and trace by their own formulas."""
    scale, shift = 3e-7, 40.0
    model = fitted(name, scale, shift, WEIGHT, tol=1e-6)
    result = model.result_
    y = scale * (Y + shift)
    losses = model._losses()[0]
    cost = model.C * WEIGHT
    if model.scale_C and not name.startswith(("expectile", "svr squared")):
        cost = cost * spread(y, WEIGHT)
    w, b, beta = result.function, result.intercept, result.beta
    np.testing.assert_allclose(result.fitted, X @ w, rtol=1e-12, atol=1e-12 * scale)
    primal = 0.5 * w @ w + cost @ losses.value(y - X @ w - b)
    pulled = X.T @ beta
    dual = y @ beta - 0.5 * pulled @ pulled - losses.dual_terms(y, cost).value(beta).sum()
    assert result.primal_objective == pytest.approx(primal, rel=1e-11)
    assert result.dual_objective == pytest.approx(dual, rel=1e-7, abs=1e-9 * primal)
    assert result.trace[-1].primal_objective == pytest.approx(primal, rel=1e-4)
    assert result.kkt_violation <= 0.1 * scale


def test_an_objective_counts_as_nothing_beside_the_best_constant_only() -> None:
    """Not beside the loss at 0, which a large mean makes as large as one likes."""
    for machine in (LinearExpectileSVR(tau=0.8, fit_intercept=False), LinearSVR(loss=SQUARED)):
        machine = machine.set_params(tol=1e-8)
        near, far = machine.fit(X, Y), machine.fit(X, Y).predict(X)
        assert near.result_.primal_objective > 0 and np.ptp(far) > 1.0
    far = LinearExpectileSVR(tau=0.8, intercept_scaling=1e6, tol=1e-8).fit(X, Y + 1e7)
    assert np.ptp(far.predict(X)) > 1.0 and far.dual_gap_ <= 1e-8


@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_same_C_is_chosen(loss: str, scale: float) -> None:
    plain = LinearSVRCV(loss=loss).fit(X, Y)
    for shift in (0.0, 1e6):
        moved = LinearSVRCV(loss=loss).fit(X, scale * (Y + shift))
        assert moved.best_index_ == plain.best_index_
        assert moved.dual_gap_ <= moved.tol and moved.best_estimator_.result_.dual_gap <= moved.tol
    counted = LinearSVRCV(loss=loss, scale_C=True).fit(X, scale * Y)
    assert counted.best_index_ == plain.best_index_
