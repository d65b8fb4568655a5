"""The package as installed: all modules there, one version, a light import."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib

import pytest

import tausvm

from .blocks import ROOT

SOURCES = sorted((ROOT / "src").rglob("*.py"))


def _module(path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", [_module(path) for path in SOURCES])
def test_every_source_is_installed(name: str) -> None:
    importlib.import_module(name)


def test_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    meson = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))
    assert meson is not None
    installed = importlib.metadata.version("tausvm")
    assert tausvm.__version__ == project["version"] == meson.group(1) == installed


def test_import_brings_neither_pictures_nor_frames() -> None:
    code = (
        "import sys, sklearn.svm, sklearn.utils.validation; before = set(sys.modules)\n"
        "import tausvm; print(*sorted(set(sys.modules) - before))"
    )
    added = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {name.split(".")[0] for name in added} & {"matplotlib", "pandas", "sphinx"}
