"""What following a path gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..result import Status
from .tau_path import TauPath

Array = NDArray[np.float64]


@dataclass
class PathResult:
    """A path with its certificate.

    Attributes
    ----------
    path : TauPath
    status : Status
        SOLVED where every piece meets the tolerance.
    n_kinks : int
        Kinks in τ, those on the way to the first solution not counted.
    n_start : int
        Kinks on the way to the first solution.
    checked : array (n_pieces + 1,)
        The τ between which the pieces are, all from 0 to 1: each was checked as a whole.
    gaps : array (n_pieces,)
        On each piece a bound on the relative duality gap of ``path.solution``, from the data.
    thinned : int
        Of how many kinks one was kept: 1 unless the memory limit made it more.
    resolved : tuple of float or None
        The levels between which some kinks could not be followed and solutions were computed
        one by one instead.
    reached : tuple of float
        The levels between which the path was found before a limit ended the work.
    seconds : float
    """

    path: TauPath
    status: Status
    n_kinks: int
    n_start: int
    checked: Array
    gaps: Array
    thinned: int
    resolved: tuple[float, float] | None
    reached: tuple[float, float]
    seconds: float

    @property
    def dual_gap(self) -> float:
        """The largest bound on the gap of a piece."""
        return float(self.gaps.max())

    def above(self, tol: float) -> list[tuple[float, float, float]]:
        """The intervals of τ on which gaps may exceed ``tol``, each with its largest gap."""
        beyond = np.r_[False, self.gaps > tol, False]
        steps = np.diff(beyond.astype(int))
        begins, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        return [
            (float(self.checked[a]), float(self.checked[b]), float(self.gaps[a:b].max()))
            for a, b in zip(begins, ends, strict=True)
        ]
