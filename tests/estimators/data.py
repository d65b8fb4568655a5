"""Small data sets for the tests of estimators."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tausvm import SVR, ExpectileSVR, QuantileSVR, TauSVC

ESTIMATORS = (SVR, QuantileSVR, ExpectileSVR, TauSVC)
REGRESSORS = ESTIMATORS[:3]
#: a selection over C and γ alone: one kernel, features as they are
PLAIN = {"feature_metric": None, "kernel": "rbf"}


def wave(n: int = 60, d: int = 2, seed: int = 0) -> tuple[NDArray, NDArray]:
    """A sine in the first feature with noise that grows along it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.2 * (X[:, 0] + 2.5) * rng.normal(size=n)


def targets(estimator: object, y: NDArray) -> NDArray:
    """y for a regressor, two classes of it for a classifier."""
    classifier = isinstance(estimator, TauSVC) or estimator is TauSVC
    return np.where(y > np.median(y), "high", "low") if classifier else y


def output(model: object, X: object) -> NDArray:
    """What a model says before labels are made of it."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@st.composite
def weighted_problems(draw):
    """Small data with whole weights, some of them 0."""
    n = draw(st.integers(8, 25))
    weight = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    weight[:4] = np.maximum(weight[:4], 1)
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + rng.normal(size=n)
    y[:2] = -3.0, 3.0  # two classes for sure
    return X, y, weight
