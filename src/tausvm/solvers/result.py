"""What a solver is told and what it returns."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .problem import Point, Problem

Array = NDArray[np.float64]


class Status(enum.Enum):
    """How a solve ended.

    ``VIOLATION_TOL`` and ``STOPPED_BY_RULE``: a rule held that was asked for; the gap is above
    ``tol``.
    """

    SOLVED = "solved"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STOPPED_BY_CALLBACK = "stopped_by_callback"
    VIOLATION_TOL = "violation_tol"
    STOPPED_BY_RULE = "stopped_by_rule"
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


#: a gap above this says that nothing good is known: the dual is less than half of the primal
VACUOUS = 0.5


def rank(gap: float, primal: float) -> tuple[float, float]:
    """The gap decides which of two points is better, and the primal where no gap says anything."""
    return min(gap, VACUOUS), primal if math.isfinite(primal) else math.inf


@dataclass(frozen=True)
class Patience:
    """When a solve is given up, and how far a certificate may outrun a limit."""

    #: checks in a row without progress, and exact checks in a row that fail to lower the gap,
    #: before a solve is given up
    checks: int = 30
    #: a gap has fallen where it is below this share of what it last fell to
    fall: float = 0.7
    #: checks in a row without a fall after which rounded rows are suspected: soon where the gap
    #: is small enough for their rounding, late where only a large C could make it matter
    stale_checks: int = 10
    stale_checks_far: int = 40
    #: the relative gap below which the rounding of float32 rows shows at ordinary C
    rounded_gap: float = 1e-4
    #: how much values of rows in float32 are off, as a share of the largest: four roundings
    row_rounding: float = 2.0**-22
    #: a certificate may take this share of the time limit beyond it, or so many seconds
    overrun_share: float = 0.05
    overrun_seconds: float = 0.5


#: a rule gives the number that is compared with ``tol``, for a point whose values f(xᵢ) and offset
#: are set; the relative gap where no other rule is asked for
StoppingRule = Callable[["Problem", "Point"], float]


@dataclass(frozen=True)
class SolverOptions:
    """When to stop: what every solver obeys.

    Parameters
    ----------
    tol : float
        Stop at ``primal − dual ≤ tol·max(|primal|, |dual|)``.
    max_iter : int
        Bound on the solver's iterations; −1 for none.
    time_limit : float or None
        Bound in seconds, the certificate included.
    callback : callable or None
        Called with a :class:`Progress` at every gap check; a true result stops the solve.
    seed : int
        Of random orders and samples.
    rule : callable or None
        Compared with ``tol`` instead of the gap: ``rule(problem, point)``. It says nothing of the
        gap: unless that is within ``tol`` too, the status is ``STOPPED_BY_RULE``.
    clock : callable
        Seconds, as ``time_limit`` counts them; tests inject one.
    patience : Patience
    """

    tol: float = 1e-4
    max_iter: int = -1
    time_limit: float | None = None
    callback: Callable[[Progress], object] | None = None
    seed: int = 0
    rule: StoppingRule | None = None
    clock: Callable[[], float] = time.perf_counter
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        if not self.tol >= 0:
            raise ValueError(f"tol must be a number >= 0, got {self.tol!r}")

    def with_(self, **changes: object) -> SolverOptions:
        """A copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def after(self, result: SolverResult) -> SolverOptions:
        """What is left of the limits after a solve that another goes on from."""
        left, iterations = self.time_limit, self.max_iter
        if left is not None:
            left = max(left - result.seconds, 0.0)
        if iterations >= 0:
            iterations = max(iterations - result.n_iter, 0)
        return replace(self, time_limit=left, max_iter=iterations)


@dataclass
class SolverResult:
    """A solution with its certificate.

    ``primal_objective``, ``dual_objective``, ``dual_gap`` (relative) and
    ``kkt_violation`` are recomputed from the data in float64 after the solve.

    Attributes
    ----------
    beta : array (n,) or (n, p)
        The dual solution.
    intercept : float or array (p,)
        The offset b, 0 without one.
    fitted : array (n,) or (n, p)
        f(xᵢ) without the offset; a warm start recycles it.
    trace : list of Progress
        The gap checks on the way.
    function : array
        The f that predicts, as the operator writes functions: the weights w of a linear machine,
        β itself for kernels.
    """

    beta: Array
    intercept: Any
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
    function: Array = field(default_factory=lambda: np.empty(0))

    @property
    def solver_gap(self) -> float:
        """The gap that ``tol`` is about."""
        return self.dual_gap

    @property
    def rank(self) -> tuple[float, float]:
        """Of two results the one with the smaller rank is kept."""
        return rank(self.dual_gap, self.primal_objective)
