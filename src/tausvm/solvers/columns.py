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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._core.columns import advance, assess, turn
from .family import Mask, Place, Work
from .linalg import LinAlgError, cholesky, cholesky_solve, solve_lower

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Index = NDArray[np.int64]

#: steps between two looks at which columns are worth going on with, where there are no factors
LOOK_STEPS = 20
#: what is added to the diagonal of the landmarks' matrix, against the rounding of float32
JITTER = 1e-5


@dataclass(frozen=True)
class LowRank:
    """U Λ Uᵀ ≈ K with UᵀU = I."""

    vectors: Floats
    values: Floats

    @classmethod
    def of(cls, matrix: Floats, rank: int) -> LowRank:
        """The Nyström approximation from landmarks spread evenly over the rows."""
        n = len(matrix)
        rank = min(n, rank)
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


def solve_columns(work: Work) -> None:
    """Solve the problems wanted, as far as float32 and the steps go."""
    family, settings = work.family, work.settings
    assert family.weight is not None
    places = [(int(loss), int(k)) for loss, k in np.argwhere(work.wanted)]
    if not places:
        return
    matrix = family.operator.rows.astype(np.float32, copy=False)
    n = len(matrix)
    unit = np.array([(t.ridge_plus.min(), t.ridge_minus.min()) for t in family.terms])
    ridges = np.array([unit[loss] / family.costs[k] for loss, k in places])
    first = np.zeros((len(places), n), dtype=np.float32)
    for column, place in enumerate(places):
        first[column] = work.starts.get(place, 0.0)
    middle = np.exp(np.log(ridges).mean(axis=1) - np.log(family.weight).mean())
    least, most = settings.landmarks
    rank = max(least, min(most, int(settings.landmark_share * n)))
    low_rank = LowRankInverse(LowRank.of(matrix, rank), middle)
    loop = _Loop(work, matrix, places)
    rest = _Columns.start(ridges, first, matrix)
    if n > settings.factor_order:
        for _ in range(0, settings.iterations, LOOK_STEPS):
            rest = rest.part(~loop.hopeless(rest.index))
            rest = loop.run(rest, low_rank, LOOK_STEPS)
        loop.note(rest, np.ones(len(rest.index), dtype=bool))
        return
    steps = max(settings.factor_after_least, settings.factor_after * n // 1000)
    rest = loop.run(rest, low_rank, steps)
    at_once = max(1, settings.factor_bytes // matrix.nbytes)
    for part in _groups(middle, rest.index, settings.factor_ratio, at_once):
        promising = [group[~loop.hopeless(group)] for group in part]
        promising = [group for group in promising if len(group)]
        if not promising or work.stop():
            break
        try:
            inverse: Inverse = FactorInverse(matrix, middle, promising)
        except LinAlgError:  # rounding has cost the matrix its definiteness
            inverse = low_rank
        chosen = np.isin(rest.index, np.concatenate(promising))
        left = loop.run(rest.part(chosen), inverse, settings.iterations)
        loop.note(left, np.ones(len(left.index), dtype=bool))


def _groups(ridges: Array, index: Index, ratio: float, at_once: int) -> Iterator[list[Index]]:
    """Columns in groups that one factor serves, C ascending, some of them at a time."""
    groups: list[list[int]] = []
    for column in sorted(index, key=lambda c: -ridges[c]):
        if groups and ratio * ridges[column] >= ridges[groups[-1][0]]:
            groups[-1].append(column)
        else:
            groups.append([column])
    for start in range(0, len(groups), at_once):
        yield [np.array(group) for group in groups[start : start + at_once]]


class _Loop:
    """The steps of the columns that are not done."""

    def __init__(self, work: Work, matrix: Floats, places: list[Place]) -> None:
        family = work.family
        assert family.weight is not None
        self.work = work
        self.matrix = matrix
        self.places = places
        self.offset = family.offset
        self.y, self.weight = family.y.astype(np.float32), family.weight.astype(np.float32)
        self.allowed = np.array([work.goal.gap * family.limits[place] for place in places])

    def run(self, at: _Columns, inverse: Inverse, limit: int) -> _Columns:
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
            at = self._sorted_out(at)
            if len(at.index) == 0 or step == limit or self.work.stop():
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
        return self.work.hopeless([self.places[column] for column in index])

    def note(self, at: _Columns, done: Mask) -> list[Place]:
        """Keep where some columns are; their places."""
        result, rows = self.work.result, np.flatnonzero(done)
        places = [self.places[column] for column in at.index[rows]]
        # a problem that was stopped has no solution
        for row, place in zip(rows, places, strict=True):
            if np.isfinite(at.gap[row]):
                result.note(place, at.beta[row], at.b[row], at.gap[row], at.primal[row])
        return places

    def _sorted_out(self, at: _Columns) -> _Columns:
        """The columns that are not done."""
        enough = np.minimum(self.allowed[at.index], self.work.goal.share * at.primal)
        done = (at.gap <= enough) | (at.length == 0) | ~np.isfinite(at.gap)
        if not done.any():
            return at
        self.work.ended(self.note(at, done), at.beta[done], at.b[done])
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

    def part(self, chosen: Mask) -> _Columns:
        """Some of the columns."""
        return _Columns(*(np.ascontiguousarray(x[chosen]) for x in vars(self).values()))
