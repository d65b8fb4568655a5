"""Jobs of a search as tasks of a cluster.

    the rows of the selection    go to the workers once
    a job                        makes its Gram matrix, and fits on it
    scores and losses            come back
    β                            stay with the worker, for later jobs at the same γ and fold

Futures, and not joblib's Dask backend: that would send the rows with every job, and bring β back.
A job runs where β of its earlier fits are. What a lost worker had is computed again: every future
knows what it was made of, the rows too, which the scheduler keeps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from operator import itemgetter
from typing import Any, TypeVar

from ..selection.jobs import Asked, Jobs, Threads, Work
from ..selection.task import Task
from ..solvers.many import Stop
from ..threads import as_worker, one_blas_thread
from .client import Futures, found_client

T = TypeVar("T")

#: attributes of a task that are large
LARGE = ("X", "targets", "weight", "folds", "maps")
#: and those that every worker has of its own
OWN = ("stop", "memory")


def jobs_for(n_jobs: int | None, heartbeat: float) -> AbstractContextManager[Jobs]:
    """A context with tasks of the client that Dask has been given, or else threads."""
    client = found_client()
    return nullcontext(Threads(n_jobs)) if client is None else ClusterJobs(client, heartbeat)


class ClusterJobs(Futures):
    """Jobs as tasks of a distributed client, of which nothing is left at the end of a context."""

    def __init__(self, client: Any, heartbeat: float) -> None:
        fatal = (
            "job of the selection; its kernel matrix may be larger than their memory, "
            "lower cache_size"
        )
        super().__init__(client, "selection", fatal, heartbeat)
        #: what is on the workers, with its future, by identity
        self._shared: dict[int, tuple[Any, Any]] = {}

    @property
    def count(self) -> int:
        return max(1, sum(self._threads))

    @property
    def sharing(self) -> int:
        return max(1, *self._threads, 1)

    @property
    def _threads(self) -> list[int]:
        """Of every worker."""
        return list(self.client.nthreads().values())

    def run(self, work: Work, task: Task, asked: Sequence[Asked]) -> Iterator[tuple[Any, Any]]:
        """What the jobs tell, in their order, and the future of each.

        No more than can run at a time are under way, so that each is told the time that is left.
        """
        names = [field.name for field in fields(task) if field.name not in OWN]
        given = {name: getattr(task, name) for name in names}
        given |= {name: self._there(given[name]) for name in LARGE if given[name] is not None}
        count, done = self.count, 0
        jobs: list[Any] = []
        told: list[Any] = []
        while done < len(asked):
            running = [future for future in told if not future.done()]
            for ask, before in asked[len(jobs) : len(jobs) + count - len(running)]:
                job = self._submit(_job, work, given, task.stop.left, ask, list(before))
                jobs.append(job)
                told.append(self._submit(itemgetter(0), job))
                running.append(told[-1])
            if told[done].done():
                yield self.value(told[done]), jobs[done]
                done += 1
            else:
                self.wait(running)

    def _there(self, value: Any) -> Any:
        """The future of what goes to the workers once."""
        if id(value) not in self._shared:
            self._shared[id(value)] = value, self._submit(_same, value)
        return self._shared[id(value)][1]

    def _submit(self, function: Any, *given: Any) -> Any:
        return self.made(self.client.submit, function, *given, pure=False)


# ---- on the workers ----


def _same(value: T) -> T:
    return value


def _job(
    work: Work, given: dict[str, Any], left: float | None, ask: Any, before: Sequence[Any]
) -> tuple[Any, Any]:
    """One job, with the seconds that it may take, and with what the pairs of earlier ones left."""
    stop = Stop() if left is None else Stop(deadline=time.perf_counter() + left)
    with as_worker(), one_blas_thread():
        return work(Task(**given, stop=stop), ask, [pair[1] for pair in before])
