"""What the machines for all levels at once share: the path, its solutions and certificates."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..operators.products import KernelProducts, LinearProducts, MatrixProducts, Products
from ..solvers.path import (
    PathError,
    PathOptions,
    PathProblem,
    PathResult,
    PathSettings,
    follow_path,
)
from ..solvers.result import SolverResult, Status
from ..threads import one_blas_thread
from .copies import merge_copies
from .data import TrainingSet, costs
from .machine import KernelMachine, slices
from .parameters import check_flag, check_positive, is_real, refuse
from .progress import caller_level, progress_log

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: levels at which probabilities and distributions are evaluated: all kinks, or this many of them
MOST_LEVELS = 1000
#: spreads by which the median of y may be away from 0 before a warning names it as a cause
FAR_MEAN = 1e3
#: the level of equal costs
MIDDLE = 0.5


class SupportSets(NamedTuple):
    """Rows of the training data by where they are at a level.

    Attributes
    ----------
    lower, upper : arrays of row numbers
        At the lower and at the upper bound of β: residuals y − f(x) − b below and above zero.
    margin : array of row numbers
        With a residual of zero, β between its bounds.
    """

    lower: Index
    margin: Index
    upper: Index


class MarginSets(NamedTuple):
    """Rows of the training data by their side of the margin at a level.

    Attributes
    ----------
    left : array of row numbers
        In error, y·(f(x) + b) < 1: |β| at its bound. The paper's 𝓛.
    elbow : array of row numbers
        On the margin, y·(f(x) + b) = 1: β between its bounds. The paper's 𝓜.
    right : array of row numbers
        Well classified, y·(f(x) + b) > 1: β = 0. The paper's 𝓡.
    """

    left: Index
    elbow: Index
    right: Index


class PathMachine(KernelMachine):
    """Base of the estimators that keep a whole path."""

    penalise_intercept: bool
    memory_limit: float
    #: what the base class asks of every machine, and a path has no use for
    solver = "auto"
    shrinking = False
    #: how the path is followed
    _settings = PathSettings()

    result_: Any
    taus_: Array | list[Array]
    n_kinks_: int | NDArray[np.int64]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("penalise_intercept", self.penalise_intercept)
        check_positive("memory_limit", self.memory_limit)

    def _fit_paths(self, data: TrainingSet, group: Index, problems: list[PathProblem]) -> None:
        started = time.perf_counter()
        results: list[PathResult] = []
        with one_blas_thread(), progress_log(self.verbose) as callback:
            options = PathOptions(
                self.tol, self.cache_size, self.memory_limit, callback, self.max_iter
            )
            for left in range(len(problems), 0, -1):
                if self.time_limit is not None:
                    seconds = max(self.time_limit - (time.perf_counter() - started), 0.0) / left
                    options = replace(options, time_limit=seconds)
                try:
                    problem = problems[len(results)]
                    results.append(follow_path(problem, options, self._settings))
                except PathError as error:
                    raise self._explained(error) from error
        self._data = data
        self._group = group
        self._problems = problems
        self.paths_ = [result.path for result in results]
        self._set_path_attributes(results)
        self._warn(results)

    def _explained(self, error: PathError) -> ValueError:
        if error.indefinite:
            return ValueError(
                f"kernel must be positive semidefinite, got {self.kernel!r}, which is not on "
                "these data"
            )
        return ValueError(
            "the path could not be followed on these data, and solving level by level needs the "
            f"whole kernel matrix: cache_size must be larger than {self.cache_size!r} MB"
        )

    def _warn(self, results: list[PathResult]) -> None:
        """Say where a path is coarser than all of its kinks, or a gap above the tolerance."""
        worst = max(results, key=lambda result: result.dual_gap)
        said, remedies = [], []
        thinned = max(result.thinned for result in results)
        if thinned > 1:
            said.append(
                f"the path outgrew memory_limit={self.memory_limit!r} MB and keeps one of "
                f"{thinned} kinks, with straight lines between them"
            )
            remedies.append("raise memory_limit")
        for result in results:
            if result.status in (Status.TIME_LIMIT, Status.MAX_ITER):
                name = result.status.value
                low, high = result.reached
                said.append(
                    f"it reached {name}={getattr(self, name)!r} when the path was found for tau "
                    f"between {low:.6g} and {high:.6g}; beyond, straight lines lead from there to "
                    "the ends"
                )
                remedies.append(f"raise {name}")
                break
        if worst.dual_gap > self.tol:
            said.append(
                f"the relative duality gap may exceed tol={self.tol:g} for tau "
                + _listed(worst.above(self.tol))
            )
            units = self._problems[0].units
            if abs(units.shift) > FAR_MEAN * units.scale:
                remedies.append("subtract a constant from y, whose mean takes up the digits of b")
            elif worst.status is Status.NUMERICAL_ERROR and thinned == 1:
                remedies.append(
                    "scale the features (sklearn.preprocessing.StandardScaler): in these units "
                    "the kernel matrix times C leaves float64 too few digits; or lower C"
                )
        if said:
            warnings.warn(
                f"{type(self).__name__}: {'; '.join(said)}. The largest relative duality gap is "
                f"{worst.dual_gap:.2e}. To do better, {'; '.join(dict.fromkeys(remedies))}.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )

    def _set_path_attributes(self, results: list[PathResult]) -> None:
        taus = [np.unique(result.path.chain.tau) for result in results]
        kinks = [result.n_kinks for result in results]
        gaps = [result.dual_gap for result in results]
        if self._single_level:
            self.result_, self.taus_ = results[0], taus[0]
            self.n_kinks_, self.dual_gap_ = kinks[0], gaps[0]
        else:
            self.result_, self.taus_ = results, taus
            self.n_kinks_, self.dual_gap_ = np.array(kinks), np.array(gaps)
        self.n_iter_ = int(np.sum(kinks))

    def _distinct(self, data: TrainingSet) -> tuple[TrainingSet, Index]:
        """The data without copies of rows, and which of its rows each given one is."""
        if self._precomputed:
            distinct, group = data, np.arange(len(data))
        else:
            distinct, group = merge_copies(data)
        self._rows = data.rows
        self._share = data.weight / distinct.weight[group]
        return distinct, group

    def _products(self, data: TrainingSet) -> Products:
        """The kernel matrix; fixes the kernel and its γ."""
        constant = 1.0 if self.fit_intercept and self.penalise_intercept else 0.0
        products: Products
        if self._precomputed:
            self._centre = None
            products = MatrixProducts(data.X, constant)
        else:
            points = self._kernel_points(data)
            if self.kernel == "linear":
                self._kernel.diagonal(points)  # which names an overflow
                if self._free_offset and not sp.issparse(data.X):
                    # Σβ = 0: the same f, and sums that cancel less
                    self._centre = data.weight / data.weight.sum() @ data.X
                products = LinearProducts(data.X, constant, self._centre)
            else:
                products = KernelProducts(self._kernel, points, constant)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = products.diagonal() - constant
        self._check_diagonal(float(diagonal.min()))
        self._check_finite(data, float(diagonal.max()))
        return products

    def _check_finite(self, data: TrainingSet, largest: float) -> None:
        """A ValueError where kernel values, or objectives at these costs, are beyond float64."""
        if not np.isfinite(largest):
            raise ValueError(
                f"kernel must give finite numbers, got {self.kernel!r}, for which a row of X has "
                f"k(x, x) = {largest}: scale X"
            )
        with np.errstate(over="ignore"):
            # twice the cost of every row: the most that β can be, squared as the objectives are
            objective = np.square(2.0 * costs(self.C, data.weight).sum()) * max(largest, 1.0)
        if not np.isfinite(objective):
            raise refuse(
                "C", "so small that (C·Σ sample_weight)²·k(x, x) is a finite number", self.C
            )

    @property
    def _free_offset(self) -> bool:
        return bool(self.fit_intercept) and not self.penalise_intercept

    # ---- solutions at a level ----

    def _solutions(self, path: int, taus: Array) -> tuple[Array, Array]:
        """β of the distinct rows, one column a level, and the offsets."""
        found = [self.paths_[path].solution(float(tau)) for tau in taus]
        beta = np.column_stack([beta for beta, _ in found])
        offsets = np.array([offset for _, offset in found])
        problem = self._problems[path]
        constant, units = problem.products.constant, problem.units
        offsets = offsets + constant * beta.sum(axis=0) if constant else offsets
        beta, offsets = units.coefficients(beta), units.offset(offsets)
        if self.kernel == "linear" and self._centre is not None:
            offsets = offsets - self._centre @ self._feature_weights(beta)
        return beta, offsets

    def dual_coef(self, tau: float) -> Array:
        """β at a level for every training row, shape (n_paths, n_samples).

        Copies of a row share its β by their weights; rows of weight 0 have none.
        """
        check_is_fitted(self)
        beta = self._betas(tau)
        out = np.zeros((len(beta), self._data.n_given))
        out[:, self._rows] = beta[:, self._group] * self._share
        return out

    def intercept(self, tau: float) -> Array:
        """The offset b at a level, shape (n_paths,)."""
        check_is_fitted(self)
        taus = np.array([check_level(tau)])
        return np.concatenate([self._solutions(k, taus)[1] for k in range(len(self.paths_))])

    def coef(self, tau: float) -> Array:
        """The weights of the features at a level, shape (n_paths, n_features); linear kernel."""
        check_is_fitted(self)
        if self.kernel != "linear":
            raise AttributeError(f"coef exists for kernel='linear' only, not {self.kernel!r}")
        return np.asarray(self._feature_weights(self._betas(tau).T).T)

    def _betas(self, tau: float) -> Array:
        """β of the distinct rows at a level, one row a path."""
        taus = np.array([check_level(tau)])
        return np.vstack([self._solutions(k, taus)[0][:, 0] for k in range(len(self.paths_))])

    @property
    def coef_(self) -> Array:
        raise AttributeError("a path has coefficients at a level only: coef(tau)")

    def _feature_weights(self, beta: Array) -> Array:
        products = self._problems[0].products
        assert isinstance(products, LinearProducts)
        return products.weights(beta)

    def sets(self, tau: float) -> SupportSets | list[SupportSets]:
        """Which training rows are at their bounds and which on the margin; a list for several
        classes, one entry a class."""
        check_is_fitted(self)
        tau = check_level(tau)
        out = [SupportSets(*self._split(path.sets(tau))) for path in self.paths_]
        return out[0] if self._single_level else out

    def _split(self, side: NDArray[Any]) -> list[Index]:
        """The training rows on the sides −1, 0 and 1, told of the distinct rows."""
        return [self._rows[side[self._group] == value] for value in (-1, 0, 1)]

    def certificate(self, tau: float) -> SolverResult | list[SolverResult]:
        """The solution at a level with its duality gap, from the data; a list for several
        classes. β is of the distinct rows."""
        check_is_fitted(self)
        results = [self._certificate(k, check_level(tau)) for k in range(len(self.paths_))]
        return results[0] if self._single_level else results

    def _certificate(self, k: int, tau: float) -> SolverResult:
        problem = self._problems[k]
        units = problem.units
        beta, h = self.paths_[k].solution(tau)
        found = problem.certificate(beta, h, tau)
        gap = problem.gap(found)
        return SolverResult(
            beta=units.coefficients(beta),
            intercept=float(self._solutions(k, np.array([tau]))[1][0]),
            fitted=units.coefficients(found.fitted),
            status=Status.SOLVED if gap <= self.tol else Status.NUMERICAL_ERROR,
            primal_objective=units.objective(found.primal),
            dual_objective=units.objective(found.dual),
            dual_gap=gap,
            kkt_violation=problem.violation(beta, found.fitted, tau) * units.scale,
            n_iter=len(self.paths_[k]),
            seconds=0.0,
            solver="path",
        )

    def _as_machine(self, machine: KernelMachine, tau: float) -> None:
        """Fill an estimator of one level with the solution there."""
        results = [self._certificate(k, tau) for k in range(len(self.paths_))]
        machine._centre = None if self.kernel == "linear" else self._centre
        if not self._precomputed:
            machine._kernel = self._kernel
        machine.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            machine.feature_names_in_ = self.feature_names_in_
        machine._keep(self._data, results)

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("kernel", "degree", "gamma", "coef0", "tol", "C", "fit_intercept", "cache_size")
        return {name: getattr(self, name) for name in names}

    # ---- prediction ----

    def _rows_to_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._checked_rows(X)

    def _values(self, X: Any, path: int, taus: Array) -> Array:
        """f(x) + b for every row of checked X and level, shape (n, n_levels)."""
        values = np.empty((X.shape[0], len(taus)))
        n_rows = max(len(self._data), X.shape[1])
        for levels in slices(len(taus), 8 * n_rows):
            beta, offsets = self._solutions(path, taus[levels])
            values[:, levels] = self._applied(X, beta) + offsets
        return values

    def _applied(self, X: Any, beta: Array) -> Array:
        """f(x) for columns of β."""
        if self._precomputed:
            return np.asarray(X[:, self._data.rows] @ beta)
        if self.kernel == "linear":
            return np.asarray(X @ self._feature_weights(beta))
        used = np.flatnonzero(beta.any(axis=1))
        out = np.zeros((X.shape[0], beta.shape[1]))
        if len(used) == 0:
            return out
        points = self._points(self._data.X[used])
        for part in slices(X.shape[0], 8 * max(len(used), X.shape[1])):
            out[part] = self._kernel.between(self._points(X[part]), points) @ beta[used]
        return out

    def _levels(self, path: int) -> Array:
        """The kinks and ½, or so many of them that probabilities have three digits."""
        taus = np.unique(np.r_[0.0, self.paths_[path].chain.tau, MIDDLE, 1.0])
        if len(taus) <= MOST_LEVELS:
            return taus
        chosen = np.unique(np.linspace(0, len(taus) - 1, MOST_LEVELS // 2).astype(np.intp))
        return np.unique(np.r_[taus[chosen], MIDDLE, np.linspace(0.0, 1.0, MOST_LEVELS // 2)])


def _listed(intervals: list[tuple[float, float, float]]) -> str:
    """Intervals of levels with their gaps: the one with the largest gap, and the widest."""
    worst = max(intervals, key=lambda interval: interval[2])
    widest = max(intervals, key=lambda interval: interval[1] - interval[0])
    shown = [
        f"between {_level(low)} and {_level(high)} (up to {gap:.2e})"
        for low, high, gap in dict.fromkeys((worst, widest))
    ]
    more = len(intervals) - len(shown)
    return " and ".join(shown) + (f" and on {more} more intervals" if more else "")


def _level(tau: float) -> str:
    """A level as a person reads it, also next to 1."""
    return f"1 - {1.0 - tau:.3g}" if 0 < 1.0 - tau < 1e-4 else f"{tau:.6g}"


def check_level(tau: Any) -> float:
    """One level in [0, 1]; a ValueError that names it otherwise."""
    if not (is_real(tau) and 0 <= tau <= 1):
        raise refuse("tau", "a number in [0, 1]", tau)
    return float(tau)


def check_inner_level(tau: Any) -> float:
    """One level that a machine of a single level can have."""
    if not (is_real(tau) and 0 < tau < 1):
        raise refuse("tau", "a number strictly between 0 and 1", tau)
    return float(tau)


def check_levels(tau: Any) -> Array:
    """Levels in [0, 1] as an array; a ValueError that names the first that is not."""
    if np.ndim(tau) == 0:
        return np.array([check_level(tau)])
    if np.ndim(tau) > 1 or np.size(tau) == 0:
        raise refuse("tau", "a number in [0, 1] or a list of them", tau)
    return np.array([check_level(value) for value in tau])
