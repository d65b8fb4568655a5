"""Approximate inverses of k ⊗ B + blockdiag Dᵢ, for conjugate gradients with exact products.

========================  ===========================================================
:class:`OutputWise`       the eigenvectors of B as if all Dᵢ had them too: p matrices of order n
:class:`Truncated`        a factor of K of small order: one matrix of that order
:class:`Directions`       the directions of the Dᵢ that K reaches: one matrix, of their number
========================  ===========================================================

Matrices are scaled to a diagonal of 1 before they are factorised, so that curvatures of any size
may stand next to each other, and float32 serves while what it rounds is corrected in a few steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.cones import direction_matrix
from ...operators import MatrixOperator, SeparableKernel
from ..linalg import LinAlgError, cholesky, cholesky_solve, lifted_cholesky
from .factors import Factor
from .settings import Equations

Array = NDArray[np.float64]


class Preconditioner(ABC):
    """M near K + blockdiag D."""

    #: steps of conjugate gradients beyond which the next preconditioner is the cheaper one
    worth: int

    def __init__(self, operator: MatrixOperator, equations: Equations, dtype: Any) -> None:
        self.operator, self.equations, self.dtype = operator, equations, dtype
        #: what rounding took to be added to the diagonals of 1
        self.lift = 0.0

    def factorised(self, fill: Callable[[], Any]) -> Any:
        """The Cholesky factor of a matrix with a diagonal of 1, raised where rounding asks so."""
        while True:
            self.operator.pause()
            matrix = fill()
            np.einsum("ii->i", matrix)[:] += self.lift
            try:
                return cholesky(matrix)
            except LinAlgError:
                self.lift = max(10.0 * self.lift, 4.0 * float(np.finfo(self.dtype).eps))
                if not self.lift <= self.equations.most_lift:
                    raise

    @abstractmethod
    def set_up(self, blocks: Array) -> None:
        """Factorise M for blocks D, (n, p, p)."""

    @abstractmethod
    def apply(self, v: Array) -> Array:
        """M⁻¹v for v of shape (n, p, columns)."""


class OutputWise(Preconditioner):
    """λₐK + diag(vₐᵀDᵢvₐ) for each eigenvector vₐ of B with its eigenvalue λₐ.

    It is K + D where the vₐ are eigenvectors of the Dᵢ too, as they are while all levels of a row
    are about as stiff: so in the first steps, and with a wide ε up to the last.
    """

    def __init__(self, operator: SeparableKernel, equations: Equations) -> None:
        super().__init__(operator, equations, np.float32)
        self.diagonal = np.diagonal(operator.K)
        values, self.vectors = np.linalg.eigh(operator.B)
        self.values = np.maximum(values, 0.0)
        self.K = operator.K.astype(np.float32)
        n, p = operator.shape
        self.worth = equations.worth(equations.reduced_work(n, p), 4.0 * n * n * p)

    @staticmethod
    def work(n: int, p: int) -> float:
        """Operations to set it up."""
        return p * n**3 / 6.0

    def set_up(self, blocks: Array) -> None:
        V = self.vectors
        stiff = np.einsum("ika,ka->ia", blocks @ V, V)
        self.scales = 1.0 / np.sqrt(stiff + self.diagonal[:, None] * self.values)
        self.factors = [self.factorised(partial(self.matrix, a)) for a in range(len(V))]

    def matrix(self, a: int) -> Any:
        """That of eigenvector a, with a diagonal of 1."""
        scale = (self.scales[:, a] * np.sqrt(self.values[a])).astype(np.float32)
        matrix = self.K * scale
        matrix *= scale[:, None]
        np.einsum("ii->i", matrix)[:] = 1.0
        return matrix.T

    def apply(self, v: Array) -> Array:
        mixed = np.einsum("ka,ikc->aic", self.vectors, v)
        for a, factor in enumerate(self.factors):
            scale = self.scales[:, a, None]
            mixed[a] = scale * cholesky_solve(factor, (scale * mixed[a]).astype(np.float32))
        return np.einsum("ka,aic->ikc", self.vectors, mixed)


class Truncated(Preconditioner):
    """FFᵀ in place of K, with what it leaves of the diagonal blocks; M⁻¹ by Woodbury's formula."""

    def __init__(self, operator: MatrixOperator, equations: Equations, factor: Factor) -> None:
        super().__init__(operator, equations, np.float64)
        self.factor = factor
        n, p = operator.shape
        step = 2.0 * n * n * p + 4.0 * n * factor.order
        self.worth = equations.worth((n * p) ** 3 / 6.0, step)

    def set_up(self, blocks: Array) -> None:
        assert self.factor.left is not None  # an exact factor needs no conjugate gradients
        self.inverse = np.asarray(np.linalg.inv(blocks + self.factor.left))
        whole = np.asfortranarray(self.factor.weighted(self.inverse, self.operator.pause))
        np.einsum("ii->i", whole)[:] += 1.0
        self.reduced = lifted_cholesky(whole, self.equations.lift)

    def apply(self, v: Array) -> Array:
        out = self.inverse @ v
        for c in range(v.shape[2]):
            inner = cholesky_solve(self.reduced, self.factor.adjoint(out[:, :, c]))
            out[:, :, c] -= (self.inverse @ self.factor.apply(inner)[:, :, None])[:, :, 0]
        return out


class Directions(Preconditioner):
    """K among the eigenvectors of the Dᵢ whose curvature it reaches, D alone for the others.

    In units of the root of D the matrix is I + X. A direction j with Xⱼⱼ at most ``reached`` is
    left to conjugate gradients: rows at 0 and entries at their bounds are, once the barriers have
    stiffened, so that the last steps are of the order of what is free.
    """

    def __init__(self, operator: SeparableKernel, equations: Equations, dtype: Any) -> None:
        super().__init__(operator, equations, dtype)
        self.K, self.B, self.diagonal = operator.K, operator.B, np.diagonal(operator.K)
        n, p = operator.shape
        self.worth = equations.worth((n * p) ** 3 / 6.0, 2.0 * n * n * p + 2.0 * (n * p) ** 2)

    def set_up(self, blocks: Array) -> None:
        stiffness, vectors = np.linalg.eigh(blocks)
        # direction j of row i in w[i, j], with wᵀDw = 1
        w = np.ascontiguousarray((vectors / np.sqrt(stiffness)[:, None, :]).transpose(0, 2, 1))
        mapped = w @ self.B
        size = self.diagonal[:, None] * np.einsum("ijk,ijk->ij", mapped, w)
        scale = 1.0 / np.sqrt(1.0 + size)
        self.w, self.mapped = w * scale[:, :, None], mapped * scale[:, :, None]
        self.at = np.flatnonzero(size.ravel() > self.equations.reached)
        self.factor = self.factorised(self.matrix)

    def matrix(self) -> Any:
        """The lower triangle among the directions that are kept, with a diagonal of 1."""
        m, p = len(self.at), self.w.shape[1]
        matrix = np.empty((m, m), dtype=self.dtype, order="F")
        left, right = (np.take(a.reshape(-1, p), self.at, axis=0) for a in (self.w, self.mapped))
        direction_matrix(self.K, self.at // p, left, right, matrix)
        return matrix

    def apply(self, v: Array) -> Array:
        known = self.w @ v
        flat = known.reshape(-1, v.shape[2])
        flat[self.at] = cholesky_solve(self.factor, flat[self.at].astype(self.dtype))
        return np.asarray(self.w.transpose(0, 2, 1) @ known)
