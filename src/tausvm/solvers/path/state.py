"""Where a walk is, the leg it is on, and what may end it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..result import Status
from .box import LOWER_SLOPE, UPPER_SLOPE, MovingBox
from .record import Recorder
from .settings import PathOptions

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

NOT_YET = np.empty(0)


class PathError(Exception):
    """A path that could not be followed any further."""

    def __init__(self, indefinite: bool) -> None:
        super().__init__("the path could not be followed any further")
        self.indefinite = indefinite


class PathStopped(Exception):
    """A limit ended the walk."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"the walk was ended: {status.value}")
        self.status = status


@dataclass
class State:
    """A point of a path.

    Attributes
    ----------
    t, offset : float
    beta : array (n,)
    status : int8 array (n,)
        −1 at the lower bound, 0 free, 1 at the upper bound.
    free : int array
        The points whose status is 0, in the order in which the factor has them.
    fitted, residual : arrays (n,)
        Kβ and y − Kβ − b, once they were evaluated.
    factor : array (m, m)
        The lower Cholesky factor of the free points' matrix, once it was computed.
    """

    t: float
    beta: Array
    status: Signs
    offset: float
    free: Index
    fitted: Array = field(default_factory=lambda: NOT_YET)
    residual: Array = field(default_factory=lambda: NOT_YET)
    factor: Array = field(default_factory=lambda: NOT_YET)

    @classmethod
    def of(cls, t: float, beta: Array, status: Signs, offset: float) -> State:
        """A point that no walk has led to."""
        return cls(t, beta, status, offset, np.flatnonzero(status == 0))

    def moved_to(self, t: float) -> State:
        """The same point where another leg begins to count."""
        return replace(self, t=t, beta=self.beta.copy(), status=self.status.copy())

    def slopes(self, box: MovingBox) -> Array:
        """How fast the points at bounds move."""
        lower, upper = box.numbers[LOWER_SLOPE], box.numbers[UPPER_SLOPE]
        slopes = np.where(self.status > 0, upper, lower)
        slopes[self.free] = 0.0
        return slopes


@dataclass
class Leg:
    """A walk to t = ``end``.

    Attributes
    ----------
    box : MovingBox
        In t.
    end : float
    base, way : float and int
        The level of a t is base + way·t.
    state : State
        Where the walk is: the last point that stood up to an exact evaluation.
    record : Recorder or None
        None on the way to the first solution, of which nothing is kept.
    """

    box: MovingBox
    end: float
    base: float
    way: int
    state: State
    record: Recorder | None = None

    def level(self, t: float) -> float:
        return self.base + self.way * t

    @property
    def closes(self) -> bool:
        """Whether it leads to an end of the path, where boxes close."""
        return self.level(self.end) in (0.0, 1.0)


class Limits:
    """The clock and the kinks of one path, and what is left of both."""

    def __init__(self, options: PathOptions) -> None:
        self.options = options
        self.started = options.clock()
        self.n_kinks = 0

    @property
    def seconds(self) -> float:
        return self.options.clock() - self.started

    @property
    def seconds_left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else max(limit - self.seconds, 0.0)

    def out_of_time(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and self.seconds >= limit

    def kinks(self, wanted: int) -> int:
        """As many kinks as are wanted and allowed."""
        most = self.options.max_iter
        return wanted if most < 0 else min(wanted, max(most - self.n_kinks, 0))

    def stop_in_time(self) -> None:
        """Ends long work when time is up."""
        if self.out_of_time():
            raise PathStopped(Status.TIME_LIMIT)

    def stop(self) -> None:
        """Ends the walk at any limit."""
        self.stop_in_time()
        if self.kinks(1) == 0:
            raise PathStopped(Status.MAX_ITER)
