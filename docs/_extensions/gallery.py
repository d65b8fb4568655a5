"""The order of the gallery: that of the list in examples/README.md, the easy ones first."""

from __future__ import annotations

from pathlib import Path

LIST = Path(__file__).parents[2] / "examples" / "README.md"


class AsListed:
    """A key for the scripts of a shelf."""

    def __init__(self, src_dir: str) -> None:
        self.listed = LIST.read_text(encoding="utf-8") if LIST.exists() else ""

    def __call__(self, filename: str) -> int:
        return self.listed.find(f"/{filename})")

    def __repr__(self) -> str:
        return "<as listed>"
