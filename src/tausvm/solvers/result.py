"""What a solver is told and what it returns."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: how ``smo`` without offset chooses its variables
WORKING_SETS = ("nearest", "halves", "single")


class Status(enum.Enum):
    """How a solve ended.

    ``VIOLATION_TOL``: the rule of that name held, as was asked for; the gap is above ``tol``.
    """

    SOLVED = "solved"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STOPPED_BY_CALLBACK = "stopped_by_callback"
    VIOLATION_TOL = "violation_tol"
    NUMERICAL_ERROR = "numerical_error"

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        """By its value: what a saved model holds of it."""
        return Status, (self.value,)


@dataclass(frozen=True)
class Progress:
    """One line of a solver's trace, also what the callback receives.

    Attributes
    ----------
    n_iter : int
    seconds : float
        Since the solve began.
    primal_objective, dual_objective : float
    """

    n_iter: int
    seconds: float
    primal_objective: float
    dual_objective: float

    @property
    def gap(self) -> float:
        """The duality gap relative to the larger objective."""
        return relative_gap(self.primal_objective, self.dual_objective)


def relative_gap(primal: float, dual: float) -> float:
    """(primal − dual) / max(|primal|, |dual|), 0 where both are 0 and ∞ where one is not finite."""
    if not (math.isfinite(primal) and math.isfinite(dual)):
        return math.inf
    scale = max(abs(primal), abs(dual))
    return max(primal - dual, 0.0) / scale if scale > 0 else 0.0


@dataclass(frozen=True)
class SolverOptions:
    """When to stop and how to work; one object through all layers.

    Parameters
    ----------
    tol : float
        Stop at ``primal − dual ≤ tol·max(|primal|, |dual|)``.
    max_iter : int
        Bound on the solver's iterations; −1 for none.
    time_limit : float or None
        Bound in seconds.
    working_set : {"nearest", "halves", "single"}
        For ``smo`` without offset: WSS 2, WSS 1, or one variable.
    neighbours : int
        How many nearest points WSS 2 considers.
    shrinking : bool
        For ``smo`` with offset and ``dual_cd``: leave settled variables out until the final
        check.
    adaptive : bool
        For ``dual_cd``: after some passes visit rows the more often the more their steps gain;
        False is the paper's algorithm. Not together with ``violation_tol``.
    block_size : int or None
        The fewest variables per block in ``block``; None chooses by the number of samples.
    callback : callable or None
        Called with a :class:`Progress` at every gap check; a true result stops the solve.
    seed : int
        Of the random order in ``dual_cd``.
    violation_tol : float or None
        For ``dual_cd``: stop as well when the sum of the violations has fallen to this share
        of that in the first pass, the paper's rule (25). It says nothing of the gap: unless that
        is within ``tol`` too, the status is ``VIOLATION_TOL``.
    clock : callable
        Seconds, as ``time_limit`` counts them; tests inject one.
    """

    tol: float = 1e-4
    max_iter: int = -1
    time_limit: float | None = None
    working_set: str = "nearest"
    neighbours: int = 15
    shrinking: bool = True
    adaptive: bool = True
    block_size: int | None = None
    callback: Callable[[Progress], object] | None = None
    seed: int = 0
    violation_tol: float | None = None
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if self.working_set not in WORKING_SETS:
            names = ", ".join(map(repr, WORKING_SETS))
            raise ValueError(f"working_set must be one of {names}, got {self.working_set!r}")
        if not isinstance(self.neighbours, Integral) or self.neighbours < 1:
            raise ValueError(f"neighbours must be an integer >= 1, got {self.neighbours!r}")
        if self.block_size is not None and self.block_size < 2:
            raise ValueError(f"block_size must be at least 2, got {self.block_size!r}")
        if not self.tol >= 0:
            raise ValueError(f"tol must be a number >= 0, got {self.tol!r}")

    def with_(self, **changes: object) -> SolverOptions:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass
class SolverResult:
    """A solution with its certificate.

    ``primal_objective``, ``dual_objective``, ``dual_gap`` (relative) and
    ``kkt_violation`` are recomputed from the data in float64 after the solve.

    Attributes
    ----------
    beta : array (n,)
        The dual solution; f = Σ βᵢ k(xᵢ, ·).
    intercept : float
        The offset b, 0 without one.
    fitted : array (n,)
        f(xᵢ) without the offset; a warm start recycles it.
    trace : list of Progress
        The gap checks on the way.
    """

    beta: Array
    intercept: float
    fitted: Array
    status: Status
    primal_objective: float
    dual_objective: float
    dual_gap: float
    kkt_violation: float
    n_iter: int
    seconds: float
    solver: str = ""
    trace: list[Progress] = field(default_factory=list)
