"""Factors F of small order with FFᵀ ≈ K, for the np×np Gram matrix K as an operator.

Their columns are those of a pivoted Cholesky factor, as many as matter or as the equations may
cost. For k·B they are columns of a factor of B, each with as many columns of a factor of k as
matter for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...operators import MatrixOperator, SeparableKernel
from ...threads import share_out, thread_count
from .settings import Equations

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: the share of a diagonal entry that is but rounding
ROUNDING = 1e-15
#: candidates for columns that are looked at together, at most; they follow the first of them as
#: long as what is left of them is this share of what was left of it
MOST_TOGETHER = 32
FAR = 0.2
#: multiply-adds between two moments at which the work may be ended
PIECE = 1 << 30


class Factor(Protocol):
    """F with FFᵀ ≈ K, (n·p, m), and what it leaves of the diagonal blocks."""

    order: int
    #: K(xᵢ, xᵢ) − (FFᵀ)ᵢᵢ, (n, p, p), None where that is rounding
    left: Array | None

    def apply(self, w: Array) -> Array: ...

    def adjoint(self, v: Array) -> Array: ...

    def weighted(self, inverse: Array, pause: Callable[[], None]) -> Array:
        """Fᵀ blockdiag(inverse) F; ``pause()`` may end the work."""
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

    #: multiply-adds of a product from which on it is shared out to threads, and entries that a sum
    #: reads: some two milliseconds
    shared: ClassVar[float] = 1e8
    shared_entries: ClassVar[float] = 2e6

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
        mapped = np.empty((len(self.pieces), len(self.pieces[0])))

        def column(a: int, piece: Array, at: slice) -> None:
            np.matmul(piece, w[at], out=mapped[a])

        self._by_pieces(column)
        return np.asarray(mapped.T @ self.M.T)

    def adjoint(self, v: Array) -> Array:
        mixed = np.ascontiguousarray((v @ self.M).T)
        out = np.empty(self.order)

        def part(a: int, piece: Array, at: slice) -> None:
            np.matmul(mixed[a], piece, out=out[at])

        self._by_pieces(part)
        return out

    def _by_pieces(self, work: Callable[[int, Array, slice], None]) -> None:
        """``work`` on each of the pieces, in threads where they are long."""
        parts = self._parts()

        def one(a: int, halted: Callable[[], bool]) -> None:
            work(a, *parts[a])

        entries = float(len(self.pieces[0])) * self.order
        workers = thread_count() if entries > self.shared_entries else 1
        share_out(one, range(len(parts))[::-1], workers)  # the longest are last

    def weighted(self, inverse: Array, pause: Callable[[], None]) -> Array:
        small = np.ascontiguousarray((self.M.T @ inverse @ self.M).transpose(1, 2, 0))
        out = np.empty((self.order, self.order), order="F")
        parts = self._parts()

        def block(pair: tuple[int, int], halted: Callable[[], bool]) -> None:
            (first, rows), (second, columns) = parts[pair[0]], parts[pair[1]]
            product = _product_in_pieces(first, small[pair], second, pause)
            out[rows, columns] = product
            out[columns, rows] = product.T

        pairs = [(a, b) for a in range(len(parts)) for b in range(a + 1)]
        # the longest first: nobody waits for one of these at the end
        pairs.sort(key=lambda pair: -parts[pair[0]][0].shape[1] * parts[pair[1]][0].shape[1])
        work = float(len(self.pieces[0])) * self.order**2
        share_out(block, pairs, thread_count() if work > self.shared else 1)
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

    def weighted(self, inverse: Array, pause: Callable[[], None]) -> Array:
        n, p, m = self.F.shape
        out = np.zeros((m, m))
        step = max(1, PIECE // max(p * m * m, 1))
        for start in range(0, n, step):
            pause()
            part = self.F[start : start + step]
            right = (inverse[start : start + step] @ part).reshape(-1, m)
            out += part.reshape(-1, m).T @ right
        return out

    def cross(self, inverse: Array) -> Array:
        return np.einsum("ikm,ikj->mj", self.F, inverse)


def _product_in_pieces(
    first: Array, weights: Array, second: Array, pause: Callable[[], None]
) -> Array:
    """firstᵀ diag(weights) second."""
    shape = first.shape[1], second.shape[1]
    out = np.zeros(shape)
    step = max(1, PIECE // max(shape[0] * shape[1], 1))
    for start in range(0, len(first), step):
        pause()
        rows = slice(start, start + step)
        out += (first[rows] * weights[rows, None]).T @ second[rows]
    return out


def factor_of(operator: MatrixOperator, equations: Equations) -> Factor | None:
    """A factor of small order, kept with the matrix for the problems that share it.

    It is exact where that is cheaper than the matrix itself, else truncated; None for a general
    kernel whose matrix may be written out.
    """
    if equations not in operator.kept:
        if isinstance(operator, SeparableKernel):
            operator.kept[equations] = _kronecker(operator, equations)
        else:
            operator.kept[equations] = _plain(operator, equations)
    found: Factor | None = operator.kept[equations]
    return found


def of_small_rank(operator: MatrixOperator, equations: Equations, most: int) -> bool:
    """Whether K of k ⊗ B has at most so many columns that matter."""
    if not isinstance(operator, SeparableKernel):
        return False
    diagonal = np.diagonal(operator.K).copy()
    rows = operator.K.__getitem__
    _, left = pivoted_cholesky(rows, diagonal, most, equations.exact, operator.pause)
    return bool(left.sum() <= equations.exact * diagonal.sum())


def largest_rank(operator: MatrixOperator, equations: Equations) -> int:
    """The most columns of a pivoted Cholesky factor that are looked for."""
    n, p = operator.shape
    if isinstance(operator, SeparableKernel):
        affordable = int(np.sqrt(equations.reduced_work(n, p) / n))
        return min(n, affordable, _most_columns(n, operator.room))
    dense = n * p <= equations.dense
    rank = n * p // 2 if dense else int(np.sqrt(equations.work(n, p) / (n * p)))
    return min(rank, n * p, _most_columns(n * p, operator.room))


def _plain(operator: MatrixOperator, equations: Equations) -> PlainFactor | None:
    """As many columns as matter, or as a step may take; None where K itself is cheaper."""
    n, p = operator.shape
    dense = n * p <= equations.dense
    index = np.arange(p)
    diagonal = operator.diagonal
    F, rest = pivoted_cholesky(
        lambda some: np.stack([operator.column(at // p, at % p).ravel() for at in some.tolist()]),
        np.ascontiguousarray(diagonal[:, index, index]).ravel(),
        largest_rank(operator, equations),
        equations.exact,
        operator.pause,
    )
    shaped = np.ascontiguousarray(F.reshape(n, p, -1))
    if rest.sum() <= equations.exact * np.einsum("ijj->", diagonal):
        return PlainFactor(shaped, None)
    if dense:
        return None
    left = np.zeros((n, p, p))
    left[:, index, index] = rest.reshape(n, p)
    return PlainFactor(shaped, left)


def _kronecker(operator: SeparableKernel, equations: Equations) -> KroneckerFactor:
    """As many columns as matter, or as a step may take."""
    n, p = operator.shape
    limit, most = equations.reduced_work(n, p), largest_rank(operator, equations)
    M = operator.output_factor
    diagonal = np.diagonal(operator.K).copy()
    weights = np.square(M).sum(axis=0)
    floor = equations.exact * float(diagonal.sum()) * float(weights.sum())

    def hopeless(columns: int, left: float) -> bool:
        # every eigenvector of B that this does not serve takes more columns than there are
        if _alike_work(n, columns, 1) <= limit:
            return False
        longer = int((left * weights > floor / len(weights)).sum())
        return _alike_work(n, columns, longer) > limit

    L, _ = pivoted_cholesky(
        operator.K.__getitem__, diagonal, most, equations.exact, operator.pause, hopeless
    )
    ranks = _Ranks(L, M, diagonal, operator.room)
    all_that_matter = ranks.leaving(floor / len(weights))
    if ranks.rest <= 2.0 * floor and ranks.work(all_that_matter) <= limit:
        return KroneckerFactor(L, M, all_that_matter, None)
    kept = ranks.within(limit, floor / len(weights))
    left = np.zeros((n, p, p))
    for a, r in enumerate(kept):
        rest = np.maximum(diagonal - np.square(L[:, :r]).sum(axis=1), 0.0)
        left += rest[:, None, None] * np.outer(M[:, a], M[:, a])
    return KroneckerFactor(L, M, kept, left)


class _Ranks:
    """How many columns of L go with each eigenvector of B, and what they leave and cost."""

    def __init__(self, L: Array, M: Array, diagonal: Array, room: float) -> None:
        self.n, self.columns = L.shape
        self.room = room
        #: the eigenvalues of B
        self.weights = np.square(M).sum(axis=0)
        taken = np.concatenate([[0.0], np.cumsum(np.square(L).sum(axis=0))])
        #: what the first r columns of L leave of K's trace
        self.traces = np.maximum(diagonal.sum() - taken, 0.0)

    @property
    def rest(self) -> float:
        """What all columns leave of the trace."""
        return float(self.traces[-1]) * float(self.weights.sum())

    def leaving(self, level: float) -> list[int]:
        """The fewest columns that leave at most ``level`` for each eigenvalue, or all."""
        ends = np.append(self.traces, 0.0)
        return [min(int(np.argmax(ends * w <= level)), self.columns) for w in self.weights]

    def work(self, ranks: list[int]) -> float:
        """Operations for the equations, infinite where they do not fit."""
        if _factor_bytes(self.n, sum(ranks)) > self.room:
            return np.inf
        return _work(self.n, ranks)

    def within(self, limit: float, floor: float) -> list[int]:
        """The most columns whose equations cost at most ``limit``, one at least."""
        low = np.log(max(floor, 1e-300))
        high = np.log(float(self.traces[0] * self.weights.max()) + 1e-300)
        for _ in range(40):
            middle = 0.5 * (low + high)
            if self.work(self.leaving(np.exp(middle))) > limit:
                low = middle
            else:
                high = middle
        ranks = self.leaving(np.exp(high))
        first = int(self.weights.argmax())
        ranks[first] = max(ranks[first], 1)
        return ranks


def _work(n: int, ranks: list[int]) -> float:
    """Operations to form and to factorise reduced equations."""
    sums = np.cumsum([0, *ranks])
    return n * float(np.dot(ranks, sums[1:])) * 2.0 + float(sums[-1]) ** 3 / 3.0


def _alike_work(n: int, rank: int, count: int) -> float:
    """The same for so many equal ranks."""
    return float(n * rank**2 * count * (count + 1)) + float(count * rank) ** 3 / 3.0


def _factor_bytes(rows: int, columns: int) -> float:
    """Memory of a factor with its copies, and of the reduced equations with theirs."""
    return 8.0 * (4.0 * rows * columns + 3.0 * columns * columns)


def _most_columns(rows: int, room: float) -> int:
    """How many columns fit, one at least."""
    if not np.isfinite(room):
        return rows
    # 4·rows·m + 3·m² = room / 8
    return max(1, int((np.sqrt(16.0 * rows**2 + 1.5 * room) - 4.0 * rows) / 6.0))


def pivoted_cholesky(
    rows: Callable[[Index], Array],
    diagonal: Array,
    rank: int,
    exact: float,
    pause: Callable[[], None] = lambda: None,
    hopeless: Callable[[int, float], bool] = lambda columns, left: False,
) -> tuple[Array, Array]:
    """L (n, r) with LLᵀ ≈ A, r ≤ rank, and the diagonal of what is left.

    Columns are added for the largest entries left, until the rest is a share ``exact`` of the
    trace. Some candidates are looked at together, since a product of matrices takes a fraction of
    as many with vectors; those that are far enough from each other become columns.
    ``rows(index)`` gives rows of A, and ``pause()`` may end the work between two calls. It also
    ends where ``hopeless`` says so of the columns so far and of the trace they leave. The cost is
    that of some r rows and n·r² operations.
    """
    n, whole = len(diagonal), float(diagonal.sum())
    left, least = diagonal.copy(), ROUNDING * diagonal
    columns = np.empty((rank, n))  # touched only as far as columns come
    r, together = 0, 1
    while r < rank and left.sum() > exact * whole:
        pause()
        if hopeless(r, float(left.sum())):
            break
        count = min(together, rank - r, n)
        candidates = _largest(left, count)
        first, start = float(left[candidates].max()), r
        fresh = rows(candidates) - columns[:r, candidates].T @ columns[:r]
        while r < rank:
            place = int(left[candidates].argmax())
            pivot = int(candidates[place])
            near = r > start and left[pivot] < FAR * first
            if near or left[pivot] <= least[pivot]:
                break
            column = fresh[place] - columns[start:r, pivot] @ columns[start:r]
            column /= np.sqrt(left[pivot])
            columns[r] = column
            left -= column * column
            np.maximum(left, 0.0, out=left)
            left[pivot] = 0.0
            r += 1
        if r == start:  # the largest is but rounding
            break
        if r - start == count:
            together = min(2 * count, MOST_TOGETHER)
        elif 2 * (r - start) <= count:
            together = max(count // 2, 1)
    return np.ascontiguousarray(columns[:r].T), left


def _largest(values: Array, count: int) -> Index:
    """Where the largest are, in no order."""
    if count == 1:
        return np.array([values.argmax()])
    return np.argpartition(values, len(values) - count)[len(values) - count :]
