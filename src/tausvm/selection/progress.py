"""How far a selection is: a bar where rich is installed, log lines otherwise."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..estimators.progress import progress_log

logger = logging.getLogger("tausvm")

Advance = Callable[[], None]


@contextmanager
def progress(verbose: bool, title: str, total: int) -> Iterator[Advance]:
    """A function to call after each of ``total`` parts; it does nothing unless verbose."""
    if not verbose:
        yield lambda: None
        return
    try:
        from rich.progress import Progress
    except ImportError:
        with progress_log(verbose):
            yield _LogLines(title, total)
        return
    with Progress(transient=True) as bar:
        line = bar.add_task(title, total=total)
        yield lambda: bar.advance(line)


class _LogLines:
    """One line a part, with an estimate of the time that is left."""

    def __init__(self, title: str, total: int) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.started = time.perf_counter()

    def __call__(self) -> None:
        self.done += 1
        spent = time.perf_counter() - self.started
        left = spent / self.done * (self.total - self.done)
        logger.info(
            "%s: %d of %d, %.1f s, about %.1f s left",
            self.title,
            self.done,
            self.total,
            spent,
            left,
        )
