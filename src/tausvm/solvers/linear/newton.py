"""Newton's method on the primal (Ho and Lin, Algorithm 1), for terms with a ridge.

With a ridge on both sides the primal

    F(w, b) = ½‖w‖² − pᵀw − h·b + Σᵢ φᵢ(yᵢ − xᵢᵀw − b),    φ = g*

is piecewise quadratic. φ′ᵢ is the response βᵢ, so ∇F = w − p − Σ βᵢxᵢ, and the generalised
Hessian is I + Σ φ″ᵢ xᵢxᵢᵀ over the active rows, those whose response is neither 0 nor at a bound.
The responses are a dual point, and the gap there is the gradient itself:

    F(w, b) − dual(β) = ½‖∇F‖²      (b at its best)

so that the rule (8) on the gradient and the duality gap are one rule. The step to the minimum of
the quadratic model is followed to the exact minimum on its line, which does the work of a trust
region. For few features the Hessian is kept and factorised, updated by the rows whose activity
changed; for many it is only multiplied with, in conjugate gradients preconditioned by its
diagonal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..._core import linear as core
from ..linalg import LinAlgError, cholesky, cholesky_solve
from ..offsets import smooth_offset
from .dual_systems import MOST_ROWS
from .problem import LinearProblem
from .rows import Rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: up to this many features the Hessian is a matrix
DIRECT = 600
#: the gradient that is left of a linear system solved by conjugate gradients
REDUCTION = 0.1
MOST_PRODUCTS = 500
#: and where inner products can take their place: one for so many active rows, of CSR data and of
#: dense data, whose inner products cost less
ROWS_A_PRODUCT = 8
DENSE_ROWS_A_PRODUCT = 32
#: active rows whose inner products are taken without a try of conjugate gradients
FEW_ROWS = 300


class Newton:
    """Newton steps on F, with g made g + σ/2 (β − centre)² where σ > 0.

    ``residual`` is y − Xw − b, ``beta`` the responses to it, ``pulled`` is p + Σ βᵢxᵢ.
    """

    def __init__(
        self,
        problem: LinearProblem,
        coef: Array,
        intercept: float,
        fitted: Array,
    ) -> None:
        self.problem = problem
        self.coef = coef.copy()
        self.intercept = intercept
        self.residual = problem.y - fitted - intercept
        self.sigma = 0.0
        self.centre = np.zeros(1)
        self.beta = np.empty(problem.n)
        self.slope = np.empty(problem.n)
        self.n_products = 0
        direct = problem.d <= DIRECT
        self.systems: _Direct | _Iterative = _Direct(problem) if direct else _Iterative()

    def smooth(self, sigma: float, centre: Array) -> None:
        """Take these σ and centre."""
        self.sigma, self.centre = sigma, centre

    def evaluate(self) -> None:
        """Responses, gradient, value and the gap of F; a free b is put at its best first."""
        problem, numbers = self.problem, self.problem.terms.numbers
        if problem.offset:
            shift = smooth_offset(numbers, self.residual, problem.held, self.sigma, self.centre)
            self.residual -= shift
            self.intercept += shift
        loss = core.responses(
            numbers, self.residual, self.sigma, self.centre, self.beta, self.slope
        )
        self.pulled = problem.weights(self.beta)
        self.gradient = self.coef - self.pulled
        self.value = problem.regulariser(self.coef, self.intercept) + loss
        self.offset_gradient = 0.0
        gap = 0.5 * float(self.gradient @ self.gradient)
        if problem.column > 0:
            total = float(self.beta.sum()) + problem.held
            self.offset_gradient = self.bend * self.intercept - total
            off = problem.column * self.offset_gradient
            gap += 0.5 * off * off
        self.gap = gap

    @property
    def bend(self) -> float:
        """The second derivative of the penalty on b."""
        column = self.problem.column
        return 1.0 / (column * column) if column > 0 else 0.0

    def step(self, wanted: float, stop: Callable[[], bool]) -> bool:
        """One Newton step towards a gap of ``wanted``; False where no descent is left."""
        problem = self.problem
        step, rise = self.systems.solve(self, wanted, stop)
        fitted = problem.rows.dot(step)
        change = fitted + rise
        length = self._line_minimum(step, rise, change)
        if not length > 0:
            return False
        self.coef += length * step
        self.intercept += length * rise
        self.residual -= length * change
        return True

    def refresh(self) -> None:
        """The residuals from the data, without what the updates rounded."""
        fitted = self.problem.rows.dot(self.coef)
        self.residual = self.problem.y - fitted - self.intercept

    def _line_minimum(self, step: Array, rise: float, change: Array) -> float:
        """The exact minimum of F on the line: a zero of a piecewise linear function."""
        problem, numbers = self.problem, self.problem.terms.numbers
        linear = float(self.coef @ step) + self.bend * self.intercept * rise - problem.held * rise
        if problem.pull is not None:
            linear -= float(problem.pull @ step)
        quadratic = float(step @ step) + self.bend * rise * rise

        def slope(t: float) -> tuple[float, float]:
            pull, bend = core.line_slope(numbers, self.residual, self.sigma, self.centre, change, t)
            return linear + t * quadratic - pull, quadratic + bend

        first, _ = slope(0.0)
        if not first < 0:
            return 0.0
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(50):
            here, bend = slope(t)
            if abs(here) <= 0.01 * abs(first):
                return t
            if here < 0:
                low = t
            else:
                high = t
            newton = t - here / bend if bend > 0 else np.inf
            if not low < newton < high:
                newton = 0.5 * (low + high) if np.isfinite(high) else 2.0 * t
            if newton in (low, high):
                break
            t = newton
        return low


class _Direct:
    """The Hessian as a matrix, kept up to date by the rows whose weight changed."""

    def __init__(self, problem: LinearProblem) -> None:
        self.weight = np.zeros(problem.n)
        self.matrix = np.zeros((problem.d + 1, problem.d + 1))
        self.largest = 0

    def solve(self, newton: Newton, wanted: float, stop: Callable[[], bool]) -> tuple[Array, float]:
        problem, d = newton.problem, newton.problem.d
        # weights are 1/σ where σ counts: without that factor they outlive a change of σ
        unit = newton.sigma if newton.sigma > 0 else 1.0
        weight = newton.slope * unit
        self._update(problem.rows, weight)
        matrix = self.matrix / unit
        matrix[np.arange(d), np.arange(d)] += 1.0
        right = -newton.gradient
        curvature = matrix[d, d] + newton.bend
        if (problem.offset or problem.column > 0) and curvature > 0:
            border = matrix[:d, d]
            flat = border / curvature
            matrix = matrix[:d, :d] - np.outer(flat, border)
            step = _solve_positive(matrix, right + flat * newton.offset_gradient)
            return step, float(-(newton.offset_gradient + border @ step) / curvature)
        return _solve_positive(matrix[:d, :d], right), 0.0

    def _update(self, rows: Rows, weight: Array) -> None:
        d = rows.n_features
        change = weight - self.weight
        moved = np.count_nonzero(change)
        active = np.count_nonzero(weight)
        # sums of many rows that have left again would leave their rounding behind
        afresh = moved >= active or active < 0.05 * self.largest
        if moved == 0:
            return
        if afresh:
            self.matrix[:] = 0.0
            change = weight
            self.largest = 0
        self.largest = max(self.largest, int(active))
        self.matrix[:d, :d] += rows.outer(change)
        border = rows.sum(change)
        self.matrix[:d, d] += border
        self.matrix[d, :d] += border
        self.matrix[d, d] += change.sum()
        self.weight = weight.copy()


def _solve_positive(matrix: Array, right: Array) -> Array:
    """By Cholesky; by eigenvalues where scales of 1e±12 leave it indefinite in rounding."""
    try:
        return cholesky_solve(cholesky(np.asfortranarray(matrix)), right)
    except LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        values = np.maximum(values, max(1e-15 * values[-1], 1.0))
        return vectors @ ((vectors.T @ right) / values)


class _Iterative:
    """Many features: inner products of the active rows where these are few, else conjugate
    gradients on (I + XᵀDX), the offset eliminated."""

    def __init__(self) -> None:
        #: whether conjugate gradients take more products than inner products are worth
        self.struggles = False

    def _by_inner_products(
        self, newton: Newton, active: Index, rows: Rows, weight: Array, border: bool
    ) -> tuple[Array, float]:
        """(I + XᵀDX)⁻¹ by way of (D⁻¹ + XXᵀ)⁻¹; the offset is eliminated last."""
        if len(active) == 0:
            rise = -newton.offset_gradient / newton.bend if newton.bend > 0 else 0.0
            return -newton.gradient, rise
        matrix = newton.problem.rows.inner_products(active).T
        matrix[np.arange(len(active)), np.arange(len(active))] += 1.0 / weight
        factor = cholesky(np.asfortranarray(matrix))
        # δ = D(Xp + rise) solves (D⁻¹ + XXᵀ) δ = −Xg + rise·1, and p = −g − Xᵀδ
        plain = cholesky_solve(factor, -rows.dot(newton.gradient))
        rise = 0.0
        if border:
            flat = cholesky_solve(factor, np.ones(len(active)))
            total = newton.bend + float(flat.sum())
            rise = -(newton.offset_gradient + float(plain.sum())) / total
            plain = plain + rise * flat
        return -newton.gradient - rows.sum(plain), rise

    def solve(self, newton: Newton, wanted: float, stop: Callable[[], bool]) -> tuple[Array, float]:
        problem = newton.problem
        active = np.flatnonzero(newton.slope)
        rows, weight = problem.rows.take(active), newton.slope[active]
        border = problem.offset or problem.column > 0
        few = len(active) <= MOST_ROWS
        if few and (self.struggles or newton.sigma > 0 or len(active) <= FEW_ROWS):
            return self._by_inner_products(newton, active, rows, weight, border)
        # b is eliminated: it follows every move of w to its best, as it does between the steps
        curvature = newton.bend + float(weight.sum())
        border = border and curvature > 0
        diagonal = 1.0 + rows.column_squares(weight)
        residual = -newton.gradient
        if border:
            tilt = rows.sum(weight, roomy=True)
            diagonal = np.maximum(diagonal - tilt * (tilt / curvature), 1.0)
            residual += tilt * (newton.offset_gradient / curvature)

        def product(v: Array) -> Array:
            newton.n_products += 1
            inner = rows.dot(v)
            if border:
                inner -= float(weight @ inner) / curvature
            inner *= weight
            out = rows.sum(inner, roomy=True)
            out += v
            return out

        x = np.zeros(problem.d)
        z = residual / diagonal
        p = z.copy()
        energy = float(residual @ z)
        target = max(REDUCTION**2 * float(residual @ residual), 0.5 * wanted)
        worth = len(active) // (ROWS_A_PRODUCT if rows.sparse else DENSE_ROWS_A_PRODUCT)
        most = min(MOST_PRODUCTS, worth) if few else MOST_PRODUCTS
        for _ in range(most):
            image = product(p)
            bend = float(p @ image)
            if not bend > 0:
                break
            length = energy / bend
            x += np.multiply(p, length, out=z)
            residual -= np.multiply(image, length, out=image)
            if float(residual @ residual) <= target or stop():
                break
            np.divide(residual, diagonal, out=z)
            fresh = float(residual @ z)
            p *= fresh / energy
            p += z
            energy = fresh
        else:
            self.struggles = True
        if not border:
            return x, 0.0
        return x, -(newton.offset_gradient + float(tilt @ x)) / curvature
