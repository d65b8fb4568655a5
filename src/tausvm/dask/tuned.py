"""Tuned kernel machines on Dask collections: chosen on a sample, fitted to all partitions.

a sample of the rows, on the client    as the single machine chooses with many rows
the jobs of the choice                 tasks of the cluster (:mod:`tausvm.dask.jobs`)
functions of landmarks                 features by partition (:mod:`tausvm.dask.landmarks`)
a few rows of the sample               held out of the fit, calibrate the levels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet
from ..estimators.parameters import refuse, seed_of
from ..estimators.progress import progress_log
from ..selection import estimators as single
from ..selection.jobs import Jobs
from ..selection.large import Place
from ..selection.machine import KernelRegressorCV
from ..selection.members import Member
from ..selection.outcome import warn_of_search
from ..selection.progress import span
from ..selection.search import Search
from ..solvers.landmarks import LandmarkResult
from ..threads import one_blas_thread
from .fitting import Fit
from .jobs import jobs_for
from .landmarks import (
    as_training,
    first_look,
    fit_functions,
    keep,
    landmark_count,
    refuse_landmark_tol,
)
from .linear import LazyPredictions, note_features, warn_unless_solved, without_dask
from .partitions import Partitions
from .settings import Plan
from .sums import Draw, HeldOut, Job, Rows, Summary, merged_summaries, summary

Array = NDArray[np.float64]


class Sampled(NamedTuple):
    """The rows of the client, in a random order.

    Attributes
    ----------
    held : TrainingSet
        Held out of the fit.
    others : TrainingSet
        The other ones, of which the first are chosen on.
    partitions : Partitions
        All rows but those held out.
    looked : Summary
        What there is to know of these.
    """

    held: TrainingSet
    others: TrainingSet
    partitions: Partitions
    looked: Summary


class TunedMachine(LazyPredictions, KernelRegressorCV):
    """Selections and fits on Dask collections, before the selection of the single machine."""

    #: passes over the data that the last fit took, the first look at them included
    n_passes_: int
    landmark_gap_: float | Array

    @atomic
    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, plan: Plan | None = None
    ) -> Self:
        """Choose C and γ, the kernel and the features, and fit to the partitions.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Dense or CSR chunks, in float32 or float64.
        y : dask array or series of shape (n_samples,)
            Targets, with the partitions of X.
        sample_weight : dask array or series of shape (n_samples,), or None
            Weights of the rows, in the fits and in the validation.
        plan : Plan or None
            How much the client may hold, and how many passes it may take.

        Returns
        -------
        self
        """
        started = self._clock()
        axes = self._checked_parameters()
        partitions = Partitions(X, y, sample_weight, plan or Plan())
        note_features(self, partitions)
        with progress_log(bool(self.verbose)), one_blas_thread():
            rows = self._sampled(partitions)
            large = self._settings.large
            some = _part(rows.others, slice(large.selection_rows))
            end = large.selection_rows + large.trend_rows
            trend = self._learned_trend(
                _part(rows.others, slice(large.selection_rows, end)), started
            )
            with jobs_for(self.n_jobs, partitions.plan.heartbeat) as jobs:
                self._tell(self._words(rows, len(some), jobs))
                search, places = self._chosen(some, None, axes, started, jobs, trend)
            self._fit_chosen(search, places, rows, started + self._limit)
        warn_of_search(type(self).__name__, search, self.time_limit)
        return self

    def _checked_parameters(self) -> tuple[int | Array, int | Array]:
        """The axes of the grid; a ValueError for what cannot be used."""
        if self.approximation is None:
            raise refuse("approximation", "'auto' or 'landmarks' on partitions", None)
        refuse_landmark_tol(self.landmark_tol)
        machine: Any = self._machine(**{**self._approximation, "approximation": "landmarks"})
        machine._losses()
        machine._check_parameters()
        if not (isinstance(self.cv, int | np.integer) or hasattr(self.cv, "split")):
            wanted = "an integer or a splitter where the choice is made on some of the rows"
            raise refuse("cv", wanted, self.cv)
        return self._check_own_parameters()

    def _sampled(self, partitions: Partitions) -> Sampled:
        """A check of all partitions, the rows of the client, and how many there are."""
        plan = partitions.plan
        least = plan.rows_a_feature * landmark_count(self.landmarks, plan)
        least = max(least, self._settings.large.selection_rows)
        least += self._held_out_rows(2**62) if self.refit else 0
        draw = Draw.of(plan, seed_of(self.random_state), len(partitions), least=least)
        found, rows = first_look(partitions, draw)
        held = self._held_count(found, rows)
        here, others = rows.take(slice(held)), rows.take(slice(held, None))
        if held:
            partitions = partitions.only(HeldOut(draw, float(found.keys[held - 1])))
            found = found.without(here)
        return Sampled(as_training(here), as_training(others), partitions, found)

    def _held_count(self, found: Summary, rows: Rows) -> int:
        """How many rows of the sample are held out."""
        held = self._held_out_rows(found.n) if self.refit else 0
        chosen = min(found.n - held, self._settings.large.selection_rows)
        # where partitions differ much in size, the sample may be smaller than it should be
        return min(held, held * len(rows) // (held + chosen))

    def _beside_trend(self, rows: Sampled) -> Sampled:
        """The rows with what the trend leaves of y, if one was taken: a pass for its moments."""
        trend, others = self._trend, rows.others
        if trend is None:
            return rows
        partitions = rows.partitions.beside(trend)
        found: Summary = partitions.reduce(summary, merged_summaries, Draw.none())
        others = replace(others, y=others.y - trend(others.X))
        return rows._replace(others=others, partitions=partitions, looked=found)

    def _words(self, rows: Sampled, chosen: int, jobs: Jobs) -> str:
        """What the fit is going to do."""
        large = self._settings.large
        expected = large.selection_seconds(chosen, self._n_levels, jobs.count)
        held = f", {len(rows.held):,} held out to calibrate" if len(rows.held) else ""
        n, count = rows.looked.n, landmark_count(self.landmarks, rows.partitions.plan)
        return (
            f"{n + len(rows.held):,} rows in {len(rows.partitions):,} partitions: choose on "
            f"{chosen:,} of them, {jobs.count} jobs at a time, about {span(expected)}; then fit "
            f"functions of {count:,} landmarks to {n:,} rows in some passes{held}"
        )

    def _fit_chosen(
        self, search: Search, places: Sequence[Place], rows: Sampled, ends: float
    ) -> None:
        """Set the machines that predict, and what calibrates them."""
        members: list[Member] = []
        self.n_passes_ = rows.partitions.n_passes
        self.__dict__.pop("landmark_gap_", None)
        if self.refit:
            machines = self._landmark_machines(search, places, self.landmarks)
            results, fit = self._fit_machines(machines, self._beside_trend(rows), ends)
            self.n_passes_ = fit.partitions.n_passes
            gaps = [result.landmark_gap for result in results]
            self.landmark_gap_ = gaps[0] if self._single_level else np.array(gaps)
            for level, (machine, result) in enumerate(zip(machines, results, strict=True)):
                keep(machine, rows.others, [result], fit)
                machine._spread = rows.looked.spread
                machine.n_features_in_ = self.n_features_in_
                members.append(Member(machine, level, places[level], None, 1, result=result))
            warn_unless_solved(self, results, fit.partitions)
        self._tell_members(members)
        if self.refit:
            self._calibrate_by(self._named(rows.held.X), rows.held)

    def _named(self, X: Any) -> Any:
        """Rows of the client under the names of their columns, where these have some."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return X
        import pandas as pd

        return pd.DataFrame(X, columns=names)

    def _fit_machines(
        self, machines: Sequence[Any], rows: Sampled, ends: float
    ) -> tuple[list[LandmarkResult], Fit]:
        """All levels in the same passes, on shared landmarks."""
        order = self._machine()._order()
        jobs = [Job(machines[k]._losses()[0], machines[k].C) for k in order]
        looked = rows.looked, rows.others
        found, fit = fit_functions(machines[0], jobs, looked, rows.partitions, self._options(ends))
        for machine in machines:
            machine._kernel, machine._centre = machines[0]._kernel, machines[0]._centre
        results: list[Any] = [None] * len(machines)
        for k, result in zip(order, found, strict=True):
            results[k] = result
        return results, fit

    def single(self) -> Any:
        """The same as an estimator of :mod:`tausvm` itself, fitted where this one is.

        It needs no Dask, and is what to save.
        """
        return without_dask(self, getattr(single, type(self).__name__))


def _part(data: TrainingSet, some: slice) -> TrainingSet:
    """Some of the rows, as if they were all."""
    y = data.y[some]
    return TrainingSet(data.X[some], y, data.weight[some], np.arange(len(y)), len(y))


class SVRCV(TunedMachine, single.SVRCV):
    """:class:`tausvm.SVRCV` on Dask collections, by landmarks.

    Kernel, learned features, γ and C are chosen on 5,000 rows drawn from all partitions, as
    :class:`tausvm.SVRCV` does with many rows. The jobs of that choice, each of one γ and some
    folds, are tasks of the cluster; the client learns the features, from at most 1,000 rows.
    Functions of landmarks are then fitted to all partitions, as in :class:`tausvm.dask.SVR`.

    Parameters
    ----------
    Cs, gammas, scoring, prune, selection_tol, feature_metric, feature_groups, kernel, degree, \
coef0, tol, scale_C, epsilon, loss, fit_intercept, solver, clip, random_state
        As in :class:`tausvm.SVRCV`.
    cv : int or splitter
        As in :class:`tausvm.SVRCV`.
    refit : {"committee", True, "average", False}
        False leaves it at the scores. Otherwise one machine is fitted to all partitions, which is
        the only member of a committee unless True.
    landmarks : int or None
        How many; None for 500, or all rows of the client's sample where they are fewer.
    landmark_tol : None
        The gap to the full problem takes β of all rows, which nobody holds.
    approximation : {"auto", "landmarks"}
        There is no other way here.
    n_jobs : int or None
        Threads of the client, which learns the features, and fits where there is no cluster.
    cache_size : float
        Megabytes for kernel values of one worker, shared among its threads.
    time_limit : float or None
        Seconds for the whole call, shared as in :class:`tausvm.SVRCV`; passes under way are ended.
    verbose : bool
        Say beforehand what the fit is going to do, and on the way how far it is.
    max_iter : int
        Bound on the iterations of a fit of the choice, and on the passes; −1 for none.

    Attributes
    ----------
    best_params_, best_score_, best_index_, fold_params_, members_, cv_results_, kernel_, \
feature_metric_, learned_, feature_importances_, linear_trend_, scores_, Cs_, gammas_, n_splits_, \
n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.SVRCV`.
    best_estimator_ : SVR or Committee
        As in :class:`tausvm.SVRCV`: machines of :mod:`tausvm` itself.
    fold_rows_ : list of int arrays
        The training rows of every fold, as places in the rows that were chosen on.
    landmark_gap_ : float or array (n_levels,)
        The relative gap among the functions of these landmarks, over all partitions: what ``tol``
        is about.
    dual_gap_ : float or array (n_levels,)
        The gap to the full problem, as far as it is known: bounded by 1, as in
        :class:`tausvm.dask.SVR`.
    n_passes_ : int
        Passes over the data, the first look at them included.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import SVRCV
    >>> X = da.random.default_rng(0).uniform(size=(1000, 2), chunks=(250, 2)).persist()
    >>> model = SVRCV(Cs=[1.0, 10.0], gammas=[1.0, 10.0], cv=3, landmarks=50)
    >>> model = model.fit(X, da.sin(6 * X[:, 0]))
    >>> model.landmark_gap_ <= model.tol
    True
    >>> model.predict(X).compute().shape
    (1000,)
    """


class QuantileSVRCV(TunedMachine, single.QuantileSVRCV):  # type: ignore[misc]
    """:class:`tausvm.QuantileSVRCV` on Dask collections, by landmarks; levels share the passes.

    The choice is made as in :class:`tausvm.dask.SVRCV`: one kernel, map of the features and γ for
    all levels, and a C for each.

    Parameters
    ----------
    tau, ordered
        As in :class:`tausvm.QuantileSVRCV`.
    calibrate : {"oof", "split", None}
        Unless None, intervals are widened by rows that are held out of choice and fit, a fifth and
        at most 10,000 of them: they then hold the share that they should or more, on average and
        for exchangeable rows.
    Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, feature_metric, feature_groups, \
kernel, degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, approximation, landmarks, \
landmark_tol, cache_size, clip, time_limit, verbose, max_iter, random_state
        As in :class:`tausvm.dask.SVRCV`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, fold_params_, best_estimator_, members_, cv_results_, \
kernel_, feature_metric_, learned_, feature_importances_, linear_trend_, calibration_, scores_, \
Cs_, gammas_, n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.QuantileSVRCV`.
    fold_rows_, landmark_gap_, dual_gap_, n_passes_
        As in :class:`tausvm.dask.SVRCV`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import QuantileSVRCV
    >>> draw = da.random.default_rng(0)
    >>> X = draw.uniform(size=(2000, 2), chunks=(500, 2)).persist()
    >>> y = (da.sin(6 * X[:, 0]) + draw.normal(size=2000, chunks=500)).persist()
    >>> grid = {"Cs": [1.0, 10.0], "gammas": [1.0, 10.0], "cv": 3}
    >>> model = QuantileSVRCV(tau=[0.1, 0.9], landmarks=50, **grid).fit(X, y)
    >>> inside = (y[:, None] <= model.predict(X)).mean(axis=0).compute()
    >>> [round(float(share), 1) for share in inside]
    [0.1, 0.9]
    >>> type(model.single()).__module__  # what to save
    'tausvm.selection.estimators'
    """

    def _held_out_rows(self, n: int) -> int:
        return 0 if self.calibrate is None else self._settings.large.held_out_count(n)


class ExpectileSVRCV(TunedMachine, single.ExpectileSVRCV):
    """:class:`tausvm.ExpectileSVRCV` on Dask collections, by landmarks; levels share the passes.

    The choice is made as in :class:`tausvm.dask.SVRCV`: one kernel, map of the features and γ for
    all levels, and a C for each.

    Parameters
    ----------
    tau, ordered
        As in :class:`tausvm.ExpectileSVRCV`.
    Cs, gammas, cv, scoring, refit, prune, selection_tol, n_jobs, feature_metric, feature_groups, \
kernel, degree, coef0, tol, scale_C, epsilon, fit_intercept, solver, approximation, landmarks, \
landmark_tol, cache_size, clip, time_limit, verbose, max_iter, random_state
        As in :class:`tausvm.dask.SVRCV`.

    Attributes
    ----------
    best_params_, best_score_, best_index_, fold_params_, best_estimator_, members_, cv_results_, \
kernel_, feature_metric_, learned_, feature_importances_, linear_trend_, scores_, Cs_, gammas_, \
n_splits_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`tausvm.ExpectileSVRCV`.
    fold_rows_, landmark_gap_, dual_gap_, n_passes_
        As in :class:`tausvm.dask.SVRCV`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import ExpectileSVRCV
    >>> X = da.random.default_rng(0).uniform(size=(1000, 2), chunks=(250, 2)).persist()
    >>> model = ExpectileSVRCV(tau=0.5, Cs=[1.0, 10.0], gammas=[1.0, 10.0], cv=3, landmarks=40)
    >>> sorted(model.fit(X, da.cos(3 * X[:, 1])).best_params_)
    ['C', 'gamma', 'kernel']
    """


__all__ = ["SVRCV", "ExpectileSVRCV", "QuantileSVRCV"]
