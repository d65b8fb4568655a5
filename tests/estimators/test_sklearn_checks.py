"""scikit-learn's own checks, none of them expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import JointExpectileSVR, JointQuantileSVR, JointSVR

from .data import ESTIMATORS

JOINT = (JointQuantileSVR, JointExpectileSVR, JointSVR)


@parametrize_with_checks([estimator() for estimator in (*ESTIMATORS, *JOINT)])
def test_check(estimator, check):
    check(estimator)
