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

import numpy as np
from numpy.typing import NDArray

from ..._core.columns import Columns, FactorInverse, Inverse, LowRankInverse
from ..nystrom import landmark_factor
from .family import Mask, Work

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

    def inverse(self, ridges: Array) -> LowRankInverse:
        """(U Λ Uᵀ + ridge)⁻¹ for the ridges of columns."""
        values = self.values.astype(np.float64)
        shrink = values / (values + ridges[:, None])
        return LowRankInverse(
            self.vectors, shrink.astype(np.float32), (1.0 / ridges).astype(np.float32)
        )


def solve_columns(work: Work) -> None:
    """Solve the problems wanted, as far as float32 and the steps go."""
    if not work.wanted.any():
        return
    settings, loop = work.settings, _Loop(work)
    n, rest = len(loop.matrix), np.arange(len(loop.middle))
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
        inverse: Inverse = loop.factors(promising)
        if not inverse.definite:  # rounding has cost the matrix its definiteness
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
    middle : array
        Between the two ridges of a column, at a typical weight.
    """

    def __init__(self, work: Work) -> None:
        family = work.family
        assert family.weight is not None
        self.work = work
        self.matrix = family.operator.rows.astype(np.float32, copy=False)
        #: which problem a column is
        self._losses, self._costs = losses, costs = np.nonzero(work.wanted)
        unit = np.array([(t.ridge_plus.min(), t.ridge_minus.min()) for t in family.terms])
        ridges = unit[losses] / family.costs[costs, None]
        self.middle: Array = np.exp(np.log(ridges).mean(axis=1) - np.log(family.weight).mean())
        self.columns = Columns(
            self.matrix,
            family.y.astype(np.float32),
            family.weight.astype(np.float32),
            np.ascontiguousarray(ridges),
            work.goal.gap * family.limits[losses, costs],
            work.goal.share,
            family.offset,
        )
        if work.starts is not None:
            self.columns.beta[:] = np.nan_to_num(work.starts[losses, costs])
            np.matmul(self.columns.beta, self.matrix, out=self.columns.fitted)

    def low_rank(self) -> LowRankInverse:
        """The preconditioner by landmarks."""
        settings = self.work.settings
        least, most = settings.landmarks
        rank = max(least, min(most, int(settings.landmark_share * len(self.matrix))))
        return LowRank.of(self.matrix, rank).inverse(self.middle)

    def factors(self, groups: list[Index]) -> FactorInverse:
        """The preconditioner by Cholesky factors, one a group of columns with similar ridges."""
        member = np.zeros(len(self.middle), dtype=np.int64)
        for k, group in enumerate(groups):
            member[group] = k
        ridges = np.array([np.exp(np.log(self.middle[group]).mean()) for group in groups])
        return FactorInverse(self.matrix, ridges, member)

    def run(self, index: Index, inverse: Inverse, limit: int) -> Index:
        """Up to ``limit`` steps of some columns; those that they have not ended."""
        at, n = self.columns, len(self.matrix)
        at.begin(index, inverse)
        while limit > 0 and at.live > 0 and not self.work.stop():
            steps = min(limit, max(1, self.work.settings.work // (n * n * at.live)))
            at.run(inverse, steps)
            limit -= steps
        left = np.sort(at.order[: at.live])
        ended = np.setdiff1d(index, left, assume_unique=True)
        if len(ended):
            self.note(ended)
            rows = self._rows(ended)
            places = self._losses[ended], self._costs[ended]
            self.work.ended(places, at.beta[rows], at.intercept[rows])
        return left

    def hopeless(self, index: Index) -> Mask:
        """Which columns are not worth going on with."""
        return self.work.hopeless((self._losses[index], self._costs[index]))

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
