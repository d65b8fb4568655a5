"""Parameters and attributes of a class written out on its page, with their defaults.

A docstring may say of some parameters that they are "As in :class:`SVR`". On the page their
descriptions stand in full, so that nobody has to look them up elsewhere.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Parameters", "Attributes")
_AS_IN = re.compile(r"As in :class:`~?([\w.]+)`")
#: a parameter's header: "tau : float", "kernel, degree" or "tol"
_HEADER = re.compile(r"^(\w+(?:, \w+)*)(?: : (.*))?$")


@dataclass
class Entry:
    """One documented name: what it is, and the lines that describe it."""

    name: str
    kind: str = ""
    body: list[str] = field(default_factory=list)


def section(lines: list[str], title: str) -> tuple[int, int]:
    """Where the entries of a section begin and end; (0, 0) where there is none."""
    for k, line in enumerate(lines[:-1]):
        if line.strip() == title and set(lines[k + 1].strip()) == {"-"}:
            end = k + 2
            while end < len(lines) and not (
                end + 1 < len(lines) and lines[end + 1].strip() and set(lines[end + 1]) == {"-"}
            ):
                end += 1
            return k + 2, end
    return 0, 0


def entries(lines: list[str]) -> list[Entry]:
    """The entries of a section's lines; several names with one description are entries each."""
    found: list[Entry] = []
    names: list[Entry] = []
    for line in lines:
        header = _HEADER.match(line)
        if header:
            names = [Entry(name, header[2] or "") for name in header[1].split(", ")]
            found.extend(names)
        elif names:
            for entry in names:
                entry.body.append(line.strip())
    for entry in found:
        while entry.body and not entry.body[-1]:
            entry.body.pop()
    return found


def class_of(name: str) -> type[Any] | None:
    """The class that a docstring means: of tausvm, or of a module of its."""
    package, _, last = name.rpartition(".")
    try:
        found = getattr(import_module(package or "tausvm"), last, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and found.__module__.startswith("tausvm") else None


def written_out(cls: type[Any], title: str) -> list[Entry]:
    """The entries of a section of a class, with what it takes from other classes in full."""
    lines = inspect.cleandoc(cls.__doc__ or "").split("\n")
    start, end = section(lines, title)
    mine = entries(lines[start:end])
    together = {entry.name for entry in mine}
    for entry in mine:
        text = " ".join(entry.body)
        taken = _AS_IN.match(text)
        other = class_of(taken[1]) if taken else None
        if other is None or other is cls:
            continue
        theirs = {their.name: their for their in written_out(other, title)}.get(entry.name)
        if theirs is None:
            continue
        entry.kind = entry.kind or theirs.kind
        entry.body = [*theirs.body, *_own_words(text[taken.end() :], entry.name, together)]
    return mine


def _own_words(rest: str, name: str, names: set[str]) -> list[str]:
    """What a description adds to the one that it refers to, as far as it is about this name."""
    separator, rest = (rest[:1], rest[1:].strip()) if rest[:1] in ".,;" else (" ", rest.strip())
    if not rest or rest == ".":
        return []
    if separator == " ":
        rest = f"That {rest}"
    kept = []
    for sentence in re.split(r"(?<=[.;]) ", rest[:1].upper() + rest[1:]):
        clauses = re.split(r", (?=``\w+``)", sentence.rstrip("."))
        about = [set(re.findall(r"``(\w+)``", clause)) & names for clause in clauses]
        if not any(about) or any(name in found for found in about):
            kept.append(sentence)
    return [" ".join(kept)] if kept else []


def defaults(cls: type[Any]) -> dict[str, str]:
    """The defaults of a class's parameters as they are written."""
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: repr(parameter.default)
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty and len(repr(parameter.default)) < 40
    }


def _write_out(
    app: Sphinx, what: str, name: str, obj: Any, options: object, lines: list[str]
) -> None:
    if what != "class" or not isinstance(obj, type):
        return
    known = defaults(obj)
    for title in SECTIONS:
        start, end = section(lines, title)
        if start == end:
            continue
        made: list[str] = []
        for entry in written_out(obj, title):
            kind = entry.kind
            if title == "Parameters" and entry.name in known:
                kind = f"{kind}, default: {known[entry.name]}" if kind else known[entry.name]
            made.append(f"{entry.name} : {kind}" if kind else entry.name)
            made += [f"    {line}" if line else "" for line in entry.body]
        lines[start:end] = [*made, ""]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", _write_out, priority=90)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
