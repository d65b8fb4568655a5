"""Choosing C and γ by grid search, for the kinds without a selection of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from .. import inspection
from .settings import Settings


def grid_search(s: Settings, machine: Any) -> Any:
    """A search over C, and γ where the machine has one."""
    around = 10.0 ** np.linspace(-1, 2, max(s.grid, 2))
    grid = {"C": list(around * s.cost)}
    if hasattr(machine, "gamma") and s.one_kernel != "linear":
        grid["gamma"] = list(10.0 ** np.linspace(-2, 0, max(s.grid // 2, 2)))
    if is_classifier(machine):
        cv = StratifiedKFold(s.folds, shuffle=True, random_state=s.seed)
        return GridSearchCV(machine, grid, cv=cv, n_jobs=s.jobs, scoring=_CostScore(s.tau[0]))
    cv = KFold(s.folds, shuffle=True, random_state=s.seed)
    return GridSearchCV(machine, grid, cv=cv, n_jobs=s.jobs, scoring=_level_score)


def _level_score(machine: Any, X: Any, y: Any) -> float:
    """Minus the mean of the losses of the levels."""
    scored = inspection.score_levels(machine, y, inspection.predictions(machine, X))
    return -float(np.mean([level.loss for level in scored]))


@dataclass(frozen=True)
class _CostScore:
    """Minus what the errors cost at a level."""

    tau: float

    def __call__(self, machine: Any, X: Any, y: Any) -> float:
        given = {"tau": self.tau} if inspection.has_path(machine) else {}
        decided = machine.predict(X, **given)
        counts = inspection.Confusion.of(np.asarray(y) == 1, decided == 1)
        return -counts.cost(2 * (1 - self.tau), 2 * self.tau) / len(y)
