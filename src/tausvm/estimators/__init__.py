"""Estimators with scikit-learn's interface."""

from .classification import TauSVC
from .regression import SVR, ExpectileSVR, QuantileSVR

__all__ = ["SVR", "ExpectileSVR", "QuantileSVR", "TauSVC"]
