"""Selection of C and γ by cross-validation that shares its work."""

from .estimators import SVRCV, ExpectileSVRCV, QuantileSVRCV

__all__ = ["SVRCV", "ExpectileSVRCV", "QuantileSVRCV"]
