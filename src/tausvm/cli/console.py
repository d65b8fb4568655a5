"""Messages: what a script reads stays on stdout, all else goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape


def error_console() -> Console:
    """Where messages and bars go."""
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def say(console: Console, line: str) -> None:
    """A line to a reader, who sees whose it is."""
    console.print(f"tausvm: {escape(line)}")


def warn(console: Console, lines: Sequence[str]) -> None:
    """Lines about what may surprise."""
    for line in lines:
        say(console, f"warning: {line}")
