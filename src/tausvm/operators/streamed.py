"""The kernel matrix of many rows, of which nothing is kept: values are computed block by block."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.points import Points
from ..kernels.scalar import Kernel
from ..threads import share_out, thread_count
from .base import Operator

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: what is done with the kernel values of some rows: (part, rows, values)
BlockWork = Callable[[int, slice, Array], None]


@dataclass(frozen=True)
class Blocks:
    """Into which blocks passes over the kernel matrix are cut. No sum depends on the threads."""

    #: bytes of kernel values at a time and thread: 4 ns a value of 10 features from a block of this
    #: size that is used again and again, 12 ns into fresh memory
    bytes: int = 4 << 20
    #: centres of a sum that are taken at a time
    centres: int = 4096
    #: rows and columns of a block of βᵀKβ
    side: int = 724
    #: parts of a pass over the rows, each with sums of its own
    parts: int = 4
    #: seconds a kernel value takes until that was timed
    seconds_a_value: float = 1e-8


class StreamedKernel(Operator):
    """k(xᵢ, xⱼ) in float64, always from the data.

    A function is written by its coefficients at the rows, of which most may be 0.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    blocks : Blocks
    """

    def __init__(self, kernel: Kernel, points: Points, blocks: Blocks | None = None) -> None:
        self.kernel = kernel
        self.points = points
        self.blocks = blocks or Blocks()
        self.diagonal = kernel.diagonal(points)
        #: seconds a kernel value takes, by the clock and with all threads
        self.pace = self.blocks.seconds_a_value

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.points), 1

    def certificate_seconds(self, support: int) -> float:
        return self.pace * support * len(self)

    def energy_seconds(self, support: int) -> float:
        """About how long :meth:`energies` takes for so many rows with β ≠ 0."""
        return 0.5 * self.pace * support * support

    def product(self, beta: Array) -> Array:
        support = np.flatnonzero(beta)
        return self.combined(support, beta[support, None])[:, 0]

    def norm2(self, function: Array, values: Array | None = None) -> float:
        if values is None:
            return float(self.energies(function[:, None])[0])
        return float(np.vdot(function, values))

    def over_rows(self, centres: Points, work: BlockWork) -> None:
        """``work(part, rows, k(rows, centres))`` for all rows; the parts go on side by side."""
        n, m = len(self), len(centres)
        parts = min(self.blocks.parts, n)
        edges = [n * k // parts for k in range(parts + 1)]
        step = max(1, self.blocks.bytes // (8 * max(m, 1)))
        started = time.perf_counter()

        def part(k: int, halted: Callable[[], bool]) -> None:
            room = np.empty((min(step, n), m))
            for begin in range(edges[k], edges[k + 1], step):
                if halted():
                    return
                self.pause()
                rows = slice(begin, min(begin + step, edges[k + 1]))
                block = room[: rows.stop - begin]
                some = np.arange(len(block))
                self.kernel.fill(self.points.take(rows), centres, block, some)
                work(k, rows, block)

        share_out(part, list(range(parts)), min(parts, thread_count()))
        self.pace = (time.perf_counter() - started) / max(n * m, 1)

    def combined(self, centres: Index, coefficients: Array) -> Array:
        """Σⱼ coefficientsⱼ k(·, xⱼ) over the centres at all rows, (n, p)."""
        out = np.zeros((len(self), coefficients.shape[1]))
        if len(centres) == 0:
            return out
        whole, step = np.asarray(centres), self.blocks.centres
        for begin in range(0, len(whole), step):
            some = slice(begin, begin + step)

            def add(part: int, rows: slice, block: Array, some: slice = some) -> None:
                out[rows] += block @ coefficients[some]

            self.over_rows(self.points.take(whole[some]), add)
        return out

    def sums(self, centres: Points, beta: Array) -> Array:
        """Σᵢ k(zⱼ, xᵢ) βᵢ at the centres zⱼ for every column of β, (m, p)."""
        parts = [np.zeros((len(centres), beta.shape[1])) for _ in range(self.blocks.parts)]

        def add(part: int, rows: slice, block: Array) -> None:
            parts[part] += block.T @ beta[rows]

        self.over_rows(centres, add)
        return np.asarray(np.sum(parts, axis=0))

    def bounded_energies(self, beta: Array) -> Array:
        """βᵀKβ for every column of β, raised by what its sums may have rounded.

        A certificate needs it from above. Where kernel values are so large that they have to
        cancel, the sum alone may be anything, and less than nothing.
        """
        size = np.sqrt(np.maximum(self.diagonal, 0.0)) @ np.abs(beta)
        rounding = float(np.finfo(np.float64).eps) * np.square(size)
        return np.maximum(self.energies(beta), 0.0) + rounding

    def energies(self, beta: Array) -> Array:
        """βᵀKβ for every column of β, (p,): half of the matrix, once for all columns."""
        support = np.flatnonzero(beta.any(axis=1))
        some, side = np.ascontiguousarray(beta[support]), self.blocks.side
        starts = list(range(0, len(support), side))
        pieces = [self.points.take(support[s : s + side]) for s in starts]

        def one(i: int, halted: Callable[[], bool]) -> Array:
            total = np.zeros(beta.shape[1])
            here = pieces[i]
            room = np.empty((len(here), side))
            mine = some[starts[i] : starts[i] + side]
            for j in range(i, len(starts)):
                if halted():
                    break
                self.pause()
                there = pieces[j]
                # the last piece is shorter; values have to lie side by side
                block = room if len(there) == side else np.empty((len(here), len(there)))
                self.kernel.fill(here, there, block, np.arange(len(here)))
                values = block @ some[starts[j] : starts[j] + side]
                total += (1.0 if i == j else 2.0) * np.einsum("ip,ip->p", mine, values)
            return total

        totals = share_out(one, list(range(len(starts))), min(len(starts), thread_count()))
        return np.sum(totals, axis=0) if totals else np.zeros(beta.shape[1])


__all__ = ["Blocks", "StreamedKernel"]
