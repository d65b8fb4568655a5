"""One policy for threads.

- BLAS is held to one thread while anything is fitted, and is as before afterwards.
- Threads of our own: as many as processors, at most OMP_NUM_THREADS, and one inside a worker of
  joblib, Dask or multiprocessing, where the others are busy already.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")


class _BlasLimit:
    """The limit on a BLAS whose threads are one pool for the whole process.

    The first to come sets it and notes what it was, the last to leave sets it back to that. Were
    everybody to set back what he found, the last to leave would leave what the first had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: list[int] = []

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                self._before = _set_threads(_libraries().pooled, 1)
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _set_threads(_libraries().pooled, *self._before)

    def forked(self) -> None:
        """In a child: the thread that held the lock may not be there any more.

        The count stays, so a child that was started during a fit keeps BLAS on one thread, as a
        worker should.
        """
        self._lock = threading.Lock()


class _Libraries(NamedTuple):
    """The BLAS libraries loaded.

    Attributes
    ----------
    pooled : list of LibController
        With one limit for the process.
    by_thread : list of LibController
        With a limit for every thread that calls them.
    """

    pooled: list[Any]
    by_thread: list[Any]


@cache
def _libraries() -> _Libraries:
    """Looking them up takes milliseconds, so once a process."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    by_thread = [library for library in found if _is_by_thread(library)]
    return _Libraries([library for library in found if library not in by_thread], by_thread)


def _is_by_thread(library: Any) -> bool:
    """Of those threadpoolctl knows it is OpenBLAS on top of OpenMP."""
    return bool(library.internal_api == "openblas" and library.threading_layer == "openmp")


def _set_threads(libraries: list[Any], *counts: int) -> list[int]:
    """Set the threads of libraries, to one number or one each; what they were."""
    before = [library.num_threads for library in libraries]
    wanted = counts if len(counts) == len(libraries) else counts * len(libraries)
    for library, count in zip(libraries, wanted, strict=True):
        # threadpoolctl >= 3.7 lets one thread alone set a limit, until that gives it up
        give_up = getattr(library, "clear_controlling_thread", lambda force=False: None)
        give_up(force=True)
        library.set_num_threads(count)
        give_up()
    return before


_LIMIT = _BlasLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forked)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; in any number of threads and inside each other.

    The products of a fit are many and small: threads that wait for each other cost more than
    they bring, many times more on a busy machine, and the result would depend on their number.
    """
    _LIMIT.enter()
    try:
        before = _set_threads(_libraries().by_thread, 1)
        try:
            yield
        finally:
            _set_threads(_libraries().by_thread, *before)
    finally:
        _LIMIT.leave()


class _Pool(threading.local):
    """Whether this thread is one of several that :func:`in_threads` has started."""

    inside = False


_POOL = _Pool()


@contextmanager
def as_worker() -> Iterator[None]:
    """A context for one of several threads that share the processors: it starts none itself."""
    before, _POOL.inside = _POOL.inside, True
    try:
        yield
    finally:
        _POOL.inside = before


def in_threads(
    calls: Sequence[Callable[[], Any]], n_jobs: int | None, shared: bool = False
) -> Iterator[Any]:
    """What the calls return, in their order, by as many threads as joblib makes of ``n_jobs``.

    A joblib backend of other workers that the user has chosen comes first, unless the calls write
    to memory that they have to share. Joblib's own threads take some hundredths of a second to
    start and to be asked whether they are ready, which is as much as a small selection.
    """
    workers = min(joblib.effective_n_jobs(n_jobs), len(calls))
    if workers <= 1:
        yield from (call() for call in calls)
        return
    backend, _ = get_active_backend(prefer="threads")
    if not shared and not getattr(backend, "uses_threads", False):
        yield from joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(call)() for call in calls)
        return

    def work(call: Callable[[], Any]) -> Any:
        _POOL.inside = True
        return call()

    pool = ThreadPoolExecutor(workers)
    try:
        for future in [pool.submit(work, call) for call in calls]:
            yield future.result()
    finally:  # after an error the others are not waited for
        pool.shutdown(wait=False, cancel_futures=True)


def share_out(
    work: Callable[[S, Callable[[], bool]], T], parts: Sequence[S], workers: int
) -> list[T]:
    """``work(part, halted)`` of all parts, in their order, by this thread and others beside it.

    An exception in one, or Ctrl-C, halts the others. Who does which part is chance: the parts must
    not depend on the number of threads, and then nothing does. Threads live as long as the call,
    which takes some 50 microseconds to start one: share out milliseconds.
    """
    if workers < 2 or len(parts) < 2:
        return [work(part, _never) for part in parts]
    halted = threading.Event()
    todo = deque(range(len(parts)))
    done: dict[int, T] = {}
    errors: list[BaseException] = []

    def pull() -> None:
        while not halted.is_set():
            try:
                k = todo.popleft()
            except IndexError:
                return
            done[k] = work(parts[k], halted.is_set)

    def helper() -> None:
        _POOL.inside = True
        try:
            with one_blas_thread():
                pull()
        except BaseException as error:
            errors.append(error)
            halted.set()

    helpers = [threading.Thread(target=helper) for _ in range(min(workers, len(parts)) - 1)]
    try:
        for thread in helpers:
            thread.start()
        pull()
        for thread in helpers:
            thread.join()
    except BaseException:
        halted.set()
        for thread in helpers:
            if thread.ident is not None:
                thread.join()
        raise
    if errors:
        raise errors[0]
    return [done[k] for k in range(len(parts))]


def _never() -> bool:
    """Whether somebody else has halted this thread: there is nobody else."""
    return False


def thread_count() -> int:
    """How many threads a long product may be shared out to."""
    if _in_worker():
        return 1
    asked = _omp_num_threads()
    return _processors() if asked is None else min(asked, _processors())


@cache
def _processors() -> int:
    """Those this process may use; looking them up takes a tenth of a millisecond."""
    return int(joblib.cpu_count())


def _omp_num_threads() -> int | None:
    """OMP_NUM_THREADS, of a list its first entry; None where it is not set or not a number."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else None


def _in_worker() -> bool:
    """Whether this is one of several workers that share the processors."""
    if _POOL.inside or multiprocessing.parent_process() is not None:
        return True
    backend, _ = get_active_backend()
    if getattr(backend, "nesting_level", 0):
        return True
    dask = sys.modules.get("distributed.worker")
    return dask is not None and getattr(dask.thread_state, "execution_state", None) is not None
