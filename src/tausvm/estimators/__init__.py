"""Estimators with scikit-learn's interface."""

from .classification import TauSVC
from .joint import JointExpectileSVR, JointQuantileSVR, JointSVR
from .linear import LinearExpectileSVR, LinearQuantileSVR, LinearSVR
from .path import TauPathSVC, TauPathSVR
from .regression import SVR, ExpectileSVR, QuantileSVR

__all__ = [
    "SVR",
    "ExpectileSVR",
    "JointExpectileSVR",
    "JointQuantileSVR",
    "JointSVR",
    "LinearExpectileSVR",
    "LinearQuantileSVR",
    "LinearSVR",
    "QuantileSVR",
    "TauPathSVC",
    "TauPathSVR",
    "TauSVC",
]
