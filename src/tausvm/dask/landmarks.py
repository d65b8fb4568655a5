"""Kernel machines on Dask collections, by landmarks: features by partition, a linear fit of them.

    a sample of the rows on the client      the kernel's γ, and landmarks among them
    Φ = K(X, Z) L⁻ᵀ by partition            computed where the rows are, in every pass
    the linear fit of Φ                     that of :mod:`tausvm.dask.fitting`, as it stands

Nothing but the landmarks goes to the workers and nothing but sums comes back. The certificate is
over all partitions, among the functions of these landmarks; the gap to the full problem, which
takes β of all rows, is for :meth:`tausvm.QuantileSVR.certify` on a machine that can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ..estimators import regression as single
from ..estimators.atomic import atomic
from ..estimators.data import TrainingSet
from ..estimators.parameters import seed_of
from ..estimators.progress import progress_log
from ..solvers import SolverOptions, SolverResult
from ..solvers.landmarks import LandmarkResult, PivotedCholesky, Pivoting
from ..solvers.result import relative_gap
from ..threads import one_blas_thread
from .fitting import Fit, Offset
from .linear import LazyPredictions, note_features, warn_unless_solved, without_dask
from .partitions import Partitions
from .settings import Plan
from .sums import Draw, Job, Summary, merged_summaries, summary

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """Φ of the rows of a partition.

    Attributes
    ----------
    machine : KernelRegressor
        With its kernel, and how it takes rows.
    landmarks : Points
        As the kernel takes them.
    inverse : array (m, m)
        L⁻ᵀ.
    """

    machine: Any
    landmarks: Any
    inverse: Array

    def __call__(self, X: Any) -> Array:
        with one_blas_thread():
            values = self.machine._kernel.between(self.machine._points(X), self.landmarks)
            # in float64: they are not kept, and the certificate is of the function that predicts
            return np.asarray(values @ self.inverse)


def told(result: SolverResult, function: Array, rows: NDArray[np.int64]) -> LandmarkResult:
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
        partitions = Partitions(X, y, sample_weight, plan or Plan())
        options = SolverOptions(
            tol=self.tol,
            max_iter=self.max_iter,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
        )
        offset = Offset(bool(self.fit_intercept), 0.0, bool(self.scale_C))
        order = self._order()
        with progress_log(bool(self.verbose)), one_blas_thread():
            sample = self._sample(partitions, options.seed)
            features, rows = self._features(sample, partitions.plan)
            mapped = partitions.mapped(features, len(rows))
            fit = Fit(mapped, offset, "auto", options)
            found = fit.run([Job(losses[k], self.C) for k in order])
        results: list[Any] = [None] * len(losses)
        for k, result in zip(order, found, strict=True):
            results[k] = told(result, features.inverse @ result.function, rows)
        self.support_ = rows
        self.support_vectors_ = sample.X[rows]
        self.dual_coef_ = np.vstack([result.function for result in results])
        self.n_support_ = np.count_nonzero(self.dual_coef_, axis=1)
        self.intercept_ = np.array([result.intercept for result in results])
        self._set_certificates(results)
        gaps = [result.landmark_gap for result in results]
        self.landmark_gap_ = gaps[0] if self._single_level else np.array(gaps)
        self._clip_to(np.array([fit.summary.low, fit.summary.high]))
        self._spread = fit.spread
        note_features(self, partitions)
        self.n_passes_ = mapped.n_passes
        warn_unless_solved(self, results, mapped)
        return self

    def _check_parameters(self) -> None:
        self.single()._check_parameters()

    def _sample(self, partitions: Partitions, seed: int) -> TrainingSet:
        """The rows of the client, and a check of all partitions."""
        plan = partitions.plan
        share = plan.sample_megabytes * min(1.0, plan.sample_excess / len(partitions))
        draw = Draw(seed, plan.sample_megabytes, share, plan.sample_fewest)
        found: Summary = partitions.reduce(summary, merged_summaries, draw)
        rows = found.sample
        assert rows is not None
        if len(rows) < 2:
            raise ValueError(
                f"X must have 2 rows of positive weight at least, got n_samples = {found.n}"
            )
        places = np.arange(len(rows))
        X = rows.X.astype(np.float64)
        return TrainingSet(X, rows.y, rows.weight, places, len(rows))

    def _features(self, sample: TrainingSet, plan: Plan) -> tuple[Features, NDArray[np.int64]]:
        """Landmarks among the rows of a sample, and the features that they make."""
        points = self._kernel_points(sample)
        rng = np.random.default_rng(seed_of(self.random_state))
        count = plan.landmarks if self.landmarks is None else int(self.landmarks)
        chooser = PivotedCholesky(self._kernel, points, sample.weight, rng, Pivoting())
        rows, lower = chooser.first(min(count, len(sample)))
        inverse = solve_triangular(lower, np.eye(len(rows)), lower=True, check_finite=False).T
        features = Features(self.single(), points.take(rows), np.ascontiguousarray(inverse))
        return features, rows

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
    approximation, landmark_tol, solver, shrinking, cache_size, warm_start
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
    approximation, landmark_tol, solver, shrinking, cache_size, warm_start
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
    approximation, landmark_tol, solver, shrinking, cache_size, warm_start
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
