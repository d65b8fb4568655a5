"""The numbers of a solve by landmarks."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..linear import LinearAuto, LinearNewton, Systems
from .centres import Pivoting


def _solver() -> LinearAuto:
    """Newton's method on the features up to 5,000 of them: a Hessian of 200 MB."""
    return LinearAuto(newton=LinearNewton(systems=Systems(direct=5000)))


@dataclass(frozen=True)
class Landmarks:
    """How a problem on all rows is solved by functions of a few of them.

    Parameters
    ----------
    count : int or None
        Landmarks; None for as many as ``gap`` needs.
    gap : float or None
        The relative gap to the full problem that is wanted; None for ``usual_gap`` where the
        number of landmarks is free, and for no wish where it is given.
    megabytes : float
        For the features. More are kept in a file that is mapped into memory.
    """

    count: int | None = None
    gap: float | None = None
    megabytes: float = 2000.0
    #: rows up to which estimators with approximation="auto" solve the full problem, to ``tol`` and
    #: with sparse solutions. Full against 1,000 landmarks, processor s: 5.8 and 4.7 for 20,000 rows
    #: of ten features, 20.2 and 8.3 for 40,000
    full_rows: int = 20_000
    #: the gap where neither it nor the number of landmarks is given: a percent of the objective
    usual_gap: float = 0.01
    #: landmarks to begin with where their number is free, and by what they grow
    first: int = 250
    growth: int = 2
    #: landmarks at most where their number is free: a Hessian of 128 MB. Fewer where features in
    #: float32 would not fit into memory, but never less than ``first``
    most: int = 4000
    #: rows with β ≠ 0 up to which βᵀKβ is computed, 2e10 kernel values: about a minute and a half
    #: of one core for 10 features. Beyond, it is bounded in time n·m
    exact_rows: int = 200_000
    #: rows by which βᵀKβ is estimated beyond that, as the bound is too loose to go by: 8 s of one
    #: core for a million rows of 10 features
    sample_rows: int = 2000
    #: from so many rows on it is estimated first where landmarks can still be added, and not
    #: computed where the gap is so many times the one wanted
    few_rows: int = 10_000
    far: float = 1.5
    #: rows of an estimate where time is short
    fewest_rows: int = 50
    #: features are held in float64 for a tolerance below this, and where they take so many
    #: megabytes at most: what float32 saves is memory and the time to read it
    tight: float = 1e-6
    few_megabytes: float = 64.0
    #: what a bound of Rᵢᵢ from features in float32 allows for their rounding, as a share of k(x, x)
    rounding: float = 1e-6
    #: dense rows that are multiplied with themselves at a time: one call of BLAS, some milliseconds
    hessian_rows: int = 400
    #: the share of what time is left that the choice of landmarks may take before those that there
    #: are by then have to do: features take about twice as long, and levels more
    choice_share: float = 0.2
    #: the share of what time is left that βᵀKβ may take
    energy_share: float = 0.3
    pivoting: Pivoting = field(default_factory=Pivoting)
    solver: LinearAuto = field(default_factory=_solver)

    def limit(self, n: int) -> int:
        """Landmarks at most for n rows where their number is free."""
        fits = int(self.megabytes * 2**20 / (4 * n))
        return max(self.first, min(self.most, fits))

    @property
    def wanted(self) -> float | None:
        """The gap to the full problem that is asked for."""
        return self.usual_gap if self.gap is None and self.count is None else self.gap


__all__ = ["Landmarks"]
