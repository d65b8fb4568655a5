"""The free offset of one level: the zero of a decreasing piecewise linear function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.terms import moving_rows
from ..losses.terms import DualTerms
from .onedim import best_offset, middle, residual_range, smooth_offset, sorted_interval

Array = NDArray[np.float64]

#: up to this many rows the offset is found by sorting, which takes a tenth of a millisecond
SORTED = 1_000
#: rows are written down where they are fewer than this share of those before
KEPT = 0.1


def best_free_offset(terms: DualTerms, y: Array, fitted: Array, held: float) -> float:
    """The b that minimises Σ cᵢ ℓ(yᵢ − fᵢ − b) − h·b: the middle where an interval does."""
    if len(y) <= SORTED and held == 0.0:
        return best_offset(terms, y - fitted)
    if terms.smooth:
        return smooth_offset(terms.numbers, y, fitted, held)
    return middle(*offset_interval(terms, y, fitted, held))


def offset_interval(terms: DualTerms, y: Array, fitted: Array, held: float) -> tuple[float, float]:
    """Where Σ β(y − f − b) + h passes 0 as b rises: its last point above and first point below.

    Between two b's that have it between them most β do not change. So few rows are left soon, and
    these are sorted.
    """
    rows = Pull(terms, y, fitted, held)
    slack = 1e-12 * terms.room
    low, high = rows.guess()
    some, above, below = rows.between(low, high)
    if not above > slack or not below < -slack:  # a few rows did not tell
        low, high = rows.bracket()
        some = rows
    near, left, right = some.crossed(slack, low, high)
    first, last = near.zero(left, right, slack)
    if near.at(right) >= -slack:
        near, left, right = rows.crossed(-slack, first, high)
        last = near.zero(left, right, slack)[1]
    return first, max(first, last)


@dataclass(frozen=True)
class Pull:
    """Σ β(y − f − b) + h as a function of b: it falls as b rises. ``fitted`` is None for f = 0."""

    terms: DualTerms
    y: Array
    fitted: Array | None
    held: float

    def __len__(self) -> int:
        return len(self.y)

    def at(self, b: float) -> float:
        """Its value."""
        return self._moving(b, b, 0)[2]

    def between(self, low: float, high: float) -> tuple[Pull, float, float]:
        """The same between two b's, by fewer rows where most do not change; its values there."""
        room = max(int(KEPT * len(self)), SORTED)
        places, count, first, last, rest = self._moving(low, high, room)
        if count > room or count == len(self):
            return self, first, last
        some = places[:count]
        return Pull(self.terms.take(some), self._residual(some), None, rest), first, last

    def _residual(self, some: Any) -> Array:
        """y − f, of some rows."""
        return self.y[some] if self.fitted is None else self.y[some] - self.fitted[some]

    def _moving(
        self, low: float, high: float, room: int
    ) -> tuple[NDArray[np.int32], int, float, float, float]:
        """Rows that change there, up to ``room``, and how many; values, and what does not."""
        places = np.empty(room, dtype=np.int32)
        count, rest, first, last = moving_rows(
            self.terms.numbers, self.y, self.fitted, low, high, places
        )
        return places, count, first + self.held, last + self.held, rest + self.held

    def _sample(self) -> tuple[DualTerms, Array, Array]:
        """Terms and residuals of every so many rows, and where they change, in order."""
        some = np.arange(0, len(self), max(1, len(self) // SORTED))
        terms, residual = self.terms.take(some), self._residual(some)
        return terms, residual, np.sort([residual - terms.kink, residual + terms.kink], axis=None)

    def guess(self) -> tuple[float, float]:
        """Two b's that most likely have the zero between them, by every so many rows.

        These have their own zero, give or take the root of their number, in ranks; three of these
        are hardly ever too few.
        """
        terms, residual, knots = self._sample()
        share = len(residual) / len(self)
        b = middle(*sorted_interval(terms, residual, share * self.held, 0.0))
        rank, reach = int(np.searchsorted(knots, b)), 3 * int(np.sqrt(len(residual)))
        low, high = knots[max(rank - reach, 0)], knots[min(rank + reach, len(knots) - 1)]
        return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))

    def bracket(self) -> tuple[float, float]:
        """Two b's that have the zero between them, as far away as it takes."""
        low, high = residual_range(self.y, self.fitted)
        # where all residuals are 0 and there is no tube, any unit will do
        reach = float(self.terms.numbers[2].max()) + (high - low or abs(low)) or 1.0
        low, high = low - reach, high + reach
        while self.at(low) < 0 and np.isfinite(low):
            low -= 2.0 * (abs(low) + reach)
        while self.at(high) > 0 and np.isfinite(high):
            high += 2.0 * (abs(high) + reach)
        return low, high

    def crossed(self, level: float, low: float, high: float) -> tuple[Pull, float, float]:
        """Nearer b's between which it ceases to be above a level, with the few rows of theirs;
        neighbours of one number where many rows change at once."""
        rows = self
        while len(rows) > SORTED:
            _, _, knots = rows._sample()
            inside = knots[(knots > low) & (knots < high)]
            b = float(inside[len(inside) // 2]) if len(inside) else 0.5 * (low + high)
            if not low < b < high:
                break
            left, right = float(np.nextafter(b, -np.inf)), float(np.nextafter(b, np.inf))
            _, above, below = rows.between(left, right)
            if above > level >= below:
                return rows, left, right
            low, high = (right, high) if below > level else (low, left)
            rows = rows.between(low, high)[0]
        return rows, low, high

    def zero(self, low: float, high: float, slack: float) -> tuple[float, float]:
        """Where it is 0 within ``slack``, between two b's that it crosses a level between."""
        if len(self) > SORTED:
            return (0.5 * (low + high),) * 2
        if len(self) == 0:  # nothing changes
            return low, high
        return sorted_interval(self.terms, self._residual(slice(None)), self.held, slack)
