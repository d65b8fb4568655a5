"""Newton's method on the primal for smooth losses: the pattern of active residuals.

A squared loss makes the primal piecewise quadratic in f. At residuals r = y − f − b the
samples outside their ε-tube, A = {i : |rᵢ| > kinkᵢ}, have βᵢ = (rᵢ ∓ kinkᵢ)/ridge±, and for
that pattern of signs the optimum solves a linear system,

    (K_AA + R_A) β_A + b 1 = y_A ∓ kink_A,   Σβ = 0 with an offset,   β = 0 elsewhere.

The step towards its solution is cut at the exact minimum of the primal on the way. Three
or four patterns usually end at the exact solution. Small systems are factorised; large ones
are solved by conjugate gradients with a Nyström preconditioner, where an iteration is one
pass over the rows of K, and factorised too where that has cost as much.
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

    #: systems up to this order are factorised at once, and up to a larger one where K is not held
    few: int = 400
    direct: int = 1500
    #: larger ones by conjugate gradients, until these have cost as much as a factor: then by that,
    #: where memory allows. Nanoseconds: of each n³/3 and n² of a factor with its exact matrix, of
    #: an entry of K in a product, of n·rank² to prepare
    factor_cost: float = 0.027
    square_cost: float = 5.0
    product_cost: float = 0.15
    prepare_cost: float = 0.03
    #: patterns that a solve usually takes, and products of each with a perfect preconditioner
    patterns: int = 5
    products_each: int = 5
    #: bytes a pair of variables of a factor and its matrix
    bytes_a_pair: float = 16.0
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
        descent = Descent(problem, monitor, self, *starting_point(problem, start))
        n_iter = 0
        with monitor:
            while not monitor.check_gradient(
                descent.beta, descent.gradient, n_iter, descent.intercept
            ):
                moved = descent.step()
                if moved is None:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
                n_iter += moved
        return monitor.result(Point.of(descent.beta), n_iter)

    def promising(self, problem: Problem) -> Nystrom | None:
        """The preconditioner, if all systems with it would cost less than one factor.

        The products of a system go with the square root of 1 + κ, where κ is what the
        preconditioner leaves of the diagonal, over the ridge.
        """
        found = self.preconditioner(problem)
        left = problem.operator.diagonal - np.einsum("ij,ij->i", found.L, found.L)
        ridge = np.minimum(problem.terms.ridge_plus, problem.terms.ridge_minus)
        kappa = float(np.mean(np.maximum(left, 0.0) / ridge))
        return found if self.iterated_cost(problem.n, kappa) <= self.cost(problem.n) else None

    def iterated_cost(self, n: int, kappa: float = 0.0) -> float:
        """Nanoseconds, roughly, of all systems by conjugate gradients."""
        rank = min(self.rank_share * n, self.most_rank)
        products = self.products_each * np.sqrt(1.0 + kappa) * self.product_cost * n**2
        return float(self.patterns * (products + self.prepare_cost * n * rank**2))

    def preconditioner(self, problem: Problem) -> Nystrom:
        """The one of all systems."""
        if problem.operator.whole:  # all rows in order, so that products can use symmetry
            problem.operator.require(np.arange(problem.n))
        rank = min(self.rank_share * problem.n, self.most_rank, problem.operator.capacity)
        return Nystrom(problem.operator, max(int(rank), 1))

    def cost(self, order: int) -> float:
        """Nanoseconds, roughly, of a factor."""
        return self.factor_cost * order**3 / 3 + self.square_cost * order**2


class Descent:
    """The way down: β, its gradient Kβ − y and the offset, which change with every step."""

    def __init__(
        self, problem: Problem, monitor: Monitor, settings: Newton, beta: Array, gradient: Array
    ) -> None:
        self.problem = problem
        self.beta, self.gradient = beta, gradient
        self.intercept = problem.best_intercept(gradient + problem.y)
        self.systems = _Systems(problem, monitor, settings)
        #: whether the gradient has products with rows that are rounded
        self.rounded = False

    def by(self, preconditioner: Nystrom | None) -> None:
        """Solve systems with a preconditioner at first; without one by factors, if they fit."""
        self.systems.preconditioner = preconditioner
        self.systems.work = 0.0 if preconditioner else np.inf

    def step(self) -> bool | None:
        """Towards the solution of the pattern; whether β went there, None where nothing is left."""
        problem, systems = self.problem, self.systems
        active, plus = _pattern(problem, -self.gradient - self.intercept)
        if len(active) == 0:  # all lie within their tubes: there is no system to solve
            return None
        if self.rounded and systems.factorises(len(active)):
            # a factor solves to the last digits, and would do so for what is rounded
            self._look()
            active, plus = _pattern(problem, -self.gradient - self.intercept)
        step, rise = systems.solve(active, plus, self.beta, self.gradient, self.intercept)
        change = systems.product(step)
        self.rounded |= systems.preconditioner is not None
        length = _line_minimum(problem, self.gradient, self.intercept, step, change, change + rise)
        if length > 0:
            self.beta += length * step
            self.gradient += length * change
            self.intercept += length * rise
            return True
        if not systems.sharpen():
            return None
        # no descent is left in this f: take the β that its residuals ask for, unless rounding has
        # led here and they ask for another f
        asked = problem.feasible(problem.terms.response(-self.gradient - self.intercept))
        self._look()
        there = problem.operator.product(asked) - problem.y
        if problem.gap_from(asked, there) < problem.gap_from(self.beta, self.gradient):
            self.beta[:], self.gradient[:] = asked, there
            self.intercept = problem.best_intercept(there + problem.y)
        return False

    def _look(self) -> None:
        """The gradient from the data, and the offset."""
        problem = self.problem
        np.subtract(problem.operator.product(self.beta), problem.y, out=self.gradient)
        self.intercept = problem.best_intercept(self.gradient + problem.y)
        self.rounded = False


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
        #: nanoseconds of conjugate gradients so far
        self.work = 0.0
        self.reduction = settings.reduction
        self._sharpened = 0

    def sharpen(self) -> bool:
        """Solve the next systems more accurately; whether that is still worth a try."""
        self.reduction *= self.settings.reduction
        self._sharpened += 1
        if self._sharpened == self.settings.sharpenings and self.preconditioner is not None:
            self.work = np.inf  # rows held are too rough for this: the last try is by factors
        return self._sharpened <= self.settings.sharpenings

    def factorises(self, order: int) -> bool:
        """Whether a system is factorised: it is small, or others have cost as much."""
        settings, operator = self.settings, self.problem.operator
        if order <= (settings.few if operator.whole else settings.direct):
            return True
        if settings.bytes_a_pair * order**2 > operator.spare_bytes:
            return False
        return self.work >= settings.cost(order)

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
        ones, factorised = np.ones(len(active)), self.factorises(len(active))
        if factorised:
            self.preconditioner = None
        if step.any():  # samples that came to lie inside their tube
            right -= self.product(step)[active]
        if factorised:
            factor = self._factor(active, ridge)
            solution = cholesky_solve(factor, right)
            flat = cholesky_solve(factor, ones) if problem.offset else ones
        else:
            if self.preconditioner is None:
                self.preconditioner = self.settings.preconditioner(problem)
            self.preconditioner.prepare(active, ridge)
            self.work += self.settings.prepare_cost * len(active) * self.preconditioner.rank**2
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
            self.work += self.settings.product_cost * problem.n**2
            return energy <= goals[0] or self.monitor.out_of_time()

        start = first if first.any() else None
        products = self.settings.products
        x, _ = conjugate_gradients(product, right, preconditioner.solve, enough, products, start)
        return x
