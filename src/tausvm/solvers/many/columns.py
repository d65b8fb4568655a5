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

from ..._core.columns import Columns
from ..linalg import LinAlgError, cholesky, cholesky_solve
from ..nystrom import landmark_factor
from .family import Mask, Place, Work

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Index = NDArray[np.int64]

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
        landmarks = np.linspace(0, len(matrix) - 1, min(len(matrix), rank)).astype(np.int64)
        rows = matrix[landmarks]
        half = landmark_factor(rows, rows[:, landmarks].astype(np.float64), JITTER)
        values, basis = np.linalg.eigh(half @ half.T)
        keep = values > 1e-6 * max(values[-1], 1e-30)
        values, basis = values[keep], basis[:, keep]
        return cls(np.ascontiguousarray(half.T @ (basis / np.sqrt(values))), values)


def solve_columns(work: Work) -> None:
    """Solve the problems wanted, as far as float32 and the steps go."""
    if not work.wanted.any():
        return
    settings, loop = work.settings, _Loop(work)
    n, rest = len(loop.matrix), np.arange(len(loop.places))
    low_rank = loop.low_rank()
    if n > settings.factor_order:
        for _ in range(0, settings.iterations, settings.look_after):
            rest = loop.run(rest[~loop.hopeless(rest)], low_rank, settings.look_after)
        loop.note(rest)
        return
    steps = max(settings.factor_after_least, settings.factor_after * n // 1000)
    rest = loop.run(rest, low_rank, steps)
    at_once = max(1, settings.factor_bytes // loop.matrix.nbytes)
    for part in _groups(loop.middle, rest, settings.factor_ratio, at_once):
        promising = [group[~loop.hopeless(group)] for group in part]
        promising = [group for group in promising if len(group)]
        if not promising or work.stop():
            break
        try:
            inverse: Inverse = FactorInverse(loop.matrix, loop.middle, promising)
        except LinAlgError:  # rounding has cost the matrix its definiteness
            inverse = low_rank
        loop.note(loop.run(np.concatenate(promising), inverse, settings.iterations))


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
    """The steps of the columns that are not done.

    Attributes
    ----------
    matrix : float32 array (n, n)
        K.
    places : list of (loss, cost)
        Which problem a column is.
    middle : array
        Between the two ridges of a column, at a typical weight.
    """

    def __init__(self, work: Work) -> None:
        family = work.family
        assert family.weight is not None
        self.work = work
        self.matrix = family.operator.rows.astype(np.float32, copy=False)
        losses, costs = np.nonzero(work.wanted)
        self._losses, self._costs = losses, costs
        self.places: list[Place] = list(zip(losses.tolist(), costs.tolist(), strict=True))
        unit = np.array([(t.ridge_plus.min(), t.ridge_minus.min()) for t in family.terms])
        ridges = unit[losses] / family.costs[costs, None]
        self.middle: Array = np.exp(np.log(ridges).mean(axis=1) - np.log(family.weight).mean())
        self.columns = Columns(
            family.y.astype(np.float32),
            family.weight.astype(np.float32),
            np.ascontiguousarray(ridges),
            work.goal.gap * family.limits[losses, costs],
            work.goal.share,
            family.offset,
        )
        for column, place in enumerate(self.places):
            if place in work.starts:
                self.columns.beta[column] = work.starts[place]
        if work.starts:
            np.matmul(self.columns.beta, self.matrix, out=self.columns.fitted)

    def low_rank(self) -> LowRankInverse:
        """The preconditioner by landmarks."""
        settings = self.work.settings
        least, most = settings.landmarks
        rank = max(least, min(most, int(settings.landmark_share * len(self.matrix))))
        return LowRankInverse(LowRank.of(self.matrix, rank), self.middle)

    def run(self, index: Index, inverse: Inverse, limit: int) -> Index:
        """Up to ``limit`` steps of some columns; those that they have not ended."""
        at = self.columns
        at.select(index)
        if self.work.family.offset and at.live:
            at.flat[: at.live] = inverse.times(at.order[: at.live], np.ones_like(at.z[: at.live]))
        at.flatten()
        for step in range(limit + 1):
            before = at.live
            at.assess()
            if at.live < before:
                self._end(at.order[at.live : before].copy())
            if at.live == 0 or step == limit or self.work.stop():
                break
            at.z[: at.live] = inverse.times(at.order[: at.live], at.gradient[: at.live])
            at.turn()
            np.matmul(at.direction[: at.live], self.matrix, out=at.product[: at.live])
            at.advance()
        return np.sort(at.order[: at.live])

    def hopeless(self, index: Index) -> Mask:
        """Which columns are not worth going on with."""
        return self.work.hopeless([self.places[column] for column in index])

    def note(self, index: Index) -> None:
        """Keep where some columns are."""
        at, result = self.columns, self.work.result
        index = index[np.isfinite(at.gap[self._rows(index)])]
        rows = self._rows(index)
        losses, costs = self._losses[index], self._costs[index]
        result.beta[losses, costs] = at.beta[rows]
        result.intercept[losses, costs] = at.intercept[rows]
        result.gap[losses, costs], result.primal[losses, costs] = at.gap[rows], at.primal[rows]

    def _rows(self, index: Index) -> Index:
        """Where columns are now."""
        return np.argsort(self.columns.order)[index]

    def _end(self, index: Index) -> None:
        """These columns are done."""
        self.note(index)
        if self.work.watch is not None:
            rows = self._rows(index)
            places = [self.places[column] for column in index]
            self.work.ended(places, self.columns.beta[rows], self.columns.intercept[rows])


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
