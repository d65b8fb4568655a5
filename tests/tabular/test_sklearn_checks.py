"""scikit-learn's own checks, none of them expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from tausvm import TabularExpectileSVR, TabularQuantileSVR
from tausvm.tabular import FramePreparation


@parametrize_with_checks(
    [
        FramePreparation(),
        TabularQuantileSVR(Cs=3, gammas=3, cv=3),
        TabularExpectileSVR(Cs=3, gammas=3, cv=3),
    ]
)
def test_check(estimator, check):
    check(estimator)
