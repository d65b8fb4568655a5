"""The numbers of a selection, each with what it trades."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..solvers.linear import LinearAuto, Pace
from ..solvers.many import Many


@dataclass(frozen=True)
class GridSettings:
    """How a grid grows where the best point lies on its border."""

    #: points added towards the border
    growth: int = 2
    #: how often at most
    rounds: int = 2
    #: the largest factor between two added points
    largest_step: float = 10.0
    #: growth goes on while it improves a score by this share
    worthwhile: float = 1e-3


@dataclass(frozen=True)
class RaceSettings:
    """Which points of a grid leave the race, and how well those in it are fitted."""

    #: a point leaves when it is worse than the leader by so many standard errors of the difference
    standard_errors: float = 3.0
    #: validation rows to tell that from: the race begins on as many folds as have them, or on all
    rows: int = 60
    #: a walk along C ends early where it overfits, told from so many validation rows of one fold
    path_rows: int = 50
    #: how often what lies next to the best point is looked at, and then around the best one there
    moves: int = 3
    #: axes of fewer points have no coarse grid
    fine_axis: int = 5
    #: the gap of the fits in the race, against the one asked for
    rough: float = 10.0
    #: the share of a loss that these may be wrong by
    slack: float = 0.02
    #: points of a level at most that are fitted better after the race, those whose score may be the
    #: best one: by better fits the mean scores of eight tables change by 0.1 to 1 %, and the best
    #: one by as much or, most often, not at all
    finalists: int = 10
    #: steps a variable along C: points that need more rarely win, and the machines that predict are
    #: solved all the same. With 100 the test losses of eight tables are the same but for 2 % either
    #: way, and a fit takes up to 2.5 times as long (concrete_comp, 700 rows)
    steps: float = 20.0
    #: steps of squared problems
    iterations: int = 60
    #: where the best loss is below this share of what constants cost, data are without noise:
    #: points that ran out of steps may then be better than they look
    no_noise: float = 0.05
    #: those with a loss up to so many times the best one stay in the race and are solved directly;
    #: left as they are, losses on such data are ten times as large
    hard_factor: float = 30.0
    #: up to this many rows: a direct solve costs their cube, 0.02 s at 500
    hard_rows: int = 600
    #: up to this many rows squared losses race with the gap asked for: it costs less than to fit
    #: twice
    exact_rows: int = 800


@dataclass(frozen=True)
class CommitteeSettings:
    """Who predicts."""

    #: up to this many rows the folds' own machines join a committee: what varies from row to row
    #: then matters more than what fewer rows cost
    few_rows: int = 600
    #: if each has seen this share of the rows
    nearly_all: float = 0.7
    #: up to this many rows, where some may be copies or have weights, members are solved to
    #: rounding: weights then count as copies to the last digits
    rounding_rows: int = 60
    #: the relative gap that rounding leaves at most: 1e-12 to 1e-10 where rows are so few
    rounding_gap: float = 1e-8
    #: the gap to which members are solved together, as a share of the one asked for: what
    #: certificates in float64 then add stays below the rest
    together: float = 0.3


@dataclass(frozen=True)
class CalibrationSettings:
    """What levels are calibrated by."""

    #: the gap of the folds' models, as a share of the primal objective. On data without noise those
    #: of the race are too rough: intervals that should hold 90 % then hold 63 % (energy), not 92;
    #: gaps from 0.001 to 0.02 make no difference
    gap: float = 1e-2
    #: the share of the rows that "split" holds out
    held_out: float = 0.2


@dataclass(frozen=True)
class MetricSettings:
    """How features are learned."""

    #: rounds at most: telemonitoring voices still gain from the sixth one
    rounds: int = 6
    #: rounds in a row that win nothing, after which learning ends
    patience: int = 2
    #: a round counts if it wins by so many standard errors of the difference, row by row
    standard_errors: float = 1.0
    #: kernels and maps with which the proxy errs more by so many standard errors are not tried
    screening_errors: float = 2.0
    #: γ of a selection's own grid to each side of the proxy's best that are tried; a grid grows
    #: where the best one lies on its border
    gamma_reach: int = 2
    #: rows that maps are learned from at most: on five tables of 2,000 rows half of them gave
    #: losses of 0.94 to 1.18 times those of all (1.01 in the mean), in less than half of the time
    rows: int = 1000
    #: validation rows by which most of the proxy's γ and C are ruled out, of as many folds as have
    #: them, and how many points are left for all folds to choose from: with one of them losses are
    #: 1.4 times as large on pol, with all points learning takes three times as long
    choice_rows: int = 200
    finalists: int = 3
    #: rows at which gradients are taken at most
    gradient_rows: int = 1000
    #: points of the first grid of the proxy: half of a selection's on each axis
    gammas: int = 6
    costs: int = 6
    #: factors between the three γ and C of later grids, about those of the first one; grids that
    #: grew at their borders took twice the time for the same losses (concrete_comp, hour, cpu_act)
    gamma_step: float = 3.0
    cost_step: float = 10.0
    #: the spread of y is left out where it counts for less than this share beside the mean
    least_spread_share: float = 0.1
    #: rounds of a full metric after those of a diagonal one, where the metric is "auto": losses
    #: on 500 rows with none, two and four are 0.48, 0.36, 0.36 (pol) and 0.54, 0.52, 0.48 (updrs)
    full_rounds: int = 4
    #: the share of what is left of a time limit that learning may take
    time_share: float = 0.3
    #: up to this many features a whole matrix is learned where the diagonal is not asked for
    full_features: int = 100


@dataclass(frozen=True)
class LargeSettings:
    """What is done where rows are too many for a kernel matrix."""

    #: rows that C, γ, the kernel and the features are chosen on: mean pinball losses of five levels
    #: with 10,000 of them are 0.926 instead of 0.913 (protein, 37,000 rows) in 4.6 times the
    #: processor time and 4 times the memory
    selection_rows: int = 5_000
    #: rows held out of the fit to calibrate the levels, as a share and at most
    held_out: float = 0.2
    held_out_rows: int = 10_000
    #: rows that a linear trend is learned from, at most, and so many a feature at least: 100,000
    #: rows of 34 features take 0.5 s
    trend_rows: int = 100_000
    trend_rows_a_feature: int = 20
    #: the share of a time limit that it may take
    trend_share: float = 0.05
    #: a gap to the full problem above which a fit warns, where the number of landmarks is ours: by
    #: then their functions are another family than those of the full problem
    telling_gap: float = 0.1
    #: landmarks where their number is not given: as many as fit in ``cache_size``, within these
    least_landmarks: int = 250
    most_landmarks: int = 1000
    #: processor seconds by which a fit says beforehand how long it takes: for every squared row
    #: and level of a selection (40 s for 5,000 rows of ten features and five levels, 30 to 60 on
    #: real data)
    selection_pace: float = 3.5e-7
    #: for every row, squared landmark and level (11 s for 30,000 rows, 1,000 landmarks and five
    #: levels)
    landmark_pace: float = 1e-10
    #: and for a kernel value of a certificate (a second for 30,000 rows)
    kernel_pace: float = 2.5e-9
    #: megabytes of the libraries that a process has before
    libraries: float = 200.0

    def held_out_count(self, n: int) -> int:
        """Rows held out of n to calibrate by."""
        return min(int(self.held_out * n), self.held_out_rows)

    def selection_seconds(self, rows: int, levels: int, jobs: int) -> float:
        """About how long a choice on some rows takes, by the clock."""
        return self.selection_pace * levels * rows**2 / jobs


@dataclass(frozen=True)
class WalkSettings:
    """Selections that fit every point of their grid on every fold, walking up C."""

    #: the share of a time limit that the fits on folds may take; the rest is for what predicts
    time_share: float = 0.8
    #: the share of its bound that a dual variable is near from: with none beyond it a walk up C
    #: ends. Exact solutions would allow 1; those of a rough gap may lie on either side of it
    near_bound: float = 0.5
    #: how linear machines are solved on a walk: Newton's method has little of its way from the
    #: solution of a smaller C. 50 to 800 rows take 0.69 to 1.13 of the time with that of a level
    #: nearby, 0.8
    linear: LinearAuto = field(default_factory=lambda: LinearAuto(pace=Pace(nearby_corners=0.6)))
    #: the default grid of linear machines: C = 1/(2nλ) for λ from 1 down to this over n, in units
    #: of the data
    smallest_lambda: float = 1e-3
    #: even levels τ between 0 and 1 at which a selection along whole paths keeps the best machine:
    #: 0.01, 0.02, …
    levels: int = 99
    #: the default grid of ε, in standard deviations of y: the one of the linear SVR paper
    epsilons: tuple[float, float] = (2.0**-10, 2.0**-2)


@dataclass(frozen=True)
class DistanceSettings:
    """γ from the distances of rows."""

    #: the share of the distances that are at most σ: that of the ε-insensitive paper
    share: float = 0.7
    #: rows at most, drawn at random: 2,000 have two million distances, of which the quantile is
    #: right to some per mille
    rows: int = 2000


@dataclass(frozen=True)
class BeatSettings:
    """When a line says that work goes on, where there is no terminal for a bar."""

    #: seconds between two lines: ten minutes of work are twenty lines of a log
    seconds: float = 30.0
    clock: Callable[[], float] = field(default=time.perf_counter)


@dataclass(frozen=True)
class SelectionSettings:
    """All of them."""

    grid: GridSettings = field(default_factory=GridSettings)
    race: RaceSettings = field(default_factory=RaceSettings)
    committee: CommitteeSettings = field(default_factory=CommitteeSettings)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    metric: MetricSettings = field(default_factory=MetricSettings)
    large: LargeSettings = field(default_factory=LargeSettings)
    walk: WalkSettings = field(default_factory=WalkSettings)
    distances: DistanceSettings = field(default_factory=DistanceSettings)
    beats: BeatSettings = field(default_factory=BeatSettings)
    #: of the fits
    many: Many = field(default_factory=Many)
    #: gaps against the tolerance, as a share of what constants cost: predictions of a squared loss
    #: react more to a gap of the same size
    squared_gap: float = 0.1
    #: and as a share of the primal objective; steps to small gaps of linear losses are dear
    squared_share: float = 1.0
    linear_share: float = 50.0
    #: up to this many rows kernel matrices are held in float64: problems with the largest C, which
    #: float32 is not enough for, are solved directly there
    double_rows: int = 300
    #: bytes of matrices of all rows that are kept; folds have parts of them. One that does not fit
    #: is computed for every fold by itself
    whole_bytes: int = 64 << 20
    #: mean losses below this share of the best constant's are rounding
    perfect: float = 1e-12
    #: jobs for every worker, so that none waits for long
    jobs_each: int = 3
    #: the share of a time limit that the search may take: the rest is for the machines that
    #: predict, which take a sixth of the whole on ordinary data
    search_share: float = 0.7
