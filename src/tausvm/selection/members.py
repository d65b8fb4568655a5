"""The machines that predict: each solved to ``tol`` on its own rows, with its certificate.

    β ← what the selection has found, made better together with all members on the same matrix
    certificate of β from the data: kernel values in float64, the offset that predicts
    solve from there, unless its gap is at most tol already

A member keeps the β and the offset of its last certificate: what is certified is what predicts.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..estimators.data import TrainingSet
from ..estimators.machine import Level
from ..estimators.regression import KernelRegressor
from ..solvers import (
    Family,
    Goal,
    Point,
    Problem,
    Solver,
    SolverOptions,
    SolverResult,
    Status,
    Stop,
    solve,
    solve_many,
)
from ..solvers.monitor import Monitor
from ..threads import in_threads, one_blas_thread
from .settings import SelectionSettings

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(eq=False)
class Member:
    """A machine that predicts.

    Attributes
    ----------
    machine : KernelRegressor
        With the level, C and γ that it has.
    level : int
    place : (int, int)
        Its γ and C, by their places on the grid.
    fold : int or None
        The fold on whose training rows it is fitted, None for all rows.
    share : int
        How much it counts in the mean of its level.
    start : array (n_rows,) or None
        A β that is good already, in the user's units.
    direct : bool
        Whether steps got nowhere from there, so that the interior-point method comes first.
    result : SolverResult or None
        None as long as there is no solution.
    """

    machine: KernelRegressor
    level: int
    place: tuple[int, int]
    fold: int | None
    share: int
    start: Array | None = None
    direct: bool = False
    result: SolverResult | None = None

    @property
    def solved(self) -> bool:
        return self.result is not None and self.result.status is Status.SOLVED


@dataclass
class Panel:
    """Fits members; those at one γ and on the same rows share a kernel matrix.

    Attributes
    ----------
    data : TrainingSet
        All rows, with targets as floats.
    folds : sequence of int arrays
        The training rows of the folds.
    n_features : int
        Columns of the X that was given.
    options : SolverOptions
    stop : Stop
        When to leave.
    n_jobs : int or None
        As joblib takes it.
    settings : SelectionSettings
    """

    data: TrainingSet
    folds: Sequence[Index]
    n_features: int
    options: SolverOptions
    stop: Stop
    n_jobs: int | None
    settings: SelectionSettings
    #: members that have not begun
    _waiting: int = field(default=0, init=False)

    def fit(self, members: Sequence[Member]) -> list[Member]:
        """Fit the members; those that are to predict.

        With a time limit the first member of each level comes first. Of the others those join
        that are solved in the time that is left: a level is better off without the rest.
        """
        if self.stop.left is None:
            self._fit_all(members)
            return list(members)
        leading = {id(next(m for m in members if m.level == k)) for k in {m.level for m in members}}
        self._fit_all([member for member in members if id(member) in leading])
        if not self.stop():
            self._fit_all([member for member in members if id(member) not in leading])
        return [member for member in members if id(member) in leading or member.solved]

    def _fit_all(self, members: Sequence[Member]) -> None:
        groups: dict[Hashable, list[Member]] = {}
        for member in members:
            # a fit from nothing is that of the machine by itself, to the last bit
            alone = None if member.start is not None else id(member)
            groups.setdefault((member.fold, member.machine.gamma, alone), []).append(member)
        jobs = max(1, min(effective_n_jobs(self.n_jobs), len(groups), self._room(members)))
        self._waiting = len(members)
        try:
            with one_blas_thread():
                calls = [partial(self._fit_group, group, jobs) for group in groups.values()]
                for _ in in_threads(calls, jobs, shared=True):
                    pass
        except KeyboardInterrupt:
            self.stop.raised = True
            raise

    def _room(self, members: Sequence[Member]) -> int:
        """How many kernel matrices fit in memory at a time."""
        megabytes = min((member.machine.cache_size for member in members), default=0.0)
        return int(megabytes * 2**20 / (8 * len(self.data) ** 2))

    def _fit_group(self, group: Sequence[Member], jobs: int) -> None:
        """All on one matrix, then one after the other with its share of the time that is left."""
        first = group[0].machine
        data = self._rows(group[0])
        gram = first._gram(data)
        problems = []
        for member in group:
            machine = member.machine
            if not machine._precomputed:
                machine._kernel, machine._centre = first._kernel, first._centre
            (loss,) = machine._losses()
            problems.append(machine._posed(gram, Level(data.y, loss), data.weight))
        self._solve_together(group, problems)
        for member, problem in zip(group, problems, strict=True):
            machine, left = member.machine, self.stop.left
            if left is not None:
                left *= min(jobs / self._waiting, 1.0)
            self._waiting -= 1
            options = self.options.with_(time_limit=left, callback=self._interrupted)
            member.result = solved_from(member, problem, options, self.settings)
            if member.result is not None:
                machine.n_features_in_ = self.n_features
                machine._clip_to(data.y)
                machine._keep(data, [member.result])
            if self.stop.raised:
                return

    def _solve_together(self, group: Sequence[Member], problems: Sequence[Problem]) -> None:
        """Better starts of the members of one matrix, good enough for most certificates.

        Those that are left to a solver of the user's choice, or that steps got nowhere with, stay.
        """
        gram = problems[0].operator
        if not gram.whole:
            return
        if group[0].machine.solver != "auto" or self.options.max_iter >= 0:
            return
        gram.require(np.arange(len(gram)))
        # each member is a loss of its own at its C
        starts = np.full((len(group), 1, len(gram)), np.nan)
        for k, (member, problem) in enumerate(zip(group, problems, strict=True)):
            if member.start is not None:
                starts[k, 0] = problem.units.into(member.start)
        family = Family(
            gram,
            problems[0].y,
            [problem.terms for problem in problems],
            np.ones(1),
            problems[0].offset,
            np.full(len(group), np.inf),  # the gap counts as a share of the objective alone
        )
        served = len(gram) <= self.settings.many.faces_order
        wanted = np.array([[m.start is not None and (served or not m.direct)] for m in group])
        tol = self.settings.committee.together * self.options.tol
        few = self.settings.committee.rounding_rows
        many = replace(self.settings.many, finish=False, few=few)
        result = solve_many(family, Goal(1.0, tol), wanted, starts, self.stop, many)
        for k in np.flatnonzero(result.solved[:, 0]).tolist():
            group[k].start = problems[k].units.coefficients(result.beta[k, 0])

    def _interrupted(self, progress: object) -> bool:
        return self.stop.raised

    def _rows(self, member: Member) -> TrainingSet:
        """The rows that a member is fitted on."""
        data = self.data
        if member.fold is None:
            return data
        rows = self.folds[member.fold]
        X = data.X[np.ix_(rows, rows)] if member.machine._precomputed else data.X[rows]
        return TrainingSet(X, data.y[rows], data.weight[rows], data.rows[rows], data.n_given)


def solved_from(
    member: Member, problem: Problem, options: SolverOptions, settings: SelectionSettings
) -> SolverResult | None:
    """The solution of a member's problem to ``tol``, from its start; None without any."""
    started, committee = options.clock(), settings.committee
    best: SolverResult | None = None
    if member.start is not None:
        beta = problem.feasible(problem.units.into(member.start))
        best = Monitor(problem, options, "selection").result(Point.of(beta), 0)
        few = problem.n <= committee.rounding_rows and problem.repeats
        if few and best.dual_gap > committee.rounding_gap:
            best = None
    names: list[str | Solver] = [member.machine.solver]
    if best is not None and names == ["auto"]:
        names = [*_after_start(member, problem, settings), "auto"]
    for name in names:
        if best is not None and best.status is Status.SOLVED:
            break
        found = solve(problem, name, within(options, started), best)
        # where nothing was better than the start, it stays
        better = best is None or found.dual_gap <= best.dual_gap
        best = found if best is None or better else replace(best, status=found.status)
        if found.status is not Status.NUMERICAL_ERROR:
            break
    assert best is not None
    return best if np.isfinite(best.dual_gap) else None


def _after_start(member: Member, problem: Problem, settings: SelectionSettings) -> list[str]:
    """What to try before "auto": a direct solve where the members before it called for one."""
    if not problem.operator.whole or problem.n > settings.many.factor_order:
        return []
    return ["interior_point"] if member.direct and not np.isinf(problem.terms.upper).all() else []


def within(options: SolverOptions, started: float) -> SolverOptions:
    """The options with what is left of their time limit."""
    if options.time_limit is None:
        return options
    return options.with_(time_limit=max(started + options.time_limit - options.clock(), 0.0))
