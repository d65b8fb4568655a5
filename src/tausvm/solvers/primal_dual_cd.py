"""Algorithm 1 of the joint quantile paper: primal-dual coordinate descent, a sample at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.joint import PrimalDualSteps
from ..operators import SeparableKernel
from .joint.posing import good_enough
from .monitor import Monitor
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver

Array = NDArray[np.float64]
Index = NDArray[np.int64]
#: whether passes so far, and the gap after them, promise too little
Slow = Callable[[int, float, float], bool]

ORDERS = ("random", "cyclic")


@dataclass(frozen=True)
class PrimalDualCD(Solver):
    """Primal-dual coordinate descent for several levels or outputs.

    ::

        initialise αᵢ, θᵢ ∈ Rᵖ
        repeat
            choose a sample i
            θ̄ = the projection of θ + diag(ν)α onto span(1), in the metric of ν
            dᵢ = ∇ᵢ s(α) + 2θ̄ − θᵢ
            αᵢ ← prox of μᵢ(ε‖·‖ + Σⱼ gᵢⱼ) at αᵢ − μᵢdᵢ;   θᵢ ← θ̄
        until the duality gap is small

    with ∇s = Kα − y, νᵢ = 10λᵢ, μᵢ = 0.95/(λᵢ + νᵢ), λᵢ the largest eigenvalue of K(xᵢ, xᵢ). Where
    it has converged, θ̄ is the offset b. Without offsets there is no θ, and μᵢ = 1/λᵢ. Where λ is so
    small that θ would creep, ν is larger than the paper's.

    The products Kα and the sum behind the projection are kept by increments: a step costs n·p
    operations at most. With the active set, samples that meet their own optimality conditions
    with something to spare are left out, and the products are kept for the others only, until
    the next check looks at all samples again. An iteration is a pass.
    """

    name: ClassVar[str] = "primal_dual_cd"
    groups: ClassVar[bool | None] = True

    #: samples drawn at random, by the seed of the options, or one after the other ("cyclic")
    order: str = "random"
    #: whether samples that have settled are left out between checks: up to 1.9 times as fast, 1.2
    #: in the mean of thirty solves (mcycle, engel, BostonHousing, airfoil_noise, sine)
    shrinking: bool = True
    #: passes over the samples between two checks of the gap
    passes: int = 10
    #: ν in units of λ, and the share of the longest step that is sure to converge: the paper's
    pull: float = 10.0
    step: float = 0.95
    #: how much shorter than ε a residual must be, or how much past its kink relative to the
    #: residuals' mean size, for a sample to be left out
    spare: float = 1e-3
    #: checks without a fall of the best gap, by this share at least, after which a solve is given
    #: up; as many again as there were before, where these were more
    patience: int = 1000
    fall: float = 1e-2
    #: multiply-adds per call of the core, so that Ctrl-C is seen in between
    batch: float = 1e8
    #: numbers of a general kernel's rows held at a time
    held: int = 1 << 22
    #: for estimates of the cost: nanoseconds of a pass, of a sample's step in it, of a pair of
    #: samples and a level, and of a pair whose entry of K no cache holds, which has room for so
    #: many bytes; 400 to 4,800 samples of 3 and 9 levels within a fifth
    pass_cost: float = 1.5e4
    step_cost: float = 40.0
    level_cost: float = 0.165
    far_cost: float = 0.45
    near: float = 1.2e7

    def cost_of_pass(self, active: int, levels: int) -> float:
        """Nanoseconds, roughly, with so many samples in the active set."""
        pairs = float(active) ** 2
        far = max(pairs - self.near / 8.0, 0.0)
        pair_costs = self.level_cost * levels * pairs + self.far_cost * far
        return self.pass_cost + self.step_cost * active + pair_costs

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {self.order!r}")

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        return self.watched(problem, options, start, lambda n_iter, gap, a_pass: False)

    def watched(
        self, problem: Problem, options: SolverOptions, start: Point | None, slow: Slow
    ) -> SolverResult:
        """The same until ``slow``, asked at every check, says that another is faster: of the passes
        so far, the gap, and what the next pass costs."""
        monitor = Monitor(problem, options, self.name)
        n_iter, descent = 0, None
        with monitor:
            point = good_enough(monitor, options.tol, start)
            if point is None:
                descent = _Descent(self, problem, options.seed, start)
                progress = _Progress(self)
                while not monitor.check(descent.point, n_iter):
                    gap, lost = monitor.gap, not np.isfinite(descent.alpha).all()
                    a_pass = self.cost_of_pass(len(descent.active), problem.y.shape[1])
                    if progress.stalled(gap) or lost or slow(n_iter, gap, a_pass):
                        monitor.status = Status.NUMERICAL_ERROR
                        break
                    left = options.max_iter - n_iter if options.max_iter >= 0 else self.passes
                    for _ in range(min(self.passes, left)):
                        descent.run_pass()
                        n_iter += 1
                    descent.refresh()
        if point is None:
            point = problem.constant_point() if descent is None else descent.point
        return monitor.result(point, n_iter)


class _Progress:
    """Tells when the best gap has long not fallen: rounding lets it get no further."""

    def __init__(self, settings: PrimalDualCD) -> None:
        self.settings = settings
        self.checks, self.last, self.best = 0, 0, np.inf

    def stalled(self, gap: float) -> bool:
        self.checks += 1
        if gap < (1.0 - self.settings.fall) * self.best:
            self.best, self.last = gap, self.checks
        return self.checks - self.last > max(self.settings.patience, self.last)


def _largest_eigenvalues(operator: SeparableKernel) -> Array:
    """The largest eigenvalue of every K(xᵢ, xᵢ)."""
    if isinstance(operator, SeparableKernel):
        return np.diagonal(operator.K) * float(np.linalg.eigvalsh(operator.B)[-1])
    return np.asarray(np.linalg.eigvalsh(operator.diagonal)[:, -1])


class _Descent:
    """α, θ and the products of the algorithm."""

    def __init__(
        self, settings: PrimalDualCD, problem: Problem, seed: int, start: Point | None
    ) -> None:
        self.settings, self.problem = settings, problem
        n, p = problem.y.shape
        self.alpha, b = np.zeros((n, p)), problem.constant
        if start is not None:
            self.alpha, b = start.beta.copy(), start.intercept
        self.theta = np.tile(b if problem.offset else np.zeros(p), (n, 1))
        largest = _largest_eigenvalues(problem.operator)
        # without a kernel to speak of, θ must still be able to cross the residuals while α
        # crosses its range
        residual = float(np.abs(problem.y - problem.constant).mean())
        self.nu = np.maximum(settings.pull * largest, residual / problem.terms.widest)
        stiffness = (largest + self.nu) / settings.step if problem.offset else largest
        self.random = np.random.default_rng(seed)
        self.separable = isinstance(problem.operator, SeparableKernel)
        self.core = PrimalDualSteps(
            self.alpha,
            self.theta,
            problem.terms.outputs.numbers,
            problem.terms.epsilon,
            self.nu,
            stiffness,
            problem.operator.B if self.separable else None,
            problem.offset,
        )
        self._sum_over(np.arange(n))
        self.refresh()

    def _sum_over(self, active: Index) -> None:
        """Keep θ for these samples only; the θ of the others follows θ̄ and so drops out."""
        self.active = active
        inverse = 1.0 / self.nu[active, None]
        self.core.weighted_sum[:] = (self.theta[active] * inverse).sum(axis=0)
        self.core.weighted_sum += self.alpha.sum(axis=0)
        self.core.inverse_nu_sum = 1.0 / float(inverse.sum())

    @property
    def b(self) -> Array:
        """θ̄, the projection onto span(1): the offsets."""
        if not self.problem.offset:
            return np.zeros(self.problem.y.shape[1])
        return np.asarray(self.core.weighted_sum * self.core.inverse_nu_sum)

    @property
    def point(self) -> Point:
        return Point.of(self.problem.feasible(self.alpha), self.b)

    def refresh(self) -> None:
        """Products and sums afresh from the data, and the active set from all samples."""
        problem = self.problem
        gradient = problem.operator.product(self.alpha) - problem.y
        b = self.b
        aside = np.ones(len(self.alpha), dtype=bool)
        aside[self.active] = False
        self.theta[aside] = b if problem.offset else 0.0
        shrinking = self.settings.shrinking
        settled = self._settled(gradient, b) if shrinking else np.zeros_like(aside)
        if settled.all():  # an optimum, or a b so far off that all seem settled
            settled[:] = False
        self._sum_over(np.flatnonzero(~settled))
        self.core.begin(self.active, gradient)

    def _settled(self, gradient: Array, b: Array) -> NDArray[np.bool_]:
        """Samples at zero or wholly at bounds that meet their own conditions with room."""
        terms, spare = self.problem.terms, self.settings.spare
        residual = -gradient - b
        length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        size = np.sqrt(np.einsum("ij,ij->i", self.alpha, self.alpha))
        at_zero = (size == 0) & (length < (1.0 - spare) * terms.epsilon)
        unit = self.alpha / np.where(size > 0, size, 1.0)[:, None]
        slope = residual - terms.epsilon * unit
        enough = spare * float(length.mean())
        high = (self.alpha >= terms.outputs.upper) & (slope > enough)
        low = (self.alpha <= terms.outputs.lower) & (slope < -enough)
        at_bounds: NDArray[np.bool_] = (size > 0) & (high | low).all(axis=1)
        return at_zero | at_bounds

    def run_pass(self) -> None:
        """One step a sample of the active set, in random or cyclic order."""
        operator, settings = self.problem.operator, self.settings
        order = self.active
        if settings.order == "random":
            order = order[self.random.integers(len(order), size=len(order))]
        n, p = operator.shape
        per_call = (
            settings.batch / (len(order) * p) if self.separable else settings.held / (n * p * p)
        )
        step = max(int(per_call), 1)
        for first in range(0, len(order), step):
            operator.pause()
            part = order[first : first + step]
            self.core.run(*operator.rows(part), part)
