"""Estimators with scikit-learn's interface."""

from .classification import TauSVC
from .joint import JointExpectileSVR, JointQuantileSVR, JointSVR
from .regression import SVR, ExpectileSVR, QuantileSVR

__all__ = [
    "SVR",
    "ExpectileSVR",
    "JointExpectileSVR",
    "JointQuantileSVR",
    "JointSVR",
    "QuantileSVR",
    "TauSVC",
]
