"""One small fitted model of every public estimator, for tests of what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

import tausvm

#: a name of tausvm, with a variant after the colon, and how it is made
MAKERS: dict[str, Callable[[], Any]] = {
    "SVR": lambda: tausvm.SVR(),
    "SVR:linear": lambda: tausvm.SVR(kernel="linear"),
    "SVR:poly": lambda: tausvm.SVR(kernel="poly", degree=2, coef0=1.0, gamma=0.5),
    "SVR:laplacian": lambda: tausvm.SVR(kernel="laplacian", gamma=0.4),
    "SVR:exponential": lambda: tausvm.SVR(kernel="exponential", gamma=0.4),
    "SVR:sigmoid": lambda: tausvm.SVR(kernel="sigmoid", gamma=0.01, coef0=0.1),
    "SVR:squared": lambda: tausvm.SVR(loss="squared_epsilon_insensitive"),
    "QuantileSVR": lambda: tausvm.QuantileSVR(tau=[0.1, 0.5, 0.9]),
    "QuantileSVR:one": lambda: tausvm.QuantileSVR(tau=0.3),
    "QuantileSVR:clip": lambda: tausvm.QuantileSVR(tau=[0.02, 0.98], clip="range", C=100.0),
    "ExpectileSVR": lambda: tausvm.ExpectileSVR(tau=[0.1, 0.5, 0.9]),
    "ExpectileSVR:clip": lambda: tausvm.ExpectileSVR(tau=[0.02, 0.98], clip=2000.0),
    "JointQuantileSVR": lambda: tausvm.JointQuantileSVR(tau=[0.1, 0.5, 0.9]),
    "JointQuantileSVR:sorted": lambda: tausvm.JointQuantileSVR(
        tau=[0.4, 0.5, 0.6], gamma_tau=50.0, C=50.0
    ),
    "QuantileSVR:sorted": lambda: tausvm.QuantileSVR(tau=[0.6, 0.4, 0.5], C=50.0, gamma=2.0),
    "TauPathSVR:unsorted": lambda: tausvm.TauPathSVR(C=3.0, ordered=False),
    "JointExpectileSVR": lambda: tausvm.JointExpectileSVR(tau=[0.1, 0.5, 0.9], kernel="linear"),
    "JointSVR": lambda: tausvm.JointSVR(output_kernel=np.array([[1.0, 0.5], [0.5, 1.0]])),
    "JointQuantileSVRCV": lambda: tausvm.JointQuantileSVRCV(
        tau=[0.1, 0.9], Cs=2, gammas="distance_quantile", gamma_taus=[0.1, 5.0], cv=2
    ),
    "JointExpectileSVRCV": lambda: tausvm.JointExpectileSVRCV(
        tau=[0.1, 0.9], Cs=2, gammas=2, epsilons=[0.0, 0.2], cv=2
    ),
    "JointSVRCV": lambda: tausvm.JointSVRCV(Cs=2, gammas=2, cv=2),
    "LinearSVR": lambda: tausvm.LinearSVR(epsilon=0.1),
    "LinearSVRCV": lambda: tausvm.LinearSVRCV(Cs=3),
    "LinearSVRCV:tubes": lambda: tausvm.LinearSVRCV(Cs=2, epsilons=[0.0, 0.3]),
    "LinearQuantileSVRCV": lambda: tausvm.LinearQuantileSVRCV(tau=[0.1, 0.9], Cs=3, cv=3),
    "LinearExpectileSVRCV": lambda: tausvm.LinearExpectileSVRCV(tau=0.7, Cs=3, cv=3),
    "LinearQuantileSVR": lambda: tausvm.LinearQuantileSVR(tau=[0.1, 0.9]),
    "LinearExpectileSVR": lambda: tausvm.LinearExpectileSVR(tau=0.7),
    "TauPathSVC": lambda: tausvm.TauPathSVC(),
    "TauPathSVC:linear": lambda: tausvm.TauPathSVC(kernel="linear", penalise_intercept=True),
    "TauPathSVCCV": lambda: tausvm.TauPathSVCCV(Cs=2, gammas=2, cv=3),
    "TauPathSVR": lambda: tausvm.TauPathSVR(C=3.0),
    "TauSVC": lambda: tausvm.TauSVC(tau=0.3),
    "TauSVC:classes": lambda: tausvm.TauSVC(),
    "SVRCV": lambda: tausvm.SVRCV(Cs=2, gammas=2),
    "SVRCV:one": lambda: tausvm.SVRCV(Cs=2, gammas=2, refit=True),
    "SVRCV:linear": lambda: tausvm.SVRCV(Cs=2, kernel="linear"),
    "QuantileSVRCV": lambda: tausvm.QuantileSVRCV(tau=[0.1, 0.9], Cs=2, gammas=2),
    "QuantileSVRCV:calibrated": lambda: tausvm.QuantileSVRCV(
        tau=[0.9, 0.1, 0.5], Cs=2, gammas=2, calibrate="oof", clip="range"
    ),
    "QuantileSVRCV:average": lambda: tausvm.QuantileSVRCV(tau=0.5, Cs=2, gammas=2, refit="average"),
    "TabularQuantileSVR": lambda: tausvm.TabularQuantileSVR(tau=[0.1, 0.9], Cs=2, gammas=2),
    "TabularExpectileSVR": lambda: tausvm.TabularExpectileSVR(tau=0.7, Cs=2, gammas=2),
    "QuantileSVRCV:plain": lambda: tausvm.QuantileSVRCV(
        tau=[0.1, 0.9], Cs=2, gammas=2, feature_metric=None, kernel="rbf"
    ),
    "ExpectileSVRCV": lambda: tausvm.ExpectileSVRCV(tau=[0.1, 0.9], Cs=2, gammas=2),
    "ExpectileSVRCV:diagonal": lambda: tausvm.ExpectileSVRCV(
        Cs=2, gammas=2, kernel="rbf", feature_metric="diagonal"
    ),
    "SVRCV:turned": lambda: tausvm.SVRCV(
        Cs=2, gammas=2, kernel="exponential", feature_metric="full"
    ),
    "FeatureMetric": lambda: make_pipeline(tausvm.FeatureMetric("diagonal"), tausvm.SVR()),
    "FeatureMetric:full": lambda: make_pipeline(tausvm.FeatureMetric("full"), tausvm.SVR()),
}

ESTIMATORS = sorted(MAKERS)
#: those whose features are learned for sure, with the dimensions of their metric
LEARNED = {
    "ExpectileSVRCV:diagonal": 1,
    "SVRCV:turned": 2,
    "FeatureMetric": 1,
    "FeatureMetric:full": 2,
}


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows far from the origin, and targets that suit the estimator."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.sin(2 * X[:, 0]) + (0.3 + 0.2 * np.abs(X[:, 1])) * rng.normal(size=50)
    if name == "TauSVC:classes":
        return X, np.array(["low", "middle", "top"])[np.digitize(y, [-0.5, 0.5])]
    if "SVC" in name:
        return X, np.where(y > 0, "yes", "no")
    if name in ("JointSVR", "JointSVRCV"):
        return X, np.column_stack([y, X[:, 1] - y])
    if name in LEARNED:  # a plane in one direction, so that learned features win
        turned = X @ [1.0, 1.0, 0.0] if LEARNED[name] == 2 else X[:, 0]
        return X, 3.0 * np.sin(2 * turned) + 10.0 + 0.1 * y
    return X, 3.0 * y + 10.0


@cache
def fitted(name: str) -> tuple[Any, np.ndarray]:
    """A fitted model, and rows to predict at that it has not seen."""
    X, y = data(name)
    new = np.random.default_rng(1).normal(size=(40, 3))
    return MAKERS[name]().fit(X, y), new
