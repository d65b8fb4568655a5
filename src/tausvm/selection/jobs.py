"""Who does the jobs of a search: threads of this process, or workers elsewhere.

A job is a call ``work(task, ask, before)`` with what all jobs share, what it is asked, and what
earlier jobs have left. It returns what it tells, which is small, and what it leaves for later jobs,
which stays where it was made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from joblib import effective_n_jobs

from ..threads import in_threads, one_blas_thread

#: from what is shared, asked and left by earlier jobs to what is told and left
Work = Callable[[Any, Any, Sequence[Any]], tuple[Any, Any]]
#: what one job is asked, and what earlier ones have left for it, as ``run`` has given it
Asked = tuple[Any, Sequence[Any]]


class Jobs(Protocol):
    """Does jobs, some at a time."""

    @property
    def count(self) -> int:
        """How many run at a time."""

    @property
    def sharing(self) -> int:
        """How many of those share the memory of one process."""

    def run(self, work: Work, task: Any, asked: Sequence[Asked]) -> Iterator[tuple[Any, Any]]:
        """What the jobs tell, in their order, and a handle of what each leaves."""


@dataclass(frozen=True)
class Threads:
    """Jobs in threads of this process, or by the joblib backend that the user has chosen.

    Attributes
    ----------
    n_jobs : int or None
        As joblib takes it.
    """

    n_jobs: int | None

    @property
    def count(self) -> int:
        return max(1, effective_n_jobs(self.n_jobs))

    @property
    def sharing(self) -> int:
        return self.count

    def run(self, work: Work, task: Any, asked: Sequence[Asked]) -> Iterator[tuple[Any, Any]]:
        """What the jobs tell and leave; the cores release the GIL, and no data are copied."""
        parent = os.getpid()
        calls = [partial(_job, parent, work, task, *each) for each in asked]
        return in_threads(calls, self.n_jobs)


def _job(parent: int, work: Work, *arguments: Any) -> tuple[Any, Any]:
    """One job; in a process of its own it has to hold BLAS to one thread itself."""
    if os.getpid() == parent:
        return work(*arguments)
    with one_blas_thread():
        return work(*arguments)
