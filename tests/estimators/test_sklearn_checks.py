"""scikit-learn's own checks, none of them expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from .data import ESTIMATORS


@parametrize_with_checks([estimator() for estimator in ESTIMATORS])
def test_check(estimator, check):
    check(estimator)
