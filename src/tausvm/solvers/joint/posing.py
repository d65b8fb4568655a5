"""The problem of several levels or outputs in units of its own, and points that need no solve."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...losses.group import GroupTerms
from ...operators import MatrixOperator
from ..monitor import Monitor
from ..problem import Point, Problem
from ..result import Status
from ..units import Units

Array = NDArray[np.float64]


def posed(
    operator: MatrixOperator,
    y: Array,
    terms: GroupTerms,
    offset: bool,
    units: Units,
    cost: float = 1.0,
) -> Problem:
    """The problem with targets of size 1, and the widest side of h of size 1.

    The matrix, ``y`` and ``terms`` are in the user's units, the terms for costs divided by
    ``cost``, so that the largest is about 1.
    """
    targets = units.targets(y)
    own = terms.in_units(units.scale)
    # a tube wider than all targets is as good as one four times as wide as them
    widest_row = 4.0 * float(np.sqrt(np.square(targets).sum(axis=1)).max())
    if own.epsilon > widest_row:
        own = GroupTerms(own.outputs, widest_row)
    power = math.frexp(cost)[1] + math.frexp(own.widest)[1]
    size = math.ldexp(1.0, power)
    return Problem(
        operator.scaled(size),
        targets,
        own.costing(math.ldexp(cost, -power)),
        offset,
        units=replace(units, cost=size),
    )


def good_enough(monitor: Monitor, tol: float, start: Point | None) -> Point | None:
    """A point that needs no solve: constants or a warm start with a gap of ``tol`` at most.

    Where time is up the constants are it, whatever their gap.
    """
    problem = monitor.problem
    problem.settle_constant(monitor.out_of_time)
    constant = problem.constant_point()
    if monitor.out_of_time():
        monitor.status = Status.TIME_LIMIT
        return constant
    for point in (constant, start):
        if point is not None and monitor.certify(point).gap <= tol:
            return point
    return None
