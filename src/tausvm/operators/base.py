"""What every operator gives: products with K for certificates, and a way to end long work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..threads import share_out, thread_count

Array = NDArray[np.float64]

#: bytes of kernel values computed at a time: long enough for BLAS, short enough for Ctrl-C
CHUNK_BYTES = 8 << 20
#: seconds to multiply and add an entry of a matrix that is held
SECONDS_AN_ENTRY = 1e-9


class Operator(ABC):
    """The kernel matrix K of a problem, in whatever way it is at hand.

    A function is Σ βᵢ k(xᵢ, ·). How it is written down is the operator's business: by β itself
    unless there is something shorter, such as the weights of the features of a linear machine.
    Everything here is in float64 and from the data, never from values that were rounded to be
    kept: certificates rely on it.

    What some solvers need besides is added by the classes below: rows and blocks of K
    (:class:`~tausvm.operators.KernelOperator`), features (a linear machine's rows).
    """

    #: called between parts of long work; ends it by an exception
    watch: Callable[[], None] | None = None
    #: whether solvers see rounded values, so that a β found with them solves a problem nearby
    rounded: bool = False
    #: bytes of kernel values that are computed at a time
    chunk_bytes: int = CHUNK_BYTES
    #: kernel values, or entries of rows held, from which on their work is shared out to threads: a
    #: few tenths of a millisecond, some ten times what it takes to start one
    shared_values: int = 1 << 19
    shared_entries: int = 1 << 21
    #: threads at most: each has kernel values of its own in hand, and memory serves few at a time
    most_threads: int = 8
    #: columns that are one thread's at a time in sums over rows; no sum depends on who has them
    strip: int = 1024

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows n, and levels or outputs p."""

    @abstractmethod
    def product(self, beta: Array) -> Array:
        """Kβ: the values at all rows of the function of β."""

    @abstractmethod
    def certificate_seconds(self, support: int) -> float:
        """About how long the products of a certificate take, for so many rows with β ≠ 0."""

    def function(self, beta: Array) -> Array:
        """The function Σ βᵢ k(xᵢ, ·)."""
        return beta

    def values(self, function: Array) -> Array:
        """f(xᵢ) for every row."""
        return self.product(function)

    def norm2(self, function: Array, values: Array | None = None) -> float:
        """‖f‖², from the values at the rows where they are known."""
        if values is None:
            values = self.values(function)
        return float(np.vdot(function, values))

    def inner(self, function: Array, other: Array) -> float:
        """⟨f, g⟩."""
        return float(np.vdot(function, self.values(other)))

    def chunk_rows(self, columns: int) -> int:
        """How many rows of kernel values are computed at a time."""
        return max(1, self.chunk_bytes // (8 * max(columns, 1)))

    def share(self, work: Callable[[slice], None], count: int, step: int, shared: bool) -> None:
        """``work`` on the slices of a range, ``step`` long at most: in threads, if ``shared``."""

        def part(start: int, halted: Callable[[], bool]) -> None:
            if not halted():
                self.pause()
                work(slice(start, min(start + step, count)))

        workers = min(thread_count(), self.most_threads) if shared else 1
        share_out(part, range(0, count, step), workers)

    def pause(self) -> None:
        """A moment at which long work may be ended."""
        if self.watch is not None:
            self.watch()

    def __len__(self) -> int:
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        """Without the watch: who watches is not part of a matrix."""
        return {name: value for name, value in vars(self).items() if name != "watch"}


__all__ = ["Operator"]
