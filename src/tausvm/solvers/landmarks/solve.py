"""Problems on all rows, solved among the functions of a few of them.

    f = Σⱼ αⱼ k(zⱼ, ·),   ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)  over all n rows

With features Φ = K(X, Z) L⁻ᵀ, L Lᵀ = K(Z, Z), it is the problem of a linear machine: f(xᵢ) = φᵢ·w
and ‖f‖ = ‖w‖. Its solvers are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...operators import StreamedKernel
from ..linear import solve_from
from ..monitor import OutOfTime
from ..problem import Point, Problem, certificate
from ..result import SolverOptions, SolverResult, Status
from .centres import PivotedCholesky
from .features import LandmarkFeatures
from .full import LandmarkPoint, LandmarkResult, certified
from .settings import Landmarks

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def solve_landmarks(
    problems: Sequence[Problem],
    settings: Landmarks | None = None,
    options: SolverOptions | None = None,
    weight: Array | None = None,
    chained: bool = True,
    start: Sequence[SolverResult] | None = None,
) -> list[LandmarkResult]:
    """Solve problems that share a :class:`~tausvm.operators.StreamedKernel` by shared landmarks.

    Parameters
    ----------
    problems : sequence of Problem
        With one operator, the same for all; targets and terms may differ.
    settings : Landmarks
    options : SolverOptions
        ``tol`` is the gap among functions of the landmarks, ``max_iter`` counts for each problem
        and the time limit for all together; ``seed`` is that of the choice of landmarks.
    weight : array (n,) or None
        How often each row counts where landmarks are chosen.
    chained : bool
        Whether each problem begins at the solution of the one before it.
    start : sequence of SolverResult or None
        Solutions of problems on the same rows, by landmarks or not, to begin from.

    Returns
    -------
    list of LandmarkResult
    """
    run = _Run(problems, settings or Landmarks(), options or SolverOptions(), weight)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows shows in the certificate
        return run.results(chained, start)


def _better(before: list[LandmarkResult] | None, now: list[LandmarkResult]) -> list[LandmarkResult]:
    """The results with the smaller gaps: time may have ended the later ones early."""
    if before is None:
        return now
    return min(now, before, key=lambda results: max(result.gap_estimate for result in results))


class _Run:
    """One solve: landmarks, features, levels, certificates, and more landmarks where need be."""

    def __init__(
        self,
        problems: Sequence[Problem],
        settings: Landmarks,
        options: SolverOptions,
        weight: Array | None,
    ) -> None:
        self.problems, self.settings, self.options = problems, settings, options
        gram: StreamedKernel = problems[0].operator
        self.gram, self.started = gram, options.clock()
        n = len(gram)
        rng = np.random.default_rng(options.seed)
        self.most = min(n, settings.limit(n) if settings.count is None else settings.count)
        self.sample = self._sample(rng)
        share = np.ones(n) if weight is None else weight
        self.chooser: PivotedCholesky | None = PivotedCholesky(
            gram.kernel,
            gram.points if len(self.sample) == n else gram.points.take(self.sample),
            share[self.sample],
            rng,
            settings.pivoting,
            gram.pause,
        )
        single = (
            options.tol >= settings.tight
            and 8 * n * self.most > settings.few_megabytes * 2**20
            and gram.kernel.fits_single(gram.points, gram.diagonal)
        )
        self.features = LandmarkFeatures(
            gram, np.float32 if single else np.float64, settings.megabytes, settings.hessian_rows
        )

    def _sample(self, rng: np.random.Generator) -> Index:
        """The rows that landmarks are chosen from: those whose factor takes half of the memory."""
        n = len(self.gram)
        fits = int(0.5 * self.settings.megabytes * 2**20 / (8 * self.most))
        fits = max(fits, 2 * self.most)
        return np.arange(n) if fits >= n else np.sort(rng.choice(n, size=fits, replace=False))

    # ---- rounds ----

    def results(self, chained: bool, start: Sequence[SolverResult] | None) -> list[LandmarkResult]:
        settings = self.settings
        count = self.most if settings.count is not None else min(settings.first, self.most)
        found: list[LandmarkResult] | None = None
        watch, self.gram.watch = self.gram.watch, self._watch
        try:
            while True:
                self._choose(count)
                points = self._solve(start if found is None else found, chained)
                found = _better(found, self._certified(points))
                if self._enough(found):
                    return found
                count = min(settings.growth * count, self.most)
        except OutOfTime:
            return self._constants() if found is None else found
        finally:
            self.gram.watch = watch

    def _enough(self, found: list[LandmarkResult]) -> bool:
        """Whether the gap wanted is met, or there is no way to come closer."""
        wanted = self.settings.wanted
        stopped = any(result.status is Status.STOPPED_BY_CALLBACK for result in found)
        if wanted is None or stopped or self.chooser is None:
            return True
        return max(result.gap_estimate for result in found) <= wanted

    def _choose(self, count: int) -> None:
        """More landmarks, and their features."""
        assert self.chooser is not None
        until = self.settings.choice_share * self._left()
        began = self.options.clock()
        pivots, lower = self.chooser.first(count, lambda: self.options.clock() - began > until)
        self.cut = len(pivots) < count and not self.chooser.exhausted
        if len(pivots) == 0:  # a kernel that is 0 at all rows: one function, that is 0 as well
            pivots, lower = np.zeros(1, dtype=np.int64), np.ones((1, 1))
        if count >= self.most or len(pivots) < count:
            self.chooser = None  # the last choice: its memory is needed for the features
        self.features.extend(self.sample[pivots], lower)

    # ---- levels ----

    def _solve(self, found: Sequence[SolverResult] | None, chained: bool) -> list[LandmarkPoint]:
        """The landmark problems, each from a solution before or that of the level before."""
        operator, solver, last = self.features.operator, self.settings.solver, None
        points = []
        for k, problem in enumerate(self.problems):
            small = replace(problem, operator=operator)
            options = self.options
            if options.time_limit is not None:
                options = options.with_(time_limit=max(self._left(), 0.0))
            if found is not None:
                result = solver.solve(small, options, self._near(small, found[k]))
            elif chained and last is not None:
                result = solve_from(small, solver, options, last)
            else:
                result = solver.solve(small, options)
            last = result
            units = problem.units
            points.append(
                LandmarkPoint(units.into(result.beta), units.into(result.function), result)
            )
        return points

    def _near(self, problem: Problem, old: SolverResult) -> Point:
        """A start near the dual variables of another solution, whatever its function was of."""
        shrink = old.shrink if isinstance(old, LandmarkResult) and old.shrink > 0 else 1.0
        beta = problem.feasible(problem.units.into(old.beta) / shrink)
        weights = problem.function(beta)
        intercept = problem.best_intercept(problem.values(weights))
        return Point(beta, weights, float(intercept))

    # ---- certificates ----

    def _certified(self, points: list[LandmarkPoint]) -> list[LandmarkResult]:
        self.gram.watch = None  # the time for a certificate was kept
        found = self._judged(points)
        self.gram.watch = self._watch
        for result in found:
            result.cut = self.cut
            self._settle(result)
        return found

    def _judged(self, points: list[LandmarkPoint]) -> list[LandmarkResult]:
        """Certified results; with an estimate alone where more landmarks are needed anyway."""
        settings, exact = self.settings, self._exact(points)
        wanted, more = settings.wanted, self.chooser is not None
        far = exact and wanted is not None and more and len(self.gram) > settings.few_rows
        if not exact or far:
            sample = self._few_rows()
            found = certified(self.problems, self.features, points, sample, settings.rounding)
            worst = max(result.gap_estimate for result in found)
            if not exact or (wanted is not None and worst > settings.far * wanted):
                return found
        return certified(self.problems, self.features, points, None, settings.rounding)

    def _settle(self, result: LandmarkResult) -> None:
        """The status, by the certificate from the kernel in float64."""
        if result.landmark_gap <= self.options.tol:
            result.status = Status.SOLVED
        elif result.status is Status.SOLVED:  # features in float32 promised more
            result.status = Status.NUMERICAL_ERROR

    def _exact(self, points: list[LandmarkPoint]) -> bool:
        """Whether βᵀKβ is computed: for rows up to a number, and where time allows."""
        support = np.zeros(len(self.gram), dtype=bool)
        for point in points:
            support |= point.beta != 0
        rows = int(np.count_nonzero(support))
        if rows > self.settings.exact_rows:
            return False
        return self.gram.energy_seconds(rows) <= max(self._left(), 0.0)

    def _few_rows(self) -> Index:
        """Rows by which βᵀKβ is estimated; few where time is short."""
        n, settings = len(self.gram), self.settings
        count = settings.sample_rows
        if self.options.time_limit is not None:
            in_time = max(self._left(), 0.0) / self.gram.certificate_seconds(1)
            count = max(settings.fewest_rows, min(count, int(in_time)))
        rng = np.random.default_rng(self.options.seed)
        return np.sort(rng.choice(n, size=min(count, n), replace=False))

    # ---- time ----

    def _left(self) -> float:
        """Seconds left for the work before the certificates."""
        limit = self.options.time_limit
        if limit is None:
            return np.inf
        count = max(len(self.features.landmarks), 1)
        left = limit - (self.options.clock() - self.started)
        left -= self.gram.certificate_seconds(count)
        rows = len(self.gram)
        energy = self.gram.energy_seconds(rows)
        if rows <= self.settings.exact_rows and energy <= self.settings.energy_share * left:
            left -= energy
        return left

    def _watch(self) -> None:
        """Ends the choice of landmarks and their features when time is up."""
        if self.options.time_limit is not None and self._left() <= 0:
            raise OutOfTime

    def _constants(self) -> list[LandmarkResult]:
        """The best constants, where time was not enough for anything else."""
        out = []
        for problem in self.problems:
            point = problem.constant_point(lambda: True)
            found, units = certificate(problem, point), problem.units
            out.append(
                LandmarkResult(
                    beta=units.coefficients(point.beta),
                    intercept=units.offset(found.intercept),
                    fitted=units.values(found.fitted),
                    status=Status.TIME_LIMIT,
                    primal_objective=units.objective(found.primal),
                    dual_objective=units.objective(found.dual),
                    dual_gap=found.gap,
                    kkt_violation=units.values(found.violation),
                    n_iter=0,
                    seconds=self.options.clock() - self.started,
                    solver="landmarks",
                    function=np.empty(0),
                    landmark_gap=found.gap,
                )
            )
        return out


__all__ = ["solve_landmarks"]
