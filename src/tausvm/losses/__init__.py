"""Losses: value, conjugate and the five numbers of the dual, one small class each."""

from .base import Loss
from .group import GroupTerms
from .hinge import Hinge
from .linear import EpsilonInsensitive, Pinball
from .squared import SquaredEpsilonInsensitive, SquaredPinball
from .terms import DualTerms

__all__ = [
    "DualTerms",
    "EpsilonInsensitive",
    "GroupTerms",
    "Hinge",
    "Loss",
    "Pinball",
    "SquaredEpsilonInsensitive",
    "SquaredPinball",
]
