"""What an experiment is, where its results are kept, and how they are told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: what is run in one go and kept at once: names and numbers, as JSON has them
Piece = dict[str, Any]
#: what a piece gave, as JSON has it
Found = dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: pieces that are run one by one, and what they tell together."""

    name: str
    #: of the papers, by the names of PAPERS in ``__main__``
    paper: str
    #: the tables and figures that it repeats
    shows: str
    #: all pieces, at full size or at one that runs in seconds
    pieces: Callable[[bool], Sequence[Piece]]
    run: Callable[..., Found]
    #: Markdown of what was found
    report: Callable[[list[Record]], str]
    #: draws into a file, if there is something to see
    draw: Callable[[list[Record], Path], None] | None = None

    @property
    def picture(self) -> str:
        return f"papers_{self.name.replace('-', '_')}.png"


@dataclass(frozen=True)
class Record:
    """A piece with what it gave and the seconds that took."""

    piece: Piece
    found: Found
    seconds: float

    def __getitem__(self, name: str) -> Any:
        return self.found[name] if name in self.found else self.piece[name]


class Store:
    """The records of all experiments, a file of JSON lines each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def records(self, name: str) -> list[Record]:
        file = self.file(name)
        if not file.is_file():
            return []
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        # two runs at a time may have done a piece both; the later one counts
        return [
            Record(**line) for line in {json.dumps(each["piece"]): each for each in lines}.values()
        ]

    def keep(self, name: str, record: Record) -> None:
        """Note it at once: a run that is stopped goes on after it."""
        line = {"piece": record.piece, "found": record.found, "seconds": record.seconds}
        with self.file(name).open("a", encoding="utf-8") as out:
            print(json.dumps(line, ensure_ascii=False), file=out)


def missing(experiment: Experiment, store: Store, quick: bool) -> list[Piece]:
    """Pieces without a record."""
    known = [record.piece for record in store.records(experiment.name)]
    return [piece for piece in experiment.pieces(quick) if piece not in known]


def run_piece(
    experiment: Experiment, piece: Piece, clock: Callable[[], float] = time.perf_counter
) -> Record:
    """A piece, and its seconds; numbers are rounded so that files stay small."""
    started = clock()
    found = experiment.run(**piece)
    return Record(piece, rounded(found), round(clock() - started, 3))


def rounded(value: Any, digits: int = 6) -> Any:
    """The same with every float at so many significant digits."""
    if isinstance(value, dict):
        return {str(key): rounded(each, digits) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    if hasattr(value, "tolist"):
        return rounded(value.tolist(), digits)
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(each) for each in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A number as it is read: four digits, and no more than are there."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def within(ours: float, theirs: float, deviation: float) -> str:
    """Whether a figure of ours is within two deviations of the paper's; if not, by how much."""
    away = (ours - theirs) / deviation
    return "yes" if abs(away) <= 2 else f"{away:+.1f} deviations"


def new_figure(rows: int, columns: int, size: tuple[float, float]) -> Any:
    """A figure that is drawn without a screen, and its axes as a table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Any, file: Path) -> None:
    """Write a figure and let it go."""
    import matplotlib.pyplot as plt

    figure.savefig(file, dpi=90)
    plt.close(figure)
