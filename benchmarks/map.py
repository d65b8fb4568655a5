"""The map: seconds of every estimator over rows, features, targets, costs and levels.

    python -m benchmarks.map                        # three hours at most; goes on where it stopped
    python -m benchmarks.map --quick                # two minutes
    python -m benchmarks.map --show                 # marks and figures of what is there
    python -m benchmarks.map --estimators SVR TauSVC --minutes 20

Around a centre (ten features, an easy target, C = 1, one level) one factor at a time takes its
other values, and each such profile is followed along n; 200 random places are measured besides.
Each place is run by every solver of the estimator and by its peers, the sides in turn, in a process
of its own that ends where a run takes longer than ``--limit``. Small n come first: what the time
does not suffice for are the largest. ``--out`` is a folder: ``map.jsonl`` has a line a place,
``marks.md`` the marks, and a figure an estimator is drawn beside them. README.md has the details.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import marks, peers, places
from .machines import MACHINES
from .marks import OURS, ROUNDS, Record
from .places import Place
from .worker import ROOT, Died, TooLong, Worker, request

#: our other solvers may take this many times what ``auto`` took, or a second: more tells nothing
RIVAL_PATIENCE = 3.0
#: marks of fits below these seconds are counted apart: hardly anybody waits for them
SHORT_FIT = 0.02
#: three rounds whatever the first shows, where one takes less than these seconds
SHORT = 1.0
#: whose versions are noted
PACKAGES = ("numpy", "scipy", "scikit-learn", "liquidSVM", "liblinear-official", "cvxopt")


@dataclass(frozen=True)
class Grid:
    """Which places are looked at."""

    most_rows: int
    profiles: int
    random: int
    limit: float
    minutes: float


FULL = Grid(most_rows=places.SIZES[-1], profiles=99, random=200, limit=20.0, minutes=180.0)
QUICK = Grid(most_rows=400, profiles=1, random=10, limit=2.0, minutes=2.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    grid = QUICK if args.quick else FULL
    survey = Survey(args.out / "map.jsonl", args.limit or grid.limit)
    if not args.show:
        ends = time.monotonic() + 60.0 * (args.minutes or grid.minutes)
        run(survey, chosen(grid, args.estimators, args.rows, args.random), ends)
    report(survey.records, args.out, args.clock)


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.map",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parse.add_argument("--out", type=Path, default=Path("map"), help="folder of the results")
    parse.add_argument("--minutes", type=float, help="at most; 180, with --quick 2")
    parse.add_argument("--limit", type=float, help="seconds of one run; 20, with --quick 2")
    parse.add_argument("--rows", type=int, help="leave out what has more rows")
    parse.add_argument("--random", type=int, help="random places; 200, with --quick 10")
    parse.add_argument(
        "--estimators", nargs="+", default=list(MACHINES), choices=MACHINES, metavar="NAME"
    )
    parse.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: for machines at work"
    )
    parse.add_argument("--quick", action="store_true", help="up to 400 rows, the centre alone")
    parse.add_argument("--show", action="store_true", help="measure nothing")
    return parse


def chosen(
    grid: Grid, estimators: Sequence[str], rows: int | None, random: int | None
) -> list[tuple[str, Place]]:
    """Profiles and places in the order of their n; a place of two profiles comes once."""
    most = min(grid.most_rows, rows or grid.most_rows)
    found = [
        (profile, place)
        for estimator in estimators
        for profile, change in list(places.profiles(estimator).items())[: grid.profiles]
        for place in places.along(estimator, change, most)
    ]
    count = grid.random if random is None else random
    found += [("random", place) for place in places.random_places(count, list(estimators), most)]
    return sorted(found, key=lambda pair: pair[1].n)


# --------------------------------------------------------------------- measuring


class Survey:
    """Measures places and keeps what it measured; what the file has is not measured again."""

    def __init__(self, file: Path, limit: float) -> None:
        self.file = file
        self.limit = limit
        self.records: list[Record] = []
        #: (estimator, profile, side) -> sizes in a row at which it took too long
        self.late: dict[tuple[str, str, str], int] = {}
        if file.exists():
            for line in file.read_text().splitlines():
                row = json.loads(line)
                if "place" in row:
                    self._know(Record.read(row))

    def knows(self, profile: str, place: Place) -> bool:
        """Whether the place was measured for this profile."""
        return any(record.place == place and record.profile == profile for record in self.records)

    def note(self, row: dict[str, Any]) -> None:
        """A line of the file, at once."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as out:
            print(json.dumps(row), file=out)

    def measure(self, worker: Worker, profile: str, place: Place) -> Record:
        """All sides of a place, in turn; three rounds where they are short or look like a mark."""
        sides: dict[str, dict[str, Any]] = {}
        for side in self._sides(profile, place):
            sides[side] = self._run(worker, place, side, self._patience(place, side, sides), {})
        first = sum(side["wall"][0] for side in sides.values() if "wall" in side)
        if first <= SHORT or marks.suspicious(sides, place):
            order = [name for name in sides if "wall" in sides[name]]
            for _ in range(ROUNDS - 1):
                # every other round backwards: what one leaves to the next, such as memory that has
                # to be touched anew, is not always the same side's to bear
                order.reverse()
                for side in order:
                    patience = max(2.0, 5.0 * max(sides[side]["wall"]))
                    sides[side] = self._run(worker, place, side, patience, sides[side])
        record = Record(place, profile, sides)
        self._know(record)
        self.note({"place": asdict(place), "profile": profile, "sides": sides})
        return record

    def _sides(self, profile: str, place: Place) -> list[str]:
        """Ours, our solvers and the peers, without those that were too slow for fewer rows.

        Ours gets a second chance: cost may fall with n, and the map is there to show it.
        """
        names = [OURS, *MACHINES[place.estimator].solvers, *peers.peers_of(place)]
        if profile == "random":
            return names
        chances = {OURS: 2}
        return [
            side
            for side in names
            if self.late.get((place.estimator, profile, side), 0) < chances.get(side, 1)
        ]

    def _patience(self, place: Place, side: str, sides: dict[str, dict[str, Any]]) -> float:
        """Seconds that a side may take."""
        if side not in MACHINES[place.estimator].solvers or "wall" not in sides.get(OURS, {}):
            return self.limit
        return min(self.limit, max(1.0, RIVAL_PATIENCE * sides[OURS]["wall"][0]))

    def _run(
        self, worker: Worker, place: Place, side: str, limit: float, before: dict[str, Any]
    ) -> dict[str, Any]:
        """One more round of a side."""
        try:
            answer = worker.ask(request(place, side), limit)
        except TooLong:
            return before or {"over": limit}
        except Died:
            return before or {"died": True}
        if "refused" in answer:
            return before or answer
        seconds = {clock: [*before.get(clock, []), answer[clock]] for clock in ("wall", "cpu")}
        judged = {name: answer[name] for name in ("gap", "solved") if name in answer}
        return {**seconds, **judged}

    def _know(self, record: Record) -> None:
        self.records.append(record)
        if record.profile == "random":
            return
        for side, result in record.sides.items():
            line = record.place.estimator, record.profile, side
            self.late[line] = self.late.get(line, 0) + 1 if "over" in result else 0


def run(survey: Survey, wanted: Sequence[tuple[str, Place]], ends: float) -> None:
    """Measure what is not known yet, until the time is over."""
    missing = peers.missing()
    print(f"left out, not installed: {', '.join(missing)}" if missing else "all peers installed")
    survey.note({"about": about()})
    rest = [(profile, place) for profile, place in wanted if not survey.knows(profile, place)]
    print(f"{len(wanted)} places, {len(wanted) - len(rest)} of them known", flush=True)
    with Worker() as worker:
        for done, (profile, place) in enumerate(rest):
            if time.monotonic() > ends:
                print(f"the time is over; {len(rest) - done} places are left for another run")
                return
            record = survey.measure(worker, profile, place)
            if record.sides:
                print(line_of(record), flush=True)


def line_of(record: Record) -> str:
    """A place and its seconds in one line."""
    parts = []
    for side, result in record.sides.items():
        if "wall" in result:
            parts.append(f"{side} {1e3 * min(result['wall']):.4g}")
        elif "over" in result:
            parts.append(f"{side} > {1e3 * result['over']:.4g}")
    return f"{record.place.estimator:<20} {record.place.title:<45} ms: {', '.join(parts)}"


def about(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """What the numbers were measured with."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout.strip()
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "commit": commit,
        "versions": versions,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": load,
    }


# --------------------------------------------------------------------- reporting


def report(records: Sequence[Record], folder: Path, clock: str) -> None:
    """Print the marks, write them as Markdown, draw the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    found = marks.find(records, clock)
    seen = sorted({record.place.estimator for record in records}, key=list(MACHINES).index)
    counts = {kind: sum(mark.kind == kind for mark in found) for kind in marks.KINDS}
    total = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    slow = sum(mark.seconds > SHORT_FIT for mark in found)
    total += f"; {slow} of them are fits of more than {1e3 * SHORT_FIT:g} ms"
    (folder / "marks.md").write_text(
        f"{len(records):,} places, {len(seen)} estimators, {clock} seconds. Marks: {total}.\n\n"
        f"{marks.explanation()}\n{marks.table(found)}"
    )
    print(f"\n{marks.table(found)}\nmarks: {total}")
    try:
        from .map_figure import draw
    except ImportError:
        print("figures need matplotlib: left out")
        return
    for estimator in seen:
        draw(
            [record for record in records if record.place.estimator == estimator],
            [mark for mark in found if mark.place.estimator == estimator],
            clock,
            folder / f"{estimator}.png",
        )
    print(f"figures and marks.md are in {folder}")


if __name__ == "__main__":
    main()
