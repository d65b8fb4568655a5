"""Solution paths: all levels τ of a hinge or pinball problem at once.

family      the problem of every τ        box     their bounds, straight lines in τ
follow      from a first solution to both ends of the path, with a rescue where a walk fails
walk        batches of kinks: walk -> verify -> accept or retry
window      the few points that a batch sees, and a check of the others
margin      the free points           trail   the kinks of a batch
check       a bound on the gap of every piece
record      what is written down      tau_path   what is kept of it
"""

from .box import MovingBox
from .family import PathProblem
from .follow import follow_path
from .result import PathResult
from .settings import PathOptions, PathSettings
from .state import PathError
from .tau_path import Chain, TauPath

__all__ = [
    "Chain",
    "MovingBox",
    "PathError",
    "PathOptions",
    "PathProblem",
    "PathResult",
    "PathSettings",
    "TauPath",
    "follow_path",
]
