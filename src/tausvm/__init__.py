"""Support vector machines at every level: quantiles, expectiles, ε-insensitive regression
and cost-sensitive classification, each fit with a certificate of how close to optimal it is.
"""

from .estimators import (
    SVR,
    ExpectileSVR,
    JointExpectileSVR,
    JointQuantileSVR,
    JointSVR,
    LinearExpectileSVR,
    LinearQuantileSVR,
    LinearSVR,
    QuantileSVR,
    TauPathSVC,
    TauPathSVR,
    TauSVC,
)
from .selection import SVRCV, ExpectileSVRCV, FeatureMetric, LinearSVRCV, QuantileSVRCV
from .tabular import TabularExpectileSVR, TabularQuantileSVR

__version__ = "0.1.0"

__all__ = [
    "SVR",
    "SVRCV",
    "ExpectileSVR",
    "ExpectileSVRCV",
    "FeatureMetric",
    "JointExpectileSVR",
    "JointQuantileSVR",
    "JointSVR",
    "LinearExpectileSVR",
    "LinearQuantileSVR",
    "LinearSVR",
    "LinearSVRCV",
    "QuantileSVR",
    "QuantileSVRCV",
    "TabularExpectileSVR",
    "TabularQuantileSVR",
    "TauPathSVC",
    "TauPathSVR",
    "TauSVC",
    "__version__",
]
