"""Text files as they come: encoding, separator, quotes and header are found out, and told."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from .cells import as_written, decimal_mark
from .errors import InputError
from .formats import ReadOptions, ending_of

#: marks at the beginning of a file, and what they mean; the longer ones first
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: beginnings of files that are no text, whatever they are called
FOREIGN = (
    (b"PK\x03\x04", "is not text but packed, as Excel files are; name it .xlsx, or unpack it"),
    (b"PAR1", "is not text but Parquet; name it .parquet"),
    (b"\xd0\xcf\x11\xe0", "is an Excel file of old; save it as .xlsx or CSV"),
)
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
SPACES = r"\s+"


@dataclass(frozen=True)
class SniffSettings:
    """How much of a file is looked at before it is read."""

    #: lines by which the separator is found; a choice, not measured
    lines: int = 100
    #: bytes in which zeros tell UTF-16 from what is no text
    bytes: int = 4096
    #: share of zeros at even or odd places by which it is UTF-16; Latin text has them at half
    zeros: float = 0.3


@dataclass(frozen=True)
class Layout:
    """How the lines of a text are cut into cells.

    Attributes
    ----------
    separator, quote : str
    names : tuple of str
        As the header has them, "" for a column without a name.
    first : int
        The number of lines before the first row.
    """

    separator: str
    quote: str
    names: tuple[str, ...]
    first: int


@dataclass(frozen=True)
class TextTable:
    """A text file as a frame whose columns are numbered, the names of its header, and notes."""

    frame: pd.DataFrame
    names: tuple[str, ...]
    notes: list[str]


def read_bytes(data: bytes, file: Path, options: ReadOptions) -> tuple[str, str]:
    """The text of a file, and its encoding."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:3] == b"BZh":
        data = bz2.decompress(data)
    for beginning, means in FOREIGN:
        if data.startswith(beginning):
            raise InputError(f"{file}: {means}")
    encoding = options.encoding or _encoding(data, file, SniffSettings())
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise InputError(
            f"--encoding: {encoding!r} is not known; utf-8, utf-16, cp1252 and latin-1 are"
        ) from error
    except UnicodeError as error:
        raise InputError(
            f"{file}: is not written in {encoding}; name another with --encoding, such as latin-1"
        ) from error
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise InputError(f"{file}: is empty")
    if re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        raise InputError(f"{file}: is a web page, not a table; download the file that it shows")
    return text, encoding


def _encoding(data: bytes, file: Path, settings: SniffSettings) -> str:
    for mark, name in MARKS:
        if data.startswith(mark):
            return name
    start = data[: settings.bytes]
    if b"\0" in start:
        half = max(len(start) // 2, 1)
        for name, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
            if zeros.count(0) > settings.zeros * half:
                return name
        raise InputError(f"{file}: is not text; CSV, Parquet, Excel and JSON lines can be read")
    for name in ("utf-8", "cp1252"):
        try:
            data.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def read_text(data: bytes, file: Path, options: ReadOptions) -> TextTable:
    """A table of text, with numbers where all cells of a column are."""
    text, encoding = read_bytes(data, file, options)
    notes = []
    if encoding.lower() not in ("utf-8", "utf-8-sig"):
        notes.append(f"encoding {encoding}")
    layout = find_layout(text, file, options)
    if layout.separator != ",":
        notes.append(SEPARATORS.get(layout.separator, "spaces") + " between the cells")
    if layout.quote != '"':
        notes.append("single quotes")
    frame = _parsed(text, file, layout, options, options.decimal or ".")
    mark, thousands = options.decimal, True
    if mark is None:
        mark, thousands = decimal_mark(frame, file, commas_free=layout.separator != ",")
        if mark == ",":
            notes.append("decimal commas")
            frame = _parsed(text, file, layout, options, ",")
    frame, separated = as_written(
        frame, file, mark, thousands, insisted=options.decimal is not None
    )
    if separated:
        notes.append("thousands with " + ("points" if mark == "," else "commas"))
    return TextTable(frame, layout.names, notes)


def find_layout(text: str, file: Path, options: ReadOptions) -> Layout:
    """The separator and the header."""
    lines = text.split("\n", SniffSettings().lines + 1)[: SniffSettings().lines]
    before = 0
    while not lines[0].strip():
        lines.pop(0)
        before += 1
    separator = options.sep
    told = re.fullmatch(r"sep=(.)\s*", lines[0])
    if told:  # a line that Excel writes and reads
        lines.pop(0)
        before += 1
        separator = separator or told[1]
    separator = separator or _separator(lines, spaces=ending_of(file) != ".csv")
    if not lines:
        raise InputError(f"{file}: is empty")
    quote = '"'
    if re.match(
        r"'[^']*'\s*" + (separator if separator == SPACES else re.escape(separator)), lines[0]
    ):
        quote = "'"
    rows, places = _cut(lines, separator, quote)
    names = [name.strip() for name in rows[0]]
    widths = {len(row) for row in rows[1:] if row}
    if widths == {len(names) + 1}:
        # rows end with a separator, or begin with a name that the header does not count, as those
        # of R's write.table do
        ends = all(not row[-1].strip() for row in rows[1:] if row)
        names = [*names, ""] if ends else ["", *names]
    return Layout(separator, quote, tuple(names), before + places[0])


def _cut(lines: Sequence[str], separator: str, quote: str) -> tuple[list[list[str]], list[int]]:
    """Cells of lines, and the number of the line where each row ends."""
    lines = [line + "\n" for line in lines]
    if separator == SPACES:
        lines, separator = [re.sub(r"[ \t]+", " ", line.strip()) + "\n" for line in lines], " "
    reader = csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=True)
    rows, places = [], []
    for row in reader:
        rows.append(row)
        places.append(reader.line_num)
    return rows, places


def _separator(lines: Sequence[str], *, spaces: bool) -> str:
    """The one that cuts most lines into as many cells as the header has.

    Spaces only where nothing else does, and not in CSV: a column of full names is one column.
    """
    best, found = (0.0, 0.0, 0), ","
    for separator in SEPARATORS:
        rows = [row for row in _cut(lines, separator, '"')[0] if row]
        width = len(rows[0]) if rows else 0
        body = [len(row) for row in rows[1:]] or [width]
        exact = sum(w == width for w in body) / len(body)
        near = sum(w in (width, width + 1) for w in body) / len(body)
        if max(width, *body) > 1 and (width > 1 or near == 1.0) and (exact, near, width) > best:
            best, found = (exact, near, width), separator
    if best[2] or not spaces:
        return found
    rows = [row for row in _cut(lines, SPACES, '"')[0] if row]
    widths = {len(row) for row in rows[1:]}
    if len(widths) == 1 and widths <= {len(rows[0]), len(rows[0]) + 1} and widths != {1}:
        return SPACES
    return ","


def _parsed(
    text: str, file: Path, layout: Layout, options: ReadOptions, decimal: str
) -> pd.DataFrame:
    """The rows as pandas reads them; columns are numbered."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                sep=layout.separator,
                decimal=decimal,
                quotechar=layout.quote,
                header=None,
                skiprows=layout.first,
                names=range(len(layout.names)),
                index_col=False,
                skipinitialspace=True,
                na_values=list(options.na),
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        return pd.DataFrame({k: pd.Series(dtype=float) for k in range(len(layout.names))})
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise InputError(f"{file}: {_ragged(text, layout, error)}") from error


def _ragged(text: str, layout: Layout, error: Any) -> str:
    """Why lines cannot be cut into cells."""
    width = len(layout.names)
    try:
        rows, places = _cut(text.split("\n"), layout.separator, layout.quote)
    except csv.Error:
        return f"cannot be cut into cells: {str(error).splitlines()[0]}"
    for row, place in zip(rows, places, strict=True):
        if place > layout.first and len(row) > width:
            return (
                f"line {place} has {len(row)} cells, but the header (line {layout.first}) has "
                f"{width}; quote cells that hold the separator, name it with --sep, or delete "
                "lines above the header"
            )
    return f"a quote is not closed, or {str(error).splitlines()[0]}"
