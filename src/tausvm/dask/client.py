"""What a distributed client is asked, so that faults of a cluster have one name each."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import dask


class LostCluster(RuntimeError):
    """The scheduler, or the workers again and again, went away in the middle of a fit."""


def found_client() -> Any:
    """The distributed client that Dask would use, or None for a local scheduler."""
    get = dask.base.get_scheduler()
    owner = getattr(get, "__self__", None)
    return owner if hasattr(owner, "cancel") and hasattr(owner, "scheduler_info") else None


def compute(task: Any, heartbeat: float) -> Any:
    """The value of a delayed object, by the scheduler that Dask has been given.

    With a distributed client the work is cancelled where the wait is interrupted, and a scheduler
    that is gone ends it.
    """
    client = found_client()
    if client is None:
        return dask.compute(task)[0]
    advice = "partition; it may be larger than their memory, give the data smaller partitions"
    with Futures(client, "pass", advice, heartbeat) as futures:
        future = futures.made(client.compute, task)
        futures.wait([future])
        return futures.value(future)


class Futures:
    """Futures of a client, of which nothing is left at the end of a context.

    Parameters
    ----------
    client : distributed.Client
    whole : str
        What is under way.
    fatal : str
        At what workers die that die at the same task again and again, and what to do about it.
    heartbeat : float
        Seconds between two looks whether the scheduler is still there.
    """

    def __init__(self, client: Any, whole: str, fatal: str, heartbeat: float) -> None:
        self.client, self.fatal, self.heartbeat = client, fatal, heartbeat
        address = client.scheduler.address if client.scheduler is not None else "?"
        self.lost = (
            f"the Dask scheduler at {address} was lost before the end of the {whole}; fit again"
        )
        self._made: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self.client.status == "running":
            self.client.cancel(self._made)
        for future in self._made:
            future.release()

    def made(self, make: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """The future that a method of the client makes."""
        from distributed.comm import CommClosedError

        try:
            with warnings.catch_warnings():
                # what is large goes once: the rows of a selection, or the landmarks of a pass
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                future = make(*given, **options)
        except (CommClosedError, OSError, RuntimeError) as error:
            raise LostCluster(self.lost) from error
        self._made.append(future)
        return future

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until one of some futures is done, or has failed."""
        from distributed import wait

        while not any(future.done() for future in futures):
            with self._named_faults():
                try:
                    wait(futures, timeout=self.heartbeat, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    if self.client.status != "running":
                        raise LostCluster(self.lost) from None

    def value(self, future: Any) -> Any:
        """The value of a future that is done; its error, where it has failed."""
        with self._named_faults():
            return future.result()

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            message = f"workers died again and again at the same {self.fatal}: {error}"
            raise LostCluster(message) from error
        except (CommClosedError, asyncio.CancelledError) as error:
            raise LostCluster(self.lost) from error
        except Exception as error:
            if type(error).__name__.endswith("CancelledError"):
                raise LostCluster(self.lost) from error
            raise
