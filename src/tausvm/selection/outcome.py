"""What a selection says at its end: warnings about the search, and about what predicts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..estimators.progress import caller_level
from ..solvers import Status
from ..solvers.landmarks import LandmarkResult
from .members import Member
from .search import Search


def warn_of_search(name: str, search: Search, time_limit: float | None) -> None:
    """One warning where time was up, and one for all fits that fell short."""
    if search.cut_short:
        looked, points = search.looked_at
        taken = "the best of them was taken" if looked else "the one in the middle was taken"
        _warn(
            f"{name} reached time_limit={time_limit} s before the search was over: {looked} of "
            f"{points} points of the grid have a score, and {taken}. Raise time_limit, or "
            "take fewer points, folds or rows."
        )
    if search.unsolved:
        _warn(
            f"{name}: {len(search.unsolved)} fits of the selection, of "
            f"{search.n_fits + np.isinf(search.unsolved).sum()}, did not reach a relative "
            f"duality gap of selection_tol={search.task.options.tol:g}; the largest is "
            f"{max(search.unsolved):.2e}. Their scores count as they are, except that fits "
            "without any solution are left out."
        )


def warn_of_members(
    name: str, members: Sequence[Member], tol: float, max_iter: int, time_limit: float | None
) -> None:
    """One warning for all machines that predict and are not solved: the worst, and what to do."""
    gaps = {id(m): m.result.solver_gap for m in members if m.result is not None and not m.solved}
    if not gaps:
        return
    worst = max((m for m in members if id(m) in gaps), key=lambda m: gaps[id(m)])
    assert worst.result is not None
    cause, remedy = {
        Status.MAX_ITER: (f"it reached max_iter={max_iter}", "Raise max_iter"),
        Status.TIME_LIMIT: (f"it reached time_limit={time_limit} s", "Raise time_limit"),
    }.get(worst.result.status, ("rounding let it get no further", "Raise tol"))
    machine = worst.machine
    named = [f"{key}={getattr(machine, key):g}" for key in ("tau", "C") if hasattr(machine, key)]
    if not isinstance(machine.gamma, str):
        named.append(f"gamma={machine.gamma:g}")
    rows = "all rows" if worst.fold is None else f"the training rows of fold {worst.fold}"
    _warn(
        f"{name} did not converge: {len(gaps)} of {len(members)} machines that predict have a "
        f"relative duality gap above tol={tol:g}. The largest is {gaps[id(worst)]:.2e}, of "
        f"{', '.join(named)} on {rows}; {cause}. {remedy}, scale the data, leave out the largest "
        "Cs, or accept a larger tol."
    )


def warn_of_landmarks(name: str, members: Sequence[Member], telling_gap: float) -> None:
    """Where functions of the landmarks that were taken are far from the full problem's."""
    found = [m.result for m in members if isinstance(m.result, LandmarkResult)]
    worst = max(found, key=lambda result: result.gap_estimate, default=None)
    if worst is None or worst.gap_estimate <= telling_gap:
        return
    rows = "" if worst.exact else ", by a sample of rows"
    _warn(
        f"{name}: with {len(worst.landmarks)} landmarks the relative gap to the full problem is "
        f"{worst.gap_estimate:.2g}{rows}. More landmarks may predict better: give landmarks= or "
        "landmark_tol=, raise cache_size, or approximation=None for the full problem."
    )


def warn_of_calibration(name: str, time_limit: float | None) -> None:
    """Where there are no out-of-fold predictions to calibrate by."""
    _warn(
        f"{name}: calibrate='oof' found no out-of-fold predictions, and the levels are as fitted. "
        f"Raise time_limit={time_limit}, or look at the warnings about the search."
    )


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=caller_level())
