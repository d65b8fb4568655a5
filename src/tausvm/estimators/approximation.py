"""Machines that may be fitted by landmarks: functions of a few rows, the loss over all of them."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..operators import StreamedKernel
from ..solvers import Certificate, Problem, SolverOptions, SolverResult
from ..solvers.landmarks import (
    LandmarkResult,
    Landmarks,
    Sparsification,
    full_certificate,
    solve_landmarks,
    thinned,
)
from ..solvers.units import spread
from ..threads import one_blas_thread
from .data import TrainingSet
from .machine import KernelMachine, Level
from .parameters import check_choice, check_flag, check_integer, check_positive, refuse, seed_of
from .progress import caller_level, progress_log
from .warm import last_results

Array = NDArray[np.float64]

APPROXIMATIONS = ("auto", "landmarks")


def _is_fitted(machine: Any) -> bool:
    """Whether there is a function to have fewer centres.

    scikit-learn's checks take an unfitted estimator with ``sparsify`` for one with ``coef_``.
    """
    return hasattr(machine, "dual_coef_")


class ApproximableMachine(KernelMachine):
    """Mixin of the kernel machines with a parameter ``approximation``."""

    #: rows may be no numbers where the kernel is a callable
    _takes_things = True

    approximation: str | None = None
    landmarks: int | None = None
    landmark_tol: float | None = None
    #: of the targets of the fit; models of earlier versions do not have it
    _spread: float | None = None
    sparsification_: Sparsification

    @abstractmethod
    def _levels(self, data: TrainingSet) -> list[Level]:
        """The problems of checked training data."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.approximation is not None:
            check_choice("approximation", self.approximation, APPROXIMATIONS, "None")
        if self.landmarks is not None:
            check_integer("landmarks", self.landmarks, 1)
        if self.landmark_tol is not None:
            check_positive("landmark_tol", self.landmark_tol)
        for name in ("landmarks", "landmark_tol"):
            if self.approximation is None and getattr(self, name) is not None:
                raise refuse(name, "None where approximation=None", getattr(self, name))
        if self.approximation != "landmarks":
            return
        if self._precomputed:
            raise ValueError(
                "approximation='landmarks' must have rows to compute kernel values from, "
                "got kernel='precomputed'"
            )
        if self.solver != "auto":
            raise refuse("solver", "'auto' with approximation='landmarks'", self.solver)

    def _by_landmarks(self, n: int) -> bool:
        """Whether a fit of n rows goes by landmarks."""
        if self.approximation == "auto":
            return n > Landmarks().full_rows and not self._precomputed and self.solver == "auto"
        return self.approximation == "landmarks"

    @property
    def _landmark_settings(self) -> Landmarks:
        count = None if self.landmarks is None else int(self.landmarks)
        return Landmarks(count=count, gap=self.landmark_tol, megabytes=float(self.cache_size))

    def _solve_levels(
        self,
        data: TrainingSet,
        levels: Sequence[Level],
        order: Sequence[int] | None,
        options: SolverOptions,
    ) -> list[SolverResult]:
        if not self._by_landmarks(len(data)):
            return super()._solve_levels(data, levels, order, options)
        before = last_results(self, len(data), len(levels))
        gram = self._streamed(data)
        places = list(range(len(levels)) if order is None else order)
        problems = [self._posed(gram, levels[k], data.weight) for k in places]
        with progress_log(self.verbose) as callback:
            found = solve_landmarks(
                problems,
                self._landmark_settings,
                options.with_(
                    callback=callback,
                    time_limit=self.time_limit,
                    seed=seed_of(self.random_state),
                ),
                weight=data.weight,
                chained=order is not None,
                start=None if before is None else [before[k] for k in places],
            )
        results: list[Any] = [None] * len(levels)
        for k, result in zip(places, found, strict=True):
            self._check_bounded(result.dual_gap)
            results[k] = result
        return results

    def _streamed(self, data: TrainingSet) -> StreamedKernel:
        """The kernel matrix of the training points, of which nothing is kept."""
        points = self._kernel_points(data)
        gram = StreamedKernel(self._kernel, points)
        self._check_diagonal(gram.diagonal.min())
        return gram

    def _keep(self, data: TrainingSet, results: Sequence[SolverResult]) -> None:
        first = results[0]
        self._spread = self._spread_of(data)
        if hasattr(self, "sparsification_"):
            del self.sparsification_
        if not isinstance(first, LandmarkResult):
            super()._keep(data, results)
            return
        self.support_ = data.rows[first.landmarks]
        self.support_vectors_ = data.X[first.landmarks]
        self.dual_coef_ = np.vstack([result.function for result in results])
        self.n_support_ = np.count_nonzero(self.dual_coef_, axis=1)
        self.intercept_ = np.array([result.intercept for result in results])
        self._set_certificates(results)

    def _warn_of(
        self, data: TrainingSet, results: Sequence[SolverResult], options: SolverOptions
    ) -> None:
        super()._warn_of(data, results, options)
        found = [result for result in results if isinstance(result, LandmarkResult)]
        if not found:
            return
        if found[0].cut:
            warnings.warn(
                f"{type(self).__name__}: time_limit={self.time_limit} s left time to choose "
                f"{len(found[0].landmarks)} landmarks, fewer than asked for. Raise time_limit.",
                ConvergenceWarning,
                stacklevel=caller_level(),
            )
        wanted = self._landmark_settings.wanted
        worst = max(found, key=lambda result: result.gap_estimate)
        highest = max(result.dual_gap for result in found)
        if wanted is None or highest <= wanted:
            return
        about = "Take more landmarks, raise time_limit if there is one, or raise landmark_tol."
        if worst.gap_estimate <= wanted:
            about = "There are landmarks enough by that sample."
        if not worst.exact:
            about = (
                f"That is a loose bound; by a sample of rows it is about {worst.gap_estimate:.2e}, "
                f"and certify(X, y) computes it. {about}"
            )
        warnings.warn(
            f"{type(self).__name__}: the gap to the full problem is at most {highest:.2e} "
            f"with {len(worst.landmarks)} landmarks, above landmark_tol={wanted:g}. {about}",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )

    @available_if(_is_fitted)
    def sparsify(
        self,
        tol: float = 0.01,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        everywhere: bool = True,
    ) -> Self:
        """A copy with fewer centres, whose functions differ by at most ``tol`` spreads of y.

        Centres are chosen among those that are there, for all levels together, and each function
        is projected onto the functions of these. The bound on the difference is one in the norm
        of the function space: it holds everywhere for kernels of distances, and wherever
        k(x, x) is at most that of the centres for others.

        Parameters
        ----------
        tol : float
            In standard deviations of y; in units of the decision function for a classifier.
        X, y, sample_weight
            What the machine was fitted to, for the training loss and the certificate of the
            copy. Without them ``dual_gap_`` is NaN: the certificate was of another function.
        everywhere : bool
            False bounds the difference at the centres that there are, most or all of the rows of
            a full fit, and leaves far fewer of them; the bound for everywhere is told as well.

        Returns
        -------
        copy
            With ``sparsification_``: the number of centres before and after, the bound and the
            training losses.

        Examples
        --------
        >>> import numpy as np
        >>> from tausvm import SVR
        >>> X = np.linspace(0, 6, 200).reshape(-1, 1)
        >>> model = SVR(epsilon=0.0).fit(X, np.sin(X).ravel())
        >>> short = model.sparsify(0.01)
        >>> len(short.support_) < len(model.support_) / 4
        True
        >>> bool(abs(short.predict(X) - model.predict(X)).max() <= short.sparsification_.bound[0])
        True
        """
        check_is_fitted(self)
        check_positive("tol", tol)
        if self._precomputed:
            raise ValueError("sparsify must have the rows of the centres, got kernel='precomputed'")
        if (X is None) != (y is None):
            raise ValueError("X and y must be given both or neither")
        centres = self._points(self.support_vectors_)
        diagonal = self._kernel.diagonal(centres)
        size = float(np.sqrt(diagonal.max(initial=0.0))) or 1.0
        check_flag("everywhere", everywhere)
        largest = tol * self._fitted_spread / (size if everywhere else 1.0)
        with one_blas_thread():
            gram = StreamedKernel(self._kernel, centres)
            short = thinned(gram, self.dual_coef_, largest, bool(everywhere))
        kept, coefficients = short.kept, short.coefficients
        model = copy.copy(self)
        model.support_ = self.support_[kept]
        model.support_vectors_ = self.support_vectors_[kept]
        model.dual_coef_ = coefficients
        model.n_support_ = np.count_nonzero(coefficients, axis=1)
        told = Sparsification(
            len(self.support_), len(kept), size * short.distance, short.at_centres, float(tol)
        )
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        if X is None:
            unknown: dict[str, Any] = {
                "primal_objective": np.nan,
                "dual_gap": np.nan,
                "kkt_violation": np.nan,
            }
            changes: list[dict[str, Any]] = [{**unknown, "fitted": np.empty(0)} for _ in results]
        else:
            before, after = (m._certificates(X, y, sample_weight) for m in (self, model))
            losses = [np.array([found.loss for found in part]) for part in (before, after)]
            told = replace(told, loss_before=losses[0], loss_after=losses[1])
            changes = [found.numbers for found in after]
        for result, change, coefficient in zip(results, changes, coefficients, strict=True):
            change["function"] = coefficient
            if isinstance(result, LandmarkResult):
                change["landmarks"] = result.landmarks[kept]
                change["gap_estimate"] = change["dual_gap"]
        model._set_certificates(
            [replace(result, **change) for result, change in zip(results, changes, strict=True)]
        )
        model.sparsification_ = told
        return model

    @property
    def _fitted_spread(self) -> float:
        """What ``tol`` of :meth:`sparsify` counts in."""
        if self._spread is None:
            raise ValueError("sparsify must know the spread of y: fit the machine again")
        return self._spread

    def _spread_of(self, data: TrainingSet) -> float:
        return spread(np.asarray(data.y, dtype=np.float64), data.weight)

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> float | Array:
        """The exact relative gap of this machine to the optimum of the full problem.

        For a machine of landmarks on more rows than a fit computes it for: n²/2 kernel values, on
        all processors, and for all levels at once. The machine stays as it is.

        Parameters
        ----------
        X, y, sample_weight
            What it was fitted to.

        Returns
        -------
        float, or array (n_levels,) for a list of levels
        """
        gaps = [found.gap for found in self._certificates(X, y, sample_weight)]
        return gaps[0] if self._single_level else np.array(gaps)

    def _certificates(self, X: Any, y: Any, sample_weight: Any) -> list[Judged]:
        """Certificates of the functions that predict, with the dual variables of the fit."""
        check_is_fitted(self)
        machine = copy.copy(self)  # what a fit sets is not to be set here
        data = machine._training_set(X, y, sample_weight)
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        if len(data) != len(results[0].beta):
            raise ValueError(
                f"X must hold the {len(results[0].beta)} rows of positive weight that the machine "
                f"was fitted to, got {len(data)}"
            )
        if machine._precomputed:
            raise ValueError("kernel='precomputed' has its certificate, got a call of certify")
        with one_blas_thread():
            gram = machine._streamed(data)
            levels = machine._levels(data)
            problems = [machine._posed(gram, level, data.weight) for level in levels]
            beta = np.stack(
                [
                    problem.feasible(problem.units.into(_unshrunk(result)))
                    for problem, result in zip(problems, results, strict=True)
                ],
                axis=1,
            )
            places = np.searchsorted(data.rows, self.support_)
            energies = gram.bounded_energies(beta)
            values = gram.combined(places, self.dual_coef_.T)
            out = []
            for k, problem in enumerate(problems):
                units = problem.units
                function = np.zeros(len(data))
                function[places] = units.into(self.dual_coef_[k])
                found, _, _ = full_certificate(
                    problem,
                    beta[:, k],
                    (function, units.values_into(np.ascontiguousarray(values[:, k]))),
                    float(energies[k]),
                    float(units.offset_into(self.intercept_[k])) if problem.offset else None,
                )
                residual = levels[k].y - values[:, k] - self.intercept_[k]
                loss = np.average(levels[k].loss.value(residual, levels[k].y), weights=data.weight)
                out.append(Judged(problem, found, float(loss)))
        return out


class Judged(NamedTuple):
    """A function on the rows of its fit: its certificate, and its mean loss."""

    problem: Problem
    found: Certificate
    loss: float

    @property
    def gap(self) -> float:
        return self.found.gap

    @property
    def numbers(self) -> dict[str, Any]:
        """What a result says of it."""
        units, found = self.problem.units, self.found
        return {
            "fitted": units.values(found.fitted),
            "primal_objective": units.objective(found.primal),
            "dual_objective": units.objective(found.dual),
            "dual_gap": found.gap,
            "kkt_violation": units.values(found.violation),
        }


def _unshrunk(result: SolverResult) -> Array:
    """The dual variables before they were multiplied by what a bound of βᵀKβ made best."""
    shrink = result.shrink if isinstance(result, LandmarkResult) else 1.0
    return result.beta / shrink if shrink > 0 else result.beta


__all__ = ["ApproximableMachine"]
