"""What a fit says on the way and at the end: log lines and the convergence warning."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ..solvers import Progress, SolverOptions, SolverResult, Status

logger = logging.getLogger("tausvm")
PACKAGE = __name__.partition(".")[0] + "."

#: columns whose sizes differ by this factor are named in the advice to scale them
UNEVEN = 100.0


@contextmanager
def progress_log(verbose: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A callback that logs gap checks to "tausvm" at INFO, visible while the context lasts.

    A handler on stderr is added only where logging has none.
    """
    if not verbose:
        yield None
        return
    level = logger.level
    handler = None if logger.hasHandlers() else logging.StreamHandler()
    if handler is not None:
        logger.addHandler(handler)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield _log_line
    finally:
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


def _log_line(progress: Progress) -> None:
    logger.info(
        "iteration %d, %.2f s: primal %.8g, dual %.8g, relative gap %.2e",
        progress.n_iter,
        progress.seconds,
        progress.primal_objective,
        progress.dual_objective,
        progress.gap,
    )


def caller_level() -> int:
    """The ``stacklevel`` of a warning, issued where this is called, that is about the line which
    called the library."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def warn_unless_solved(
    name: str,
    results: Sequence[SolverResult],
    options: SolverOptions,
    time_limit: float | None,
    X: Any = None,
) -> None:
    """A ConvergenceWarning about the level with the largest gap among those not solved.

    ``X`` are the features, whose columns may be what makes rounding fail.
    """
    unsolved = [result for result in results if result.status is not Status.SOLVED]
    if not unsolved:
        return
    worst = max(unsolved, key=lambda result: result.solver_gap)
    cause, remedy = {
        Status.MAX_ITER: (f"it reached max_iter={options.max_iter}", "Raise max_iter"),
        Status.TIME_LIMIT: (f"it reached time_limit={time_limit} s", "Raise time_limit"),
        Status.NUMERICAL_ERROR: (
            "rounding let it get no further: the problem is too ill-conditioned for this tol",
            "Raise tol",
        ),
        Status.STOPPED_BY_CALLBACK: ("its callback stopped it", "Let it go on"),
        Status.VIOLATION_TOL: ("violation_tol was reached first", "Lower violation_tol"),
        Status.STOPPED_BY_RULE: ("another rule than the gap ended it", "Leave out the rule"),
    }[worst.status]
    among = f" for {len(unsolved)} of {len(results)} levels" if len(results) > 1 else ""
    warnings.warn(
        f"{name} did not converge{among}: the relative duality gap is {worst.solver_gap:.2e}, "
        f"above tol={options.tol:g}, after {worst.n_iter} iterations of solver "
        f"{worst.solver!r}; {cause}. {remedy}, {_scaling(X)}, lower C, try another solver, "
        "or accept a larger tol.",
        ConvergenceWarning,
        stacklevel=caller_level(),
    )


def _scaling(X: Any) -> str:
    """The advice to scale the data, with what speaks for it."""
    advice = "scale the columns of X (sklearn.preprocessing.StandardScaler)"
    if X is None or X.shape[1] < 2:
        return "scale the data" if X is None else advice
    with np.errstate(over="ignore"):
        squares = X.multiply(X) if sp.issparse(X) else np.square(X - X.mean(axis=0))
        sizes = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
    sizes = sizes[sizes > 0]
    if len(sizes) == 0 or sizes.max() < UNEVEN * sizes.min():
        return advice
    return f"{advice}: their sizes lie between {sizes.min():.0e} and {sizes.max():.0e}"
