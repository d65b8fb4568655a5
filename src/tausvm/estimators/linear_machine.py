"""What all linear machines share: checks, solves, weights, prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..losses import DualTerms, Loss
from ..operators import LinearOperator
from ..solvers import LINEAR_SOLVERS, Problem, Solver, SolverOptions, SolverResult, solve
from ..solvers.units import Units, spread
from ..threads import one_blas_thread
from .atomic import atomic
from .data import TrainingSet, costs, validated
from .levels import SeparateLevels
from .linear_data import DTYPES, linear_training_set
from .parameters import (
    check_choice,
    check_cost,
    check_flag,
    check_integer,
    check_positive,
    refuse,
    seed_of,
)
from .progress import progress_log, warn_unless_solved
from .small_cost import warn_of_small_cost
from .warm import last_results

Array = NDArray[np.float64]

#: the least and the largest constant column, of which squares and their inverses are needed
SCALINGS = 1e-50, 1e50


class LinearMachine(RegressorMixin, BaseEstimator):
    """Base of the linear regressors: a subclass names its losses, one a level."""

    epsilon: float
    tol: float
    C: float
    scale_C: bool
    fit_intercept: bool
    intercept_scaling: float | None
    dual: bool | str
    solver: str | Solver
    time_limit: float | None
    verbose: bool | int
    random_state: Any
    max_iter: int
    warm_start: bool = False

    @abstractmethod
    def _losses(self) -> Sequence[Loss]:
        """One loss a level; a ValueError for a parameter of theirs that cannot be used."""

    def _order(self) -> Sequence[int]:
        """The levels in the order in which one is a good start for the next."""
        return [0]

    @property
    def _single_level(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """A ValueError for the first parameter that cannot be used."""
        check_positive("tol", self.tol)
        check_cost(self.C)
        check_flag("scale_C", self.scale_C)
        check_flag("fit_intercept", self.fit_intercept)
        if self.intercept_scaling is not None:
            check_positive("intercept_scaling", self.intercept_scaling)
            low, high = SCALINGS
            if not low <= self.intercept_scaling <= high:
                wanted = f"None or between {low:g} and {high:g}"
                raise refuse("intercept_scaling", wanted, self.intercept_scaling)
        if not isinstance(self.dual, bool | np.bool_):
            check_choice("dual", self.dual, ("auto",), "True or False")
        if not isinstance(self.solver, Solver):
            check_choice("solver", self.solver, LINEAR_SOLVERS)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        check_flag("verbose", self.verbose)
        check_integer("max_iter", self.max_iter, -1)
        check_flag("warm_start", self.warm_start)

    @property
    def _solver(self) -> str | Solver:
        """``solver``, or where that is "auto" what ``dual`` asks for."""
        if isinstance(self.solver, Solver) or self.solver != "auto" or self.dual == "auto":
            return self.solver
        return "dual_cd" if self.dual else "newton"

    @atomic
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            In float32 or float64; neither is copied.
        y : array of shape (n_samples,)
            Targets.
        sample_weight : array of shape (n_samples,) or None
            A weight of k is the same as k copies of the row; rows of weight 0 are left out.

        Returns
        -------
        self
        """
        losses = self._losses()
        self._check_parameters()
        data = linear_training_set(self, X, y, sample_weight)
        options = self._options()
        # what overflows shows in the certificate
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            results = self._solve_levels(data, losses, options)
        self._keep(results)
        warn_unless_solved(type(self).__name__, results, options, self.time_limit, data.X)
        self._warn_of_small_cost(data, losses, results)
        return self

    def _warn_of_small_cost(
        self, data: TrainingSet, losses: Sequence[Loss], results: Sequence[SolverResult]
    ) -> None:
        """A SmallCWarning where C holds a level at a constant."""
        squared = any(loss.dual_terms(data.y[:1], np.ones(1)).smooth for loss in losses)
        warn_of_small_cost(
            (type(self).__name__, self.C, not (self.scale_C or squared)),
            [(data.y, data.weight, loss) for loss in losses],
            results,
            lambda: float(LinearOperator(data.X).squares().max()),
        )

    def _options(self) -> SolverOptions:
        return SolverOptions(tol=self.tol, max_iter=self.max_iter, seed=seed_of(self.random_state))

    def _solve_levels(
        self, data: TrainingSet, losses: Sequence[Loss], options: SolverOptions
    ) -> list[SolverResult]:
        started = options.clock()
        operator, posing = LinearOperator(data.X), self._posing(data)
        before = last_results(self, len(data), len(losses))
        if before is not None and len(before[0].function) != operator.n_features:
            before = None
        results: dict[int, SolverResult] = {}
        last: SolverResult | None = None
        with progress_log(bool(self.verbose)) as callback:
            options = options.with_(callback=callback)
            for k in self._order():
                if self.time_limit is not None:
                    left = self.time_limit - (options.clock() - started)
                    options = options.with_(time_limit=max(left, 0.0))
                problem = posing.problem(operator, losses[k], self.C)
                start = last if before is None else before[k]
                last = results[k] = solve(problem, self._solver, options, start)
        return [results[k] for k in range(len(losses))]

    def _posing(self, data: TrainingSet) -> Posing:
        """How losses on these data become problems."""
        free = bool(self.fit_intercept) and self.intercept_scaling is None
        column = 0.0
        if self.fit_intercept and self.intercept_scaling is not None:
            column = float(self.intercept_scaling)
        return Posing.of(data, free, column, bool(self.scale_C))

    def _keep(self, results: Sequence[SolverResult]) -> None:
        """Set the fitted attributes."""
        self.intercept_ = np.array([result.intercept for result in results])
        gaps = [result.dual_gap for result in results]
        # a fit that is optimal at its start counts as one iteration
        iterations = [max(result.n_iter, 1) for result in results]
        self.result_: SolverResult | list[SolverResult]
        self.dual_gap_: float | Array
        self.n_iter_: int | NDArray[np.int64]
        if self._single_level:
            self.coef_ = results[0].function
            self.result_, self.dual_gap_, self.n_iter_ = results[0], gaps[0], iterations[0]
        else:
            self.coef_ = np.vstack([result.function for result in results])
            self.result_ = list(results)
            self.dual_gap_, self.n_iter_ = np.array(gaps), np.array(iterations)

    def predict(self, X: Any, raw: bool = False) -> Array:
        """Predict at the rows of X.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        raw : bool
            The functions that were fitted and certified, before ``ordered``.

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_levels) for a list of levels
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, accept_sparse="csr", dtype=DTYPES, order="C")
        operator = LinearOperator(X)
        levels = [operator.values(coef) for coef in np.atleast_2d(self.coef_)]
        values: Array = np.stack(levels, axis=1) + self.intercept_
        if not raw:
            values = self._in_order(values)
        return values[:, 0] if self._single_level else values

    def _in_order(self, values: Array) -> Array:
        """Values, (n, n_levels), with the levels in order where the machine has several."""
        return values


class LinearLevelMachine(SeparateLevels, LinearMachine):
    """Base of the linear regressors with a level τ, or a list of them."""

    def __init__(
        self,
        *,
        tau: float | Sequence[float] = 0.5,
        ordered: bool = True,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        scale_C: bool = True,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: bool | str = "auto",
        solver: str | Solver = "auto",
        time_limit: float | None = None,
        verbose: bool | int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.tau = tau
        self.ordered = ordered
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.scale_C = scale_C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.solver = solver
        self.time_limit = time_limit
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flag("ordered", self.ordered)


@dataclass(frozen=True)
class Posing:
    """Targets in units of their own, once for all levels and costs.

    ``y`` is in the user's units and ``unit`` is what C counts in.
    """

    y: Array
    weight: Array
    own: Array
    units: Units
    unit: float
    free: bool
    column: float

    @classmethod
    def of(cls, data: TrainingSet, free: bool, column: float, scale_C: bool) -> Posing:
        y, weight = data.y, data.weight
        units = Units.of(y, weight, free)
        own = units.targets(y)
        unit = spread(y, weight) if scale_C else 1.0
        return cls(y, weight, own, units, unit, free, column)

    def problem(self, operator: LinearOperator, loss: Loss, C: float) -> Problem:
        """The problem of one loss at one C."""
        terms = self._terms(loss, C).widened(self.unit).in_units(self.units.scale)
        return Problem(operator, self.own, terms, self.free, self.column, units=self.units)

    def _terms(self, loss: Loss, C: float) -> DualTerms:
        """The terms of all samples; equal weights share one column of the table."""
        weight = self.weight
        if weight.min() == weight.max():
            return loss.dual_terms(self.y[:1], costs(C, weight[:1])).shared(len(self.y))
        return loss.dual_terms(self.y, costs(C, weight))
