"""What one pass brings back: the first look at the data, and sums at the points of all jobs.

All functions here run on workers but the merging, and know one partition each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._core.terms import responses
from ..estimators.linear_machine import Posing
from ..losses import Loss
from ..operators import LinearOperator
from ..solvers import Problem
from ..solvers.units import Units
from .partitions import Block
from .settings import Plan

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MEGABYTE = 2.0**20


@dataclass(frozen=True)
class Rows:
    """Some rows, with the partition and the place in it that they came from."""

    X: Any
    y: Array
    weight: Array
    fold: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def of(cls, block: Block, fold: NDArray[np.int16], index: Index) -> Rows:
        weight = np.ascontiguousarray(block.weight[index])
        return cls(block.X[index], block.y[index], weight, fold[index])

    def take(self, index: Any) -> Rows:
        return Rows(self.X[index], self.y[index], self.weight[index], self.fold[index])

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """One below the other; sparse where one of them is."""
        if len(parts) == 1:
            return parts[0]
        matrices = [part.X for part in parts]
        if any(sp.issparse(X) for X in matrices):
            X = sp.vstack([sp.csr_matrix(X) for X in matrices], format="csr")
        else:
            X = np.concatenate(matrices)
        return Rows(
            X,
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.fold for part in parts]),
        )

    @property
    def megabytes(self) -> float:
        X = self.X
        size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes
        return (size + 18 * len(self)) / MEGABYTE


# ---- the first pass ----


@dataclass(frozen=True)
class Draw:
    """How the first pass draws: a sample of so many megabytes, and folds.

    ``share`` are the megabytes that one partition may send of it: more than its part, so that the
    sample is whole where partitions are not of one size.
    """

    seed: int
    megabytes: float
    share: float
    #: rows that a partition sends at least
    fewest: int
    folds: int = 0
    #: rows of the sample at least, whatever they take
    least: int = 2

    @classmethod
    def of(cls, plan: Plan, seed: int, count: int, folds: int = 0, least: int = 2) -> Draw:
        """As a plan has it for so many partitions."""
        part = min(1.0, plan.sample_excess / count)
        fewest = max(plan.sample_fewest, int(np.ceil(part * least)))
        megabytes = plan.sample_megabytes
        return cls(seed, megabytes, part * megabytes, fewest, folds, least)

    @classmethod
    def none(cls) -> Draw:
        """Hardly any rows, where moments alone are wanted."""
        return cls(seed=0, megabytes=0.0, share=0.0, fewest=1)

    def keys(self, block: Block) -> Array:
        """Random numbers of the rows of a partition, by which the sample is drawn."""
        return np.random.default_rng([self.seed, *block.index, 0]).random(len(block))

    def fold_of(self, block: Block) -> NDArray[np.int16]:
        """The folds of the rows of a partition: the same in every pass."""
        if self.folds == 0:
            return np.zeros(len(block), dtype=np.int16)
        draw = np.random.default_rng([self.seed, *block.index, 1])
        return draw.integers(self.folds, size=len(block), dtype=np.int16)


@dataclass(frozen=True)
class Summary:
    """Counts, moments and a sample of all rows.

    ``mean`` and ``squares`` are those of y, weighted: Σw(y − mean)². ``norms`` is Σ w‖x‖². The
    sample holds the rows whose random ``keys`` are the smallest: every row below ``threshold``.
    """

    draw: Draw
    n: int
    fold_sizes: Index
    weight: float
    lightest: float
    heaviest: float
    low: float
    high: float
    mean: float
    squares: float
    norms: float
    total: float
    sample: Rows | None
    keys: Array
    threshold: float

    @property
    def spread(self) -> float:
        """The weighted standard deviation of y, 1 where y is constant."""
        if self.high == self.low or self.squares == 0:
            return 1.0
        return float(np.sqrt(self.squares / self.weight))

    def same(self, n: int, total: float) -> bool:
        """Whether so many rows with this sum of y may be the same ones, but for rounding."""
        size = n * max(abs(self.low), abs(self.high))
        return n == self.n and abs(total - self.total) <= 1e-12 * size

    def without(self, rows: Rows) -> Summary:
        """That of all rows but some; the range of y stays."""
        weight = self.weight - float(rows.weight.sum())
        away = rows.y - self.mean
        moved = float(rows.weight @ away) / weight
        squares = self.squares - float(rows.weight @ np.square(away)) - weight * moved**2
        return replace(
            self,
            n=self.n - len(rows),
            weight=weight,
            mean=self.mean - moved,
            squares=max(squares, 0.0),
            norms=self.norms - float(rows.weight @ LinearOperator(rows.X).squares()),
            total=self.total - float(rows.y.sum()),
        )


def summary(block: Block, draw: Draw) -> Summary:
    """The first look at a partition."""
    n, y, weight = len(block), block.y, block.weight
    fold = draw.fold_of(block)
    sizes = np.bincount(fold, minlength=max(draw.folds, 1)).astype(np.int64)
    if n == 0:
        nothing = np.empty(0)
        return Summary(
            draw,
            0,
            sizes,
            0.0,
            np.inf,
            0.0,
            np.inf,
            -np.inf,
            0.0,
            0.0,
            0.0,
            0.0,
            None,
            nothing,
            1.0,
        )
    whole = float(weight.sum())
    share = weight / whole
    low = float(y.min())
    mean = low + float(share @ (y - low))  # a mean far from 0 must not round
    keys = draw.keys(block)
    order = np.argsort(keys)
    row_bytes = Rows.of(block, fold, order[:1000]).megabytes / min(n, 1000)
    order = order[: max(draw.fewest, int(draw.share / row_bytes))]
    return Summary(
        draw=draw,
        n=n,
        fold_sizes=sizes,
        weight=whole,
        lightest=float(weight.min()),
        heaviest=float(weight.max()),
        low=low,
        high=float(y.max()),
        mean=mean,
        squares=float(weight @ np.square(y - mean)),
        norms=float(weight @ LinearOperator(block.X).squares()),
        total=float(y.sum()),
        sample=Rows.of(block, fold, order),
        keys=keys[order],
        threshold=1.0 if len(order) == n else float(keys[order[-1]]),
    )


def merged_summaries(parts: list[Summary]) -> Summary:
    """The summary of several partitions."""
    some = [part for part in parts if part.n > 0]
    if not some:
        return parts[0]
    weight = sum(part.weight for part in some)
    low = min(part.low for part in some)
    mean = low + sum(part.weight / weight * (part.mean - low) for part in some)
    squares = sum(part.squares + part.weight * (part.mean - mean) ** 2 for part in some)
    threshold = _threshold(some)
    kept = [part.keys <= threshold for part in some]
    return Summary(
        draw=some[0].draw,
        n=sum(part.n for part in some),
        fold_sizes=np.sum([part.fold_sizes for part in some], axis=0),
        weight=weight,
        lightest=min(part.lightest for part in some),
        heaviest=max(part.heaviest for part in some),
        low=low,
        high=max(part.high for part in some),
        mean=mean,
        squares=squares,
        norms=sum(part.norms for part in some),
        total=sum(part.total for part in some),
        sample=Rows.joined(
            [
                part.sample.take(few)
                for part, few in zip(some, kept, strict=True)
                if part.sample is not None
            ]
        ),
        keys=np.concatenate([part.keys[few] for part, few in zip(some, kept, strict=True)]),
        threshold=threshold,
    )


def _threshold(parts: Sequence[Summary]) -> float:
    """Up to which key rows stay in the sample: as many as there is room for, the smallest first."""
    threshold = min(part.threshold for part in parts)
    megabytes = sum(part.sample.megabytes for part in parts if part.sample is not None)
    draw = parts[0].draw
    keys = np.concatenate([part.keys for part in parts])
    fits = int(len(keys) * draw.megabytes / megabytes) if megabytes > draw.megabytes else len(keys)
    count = max(draw.least, fits)
    if count < len(keys):
        threshold = min(threshold, float(np.partition(keys, count - 1)[count - 1]))
    return threshold


@dataclass(frozen=True)
class HeldOut:
    """Leaves the rows out whose keys are at most one."""

    draw: Draw
    key: float

    def __call__(self, block: Block) -> Block:
        rows = np.flatnonzero(self.draw.keys(block) > self.key)
        return Block(block.index, block.X[rows], block.y[rows], block.weight[rows])


# ---- the passes after it ----


@dataclass(frozen=True)
class Job:
    """One machine to fit: a loss at a cost, on all rows but those of one fold (−1: on all)."""

    loss: Loss
    C: float
    fold: int = -1


@dataclass(frozen=True)
class Setting:
    """What all jobs have in common: units of y, the offset, folds, and room on the client."""

    units: Units
    #: what C counts in
    unit: float
    #: whether b is free, and else the constant column of a penalised one
    free: bool
    column: float
    draw: Draw
    #: megabytes of gathered rows
    room: float
    #: the median of the sample's ‖x‖²
    length: float = 1.0

    def reaches(self, rows: LinearOperator) -> Array:
        """How far predictions of rows move, against those of rows of median length: by ‖x‖.

        ::

            √(½(1 + ‖x‖²/median))
        """
        return np.sqrt(0.5 * (1.0 + rows.squares() / self.length))

    def problem(self, rows: Rows | Block, job: Job, scale: float = 1.0) -> Problem:
        """The problem of a job on some rows, in units of its own, costs multiplied by ``scale``."""
        posing = Posing(
            rows.y,
            rows.weight if scale == 1.0 else rows.weight * scale,
            self.units.targets(rows.y),
            self.units,
            self.unit,
            self.free,
            self.column,
        )
        return replace(posing.problem(LinearOperator(rows.X), job.loss, job.C), units=Units())


@dataclass(frozen=True)
class Ask:
    """A point of a job, and what is wanted there, in units of its own.

    With a ``radius``, that of rows of median length, the matrix is that of the rows within it of a
    corner; with ``gather`` these rows come back, and the sums of β are over the others.
    """

    job: Job
    w: Array
    b: float
    radius: float = 0.0
    gather: bool = False
    matrix: bool = False
    #: instead of all else: a vector (v, a) for Σ D(x, 1)(xᵀv + a), with D at the point
    product: Array | None = None


@dataclass(frozen=True)
class Sums:
    """Sums over rows at one point: of losses, β, βy − g(β) and βx.

    ``matrix`` is Σ D(x, 1)(x, 1)ᵀ, ``product`` that times a vector, or its diagonal where neither
    the matrix nor a product was asked for.
    """

    loss: float
    total: float
    value: float
    pulled: Array
    matrix: Array | None = None
    product: Array | None = None

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.loss + other.loss,
            self.total + other.total,
            self.value + other.value,
            self.pulled + other.pulled,
            _plus(self.matrix, other.matrix),
            _plus(self.product, other.product),
        )


def _plus(one: Array | None, other: Array | None) -> Array | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True)
class Look:
    """The sums of all asks, and the rows gathered; ``n`` and ``y`` tell whether data changed.

    ``rows`` is None where more were near corners than there is room for; ``count`` are they.
    """

    n: int
    y: float
    sums: list[Sums]
    count: int
    rows: tuple[Rows, ...] | None
    room: float


def look(block: Block, given: tuple[Setting, list[Ask]]) -> Look:
    """The sums of one partition."""
    setting, asks = given
    fold = setting.draw.fold_of(block)
    parts: dict[int, Part] = {}
    for ask in asks:
        if ask.job.fold not in parts:
            parts[ask.job.fold] = Part.without(block, fold, ask.job.fold)
    views = [_View(setting, parts[ask.job.fold], ask) for ask in asks]
    out = np.zeros(len(block), dtype=bool)
    for view in views:
        if view.ask.gather:
            out[view.part.index[view.near]] = True
    rows: tuple[Rows, ...] | None = ()
    if out.any():
        rows = _within_room((Rows.of(block, fold, np.flatnonzero(out)),), setting.room)
    sums = [view.sums(out) for view in views]
    return Look(len(block), float(block.y.sum()), sums, int(out.sum()), rows, setting.room)


def merged_looks(parts: list[Look]) -> Look:
    """The sums of several partitions; what was merged stays, a lost worker may ask for it again."""
    sums = list(parts[0].sums)
    rows: tuple[Rows, ...] | None = parts[0].rows
    for part in parts[1:]:
        sums = [one + other for one, other in zip(sums, part.sums, strict=True)]
        if rows is not None:
            rows = None if part.rows is None else _within_room(rows + part.rows, part.room)
    return Look(
        sum(part.n for part in parts),
        sum(part.y for part in parts),
        sums,
        sum(part.count for part in parts),
        rows,
        parts[0].room,
    )


def _within_room(rows: tuple[Rows, ...], room: float) -> tuple[Rows, ...] | None:
    return rows if sum(part.megabytes for part in rows) <= room else None


@dataclass(frozen=True)
class Part:
    """Some rows of a partition, and where they stand in it."""

    rows: Rows | Block
    index: Index

    @classmethod
    def without(cls, block: Block, fold: NDArray[np.int16], left_out: int) -> Part:
        """All rows but those of one fold."""
        return cls._of(block, fold, np.flatnonzero(fold != left_out))

    @classmethod
    def only(cls, block: Block, fold: NDArray[np.int16], kept: int) -> Part:
        """The rows of one fold."""
        return cls._of(block, fold, np.flatnonzero(fold == kept))

    @classmethod
    def _of(cls, block: Block, fold: NDArray[np.int16], index: Index) -> Part:
        whole = len(index) == len(block)
        return cls(block if whole else Rows.of(block, fold, index), index)


class _View:
    """The rows of a partition as one ask sees them."""

    def __init__(self, setting: Setting, part: Part, ask: Ask) -> None:
        self.ask, self.part = ask, part
        self.near = np.zeros(len(part.index), dtype=bool)
        self.problem: Problem | None = None
        if len(part.index) == 0:
            return
        self.problem = problem = setting.problem(part.rows, ask.job)
        self.fitted = problem.values(ask.w)
        residual = problem.y - self.fitted - ask.b
        self.beta, self.slope = responded(problem, residual)
        if ask.radius > 0:
            reach = ask.radius * setting.reaches(problem.operator)
            self.near, self.slope = near_corners(problem, residual, reach)

    def sums(self, out: NDArray[np.bool_]) -> Sums:
        """The sums, without the β of rows that go out to the client."""
        ask, problem, d = self.ask, self.problem, len(self.ask.w)
        matrix = np.zeros((d + 1, d + 1)) if ask.matrix else None
        if problem is None:
            product = None if ask.matrix or ask.gather else np.zeros(d + 1)
            return Sums(0.0, 0.0, 0.0, np.zeros(d), matrix, product)
        rows = problem.operator
        if ask.product is not None:
            inner = self.slope * (rows.values(ask.product[:d]) + ask.product[d])
            product = np.append(rows.function(inner), inner.sum())
            return Sums(0.0, 0.0, 0.0, np.zeros(d), None, product)
        beta = np.where(out[self.part.index], 0.0, self.beta) if ask.gather else self.beta
        return Sums(
            loss=problem.terms.total_loss(problem.y, self.fitted, ask.b),
            total=float(beta.sum()),
            value=float(beta @ problem.y) - problem.terms.total_value(beta),
            pulled=rows.function(beta),
            matrix=bordered(rows, self.slope) if ask.matrix else None,
            product=None if ask.matrix or ask.gather else self._diagonal(),
        )

    def _diagonal(self) -> Array:
        """Σ D(x², 1)."""
        assert self.problem is not None
        return np.append(self.problem.operator.column_squares(self.slope), self.slope.sum())


def responded(problem: Problem, residual: Array) -> tuple[Array, Array]:
    """The β that residuals ask for, and their derivatives."""
    beta, slope = np.empty(problem.n), np.empty(problem.n)
    responses(problem.terms.numbers, residual, 0.0, np.zeros(1), beta, slope)
    return beta, slope


def near_corners(problem: Problem, residual: Array, reach: Array) -> tuple[Any, Array]:
    """Which rows lie within their reach of a corner, and the curvature of the loss smeared over it.

    The slope of the loss rises by ``jump`` at a corner; that spread evenly over twice the reach is
    the second derivative that Newton's method takes.
    """
    terms = problem.terms
    near = np.abs(np.abs(residual) - terms.kink) <= reach
    both = terms.kink <= 0
    jump = np.where(
        both, terms.upper - terms.lower, np.where(residual > 0, terms.upper, -terms.lower)
    )
    return near, np.where(near, jump / (2.0 * reach), 0.0)


def bordered(rows: LinearOperator, weight: Array) -> Array:
    """Σ weightᵢ (xᵢ, 1)(xᵢ, 1)ᵀ."""
    d = rows.n_features
    matrix = np.empty((d + 1, d + 1))
    matrix[:d, :d] = rows.outer(weight)
    matrix[:d, d] = matrix[d, :d] = rows.function(weight)
    matrix[d, d] = weight.sum()
    return matrix
