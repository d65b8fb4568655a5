"""Files that a command writes: never over what it reads, never over data, others if told to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .errors import InputError
from .formats import FORMATS, STDIN, ending_of


def check_output(
    option: str,
    output: Path,
    inputs: Sequence[Path],
    *,
    force: bool,
    holds_data: bool = False,
) -> None:
    """Refuse a file that must not be written, before any work is done.

    Parameters
    ----------
    option : str
        Which names the file.
    output : Path
    inputs : sequence of Path
        What the command reads; none of it is ever replaced.
    force : bool
        Whether a file that exists may be replaced.
    holds_data : bool
        Whether the output is a table. What is none must not have the name of one.
    """
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    if output.is_dir():
        raise InputError(f"{output}: is a folder")
    for given in inputs:
        if same_file(output, given):
            raise InputError(
                f"{option}: {output} is a file that this command reads; name another one"
            )
    ending = ending_of(output)
    if not holds_data and ending in FORMATS:
        raise InputError(
            f"{option}: {output} has the name of a data file ({ending}), which a data file may "
            "be lost for; name another one"
        )
    if output.exists() and not force:
        raise InputError(f"{option}: {output} exists; give --force to replace it")


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever names and links."""
    if other == STDIN:
        return False
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return one.resolve() == other.resolve()
