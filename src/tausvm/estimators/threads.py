"""BLAS on one thread while a machine is fitted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Looking up the loaded libraries takes milliseconds, so once a process."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread.

    The products of a fit are many and small: threads that wait for each other cost more than
    they bring, many times more on a busy machine, and the result would depend on their number.
    """
    return _controller().limit(limits=1, user_api="blas")
