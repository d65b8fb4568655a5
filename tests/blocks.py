"""The Python blocks of a Markdown page, so that tests can run what readers copy."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> list[str]:
    """The blocks in order, each padded so that line numbers are those of the page."""
    text = page.read_text(encoding="utf-8")
    return [
        "\n" * text.count("\n", 0, match.start(1)) + match.group(1)
        for match in _BLOCK.finditer(text)
    ]


def run_blocks(page: Path) -> dict[str, object]:
    """Run the blocks of a page one after the other in one namespace, and return it."""
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in python_blocks(page):
        # as a reader's own file, without the __future__ imports of this one
        exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
    return namespace
