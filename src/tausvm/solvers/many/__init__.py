"""Many problems on one matrix: several losses, each for many C."""

from .family import Family, Goal, Many, ManyResult, Mask, Place, Stop, Validation
from .solve import solve_many

__all__ = [
    "Family",
    "Goal",
    "Many",
    "ManyResult",
    "Mask",
    "Place",
    "Stop",
    "Validation",
    "solve_many",
]
