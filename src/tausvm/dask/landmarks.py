"""Kernel machines on Dask collections, by landmarks: features by partition, a linear fit of them.

    a sample of the rows on the client      the kernel's γ, and landmarks among them
    Φ = K(X, Z) L⁻ᵀ by partition            computed where the rows are, in every pass
    the linear fit of Φ                     that of :mod:`tausvm.dask.fitting`, as it stands

Nothing but the landmarks goes to the workers and nothing but sums comes back. The certificate is
over all partitions, among the functions of these landmarks; the gap to the full problem, which
takes β of all rows, is for :meth:`tausvm.QuantileSVR.certify` on a machine that can hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..estimators import regression as single
from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet, check_weights
from ..estimators.machine import placed
from ..estimators.parameters import refuse, seed_of
from ..estimators.progress import progress_log
from ..kernels import Kernel, Points
from ..solvers import SolverOptions, SolverResult
from ..solvers.landmarks import LandmarkResult, PivotedCholesky, Pivoting
from ..solvers.result import relative_gap
from ..threads import one_blas_thread
from .fitting import Fit, Offset
from .linear import LazyPredictions, note_features, warn_unless_solved, without_dask
from .partitions import Partitions
from .settings import Plan
from .sums import Draw, Job, Rows, Summary, merged_summaries, summary

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Features:
    """Φ of the rows of a partition.

    Attributes
    ----------
    kernel : Kernel
    metric, centre : arrays or None
        How it takes rows, as in the machine.
    landmarks : Points
        As it takes them.
    inverse : array (m, m)
        L⁻ᵀ.
    """

    kernel: Kernel
    metric: Array | None
    centre: Array | None
    landmarks: Points
    inverse: Array

    @classmethod
    def of(
        cls, machine: single.KernelRegressor, sample: TrainingSet, plan: Plan
    ) -> tuple[Features, Index]:
        """Those of landmarks among the rows of a sample, and which; fixes the machine's kernel."""
        points = machine._kernel_points(sample)
        rng = np.random.default_rng(seed_of(machine.random_state))
        count = landmark_count(machine.landmarks, plan)
        chooser = PivotedCholesky(machine._kernel, points, sample.weight, rng, Pivoting())
        rows, lower = chooser.first(min(count, len(sample)))
        inverse = solve_triangular(lower, np.eye(len(rows)), lower=True, check_finite=False).T
        made = cls(
            machine._kernel,
            machine._metric,
            machine._centre,
            points.take(rows),
            np.ascontiguousarray(inverse),
        )
        return made, rows

    def __call__(self, X: Any) -> Array:
        with one_blas_thread():
            rows = placed(X, self.metric, self.centre)
            # in float64: they are not kept, and the certificate is of the function that predicts
            return np.asarray(self.kernel.between(rows, self.landmarks) @ self.inverse)


def landmark_count(asked: int | None, plan: Plan) -> int:
    """How many landmarks there are to be."""
    return plan.landmarks if asked is None else int(asked)


def first_look(partitions: Partitions, draw: Draw) -> tuple[Summary, Rows]:
    """A check of all partitions, and the rows of the client in the order of their keys."""
    found: Summary = partitions.reduce(summary, merged_summaries, draw)
    if found.sample is None or found.n < 2:
        raise ValueError(
            f"X must have 2 rows of positive weight at least, got n_samples = {found.n}"
        )
    check_weights([found.lightest, found.heaviest], 2)
    order = np.argsort(found.keys)
    return replace(found, keys=found.keys[order]), found.sample.take(order)


def as_training(rows: Rows) -> TrainingSet:
    """Rows of the client as a machine takes them."""
    X = rows.X.astype(np.float64)
    return TrainingSet(X, rows.y, rows.weight, np.arange(len(rows)), len(rows))


def fit_functions(
    machine: single.KernelRegressor,
    jobs: Sequence[Job],
    looked: tuple[Summary, TrainingSet],
    partitions: Partitions,
    options: SolverOptions,
) -> tuple[list[LandmarkResult], Fit]:
    """Functions of landmarks, fitted to all partitions.

    All jobs share the kernel of the machine, which is fixed here. ``looked`` is what a first look
    at these partitions has found, with its sample: landmarks are among that, and its first rows
    are those that the client solves first.
    """
    first, sample = looked
    plan = partitions.plan
    features, rows = Features.of(machine, sample, plan)
    offset = Offset(bool(machine.fit_intercept), 0.0, bool(machine.scale_C))
    fits = int(plan.sample_megabytes * 2**20 / (8 * len(rows)))
    some = slice(max(fits, plan.rows_a_feature * len(rows)))
    y, weight = sample.y[some], sample.weight[some]
    mapped = Rows(features(sample.X[some]), y, weight, np.zeros(len(y), dtype=np.int16))
    first = replace(first, sample=mapped)
    fit = Fit(partitions.mapped(features, len(rows)), offset, "auto", options, looked=first)
    found = fit.run(jobs)
    return [told(result, features.inverse @ result.function, rows) for result in found], fit


def keep(
    machine: single.KernelRegressor, sample: TrainingSet, results: Sequence[SolverResult], fit: Fit
) -> None:
    """Set what a machine predicts with; landmarks are rows of the sample."""
    machine._keep(sample, results)
    machine._clip_to(np.array([fit.summary.low, fit.summary.high]))
    machine._spread = fit.spread


def told(result: SolverResult, function: Array, rows: Index) -> LandmarkResult:
    """The result of a linear fit of the features as one about the full problem.

    Nobody holds the dual variables of all rows, so that β = 0 stands for them: the dual is 0, which
    is below the full problem's optimum as any dual is.
    """
    known = {field.name: getattr(result, field.name) for field in fields(SolverResult)}
    known |= {"function": function, "beta": np.empty(0), "dual_objective": 0.0}
    known["dual_gap"] = float(relative_gap(result.primal_objective, 0.0))
    known["solver"] = f"landmarks, {result.solver}"
    gap = result.dual_gap
    return LandmarkResult(**known, landmarks=rows, landmark_gap=gap, exact=False)


def refuse_landmark_tol(landmark_tol: float | None) -> None:
    """The gap to the full problem takes β of all rows, which nobody holds."""
    if landmark_tol is not None:
        raise refuse("landmark_tol", "None on partitions: give landmarks", landmark_tol)


class LandmarkMachine(LazyPredictions, single.KernelRegressor):
    """Fits and predictions of a kernel machine on Dask collections, for a machine beside it."""

    #: passes over the data that the last fit took, the first look at them included
    n_passes_: int
    landmark_gap_: float | Array

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, plan: Plan | None = None) -> Self:
        """Fit to the partitions of Dask collections.

        Parameters
        ----------
        X : dask array or dask dataframe of shape (n_samples, n_features)
            Dense or CSR chunks, in float32 or float64.
        y : dask array or series of shape (n_samples,)
            Targets, with the partitions of X.
        sample_weight : dask array or series of shape (n_samples,), or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out.
        plan : Plan or None
            How much the client may hold, and how many passes it may take.

        Returns
        -------
        self
        """
        losses = self._losses()
        self._check_parameters()
        plan = plan or Plan()
        partitions = Partitions(X, y, sample_weight, plan)
        options = SolverOptions(
            tol=self.tol,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
        )
        order = self._order()
        with progress_log(bool(self.verbose)), one_blas_thread():
            least = plan.rows_a_feature * landmark_count(self.landmarks, plan)
            draw = Draw.of(plan, options.seed, len(partitions), least=least)
            looked, rows = first_look(partitions, draw)
            sample = as_training(rows)
            jobs = [Job(losses[k], self.C) for k in order]
            found, fit = fit_functions(self, jobs, (looked, sample), partitions, options)
        results: list[Any] = [None] * len(losses)
        for k, result in zip(order, found, strict=True):
            results[k] = result
        keep(self, sample, results, fit)
        gaps = [result.landmark_gap for result in results]
        self.landmark_gap_ = gaps[0] if self._single_level else np.array(gaps)
        note_features(self, partitions)
        self.n_passes_ = fit.partitions.n_passes
        warn_unless_solved(self, results, fit.partitions)
        return self

    def _check_parameters(self) -> None:
        self.single()._check_parameters()
        refuse_landmark_tol(self.landmark_tol)

    def single(self) -> Any:
        """The same machine as an estimator of :mod:`tausvm` itself, fitted where this one is.

        It needs no Dask, and is what to save.
        """
        machine = without_dask(self, getattr(single, type(self).__name__))
        machine.approximation = "landmarks"  # there is no other way here
        return machine


class SVR(LandmarkMachine, single.SVR):
    """:class:`tausvm.SVR` on Dask collections, by landmarks.

    Parameters
    ----------
    landmarks : int or None
        How many; None for 500, or all rows of the client's sample where they are fewer.
    kernel, degree, gamma, coef0, tol, C, epsilon, loss, fit_intercept, clip, time_limit, verbose, \
max_iter, random_state, scale_C
        As in :class:`tausvm.SVR`; ``gamma="scale"`` goes by the client's sample.
    landmark_tol : None
        The gap to the full problem takes β of all rows, which nobody holds.
    approximation, solver, shrinking, cache_size, warm_start
        Without effect.

    Attributes
    ----------
    support_vectors_, dual_coef_, intercept_
        The landmarks and their coefficients, as in :class:`tausvm.SVR`.
    landmark_gap_ : float or array (n_levels,)
        The relative gap among the functions of these landmarks, over all partitions: what ``tol``
        is about.
    dual_gap_ : float or array (n_levels,)
        The gap to the full problem, as in :class:`tausvm.SVR`, as far as it is known: β of all rows
        is nowhere, so that it is bounded by 1.
    n_passes_ : int
        Passes over the data, the first look at them included.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import SVR
    >>> X = da.random.default_rng(0).uniform(size=(1000, 2), chunks=(250, 2))
    >>> model = SVR(landmarks=50).fit(X, da.sin(6 * X[:, 0]))
    >>> model.landmark_gap_ <= model.tol
    True
    >>> model.predict(X).compute().shape
    (1000,)
    """


class QuantileSVR(LandmarkMachine, single.QuantileSVR):
    """:class:`tausvm.QuantileSVR` on Dask collections, by landmarks; levels share the passes.

    Parameters
    ----------
    tau, ordered, epsilon
        As in :class:`tausvm.QuantileSVR`.
    landmarks, kernel, degree, gamma, coef0, tol, C, fit_intercept, clip, time_limit, verbose, \
max_iter, random_state, scale_C
        As in :class:`tausvm.dask.SVR`.
    landmark_tol : None
        The gap to the full problem takes β of all rows, which nobody holds.
    approximation, solver, shrinking, cache_size, warm_start
        Without effect.

    Attributes
    ----------
    support_vectors_, dual_coef_, intercept_, landmark_gap_, dual_gap_, n_passes_
        As in :class:`tausvm.dask.SVR`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import QuantileSVR
    >>> draw = da.random.default_rng(0)
    >>> X = draw.uniform(size=(2000, 2), chunks=(500, 2))
    >>> y = (da.sin(6 * X[:, 0]) + draw.normal(size=2000, chunks=500)).persist()
    >>> model = QuantileSVR(tau=[0.1, 0.9], landmarks=50).fit(X, y)
    >>> inside = (y[:, None] <= model.predict(X)).mean(axis=0).compute()
    >>> [round(float(share), 1) for share in inside]
    [0.1, 0.9]
    """


class ExpectileSVR(LandmarkMachine, single.ExpectileSVR):
    """:class:`tausvm.ExpectileSVR` on Dask collections, by landmarks; levels share the passes.

    Parameters
    ----------
    tau, ordered, epsilon
        As in :class:`tausvm.ExpectileSVR`.
    landmarks, kernel, degree, gamma, coef0, tol, C, fit_intercept, clip, time_limit, verbose, \
max_iter, random_state, scale_C
        As in :class:`tausvm.dask.SVR`.
    landmark_tol : None
        The gap to the full problem takes β of all rows, which nobody holds.
    approximation, solver, shrinking, cache_size, warm_start
        Without effect.

    Attributes
    ----------
    support_vectors_, dual_coef_, intercept_, landmark_gap_, dual_gap_, n_passes_
        As in :class:`tausvm.dask.SVR`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import ExpectileSVR
    >>> X = da.random.default_rng(0).uniform(size=(1000, 2), chunks=(250, 2))
    >>> model = ExpectileSVR(tau=0.5, landmarks=40).fit(X, da.cos(3 * X[:, 1]))
    >>> model.n_passes_ <= 6
    True
    """


__all__ = ["SVR", "ExpectileSVR", "QuantileSVR"]
