"""What each part is worth: default calls with it, and with it switched off.

    python -m benchmarks.ablation                       # all parts, half an hour at most
    python -m benchmarks.ablation --parts "newton" "direct solves in block" --repeats 5

A part is a solver, an acceleration or a second precision. It is switched off by what a user could
write as well: another ``solver=``, or a settings object with a field changed. Both sides take turns
in one process, and the best of ``--repeats`` counts. A part earns its lines where its absence costs
somebody a quarter more time, that is, where it saves a fifth; one that does so nowhere is marked.
A part that this version does not have is named and left out.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .ablation_parts import PARTS, Part
from .places import Place
from .worker import Died, TooLong, Worker, request

#: a part is worth its lines where it saves this share of somebody's time
WORTH = 0.2
SIDES = ("with", "without")
#: characters for a place
WIDTH = 76
#: a run above these seconds is not repeated
SLOW = 10.0


@dataclass(frozen=True)
class Outcome:
    """One place with a part and without it; ``None`` where a side did not end, or not solve it."""

    place: Place
    seconds: dict[str, float | None]
    gaps: dict[str, float | None]
    #: why there are no seconds
    remark: str = ""

    @property
    def saved(self) -> float | None:
        """The share of the time without the part that it saves; 1 where only it finishes."""
        with_, without = (self.seconds[side] for side in SIDES)
        if with_ is None:
            return None
        return 1.0 if without is None else 1.0 - with_ / without


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    ends = time.monotonic() + 60.0 * args.minutes
    verdicts = {}
    with Worker(args.tree) as worker:
        for name in args.parts:
            part = PARTS[name]
            print(f"\n{name}: {part.why}\n{header(args.clock)}")
            outcomes = []
            for outcome in measured(part, worker, args, ends):
                print(row(outcome), flush=True)
                outcomes.append(outcome)
            verdicts[name] = verdict(outcomes)
    width = max(map(len, verdicts)) + 2
    print("\nsaves at most, of the time without it")
    for name, words in verdicts.items():
        print(f"{name:<{width}}{words}")


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART")
    parse.add_argument("--repeats", type=int, default=3, help="best of at most this many runs")
    parse.add_argument("--minutes", type=float, default=30.0, help="for all parts together")
    parse.add_argument("--limit", type=float, default=30.0, help="seconds of one run")
    parse.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parse.add_argument("--tree", type=Path, help="another built tree, or its interpreter")
    return parse


def measured(part: Part, worker: Any, args: argparse.Namespace, ends: float) -> Iterator[Outcome]:
    """The places of a part; none after one that says that this version does not have it."""
    for place in part.places:
        if time.monotonic() > ends:
            return
        outcome = measure(place, part, worker, args)
        yield outcome
        if outcome.remark.startswith("not here"):
            return


def measure(place: Place, part: Part, worker: Any, args: argparse.Namespace) -> Outcome:
    """Both sides in turn, the best of each."""
    seconds: dict[str, float | None] = dict.fromkeys(SIDES)
    gaps: dict[str, float | None] = dict.fromkeys(SIDES)
    remarks: dict[str, str] = {}
    fields = {"with": part.present, "without": part.absent}
    for _ in range(args.repeats):
        for side in SIDES:
            if side in remarks:
                continue
            try:
                answer = worker.ask(request(place, fields=fields[side]), args.limit)
            except (TooLong, Died) as error:
                late = isinstance(error, TooLong)
                remarks[side] = f"{side}: " + (f"over {args.limit:g} s" if late else "died")
                continue
            if "refused" in answer:
                nothing = dict.fromkeys(SIDES)
                return Outcome(place, nothing, nothing, f"not here: {answer['refused']}")
            gaps[side] = answer.get("gap")
            if answer.get("solved") is False:  # its seconds are those of giving up
                remarks[side] = f"{side}: not solved"
                continue
            seconds[side] = min(seconds[side] or math.inf, answer[args.clock])
        if max((each or 0.0) for each in seconds.values()) > SLOW:
            break
    return Outcome(place, seconds, gaps, "; ".join(remarks.values()))


def verdict(outcomes: Sequence[Outcome]) -> str:
    """What a part is worth at its best place."""
    known = [(outcome.saved, outcome.place) for outcome in outcomes if outcome.saved is not None]
    if not known:
        return next((outcome.remark for outcome in outcomes if outcome.remark), "not measured")
    most, place = max(known, key=lambda pair: pair[0])
    below = "" if most >= WORTH else "   BELOW A FIFTH EVERYWHERE"
    return f"{most:>5.0%}  at {place.estimator} {place.title}{below}"


def header(clock: str) -> str:
    """The titles of the columns of :func:`row`."""
    return (
        f"{'place':<{WIDTH + 1}}{f'with ({clock})':>13}{'without':>10}{'saves':>8}"
        f"{'gap with':>10}{'without':>10}"
    )


def row(outcome: Outcome) -> str:
    """A place in one line."""
    cells = [f"{outcome.place.estimator} {outcome.place.title}"[:WIDTH].ljust(WIDTH + 1)]
    for width, side in zip((13, 10), SIDES, strict=True):
        seconds = outcome.seconds[side]
        cells.append(f"{'–' if seconds is None else f'{seconds:.4f}':>{width}}")
    cells.append(f"{'–' if outcome.saved is None else f'{outcome.saved:.0%}':>8}")
    for side in SIDES:
        gap = outcome.gaps[side]
        cells.append(f"{'–' if gap is None else f'{gap:.1e}':>10}")
    return "".join(cells) + (f"  {outcome.remark}" if outcome.remark else "")


if __name__ == "__main__":
    main()
