"""The pages of docs/: their code runs, their links lead somewhere."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import tausvm

from .blocks import ROOT, run_blocks, snippets
from .site import broken_links, check

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES[1:] if snippets(page)], ids=lambda page: page.name
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


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, with examples that are shown and not run, and no pictures of classes."""
    for package in ("sphinx", "pydata_sphinx_theme", "sphinx_gallery"):
        pytest.importorskip(package, reason="the pages are built with the docs extra")
    # a copy: the build writes pages of its own beside the sources
    folder = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("_build", "generated", "examples", "portraits", "__pycache__")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=made)
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, folder / "docs", folder / "html"],
        capture_output=True,
        text=True,
        env={**os.environ, "TAUSVM_DOCS": "quick"},
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere(built_site: Path) -> None:
    looked_at = list(broken_links(built_site))
    assert len(looked_at) > 1000
    assert not [(page.name, reason) for page, reason in looked_at if reason]


@pytest.mark.slow
def test_names_lead_to_the_reference_and_beyond(built_site: Path) -> None:
    page = (built_site / "guide.html").read_text(encoding="utf-8")
    assert 'href="generated/tausvm.QuantileSVRCV.html#tausvm.QuantileSVRCV"' in page
    scaler = "modules/generated/sklearn.preprocessing.StandardScaler.html"
    assert f"https://scikit-learn.org/stable/{scaler}#sklearn.preprocessing.StandardScaler" in page


@pytest.mark.slow
def test_the_site_in_a_browser(built_site: Path) -> None:
    report = check(built_site)
    assert report.views > 4 * 100
    assert not report.wrong


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="the pages are built with the docs extra")
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")


@pytest.mark.parametrize(
    "cls",
    [thing for name in tausvm.__all__ if isinstance(thing := getattr(tausvm, name), type)],
    ids=lambda cls: cls.__name__,
)
@pytest.mark.usefixtures("extensions")
def test_every_parameter_is_written_out(cls: type) -> None:
    written_out = import_module("written_out").written_out
    told = written_out(cls, "Parameters")
    assert sorted(entry.name for entry in told) == sorted(inspect.signature(cls).parameters)
    for entry in told:
        text = " ".join(entry.body)
        assert text or entry.kind, f"{entry.name} is not described"
        assert "As in :class:" not in text, f"{entry.name} sends its reader elsewhere: {text}"


@pytest.mark.usefixtures("extensions")
def test_formulas_of_docstrings_are_set() -> None:
    mathml = import_module("mathml")
    lines = inspect.cleandoc(tausvm.QuantileSVR.__doc__ or "").split("\n")
    mathml.typeset(lines)
    (tex,) = [line.strip() for line in lines if "aligned" in line]
    assert r"\text{primal}\quad&\min _{f, b}" in tex
    assert r"\tfrac{1}{2}\|f\|^{2} + \sum _{i} c_{i}" in tex
    assert "<math" in mathml.mathml(tex, block=True)


@pytest.mark.usefixtures("extensions")
def test_plain_text_that_is_no_formula_stays_code() -> None:
    is_formula = import_module("mathml").is_formula
    assert is_formula("½‖f‖² + Σᵢ cᵢ")
    assert not is_formula("repeat\n    β ← β + 1")
    assert not is_formula("tausvm fit a.csv --tau 0.5")
    assert not is_formula("pip install '.[plot,cli]'")
