"""Checks of parameters: each error names the parameter, what it must be and what it got."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def refuse(name: str, wanted: str, got: object) -> ValueError:
    """The error for a parameter with a value that cannot be used."""
    return ValueError(f"{name} must be {wanted}, got {got!r}")


def is_real(value: object) -> bool:
    """Whether this is one finite real number (a bool is not)."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_positive(name: str, value: object) -> None:
    if not (is_real(value) and value > 0):  # type: ignore[operator]
        raise refuse(name, "a finite number > 0", value)


def check_cost(C: object) -> None:
    """C > 0; the hard margin that an infinite one asks for is refused with the reason."""
    if isinstance(C, Real) and math.inf == C:
        raise ValueError(
            "C must be a finite number > 0, got inf: a hard margin lets no row cost anything, and "
            "where no function does that there is no solution; take a large C, such as 1e6"
        )
    check_positive("C", C)


def check_finite(name: str, value: object) -> None:
    if not is_real(value):
        raise refuse(name, "a finite number", value)


def check_integer(name: str, value: object, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise refuse(name, f"an integer >= {least}", value)


def check_jobs(n_jobs: object) -> None:
    """As joblib takes it."""
    if n_jobs is not None:
        check_integer("n_jobs", n_jobs, -(2**31))
        if n_jobs == 0:
            raise refuse("n_jobs", "None or an integer other than 0", 0)


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool | np.bool_ | Integral):
        raise refuse(name, "True or False", value)


def check_choice(name: str, value: object, choices: Sequence[str], otherwise: str = "") -> None:
    """``otherwise`` says what else the parameter may be, for the message."""
    if not isinstance(value, str) or value not in choices:
        wanted = "one of " + ", ".join(repr(choice) for choice in choices)
        raise refuse(name, f"{wanted} or {otherwise}" if otherwise else wanted, value)


def seed_of(random_state: Any) -> int:
    """A seed from scikit-learn's ``random_state``; 0 for None, so that fits repeat themselves."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))
