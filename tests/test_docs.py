"""The pages of docs/: their code runs, their links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import tausvm

from .blocks import ROOT, python_blocks, run_blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES[1:] if python_blocks(page)], ids=lambda page: page.name
)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing


def test_every_public_name_is_in_the_reference() -> None:
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split()
    missing = [name for name in tausvm.__all__ if name != "__version__" and name not in listed]
    assert not missing


def test_the_walks_name_modules_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:estimators|selection|operators|solvers|_core)\.[a-z_.]+)`", page)
    assert len(named) > 20
    for name in named:
        package, _, last = f"tausvm.{name}".rpartition(".")
        assert find_spec(f"tausvm.{name}") or hasattr(import_module(package), last), name


def test_pages_build_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the pages are built with the docs extra")
    # a copy: the build writes pages of its own beside the sources
    source = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("_build", "generated"))
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", source, tmp_path / "html"],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
