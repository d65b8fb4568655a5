"""Newton's method on the primal for smooth losses: the pattern of active residuals.

A squared loss makes the primal piecewise quadratic in f. At residuals r = y − f − b the
samples outside their ε-tube, A = {i : |rᵢ| > kinkᵢ}, have βᵢ = (rᵢ ∓ kinkᵢ)/ridge±, and for
that pattern of signs the optimum solves a linear system,

    (K_AA + R_A) β_A + b 1 = y_A ∓ kink_A,   Σβ = 0 with an offset,   β = 0 elsewhere.

The step towards its solution is cut at the exact minimum of the primal on the way. Three
or four patterns usually end at the exact solution. Small systems are factorised; large ones
are solved by conjugate gradients with a Nyström preconditioner, where an iteration is one
pass over the rows of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .linalg import LinAlgError, cholesky_solve, conjugate_gradients, lifted_cholesky
from .monitor import Monitor, OutOfTime
from .nystrom import Nystrom
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .working import starting_point

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method on the primal of a smooth loss: a few patterns of active residuals."""

    name: ClassVar[str] = "newton"

    #: systems up to this order are factorised; up to a smaller one where a rough solution, of a
    #: tolerance above ``rough``, will do: conjugate gradients then need few products
    direct: int = 1500
    direct_rough: int = 400
    rough: float = 1e-5
    #: landmarks of the preconditioner of larger ones: a share of the samples, up to a number
    rank_share: float = 0.08
    most_rank: int = 400
    #: what conjugate gradients leave of the energy of the error: a wrong pattern's system needs no
    #: exact solution
    reduction: float = 0.01
    #: how often that is sharpened, by the same factor, where no descent is left
    sharpenings: int = 5
    #: products of conjugate gradients at most, for one system
    products: int = 500
    #: kernel values may be rounded by this share of the diagonal before a matrix is no kernel's
    indefinite: float = 1e-6

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        if not serves(problem):
            raise ValueError(
                "solver='newton' serves smooth losses only (squared pinball, squared "
                "epsilon-insensitive); use solver='auto', 'block', 'smo' or 'interior_point'"
            )
        monitor = Monitor(problem, options, self.name)
        beta, gradient = starting_point(problem, start)
        intercept = problem.best_intercept(gradient + problem.y)
        systems = _Systems(problem, monitor, self)
        n_iter = 0
        with monitor:
            while not monitor.check_gradient(beta, gradient, n_iter, intercept):
                active, plus = _pattern(problem, -gradient - intercept)
                step, rise = systems.solve(active, plus, beta, gradient, intercept)
                change = systems.product(step)
                length = _line_minimum(problem, gradient, intercept, step, change, change + rise)
                if length > 0:
                    beta += length * step
                    gradient += length * change
                    intercept += length * rise
                    n_iter += 1
                elif systems.sharpen():
                    # no descent is left in this f: take the β that its residuals ask for
                    beta = problem.feasible(problem.terms.response(-gradient - intercept))
                    gradient = problem.operator.product(beta) - problem.y
                    intercept = problem.best_intercept(gradient + problem.y)
                else:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
        return monitor.result(Point.of(beta), n_iter)


def serves(problem: Problem) -> bool:
    """Whether the loss is smooth: a ridge and no bound on both sides."""
    return bool(problem.terms.smooth)


def _pattern(problem: Problem, residual: Array) -> tuple[Index, NDArray[np.bool_]]:
    """Samples outside their tube, and on which side."""
    active = np.flatnonzero(np.abs(residual) >= problem.terms.kink)
    return active, residual[active] >= 0


def _line_minimum(
    problem: Problem, gradient: Array, intercept: float, step: Array, change: Array, shift: Array
) -> float:
    """Where the primal is least on the way t in [0, 1] (a little beyond is not sought).

    Its derivative is increasing and piecewise linear: a few secant steps inside a bracket.
    """
    residual = -gradient - intercept
    fitted = gradient + problem.y
    linear, quadratic = float(step @ fitted), float(step @ change)

    def slope(t: float) -> float:
        pull = problem.terms.response(residual - t * shift)
        return linear + t * quadratic - float(pull @ shift)

    low, high, at_low, at_high = 0.0, 1.0, slope(0.0), slope(1.0)
    if at_low >= 0:
        return 0.0
    scale = 1e-10 * abs(at_low)
    if at_high <= scale:
        return 1.0
    for _ in range(60):
        middle = low - at_low * (high - low) / (at_high - at_low)
        middle = min(max(middle, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        here = slope(middle)
        if abs(here) <= 1e-3 * abs(at_low) or high - low < 1e-12:
            return middle
        if here < 0:
            low, at_low = middle, here
        else:
            high, at_high = middle, here
    return low


class _Systems:
    """Solves K_AA + R_A for changing patterns, by factors or conjugate gradients."""

    def __init__(self, problem: Problem, monitor: Monitor, settings: Newton) -> None:
        self.problem = problem
        self.monitor = monitor
        self.settings = settings
        self.preconditioner: Nystrom | None = None
        self.flat = np.zeros(problem.n)
        rough = monitor.options.tol >= settings.rough
        self.direct = settings.direct_rough if rough else settings.direct
        self.reduction = settings.reduction
        self._sharpened = 0

    def sharpen(self) -> bool:
        """Solve the next systems more accurately; whether that is still worth a try."""
        self.reduction *= self.settings.reduction
        self._sharpened += 1
        return self._sharpened <= self.settings.sharpenings

    def product(self, step: Array) -> Array:
        """K·step: exact where factors are, in the precision of the rows held elsewhere."""
        if self.preconditioner is None:
            return self.problem.operator.product(step)
        return self.problem.operator.held_product(step)

    def solve(
        self,
        active: Index,
        plus: NDArray[np.bool_],
        beta: Array,
        gradient: Array,
        intercept: float,
    ) -> tuple[Array, float]:
        """The steps of β and b to the solution of the pattern.

        They solve for a correction, so that rounding in the rows held affects the speed of
        convergence and not its end.
        """
        problem, terms = self.problem, self.problem.terms
        ridge = np.where(plus, terms.ridge_plus[active], terms.ridge_minus[active])
        kink = np.where(plus, terms.kink[active], -terms.kink[active])
        right = -gradient[active] - intercept - kink - ridge * beta[active]
        step = -beta
        step[active] = 0.0
        if step.any():  # samples that came to lie inside their tube
            right -= problem.operator.held_product(step)[active]
        ones = np.ones(len(active))
        if len(active) <= self.direct:
            factor = self._factor(active, ridge)
            solution = cholesky_solve(factor, right)
            flat = cholesky_solve(factor, ones) if problem.offset else ones
        else:
            if self.preconditioner is None:
                if problem.operator.whole:  # all rows in order, so that products can use symmetry
                    problem.operator.require(np.arange(problem.n))
                settings, capacity = self.settings, problem.operator.capacity
                rank = int(min(settings.rank_share * problem.n, settings.most_rank, capacity))
                self.preconditioner = Nystrom(problem.operator, rank)
            self.preconditioner.prepare(active, ridge)
            flat = ones
            if problem.offset:
                flat = self._iterate(active, ridge, ones, self.flat[active])
                if not flat.any():  # no first step: time was up, or rounding leaves none
                    if self.monitor.out_of_time():
                        raise OutOfTime
                    return np.zeros(problem.n), 0.0
                self.flat = np.zeros(problem.n)
                self.flat[active] = flat
            solution = self._iterate(active, ridge, right, np.zeros(len(active)))
        rise = 0.0
        if problem.offset:
            rise = float((solution.sum() + beta[active].sum()) / flat.sum())
            solution = solution - rise * flat
        step[active] = solution
        return step, rise

    def _factor(self, active: Index, ridge: Array) -> Array:
        matrix = self.problem.operator.block(active, active)
        np.einsum("ii->i", matrix)[:] += ridge
        try:
            return lifted_cholesky(matrix.T, self.settings.indefinite, alike=True)
        except LinAlgError as error:
            raise ValueError(
                "kernel must be positive semidefinite, got one whose matrix on these data is not"
            ) from error

    def _iterate(self, active: Index, ridge: Array, right: Array, first: Array) -> Array:
        """Conjugate gradients until the energy of the error has fallen enough, or time is up."""
        problem, preconditioner = self.problem, self.preconditioner
        assert preconditioner is not None
        goals: list[float] = []

        def product(v: Array) -> Array:
            full = np.zeros(problem.n)
            full[active] = v
            return problem.operator.held_product(full)[active] + ridge * v

        def enough(_: Array, energy: float) -> bool:
            if not goals:
                goals.append(self.reduction * energy)
            return energy <= goals[0] or self.monitor.out_of_time()

        start = first if first.any() else None
        products = self.settings.products
        x, _ = conjugate_gradients(product, right, preconditioner.solve, enough, products, start)
        return x
