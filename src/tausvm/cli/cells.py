"""Cells of text that are numbers or dates, as people write them in different places."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from .errors import InputError

WHOLE = re.compile(r"[+-]?\d+")
#: 1,5 and 1.234,5
COMMA_DECIMAL = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")
#: 1,234 and 1,234.5
COMMA_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
#: 1.234 and 1.234.567, and with a decimal comma
POINT_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?")
POINT_DECIMAL = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
#: a date with its parts in any order, perhaps with a time of day
DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{2}|\d{4})([ T]\d{1,2}:\d{2}(:\d{2})?)?")


def texts(column: pd.Series) -> list[str]:
    """The cells of a column that are text; none for a column of numbers."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return []
    return [cell for cell in column if isinstance(cell, str)]


def decimal_mark(frame: pd.DataFrame, file: Path, *, commas_free: bool) -> tuple[str, bool]:
    """What separates decimals, and whether the other mark separates thousands.

    1,234 alone may be both: it is a decimal comma in a file whose cells commas do not separate.
    """
    decimal = thousands = either = ""
    for name in frame:
        cells = [cell.strip() for cell in texts(frame[name])]
        numeric = [c for c in cells if COMMA_DECIMAL.fullmatch(c) or COMMA_THOUSANDS.fullmatch(c)]
        if not numeric or not _mostly_numbers(cells):
            continue
        for cell in numeric:
            is_decimal = COMMA_DECIMAL.fullmatch(cell)
            is_thousands = COMMA_THOUSANDS.fullmatch(cell)
            if is_decimal and is_thousands:
                either = either or cell
            elif is_decimal:
                decimal = decimal or cell
            else:
                thousands = thousands or cell
    if decimal and thousands:
        raise InputError(
            f"{file}: has numbers like {decimal} and like {thousands}; say with --decimal which "
            "mark separates decimals"
        )
    if decimal or (either and not thousands and commas_free):
        return ",", True
    return ".", True


def _mostly_numbers(cells: list[str]) -> bool:
    """Whether more than half of the cells are numbers, however they are written."""
    forms = (WHOLE, COMMA_DECIMAL, COMMA_THOUSANDS, POINT_THOUSANDS, POINT_DECIMAL)
    count = sum(any(form.fullmatch(cell) for form in forms) for cell in cells)
    return 2 * count > len(cells)


def as_written(
    frame: pd.DataFrame, file: Path, mark: str, thousands: bool, *, insisted: bool
) -> tuple[pd.DataFrame, bool]:
    """Text stripped of blanks, and its numbers written as Python has them.

    Returns
    -------
    frame : DataFrame
    separated : bool
        Whether there were marks between thousands.
    """
    separated = False
    grouped = POINT_THOUSANDS if mark == "," else COMMA_THOUSANDS
    other = "." if mark == "," else ","
    done: dict[Any, pd.Series] = {}
    for name in frame:
        column = frame[name]
        cells = texts(column)
        if not cells:
            done[name] = column
            continue
        stripped = column.map(lambda cell: cell.strip() or None if isinstance(cell, str) else cell)
        if not _mostly_numbers([cell.strip() for cell in cells]):
            done[name] = stripped
            continue
        if mark == "," and not insisted:
            _refuse_points(stripped, file)

        def plain(cell: Any) -> Any:
            if not isinstance(cell, str):
                return cell
            if thousands and grouped.fullmatch(cell):
                return cell.replace(other, "").replace(mark, ".")
            if mark == "," and COMMA_DECIMAL.fullmatch(cell):
                return cell.replace(".", "").replace(",", ".")
            return cell

        written = stripped.map(plain)
        separated |= any(grouped.fullmatch(c) for c in texts(stripped)) and thousands
        numbers = pd.to_numeric(written, errors="coerce")
        whole = bool((numbers.isna() == written.isna()).all())
        done[name] = numbers if whole else written
    return pd.DataFrame(done, index=frame.index), separated


def _refuse_points(column: pd.Series, file: Path) -> None:
    """Refuse decimal points in a file that was found to have decimal commas."""
    for cell in texts(column):
        if POINT_DECIMAL.fullmatch(cell) and not POINT_THOUSANDS.fullmatch(cell):
            raise InputError(
                f"{file}: has numbers with a decimal comma and others with a point, such as "
                f"{cell}; say with --decimal which mark separates decimals"
            )


def date_form(cells: list[str], order: str | None) -> tuple[str, str]:
    """The form of a column of dates, as strptime has it, and what to say about it; "" for others.

    Dates as ISO 8601 writes them have no form: they are read everywhere.
    """
    found = [DATE.fullmatch(cell.strip()) for cell in cells]
    if not cells or not all(found):
        return "", ""
    parts = [(m[1], m[3], m[4]) for m in found if m]
    marks, times = {m[2] for m in found if m}, {bool(m[5]) + bool(m[6]) for m in found if m}
    if len(marks) > 1 or len(times) > 1:
        return "", "has dates in different forms; write them as 2024-03-31"
    mark = marks.pop()
    clock = ("", " %H:%M", " %H:%M:%S")[times.pop()]
    if clock and found[0] and found[0][5].startswith("T"):
        clock = clock.replace(" ", "T")
    if all(len(first) == 4 for first, _, _ in parts):
        return ("", "") if mark == "-" else (f"%Y{mark}%m{mark}%d{clock}", "")
    if any(len(first) > 2 for first, _, _ in parts):
        return "", ""
    year = "%Y" if all(len(last) == 4 for _, _, last in parts) else "%y"
    late = [max(int(part[k]) for part in parts) > 12 for k in (0, 1)]
    order = order or ("mdy" if late[1] else "dmy" if late[0] or mark == "." else None)
    if order is None:
        day, month, last = parts[0]
        return "", (
            f"{day}{mark}{month}{mark}{last} may begin with the day or the month; give --dates dmy "
            "or mdy, until then it is text"
        )
    if order == "ymd":
        return f"%y{mark}%m{mark}%d{clock}", ""
    first = f"%d{mark}%m" if order == "dmy" else f"%m{mark}%d"
    return f"{first}{mark}{year}{clock}", ""
