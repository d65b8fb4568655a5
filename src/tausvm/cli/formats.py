"""What a file's name says about its format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .errors import InputError

#: file name endings, each also with .gz or .bz2 behind it where it is text
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".dat": "text",
    ".tab": "text",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
#: orders of day, month and year
ORDERS = ("dmy", "mdy", "ymd")
#: what stands for standard input
STDIN = Path("-")
PACKED = (".gz", ".bz2")


@dataclass(frozen=True)
class ReadOptions:
    """What is insisted on about a file; None for what is found out by looking.

    Attributes
    ----------
    sep, decimal, encoding : str or None
    na : tuple of str
        Cells that are missing values, beside the usual ones.
    dates : {"dmy", "mdy", "ymd"} or None
        The order of day, month and year.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    dates: str | None = None


def ending_of(file: Path) -> str:
    """The ending that tells the format, in small letters, without that of a packed file."""
    endings = [ending.lower() for ending in file.suffixes]
    if endings and endings[-1] in PACKED:
        endings.pop()
    return endings[-1] if endings else ""


def format_of(file: Path) -> str:
    """The format that a file's name tells."""
    if file == STDIN:
        return "text"
    ending = ending_of(file)
    if ending not in FORMATS:
        raise InputError(
            f"{file}: unknown file type; its name must end with one of {', '.join(FORMATS)}, "
            "text also with .gz"
        )
    return FORMATS[ending]
