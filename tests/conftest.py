"""What all tests share: one BLAS thread, and hypothesis examples that do not change."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# a hook of pytest: under xdist only conftest files that lie at the top are asked
from .adversarial.summary import pytest_terminal_summary  # noqa: F401

settings.register_profile(
    "tausvm",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tausvm")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Small matrices are slower, and timings unsteady, with more."""
    with threadpool_limits(1, user_api="blas"):
        yield


# a run in the background of a shell inherits that Ctrl-C is ignored, and tests of it would not end
signal.signal(signal.SIGINT, signal.default_int_handler)
