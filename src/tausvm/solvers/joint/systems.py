"""Newton's equations of the joint problem.

    (K + blockdiag Dᵢ) dα + 1·dbᵀ = R,     Σᵢ dαᵢ = missing      [without offsets: no db]

K is the np×np Gram matrix as an operator. Few unknowns: it is written out and factorised.
Small rank: K = FFᵀ turns the equations into ones of the order of F's rank (that of k times that
of B), where the offsets are columns more. Else conjugate gradients with the exact products, and
the cheapest preconditioner that serves (:mod:`.preconditioners`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...operators import MatrixOperator, SeparableKernel
from ..linalg import LinAlgError, cholesky_solve, conjugate_gradients, lifted_cholesky
from .cones import Blocks
from .factors import Factor, factor_of
from .preconditioners import Directions, OutputWise, Preconditioner, Truncated
from .settings import Equations

Array = NDArray[np.float64]

#: how many sets of p×p blocks, and of vectors (n, p), the method holds at a time
BLOCKS, VECTORS = 6, 40


class System(ABC):
    """Newton's equations, set up anew for every set of blocks."""

    #: K, None for K = 0
    operator: MatrixOperator | None
    #: what a solution may leave of the right side, as a share of it
    accuracy: float

    def __init__(self, equations: Equations) -> None:
        self.equations, self.accuracy = equations, equations.residual

    @abstractmethod
    def set_up(self, blocks: Blocks) -> None:
        """Factorise for these blocks."""

    @abstractmethod
    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """dα and db for a right side (n, p) and a sum (p,)."""


class BlockSystem(System):
    """Without a kernel: equations for db alone, with offsets."""

    operator = None

    def set_up(self, blocks: Blocks) -> None:
        self.inverse = blocks.inverses()
        self.corner = lifted_cholesky(self.inverse.sum(axis=0).T, self.equations.lift)

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        pushed = _times(self.inverse, right)
        db = cholesky_solve(self.corner, pushed.sum(axis=0) - missing)
        return _times(self.inverse, right - db), db


class DenseSystem(System):
    """The matrix written out, for few unknowns."""

    def __init__(self, operator: MatrixOperator, offset: bool, equations: Equations) -> None:
        super().__init__(equations)
        self.operator: MatrixOperator = operator
        self.offset = offset
        n, p = operator.shape
        if isinstance(operator, SeparableKernel):
            whole = operator.K * operator.B if p == 1 else np.kron(operator.K, operator.B)
        else:
            whole = np.empty((n * p, n * p))
            for i in range(n):
                operator.pause()
                for k in range(p):
                    whole[i * p + k] = operator.column(i, k).ravel()
        self.whole, self.room = whole, np.empty_like(whole)
        self.sums = np.tile(np.eye(p), (n, 1)) if offset else np.zeros((n * p, 0))

    def set_up(self, blocks: Blocks) -> None:
        self.operator.pause()
        n, p = self.operator.shape
        self.blocks = blocks.matrices()
        np.copyto(self.room, self.whole)
        index = np.arange(n)
        self.room.reshape(n, p, n, p)[index, :, index, :] += self.blocks
        self.factor = lifted_cholesky(self.room.T, self.equations.lift)
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
        if self.equations.refined:
            own = self.whole @ x + _times(self.blocks, x.reshape(right.shape)).ravel()
            left = flat - own - self.sums @ db
            dx, more = self._once(left, missing - self.sums.T @ x)
            x, db = x + dx, db + more
        return x.reshape(right.shape), db if self.offset else np.zeros(right.shape[1])


class FactorSystem(System):
    """Reduced equations of F's order, with FFᵀ = K to rounding.

    With w = Fᵀdα the equations are (I + FᵀD⁻¹F)w + FᵀD⁻¹E db = FᵀD⁻¹R and
    EᵀD⁻¹F w + EᵀD⁻¹E db = EᵀD⁻¹R − missing, and dα = D⁻¹(R − Fw − E db).
    """

    def __init__(
        self, operator: MatrixOperator, factor: Factor, offset: bool, equations: Equations
    ) -> None:
        super().__init__(equations)
        self.operator: MatrixOperator = operator
        self.factor, self.offset = factor, offset

    def set_up(self, blocks: Blocks) -> None:
        m, p = self.factor.order, self.operator.shape[1]
        self.blocks = blocks.matrices()
        self.inverse = blocks.inverses()
        size = m + p if self.offset else m
        whole = np.empty((size, size), order="F")
        whole[:m, :m] = self.factor.weighted(self.inverse, self.operator.pause)
        np.einsum("ii->i", whole)[:m] += 1.0
        if self.offset:
            whole[m:, m:] = self.inverse.sum(axis=0)
            whole[:m, m:] = self.factor.cross(self.inverse)
            whole[m:, :m] = whole[:m, m:].T
        self.reduced = lifted_cholesky(whole, self.equations.lift)

    def near(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """The equations with FFᵀ in place of K."""
        m = self.factor.order
        pushed = _times(self.inverse, right)
        known = self.factor.adjoint(pushed)
        if self.offset:
            known = np.concatenate([known, pushed.sum(axis=0) - missing])
        unknown = cholesky_solve(self.reduced, known)
        db = unknown[m:] if self.offset else np.zeros(right.shape[1])
        return _times(self.inverse, right - self.factor.apply(unknown[:m]) - db), db

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x, db = self.near(right, missing)
        # once more, for what rounding left
        own = self.factor.apply(self.factor.adjoint(x)) + _times(self.blocks, x)
        dx, more = self.near(right - own - db, missing - x.sum(axis=0))
        return x + dx, db + more


class PreconditionedSystem(System):
    """Preconditioners in the order of what they cost, each until conjugate gradients take too long.

    The barriers stiffen from step to step, some entries of a row before others, so that a
    preconditioner that has become too rough stays so.
    """

    def __init__(
        self,
        operator: MatrixOperator,
        ladder: Sequence[Callable[[], Preconditioner]],
        offset: bool,
        equations: Equations,
    ) -> None:
        super().__init__(equations)
        self.operator: MatrixOperator = operator
        self.offset = offset
        #: those to come, the next one last
        self.left = list(ladder)[::-1]
        self.preconditioner = self.left.pop()()

    def set_up(self, blocks: Blocks) -> None:
        self.blocks = blocks.matrices()
        self._prepare()

    def _prepare(self) -> None:
        """Factorise, with the next preconditioner where rounding does not let this one."""
        while True:
            try:
                self.preconditioner.set_up(self.blocks)
                break
            except LinAlgError:
                if not self.left:
                    raise
                self.preconditioner = self.left.pop()()
        if self.offset:
            n, p = self.operator.shape
            every = np.broadcast_to(np.eye(p), (n, p, p))
            self.columns = self.preconditioner.apply(np.ascontiguousarray(every))
            self.corner = np.asarray(np.linalg.inv(self.columns.sum(axis=0)))

    def near(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """The equations with the preconditioner in place of K + D."""
        x = self.preconditioner.apply(right[:, :, None])[:, :, 0]
        if not self.offset:
            return x, np.zeros(right.shape[1])
        db: Array = self.corner @ (x.sum(axis=0) - missing)
        x = x - self.columns @ db
        # once more for what rounding left: a sum that creeps away keeps conjugate gradients from
        # ever arriving
        more: Array = self.corner @ (x.sum(axis=0) - missing)
        return x - self.columns @ more, db + more

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x: Array | None = None
        while True:
            steps = self.preconditioner.worth if self.left else self.equations.conjugate_steps
            x, db, arrived = self._attempt(right, missing, steps, x)
            if arrived or not self.left:
                return x, db
            self.preconditioner = self.left.pop()()
            self._prepare()

    def _times_matrix(self, x: Array) -> Array:
        """(K + blockdiag D)x."""
        self.operator.pause()
        return self.operator.product(x) + _times(self.blocks, x)

    def _attempt(
        self, right: Array, missing: Array, steps: int, start: Array | None
    ) -> tuple[Array, Array, bool]:
        """x and db after so many steps at most, and whether they will do."""
        if start is None:
            x, db = self.near(right, missing)
        else:
            x, db = start, np.zeros(right.shape[1])
        goal = self.accuracy * float(np.linalg.norm(right))
        more, lacking = np.zeros_like(db), missing - x.sum(axis=0)
        remainder = right - self._times_matrix(x) - db
        if start is None and float(np.linalg.norm(remainder)) <= goal:
            return x, db, True

        def precondition(residual: Array) -> Array:
            nonlocal more, lacking
            z, more = self.near(residual, lacking)
            lacking = np.zeros_like(lacking)
            return z

        def enough(residual: Array, energy: float) -> bool:
            return float(np.linalg.norm(residual - more)) <= goal

        # on Σ dx = 0 the offsets drop out of all products
        dx, arrived = conjugate_gradients(
            self._times_matrix, remainder, precondition, enough, steps
        )
        return x + dx, db + more, arrived


def system_bytes(n: int, p: int, equations: Equations) -> float:
    """Memory of the blocks, and of the matrix where it is written out."""
    written_out = 3 * min(n * p, equations.dense) ** 2
    return 8.0 * (BLOCKS * n * p * p + VECTORS * n * p + written_out)


def system_for(operator: MatrixOperator, offset: bool, equations: Equations) -> System:
    """The cheapest way to solve Newton's equations with this kernel."""
    n, p = operator.shape
    if n * p <= equations.few:
        return DenseSystem(operator, offset, equations)
    factor = factor_of(operator, equations)
    if factor is not None and factor.left is None:
        return FactorSystem(operator, factor, offset, equations)
    if factor is None or n * p <= equations.plain:
        return DenseSystem(operator, offset, equations)
    ladder: list[Callable[[], Preconditioner]] = [lambda: Truncated(operator, equations, factor)]
    if isinstance(operator, SeparableKernel):
        if OutputWise.work(n, p) <= equations.work(n, p):
            ladder.insert(0, lambda: OutputWise(operator, equations))
        if n * p <= equations.preconditioned:
            ladder.append(lambda: Directions(operator, equations, np.float32))
            ladder.append(lambda: Directions(operator, equations, np.float64))
    return PreconditionedSystem(operator, ladder, offset, equations)


def _times(blocks: Array, v: Array) -> Array:
    """blocksᵢ vᵢ."""
    return np.asarray((blocks @ v[:, :, None])[:, :, 0])
