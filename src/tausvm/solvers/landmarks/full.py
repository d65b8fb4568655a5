"""The certificate of a landmark function against the full problem.

A function of landmarks lies in the space of all functions, so its primal bounds the optimum of the
full problem from above. Its dual variables meet the full problem's bounds, and so does s·β for
every s in [0, 1], so that

    optimum ≥ s·yᵀβ − ½s²·βᵀKβ − Σᵢ gᵢ(sβᵢ)

where K is the full kernel matrix. The best s costs nothing and matters: the landmark problem keeps
βᵀK̂β small, and says nothing of what K has beyond K̂.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...operators import StreamedKernel
from ..problem import Certificate, Point, Problem, certificate
from ..result import SolverResult
from .features import LandmarkFeatures

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass
class LandmarkResult(SolverResult):
    """A solution by landmarks; objectives and ``dual_gap`` are those of the full problem.

    Attributes
    ----------
    function : array (m,)
        The coefficients of the landmarks.
    beta : array (n,)
        Dual variables of all rows, feasible for the full problem.
    landmarks : int64 array (m,)
        Their rows.
    landmark_gap : float
        The relative gap among functions of these landmarks, which ``tol`` is about.
    shrink : float
        The s that the dual variables of the landmark problem were multiplied with.
    exact : bool
        Whether βᵀKβ was computed; else ``dual_gap`` comes from a loose bound of it, that may be a
        hundred times the true gap.
    gap_estimate : float
        What ``dual_gap`` would be about where it is not exact, by a sample of rows and with twice
        its standard error: no certificate.
    cut : bool
        Whether time was too short for as many landmarks as were asked for.
    """

    landmarks: Index = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    landmark_gap: float = np.nan
    shrink: float = 1.0
    exact: bool = True
    gap_estimate: float = np.nan
    cut: bool = False

    @property
    def solver_gap(self) -> float:
        return self.landmark_gap


@dataclass(frozen=True)
class LandmarkPoint:
    """A solution of a landmark problem, in the units of the problem.

    Attributes
    ----------
    beta : array (n,)
    weights : array (m,)
        Of the features.
    result : SolverResult
        How it was found.
    """

    beta: Array
    weights: Array
    result: SolverResult


def best_shrink(problem: Problem, beta: Array, energy: float) -> float:
    """The s in [0, 1] at which the dual of s·β is largest, for βᵀKβ = energy."""
    kinks = float(np.vdot(problem.terms.kink, np.abs(beta)))
    bend = energy + 2.0 * (problem.terms.total_value(beta) - kinks)
    slope = float(np.vdot(problem.y, beta)) - kinks
    if not slope > 0:
        return 0.0
    return min(1.0, slope / bend) if bend > 0 else 1.0


def loose_energy(near: Array, beta: Array, left: Array) -> Array:
    """βᵀK̂β + (Σ |βᵢ|√Rᵢᵢ)², an upper bound of βᵀKβ for every column of β.

    ``near`` has βᵀK̂β, and ``left`` Rᵢᵢ = Kᵢᵢ − K̂ᵢᵢ: |Rᵢⱼ| ≤ √(Rᵢᵢ Rⱼⱼ).
    """
    return near + np.square(np.sqrt(left) @ np.abs(beta))


def sampled_energy(features: LandmarkFeatures, beta: Array, pulled: Array, rows: Index) -> Array:
    """About βᵀKβ for every column of β, by a sample of rows and with twice its standard error.

    βᵀKβ is ‖ΦᵀΒ‖² (``pulled`` is Φᵀβ) and Σ βᵢ (Rβ)ᵢ, of which some rows show the mean.
    """
    gram = features.gram
    values = gram.sums(gram.points.take(rows), beta)
    parts = beta[rows] * (values - features.values[rows] @ pulled)
    error = parts.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else 0.0
    beyond = len(beta) * (parts.mean(axis=0) + 2.0 * error)
    return np.einsum("mp,mp->p", pulled, pulled) + np.maximum(beyond, 0.0)


def full_certificate(
    problem: Problem,
    beta: Array,
    function: tuple[Array, Array],
    energy: float,
    intercept: float | None = None,
) -> tuple[Certificate, Array, float]:
    """The certificate of a function with the best multiple of β, that β, and the factor.

    ``function`` has the coefficients at all rows, and the values there; ``energy`` is βᵀKβ or
    more. Without an ``intercept`` it is the best one.
    """
    shrink = best_shrink(problem, beta, energy)
    shrunk = np.ascontiguousarray(beta if shrink == 1.0 else shrink * beta)
    point = Point(shrunk, function[0], intercept, function[1], energy=shrink * shrink * energy)
    return certificate(problem, point), shrunk, shrink


def certified(
    problems: Sequence[Problem],
    features: LandmarkFeatures,
    points: Sequence[LandmarkPoint],
    sample: Index | None,
    rounding: float,
) -> list[LandmarkResult]:
    """The results of solved landmark problems, each with both certificates.

    Values come from the kernel in float64, whatever the features are held in. βᵀKβ of all levels
    is computed in one pass; or, with a sample of rows, bounded and estimated.
    """
    gram: StreamedKernel = features.gram
    n, m, p = len(gram), len(features.landmarks), len(points)
    beta = np.stack([point.beta for point in points], axis=1)
    alpha = features.coefficients(np.stack([point.weights for point in points], axis=1))
    fitted = np.empty((n, p))
    sums = [np.zeros((m, p)) for _ in range(gram.blocks.parts)]

    def both(part: int, rows: slice, block: Array) -> None:
        fitted[rows] = block @ alpha
        sums[part] += block.T @ beta[rows]

    gram.over_rows(gram.points.take(features.landmarks), both)
    pulled = features.weights(np.sum(sums, axis=0))
    likely, near = None, np.einsum("mp,mp->p", pulled, pulled)
    if sample is None:
        # K has at least what K̂ has of it
        energies = np.maximum(gram.bounded_energies(beta), near)
    else:
        energies = loose_energy(near, beta, features.left(rounding))
        likely = sampled_energy(features, beta, pulled, sample)
    approximate = features.operator
    results = []
    for k, (problem, point) in enumerate(zip(problems, points, strict=True)):
        values = np.ascontiguousarray(fitted[:, k])
        function = np.zeros(n)
        function[features.landmarks] = alpha[:, k]
        full, shrunk, shrink = full_certificate(
            problem, point.beta, (function, values), float(energies[k])
        )
        own = certificate(
            replace(problem, operator=approximate),
            Point(point.beta, point.weights, full.intercept, values, pulled[:, k]),
        )
        estimate = full.gap
        if likely is not None:
            expected = min(float(likely[k]), float(energies[k]))
            both_ends = full_certificate(problem, point.beta, (function, values), expected)
            estimate = both_ends[0].gap
        units, old = problem.units, point.result
        results.append(
            LandmarkResult(
                beta=units.coefficients(shrunk),
                intercept=units.offset(full.intercept),
                fitted=units.values(full.fitted),
                status=old.status,
                primal_objective=units.objective(full.primal),
                dual_objective=units.objective(full.dual),
                dual_gap=full.gap,
                kkt_violation=units.values(full.violation),
                n_iter=old.n_iter,
                seconds=old.seconds,
                solver=f"landmarks, {old.solver}",
                trace=old.trace,
                function=units.coefficients(alpha[:, k]),
                landmarks=features.landmarks,
                landmark_gap=own.gap,
                shrink=shrink,
                exact=sample is None,
                gap_estimate=estimate,
            )
        )
    return results


__all__ = [
    "LandmarkPoint",
    "LandmarkResult",
    "best_shrink",
    "certified",
    "full_certificate",
    "loose_energy",
    "sampled_energy",
]
