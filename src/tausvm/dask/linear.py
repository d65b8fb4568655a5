"""The linear machines on Dask collections."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..estimators import linear as single
from ..estimators.atomic import atomic
from ..estimators.linear_machine import LinearMachine
from ..estimators.progress import caller_level, progress_log
from ..solvers import SolverResult, Status
from .fitting import Fit, Offset
from .partitions import Partitions, collection_kind
from .predicting import predict
from .settings import Plan
from .sums import Job


class LazyPredictions:
    """Mixin of the machines on partitions, before that of the single machine."""

    def predict(self, X: Any, raw: bool = False) -> Any:
        """Predict at the rows of X.

        Parameters
        ----------
        X : dask array or dataframe, or array or CSR matrix, of shape (n_samples, n_features)
        raw : bool
            The functions that were fitted and certified, before ``clip`` and ``ordered``.

        Returns
        -------
        a lazy collection for a lazy X, else an array, of shape (n_samples,), or
        (n_samples, n_levels) for a list of levels
        """
        machine: Any = self.single()
        if collection_kind(X):
            return predict(machine, X, raw=raw)
        return machine.predict(X, raw=raw)

    def single(self) -> Any:
        """The same machine as an estimator of :mod:`tausvm` itself."""
        raise NotImplementedError


class DaskMachine(LazyPredictions, LinearMachine):
    """Fits and predictions on Dask collections, for a linear machine beside it."""

    #: passes over the data that the last fit took, the first look at them included
    n_passes_: int

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
        options = self._options().with_(time_limit=self.time_limit)
        with progress_log(bool(self.verbose)):
            fit = Fit(partitions, self._offset, self._solver, options)
            order = self._order()
            found = fit.run([Job(losses[k], self.C) for k in order])
        results: list[Any] = [None] * len(losses)
        for k, result in zip(order, found, strict=True):
            results[k] = result
        self._keep(results)
        self._note(partitions)
        warn_unless_solved(self, results, partitions)
        return self

    @property
    def _offset(self) -> Offset:
        free = bool(self.fit_intercept) and self.intercept_scaling is None
        column = 0.0
        if self.fit_intercept and self.intercept_scaling is not None:
            column = float(self.intercept_scaling)
        return Offset(free, column, bool(self.scale_C))

    def _note(self, partitions: Partitions) -> None:
        """The features, as scikit-learn's checks would note them."""
        note_features(self, partitions)
        self.n_passes_ = partitions.n_passes

    def single(self) -> Any:
        """The same fitted machine as an estimator of :mod:`tausvm` itself.

        It needs no Dask, and is what to save.
        """
        return without_dask(self, getattr(single, type(self).__name__))


def without_dask(machine: Any, kind: type) -> Any:
    """A fitted machine as one of another class with the same parameters and attributes."""
    out = kind(**machine.get_params(deep=False))
    for name, value in vars(machine).items():
        if name != "n_passes_":
            setattr(out, name, value)
    return out


def note_features(machine: Any, partitions: Partitions) -> None:
    """``n_features_in_`` and, where X has names, ``feature_names_in_``."""
    machine.n_features_in_ = partitions.n_features
    vars(machine).pop("feature_names_in_", None)
    if partitions.names is not None:
        machine.feature_names_in_ = np.array(partitions.names, dtype=object)


def warn_unless_solved(
    machine: Any, results: Sequence[SolverResult], partitions: Partitions
) -> None:
    """A ConvergenceWarning with the largest gap, where one is above ``tol``."""
    unsolved = [result for result in results if result.status is not Status.SOLVED]
    if not unsolved:
        return
    worst = max(unsolved, key=lambda result: result.solver_gap)
    cause = {
        Status.TIME_LIMIT: f"it reached time_limit={machine.time_limit} s. Raise time_limit",
        Status.NUMERICAL_ERROR: "rounding let it get no further. Raise tol",
    }.get(
        worst.status,
        f"it reached the passes of max_iter={machine.max_iter} and of the plan's most_passes="
        f"{partitions.plan.most_passes}. Raise these",
    )
    among = f" for {len(unsolved)} of {len(results)} levels" if len(results) > 1 else ""
    warnings.warn(
        f"{type(machine).__name__} did not converge{among}: the relative duality gap is "
        f"{worst.solver_gap:.2e}, above tol={machine.tol:g}, after {partitions.n_passes} passes "
        f"over the data; {cause}, scale the columns of X, lower C, or accept a larger tol.",
        ConvergenceWarning,
        stacklevel=caller_level(),
    )


class LinearSVR(DaskMachine, single.LinearSVR):
    """:class:`tausvm.LinearSVR` on Dask collections: rows on many machines, or larger than memory.

    The solution is that of the single machine to ``tol``, and the certificate is computed over all
    partitions. The data are read ``n_passes_`` times.

    Parameters
    ----------
    epsilon, tol, C, scale_C, loss, fit_intercept, intercept_scaling
        As in :class:`tausvm.LinearSVR`.
    dual, solver
        For the solve of a sample on the client.
    time_limit : float or None
        Seconds; looked at between passes.
    verbose : bool or int
        Log every pass.
    random_state : int, RandomState or None
        Seeds the sample.
    max_iter : int
        Bound on the passes, beside that of the plan; −1 for none.
    warm_start : bool
        Without effect: the sample's solution is the better start.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearSVR`.
    n_passes_ : int
        Passes over the data, the first look at them included.
    n_iter_ : int
        The same.
    result_ : SolverResult
        Both objectives and the trace. β and fitted values of n rows are not kept, and no KKT
        violation is computed (NaN).

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearSVR
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> model = LinearSVR(C=1.0, loss="squared_epsilon_insensitive").fit(X, X.sum(axis=1) + 2.0)
    >>> model.predict(X[:2]).compute().shape
    (2,)
    >>> model.dual_gap_ <= model.tol
    True
    """


class LinearQuantileSVR(DaskMachine, single.LinearQuantileSVR):
    """:class:`tausvm.LinearQuantileSVR` on Dask collections; all levels share the passes.

    Parameters
    ----------
    tau, ordered, epsilon, C, scale_C
        As in :class:`tausvm.LinearQuantileSVR`.
    tol, fit_intercept, intercept_scaling, dual, solver, time_limit, verbose, random_state, \
max_iter, warm_start
        As in :class:`tausvm.dask.LinearSVR`.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearQuantileSVR`.
    n_passes_, n_iter_, result_
        As in :class:`tausvm.dask.LinearSVR`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearQuantileSVR
    >>> draw = da.random.default_rng(0)
    >>> X = draw.normal(size=(2000, 2), chunks=(500, 2))
    >>> y = (X[:, 0] + draw.normal(size=2000, chunks=500)).persist()
    >>> model = LinearQuantileSVR(tau=[0.1, 0.9]).fit(X, y)
    >>> inside = (y[:, None] <= model.predict(X)).mean(axis=0).compute()
    >>> [round(float(share), 1) for share in inside]
    [0.1, 0.9]
    """


class LinearExpectileSVR(DaskMachine, single.LinearExpectileSVR):
    """:class:`tausvm.LinearExpectileSVR` on Dask collections; all levels share the passes.

    Parameters
    ----------
    tau, ordered, epsilon, C, scale_C
        As in :class:`tausvm.LinearExpectileSVR`.
    tol, fit_intercept, intercept_scaling, dual, solver, time_limit, verbose, random_state, \
max_iter, warm_start
        As in :class:`tausvm.dask.LinearSVR`.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_features_in_, feature_names_in_
        As in :class:`tausvm.LinearExpectileSVR`.
    n_passes_, n_iter_, result_
        As in :class:`tausvm.dask.LinearSVR`.

    Examples
    --------
    >>> import dask.array as da
    >>> from tausvm.dask import LinearExpectileSVR
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> model = LinearExpectileSVR(tau=0.5, C=10.0).fit(X, X[:, 0] - X[:, 1])
    >>> model.n_passes_ <= 4
    True
    """
