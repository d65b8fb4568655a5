"""Selections that fit every point of their grid on every fold, walking up C from warm starts."""

from __future__ import annotations

import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..estimators.data import TrainingSet
from ..estimators.parameters import check_flag, check_jobs, check_positive, is_real, refuse
from ..estimators.progress import caller_level
from ..solvers import Problem, Solver, SolverOptions, SolverResult, Status, solve
from ..solvers.problem import Point
from ..threads import in_threads, one_blas_thread
from .grid import (
    GAMMA_KERNELS,
    check_axis,
    cost_range,
    gamma_range,
    make_axis,
    mean_diagonal,
)
from .progress import progress
from .results import cv_results, equal_to_best
from .settings import SelectionSettings, WalkSettings

Array = NDArray[np.float64]

#: parameters of these selections that their machines do not have
OWN_PARAMETERS = ("Cs", "epsilons", "cv", "scoring", "refit", "selection_tol", "n_jobs")


class Scored(NamedTuple):
    """The measures of all points on one fold, and the gaps that were not closed.

    ``table`` is (n_levels, n_others, n_costs, n_measures), where others are the values of the
    parameters beside C and the first measure is the score; NaN where the time ended before.
    """

    table: Array
    unsolved: list[float]


class FoldSelection(BaseEstimator):
    """Base of the estimators that choose C, and other parameters, by fits on folds.

    A subclass names its machine, poses its problems and measures its predictions.
    """

    #: the estimator whose parameters are chosen
    _machine_class: Any
    #: parameters of the selection that the machine does not have
    _own_parameters: Sequence[str] = OWN_PARAMETERS

    Cs: Any
    cv: Any
    scoring: Any
    refit: bool
    selection_tol: float
    n_jobs: int | None
    time_limit: float | None
    verbose: bool | int
    random_state: Any

    #: one of each, or a list with one a level
    cv_results_: Any
    best_params_: Any
    best_index_: Any
    best_score_: Any
    best_estimator_: Any
    dual_gap_: Any

    #: seconds, as ``time_limit`` counts them; tests put another one in its place
    _clock: Callable[[], float] = staticmethod(time.perf_counter)
    #: the numbers of the selection
    _settings = SelectionSettings()

    def _machine(self, **parameters: Any) -> Any:
        """The machine with the parameters that are not chosen, and some that are."""
        kind: Any = type(self)
        names = _machine_parameters(kind, tuple(self._own_parameters))
        given = {name: getattr(self, name) for name in names}
        return self._machine_class(**{**given, **parameters})

    def _level(self, level: int) -> dict[str, Any]:
        """The parameters that make a machine one of this level."""
        return {}

    @property
    def _one_choice(self) -> bool:
        """Whether there is one choice, and not one of every level."""
        return True

    def _check_selection(self) -> int | Array:
        """The values of C asked for, or how many; a ValueError for what cannot be used."""
        check_positive("selection_tol", self.selection_tol)
        check_flag("refit", self.refit)
        check_jobs(self.n_jobs)
        return check_axis("Cs", self.Cs)

    def _on_folds(
        self, jobs: Sequence[Callable[[SolverOptions], Any]], options: SolverOptions
    ) -> list[Any]:
        """What the jobs of the folds return, each within its part of the time."""
        halted = threading.Event()
        options = options.with_(
            tol=self.selection_tol, clock=self._clock, callback=lambda _: halted.is_set()
        )
        if self.time_limit is not None:
            rounds = -(-len(jobs) // min(effective_n_jobs(self.n_jobs), len(jobs)))
            share = self._settings.walk.time_share if self.refit else 1.0
            options = options.with_(time_limit=share * self.time_limit / rounds)
        calls = [partial(job, options) for job in jobs]
        done = []
        title = f"{type(self).__name__}: fits on folds"
        with (
            one_blas_thread(),
            np.errstate(over="ignore", invalid="ignore"),
            progress(bool(self.verbose), title, len(jobs)) as advance,
        ):
            try:
                for scored in in_threads(calls, self.n_jobs, shared=True):
                    done.append(scored)
                    advance()
            except BaseException:  # Ctrl-C too: folds in other threads end at their next check
                halted.set()
                raise
        return done

    def _warn(self, done: Sequence[Scored]) -> None:
        """One warning for all fits on folds that fell short."""
        gaps = [gap for fold in done for gap in fold.unsolved]
        late = sum(np.isnan(fold.table[..., 0]).sum() for fold in done) if self.time_limit else 0
        told = []
        if late:
            told.append(
                f"{late} fits of the selection did not come to an end within "
                f"time_limit={self.time_limit} s, and their C were not considered. Raise time_limit"
            )
        if gaps:
            told.append(
                f"{len(gaps)} fits of the selection did not reach a "
                f"relative duality gap of selection_tol={self.selection_tol:g}; the largest is "
                f"{max(gaps):.2e}. Their scores count as they are. Raise max_iter, scale the "
                "data (StandardScaler), try another solver, or leave out the largest C"
            )
        if told:
            warnings.warn(
                f"{type(self).__name__}: {'. '.join(told)}.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def _choose(
        self,
        done: Sequence[Scored],
        others: Sequence[dict[str, float]],
        costs: Array,
        measures: Sequence[str] = (),
    ) -> None:
        """Set what is known of the grid, and the best point of every level.

        ``measures`` names those beside the score.
        """
        tables = np.stack([fold.table for fold in done])  # fold, level, others, C, measure
        tables = tables.transpose(1, 4, 2, 3, 0)
        results, indices, scores = [], [], []
        for level in tables:
            means = level[0].mean(axis=2)
            if np.isnan(means).all():
                raise ValueError(
                    f"no C could be scored on all folds, scoring={self.scoring!r}, "
                    f"time_limit={self.time_limit!r}"
                )
            found = cv_results(level[0], others, costs)
            for name, values in zip(measures, level[1:], strict=True):
                flat = values.transpose(1, 0, 2).reshape(-1, len(done))
                for fold, column in enumerate(flat.T):
                    found[f"split{fold}_test_{name}"] = column
                found[f"mean_test_{name}"] = flat.mean(axis=1)
            results.append(found)
            indices.append(int(np.flatnonzero(equal_to_best(means.T.ravel()))[0]))
            scores.append(float(means.T.ravel()[indices[-1]]))
        points = [found["params"][at] for found, at in zip(results, indices, strict=True)]
        self.Cs_, self.n_splits_ = costs, len(done)
        self.n_iter_ = tables[:, 0].size
        single = self._one_choice
        self.cv_results_ = results[0] if single else results
        self.best_params_ = points[0] if single else points
        self.best_index_ = indices[0] if single else np.array(indices)
        self.best_score_ = scores[0] if single else np.array(scores)

    def _refit(self, started: float, fit: Callable[[Any], Any]) -> None:
        """Set the machines that predict, in what is left of the time."""

        def fitted(machines: list[Any]) -> None:
            for k, machine in enumerate(machines):
                if self.time_limit is not None:
                    left = self.time_limit - (self._clock() - started)
                    # never nothing: the best constant takes no time
                    machine.time_limit = max(left, 1e-9) / (len(machines) - k)
                fit(machine)
                machine.time_limit = self.time_limit
                if hasattr(self, "feature_names_in_"):
                    machine.feature_names_in_ = self.feature_names_in_

        self._take(fitted)

    def _take(self, fit: Callable[[list[Any]], None]) -> None:
        """Set the machines at the best points, one a level, once ``fit`` has fitted them."""
        for name in ("best_estimator_", "dual_gap_"):
            self.__dict__.pop(name, None)
        if not self.refit:
            return
        points: Any = [self.best_params_] if self._one_choice else self.best_params_
        machines = [self._machine(**self._level(k), **point) for k, point in enumerate(points)]
        fit(machines)
        gaps = [machine.dual_gap_ for machine in machines]
        self.best_estimator_ = machines[0] if self._one_choice else machines
        self.dual_gap_ = gaps[0] if self._one_choice else np.array(gaps)

    @property
    def _fitted(self) -> list[Any]:
        """The machines that predict."""
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("predict needs a fitted machine, got refit=False")
        best: Any = self.best_estimator_
        return [best] if self._one_choice else list(best)

    @abstractmethod
    def predict(self, X: Any) -> Any:
        """Predict at the rows of X with the chosen machines."""


class KernelSelection(FoldSelection):
    """Base of those that fit all C at a γ on a fold as one job, for kernels with and without γ."""

    gammas: Any
    kernel: Any
    degree: int
    coef0: float

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def _gamma_axis(self, asked: int | Array, data: TrainingSet) -> list[float]:
        """The values of γ; none for a kernel without."""
        if callable(self.kernel) or self.kernel not in GAMMA_KERNELS:
            return []
        return make_axis(asked, *gamma_range(self.kernel, data)).values.tolist()

    def _cost_axis(self, number: int, data: TrainingSet, unit: float, gammas: list[float]) -> Array:
        """So many values of C, which counts in ``unit``, spread over what the data can need."""
        gamma = float(np.median(gammas)) if gammas else 1.0
        diagonal = mean_diagonal(self.kernel, data.X, gamma, self.degree, self.coef0)
        return make_axis(number, *cost_range(data.weight, unit, diagonal)).values

    def _by_fold(self, parts: Sequence[Scored], n_folds: int) -> list[Scored]:
        """What every fold has of all γ, from jobs with γ in the outer loop."""
        done = []
        for fold in range(n_folds):
            here = parts[fold::n_folds]
            table = np.concatenate([part.table for part in here], axis=1)
            done.append(Scored(table, [gap for part in here for gap in part.unsolved]))
        return done


class Walk:
    """Fits on one fold, each from the one before, until the time of the fold is up.

    Parameters
    ----------
    solver : str or Solver
    options : SolverOptions
        ``time_limit`` is that of the fold, from now on.
    chains : int
        Walks up C that are to come; each has an equal part of the time that is left.
    settings : WalkSettings
    """

    def __init__(
        self, solver: str | Solver, options: SolverOptions, chains: int, settings: WalkSettings
    ) -> None:
        self.solver, self.options, self.chains = solver, options, chains
        self.settings = settings
        limit = options.time_limit
        self.ends = None if limit is None else options.clock() + limit
        #: the gaps of fits that fell short
        self.unsolved: list[float] = []

    def up(
        self, problem: Callable[[float], Problem], costs: Array, start: SolverResult | Point | None
    ) -> Iterator[SolverResult]:
        """The solutions for rising C, as far as the time goes.

        C is the bound of the dual variables, where losses grow linearly: once none of them is near
        its bound, the solution is that of every larger C, and nothing is solved any more.
        """
        ends, clock = self.ends, self.options.clock
        if ends is not None:
            ends = clock() + max(ends - clock(), 0.0) / max(self.chains, 1)
        self.chains -= 1
        for k, C in enumerate(costs):
            options = self.options
            if ends is not None:
                options = options.with_(time_limit=max(ends - clock(), 0.0))
            posed = problem(float(C))
            found = solve(posed, self.solver, options, start)
            if found.status in (Status.TIME_LIMIT, Status.STOPPED_BY_CALLBACK):
                return
            if found.status is not Status.SOLVED:
                self.unsolved.append(found.dual_gap)
            start = found
            yield found
            if self._unbounded(posed, found):
                yield from (found for _ in costs[k + 1 :])
                return

    def _unbounded(self, problem: Problem, found: SolverResult) -> bool:
        """Whether a solution has no variable near a bound, and there are bounds."""
        terms = problem.terms.outputs if problem.grouped else problem.terms
        if not np.isfinite(terms.upper).all():
            return False
        beta, share = problem.units.into(found.beta), self.settings.near_bound
        return bool((beta <= share * terms.upper).all() and (beta >= share * terms.lower).all())


def check_values(name: str, given: Any, wanted: str) -> Array:
    """Values of a parameter that may be 0, sorted and without repetition; else a ValueError."""
    listed = [given] if np.ndim(given) == 0 else list(given)
    if np.ndim(given) > 1 or not listed or not all(is_real(v) and v >= 0 for v in listed):
        raise refuse(name, wanted, given)
    return np.unique(np.asarray(listed, dtype=np.float64))


@cache
def _machine_parameters(selection: Any, own: tuple[str, ...]) -> tuple[str, ...]:
    """The parameters that a selection hands on."""
    return tuple(name for name in selection._get_param_names() if name not in own)
