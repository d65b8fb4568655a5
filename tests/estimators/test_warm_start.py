"""Fits that begin where the last one ended, and solvers given with settings of their own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from tausvm import (
    SVR,
    ExpectileSVR,
    LinearExpectileSVR,
    LinearQuantileSVR,
    LinearSVR,
    QuantileSVR,
    TauSVC,
)
from tausvm.persistence import load, save
from tausvm.solvers import SMO, Block

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
Y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=400)
LABELS = Y > 0

MACHINES = {
    "SVR": (SVR(epsilon=0.05), Y),
    "QuantileSVR": (QuantileSVR(tau=0.8), Y),
    "levels": (QuantileSVR(tau=[0.9, 0.1, 0.5]), Y),
    "ExpectileSVR": (ExpectileSVR(tau=0.2, epsilon=0.1), Y),
    "TauSVC": (TauSVC(tau=0.3), LABELS),
}


def objectives(model: SVR) -> np.ndarray:
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    return np.array([result.dual_objective for result in results])


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("change", [{"C": 3.0}, {"C": 0.2}, {"gamma": 1.5}, {"kernel": "linear"}])
def test_a_warm_fit_finds_what_a_cold_one_finds(name: str, change: dict[str, object]) -> None:
    machine, y = MACHINES[name]
    warm = clone(machine).set_params(warm_start=True, solver="block").fit(X, y)
    warm.set_params(**change).fit(X, y)
    cold = clone(warm).fit(X, y)
    assert np.max(warm.dual_gap_) <= warm.tol
    np.testing.assert_allclose(objectives(warm), objectives(cold), rtol=2 * warm.tol)


@pytest.mark.parametrize("name", ["SVR", "QuantileSVR", "TauSVC"])
def test_the_same_problem_again_takes_no_iteration(name: str) -> None:
    machine, y = MACHINES[name]
    model = clone(machine).set_params(warm_start=True, solver="smo").fit(X, y)
    assert model.result_.n_iter > 0
    model.fit(X, y)
    assert model.result_.n_iter == 0
    assert model.set_params(warm_start=False).fit(X, y).result_.n_iter > 0


def test_other_rows_are_no_trap() -> None:
    """As many of them: the old β is a start like any other. More: it is left alone."""
    model = QuantileSVR(tau=0.7, warm_start=True).fit(X, Y)
    model.fit(X[::-1], Y)
    cold = QuantileSVR(tau=0.7).fit(X[::-1], Y)
    np.testing.assert_allclose(objectives(model), objectives(cold), rtol=2e-4)
    model.fit(X[:300], Y[:300])
    cold.fit(X[:300], Y[:300])
    np.testing.assert_array_equal(model.dual_coef_, cold.dual_coef_)
    model.set_params(tau=[0.2, 0.8]).fit(X[:300], Y[:300])
    assert model.predict(X).shape == (400, 2)


def test_warm_start_must_be_a_flag() -> None:
    with pytest.raises(ValueError, match="warm_start must be"):
        SVR(warm_start="yes").fit(X, Y)


def test_solvers_with_settings_of_their_own(tmp_path) -> None:
    for solver in (SMO(working_set="halves"), Block(block_size=16)):
        model = ExpectileSVR(fit_intercept=False, solver=solver, tol=1e-6).fit(X, Y)
        assert model.result_.solver == solver.name
        assert clone(model).solver == solver
        default = ExpectileSVR(fit_intercept=False, solver=solver.name, tol=1e-6).fit(X, Y)
        np.testing.assert_allclose(objectives(model), objectives(default), rtol=2e-6)
        save(model, tmp_path / "model.skops")
        assert load(tmp_path / "model.skops").solver == solver
    nearest, halves = (
        ExpectileSVR(fit_intercept=False, solver=SMO(working_set=kind)).fit(X, Y).n_iter_
        for kind in ("nearest", "halves")
    )
    assert nearest < halves


@pytest.mark.parametrize(
    "machine",
    [
        LinearSVR(epsilon=0.05),
        LinearSVR(solver="dual_cd"),
        LinearQuantileSVR(tau=[0.9, 0.1]),
        LinearExpectileSVR(tau=0.3),
    ],
    ids=lambda machine: f"{type(machine).__name__}-{machine.solver}",
)
def test_linear_machines_too(machine: LinearSVR) -> None:
    warm = clone(machine).set_params(warm_start=True).fit(X, Y)
    warm.set_params(C=3.0).fit(X, Y)
    cold = clone(warm).fit(X, Y)
    assert np.max(warm.dual_gap_) <= warm.tol
    np.testing.assert_allclose(objectives(warm), objectives(cold), rtol=2 * warm.tol)
    before = np.sum(cold.n_iter_)
    assert np.sum(cold.set_params(warm_start=True).fit(X, Y).n_iter_) <= before
    warm.fit(X[:, :2], Y)  # other features: from nothing
    np.testing.assert_array_equal(warm.coef_, clone(warm).fit(X[:, :2], Y).coef_)
    with pytest.raises(ValueError, match="warm_start must be"):
        warm.set_params(warm_start="yes").fit(X, Y)
