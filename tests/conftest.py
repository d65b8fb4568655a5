"""What all tests share: one BLAS thread, and hypothesis examples that do not change."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from threadpoolctl import threadpool_limits

# a hook of pytest: under xdist only conftest files that lie at the top are asked
from .adversarial.summary import pytest_terminal_summary  # noqa: F401

#: set to look for cases not met before: examples then differ from run to run
DRAW_ANEW = "TAUSVM_DRAW_ANEW"

settings.register_profile(
    "tausvm",
    max_examples=60,
    deadline=None,
    derandomize=DRAW_ANEW not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tausvm")
# numbers met in the modules loaded are drawn among the examples, and which these are depends on
# how tests were shared out
if hasattr(providers, "is_local_module_file"):
    providers.is_local_module_file = lambda path: False


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Small matrices are slower, and timings unsteady, with more."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def figures_closed() -> Iterator[None]:
    """Whatever a test has drawn: pyplot keeps figures, and warns when a process has many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# a run in the background of a shell inherits that Ctrl-C is ignored, and tests of it would not end
signal.signal(signal.SIGINT, signal.default_int_handler)
