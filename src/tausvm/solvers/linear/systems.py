"""The linear systems of Newton's method, (I + XᵀDX) p = −g, in three ways.

D holds the slopes φ″ of the active rows; the offset is one unknown more, with the second derivative
of its penalty (0 where it is free). Which way is taken is a matter of shape:

- few features: the matrix itself, kept up to date (:class:`Direct`);
- few active rows: a matrix of their inner products (:class:`Iterative`),
  (I + XᵀDX)⁻¹ g = g − Xᵀ (D⁻¹ + XXᵀ)⁻¹ X g;
- else conjugate gradients preconditioned by the diagonal (:class:`Iterative`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...operators import LinearOperator
from ..linalg import LinAlgError, cholesky, cholesky_solve, conjugate_gradients

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Systems:
    """How systems are solved."""

    #: features up to which the Hessian is a matrix; at 600 a factorisation takes 10 ms
    direct: int = 600
    #: the matrix is summed up afresh where fewer than this share of its most rows are active: what
    #: rows that have left again leave behind is rounding
    afresh_share: float = 0.05
    #: active rows up to which their inner products are held: 72 MB
    most_rows: int = 3000
    #: operations of a factorisation that take as long as one of a product with X. Conjugate
    #: gradients may take as many products as cost one factorisation, else inner products are taken
    #: (2,500 raw mails, squared loss: 2.5 s, and 8 s without; 3,000 × 2,000 counts, ε-insensitive
    #: loss: 4.4 s, and over 12 s with inner products throughout)
    factor_speed: float = 20.0
    #: what conjugate gradients leave of the gradient: a model that will change need not be solved
    #: exactly
    reduction: float = 0.1
    #: products of conjugate gradients in one system at most
    most_products: int = 500

    def of(self, n: int, d: int) -> Direct | Iterative:
        """For problems of n rows and d features."""
        return Direct(n, d, self) if d <= self.direct else Iterative(self)


@dataclass(frozen=True)
class Model:
    """The quadratic model of the primal at a point, which a Newton step minimises.

    ``slope`` has φ″ of all rows, ``sigma`` the ridge in it that is common to all. ``border`` says
    whether there is an offset, with the derivative ``offset_gradient`` and the second derivative
    ``bend`` of its penalty.
    """

    rows: LinearOperator
    slope: Array
    sigma: float
    gradient: Array
    border: bool
    offset_gradient: float
    bend: float


def direct_operations(d: int) -> float:
    """Operations of a step whose Hessian is a matrix: its factor, and forty passes over it."""
    return d**3 / 3.0 + 40.0 * d**2


class Direct:
    """The Hessian as a matrix, kept up to date by the rows whose weight changed."""

    def __init__(self, n: int, d: int, settings: Systems) -> None:
        self.settings = settings
        self.weight = np.zeros(n)
        self.matrix = np.zeros((d + 1, d + 1))
        self.largest = 0

    def solve(self, model: Model, wanted: float, stop: Callable[[], bool]) -> tuple[Array, float]:
        # weights are 1/σ where σ counts: without that factor they outlive a change of σ
        unit = model.sigma if model.sigma > 0 else 1.0
        self._update(model.rows, model.slope * unit)
        model.rows.tally.operations += direct_operations(len(model.gradient))
        return bordered_step(self.matrix / unit, model)

    def _update(self, rows: LinearOperator, weight: Array) -> None:
        d = rows.n_features
        change = weight - self.weight
        moved, active = np.count_nonzero(change), np.count_nonzero(weight)
        if moved == 0:
            return
        if moved >= active or active < self.settings.afresh_share * self.largest:
            self.matrix[:] = 0.0
            change, self.largest = weight, 0
        self.largest = max(self.largest, int(active))
        self.matrix[:d, :d] += rows.outer(change)
        border = rows.function(change)
        self.matrix[:d, d] += border
        self.matrix[d, :d] += border
        self.matrix[d, d] += change.sum()
        self.weight = weight


def bordered_step(matrix: Array, model: Model) -> tuple[Array, float]:
    """The minimum of a model by Σ D(x, 1)(x, 1)ᵀ, which is written to; b is eliminated first."""
    d = len(model.gradient)
    np.einsum("ii->i", matrix)[:d] += 1.0
    curvature = matrix[d, d] + model.bend
    if not model.border or not curvature > 0:
        return _solve_positive(matrix[:d, :d], -model.gradient), 0.0
    border = matrix[:d, d]
    flat = border / curvature
    inner = matrix[:d, :d] - np.outer(flat, border)
    step = _solve_positive(inner, flat * model.offset_gradient - model.gradient)
    return step, float(-(model.offset_gradient + border @ step) / curvature)


def _solve_positive(matrix: Array, right: Array) -> Array:
    """By Cholesky; by eigenvalues where scales of 1e±12 leave it indefinite in rounding."""
    try:
        return cholesky_solve(cholesky(np.asfortranarray(matrix)), right)
    except LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        values = np.maximum(values, max(1e-15 * values[-1], 1.0))
        return vectors @ ((vectors.T @ right) / values)


class Iterative:
    """Many features: inner products of the active rows where these are few, else conjugate
    gradients."""

    def __init__(self, settings: Systems) -> None:
        self.settings = settings
        #: whether conjugate gradients take more products than inner products are worth
        self.struggles = False

    def solve(self, model: Model, wanted: float, stop: Callable[[], bool]) -> tuple[Array, float]:
        active = np.flatnonzero(model.slope)
        rows, weight = model.rows.take(active), model.slope[active]
        most = self.settings.most_products
        if len(active) <= self.settings.most_rows:
            factorisation = len(active) ** 3 / (3.0 * self.settings.factor_speed)
            most = min(most, int(factorisation / (4.0 * max(rows.entries, 1))))
            if self.struggles or most == 0:
                return self._by_inner_products(model, rows, weight)
        step, rise, arrived = self._by_products(model, rows, weight, most, wanted, stop)
        self.struggles = not arrived
        return step, rise

    def _by_inner_products(
        self, model: Model, rows: LinearOperator, weight: Array
    ) -> tuple[Array, float]:
        """(I + XᵀDX)⁻¹ by way of (D⁻¹ + XXᵀ)⁻¹; the offset is eliminated last."""
        if len(weight) == 0:
            rise = -model.offset_gradient / model.bend if model.bend > 0 else 0.0
            return -model.gradient, rise
        rows.tally.operations += len(weight) ** 3 / 3.0
        matrix = rows.inner_products(self.settings.most_rows).T
        np.einsum("ii->i", matrix)[:] += 1.0 / weight
        factor = cholesky(np.asfortranarray(matrix))
        # δ = D(Xp + rise) solves (D⁻¹ + XXᵀ) δ = −Xg + rise·1, and p = −g − Xᵀδ
        plain = cholesky_solve(factor, -rows.values(model.gradient))
        rise = 0.0
        if model.border:
            flat = cholesky_solve(factor, np.ones(len(weight)))
            total = model.bend + float(flat.sum())
            rise = -(model.offset_gradient + float(plain.sum())) / total
            plain = plain + rise * flat
        return -model.gradient - rows.function(plain), rise

    def _by_products(
        self,
        model: Model,
        rows: LinearOperator,
        weight: Array,
        most: int,
        wanted: float,
        stop: Callable[[], bool],
    ) -> tuple[Array, float, bool]:
        """By conjugate gradients; b follows every move of w to its best, as between the steps."""
        curvature = model.bend + float(weight.sum())
        border = model.border and curvature > 0
        diagonal = 1.0 + rows.column_squares(weight)
        right = -model.gradient
        if border:
            tilt = rows.function(weight)
            diagonal = np.maximum(diagonal - tilt * (tilt / curvature), 1.0)
            right += tilt * (model.offset_gradient / curvature)

        def product(v: Array) -> Array:
            inner = rows.values(v)
            if border:
                inner -= float(weight @ inner) / curvature
            inner *= weight
            out = rows.function(inner)
            out += v
            return out

        target = max(self.settings.reduction**2 * float(right @ right), 0.5 * wanted)
        step, arrived = conjugate_gradients(
            product,
            right,
            lambda residual: residual / diagonal,
            lambda residual, _: float(residual @ residual) <= target or stop(),
            most,
        )
        if not border:
            return step, 0.0, arrived
        return step, -(model.offset_gradient + float(tilt @ step)) / curvature, arrived
