"""Newton's equations of the joint problem.

    (K + blockdiag Dᵢ) dα + 1·dbᵀ = R,     Σᵢ dαᵢ = missing      [without offsets: no db]

K is the np×np Gram matrix as an operator. Few unknowns: it is written out and factorised.
Many: K ≈ FFᵀ turns the equations into ones of the order of F's rank (that of k times that
of B), where the offsets are columns more; conjugate gradients with the exact products correct
what FFᵀ leaves out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...operators import MatrixOperator, SeparableKernel
from ..linalg import LinAlgError, cholesky, cholesky_solve
from .cones import Blocks
from .factors import Factor, factor_of
from .settings import Equations

Array = NDArray[np.float64]

#: how many sets of p×p blocks, and of vectors (n, p), the method holds at a time
BLOCKS, VECTORS = 6, 40


class System(ABC):
    """Newton's equations, set up anew for every set of blocks."""

    def __init__(
        self,
        operator: MatrixOperator | None,
        shape: tuple[int, int],
        offset: bool,
        equations: Equations,
    ) -> None:
        self.operator, self.shape, self.offset = operator, shape, offset
        self.equations = equations

    @abstractmethod
    def set_up(self, blocks: Blocks) -> None:
        """Factorise for these blocks."""

    @abstractmethod
    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """dα and db for a right side (n, p) and a sum (p,)."""


class DenseSystem(System):
    """The matrix written out, for few unknowns."""

    def __init__(self, operator: MatrixOperator, offset: bool, equations: Equations) -> None:
        super().__init__(operator, operator.shape, offset, equations)
        n, p = operator.shape
        if isinstance(operator, SeparableKernel):
            whole = np.kron(operator.K, operator.B)
        else:
            whole = np.empty((n * p, n * p))
            for i in range(n):
                operator.pause()
                for k in range(p):
                    whole[i * p + k] = operator.column(i, k).ravel()
        self.whole = whole
        self.sums = np.tile(np.eye(p), (n, 1)) if offset else np.zeros((n * p, 0))

    def set_up(self, blocks: Blocks) -> None:
        assert self.operator is not None
        self.operator.pause()
        n, p = self.shape
        matrix = self.whole.copy()
        index = np.arange(n)
        matrix.reshape(n, p, n, p)[index, :, index, :] += blocks.matrices()
        self.matrix = matrix
        self.factor = _factorise(matrix, self.equations.lifts)
        self.columns = cholesky_solve(self.factor, self.sums)
        self.corner = np.asarray(np.linalg.inv(self.sums.T @ self.columns))

    def _once(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x = cholesky_solve(self.factor, right)
        if not self.offset:
            return x, np.zeros(0)
        db: Array = self.corner @ (self.sums.T @ x - missing)
        return x - self.columns @ db, db

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        flat = right.ravel()
        missing = missing[: self.sums.shape[1]]
        x, db = self._once(flat, missing)
        dx, more = self._once(flat - self.matrix @ x - self.sums @ db, missing - self.sums.T @ x)
        return (x + dx).reshape(self.shape), db + more if self.offset else np.zeros(self.shape[1])


class FactorSystem(System):
    """Reduced equations of F's order; without a factor, K is zero and blocks are all there is.

    With w = Fᵀdα the equations are (I + FᵀD⁻¹F)w + FᵀD⁻¹E db = FᵀD⁻¹R and
    EᵀD⁻¹F w + EᵀD⁻¹E db = EᵀD⁻¹R − missing, and dα = D⁻¹(R − Fw − E db).
    """

    def __init__(
        self,
        operator: MatrixOperator | None,
        factor: Factor | None,
        shape: tuple[int, int],
        offset: bool,
        equations: Equations,
    ) -> None:
        super().__init__(operator, shape, offset, equations)
        self.factor = factor
        self.m = 0 if factor is None else factor.order

    def set_up(self, blocks: Blocks) -> None:
        p = self.shape[1]
        self.exact = self.factor is None or self.factor.left is None
        if self.operator is not None:
            self.blocks = blocks.matrices()
        left = None if self.factor is None else self.factor.left
        self.inverse: Array = blocks.inverses()
        if left is not None:
            self.inverse = np.asarray(np.linalg.inv(self.blocks + left), dtype=np.float64)
        columns = p if self.offset else 0
        whole = np.zeros((self.m + columns, self.m + columns), order="F")
        if self.factor is not None:
            assert self.operator is not None
            whole[: self.m, : self.m] = self.factor.weighted(self.inverse, self.operator.pause)
            np.einsum("ii->i", whole)[: self.m] += 1.0
        if self.offset:
            whole[self.m :, self.m :] = self.inverse.sum(axis=0)
            if self.factor is not None:
                cross = self.factor.cross(self.inverse)
                whole[: self.m, self.m :] = cross
                whole[self.m :, : self.m] = cross.T
        self.reduced = _factorise(whole, self.equations.lifts) if len(whole) else whole

    def _reduced(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """The equations with FFᵀ in place of K."""
        pushed = _times(self.inverse, right)
        pieces = []
        if self.factor is not None:
            pieces.append(self.factor.adjoint(pushed))
        if self.offset:
            pieces.append(pushed.sum(axis=0) - missing)
        db = np.zeros(self.shape[1])
        if not pieces:
            return pushed, db
        unknown = cholesky_solve(self.reduced, np.concatenate(pieces))
        rest = right
        if self.factor is not None:
            rest = rest - self.factor.apply(unknown[: self.m])
        if self.offset:
            db = unknown[self.m :]
            rest = rest - db
        return _times(self.inverse, rest), db

    def _remainder(self, right: Array, x: Array, db: Array) -> Array:
        assert self.operator is not None
        return right - self.operator.product(x) - _times(self.blocks, x) - db

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x, db = self._reduced(right, missing)
        if self.operator is None:
            return x, db
        # conjugate gradients on Σ dx = 0, where the offsets drop out of all products
        none = np.zeros(self.shape[1])
        remainder = self._remainder(right, x, db)
        goal = self.equations.residual * float(np.linalg.norm(right))
        z, more = self._reduced(remainder, missing - x.sum(axis=0) if self.offset else none)
        direction, rho = z, float(np.vdot(remainder, z))
        x_first, db_first = x, db
        if self.exact:
            # one correction, kept if it helped
            after = self._remainder(right, x + z, db + more)
            if np.linalg.norm(after) < np.linalg.norm(remainder):
                return x + z, db + more
            return x_first, db_first
        for _ in range(self.equations.conjugate_steps):
            if float(np.linalg.norm(remainder - (more if self.offset else 0.0))) <= goal:
                break
            self.operator.pause()
            image = self.operator.product(direction) + _times(self.blocks, direction)
            curvature = float(np.vdot(direction, image))
            if not curvature > 0 or not rho > 0:
                break
            length = rho / curvature
            x = x + length * direction
            remainder = remainder - length * image
            z, more = self._reduced(remainder, none)
            before, rho = rho, float(np.vdot(remainder, z))
            direction = z + (rho / before) * direction
        return x, db + more


def system_bytes(n: int, p: int, equations: Equations) -> float:
    """Memory of the blocks, and of the matrix where it is written out."""
    written_out = 3 * min(n * p, equations.dense) ** 2
    return 8.0 * (BLOCKS * n * p * p + VECTORS * n * p + written_out)


def system_for(operator: MatrixOperator, offset: bool, equations: Equations) -> System:
    """The cheapest way to solve Newton's equations with this kernel."""
    n, p = operator.shape
    if n * p <= equations.few:
        return DenseSystem(operator, offset, equations)
    factor = factor_of(operator, equations, dense=n * p <= equations.dense)
    if factor is None:
        return DenseSystem(operator, offset, equations)
    return FactorSystem(operator, factor, operator.shape, offset, equations)


def _times(blocks: Array, v: Array) -> Array:
    """blocksᵢ vᵢ."""
    return np.asarray((blocks @ v[:, :, None])[:, :, 0])


def _factorise(matrix: NDArray[Any], lifts: tuple[float, ...]) -> Array:
    """A Cholesky factor; rounding may have taken a positive definite matrix a hair below."""
    diagonal = np.abs(np.einsum("ii->i", matrix))
    if not np.isfinite(diagonal).all():
        raise LinAlgError("the barrier has overflowed")
    for lift in lifts:
        lifted = np.array(matrix, order="F")
        np.einsum("ii->i", lifted)[:] += lift * diagonal
        try:
            return cholesky(lifted)
        except LinAlgError:
            continue
    raise LinAlgError("not positive definite")
