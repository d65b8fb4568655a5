"""Newton's equations of the joint problem.

    (K + blockdiag Dᵢ) dα + 1·dbᵀ = R,     Σᵢ dαᵢ = missing      [without offsets: no db]

K is the np×np Gram matrix as an operator. Few unknowns: it is written out and factorised.
Many: K ≈ FFᵀ turns the equations into ones of the order of F's rank (that of k times that
of B), where the offsets are columns more; conjugate gradients with the exact products correct
what FFᵀ leaves out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...kernels.matrix import MatrixGram, SeparableGram
from ..linalg import LinAlgError, cholesky, cholesky_solve
from .cones import Blocks

Array = NDArray[np.float64]

#: up to this many unknowns the matrix is written out without looking at its rank
FEW = 300
#: up to this many it is if its rank is not small
DENSE = 2400
#: share of the trace that a factor may leave out and still count as exact
EXACT = 1e-13
#: what one set of truncated equations may take: so many exact products, within these bounds of
#: floating-point operations
PRODUCTS = 300
LEAST_WORK = 1e9
MOST_WORK = 2e10
#: conjugate gradients: relative residual, and bound on their number
RESIDUAL = 1e-6
CONJUGATE = 200


class Factor(Protocol):
    """F with FFᵀ ≈ K, (n·p, m), and what it leaves of the diagonal blocks."""

    order: int
    #: K(xᵢ, xᵢ) − (FFᵀ)ᵢᵢ, (n, p, p), None where that is rounding
    left: Array | None

    def apply(self, w: Array) -> Array: ...

    def adjoint(self, v: Array) -> Array: ...

    def weighted(self, inverse: Array) -> Array:
        """Fᵀ blockdiag(inverse) F."""
        ...

    def cross(self, inverse: Array) -> Array:
        """Fᵀ blockdiag(inverse) E, (m, p), with E the columns of the offsets."""
        ...


class KroneckerFactor:
    """F for k·B: the columns of L ⊗ M, LLᵀ ≈ the matrix of k, MMᵀ = B, that matter.

    The columns of M are scaled eigenvectors of B. The first columns of L, a pivoted Cholesky
    factor, are the best start for any rank: column a of M goes with the first ``ranks[a]`` of
    them, many for the large eigenvalues of B and few for the small ones.
    """

    def __init__(self, L: Array, M: Array, ranks: Sequence[int], left: Array | None) -> None:
        self.M, self.left = M, left
        self.pieces = [np.ascontiguousarray(L[:, :r]) for r in ranks]
        self.ends = np.cumsum(ranks)
        self.order = int(self.ends[-1])

    def _parts(self) -> list[tuple[Array, slice]]:
        starts = self.ends - [piece.shape[1] for piece in self.pieces]
        return [
            (piece, slice(start, end))
            for piece, start, end in zip(self.pieces, starts, self.ends, strict=True)
        ]

    def apply(self, w: Array) -> Array:
        mapped = np.stack([piece @ w[at] for piece, at in self._parts()], axis=1)
        return np.asarray(mapped @ self.M.T)

    def adjoint(self, v: Array) -> Array:
        mixed = np.ascontiguousarray((v @ self.M).T)
        return np.concatenate([row @ piece for row, piece in zip(mixed, self.pieces, strict=True)])

    def weighted(self, inverse: Array) -> Array:
        small = np.ascontiguousarray((self.M.T @ inverse @ self.M).transpose(1, 2, 0))
        out = np.empty((self.order, self.order), order="F")
        parts = self._parts()
        for a, (first, rows) in enumerate(parts):
            scaled = np.empty_like(first)
            for b in range(a + 1):
                second, columns = parts[b]
                np.multiply(small[a, b, :, None], first, out=scaled)
                block = scaled.T @ second
                out[rows, columns] = block
                out[columns, rows] = block.T
        return out

    def cross(self, inverse: Array) -> Array:
        mixed = self.M.T @ inverse
        return np.vstack([piece.T @ mixed[:, a] for a, piece in enumerate(self.pieces)])


class PlainFactor:
    """F of a general matrix-valued kernel, (n, p, m)."""

    def __init__(self, F: Array, left: Array | None) -> None:
        self.F, self.left = F, left
        self.order = F.shape[2]
        self._flat = F.reshape(-1, self.order)

    def apply(self, w: Array) -> Array:
        return np.asarray(self.F @ w)

    def adjoint(self, v: Array) -> Array:
        return np.asarray(self._flat.T @ v.ravel())

    def weighted(self, inverse: Array) -> Array:
        return np.asarray(self._flat.T @ (inverse @ self.F).reshape(self._flat.shape))

    def cross(self, inverse: Array) -> Array:
        return np.einsum("ikm,ikj->mj", self.F, inverse)


class System(ABC):
    """Newton's equations, set up anew for every set of blocks."""

    def __init__(self, gram: MatrixGram | None, shape: tuple[int, int], offset: bool) -> None:
        self.gram, self.shape, self.offset = gram, shape, offset

    @abstractmethod
    def set_up(self, blocks: Blocks) -> None:
        """Factorise for these blocks."""

    @abstractmethod
    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        """dα and db for a right side (n, p) and a sum (p,)."""


class DenseSystem(System):
    """The matrix written out, for few unknowns."""

    def __init__(self, gram: MatrixGram, offset: bool) -> None:
        super().__init__(gram, gram.shape, offset)
        n, p = gram.shape
        if isinstance(gram, SeparableGram):
            whole = np.kron(gram.K, gram.B)
        else:
            whole = np.empty((n * p, n * p))
            for i in range(n):
                for k in range(p):
                    whole[i * p + k] = gram.column(i, k).ravel()
        self.whole = whole
        self.sums = np.tile(np.eye(p), (n, 1)) if offset else np.zeros((n * p, 0))

    def set_up(self, blocks: Blocks) -> None:
        n, p = self.shape
        matrix = self.whole.copy()
        index = np.arange(n)
        matrix.reshape(n, p, n, p)[index, :, index, :] += blocks.matrices()
        self.matrix = matrix
        self.factor = _factorise(matrix)
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
        gram: MatrixGram | None,
        factor: Factor | None,
        shape: tuple[int, int],
        offset: bool,
    ) -> None:
        super().__init__(gram, shape, offset)
        self.factor = factor
        self.m = 0 if factor is None else factor.order

    def set_up(self, blocks: Blocks) -> None:
        p = self.shape[1]
        self.exact = self.factor is None or self.factor.left is None
        if self.gram is not None:
            self.blocks = blocks.matrices()
        left = None if self.factor is None else self.factor.left
        self.inverse: Array = blocks.inverses()
        if left is not None:
            self.inverse = np.asarray(np.linalg.inv(self.blocks + left), dtype=np.float64)
        columns = p if self.offset else 0
        whole = np.zeros((self.m + columns, self.m + columns), order="F")
        if self.factor is not None:
            whole[: self.m, : self.m] = self.factor.weighted(self.inverse)
            np.einsum("ii->i", whole)[: self.m] += 1.0
        if self.offset:
            whole[self.m :, self.m :] = self.inverse.sum(axis=0)
            if self.factor is not None:
                cross = self.factor.cross(self.inverse)
                whole[: self.m, self.m :] = cross
                whole[self.m :, : self.m] = cross.T
        self.reduced = _factorise(whole) if len(whole) else whole

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
        assert self.gram is not None
        return right - self.gram.product(x) - _times(self.blocks, x) - db

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x, db = self._reduced(right, missing)
        if self.gram is None:
            return x, db
        # conjugate gradients on Σ dx = 0, where the offsets drop out of all products
        none = np.zeros(self.shape[1])
        remainder = self._remainder(right, x, db)
        goal = RESIDUAL * float(np.linalg.norm(right))
        z, more = self._reduced(remainder, missing - x.sum(axis=0) if self.offset else none)
        direction, rho = z, float(np.vdot(remainder, z))
        x_first, db_first = x, db
        if self.exact:
            # one correction, kept if it helped
            after = self._remainder(right, x + z, db + more)
            if np.linalg.norm(after) < np.linalg.norm(remainder):
                return x + z, db + more
            return x_first, db_first
        for _ in range(CONJUGATE):
            if float(np.linalg.norm(remainder - (more if self.offset else 0.0))) <= goal:
                break
            assert self.gram is not None
            image = self.gram.product(direction) + _times(self.blocks, direction)
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


def system_for(gram: MatrixGram, offset: bool) -> System:
    """The cheapest way to solve Newton's equations with this kernel."""
    n, p = gram.shape
    if n * p <= FEW:
        return DenseSystem(gram, offset)
    factor = factor_of(gram, dense=n * p <= DENSE)
    if factor is None:
        return DenseSystem(gram, offset)
    return FactorSystem(gram, factor, gram.shape, offset)


def factor_of(gram: MatrixGram, dense: bool) -> Factor | None:
    """A factor of small order, kept with the Gram matrix for the problems that share it.

    With ``dense``, None where its order is not small enough to beat the matrix itself.
    """
    kept: dict[bool, Factor | None] = gram.__dict__.setdefault("_joint_factors", {})
    if dense not in kept:
        kept[dense] = _factor(gram, dense)
    return kept[dense]


def _factor(gram: MatrixGram, dense: bool) -> Factor | None:
    n, p = gram.shape
    if isinstance(gram, SeparableGram):
        return _kronecker(gram, dense)
    index = np.arange(p)
    diagonal = gram.diagonal
    rank = n * p // 2 if dense else int(np.sqrt(_budget(n, p) / (n * p)))
    F, rest = pivoted_cholesky(
        lambda at: gram.column(at // p, at % p).ravel(),
        np.ascontiguousarray(diagonal[:, index, index]).ravel(),
        min(rank, n * p),
    )
    shaped = np.ascontiguousarray(F.reshape(n, p, -1))
    if rest.sum() <= EXACT * np.einsum("ijj->", diagonal):
        return PlainFactor(shaped, None)
    if dense:
        return None
    left = np.zeros((n, p, p))
    left[:, index, index] = rest.reshape(n, p)
    return PlainFactor(shaped, left)


def _kronecker(gram: SeparableGram, dense: bool) -> KroneckerFactor | None:
    """All columns that matter, or as many as a step may take; None where K itself is cheaper."""
    n, p = gram.shape
    M = gram.output_factor
    weights = np.square(M).sum(axis=0)
    limit = (n * p) ** 3 / 3.0 if dense else _budget(n, p)
    most = int(np.sqrt(limit / n))
    diagonal = np.diagonal(gram.K).copy()
    L, _ = pivoted_cholesky(gram.K.__getitem__, diagonal, min(n, most))
    # traces[r]: what the first r columns of L leave of K's trace
    traces = diagonal.sum() - np.concatenate([[0.0], np.cumsum(np.square(L).sum(axis=0))])
    traces = np.maximum(traces, 0.0)
    exact = EXACT * diagonal.sum() * float(weights.sum())

    def ranks_for(level: float) -> list[int]:
        """The fewest columns that leave at most ``level`` for each eigenvalue of B."""
        return [int(np.argmax(np.append(traces, 0.0) * w <= level)) for w in weights]

    def work(ranks: list[int]) -> float:
        sums = np.cumsum(ranks)
        return n * float(np.dot(ranks, sums)) * 2.0 + float(sums[-1]) ** 3 / 3.0

    floor = exact / len(weights)
    ranks = [min(r, L.shape[1]) for r in ranks_for(floor)]
    complete = float(traces[-1]) * float(weights.sum()) <= 2.0 * exact
    if complete and work(ranks) <= limit:
        return KroneckerFactor(L, M, ranks, None)
    if dense:
        return None
    low, high = np.log(max(floor, 1e-300)), np.log(float(traces[0] * weights.max()) + 1e-300)
    for _ in range(40):
        middle = 0.5 * (low + high)
        if work([min(r, L.shape[1]) for r in ranks_for(np.exp(middle))]) > limit:
            low = middle
        else:
            high = middle
    ranks = [min(r, L.shape[1]) for r in ranks_for(np.exp(high))]
    ranks[int(weights.argmax())] = max(ranks[int(weights.argmax())], 1)
    left = np.zeros((n, p, p))
    for a, r in enumerate(ranks):
        rest = np.maximum(diagonal - np.square(L[:, :r]).sum(axis=1), 0.0)
        left += rest[:, None, None] * np.outer(M[:, a], M[:, a])
    return KroneckerFactor(L, M, ranks, left)


def _budget(n: int, p: int) -> float:
    """Operations for one set of truncated equations: those of some hundred exact products."""
    return min(max(PRODUCTS * 2.0 * n * n * p, LEAST_WORK), MOST_WORK)


def pivoted_cholesky(
    row: Callable[[int], Array], diagonal: Array, rank: int
) -> tuple[Array, Array]:
    """L (n, r) with LLᵀ ≈ A, r ≤ rank, and the diagonal of what is left.

    Columns are added for the largest entry left, until the rest is rounding. ``row(i)`` gives
    row i of A. The cost is that of r rows and n·r² operations.
    """
    n = len(diagonal)
    whole = float(diagonal.sum())
    left = diagonal.copy()
    columns = np.empty((min(rank, 64), n))
    r = 0
    while r < rank and left.sum() > EXACT * whole:
        pivot = int(left.argmax())
        if left[pivot] <= 1e-15 * diagonal[pivot]:
            break
        if r == len(columns):
            columns = np.vstack([columns, np.empty((min(r, rank - r), n))])
        fresh = row(pivot) - columns[:r, pivot] @ columns[:r]
        fresh /= np.sqrt(left[pivot])
        columns[r] = fresh
        left -= fresh * fresh
        np.maximum(left, 0.0, out=left)
        left[pivot] = 0.0
        r += 1
    return np.ascontiguousarray(columns[:r].T), left


def _times(blocks: Array, v: Array) -> Array:
    """blocksᵢ vᵢ."""
    return np.asarray((blocks @ v[:, :, None])[:, :, 0])


def _factorise(matrix: NDArray[Any]) -> Array:
    """A Cholesky factor; rounding may have taken a positive definite matrix a hair below."""
    scale = np.abs(np.einsum("ii->i", matrix)).max(initial=0.0)
    if not np.isfinite(scale):
        raise LinAlgError("the barrier has overflowed")
    for lift in (0.0, 1e-15, 1e-13, 1e-11):
        lifted = np.array(matrix, order="F")
        np.einsum("ii->i", lifted)[:] += lift * scale
        try:
            return cholesky(lifted)
        except LinAlgError:
            continue
    raise LinAlgError("not positive definite")
