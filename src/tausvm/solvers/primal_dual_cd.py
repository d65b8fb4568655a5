"""Algorithm 1 of the paper: primal-dual coordinate descent for the joint problem.

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
operations at most. With the active set, samples that meet their own optimality conditions with
something to spare are left out, and the products are kept for the others only, until the next
check looks at all samples again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.joint import primal_dual_steps
from ..kernels.matrix import SeparableGram
from .joint.monitor import JointMonitor
from .joint.problem import JointProblem, JointResult
from .result import SolverOptions, Status

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: passes over the samples between two checks of the gap
PASSES = 10
#: multiply-adds per call of the core, so that Ctrl-C is seen in between
BATCH = 1e8
#: numbers of a general kernel's rows held at a time
HELD = 1 << 22
#: how much shorter than ε a residual must be, or how much past its kink relative to the
#: residuals' mean size, for a sample to be left out
SPARE = 1e-3
#: checks without a fall of the best gap, by this share at least, after which a solve is given
#: up; as many again as there were before, where these were more
PATIENCE = 1000
FALL = 1e-2
ORDERS = ("random", "cyclic")


@dataclass(frozen=True)
class JointOptions(SolverOptions):
    """Options of the joint solvers.

    Parameters
    ----------
    order : {"random", "cyclic"}
        For ``primal_dual_cd``: samples drawn at random, or one after the other. ``shrinking``
        says whether it uses its active set.
    seed : int
        Of the random order.
    """

    order: str = "random"
    seed: int = 0


def solve_primal_dual_cd(
    problem: JointProblem, options: SolverOptions, start: JointResult | None = None
) -> JointResult:
    """Run Algorithm 1 to the relative gap ``options.tol``; an iteration is a pass."""
    options = options if isinstance(options, JointOptions) else _with_defaults(options)
    if options.order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}, got {options.order!r}")
    monitor = JointMonitor(problem, options, "primal_dual_cd")
    if monitor.begin(start):
        return monitor.result(0)
    descent: _Descent | None = None
    n_iter = 0
    with monitor:
        descent = _Descent(problem, options, start)
        progress = _Progress()
        while not monitor.should_stop(descent.alpha, descent.b, n_iter):
            if progress.stalled(monitor.gap) or not np.isfinite(descent.alpha).all():
                monitor.status = Status.NUMERICAL_ERROR
                break
            passes = PASSES if options.max_iter < 0 else min(PASSES, options.max_iter - n_iter)
            for _ in range(passes):
                descent.run_pass()
                n_iter += 1
            descent.refresh()
    if descent is not None and monitor.interrupted:
        monitor.consider_last(descent.alpha, descent.b)
    return monitor.result(n_iter)


class _Progress:
    """Tells when the best gap has long not fallen: rounding lets it get no further."""

    def __init__(self) -> None:
        self.checks, self.last, self.best = 0, 0, np.inf

    def stalled(self, gap: float) -> bool:
        self.checks += 1
        if gap < (1.0 - FALL) * self.best:
            self.best, self.last = gap, self.checks
        return self.checks - self.last > max(PATIENCE, self.last)


def _with_defaults(options: SolverOptions) -> JointOptions:
    return JointOptions(**vars(options))


def _largest_eigenvalues(problem: JointProblem) -> Array:
    """The largest eigenvalue of every K(xᵢ, xᵢ)."""
    gram = problem.gram
    if isinstance(gram, SeparableGram):
        return np.diagonal(gram.K) * float(np.linalg.eigvalsh(gram.B)[-1])
    return np.asarray(np.linalg.eigvalsh(gram.diagonal)[:, -1])


class _Descent:
    """α, θ and the products of Algorithm 1."""

    def __init__(
        self, problem: JointProblem, options: JointOptions, start: JointResult | None
    ) -> None:
        self.problem, self.options = problem, options
        n, p = problem.shape
        self.alpha, b = np.zeros((n, p)), problem.constants
        if start is not None:
            alpha, b = problem.point_of(start)
            self.alpha = problem.feasible(alpha)
        self.theta = np.tile(b if problem.offset else np.zeros(p), (n, 1))
        largest = _largest_eigenvalues(problem)
        # without a kernel to speak of, θ must still be able to cross the residuals while α
        # crosses its range
        residual = float(np.abs(problem.y - problem.constants).mean())
        self.nu = np.maximum(10.0 * largest, residual / problem.terms.widest)
        self.stiffness = (largest + self.nu) / 0.95 if problem.offset else largest
        self.random = np.random.default_rng(options.seed)
        self._sum_over(np.arange(n))
        self.refresh()

    def _sum_over(self, active: Index) -> None:
        """Keep θ for these samples only; the θ of the others follows θ̄ and so drops out."""
        self.active = active
        inverse = 1.0 / self.nu[active, None]
        self.weighted_sum = (self.theta[active] * inverse).sum(axis=0) + self.alpha.sum(axis=0)
        self.inverse_nu_sum = 1.0 / float(inverse.sum())

    @property
    def b(self) -> Array:
        """θ̄, the projection onto span(1): the offsets."""
        if not self.problem.offset:
            return np.zeros(self.problem.shape[1])
        return self.weighted_sum * self.inverse_nu_sum

    def refresh(self) -> None:
        """Products and sums afresh from the data, and the active set from all samples."""
        problem = self.problem
        self.gradient = problem.gram.product(self.alpha) - problem.y
        b = self.b
        aside = np.ones(len(self.alpha), dtype=bool)
        aside[self.active] = False
        self.theta[aside] = b if problem.offset else 0.0
        settled = self._settled(b) if self.options.shrinking else np.zeros(len(aside), dtype=bool)
        if settled.all():  # an optimum, or a b so far off that all seem settled
            settled[:] = False
        self._sum_over(np.flatnonzero(~settled))

    def _settled(self, b: Array) -> NDArray[np.bool_]:
        """Samples at zero or wholly at bounds that meet their own conditions with room."""
        terms = self.problem.terms
        residual = -self.gradient - b
        length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
        size = np.sqrt(np.einsum("ij,ij->i", self.alpha, self.alpha))
        at_zero = (size == 0) & (length < (1.0 - SPARE) * terms.epsilon)
        unit = self.alpha / np.where(size > 0, size, 1.0)[:, None]
        slope = residual - terms.epsilon * unit
        spare = SPARE * float(length.mean())
        high = (self.alpha >= terms.outputs.upper) & (slope > spare)
        low = (self.alpha <= terms.outputs.lower) & (slope < -spare)
        at_bounds: NDArray[np.bool_] = (size > 0) & (high | low).all(axis=1)
        return at_zero | at_bounds

    def run_pass(self) -> None:
        """One step a sample of the active set, in random or cyclic order."""
        count = len(self.active)
        if self.options.order == "random":
            order = self.active[self.random.integers(count, size=count)]
        else:
            order = self.active
        problem = self.problem
        n, p = problem.shape
        separable = isinstance(problem.gram, SeparableGram)
        per_call = int(BATCH / (count * p)) if separable else int(HELD / (n * p * p))
        B = problem.gram.B if isinstance(problem.gram, SeparableGram) else np.eye(p)
        for first in range(0, count, max(per_call, 1)):
            problem.gram.pause()
            part = order[first : first + max(per_call, 1)]
            rows, slots = problem.gram.rows(part)
            primal_dual_steps(
                self.alpha,
                self.gradient,
                self.theta,
                self.weighted_sum,
                rows,
                slots,
                B,
                separable,
                problem.terms.outputs.numbers,
                problem.terms.epsilon,
                self.nu,
                self.stiffness,
                self.inverse_nu_sum,
                part,
                self.active,
                problem.offset,
            )
