"""SciPy's distributions in a randomised search, as a name and its numbers.

What SciPy makes of ``loguniform(1, 10)`` holds methods and a random state. A file has the name and
the arguments instead, and what they stand for is made anew from them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scipy import stats
from sklearn.model_selection import RandomizedSearchCV

from .archive import ModelFileError


@dataclass
class Distribution:
    """A distribution of ``scipy.stats`` with its arguments."""

    name: str
    args: tuple[Any, ...] = ()
    kwds: dict[str, Any] = field(default_factory=dict)

    def frozen(self) -> Any:
        """What SciPy makes of it; a ModelFileError for a name that is no distribution."""
        known = getattr(stats, self.name, None) if isinstance(self.name, str) else None
        if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
            raise ModelFileError(f"it holds a distribution {self.name!r}, which SciPy has not")
        return known(*self.args, **self.kwds)


def described(model: Any) -> Any:
    """A search with its distributions described, any other model as it is."""
    return _exchanged(model, _described)


def restored(model: Any) -> Any:
    """The inverse of :func:`described`."""
    return _exchanged(model, lambda v: v.frozen() if isinstance(v, Distribution) else v)


def _described(value: Any) -> Any:
    name = getattr(getattr(value, "dist", None), "name", "")
    known = getattr(stats, name, None) if isinstance(name, str) else None
    # one of somebody's own with the name of another is left to be refused
    if known is None or type(known) is not type(value.dist):
        return value
    return Distribution(name, tuple(value.args), dict(value.kwds))


def _exchanged(model: Any, exchange: Callable[[Any], Any]) -> Any:
    if not isinstance(model, RandomizedSearchCV):
        return model
    given = model.param_distributions
    spaces = [
        {name: exchange(value) for name, value in space.items()}
        for space in (given if isinstance(given, list) else [given])
    ]
    model = copy.copy(model)
    model.param_distributions = spaces if isinstance(given, list) else spaces[0]
    return model
