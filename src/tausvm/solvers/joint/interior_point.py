"""A primal-dual interior-point method for the joint dual.

The terms hᵢ become barriers (:mod:`.cones`): box bounds or halves for the losses, one
second-order cone a sample for ε‖αᵢ‖. Newton's equations then are those of the Gram matrix plus
p×p blocks, and :mod:`.systems` solves them within the Kronecker structure. Some fifteen to
twenty-five steps end at a relative gap of 1e-8, whatever C and the conditioning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...losses.terms import KINK, DualTerms
from ..linalg import LinAlgError
from ..onedim import best_offset
from ..result import SolverOptions, Status
from .cones import BOUNDARY, LONGEST, Blocks, Box, Norms, barriers
from .monitor import JointMonitor
from .polish import polished
from .problem import JointProblem, JointResult
from .systems import FactorSystem, System, system_for

Array = NDArray[np.float64]

STEPS = 100
#: the centre to aim at for the first direction of a step
FIRST_GUESS = -1.0
#: steps in a row that may pass without lowering the gap before the method gives up
PATIENCE = 6
#: steps to wait for rows to settle after the gap has closed
WAIT = 4
#: a gap is worth evaluating once the complementarity is within this factor of the tolerance
NEAR = 30.0
#: the solve goes on to this share of tol for rows to settle at zero, down to a gap of FINE
SETTLED = 1e-2
FINE = 1e-8
#: the gap from which on free entries are polished
POLISHED = 1e-4
#: a row settles at zero where its share of the longest is below this times the share of ε that
#: its residual leaves
SMALL = 1e-2


class _Iterate:
    """α, b and the barriers at one point of the way."""

    def __init__(self, problem: JointProblem, system: System) -> None:
        self.problem, self.system = problem, system
        terms = problem.terms
        n, p = problem.shape
        self.alpha = np.zeros((n, p))
        self.fitted = np.zeros((n, p))
        self.b = np.median(problem.y, axis=0) if problem.offset else np.zeros(p)
        size = float(np.abs(problem.y - self.b).mean()) + 1e-3 * terms.epsilon
        self.scale = max(size, 1e-300)
        self.parts = barriers(terms, self.scale)
        self.degree = sum(part.degree for part in self.parts)
        smooth = all(isinstance(part, Norms) for part in self.parts)
        #: of losses that need no barrier
        self.ridge = terms.outputs.ridge_plus if smooth else np.zeros((n, p))

    def residual(self) -> Array:
        """The derivative of the Lagrangian by α, 0 at an optimum."""
        total = self.fitted - self.problem.y + self.b + self.ridge * self.alpha
        for part in self.parts:
            part.add_gradient(total)
        return total

    def complementarity(self) -> float:
        return sum(part.complementarity() for part in self.parts)

    def relative_complementarity(self) -> float:
        size = abs(float(np.vdot(self.alpha, self.problem.y - self.b))) + float(
            np.vdot(self.alpha, self.fitted)
        )
        return self.complementarity() / max(size, 1e-300)

    def step(self) -> None:
        """One predictor-corrector step."""
        with np.errstate(all="ignore"):
            self._step()
        if not (np.isfinite(self.alpha).all() and np.isfinite(self.b).all()):
            raise LinAlgError("the step has overflowed")

    def _step(self) -> None:
        self.system.set_up(Blocks(self.parts, self.ridge.copy()))
        right = -self.residual()
        missing = -self.alpha.sum(axis=0)
        degree = max(self.degree, 1)
        mu = self.complementarity() / degree
        self._direction(right, missing, FIRST_GUESS)
        if self.degree:
            after = sum(part.after(min(self._longest(), 1.0)) for part in self.parts) / degree
            self._direction(right, missing, mu * min(max(after / mu, 0.0) ** 3, 1.0))
        length = min(1.0, BOUNDARY * self._longest())
        self.alpha = self.alpha + length * self.dalpha
        self.b = self.b + length * self.db
        for part in self.parts:
            part.step(length)
        if self.system.gram is not None:
            self.fitted = self.problem.gram.product(self.alpha)

    def _direction(self, right: Array, missing: Array, centre: float) -> None:
        pulled = right.copy()
        for part in self.parts:
            part.aim(centre, pulled)
        dalpha, self.db = self.system.solve(pulled, missing)
        self.dalpha = np.ascontiguousarray(dalpha)
        for part in self.parts:
            part.follow(self.dalpha)

    def _longest(self) -> float:
        return min([part.longest() for part in self.parts], default=LONGEST)

    def settled(self) -> Array:
        """α with rows put to 0 whose residual is shorter than ε, and entries to their bounds."""
        problem = self.problem
        terms = problem.terms
        alpha = self.alpha.copy()
        for part in self.parts:
            if isinstance(part, Box):
                high = part.high.s < part.high.z * part.high.ratio()
                low = part.low.s < part.low.z * part.low.ratio()
                alpha = np.where(high.reshape(alpha.shape), terms.outputs.upper, alpha)
                alpha = np.where(low.reshape(alpha.shape), terms.outputs.lower, alpha)
        if terms.epsilon > 0:
            residual = problem.y - self.fitted - self.b
            length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            sizes = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
            room = 1.0 - length / terms.epsilon
            alpha[sizes < SMALL * room * sizes.max(initial=0.0)] = 0.0
        return alpha


def solve_interior_point(
    problem: JointProblem, options: SolverOptions, start: JointResult | None = None
) -> JointResult:
    """Solve to the relative gap ``options.tol``.

    A warm start is taken where it is good enough as it is; an interior point cannot use more.
    """
    goal = min(options.tol, max(SETTLED * options.tol, FINE))
    monitor = JointMonitor(problem, options, "interior_point", goal)
    if start is not None:
        monitor.consider(start.alpha, start.intercept)
        if monitor.gap <= options.tol:
            return monitor.result(0)
    iterate = _Iterate(problem, system_for(problem.gram, problem.offset))
    n_iter, failures, waited, best = 0, 0, 0, np.inf
    while True:
        nothing = problem.fits_without_kernel(iterate.b)
        near = n_iter > 0 and iterate.relative_complementarity() <= NEAR * goal
        watched = options.callback is not None or 0 <= options.max_iter <= n_iter
        late = monitor.seconds >= (options.time_limit or np.inf)
        if nothing or near or watched or late:
            point = iterate.settled() if near else iterate.alpha
            if monitor.should_stop(0.0 * point if nothing else point, iterate.b, n_iter):
                break
            reached = monitor.trace[-1].gap
            failures = failures + 1 if reached > 0.5 * best else 0
            best = min(best, reached)
            # entries may take a few steps more to settle than the gap does to close
            waited += near and problem.certified_gap(iterate.alpha, iterate.b) <= goal
            if near and (failures > PATIENCE or waited > WAIT):
                monitor.consider(iterate.alpha, iterate.b)
                monitor.status = Status.NUMERICAL_ERROR
                break
        if n_iter == STEPS:
            monitor.status = Status.NUMERICAL_ERROR
            break
        try:
            iterate.step()
        except LinAlgError:
            monitor.status = Status.NUMERICAL_ERROR
            break
        n_iter += 1
    if monitor.best is None:
        monitor.consider(np.zeros(problem.shape), iterate.b)
    elif monitor.gap <= POLISHED:
        exact = polished(problem, monitor.alpha, monitor.best.intercept)
        if exact is not None:
            monitor.consider(*exact)
    return monitor.result(n_iter)


def best_offsets(problem: JointProblem, fitted: Array) -> Array:
    """The b ∈ Rᵖ that minimises the primal at this f.

    Without ε each output has its own, found exactly. With it they are the multipliers of the
    joint problem without a kernel, whose equations are p×p.
    """
    terms = problem.terms
    n, p = problem.shape
    if not problem.offset:
        return np.zeros(p)
    residual = problem.y - fitted
    if terms.epsilon == 0 or p == 1:
        numbers = terms.outputs.numbers.copy()
        numbers[KINK] = terms.epsilon
        return np.array(
            [
                best_offset(DualTerms(np.ascontiguousarray(numbers[:, :, j])), residual[:, j])
                for j in range(p)
            ]
        )
    bare = JointProblem(problem.gram, residual, terms, True)
    iterate = _Iterate(bare, FactorSystem(None, None, (n, p), True))
    best, value = iterate.b, float(terms.conjugate(residual - iterate.b).sum())
    for _ in range(STEPS):
        try:
            iterate.step()
        except LinAlgError:
            break
        now = float(terms.conjugate(residual - iterate.b).sum())
        if now < value:
            best, value = iterate.b, now
        if bare.fits_without_kernel(best) or iterate.complementarity() <= 1e-12 * value:
            break
    return best
