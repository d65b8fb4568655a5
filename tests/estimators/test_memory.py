"""Peak memory: ``cache_size``, twice the input and 300 MB, measured in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: for the interpreter and its libraries, in megabytes
BESIDE = 300

CHILD = """
import json, sys, warnings
import numpy as np
import tausvm

name, n, parameters = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 5))
y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
model = getattr(tausvm, name)(**parameters).fit(X, y > 0 if name.endswith("SVC") else y)
model.predict(X)
# not what getrusage says, which counts the process that started this one too
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(float(peak.split()[1]) / 1024, X.nbytes / 2**20)
"""


def check(name, n, **parameters):
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc, which is not here")
    asked = json.dumps([name, n, parameters])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, asked], capture_output=True, text=True, check=True
    )
    peak, size = map(float, done.stdout.split())
    assert peak <= parameters["cache_size"] + 2 * size + BESIDE


def test_quantiles():
    """One small enough for every run of the tests."""
    check("QuantileSVR", 5000, cache_size=40, tau=0.8, tol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "parameters"),
    [
        ("SVR", 7000, {}),
        ("SVR", 6000, {"C": 10.0, "tol": 1e-8}),
        ("SVR", 6000, {"solver": "smo"}),
        ("TauSVC", 7000, {}),
        ("ExpectileSVR", 7000, {"cache_size": 200, "tol": 1e-8}),
        ("ExpectileSVR", 6000, {"solver": "newton"}),
        ("TauPathSVR", 1500, {}),
        ("TauPathSVC", 2000, {"C": 0.01}),
        ("JointQuantileSVR", 2000, {"tau": [0.2, 0.8]}),
        ("QuantileSVRCV", 4000, {"Cs": 3, "gammas": 3}),
        ("ExpectileSVRCV", 4000, {"Cs": 3, "gammas": 3, "cache_size": 70}),
    ],
)
def test_every_kernel_machine(name, n, parameters):
    check(name, n, **{"cache_size": 50, **parameters})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "parameters"),
    [
        ("QuantileSVR", 26_000, {"cache_size": 2000, "tau": 0.8, "time_limit": 90}),
        ("SVR", 2500, {"cache_size": 300, "solver": "interior_point", "time_limit": 30}),
        ("JointQuantileSVR", 4000, {"cache_size": 130, "tau": [0.2, 0.8], "time_limit": 30}),
    ],
)
def test_blocks_and_factors(name, n, parameters):
    check(name, n, **parameters)
