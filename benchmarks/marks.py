"""What is wrong with a map: marks, from the seconds of its places.

A place's record has a list of seconds for each side, one a round; in a round the sides ran one
after the other. A ratio counts when it holds in three rounds, each for itself:

    falls      more rows of the same profile cost less, by more than ``FALLS``
    auto       ``auto`` takes more than ``AUTO`` times the best of its own solvers
    peer       a peer is faster by more than ``PEER``
    unsolved   the fit did not reach its ``tol``
    over       it did not end within the limit, and another side did
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .machines import MACHINES
from .places import Place, of_json
from .worker import LEAST

FALLS = 1.25
AUTO = 1.5
PEER = 1.25
ROUNDS = 3
#: the side that a user gets
OURS = "auto"
KINDS = ("falls", "auto", "peer", "unsolved", "over")


@dataclass(frozen=True)
class Mark:
    """One place where the map has a hole."""

    kind: str
    place: Place
    #: our best seconds there
    seconds: float
    #: who is faster, and its best seconds; "" and 0 where nobody is meant
    rival: str = ""
    rival_seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Ours over the rival's."""
        return self.seconds / self.rival_seconds if self.rival_seconds else float("nan")


@dataclass(frozen=True)
class Record:
    """A line of the map's file."""

    place: Place
    profile: str
    sides: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, line: dict[str, Any]) -> Record:
        """From JSON."""
        return cls(of_json(line["place"]), line["profile"], line["sides"])

    def runs(self, side: str, clock: str) -> list[float]:
        """Seconds of a side, one a round; empty where it did not finish."""
        return list(self.sides.get(side, {}).get(clock, []))

    def best(self, side: str, clock: str) -> float | None:
        """The best of them."""
        return min(self.runs(side, clock), default=None)


def exceeds(slow: Sequence[float], fast: Sequence[float], ratio: float) -> bool:
    """Whether ``slow`` is that much slower in each of three rounds."""
    if min(len(slow), len(fast)) < ROUNDS:
        return False
    return all(a > ratio * b for a, b in zip(slow, fast, strict=False))


def find(records: Iterable[Record], clock: str) -> list[Mark]:
    """All marks, the estimators in the map's order, the longest fits first."""
    records = list(records)
    marks = [mark for record in records for mark in _of_place(record, clock)]
    marks += _falling(records, clock)
    order = list(MACHINES)

    def rank(mark: Mark) -> tuple[int, int, float]:
        return order.index(mark.place.estimator), KINDS.index(mark.kind), -mark.seconds

    return sorted(marks, key=rank)


def _of_place(record: Record, clock: str) -> list[Mark]:
    """Marks that one place shows by itself."""
    place, ours = record.place, record.runs(OURS, clock)
    if not ours:
        return _over(record, clock)
    marks = []
    solvers = [side for side in MACHINES[place.estimator].solvers if record.runs(side, clock)]
    for kind, rivals, ratio in (
        ("auto", solvers, AUTO),
        ("peer", MACHINES[place.estimator].peers, PEER),
    ):
        faster = [side for side in rivals if exceeds(ours, record.runs(side, clock), ratio)]
        if faster:
            best = min(faster, key=lambda side: min(record.runs(side, clock)))
            marks.append(Mark(kind, place, min(ours), best, min(record.runs(best, clock))))
    if record.sides[OURS].get("solved") is False:
        marks.append(Mark("unsolved", place, min(ours)))
    return marks


def _over(record: Record, clock: str) -> list[Mark]:
    """A fit that did not end while another side did; where none did, that is as far as they go."""
    limit = record.sides.get(OURS, {}).get("over")
    ended = [side for side in record.sides if record.runs(side, clock)]
    if limit is None or not ended:
        return []
    best = min(ended, key=lambda side: min(record.runs(side, clock)))
    return [Mark("over", record.place, limit, best, min(record.runs(best, clock)))]


def _falling(records: Sequence[Record], clock: str) -> list[Mark]:
    """Places of a profile beyond which more rows cost less; of each, the cheapest such.

    A fit that did not end counts with the limit.
    """
    lines: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.profile != "random":
            lines[record.place.estimator, record.profile].append(record)
    marks = []
    for line in lines.values():
        line.sort(key=lambda record: record.place.n)
        for k, small in enumerate(line):
            limit = small.sides.get(OURS, {}).get("over")
            runs = small.runs(OURS, clock) if limit is None else [limit] * ROUNDS
            cheaper = [
                large for large in line[k + 1 :] if exceeds(runs, large.runs(OURS, clock), FALLS)
            ]
            if cheaper:
                least = min(cheaper, key=lambda record: min(record.runs(OURS, clock)))
                seconds = min(least.runs(OURS, clock))
                rows = f"{least.place.n:,} rows"
                marks.append(Mark("falls", small.place, min(runs), rows, seconds))
    return marks


def suspicious(sides: dict[str, dict[str, Any]], place: Place) -> bool:
    """Whether a first round looks like a mark, by either clock: then it is worth three."""
    first = Record(place, "", sides)
    machine = MACHINES[place.estimator]
    for clock in ("wall", "cpu"):
        ours = first.best(OURS, clock)
        if ours is None:
            return False
        rivals = [(side, AUTO) for side in machine.solvers]
        rivals += [(side, PEER) for side in machine.peers]
        for side, ratio in rivals:
            theirs = first.best(side, clock)
            if theirs is not None and ours > ratio * theirs:
                return True
    return False


def table(marks: Sequence[Mark]) -> str:
    """The marks in Markdown."""
    if not marks:
        return "No marks.\n"
    lines = [
        "| estimator | mark | place | seconds | rival | its seconds | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for mark in marks:
        more = "> " if mark.kind == "over" else ""
        rival = [mark.rival or "–", f"{mark.rival_seconds:.3g}", f"{more}{mark.ratio:.2f}"]
        if not mark.rival:
            rival[1:] = ["–", "–"]
        cells = [mark.place.estimator, mark.kind, mark.place.title, f"{more}{mark.seconds:.3g}"]
        lines.append("| " + " | ".join([*cells, *rival]) + " |")
    return "\n".join(lines) + "\n"


def explanation() -> str:
    """What the words in the table mean, in Markdown."""
    return (
        f"A ratio counts when it holds in {ROUNDS} rounds in which the sides took turns, each run "
        f"longer than {1e3 * LEAST:.0f} ms (shorter ones are repeated until then). *falls*: more "
        f"rows of the same profile cost less, by more than {FALLS}. *auto*: `auto` takes more than "
        f"{AUTO} times the best of its own solvers. *peer*: a peer is faster by more than {PEER}. "
        "*unsolved*: the fit did not reach its `tol`. *over*: it did not end within the limit, "
        "and another side did.\n"
    )
