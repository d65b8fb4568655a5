"""Many problems on one matrix: several losses, each for many C."""

from .family import Family, Goal, Many, ManyResult, Mask, Place, Starts, Stop, Watch
from .solve import solve_many

__all__ = [
    "Family",
    "Goal",
    "Many",
    "ManyResult",
    "Mask",
    "Place",
    "Starts",
    "Stop",
    "Watch",
    "solve_many",
]
