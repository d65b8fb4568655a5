"""Certificates of whole pieces of a path, from what is known at their two ends.

On a piece everything is linear in τ: β, the offset, the bounds and so the residuals
r = y − f − b. With s from 0 to 1 along the piece,

    primal − dual  =  Σ (u − β)r⁺ + (β − l)r⁻          [Σβ = 0 where b is free]
                   ≤  (1−s)² g₀ + 2s(1−s) g½ + s² g₁    r⁺, r⁻ are convex: below their chords
    dual           ≥  (1−s) d₀ + s d₁                   it is concave

with the differences g₀, g₁ and the duals d₀, d₁ at the ends and g½ the mean of the two sums that
take one factor from each end. So the relative gap on the piece is at most the largest of those of
(g₀, d₀), (g½, ½(d₀ + d₁)) and (g₁, d₁). Where the path is optimal all three are 0.

Residuals at the kinks of a batch come from exact ones at some of them: in between, points at
bounds move on straight lines, and only the few that were free bend f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._core.pieces import PieceSums
from ...operators.products import Products
from .box import LOWER, LOWER_SLOPE, UPPER, UPPER_SLOPE, MovingBox
from .family import PathProblem
from .settings import PathSettings
from .state import State
from .tau_path import TauPath

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Signs = NDArray[np.int8]

NO_SETS, NOBODY = np.empty(0, np.int8), np.empty(0, np.intp)


@dataclass
class Stretch:
    """Records of one stretch of a path, in order.

    Attributes
    ----------
    t, offset : arrays (n_records,)
        Corners included.
    first, last : State
        With f at all points from the data.
    moved : int array (n_moved,)
        The points that are free at some of the records; all others stay at a bound.
    beta : array (n_records, n_moved)
    """

    t: Array
    offset: Array
    first: State
    last: State
    moved: Index
    beta: Array


class PieceCheck:
    """Bounds on the relative gap over pieces, of the problem as it was posed.

    Parameters
    ----------
    problem : PathProblem
    products : Products
        Its kernel matrix, perhaps held.
    narrowed : float
        By which share at most the boxes of the records are narrower than the problem's.
    settings : PathSettings
    """

    def __init__(
        self, problem: PathProblem, products: Products, narrowed: float, settings: PathSettings
    ) -> None:
        self.problem = problem
        self.products = products
        self.narrowed = narrowed
        self.settings = settings
        self.root = np.sqrt(products.diagonal())

    # ---- a stretch of kinks of a walk ----

    def stretch(self, box: MovingBox, stretch: Stretch) -> tuple[Array, Array]:
        """A bound for each piece between two records; ``box`` is the problem's, in t. And the same
        for the offsets that predict, which the user's units have rounded."""
        problem, first, last, moved = self.problem, stretch.first, stretch.last, stretch.moved
        length = last.t - first.t
        part = (stretch.t - first.t) / length if length > 0 else np.zeros(len(stretch.t))
        part[-1] = 1.0
        rest = 1.0 - part
        offset = stretch.offset
        start, end = problem.y - first.fitted, problem.y - last.fitted
        # what bends f and b: the way of the points that moved, beside the straight line
        away = np.ascontiguousarray(stretch.beta.T)
        away -= np.outer(first.beta[moved], rest)
        away -= np.outer(last.beta[moved], part)
        bent = self.products.through(moved, moved, away) if len(moved) else away
        squares = np.einsum("vk,vk->k", away, bent)
        size = float(np.sqrt(max(squares.max(initial=0.0), 0.0)))
        shift = offset - (rest * offset[0] + part * offset[-1])
        # a point at a bound whose residual cannot change its sign adds nothing
        side = first.status.astype(np.float64)
        side[moved] = 0.0
        nearest = np.minimum(side * (start - offset[0]), side * (end - offset[-1]))
        reach = self.root * size + np.abs(shift).max()
        near = np.flatnonzero((nearest < reach) & (side != 0))
        seen = np.r_[moved, near]
        if len(near):
            bent = np.vstack([bent, self.products.through(near, moved, away)])
        far = self._narrowness(first, last, start - offset[0], end - offset[-1])
        dual = self._duals(first, last, part, moved, away, squares)
        total = rest * first.beta.sum() + part * last.beta.sum() + away.sum(axis=0)
        sums = PieceSums(
            stretch.t,
            part,
            np.vstack([first.beta[seen], last.beta[seen]]),
            np.vstack([start[seen], end[seen]]),
            away,
            bent,
            np.ascontiguousarray(box.numbers[:, seen].T),
        )

        def with_offset(b: Array) -> Array:
            differences, middles = sums.with_offset(b)
            slack = far + np.abs(b * total)
            middles += np.maximum(slack[:-1], slack[1:])
            return self.bounds(differences + slack, middles, dual)

        found = with_offset(offset)
        if not problem.rounds_offsets:
            return found, found
        return found, with_offset(problem.units.settled(offset))

    def _narrowness(self, first: State, last: State, start: Array, end: Array) -> float:
        """What narrower boxes cost at points that stay at bounds: a share of their losses, and
        residuals of points that are not near stay within twice those of the straight line."""
        a, b = np.abs(start), np.abs(end)
        first_size, last_size = np.abs(first.beta), np.abs(last.beta)
        cross = 0.5 * (first_size @ b + last_size @ a)
        largest = max(float(first_size @ a), float(cross), float(last_size @ b))
        return 2.0 * self.narrowed * largest

    def _duals(
        self, first: State, last: State, part: Array, moved: Index, away: Array, squares: Array
    ) -> Array:
        """yᵀβ − ½βᵀKβ at every record."""
        y, rest = self.problem.y, 1.0 - part
        linear = rest * (y @ first.beta) + part * (y @ last.beta) + y[moved] @ away
        line = rest**2 * (first.beta @ first.fitted) + part**2 * (last.beta @ last.fitted)
        line += 2.0 * rest * part * (first.beta @ last.fitted)
        cross = rest * (first.fitted[moved] @ away) + part * (last.fitted[moved] @ away)
        return np.asarray(linear - 0.5 * (line + 2.0 * cross + squares))

    # ---- any pieces of a path ----

    def pieces(self, path: TauPath, chosen: Index) -> Array:
        """Bounds for some pieces of a path, with the offsets as they are in the user's units."""
        out = np.empty(len(chosen))
        step = max(1, self.settings.piece_bytes // (16 * self.problem.n))
        for begin in range(0, len(chosen), step):
            part = chosen[begin : begin + step]
            records = np.unique(np.r_[part, part + 1])
            beta = np.column_stack([path.at_record(int(k)) for k in records])
            fitted = self.products.product(beta)
            for k, at in enumerate(np.searchsorted(records, part)):
                ends = records[at : at + 2]
                box, t = self.problem.box, path.chain.tau[ends]
                if t.min() >= 0.5 and path.chain.back is not None:
                    box, t = box.from_(1.0, 1), path.chain.back[ends]
                offset = path.chain.offset[ends]
                first, last = (
                    State(t[i], beta[:, at + i], NO_SETS, offset[i], NOBODY, fitted[:, at + i])
                    for i in (0, 1)
                )
                out[begin + k] = self.line(box, first, last, rounded=True)
        return out

    def line(self, box: MovingBox, first: State, last: State, rounded: bool = False) -> float:
        """A bound for the straight line between two evaluated states of the problem's box.

        ``rounded`` asks for the offsets as they are in the user's units, where they predict.
        All of it is linear on the line, so parts of it need nothing new from the data.
        """
        problem = self.problem
        share = np.linspace(0.0, 1.0, self.settings.parts + 1)[:, None]
        rest = 1.0 - share
        t = rest * first.t + share * last.t
        B = rest * first.beta + share * last.beta
        F = rest * first.fitted + share * last.fitted
        b = rest * first.offset + share * last.offset
        if rounded:
            b = problem.units.settled(b)
        numbers = box.numbers
        lower = numbers[LOWER] + t * numbers[LOWER_SLOPE]
        upper = numbers[UPPER] + t * numbers[UPPER_SLOPE]
        residual = problem.y - F - b
        differences = gap_sums(lower, upper, B, residual)
        # one factor from each end of a part
        middles = gap_sums(lower[:-1], upper[:-1], B[:-1], residual[1:])
        middles = 0.5 * (middles + gap_sums(lower[1:], upper[1:], B[1:], residual[:-1]))
        slack = np.abs(b[:, 0] * B.sum(axis=1))
        dual = B @ problem.y - 0.5 * np.einsum("kv,kv->k", B, F)
        middles = middles + np.maximum(slack[:-1], slack[1:])
        return float(self.bounds(differences + slack, middles, dual).max())

    def bounds(self, differences: Array, middles: Array, dual: Array) -> Array:
        """Relative bounds of pieces from the differences at records and those of the middles."""
        at_ends = self.problem.relative(differences, dual)
        inside = self.problem.relative(middles, 0.5 * (dual[:-1] + dual[1:]))
        # without a positive dual the bound in the middle is none: no gap is larger than 2
        inside[(inside > 0) & (np.minimum(dual[:-1], dual[1:]) < 0)] = 2.0
        bounds = np.maximum(np.maximum(at_ends[:-1], at_ends[1:]), inside)
        # what is not a number was not checked
        return np.where(np.isfinite(bounds), bounds, np.inf)


def gap_sums(lower: Array, upper: Array, beta: Array, residual: Array) -> Array:
    """Σ (u − β)r⁺ + (β − l)r⁻ over the last axis: primal − dual where Σβ = 0 or b is not free."""
    above, below = np.maximum(upper - beta, 0.0), np.maximum(beta - lower, 0.0)
    plus, minus = np.maximum(residual, 0.0), np.maximum(-residual, 0.0)
    sums = np.einsum("...v,...v->...", above, plus) + np.einsum("...v,...v->...", below, minus)
    return np.asarray(sums)
