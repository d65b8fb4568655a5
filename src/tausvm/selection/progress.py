"""How far a selection is: a bar in a terminal where rich is installed, log lines otherwise.

Without a terminal nobody sees a bar, and a long part of the work would be silent: a line then says
every half minute that it goes on, and about how long.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..estimators.progress import progress_log
from .settings import BeatSettings

logger = logging.getLogger("tausvm")

Advance = Callable[[], None]


def in_terminal() -> bool:
    """Whether somebody looks on who can be shown a bar."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress(verbose: bool, title: str, total: int) -> Iterator[Advance]:
    """A function to call after each of ``total`` parts; it does nothing unless verbose."""
    if not verbose:
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        bars = False
    else:
        bars = in_terminal()
    if not bars:
        with progress_log(verbose):
            yield _LogLines(title, total)
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
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


@contextmanager
def heartbeat(verbose: bool, title: str, expected: float, beats: BeatSettings) -> Iterator[None]:
    """A line now and then that work goes on, of which about ``expected`` seconds are expected.

    Without a terminal and only where verbose: another thread writes it, which waits otherwise.
    """
    if not verbose or in_terminal():
        yield
        return
    over, started = threading.Event(), beats.clock()

    def beat() -> None:
        while not over.wait(beats.seconds):
            spent = beats.clock() - started
            left = expected - spent
            rest = f"about {span(left)} left" if left > 0 else "longer than expected"
            logger.info("%s: %s so far, %s", title, span(spent), rest)

    with progress_log(verbose):
        thread = threading.Thread(target=beat, name="tausvm-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def span(seconds: float) -> str:
    """Seconds or minutes, as one says them."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def size(megabytes: float) -> str:
    """Megabytes or gigabytes, as one says them."""
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1024:.1f} GB"
