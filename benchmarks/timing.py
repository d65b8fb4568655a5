"""Fair timing: one BLAS thread, the sides in turn, the best of a few runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

#: no repeat of a run longer than this many seconds
SLOW = 20.0
#: a run shorter than this is repeated until then, and counts with the mean: the first call after
#: the collector finds all caches cold
LEAST = 0.02


@dataclass
class Timing:
    """The best of the runs of one side, and what its last run returned."""

    seconds: float
    runs: int
    value: Any


def rounds(seconds: float, most: int) -> int:
    """How many runs a side gets whose first run took this long."""
    if seconds > SLOW:
        return 1
    return min(most, 2 if seconds > 5.0 else 3 if seconds > 1.0 else 5)


def alternate(sides: Sequence[Callable[[], Any]], most: int) -> list[Timing]:
    """Run the sides in turn, up to ``most`` times each and less where they are slow."""
    timings = [_run(side) for side in sides]
    wanted = [rounds(timing.seconds, most) for timing in timings]
    for turn in range(1, max(wanted)):
        for k, side in enumerate(sides):
            if turn < wanted[k]:
                again = _run(side)
                best = min(timings[k].seconds, again.seconds)
                timings[k] = Timing(best, turn + 1, again.value)
    return timings


def _run(side: Callable[[], Any]) -> Timing:
    gc.collect()  # a Gram matrix of the run before must not cost this one its memory
    calls, started = 0, time.perf_counter()
    while True:
        value = side()
        calls, seconds = calls + 1, time.perf_counter() - started
        if seconds >= LEAST:
            return Timing(seconds / calls, 1, value)
