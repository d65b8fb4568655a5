"""What all kernel machines share: checks, Gram matrix, solves, support vectors, prediction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..kernels import KERNELS, Kernel, Points, make_kernel, mapped
from ..losses import Loss
from ..operators import CachedKernel, GivenKernel, KernelOperator, Operator
from ..operators.base import CHUNK_BYTES
from ..solvers import SMO, SOLVERS, Problem, Solver, SolverOptions, SolverResult, solve
from ..solvers.start import coefficients_only
from ..solvers.units import Units, spread
from ..threads import one_blas_thread, share_out, thread_count
from .data import (
    TrainingSet,
    costs,
    own_origin,
    prediction_rows,
    scale_gamma,
    training_set,
    without_cancellation,
)
from .parameters import (
    check_choice,
    check_cost,
    check_finite,
    check_flag,
    check_integer,
    check_positive,
)
from .progress import progress_log, warn_unless_solved
from .warm import last_results

if TYPE_CHECKING:
    from .trend import Trend

Array = NDArray[np.float64]

#: kernels of x − x', which a common shift of all points leaves as they are
DISTANCE_KERNELS = ("rbf", "laplacian", "exponential")
#: rows are held in float64 up to this many of them, or for a tolerance below TIGHT
SMALL = 300
TIGHT = 1e-6


class Level(NamedTuple):
    """One problem among those that share a Gram matrix."""

    y: Array
    loss: Loss


class KernelMachine(BaseEstimator):
    """Base of the kernel estimators.

    A subclass gives the parameters below in its ``__init__``, turns its targets into
    :class:`Level` objects and hands them to :meth:`_fit_levels`; what it predicts it makes
    of :meth:`_decision_values`.
    """

    #: what ``solver`` may be
    _solver_names: Sequence[str] = SOLVERS

    kernel: str | Callable[..., Array]
    degree: int
    gamma: str | float
    coef0: float
    tol: float
    C: float
    fit_intercept: bool
    solver: str | Solver
    shrinking: bool
    cache_size: float
    time_limit: float | None
    verbose: bool
    max_iter: int
    random_state: Any
    #: whether C counts in standard deviations of y; labels have none
    scale_C: bool = False
    #: whether a fit begins where the last one ended; not every machine can
    warm_start: bool = False

    _kernel: Kernel
    #: the linear map under which the kernel sees the features, weights (d,) or a matrix (d, d)
    _metric: Array | None = None
    #: the line beside which f is fitted
    _trend: Trend | None = None
    #: what was subtracted from the training points, where anything was
    _centre: Array | None

    result_: SolverResult | list[SolverResult]
    dual_gap_: float | Array
    n_iter_: int | NDArray[np.int64]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        tags.input_tags.string = callable(self.kernel)
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_parameters(self) -> None:
        """A ValueError for the first parameter that cannot be used."""
        if not callable(self.kernel):
            check_choice("kernel", self.kernel, KERNELS, "a callable")
        check_integer("degree", self.degree, 0)
        if isinstance(self.gamma, str):
            check_choice("gamma", self.gamma, ("scale", "auto"), "a finite number > 0")
        else:
            check_positive("gamma", self.gamma)
        check_finite("coef0", self.coef0)
        check_positive("tol", self.tol)
        check_cost(self.C)
        check_flag("scale_C", self.scale_C)
        check_flag("fit_intercept", self.fit_intercept)
        if not isinstance(self.solver, Solver):
            check_choice("solver", self.solver, self._solver_names)
        check_flag("shrinking", self.shrinking)
        check_positive("cache_size", self.cache_size)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        check_flag("verbose", self.verbose)
        check_flag("warm_start", self.warm_start)
        check_integer("max_iter", self.max_iter, -1)

    def _training_set(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> TrainingSet:
        """Checked training data without its rows of weight zero."""
        return training_set(self, X, y, sample_weight, self._precomputed, **checks)

    def _fit_levels(
        self,
        data: TrainingSet,
        levels: Sequence[Level],
        order: Sequence[int] | None = None,
    ) -> None:
        """Solve the levels on one Gram matrix and keep what prediction needs.

        Parameters
        ----------
        data : TrainingSet
        levels : sequence of Level
        order : sequence of int or None
            Solve in this order, each level from the solution of the one before; without it
            every level starts cold.
        """
        options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
        with one_blas_thread():
            results = self._solve_levels(data, levels, order, options)
        self._keep(data, results)
        self._warn_of(data, results, options)

    def _warn_of(
        self, data: TrainingSet, results: Sequence[SolverResult], options: SolverOptions
    ) -> None:
        """A ConvergenceWarning where a level was not solved."""
        features = None if self._precomputed or callable(self.kernel) else data.X
        warn_unless_solved(type(self).__name__, results, options, self.time_limit, features)

    def _solve_levels(
        self,
        data: TrainingSet,
        levels: Sequence[Level],
        order: Sequence[int] | None,
        options: SolverOptions,
    ) -> list[SolverResult]:
        started = time.perf_counter()
        before = last_results(self, len(data), len(levels))
        gram = self._gram(data)
        results: dict[int, SolverResult] = {}
        last: SolverResult | None = None
        with progress_log(self.verbose) as callback:
            options = options.with_(callback=callback)
            for k in range(len(levels)) if order is None else order:
                problem = self._posed(gram, levels[k], data.weight)
                if self.time_limit is not None:
                    left = self.time_limit - (time.perf_counter() - started)
                    options = options.with_(time_limit=max(left, 0.0))
                start = last if before is None else coefficients_only(problem, before[k])
                results[k] = solve(problem, self._solver, options, start)
                last = None if order is None else results[k]
                self._check_bounded(results[k].dual_gap)
        return [results[k] for k in range(len(levels))]

    @property
    def _solver(self) -> str | Solver:
        """The solver by name, or with the settings that parameters ask for."""
        return SMO(shrinking=self.shrinking) if self.solver == SMO.name else self.solver

    def _posed(self, gram: Operator, level: Level, weight: Array) -> Problem:
        """The problem of a level, in units of its own."""
        y, loss = level
        terms = loss.dual_terms(y, costs(self.C, weight))
        if self.scale_C:
            terms = terms.widened(spread(y, weight))
        units = Units.of(y, weight, self.fit_intercept)
        return Problem.posed(gram, y, terms, self.fit_intercept, units)

    def _gram(self, data: TrainingSet) -> KernelOperator:
        """The Gram matrix of the training points; fixes the kernel and its γ."""
        if self._precomputed:
            self._centre = None
            return GivenKernel(data.X, self.cache_size)
        points = self._kernel_points(data)
        n = len(data)
        fits = 8 * n * n <= self.cache_size * 2**20
        double = (self.tol < TIGHT or n <= SMALL) and fits
        dtype = np.float64 if double else np.float32
        return self._checked(CachedKernel(self._kernel, points, self.cache_size, dtype))

    def _kernel_points(self, data: TrainingSet) -> Points:
        """Fix the kernel and its γ; the training points as it takes them."""
        self._centre = None
        X = mapped(data.X, self._metric)
        without = self.kernel == "linear" or callable(self.kernel)  # rows may be no numbers
        gamma = 1.0 if without else self._gamma_value(data)
        self._kernel = make_kernel(self.kernel, gamma, self.degree, self.coef0)
        if self.kernel == "rbf":
            X = without_cancellation(X, gamma, self.cache_size)
        if self.kernel in DISTANCE_KERNELS and not sp.issparse(X):
            # small coordinates keep their digits in float32
            self._centre = own_origin(X)
            X = X - self._centre
        return Points(X)

    def _check_diagonal(self, smallest: float) -> None:
        """A ValueError unless the smallest k(x, x) is one of a kernel."""
        if not smallest >= 0:
            raise ValueError(
                f"kernel must be positive semidefinite, got {self.kernel!r}, for which a row of X "
                f"has k(x, x) = {smallest:.3g}"
            )

    def _check_bounded(self, dual_gap: float) -> None:
        """A ValueError where a solve ended without a bound: its kernel was not one."""
        if not np.isfinite(dual_gap):
            raise ValueError(
                f"kernel must be positive semidefinite, got {self.kernel!r}, for which "
                "the dual problem of these data is unbounded"
            )

    def _checked(self, gram: CachedKernel) -> CachedKernel:
        """The matrix, unless its diagonal shows that the kernel is not one."""
        self._check_diagonal(gram.diagonal.min())
        return gram

    def _gamma_value(self, data: TrainingSet) -> float:
        """γ as a number; "scale" counts a row of weight k as k rows."""
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto":
            return 1.0 / float(data.X.shape[1])
        return scale_gamma(data.X, data.weight)

    def _keep(self, data: TrainingSet, results: Sequence[SolverResult]) -> None:
        """Set the fitted attributes."""
        beta = np.vstack([result.beta for result in results])
        support = np.flatnonzero(beta.any(axis=0))
        self.support_ = data.rows[support]
        self.support_vectors_ = np.empty((0, 0)) if self._precomputed else data.X[support]
        self.dual_coef_ = beta[:, support]
        self.n_support_ = np.count_nonzero(beta, axis=1)
        self.intercept_ = np.array([result.intercept for result in results])
        self._set_certificates(results)

    def _set_certificates(self, results: Sequence[SolverResult]) -> None:
        """``result_``, ``dual_gap_`` and ``n_iter_``: one for one level, else one a level."""
        gaps = [result.dual_gap for result in results]
        # a fit that is optimal at its start counts as one iteration
        iterations = [max(result.n_iter, 1) for result in results]
        if self._single_level:
            self.result_, self.dual_gap_, self.n_iter_ = results[0], gaps[0], iterations[0]
        else:
            self.result_ = list(results)
            self.dual_gap_, self.n_iter_ = np.array(gaps), np.array(iterations)

    @property
    def _single_level(self) -> bool:
        """Whether the fit is of one level, and not of a list that happens to hold one."""
        return True

    @property
    def coef_(self) -> Array:
        """The weights of the features, shape (n_levels, n_features); linear kernel only."""
        if self.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, not {self.kernel!r}")
        check_is_fitted(self)
        coef = np.asarray(self._weights @ self.support_vectors_)
        coef.flags.writeable = False  # it is made anew each time: what is written would be lost
        return coef

    @property
    def _weights(self) -> Array:
        """The weights of k(xᵢ, ·) in each level, shape (n_levels, n_support)."""
        return self.dual_coef_

    def _decision_values(self, X: Any) -> Array:
        """f(x) + b for every row and level, shape (n, n_levels)."""
        check_is_fitted(self)
        X = self._checked_rows(X)
        if self._precomputed:
            return X[:, self.support_] @ self._weights.T + self.intercept_
        if self.kernel == "linear":
            return np.asarray(X @ self.coef_.T) + self.intercept_
        values = np.tile(self.intercept_, (X.shape[0], 1))
        if self._trend is not None:
            values += self._trend(X)[:, None]
        if len(self.support_) == 0:
            return values
        support = self._points(self.support_vectors_)

        def predict(part: slice, _: Callable[[], bool]) -> None:
            values[part] += self._kernel.between(self._points(X[part]), support) @ self._weights.T

        width = max(len(self.support_), int(np.prod(X.shape[1:])))
        parts = list(slices(X.shape[0], 8 * width))
        with one_blas_thread():
            share_out(predict, parts, thread_count() if self._kernel.in_threads else 1)
        return values

    def _checked_rows(self, X: Any) -> Any:
        """Rows to predict at, checked against those of the training."""
        return prediction_rows(self, X, self._precomputed)

    def _points(self, X: Any) -> Points:
        """Points as the kernel takes them, mapped and moved as the training points were."""
        return placed(X, self._metric, self._centre)


def placed(X: Any, metric: Array | None, centre: Array | None) -> Points:
    """Rows as a kernel takes them: mapped, and with its centre as their origin."""
    X = mapped(X, metric)
    if centre is None:
        return Points(X)
    return Points((X.toarray() if sp.issparse(X) else X) - centre)


def slices(count: int, bytes_each: int) -> Iterator[slice]:
    """Parts of a range whose memory stays bounded."""
    step = max(1, CHUNK_BYTES // bytes_each)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
