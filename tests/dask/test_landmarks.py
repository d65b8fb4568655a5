"""Kernel machines on partitions, by landmarks, against the single machine's."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("dask", reason="the extra dask is not installed")

import dask.array as da
import dask.dataframe as dd
import pandas as pd
import scipy.sparse as sp

import tausvm
import tausvm.dask as lazy
from tausvm.dask.partitions import BadPartition
from tausvm.persistence import load, save

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(1200, 3))
Y = np.sin(3 * X[:, 0]) + (0.1 + 0.3 * (X[:, 1] > 0)) * RNG.normal(size=1200)
WEIGHT = RNG.integers(0, 3, size=1200).astype(float)
ROWS = da.from_array(X, chunks=(300, 3))
TARGETS = da.from_array(Y, chunks=300)
CASES = [
    ("SVR", {"epsilon": 0.1}),
    ("SVR", {"loss": "squared_epsilon_insensitive"}),
    ("QuantileSVR", {"tau": [0.1, 0.5, 0.9]}),
    ("QuantileSVR", {"tau": 0.8, "fit_intercept": False, "kernel": "laplacian"}),
    ("ExpectileSVR", {"tau": [0.2, 0.9], "C": 10.0}),
]


def objective(machine, x, y, weight=None):
    """Of the landmark problem, by the data: ½‖f‖² and the losses, for every level."""
    weight = np.ones(len(y)) if weight is None else weight
    centres = machine._points(machine.support_vectors_)
    K = machine._kernel.between(centres, centres)
    values = machine._decision_values(x)
    spread = np.sqrt(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))
    out = []
    for loss, alpha, column in zip(machine._losses(), machine.dual_coef_, values.T, strict=True):
        smooth = np.isinf(loss.dual_terms(y, weight).upper).all()
        scale = 1.0 if smooth or not machine.scale_C else spread
        losses = weight @ loss.value(y - column)
        out.append(0.5 * alpha @ K @ alpha + machine.C * scale * losses)
    return np.array(out)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_the_optimum_is_that_of_these_landmarks(name, parameters):
    """The single machine with the same landmarks and no others."""
    parameters = {"gamma": 1.0, "tol": 1e-5, **parameters}
    model = getattr(lazy, name)(landmarks=60, random_state=0, **parameters).fit(ROWS, TARGETS)
    assert np.max(model.landmark_gap_) <= model.tol
    assert model.n_passes_ <= 12
    kind = getattr(tausvm, name)
    many = kind(approximation="landmarks", landmarks=400, **parameters).fit(X, Y)
    few = kind(approximation="landmarks", landmarks=60, **parameters).fit(X, Y)
    ours, best, other = (objective(m, X, Y) for m in (model.single(), many, few))
    assert (ours >= best * (1 - 1e-4)).all()
    assert (ours <= 1.1 * other).all()


def test_the_gap_is_of_the_function_that_predicts():
    """The reported primal is the objective by the data, in float64."""
    for name, parameters in CASES[:3]:
        model = getattr(lazy, name)(landmarks=60, gamma=1.0, **parameters).fit(ROWS, TARGETS)
        results = model.result_ if isinstance(model.result_, list) else [model.result_]
        told = [result.primal_objective for result in results]
        np.testing.assert_allclose(told, objective(model.single(), X, Y), rtol=1e-7)


def test_the_gap_to_the_full_problem_is_not_made_better_than_it_is():
    """It means the same as that of the single machine, which the full solve shows."""
    model = lazy.QuantileSVR(tau=0.7, landmarks=10, gamma=1.0).fit(ROWS, TARGETS)
    full = tausvm.QuantileSVR(tau=0.7, gamma=1.0, tol=1e-6).fit(X, Y)
    primal, best = model.result_.primal_objective, full.result_.primal_objective
    assert model.landmark_gap_ <= model.tol < (primal - best) / primal <= model.dual_gap_ == 1.0
    assert model.single().dual_gap_ == 1.0 and not model.result_.exact


def test_weights_are_copies_and_frames_are_arrays():
    copies = np.repeat(np.arange(1200), WEIGHT.astype(int))
    weighted = lazy.QuantileSVR(tau=0.7, landmarks=200, gamma=1.0, tol=1e-6)
    weighted.fit(ROWS, TARGETS, da.from_array(WEIGHT, chunks=300))
    copied = lazy.QuantileSVR(tau=0.7, landmarks=200, gamma=1.0, tol=1e-6)
    copied.fit(da.from_array(X[copies], chunks=(300, 3)), da.from_array(Y[copies], chunks=300))
    difference = np.abs(weighted.predict(X) - copied.predict(X)).max()
    assert difference < 0.05 * Y.std()
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y}), 4)
    model = lazy.QuantileSVR(tau=0.7, landmarks=50).fit(frame[["a", "b", "c"]], frame["y"])
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    lazily = model.predict(frame[["a", "b", "c"]])
    assert len(lazily.compute()) == 1200
    sparse = ROWS.map_blocks(sp.csr_matrix)
    assert lazy.SVR(landmarks=50).fit(sparse, TARGETS).landmark_gap_ <= 1e-3


def test_a_single_machine_is_what_to_save(tmp_path):
    model = lazy.QuantileSVR(tau=[0.1, 0.9], landmarks=40).fit(ROWS, TARGETS)
    alone = model.single()
    assert type(alone) is tausvm.QuantileSVR
    np.testing.assert_allclose(model.predict(ROWS).compute(), alone.predict(X), atol=1e-12)
    np.testing.assert_array_equal(alone.predict(X), model.predict(X))
    save(alone, tmp_path / "model.tausvm")
    np.testing.assert_array_equal(load(tmp_path / "model.tausvm").predict(X), alone.predict(X))


def test_faults_and_parameters():
    bad = X.copy()
    bad[700, 1] = np.nan
    with pytest.raises(BadPartition, match=r"partition 2: X must be finite, got nan in row 100"):
        lazy.SVR(landmarks=20).fit(da.from_array(bad, chunks=(300, 3)), TARGETS)
    with pytest.raises(ValueError, match="landmarks must be"):
        lazy.SVR(landmarks=0).fit(ROWS, TARGETS)
    with pytest.raises(ValueError, match="precomputed"):
        lazy.SVR(kernel="precomputed").fit(ROWS, TARGETS)
    with pytest.raises(TypeError, match="X must be a dask array"):
        lazy.SVR().fit(X, Y)
