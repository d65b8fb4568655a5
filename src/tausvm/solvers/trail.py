"""How a solve gets on: the fall of its gap so far, and the work that it leaves to do."""

from __future__ import annotations

import math


class Trail:
    """Work done and gaps found on the way.

    The smallest gap falls about as a power of the work does, so what is left is foretold from its
    fall since about half of the work was done: the first steps of a solve tell little, and a single
    gap may be larger than the one before.
    """

    #: the share of the work that is "about half": what came before is compared with
    PAST = 0.6

    def __init__(self) -> None:
        self.entries: list[tuple[float, float]] = []

    def note(self, work: float, gap: float) -> None:
        """A gap, after so much work in all."""
        self.entries.append((work, gap))

    @property
    def fall(self) -> float:
        """What the gap's logarithm has fallen by since the first entry; below 0 where it rose."""
        return math.log(self.entries[0][1] / self.entries[-1][1])

    def work_left(self, tol: float) -> float:
        """Work until the gap is ``tol``: infinite where it has not fallen, 0 where that is open."""
        work = self.entries[-1][0]
        past = [entry for entry in self.entries if entry[0] <= self.PAST * work]
        now = min(gap for _, gap in self.entries)
        before = min((gap for _, gap in past), default=math.inf)
        if now <= tol:
            return 0.0
        if now >= before:
            return math.inf
        if before == math.inf:
            return 0.0
        return math.log(now / tol) * (work - past[-1][0]) / math.log(before / now)

    def square_work_left(self, tol: float) -> float:
        """The same where gap / (1 − gap) falls as the square of the work does: the smallest gap and
        the work so far say it all."""
        now = min(gap for _, gap in self.entries)
        if now <= tol:
            return 0.0
        return self.entries[-1][0] * (math.sqrt(now / tol / max(1.0 - now, 1e-300)) - 1.0)
