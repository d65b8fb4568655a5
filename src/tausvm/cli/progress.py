"""How far a fit is: its duality gap on the way to the tolerance, on stderr."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sklearn.model_selection import ParameterGrid

logger = logging.getLogger("tausvm")


class _GapHandler(logging.Handler):
    """Moves a bar by the gap in the log lines of a solver: the fifth of their five numbers."""

    def __init__(self, bar: Progress, tol: float) -> None:
        super().__init__(logging.INFO)
        self.bar = bar
        self.tol = tol
        self.line = bar.add_task("fitting", total=1.0, gap="")

    def emit(self, record: logging.LogRecord) -> None:
        numbers = record.args
        if not isinstance(numbers, tuple) or len(numbers) != 5:
            self.bar.update(self.line, gap=record.getMessage())
            return
        gap = numbers[4]
        if isinstance(gap, float) and 0 < gap < math.inf:
            share = math.log(max(gap, self.tol)) / math.log(self.tol) if self.tol < 1 else 1.0
            self.bar.update(
                self.line, completed=min(max(share, 0.0), 1.0), gap=f"gap {gap:.1e} of {self.tol:g}"
            )


@contextmanager
def watched(machine: Any, console: Console) -> Iterator[None]:
    """Show a bar while this machine is fitted, where stderr is a terminal."""
    if not console.is_terminal:
        yield
        return
    if hasattr(machine, "param_grid"):  # scikit-learn's search tells nothing on the way
        with console.status(f"trying {len(ParameterGrid(machine.param_grid))} points of the grid"):
            yield
        return
    machine.set_params(verbose=True)
    if hasattr(machine, "Cs"):  # the other selections have a bar of their own
        try:
            yield
        finally:
            machine.set_params(verbose=False)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[gap]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        handler = _GapHandler(bar, float(machine.tol))
        propagate, logger.propagate = logger.propagate, False
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagate
            machine.set_params(verbose=False)
