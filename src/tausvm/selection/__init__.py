"""Selection of C and γ by cross-validation that shares its work."""

from .estimators import SVRCV, ExpectileSVRCV, QuantileSVRCV
from .linear import LinearSVRCV

__all__ = ["SVRCV", "ExpectileSVRCV", "LinearSVRCV", "QuantileSVRCV"]
