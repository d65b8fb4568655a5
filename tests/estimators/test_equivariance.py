"""Changes of the data that every estimator has to follow, in any unit and around any mean.

What :mod:`.test_invariance` has for kernel machines is here for all of them, over the whole
range of units and means.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import tausvm

from .data import PLAIN, wave

Array = NDArray[np.float64]

#: a level at which the offset of 36 rows is one number and not an interval
TAU = 0.3137
LEVELS = [0.2137, 0.5211, 0.8319]
ROWS = 36
EXACT = 1e-12
#: what predictions may differ by: a gap leaves a function the square root of it, times some spreads
CLOSE = 1e-5


class Machine(NamedTuple):
    """An estimator that predicts a quantity in the unit of y.

    ``linear`` says whether its loss grows linearly, so that C has the unit of y.
    """

    name: str
    params: dict[str, Any]
    linear: bool

    def __str__(self) -> str:
        return self.name + ("" if "loss" not in self.params else f"-{self.params['loss']}")

    def build(self, unit: float = 1.0, scale_C: bool | None = None, **more: Any) -> Any:
        """With ε, and C where that has the unit of y, in the unit of the targets."""
        params = {**self.params, **more}
        for name in ("epsilon", "epsilons"):
            if name in params:
                params[name] = np.multiply(params[name], unit).tolist()
        if scale_C is not None and self.linear:
            params["scale_C"] = scale_C
        if self.linear and not scale_C:
            for name in ("C", "Cs"):
                if name in params:
                    params[name] = np.multiply(params[name], unit).tolist()
        return getattr(tausvm, self.name)(**params)


TUBE = {"epsilon": 0.1, "C": 3.0}
SQUARED = "squared_epsilon_insensitive"
KERNEL = [
    Machine("SVR", TUBE, True),
    Machine("SVR", {**TUBE, "loss": SQUARED}, False),
    Machine("QuantileSVR", {"tau": TAU, "C": 3.0}, True),
    Machine("ExpectileSVR", {"tau": TAU, "C": 3.0}, False),
]
LINEAR = [
    Machine("LinearSVR", TUBE, True),
    Machine("LinearSVR", {**TUBE, "loss": SQUARED}, False),
    Machine("LinearQuantileSVR", {"tau": TAU, "C": 3.0}, True),
    Machine("LinearExpectileSVR", {"tau": TAU, "C": 3.0}, False),
]
JOINT = [
    Machine("JointQuantileSVR", {"tau": LEVELS, "C": 3.0, "epsilon": 0.05}, True),
    Machine("JointExpectileSVR", {"tau": LEVELS, "C": 3.0, "epsilon": 0.05}, False),
    Machine("JointSVR", {"epsilon": 0.1, "C": 3.0, "loss": "epsilon_insensitive"}, True),
    Machine("JointSVR", {"epsilon": 0.1, "C": 3.0, "loss": SQUARED}, False),
]
PATH = [Machine("TauPathSVR", {"C": 3.0}, True)]
GRID = {"Cs": [0.3, 3.0, 30.0], "gammas": [0.05, 0.5, 5.0], "cv": 3, "refit": True}
TUNED = [
    Machine("SVRCV", {**GRID, "epsilon": 0.1}, True),
    Machine("SVRCV", {**GRID, "epsilon": 0.1, "loss": SQUARED}, False),
    Machine("QuantileSVRCV", {**GRID, "tau": TAU}, True),
    Machine("ExpectileSVRCV", {**GRID, "tau": TAU}, False),
    Machine("ExpectileSVRCV", {**GRID, **PLAIN, "tau": TAU}, False),
    Machine("LinearSVRCV", {"Cs": [0.01, 0.3, 10.0], "cv": 3, "epsilon": 0.1}, True),
    Machine(
        "LinearSVRCV", {"Cs": [0.01, 0.3, 10.0], "cv": 3, "epsilon": 0.1, "loss": SQUARED}, False
    ),
    Machine(
        "LinearQuantileSVRCV",
        {"tau": TAU, "Cs": [0.01, 0.3, 10.0], "cv": 3, "epsilons": [0.0, 0.5]},
        True,
    ),
    Machine("LinearExpectileSVRCV", {"tau": TAU, "Cs": [0.01, 0.3, 10.0], "cv": 3}, False),
    Machine("JointQuantileSVRCV", {**GRID, "tau": LEVELS, "epsilons": [0.0, 0.3]}, True),
    Machine("JointExpectileSVRCV", {**GRID, "tau": LEVELS, "gamma_taus": [0.1, 5.0]}, False),
    Machine("JointSVRCV", {**GRID, "epsilon": 0.1}, False),
]
UNTUNED = [*KERNEL, *LINEAR, *JOINT, *PATH]

seeds = st.integers(0, 2**20)
#: powers of ten of the unit, and means in spreads
units = st.integers(-12, 12).map(lambda power: 10.0**power) | st.floats(-12, 12).map(
    lambda p: 10**p
)
means = st.sampled_from([0.0, -30.0, 1e3, -1e5, 1e6])
kinds = pytest.mark.parametrize("machine", UNTUNED, ids=str)
few = settings(max_examples=5, deadline=None)


def data(seed: int) -> tuple[Array, Array, Array]:
    """Rows, targets of spread one, and rows to predict at."""
    X, y = wave(ROWS, seed=seed)
    return X, (y - y.mean()) / y.std(), wave(10, seed=seed + 1)[0]


def targets(machine: Machine, y: Array) -> Array:
    """Two columns for vector targets."""
    return np.column_stack([y, np.sin(3 * y)]) if machine.name == "JointSVR" else y


def fitted(model: Any, X: Array, y: Array, weight: Array | None = None) -> Any:
    """Where rounding keeps a fit from its tolerance the prediction has to follow all the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weight)


def predicted(model: Any, X: Array) -> Array:
    if isinstance(model, tausvm.TauPathSVR):
        return model.predict(X, tau=LEVELS)
    return model.predict(X)


def primals(model: Any) -> Array:
    """The primal objectives that a fit shows."""
    if isinstance(model, tausvm.TauPathSVR):
        return np.array([model.certificate(tau).primal_objective for tau in LEVELS])
    results = model.result_ if isinstance(model.result_, list) else [model.result_]
    return np.array([result.primal_objective for result in results])


# ---- units and means of y ----


@kinds
@few
@given(seed=seeds, unit=units, mean=means, scale_C=st.booleans())
def test_predictions_follow_the_unit_and_the_mean(
    machine: Machine, seed: int, unit: float, mean: float, scale_C: bool
) -> None:
    X, y, new = data(seed)
    y = targets(machine, y)
    expected = predicted(fitted(machine.build(1.0, scale_C, tol=EXACT), X, y), new)
    moved = fitted(machine.build(unit, scale_C, tol=EXACT), X, unit * (y + mean))
    np.testing.assert_allclose(predicted(moved, new) / unit - mean, expected, atol=CLOSE, rtol=0)


@kinds
@settings(max_examples=2, deadline=None)
@given(seed=seeds, unit=units, mean=st.sampled_from([-1e9, 1e9]))
def test_predictions_follow_a_mean_of_a_thousand_million_spreads(
    machine: Machine, seed: int, unit: float, mean: float
) -> None:
    X, y, new = data(seed)
    y = targets(machine, y)
    y = (y + mean) - mean  # as the mean rounds it
    expected = predicted(fitted(machine.build(1.0, True, tol=EXACT), X, y), new)
    moved = fitted(machine.build(unit, True, tol=EXACT), X, unit * (y + mean))
    np.testing.assert_allclose(predicted(moved, new) / unit - mean, expected, atol=1e-5, rtol=0)


@kinds
@few
@given(seed=seeds, unit=units, mean=means, scale_C=st.booleans())
def test_primals_agree_at_the_default_tolerance(
    machine: Machine, seed: int, unit: float, mean: float, scale_C: bool
) -> None:
    X, y, _ = data(seed)
    y = targets(machine, y)
    one = machine.build(1.0, scale_C).fit(X, y)
    two = machine.build(unit, scale_C).fit(X, unit * (y + mean))
    np.testing.assert_allclose(primals(two) / unit**2, primals(one), rtol=2 * one.tol)


@kinds
@few
@given(seed=seeds, unit=units)
def test_the_unit_alone_without_an_offset(machine: Machine, seed: int, unit: float) -> None:
    X, y, new = data(seed)
    y = targets(machine, y)
    free = {"tol": EXACT, "fit_intercept": False}
    expected = predicted(fitted(machine.build(1.0, True, **free), X, y), new)
    scaled = predicted(fitted(machine.build(unit, True, **free), X, unit * y), new)
    np.testing.assert_allclose(scaled / unit, expected, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("machine", TUNED, ids=str)
@settings(max_examples=3, deadline=None)
@given(seed=seeds, unit=units, mean=means, scale_C=st.booleans())
def test_a_search_chooses_the_same_point(
    machine: Machine, seed: int, unit: float, mean: float, scale_C: bool
) -> None:
    X, y, new = data(seed)
    one = fitted(machine.build(1.0, scale_C, tol=EXACT), X, y)
    two = fitted(machine.build(unit, scale_C, tol=EXACT), X, unit * (y + mean))
    if one.best_index_ != two.best_index_:
        scores = one.cv_results_["mean_test_score"]
        assert scores[two.best_index_] == pytest.approx(scores[one.best_index_], rel=1e-3)
        return
    # features are learned by fits to the tolerance of a selection
    atol = 1e-4 if getattr(one, "learned_", False) else CLOSE
    np.testing.assert_allclose(two.predict(new) / unit - mean, one.predict(new), atol=atol, rtol=0)


# ---- rows ----


@pytest.mark.parametrize("machine", [*LINEAR, *JOINT, *PATH], ids=str)
@few
@given(seed=seeds)
def test_order_of_rows(machine: Machine, seed: int) -> None:
    X, y, new = data(seed)
    y = targets(machine, y)
    order = np.random.default_rng(seed).permutation(ROWS)
    one = fitted(machine.build(tol=EXACT), X, y)
    two = fitted(machine.build(tol=EXACT), X[order], y[order])
    np.testing.assert_allclose(predicted(two, new), predicted(one, new), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("machine", [*LINEAR, *JOINT, *PATH], ids=str)
@few
@given(seed=seeds, scale_C=st.booleans())
def test_a_weight_is_a_repetition(machine: Machine, seed: int, scale_C: bool) -> None:
    X, y, new = data(seed)
    y = targets(machine, y)
    weight = np.random.default_rng(seed).integers(0, 4, size=ROWS)
    one = fitted(machine.build(1.0, scale_C, tol=EXACT), X, y, weight)
    repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0)
    two = fitted(machine.build(1.0, scale_C, tol=EXACT), *repeated)
    np.testing.assert_allclose(predicted(two, new), predicted(one, new), atol=CLOSE, rtol=0)


# ---- levels ----

MIRRORED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "QuantileSVR": lambda tau: {"tau": tau, "C": 3.0},
    "ExpectileSVR": lambda tau: {"tau": tau, "C": 3.0, "epsilon": 0.05},
    "LinearQuantileSVR": lambda tau: {"tau": tau, "C": 3.0, "epsilon": 0.05},
    "LinearExpectileSVR": lambda tau: {"tau": tau, "C": 3.0},
    "JointQuantileSVR": lambda tau: {"tau": tau, "C": 3.0, "epsilon": 0.05},
    "JointExpectileSVR": lambda tau: {"tau": tau, "C": 3.0},
}


@pytest.mark.parametrize("name", MIRRORED)
@few
@given(seed=seeds)
def test_the_negative_has_the_levels_of_the_other_side(name: str, seed: int) -> None:
    X, y, new = data(seed)
    cls, params = getattr(tausvm, name), MIRRORED[name]
    other = [1 - tau for tau in reversed(LEVELS)]
    one = fitted(cls(tol=EXACT, **params(LEVELS)), X, y).predict(new)
    two = fitted(cls(tol=EXACT, **params(other)), X, -y).predict(new)
    np.testing.assert_allclose(-two[:, ::-1], one, atol=CLOSE, rtol=0)


@few
@given(seed=seeds)
def test_a_path_of_the_negative_runs_backwards(seed: int) -> None:
    X, y, new = data(seed)
    taus = np.array(LEVELS)
    one = tausvm.TauPathSVR(C=3.0, tol=EXACT).fit(X, y).predict(new, tau=taus)
    two = tausvm.TauPathSVR(C=3.0, tol=EXACT).fit(X, -y).predict(new, tau=1 - taus)
    np.testing.assert_allclose(-two, one, atol=1e-6)


@few
@given(seed=seeds, unit=units)
def test_a_path_passes_through_the_machines_of_single_levels(seed: int, unit: float) -> None:
    X, y, new = data(seed)
    path = tausvm.TauPathSVR(C=3.0, tol=EXACT, scale_C=True).fit(X, unit * y)
    single = tausvm.QuantileSVR(tau=LEVELS, C=3.0, tol=EXACT, scale_C=True).fit(X, unit * y)
    np.testing.assert_allclose(
        path.predict(new, tau=LEVELS) / unit, single.predict(new) / unit, atol=1e-6
    )


@few
@given(seed=seeds, tau=st.floats(0.1, 0.9))
def test_labels_the_other_way_round(seed: int, tau: float) -> None:
    X, y, new = data(seed)
    one = tausvm.TauSVC(tau=tau, C=3.0, tol=EXACT).fit(X, y > 0).decision_function(new)
    two = tausvm.TauSVC(tau=1 - tau, C=3.0, tol=EXACT).fit(X, y <= 0).decision_function(new)
    np.testing.assert_allclose(-two, one, atol=1e-6)


# ---- the expectile at one half ----


@few
@given(seed=seeds, unit=units, C=st.sampled_from([0.1, 3.0, 100.0]))
def test_the_expectile_at_one_half_is_kernel_ridge(seed: int, unit: float, C: float) -> None:
    X, y, new = data(seed)
    ridge = KernelRidge(alpha=1.0 / C, kernel="rbf", gamma=0.5).fit(X, y).predict(new)
    for name in ("ExpectileSVR", "JointExpectileSVR"):
        model = getattr(tausvm, name)(tau=0.5, C=C, gamma=0.5, fit_intercept=False, tol=1e-12)
        found = fitted(model, X, unit * y).predict(new)
        np.testing.assert_allclose(found / unit, ridge, atol=1e-6, err_msg=name)


@few
@given(seed=seeds, unit=units, mean=means, C=st.sampled_from([0.1, 3.0, 100.0]))
def test_the_linear_expectile_at_one_half_is_ridge(
    seed: int, unit: float, mean: float, C: float
) -> None:
    X, y, new = data(seed)
    ridge = Ridge(alpha=1.0 / C).fit(X, y).predict(new)
    model = tausvm.LinearExpectileSVR(tau=0.5, C=C, tol=1e-12)
    found = fitted(model, X, unit * (y + mean)).predict(new)
    np.testing.assert_allclose(found / unit - mean, ridge, atol=1e-6)
    kernel = tausvm.ExpectileSVR(tau=0.5, C=C, kernel="linear", tol=1e-12)
    found = fitted(kernel, X, unit * (y + mean)).predict(new)
    np.testing.assert_allclose(found / unit - mean, ridge, atol=1e-6)
