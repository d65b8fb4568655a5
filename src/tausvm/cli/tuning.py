"""Choosing C and γ by grid search, for the kinds without a selection of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from .. import inspection
from .settings import Settings


def grid_search(s: Settings, machine: Any) -> Any:
    """A search over C and γ of a classifier, by what errors cost at its level."""
    around = 10.0 ** np.linspace(-1, 2, max(s.grid, 2))
    grid = {"C": list(around * s.cost)}
    if s.one_kernel != "linear":
        grid["gamma"] = list(10.0 ** np.linspace(-2, 0, max(s.grid // 2, 2)))
    cv = StratifiedKFold(s.folds, shuffle=True, random_state=s.seed)
    return GridSearchCV(machine, grid, cv=cv, n_jobs=s.jobs, scoring=_CostScore(s.tau[0]))


@dataclass(frozen=True)
class _CostScore:
    """Minus what the errors cost at a level."""

    tau: float

    def __call__(self, machine: Any, X: Any, y: Any) -> float:
        counts = inspection.Confusion.of(np.asarray(y) == 1, machine.predict(X) == 1)
        return -counts.cost(2 * (1 - self.tau), 2 * self.tau) / len(y)
