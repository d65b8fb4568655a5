"""Extreme weights, costs and features: a right answer, a warning or a clear refusal."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tausvm import LinearExpectileSVR, LinearQuantileSVR, LinearSVR, LinearSVRCV

SQUARED = "squared_epsilon_insensitive"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(18, 6))
Y = X @ RNG.normal(size=6) + 0.3 * RNG.normal(size=18)
DECADES = np.array([1e11, 1e-3, 1e5, 1.0, 1e-9, 1e8])
MACHINES = {
    "svr": LinearSVR(),
    "svr squared": LinearSVR(loss=SQUARED, epsilon=0.1),
    "quantile": LinearQuantileSVR(tau=0.3),
    "expectile": LinearExpectileSVR(tau=0.8),
    "levels": LinearQuantileSVR(tau=[0.1, 0.5, 0.9]),
    "selection": LinearSVRCV(Cs=3, cv=3),
}


def one(value: float) -> np.ndarray:
    weight = np.ones(18)
    weight[3] = value
    return weight


#: rows, targets, weights and parameters
CASES: dict[str, tuple[Any, Any, Any, dict]] = {
    "one weight 1e300": (X, Y, one(1e300), {}),
    "one weight 5e-324": (X, Y, one(5e-324), {}),
    "one weight 1e-300": (X, Y, one(1e-300), {}),
    "one weight 1e30": (X, Y, one(1e30), {}),
    "weights 1e300": (X, Y, np.full(18, 1e300), {}),
    "weights 5e-324": (X, Y, np.full(18, 5e-324), {}),
    "weights 1e-300": (X, Y, np.full(18, 1e-300), {}),
    "column 1e-170": (X, Y, None, {"intercept_scaling": 1e-170}),
    "column 1e300": (X, Y, None, {"intercept_scaling": 1e300}),
    "column 1e-50": (X, Y, None, {"intercept_scaling": 1e-50}),
    "column 1e20": (X, Y, None, {"intercept_scaling": 1e20}),
    "C 5e-324": (X, Y, None, {"C": 5e-324}),
    "C 1e300": (X, Y, None, {"C": 1e300}),
    "C 1e90": (X, Y, None, {"C": 1e90}),
    "X 1e160": (1e160 * X, Y, None, {}),
    "X 1e200": (1e200 * X, Y, None, {}),
    "X 1e59": (1e59 * X, Y, None, {}),
    "X 1e-200": (1e-200 * X, Y, None, {}),
    "one row 1e200": (np.vstack([X[:-1], 1e200 * X[-1]]), Y, None, {}),
    "decades": (DECADES * X, Y, None, {}),
    "constant y": (X, np.full(18, 3.0), None, {}),
    "zero y": (X, np.zeros(18), None, {}),
    "zero X": (np.zeros_like(X), Y, None, {}),
    "y 1e300": (X, 1e300 * Y, None, {}),
    "y 1e-300": (X, 1e-300 * Y, None, {}),
}
NAMED = ("sample_weight", "intercept_scaling", "C must", "C over", "X must", "Cs must", "y must")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("solver", ["auto", "dual_cd", "newton", "interior_point"])
@pytest.mark.parametrize("name", CASES)
def test_solved_warned_or_refused(name: str, solver: str, sparse: bool) -> None:
    rows, y, weight, parameters = CASES[name]
    data = sp.csr_matrix(rows) if sparse else rows
    for kind, machine in MACHINES.items():
        if kind == "selection" and ("C" in parameters or solver == "dual_cd"):
            continue
        model = clone(machine).set_params(solver=solver, max_iter=200, **parameters)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.fit(data, y, weight)
            except ValueError as error:
                assert any(word in str(error) for word in NAMED), error
                continue
        assert np.isfinite(model.predict(data)).all()
        told = [str(w.message) for w in caught if w.category is ConvergenceWarning]
        assert len(caught) == len(told), [str(w.message) for w in caught]
        gap = np.max(model.dual_gap_)
        assert gap <= 1e-4 or any("StandardScaler" in message for message in told), (kind, gap)


def exact_gap(model: Any, rows: np.ndarray, y: np.ndarray) -> float:
    """The relative gap of an ε-insensitive machine with C = 1, ε = 0, in exact arithmetic."""
    result = model.result_
    A = [[Fraction(float(v)) for v in row] for row in rows]
    w = [Fraction(float(v)) for v in result.function]
    beta = [Fraction(float(v)) for v in result.beta]
    b, targets = Fraction(float(result.intercept)), [Fraction(float(v)) for v in y]
    residual = [
        t - sum(p * q for p, q in zip(row, w, strict=True)) - b
        for t, row in zip(targets, A, strict=True)
    ]
    pulled = [sum(q * row[j] for q, row in zip(beta, A, strict=True)) for j in range(rows.shape[1])]
    primal = sum(v * v for v in w) / 2 + sum(abs(r) for r in residual)
    dual = sum(t * q for t, q in zip(targets, beta, strict=True)) - sum(v * v for v in pulled) / 2
    return float((primal - dual) / max(primal, dual))


@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_columns_over_many_decades_are_judged_rightly(solver: str) -> None:
    """Whatever is claimed of them holds in exact arithmetic."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(18, 6)) * DECADES[rng.permutation(6)]
        y = (rows / np.abs(rows).max(axis=0)) @ rng.normal(size=6) + rng.normal(size=18)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = LinearSVR(solver=solver, epsilon=0.0).fit(rows, y)
        truth = exact_gap(model, rows, y)
        assert truth <= max(10 * model.dual_gap_, 1e-9) or truth <= 1e-4
        assert model.dual_gap_ <= 1e-4 or caught


@pytest.mark.parametrize(
    ("machine", "weight", "message"),
    [
        (LinearSVR(C=5e-324), None, r"C must be between 1e-100 and 1e\+100, got 5e-324"),
        (LinearSVR(), one(1e300), r"sample_weight must be 0 or between .* got 1e\+300"),
        (LinearExpectileSVR(), one(5e-324), "sample_weight must be 0 or between .*, got 5e-324"),
        (
            LinearSVR(intercept_scaling=1e300),
            None,
            r"intercept_scaling must be None or between 1e-50 and 1e\+50, got 1e\+300",
        ),
    ],
)
def test_refusals_name_what_they_got(machine: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        machine.fit(X, Y, weight)


def test_rows_too_long_name_X() -> None:
    for data in (1e160 * X, sp.csr_matrix(1e160 * X)):
        with pytest.raises(ValueError, match=r"X must have entries of at most 1e\+60.*Standard"):
            LinearSVR().fit(data, Y)


def test_constant_targets_are_predicted_as_they_are() -> None:
    for machine in MACHINES.values():
        for value in (3.0, 1e9, 1e-12, 0.0):
            model = clone(machine).fit(X, np.full(18, value))
            np.testing.assert_array_equal(model.predict(X), value)
            assert np.max(model.dual_gap_) == 0.0
