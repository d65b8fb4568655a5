"""The core's portable C loops and their AVX2 twins do the same; a C program compares them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "src" / "tausvm" / "_core"
#: as the build has them, once with and once without vector code from the compiler
OPTIMISATION = ["-O3", "-O0"]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(not (CORE / "loops.h").exists(), reason="needs the source tree")
@pytest.mark.parametrize("level", OPTIMISATION)
def test_portable_and_avx2_loops_agree(level: str, tmp_path: Path) -> None:
    program = tmp_path / "check_loops"
    flags = ["-std=gnu11", level, "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"]
    subprocess.run(
        ["gcc", *flags, f"-I{CORE}", str(HERE / "check_loops.c"), "-o", str(program), "-lm"],
        check=True,
        timeout=120,
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 77:
        pytest.skip("this machine has no AVX2")
    assert done.returncode == 0, done.stdout
