"""All costs and levels of a squared loss at a time, by conjugate gradients on one matrix.

The duals of the points (C, τ) differ in their ridges alone,

    min_β  ½ βᵀKβ − yᵀβ + ½ Σ ridge±(C, τ)·βᵢ²/wᵢ      [Σβ = 0 when b is free]

so that their columns share every product with K, which is then a product of matrices:

    landmarks S give K ≈ L Lᵀ = U Λ Uᵀ
    repeat for all columns that are not done
        b ← minimiser of the primal;  gradient ← Kβ + b − y + ridge β
        z ← (U Λ Uᵀ + ridge)⁻¹ gradient                 (moved so that Σz = 0)
        direction ← −z + keep·direction                 (Polak–Ribière)
        β ← minimum of the dual along the direction
    until the duality gap is small enough

The ridge of a column takes two values whose ratio is that of τ and 1 − τ: with a good
approximation of K three to five steps do, whatever C. Where the low rank one is not good enough,
with large C, a Cholesky factor of K + ridge takes its place as soon as it costs less than the
steps that it saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._core.columns import advance, assess, turn
from ..solvers.linalg import LinAlgError, cholesky, cholesky_solve, solve_lower

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: landmarks: a share of the samples, within these numbers
SHARE = 0.15
FEWEST, MOST = 40, 300
#: what is added to the diagonal of the landmarks' matrix, against its rounding
JITTER = 1e-5
#: steps between two looks at which columns are worth going on with, where there are no factors
LOOK_STEPS = 20
#: factors are for matrices up to this order, and are due after so many steps at order 1000, and in
#: proportion to the order elsewhere
FACTORED = 3000
FACTOR_STEPS = 12
FACTOR_LEAST = 8
#: one factor serves ridges of this ratio
FACTOR_RATIO = 3.2
#: bytes of factors held at a time
FACTOR_BYTES = 32 << 20


@dataclass(frozen=True)
class LowRank:
    """U Λ Uᵀ ≈ K with UᵀU = I."""

    vectors: Floats
    values: Floats

    @classmethod
    def of(cls, matrix: Floats) -> LowRank:
        """The Nyström approximation from landmarks spread evenly over the rows."""
        n = len(matrix)
        rank = min(n, max(FEWEST, min(MOST, int(SHARE * n))))
        landmarks = np.linspace(0, n - 1, rank).astype(np.int64)
        rows = matrix[landmarks]
        small = rows[:, landmarks].astype(np.float64)
        small.flat[:: rank + 1] += JITTER * max(float(np.trace(small)) / rank, 1e-300)
        try:
            factor = cholesky(np.asfortranarray(small))
        except LinAlgError:  # not a kernel: a preconditioner is no more than a help
            return cls(np.zeros((n, 1), np.float32), np.zeros(1, np.float32))
        half = solve_lower(factor.astype(np.float32), rows)
        values, basis = np.linalg.eigh(half @ half.T)
        keep = values > 1e-6 * max(values[-1], 1e-30)
        values, basis = values[keep], basis[:, keep]
        return cls(np.ascontiguousarray(half.T @ (basis / np.sqrt(values))), values)


@dataclass
class Solution:
    """Where the columns ended; ``gap`` is absolute, and infinite for those left out."""

    beta: Floats
    intercept: Array
    gap: Array
    primal: Array


class Watch(Protocol):
    """Told of columns that end, by number, β and offset; asked whether others are worth it."""

    def ended(self, index: Index, beta: Floats, b: Array) -> None: ...

    def hopeless(self, index: Index) -> Mask: ...


def solve_columns(
    matrix: Floats,
    y: Array,
    weight: Array,
    ridges: Array,
    offset: bool,
    allowed: Array,
    share: float,
    first: Floats,
    most: int,
    watch: Watch | None,
    stop: Callable[[], bool],
) -> Solution:
    """Solve the columns, each to a duality gap of its own.

    Parameters
    ----------
    matrix : float32 array (n, n)
        K.
    y, weight : arrays (n,)
    ridges : array (columns, 2)
        The curvature of the dual's term for β > 0 and β < 0, at a weight of 1.
    offset : bool
    allowed : array (columns,)
    share : float
        A column ends at a duality gap of ``allowed`` and of ``share`` times its primal objective.
    first : float32 array (columns, n)
        Where to start.
    most : int
        Steps that a column may take.
    watch : Watch or None
        Asked now and then which columns to leave out.
    stop : callable
        Whether to leave at once.
    """
    solver = _Solver(matrix, y, weight, offset, allowed, share, watch, stop)
    count, n = len(ridges), len(y)
    found = Solution(
        np.zeros((count, n), np.float32),
        np.zeros(count),
        np.full(count, np.inf),
        np.full(count, np.inf),
    )
    middle = np.exp(np.log(ridges).mean(axis=1) - np.log(weight).mean())
    low_rank = LowRankInverse(LowRank.of(matrix), middle)
    rest = _Columns.start(ridges, first, matrix)
    if n > FACTORED:
        for _ in range(0, most, LOOK_STEPS):
            rest = rest.part(~solver.hopeless(rest.index))
            rest = solver.run(rest, low_rank, LOOK_STEPS, found)
        rest.note(np.ones(len(rest.index), dtype=bool), found)
        return found
    rest = solver.run(rest, low_rank, max(FACTOR_LEAST, FACTOR_STEPS * n // 1000), found)
    for part in _groups(middle, rest.index, max(1, FACTOR_BYTES // matrix.nbytes)):
        promising = [group[~solver.hopeless(group)] for group in part]
        promising = [group for group in promising if len(group)]
        if not promising or stop():
            break
        try:
            inverse: Inverse = FactorInverse(matrix, middle, promising)
        except LinAlgError:  # rounding has cost the matrix its definiteness
            inverse = low_rank
        chosen = np.isin(rest.index, np.concatenate(promising))
        left = solver.run(rest.part(chosen), inverse, most, found)
        left.note(np.ones(len(left.index), dtype=bool), found)
    return found


def _groups(ridges: Array, index: Index, at_once: int) -> Iterator[list[Index]]:
    """Columns in groups that one factor serves, C ascending, some of them at a time."""
    groups: list[list[int]] = []
    for column in sorted(index, key=lambda c: -ridges[c]):
        if groups and FACTOR_RATIO * ridges[column] >= ridges[groups[-1][0]]:
            groups[-1].append(column)
        else:
            groups.append([column])
    for start in range(0, len(groups), at_once):
        yield [np.array(group) for group in groups[start : start + at_once]]


class _Solver:
    """The loop over the columns that are not done."""

    def __init__(
        self,
        matrix: Floats,
        y: Array,
        weight: Array,
        offset: bool,
        allowed: Array,
        share: float,
        watch: Watch | None,
        stop: Callable[[], bool],
    ) -> None:
        self.matrix = matrix
        self.y, self.weight = y.astype(np.float32), weight.astype(np.float32)
        self.offset = offset
        self.allowed = allowed
        self.share = share
        self.watch = watch
        self.stop = stop

    def run(self, at: _Columns, inverse: Inverse, limit: int, found: Solution) -> _Columns:
        """Up to ``limit`` steps; the columns that they have not ended."""
        flat = np.zeros((len(at.index), 0), dtype=np.float32)
        if self.offset and len(at.index):
            flat = inverse.times(at.index, np.ones_like(at.beta))
        at.flat, at.flat_sum = flat, flat.sum(axis=1, dtype=np.float64)
        for step in range(limit + 1):
            assess(
                self.y, self.weight, at.ridges, at.beta, at.fitted, self.offset, at.b,
                at.gradient, at.gap, at.primal,
            )  # fmt: skip
            at = self._sorted_out(at, found)
            if len(at.index) == 0 or step == limit or self.stop():
                break
            z = inverse.times(at.index, at.gradient)
            turn(
                at.gradient, at.previous, z, at.flat, at.flat_sum, self.offset, step == 0,
                at.descent, at.direction,
            )  # fmt: skip
            np.matmul(at.direction, self.matrix, out=at.product)
            advance(
                self.y, self.weight, at.ridges, at.gradient, at.direction, at.product, at.beta,
                at.fitted, at.length,
            )  # fmt: skip
        return at

    def hopeless(self, index: Index) -> Mask:
        """Which columns are not worth going on with."""
        if self.watch is None:
            return np.zeros(len(index), dtype=bool)
        return self.watch.hopeless(index)

    def _sorted_out(self, at: _Columns, found: Solution) -> _Columns:
        """The columns that are not done."""
        enough = np.minimum(self.allowed[at.index], self.share * at.primal)
        done = (at.gap <= enough) | (at.length == 0) | ~np.isfinite(at.gap)
        if not done.any():
            return at
        at.note(done, found)
        if self.watch is not None:
            self.watch.ended(at.index[done], at.beta[done], at.b[done])
        return at.part(~done)


class Inverse(Protocol):
    """An approximation of (K + ridge)⁻¹ for the ridges of some columns."""

    def times(self, index: Index, vectors: Floats) -> Floats: ...


class LowRankInverse:
    """(U Λ Uᵀ + ridge)⁻¹."""

    def __init__(self, approximation: LowRank, ridges: Array) -> None:
        self.vectors = approximation.vectors
        values = approximation.values.astype(np.float64)
        self.shrink = (values / (values + ridges[:, None])).astype(np.float32)
        self.scale = (1.0 / ridges[:, None]).astype(np.float32)

    def times(self, index: Index, vectors: Floats) -> Floats:
        coordinates: Floats = (vectors @ self.vectors) * self.shrink[index]
        return self.scale[index] * (vectors - coordinates @ self.vectors.T)


class FactorInverse:
    """(K + ridge)⁻¹ for groups of columns with similar ridges, by Cholesky factors in float32."""

    def __init__(self, matrix: Floats, ridges: Array, groups: list[Index]) -> None:
        self.factors = []
        self.group = np.full(len(ridges), -1)
        for k, group in enumerate(groups):
            self.group[group] = k
            lifted = matrix.copy()
            ridge = np.exp(np.log(ridges[group]).mean())
            lifted.flat[:: len(matrix) + 1] += np.float32(ridge)
            self.factors.append(cholesky(lifted.T))

    def times(self, index: Index, vectors: Floats) -> Floats:
        solved = np.empty_like(vectors)
        for k, factor in enumerate(self.factors):
            chosen = np.flatnonzero(self.group[index] == k)
            if len(chosen):
                solved[chosen] = cholesky_solve(factor, vectors[chosen].T).T
        return solved


@dataclass
class _Columns:
    """The columns that are not done, one a row."""

    index: Index
    ridges: Array
    b: Array
    gap: Array
    primal: Array
    descent: Array
    length: Array
    beta: Floats
    fitted: Floats
    gradient: Floats
    previous: Floats
    direction: Floats
    product: Floats
    flat: Floats
    flat_sum: Array

    @classmethod
    def start(cls, ridges: Array, beta: Floats, matrix: Floats) -> _Columns:
        """All columns, from β."""
        count = len(ridges)
        one = lambda: np.ones(count)  # noqa: E731
        vector = lambda: np.zeros_like(beta)  # noqa: E731
        return cls(
            np.arange(count), ridges, np.zeros(count), one(), one(), one(), one(),
            beta, beta @ matrix if beta.any() else vector(),
            vector(), vector(), vector(), vector(), vector(), one(),
        )  # fmt: skip

    def note(self, done: Mask, found: Solution) -> None:
        """Keep where these columns are."""
        places = self.index[done]
        found.beta[places] = self.beta[done]
        found.intercept[places] = self.b[done]
        found.gap[places] = self.gap[done]
        found.primal[places] = self.primal[done]

    def part(self, chosen: Mask) -> _Columns:
        """Some of the columns."""
        return _Columns(*(np.ascontiguousarray(x[chosen]) for x in vars(self).values()))
