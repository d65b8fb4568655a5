"""What following a path is told: limits by its user, numbers by its author."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..result import Progress


@dataclass(frozen=True)
class PathOptions:
    """How to work.

    Parameters
    ----------
    tol : float
        The relative duality gap that every piece must meet.
    cache_size : float
        Megabytes for kernel values.
    memory_limit : float
        Megabytes for the records of the path.
    callback : callable or None
        Called with a :class:`Progress` after every batch of kinks.
    max_iter : int
        Bound on the kinks, those on the way to the first solution too; −1 for none.
    time_limit : float or None
        Bound in seconds.
    clock : callable
        Seconds, as ``time_limit`` counts them; tests inject one.
    """

    tol: float = 1e-6
    cache_size: float = 2000.0
    memory_limit: float = 1000.0
    callback: Callable[[Progress], object] | None = None
    max_iter: int = -1
    time_limit: float | None = None
    clock: Callable[[], float] = time.perf_counter


@dataclass(frozen=True)
class PathSettings:
    """The numbers of the walk. Where a measurement is named, it was of processor time."""

    # ---- ties: labels are moved apart and boxes made narrower ----

    #: at most by this share of the labels' spread and of a box; it is the price in gap of points
    #: that come to the margin one after the other instead of together
    apart: float = 1e-10
    #: and at most by this share of the tolerance
    apart_of_tol: float = 0.1

    # ---- batches of kinks ----

    #: kinks between two exact evaluations of all residuals: longer batches save products with K,
    #: shorter ones lose less where a piece fails; 256 to 512 take the same time within 5 %
    batch_kinks: int = 256
    #: kinks between two at which f is computed afresh for the certificates: more bend f further
    #: from the straight line, so that more points have to be looked at
    stretch_kinks: int = 128
    #: kinks in a row that may go without a step in t, beside the number of points
    zero_steps: int = 1000
    #: whether a classifier without a free offset begins with its smaller class alone: 28 % of an
    #: ecml inbox's linear path
    begin_at_ends: bool = True

    # ---- the margin ----

    #: a point depends on the free ones where they leave at most this share of its k(x, x)
    independence: float = 1e-12
    #: below this share a factor that was updated often has let in a dependent point
    dependence: float = 1e-13
    #: below minus this share it is no rounding: the matrix is not positive semidefinite
    indefiniteness: float = 1e-6
    #: δ is refined where free points leave the margin at more than this multiple of rounding
    refine: float = 8.0
    #: how far from the margin, as a share of the labels' spread, free points may be after a batch
    #: that is kept
    drift: float = 1e-7
    #: how often they are put back onto it, as long as that brings them nearer
    refinements: int = 3
    #: what rounding may make of a residual, as a share of the terms in it
    evaluation: float = 1e-15

    # ---- windows ----

    #: up to this many points, all are in the window: a kernel matrix that small is cheap
    whole: int = 1000
    #: the same where the matrix of a kernel that is not linear is held anyway, and rows need not be
    #: gathered: 15 to 30 % on airfoil_noise, cal_housing and spambase with 1,500 to 4,000 rows
    whole_held: int = 4000
    #: points in a window: so many, and so many for every free point; smaller windows are cut more
    #: often, larger ones cost more a kink. 18 paths of 1,500 to 5,000 rows take 0.98 of the time
    #: that they take with 500 in the geometric mean, 0.86 to 1.12, and 1.02 with 200
    window: int = 300
    window_per_free: float = 1.5
    #: so many more for the next ones to have the same size: what stays then keeps its place in the
    #: matrix, and only the rows of new points are written
    window_spare: int = 32
    #: a window that would have this share of the points has all
    most_of: float = 0.7
    #: bytes of residuals that a check of a window's outside holds: a bound on memory
    window_bytes: int = 64 << 20

    # ---- certificates of pieces ----

    #: bytes of residuals of pieces that are looked at together: a bound on memory
    piece_bytes: int = 16 << 20
    #: parts of a piece that is looked at alone: the bound of each is nearer to its largest gap
    parts: int = 8

    # ---- where the walk cannot go on ----

    #: how often that may happen within a leg, and in a row at one level
    most_failures: int = 300
    most_stuck: int = 20
    #: a walk that cannot meet the tolerance goes on with pieces of up to so many times the best gap
    lenience: float = 2.0
    #: a piece with a gap up to this is taken where the walk ends: levels that are solved one by
    #: one are seldom better there
    good_enough: float = 1e-3
    #: levels solved one by one at most, where one that misses the tolerance counts as several:
    #: together they bound the time of a path that float64 cannot follow
    most_levels: int = 150
    missed_counts: int = 5
    #: direct solutions in a row that may miss the tolerance before no more are tried
    hopeless: int = 3
    #: the way in τ to the next level that is solved, at most and at least, and as a share of what
    #: is left of the way to the end
    next_level: float = 1 / 64
    shortest: float = 1 / 2048
    next_share: float = 0.5
    #: up to this many points a level is solved by the interior-point method, to rounding, else by
    #: ``block``; each may take so many iterations
    direct: int = 1000
    direct_iterations: int = 4
    block_iterations: int = 200
    #: β this near to its bound, as a share of the box and of the largest β, is at it
    at_bound: float = 1e-9
    #: up to this order a matrix on which the walk failed is checked for negative eigenvalues: about
    #: a second
    checked_order: int = 2000
