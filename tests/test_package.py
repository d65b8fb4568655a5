"""What an installed package must bring along."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import tausvm

SOURCE = Path(__file__).parent.parent / "src" / "tausvm"


def source_modules() -> list[str]:
    """The dotted names of the source tree's modules; a forgotten line in meson.build shows."""
    names = []
    for path in sorted(SOURCE.rglob("*.py")) + sorted(SOURCE.rglob("*.pyx")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts[-1] != "__main__":
            names.append(".".join(parts))
    return names


@pytest.mark.parametrize("name", source_modules())
def test_every_module_is_installed(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} says what it is for"


def test_meson_lists_every_module() -> None:
    """An editable install sees the source tree; a wheel has what meson.build names."""
    listed = (SOURCE / "meson.build").read_text()
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyx")]:
        relative = path.relative_to(SOURCE)
        # an extension module by its name; else a module of the package itself, or its folder
        wanted = path.stem if path.suffix == ".pyx" else relative.parts[0]
        assert f"'{wanted}'" in listed, f"{relative} is not in meson.build"


@pytest.mark.parametrize("job", ["oldest", "sanitize", "wheel"])
def test_jobs_name_tests_that_exist(job: str) -> None:
    root = SOURCE.parent.parent
    listed = re.search(r"^tests=\((.*?)^\)", (root / ".ci" / job).read_text(), re.M | re.S)
    assert listed
    assert [name for name in listed[1].split() if not (root / name).exists()] == []


def test_version() -> None:
    assert tausvm.__version__ == metadata.version("tausvm")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", tausvm.__version__)


def test_typed() -> None:
    assert resources.files("tausvm").joinpath("py.typed").is_file()


def test_public_names_exist() -> None:
    for name in getattr(tausvm, "__all__", []):
        assert getattr(tausvm, name) is not None


def import_reports(code: str) -> str:
    """The last line that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def test_import_loads_no_extra() -> None:
    code = (
        "import sys, tausvm.solvers\n"
        "from tausvm import QuantileSVRCV, TabularQuantileSVR\n"
        "optional = {'matplotlib', 'skops', 'onnx', 'typer', 'clarabel', 'cvxopt'}\n"
        "print(sorted(optional & set(sys.modules)))\n"
    )
    assert import_reports(code) == "[]"


#: what a program that uses scikit-learn's estimators has imported anyway
SKLEARN = "import sklearn.base, sklearn.metrics.pairwise, sklearn.utils.validation\n"


def test_import_adds_no_package_to_scikit_learn() -> None:
    """Quick to import: beside itself it loads parts of scikit-learn and of the standard library.

    Names with ``_cy`` are what compiled modules of one Cython version share; scikit-learn may have
    been compiled by another.
    """
    code = (
        f"import sys\n{SKLEARN}"
        "before = {name.split('.')[0] for name in sys.modules}\n"
        "from tausvm import QuantileSVRCV\n"
        "after = {name.split('.')[0] for name in sys.modules}\n"
        "new = after - before - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in new if not name.startswith('_cy')))\n"
    )
    assert import_reports(code) == "['tausvm']"


@pytest.mark.slow
def test_import_is_quick() -> None:
    """Under half a second of processor time beyond scikit-learn's own import."""
    code = (
        f"import time\n{SKLEARN}"
        "started = time.process_time()\n"
        "from tausvm import QuantileSVRCV\n"
        "print(time.process_time() - started)\n"
    )
    assert min(float(import_reports(code)) for _ in range(3)) < 0.5


def test_the_version_is_told_without_loading_anything() -> None:
    code = (
        "import sys, tausvm.cli\n"
        "code = tausvm.cli.main(['--version'])\n"
        "print(code, sorted({'numpy', 'sklearn', 'typer'} & set(sys.modules)))\n"
    )
    assert import_reports(code) == "0 []"


def test_every_public_name_is_where_it_is_said_to_be() -> None:
    for name in tausvm.__all__:
        assert getattr(tausvm, name) is not None
    assert set(tausvm.__all__) <= set(dir(tausvm))
    assert tausvm.solvers.SMO.name == "smo"
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = tausvm.Nothing


ROOT = SOURCE.parent.parent


def test_the_smoke_test_of_a_wheel_passes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "smoke")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "are well" in done.stdout


def test_wheels_are_built_from_the_oldest_python_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    settings = project["tool"]["cibuildwheel"]
    assert settings["test-command"] == "python {project}/.ci/smoke"
    oldest = project["project"]["requires-python"].removeprefix(">=3.")
    built = [int(re.fullmatch(r"cp3(\d+)-\*", pattern)[1]) for pattern in settings["build"]]
    assert built == list(range(int(oldest), int(oldest) + len(built)))


def test_the_citation_is_of_this_version() -> None:
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == tausvm.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["license"] == project["license"]
    assert citation["keywords"] == project["keywords"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in project["authors"]
    ]
    assert citation["cff-version"] and citation["message"] and citation["title"]
