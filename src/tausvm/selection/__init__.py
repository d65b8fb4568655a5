"""Selection of C and γ by cross-validation that shares its work, and of features."""

from .estimators import SVRCV, ExpectileSVRCV, QuantileSVRCV
from .feature_metric import FeatureMetric
from .joint import JointExpectileSVRCV, JointQuantileSVRCV, JointSVRCV
from .linear import LinearExpectileSVRCV, LinearQuantileSVRCV, LinearSVRCV
from .path import TauPathSVCCV

__all__ = [
    "SVRCV",
    "ExpectileSVRCV",
    "FeatureMetric",
    "JointExpectileSVRCV",
    "JointQuantileSVRCV",
    "JointSVRCV",
    "LinearExpectileSVRCV",
    "LinearQuantileSVRCV",
    "LinearSVRCV",
    "QuantileSVRCV",
    "TauPathSVCCV",
]
