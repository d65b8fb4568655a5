"""What goes wrong and what a script sees of it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

SUCCESS = 0
#: something that should not happen; the message asks for a report
UNEXPECTED = 1
#: a file, column or option that cannot be used
BAD_INPUT = 2
#: the model was fitted and saved, but stopped before its duality gap was reached
NOT_CONVERGED = 3
INTERRUPTED = 130


class InputError(Exception):
    """A file, column or option that cannot be used; the message names it in one line."""


def listed(items: Sequence[object], most: int = 5) -> str:
    """The first few items in words."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def similar(name: str, names: Sequence[str]) -> str:
    """A question after the name that may have been meant, empty where there is none like it."""
    small = {str(other).lower(): str(other) for other in names}
    near = difflib.get_close_matches(name.lower(), list(small), n=1)
    return f" (did you mean {small[near[0]]!r}?)" if near else ""
