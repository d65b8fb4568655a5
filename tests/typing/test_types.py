"""A user's script passes a strict type checker, and a mistake in it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..blocks import ROOT

pytest.importorskip("mypy", reason="types are checked by mypy")

SCRIPT = Path(__file__).with_name("user.py")


def checked(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """mypy --strict with no settings but that other packages may have no types."""
    options = ["--strict", "--config-file", os.devnull, "--ignore-missing-imports"]
    return subprocess.run(
        # errors are of the script: what it imports is checked with settings of its own
        [sys.executable, "-m", "mypy", *options, "--follow-imports=silent", str(script)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src"), "MYPY_CACHE_DIR": str(folder)},
    )


def test_a_users_script_is_well_typed(tmp_path: Path) -> None:
    done = checked(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text(SCRIPT.read_text() + "\nSVR(epsilon='small')\ntext: str = svr.predict(X)\n")
    found = checked(wrong, tmp_path).stdout
    assert 'Argument "epsilon" to "SVR" has incompatible type' in found
    assert "Found 2 errors" in found
