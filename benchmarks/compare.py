"""Two versions of tausvm at the same places, in one run.

    python -m benchmarks.compare OLD NEW                       # all lists, 15 minutes at most
    python -m benchmarks.compare OLD NEW --points speed joint --repeats 5
    python -m benchmarks.compare OLD NEW --points map --minutes 60

OLD and NEW are folders whose ``src/tausvm`` is built, or interpreters with tausvm installed. Each
side has a process of its own; they take turns, and the best of ``--repeats`` counts, by processor
and by wall time. A ratio is old over new: above 1 the new one is faster. Only public estimators are
used. A list's geometric mean is the figure to look at; a single ratio near 1 is noise.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .compare_lists import LISTS
from .places import Place
from .worker import Died, TooLong, Worker, request

CLOCKS = ("cpu", "wall")
SIDES = ("old", "new")
#: characters for a place
WIDTH = 76
#: a run above these seconds is not repeated
SLOW = 5.0
#: a gap counts as worse when it is more than this many times the other and above the tolerance
WORSE_GAP = 2.0
#: the worst geometric mean that passes
PASSES = 0.9


@dataclass
class Pair:
    """One place under both versions; what a side could not do has no seconds."""

    place: Place
    seconds: dict[str, dict[str, float]]
    gaps: dict[str, float | None]
    remark: str = ""

    def ratio(self, clock: str) -> float | None:
        """Old over new."""
        old, new = (self.seconds[clock].get(side) for side in SIDES)
        return None if old is None or new is None else old / new


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 where a list's geometric mean is worse than ``PASSES``."""
    args = parser().parse_args(arguments)
    ends = time.monotonic() + 60.0 * args.minutes
    share = 60.0 * args.minutes / len(args.points)
    means: dict[str, dict[str, float]] = {}
    with Worker(args.old) as old, Worker(args.new) as new:
        for k, name in enumerate(args.points):
            until = ends - share * (len(args.points) - 1 - k)  # time left over goes to the next
            print(f"\n{name}: {LISTS[name].__doc__ or name}\n{header()}")
            wanted = LISTS[name]()
            pairs = list(compared({"old": old, "new": new}, wanted, until, args))
            means[name] = {clock: geometric_mean(pairs, clock) for clock in CLOCKS}
            print(summary(pairs, len(wanted)))
    print(f"\n{'geometric mean, old over new':<30}" + "".join(f"{clock:>8}" for clock in CLOCKS))
    for name, mean in means.items():
        print(f"{name:<30}" + "".join(f"{mean[clock]:>8.2f}" for clock in CLOCKS))
    judged = [mean[args.clock] for mean in means.values() if not math.isnan(mean[args.clock])]
    return int(any(mean < PASSES for mean in judged))


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("old", type=Path, help="folder or interpreter")
    parse.add_argument("new", type=Path, help="folder or interpreter")
    parse.add_argument("--points", nargs="+", default=list(LISTS), choices=LISTS, metavar="LIST")
    parse.add_argument("--repeats", type=int, default=3, help="best of at most this many runs")
    parse.add_argument("--minutes", type=float, default=15.0, help="for all lists together")
    parse.add_argument("--limit", type=float, default=30.0, help="seconds of one run")
    parse.add_argument("--clock", choices=CLOCKS, default="cpu", help="that decides the exit code")
    parse.add_argument("--out", type=Path, help="JSON lines of all places as well")
    return parse


def compared(
    workers: dict[str, Worker], wanted: Sequence[Place], until: float, args: argparse.Namespace
) -> Iterator[Pair]:
    """Both versions at each place, printed as soon as they are measured, until the time is over."""
    for place in wanted:
        if time.monotonic() > until:
            return
        pair = compare(place, workers, args.repeats, args.limit)
        print(row(pair), flush=True)
        if args.out is not None:
            with args.out.open("a") as out:
                print(json.dumps(asdict(pair)), file=out)
        yield pair


def compare(place: Place, workers: dict[str, Any], repeats: int, limit: float) -> Pair:
    """The best of some rounds in which the two take turns; the first alternates with the place."""
    pair = Pair(place, {clock: {} for clock in CLOCKS}, dict.fromkeys(SIDES))
    remarks: dict[str, str] = {}
    for turn in range(repeats):
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            if side in remarks:
                continue
            try:
                answer = workers[side].ask(request(place), limit)
            except TooLong:
                remarks[side] = f"{side} over {limit:g} s"
                continue
            except Died:
                remarks[side] = f"{side} died"
                continue
            if "refused" in answer:
                remarks[side] = f"{side}: {answer['refused']}"
                continue
            for clock in CLOCKS:
                best = pair.seconds[clock].get(side, math.inf)
                pair.seconds[clock][side] = min(best, answer[clock])
            pair.gaps[side] = answer.get("gap")
        slowest = max(pair.seconds["wall"].values(), default=math.inf)
        if slowest > SLOW:
            break
    pair.remark = "; ".join([*remarks.values(), *worse_gap(pair)])
    return pair


def worse_gap(pair: Pair) -> list[str]:
    """A remark where the new gap is larger than its tolerance allows and than the old one."""
    old, new = pair.gaps["old"], pair.gaps["new"]
    tol = json.loads(pair.place.params).get("tol", 1e-4)
    if old is None or new is None or new <= max(tol, WORSE_GAP * old):
        return []
    return ["the gap is worse"]


def geometric_mean(pairs: Sequence[Pair], clock: str) -> float:
    """Of the ratios there are; NaN without any."""
    ratios = [ratio for pair in pairs if (ratio := pair.ratio(clock)) is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def header() -> str:
    """The titles of the columns of :func:`row`."""
    clocks = "".join(f"{f'old {clock}':>10}{f'new {clock}':>10}{'ratio':>7}" for clock in CLOCKS)
    return f"{'place':<{WIDTH + 1}}{clocks}{'old gap':>9}{'new gap':>9}"


def row(pair: Pair) -> str:
    """A place in one line."""
    cells = [f"{pair.place.estimator} {pair.place.title}"[:WIDTH].ljust(WIDTH + 1)]
    for clock in CLOCKS:
        for side in SIDES:
            seconds = pair.seconds[clock].get(side)
            cells.append(f"{'–':>10}" if seconds is None else f"{seconds:>10.4f}")
        ratio = pair.ratio(clock)
        cells.append(f"{'–':>7}" if ratio is None else f"{ratio:>7.2f}")
    for side in SIDES:
        gap = pair.gaps[side]
        cells.append(f"{'–':>9}" if gap is None else f"{gap:>9.1e}")
    return "".join(cells) + (f"  {pair.remark}" if pair.remark else "")


def summary(pairs: Sequence[Pair], wanted: int) -> str:
    """What a list came to."""
    parts = []
    for clock in CLOCKS:
        ratios = [ratio for pair in pairs if (ratio := pair.ratio(clock)) is not None]
        if ratios:
            mean = geometric_mean(pairs, clock)
            parts.append(f"{clock} {mean:.2f} (least {min(ratios):.2f}, most {max(ratios):.2f})")
    left = f"; {wanted - len(pairs)} places left out for time" if len(pairs) < wanted else ""
    return f"old over new, geometric mean of {len(pairs)}: {', '.join(parts) or 'none'}{left}"


if __name__ == "__main__":
    raise SystemExit(main())
