"""The cores' C loops do what plain ones do; a C program compares them.

``CC`` names the compiler, ``CFLAGS`` what it gets beside: ``make sanitize`` sets both.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "src" / "tausvm" / "_core"
COMPILERS = [os.environ["CC"]] if "CC" in os.environ else ["gcc", "clang"]
#: as the build has them, once with and once without vector code from the compiler
OPTIMISATION = ["-O3", "-O0"]
FLAGS = ["-std=gnu11", "-Wall", "-Wno-unused-function", "-fno-math-errno", "-fno-trapping-math"]
#: the program has the sanitizers' runtime itself, the compiler needs none
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@pytest.mark.skipif(not (CORE / "loops.h").exists(), reason="needs the source tree")
@pytest.mark.parametrize("level", OPTIMISATION)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_loops_do_what_plain_ones_do(compiler: str, level: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    program = tmp_path / "check_loops"
    given = shlex.split(os.environ.get("CFLAGS", ""))
    source = [f"-I{CORE}", str(HERE / "check_loops.c"), "-o", str(program), "-lm"]
    subprocess.run([compiler, *FLAGS, *given, level, *source], check=True, env=ENVIRONMENT)
    done = subprocess.run(
        [str(program)], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stdout + done.stderr
