"""The real data sets that some tests read: where they lie, or a clear word that they do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("TAUSVM_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def data_file(name: str) -> Path:
    """A file of the data sets; skips the test where it is not there."""
    if not (FOLDER / name).is_file():
        pytest.skip(f"no {name} in {FOLDER}; TAUSVM_DATA names the folder of the data sets")
    return FOLDER / name
