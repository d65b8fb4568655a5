"""Every experiment of the five papers in one command.

    python -m benchmarks.papers                    # all of it; goes on where it was stopped
    python -m benchmarks.papers --minutes 20       # as much as fits
    python -m benchmarks.papers --only path-pima joint-constants
    python -m benchmarks.papers --quick            # each at a size of seconds, into papers-quick/
    python -m benchmarks.papers --show             # the page and the pictures of what is there

Results are kept as they come in ``--out``, a file an experiment. At the end, and with ``--show``,
docs/papers-results.md and docs/images/papers_*.png are written from them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from tausvm.threads import one_blas_thread

from . import expectile, joint, linear, note, path
from .experiment import Experiment, Store, missing, run_piece

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"

PAPERS = {
    "expectile": "Farooq and Steinwart, An SVM-like Approach for Expectile Regression (2015)",
    "note": "Lu, A Supplement of Kernel-based SMO-SVR Algorithm (2017)",
    "linear": "Ho and Lin, Large-scale Linear Support Vector Regression (2012)",
    "joint": "Sangnier, Fercoq and d'Alché-Buc, Data sparse nonparametric regression with "
    "ε-insensitive losses (2017)",
    "path": "Yu, Vishwanathan and Zhang, The Entire Quantile Path of a Risk-Agnostic SVM "
    "Classifier (2009)",
}

EXPERIMENTS: tuple[Experiment, ...] = (
    *expectile.EXPERIMENTS,
    *note.EXPERIMENTS,
    *linear.EXPERIMENTS,
    *joint.EXPERIMENTS,
    *path.EXPERIMENTS,
)

HEAD = """# The papers' experiments, as run here

Written by `python -m benchmarks.papers`, which goes on where it was stopped and writes this page
again; [the papers, to the last table](papers.md) says what each experiment is for, and
[what we found different](different.md) what follows. Seconds are of the processor, one thread,
unless a table says otherwise; the machine did other work, so that ratios say more than seconds do.
What is printed in a paper stands beside what was measured here.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    args = parser().parse_args(arguments)
    by_name = {each.name: each for each in EXPERIMENTS}
    chosen = [by_name[name] for name in args.only or by_name]
    store = Store(args.out or (Path("papers-quick") if args.quick else RESULTS))
    if not args.show:
        with one_blas_thread():
            run(chosen, store, args.quick, 60.0 * args.minutes)
    docs = args.docs or (store.folder if args.quick else ROOT / "docs")
    page = write(chosen if args.quick else EXPERIMENTS, store, docs)
    print(f"written: {page}")


def parser() -> argparse.ArgumentParser:
    """The options."""
    parse = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [each.name for each in EXPERIMENTS]
    parse.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parse.add_argument("--minutes", type=float, default=float("inf"), help="no piece begins after")
    parse.add_argument("--quick", action="store_true", help="a size that runs in seconds")
    parse.add_argument("--show", action="store_true", help="run nothing, write what is there")
    parse.add_argument("--out", type=Path, help="folder of the results")
    parse.add_argument("--docs", type=Path, help="folder of the page; its pictures go to images/")
    return parse


def run(chosen: Sequence[Experiment], store: Store, quick: bool, seconds: float) -> None:
    """Every piece that has no record yet, until the time is over."""
    started = time.perf_counter()
    for experiment in chosen:
        pieces = missing(experiment, store, quick)
        done = len(experiment.pieces(quick)) - len(pieces)
        for count, piece in enumerate(pieces, done + 1):
            if time.perf_counter() - started >= seconds:
                print(f"time is over before {experiment.name} {count}; the same command goes on")
                return
            record = run_piece(experiment, piece)
            store.keep(experiment.name, record)
            what = ", ".join(f"{key} {value}" for key, value in piece.items())
            total = done + len(pieces)
            print(f"{experiment.name} {count}/{total}: {what}: {record.seconds:.1f} s", flush=True)


def write(experiments: Sequence[Experiment], store: Store, docs: Path) -> Path:
    """The page of what is known, and its pictures."""
    (docs / "images").mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for key, title in PAPERS.items():
        of_paper = [each for each in experiments if each.paper == key]
        if of_paper:
            parts.append(f"## {title}\n")
        for experiment in of_paper:
            parts.append(section(experiment, store, docs))
    page = docs / "papers-results.md"
    page.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    return page


def section(experiment: Experiment, store: Store, docs: Path) -> str:
    """What one experiment tells."""
    records = store.records(experiment.name)
    head = f"### {experiment.name}\n\n*{experiment.shows}.*"
    if not records:
        return f"{head} Not run yet: `python -m benchmarks.papers --only {experiment.name}`.\n"
    left = len(missing(experiment, store, False))
    some = f" {len(records)} pieces, {left} of the full size are left." if left else ""
    text = f"{head}{some}\n\n{experiment.report(records)}\n"
    if experiment.draw is not None:
        experiment.draw(records, docs / "images" / experiment.picture)
        text += f"\n![{experiment.shows}](images/{experiment.picture})\n"
    return text


if __name__ == "__main__":
    main()
