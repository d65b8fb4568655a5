"""One fit: the first look at the data, a sample's solution, and passes until every job is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..estimators.data import check_weights
from ..operators import LinearOperator
from ..solvers import Point, SolverOptions, SolverResult, Status
from ..solvers.solver import Solver
from ..solvers.units import SMALLEST_SIZE, Units, weighted_median
from ..threads import one_blas_thread
from .partitions import Partitions
from .settings import Plan
from .steps import CornerSteps, Sample, SmoothSteps, Steps
from .sums import (
    Ask,
    Draw,
    Job,
    Look,
    Rows,
    Setting,
    Summary,
    Sums,
    look,
    merged_looks,
    merged_summaries,
    summary,
)

Array = NDArray[np.float64]

logger = logging.getLogger("tausvm")


@dataclass(frozen=True)
class Offset:
    """How b enters: free, as a penalised constant column, or not at all."""

    free: bool
    column: float
    scale_C: bool


class Fit:
    """The passes of one fit over partitions.

    Parameters
    ----------
    partitions : Partitions
    offset : Offset
    solver : str or Solver
        For the client's sample.
    options : SolverOptions
    folds : int
        Folds that rows are dealt into, 0 for none.
    looked : Summary or None
        What a first look at the same rows has found; None to have that pass.
    """

    def __init__(
        self,
        partitions: Partitions,
        offset: Offset,
        solver: str | Solver,
        options: SolverOptions,
        folds: int = 0,
        looked: Summary | None = None,
    ) -> None:
        self.partitions, self.solver, self.options = partitions, solver, options
        self.plan: Plan = partitions.plan
        self.started = options.clock()
        draw = Draw.of(self.plan, options.seed, len(partitions), folds)
        self.summary: Summary = looked or partitions.reduce(summary, merged_summaries, draw)
        self._check()
        assert self.summary.sample is not None
        self.sample: Rows = self.summary.sample
        units = self._units(offset.free)
        self.setting = Setting(
            units=units,
            unit=self.spread if offset.scale_C else 1.0,
            free=offset.free,
            column=offset.column,
            draw=draw,
            room=self.plan.client_megabytes,
            length=float(np.median(LinearOperator(self.sample.X).squares())) or 1.0,
        )

    def _check(self) -> None:
        found = self.summary
        if found.n < 2:
            raise ValueError(
                f"X must have 2 rows of positive weight at least, got n_samples = {found.n}"
            )
        if found.n >= 2**53:
            raise ValueError(f"X must have fewer than 2**53 rows, got {found.n}")
        check_weights([found.lightest, found.heaviest], 2)

    @property
    def spread(self) -> float:
        """The weighted standard deviation of y, 1 where y is constant."""
        return self.summary.spread

    def _units(self, free: bool) -> Units:
        """Units of y: the sample's median where b is free, and the size of all y about it."""
        found = self.summary
        shift = weighted_median(self.sample.y, self.sample.weight) if free else 0.0
        with np.errstate(over="ignore"):
            size = float(np.sqrt(found.squares / found.weight + (found.mean - shift) ** 2))
        if found.high == found.low == shift:
            return Units(shift, 1.0)
        if not SMALLEST_SIZE < size < 1.0 / SMALLEST_SIZE:
            raise ValueError(
                f"y must have differences between {SMALLEST_SIZE:g} and {1 / SMALLEST_SIZE:g}, "
                "whose squares float64 can hold, got targets from "
                f"{found.low:.3g} to {found.high:.3g}"
            )
        return Units(shift, 2.0 ** float(np.round(np.log2(size))))

    def run(self, jobs: Sequence[Job]) -> list[SolverResult]:
        """Solve all jobs; neighbours are alike, and each starts from the one before it."""
        steps = self._start(jobs)
        while True:
            open_ = [step for step in steps if not step.done]
            if not open_ or not self._may_go_on(open_):
                break
            found = self._look([step.ask() for step in open_])
            with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
                for step, sums in zip(open_, found.sums, strict=True):
                    step.told(sums, found, self._one_pass)
            self._log(steps)
        return [step.result(self.partitions.n_passes) for step in steps]

    def _may_go_on(self, steps: Sequence[Steps]) -> bool:
        """Whether passes and time are left; every job has been certified once."""
        if any(step.best is None for step in steps):
            return True
        limit = self.options.time_limit
        if limit is not None and self.options.clock() - self.started >= limit:
            for step in steps:
                step.status = Status.TIME_LIMIT
            return False
        return self.partitions.n_passes < self._most_passes

    @property
    def _most_passes(self) -> int:
        most, asked = self.plan.most_passes, self.options.max_iter
        return most if asked < 0 else min(most, asked)

    def _start(self, jobs: Sequence[Job]) -> list[Steps]:
        """Every job at the solution of the sample."""
        steps: list[Steps] = []
        options = self.options
        if options.time_limit is not None:
            options = options.with_(time_limit=0.5 * options.time_limit)
        before: dict[int, tuple[Array, float]] = {}
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            for job in jobs:
                sample = Sample(self.setting, self.sample, self.summary.n, job)
                start = None
                if job.fold in before:
                    w, b = before[job.fold]
                    start = Point(sample.scaled.feasible(np.zeros(sample.scaled.n)), w, b)
                point = sample.solve(self.solver, options, start)
                before[job.fold] = point.function, point.intercept
                if sample.problem.terms.smooth:
                    steps.append(SmoothSteps(sample, point, self.plan, self.options))
                    continue
                error = sample.error(point, self.solver, options)
                steps.append(CornerSteps(sample, point, self.plan, self.options, error))
        return steps

    def _one_pass(self, ask: Ask) -> Sums:
        return self._look([ask]).sums[0]

    def _look(self, asks: list[Ask]) -> Look:
        found = self.partitions.reduce(look, merged_looks, (self.setting, asks))
        if not self.summary.same(found.n, found.y):
            raise RuntimeError(
                "the data changed between two passes: the first saw "
                f"{self.summary.n} rows with Σy = {self.summary.total!r}, pass "
                f"{self.partitions.n_passes} {found.n} with {found.y!r}; persist the collection, "
                "or read it from files that stay as they are"
            )
        return found

    def _log(self, steps: Sequence[Steps]) -> None:
        gaps = [step.best.gap for step in steps if step.best is not None]
        logger.info(
            "pass %d, %.2f s: %d of %d done, largest relative gap %.2e",
            self.partitions.n_passes,
            self.options.clock() - self.started,
            sum(step.done for step in steps),
            len(steps),
            max(gaps),
        )
