"""Many problems on one matrix: several losses, each for many C."""

from .family import (
    Asked,
    Family,
    Goal,
    Many,
    ManyResult,
    Mask,
    PartResults,
    Place,
    Predictor,
    Starts,
    Stop,
)
from .solve import Matrices, solve_many, solve_parts

__all__ = [
    "Asked",
    "Family",
    "Goal",
    "Many",
    "ManyResult",
    "Mask",
    "Matrices",
    "PartResults",
    "Place",
    "Predictor",
    "Starts",
    "Stop",
    "solve_many",
    "solve_parts",
]
