"""The snippets of a Markdown page, so that tests can run what readers copy.

A ``text`` block right after a ``python`` block is what that prints; a ``console`` block has
commands (``$ tausvm …``) and what they print. Words have to be the same, numbers nearly so, since
processors and versions of packages round differently; those of commands, which tell seconds too,
may be any. ``python -m tests.blocks docs/tutorial.md`` writes the outputs anew, for a look at the
difference afterwards.
"""

from __future__ import annotations

import io
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+```text\n(?P<printed>.*?)^```$)?"
    r"|^```console\n(?P<session>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"[-−]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Snippet:
    """Code or commands of a page, with what they print according to it."""

    code: str
    printed: str | None
    is_session: bool
    line: int


def snippets(page: Path) -> list[Snippet]:
    """All snippets in order; code is padded so that line numbers are those of the page."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["session"] is not None:
            found.append(Snippet(match["session"], None, True, line))
        else:
            found.append(Snippet("\n" * line + match["code"], match["printed"], False, line))
    return found


def python_blocks(page: Path) -> list[str]:
    """The code of the Python blocks in order."""
    return [snippet.code for snippet in snippets(page) if not snippet.is_session]


def _commands(session: str) -> Iterator[tuple[str, str]]:
    """Commands with what follows each of them; a line that ends with a backslash goes on."""
    joined = session.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


@contextmanager
def _captured() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"  # of tables that fit their terminal
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            yield stream
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns


def _run_command(command: str) -> str:
    from tausvm.cli import main

    program, *arguments = shlex.split(command, comments=True)
    assert program == "tausvm", f"a page may run tausvm only, not {program}"
    with _captured() as stream:
        code = main(arguments)
    assert code == 0, f"{command}: exit code {code}: {stream.getvalue()}"
    return stream.getvalue().replace(f"{Path.cwd()}/", "")


def run_snippet(snippet: Snippet, namespace: dict[str, object], name: str) -> str:
    """Run it; what it printed."""
    if snippet.is_session:
        return "".join(_run_command(command) for command, _ in _commands(snippet.code))
    with _captured() as stream:
        # as a reader's own file, without the __future__ imports of this one
        exec(compile(snippet.code, name, "exec", dont_inherit=True), namespace)
    return stream.getvalue()


def _words(text: str) -> list[str]:
    return _NUMBER.sub(" # ", text).split()


def _numbers(text: str) -> list[float]:
    return [float(found.replace(",", "").replace("−", "-")) for found in _NUMBER.findall(text)]


def _compare(where: str, wanted: str, got: str, numbers: bool) -> None:
    same = _words(wanted) == _words(got)
    if same and numbers:
        pairs = zip(_numbers(wanted), _numbers(got), strict=True)
        same = all(math.isclose(a, b, rel_tol=0.1, abs_tol=0.02) for a, b in pairs)
    if not same:
        raise AssertionError(f"{where}: the page shows\n{wanted}\nand this is printed\n{got}")


def run_blocks(page: Path) -> dict[str, object]:
    """Run the snippets of a page one after the other in one namespace, and return it."""
    namespace: dict[str, object] = {"__name__": page.stem}
    if "matplotlib.pyplot" in sys.modules:  # what other pages have drawn
        sys.modules["matplotlib.pyplot"].close("all")
    for snippet in snippets(page):
        where = f"{page.name}:{snippet.line}"
        if snippet.is_session:
            for command, printed in _commands(snippet.code):
                _compare(where, printed, _run_command(command), numbers=False)
        else:
            got = run_snippet(snippet, namespace, str(page))
            if snippet.printed is None:
                shown = page.parent.name != "docs" or not got
                assert shown, f"{where}: prints what the page does not show:\n{got}"
            else:
                _compare(where, snippet.printed, got, numbers=True)
    return namespace


def _write_outputs(page: Path) -> None:
    """Replace the outputs that a page shows by what its snippets print."""
    namespace: dict[str, object] = {"__name__": page.stem}
    found = iter(snippets(page))

    def renewed(match: re.Match[str]) -> str:
        snippet = next(found)
        if snippet.is_session:
            made = ""
            for part in re.split(r"^(?=\$ )", snippet.code, flags=re.MULTILINE)[1:]:
                lines = part.split("\n")
                count = 1
                while lines[count - 1].endswith("\\"):
                    count += 1
                ((command, _),) = _commands(part)
                made += "\n".join(lines[:count]) + "\n" + _run_command(command)
            return f"```console\n{made}```"
        got = run_snippet(snippet, namespace, str(page))
        code = f"```python\n{match['code']}```"
        return code if snippet.printed is None else f"{code}\n\n```text\n{got}```"

    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        written = _BLOCK.sub(renewed, text)
    page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        _write_outputs(Path(given).resolve())
