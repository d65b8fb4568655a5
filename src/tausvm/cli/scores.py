"""The figures at the end of a fit, as JSON that a table or a script reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import inspection
from ..solvers.landmarks import LandmarkResult


def regression_scores(model: Any, y: Any, predictions: Any) -> dict[str, Any]:
    """Loss and coverage of every level, and the share of rows where levels cross."""
    scored = inspection.score_levels(model, y, predictions)
    crossings = inspection.crossings(model, predictions)
    return {"levels": level_rows(model, scored), "crossings": crossings}


def level_rows(model: Any, scored: Sequence[inspection.LevelScore]) -> list[dict[str, Any]]:
    """A row a level: its scores, and the figures of its machine."""
    return [
        {"tau": s.tau, "loss": s.loss, "coverage": s.coverage, **_machine_figures(model, k)}
        for k, s in enumerate(scored)
    ]


def classification_scores(
    model: Any, actual: NDArray[np.bool_], decided: NDArray[np.bool_], tau: float
) -> dict[str, Any]:
    """Errors of both kinds, and what they cost at the level's own costs 2(1 − τ) and 2τ."""
    counts = inspection.Confusion.of(actual, decided)
    row = {
        "tau": tau,
        "loss": counts.cost(2 * (1 - tau), 2 * tau) / max(len(actual), 1),
        "accuracy": counts.accuracy,
        "missed": counts.false_negative,
        "false_alarms": counts.false_positive,
        **_machine_figures(model, 0),
    }
    return {"levels": [row], "crossings": None}


def _machine_figures(model: Any, level: int) -> dict[str, Any]:
    """Support vectors, gap and seconds of a level, and what was chosen for it."""
    figures: dict[str, Any] = {"support": None, "gap": None, "seconds": None, "status": None}
    if inspection.has_path(model):
        machine = inspection.path_machine(model)
        result = machine.result_
        figures.update(
            kinks=int(machine.n_kinks_),
            gap=float(machine.dual_gap_),
            seconds=float(result.seconds),
            status=result.status.value,
            **next(iter(inspection.chosen_parameters(model)), {}),
        )
        return figures
    supports = inspection.support_counts(model)
    if supports:
        figures["support"] = supports[min(level, len(supports) - 1)]
    results = inspection.certificates(model)
    if results:
        result = results[min(level, len(results) - 1)]
        figures.update(
            gap=float(result.dual_gap), seconds=float(result.seconds), status=result.status.value
        )
        if isinstance(result, LandmarkResult):
            figures["landmark_gap"] = float(result.landmark_gap)
    chosen = inspection.chosen_parameters(model)
    if chosen:
        figures.update(chosen[min(level, len(chosen) - 1)])
    return figures
