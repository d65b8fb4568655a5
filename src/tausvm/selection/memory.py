"""Memory for matrices, handed on from job to job."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Floats = NDArray[np.floating]


class Memory:
    """Arrays that one job has done with and the next can use.

    Fresh memory costs more than the kernel values that are written to it: the system hands it
    out page by page.
    """

    def __init__(self) -> None:
        self._free: deque[Floats] = deque()

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, ()

    def take(self, size: int, dtype: DTypeLike) -> Floats:
        """An array of at least so many numbers, of any content."""
        try:
            found = self._free.pop()
        except IndexError:
            found = np.empty(0, dtype=dtype)
        if len(found) < size or found.dtype != dtype:
            found = np.empty(size, dtype=dtype)
        return found

    def give(self, array: Floats) -> None:
        self._free.append(array)
