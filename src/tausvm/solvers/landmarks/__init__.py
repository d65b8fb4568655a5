"""Functions of a few rows, the loss over all of them: for more rows than a kernel matrix has room.

A problem is solved by features of the landmarks with the solvers of linear machines, and certified
against the full problem.
"""

from .centres import PivotedCholesky, Pivoting
from .full import LandmarkResult, full_certificate
from .settings import Landmarks
from .solve import solve_landmarks
from .thinning import Sparsification, Thinning, thinned

__all__ = [
    "LandmarkResult",
    "Landmarks",
    "PivotedCholesky",
    "Pivoting",
    "Sparsification",
    "Thinning",
    "full_certificate",
    "solve_landmarks",
    "thinned",
]
