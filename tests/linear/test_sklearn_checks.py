"""scikit-learn's own checks of the linear machines, none of them expected to fail."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import (
    LinearExpectileSVR,
    LinearExpectileSVRCV,
    LinearQuantileSVR,
    LinearQuantileSVRCV,
    LinearSVR,
    LinearSVRCV,
)


@parametrize_with_checks(
    [
        LinearSVR(),
        LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1),
        LinearSVR(solver="newton", intercept_scaling=1.0, tol=1e-12),
        LinearQuantileSVR(tau=0.3),
        LinearExpectileSVR(tau=0.7),
        LinearSVRCV(Cs=3, cv=3),
        LinearSVRCV(Cs=2, cv=2, epsilons=2),
        LinearQuantileSVRCV(tau=0.3, Cs=3, cv=3),
        LinearExpectileSVRCV(tau=0.7, Cs=3, cv=3),
    ]
)
def test_check(estimator, check):
    check(estimator)
