"""Selection of C and γ by cross-validation that shares its work, and of features."""

from .estimators import SVRCV, ExpectileSVRCV, QuantileSVRCV
from .feature_metric import FeatureMetric
from .linear import LinearExpectileSVRCV, LinearQuantileSVRCV, LinearSVRCV

__all__ = [
    "SVRCV",
    "ExpectileSVRCV",
    "FeatureMetric",
    "LinearExpectileSVRCV",
    "LinearQuantileSVRCV",
    "LinearSVRCV",
    "QuantileSVRCV",
]
