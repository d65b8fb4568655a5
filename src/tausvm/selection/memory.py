"""Memory for matrices, handed on from job to job."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
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
        #: matrices of all rows, by γ
        self._kept: dict[float, Floats] = {}

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

    def matrix(self, gamma: float, make: Callable[[], Floats], most: int) -> Floats:
        """The matrix of all rows at a γ, which is kept while all are at most so many bytes."""
        found = self._kept.get(gamma)
        if found is None:
            found = make()
            if found.nbytes * (len(self._kept) + 1) <= most:
                self._kept[gamma] = found
        return found

    def give(self, array: Floats) -> None:
        self._free.append(array)
