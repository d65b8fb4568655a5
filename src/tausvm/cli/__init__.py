"""The command line ``tausvm``: fit, predict, report. Needs typer, rich, pandas and skops."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .. import __version__

#: packages that the command line needs beyond the library's own
NEEDED = ("typer", "rich", "pandas", "skops")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:  # without the packages that all else needs
        sys.stdout.write(f"tausvm {__version__}\n")
        return 0
    try:
        from .app import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in NEEDED:
            raise
        sys.stderr.write(
            f"tausvm: the command line needs {error.name}, which is not installed: "
            "pip install 'tausvm[cli]'\n"
        )
        return 2
    except KeyboardInterrupt:  # while the packages are loaded
        sys.stderr.write("tausvm: interrupted\n")
        return 130
    return run(given)


__all__ = ["main"]
