"""A primal-dual interior-point method for the dual on a dense matrix.

With β = p − m, 0 ≤ p ≤ upper, 0 ≤ m ≤ −lower, the dual is a quadratic program,

    min ½(p−m)ᵀK(p−m) − linearᵀ(p−m) + kinkᵀ(p+m) + ½ p·ridge₊·p + ½ m·ridge₋·m
    [Σ(p−m) = total]

Mehrotra's predictor-corrector steps need one Cholesky factor of K + diagonal each, and
some twenty steps end at a relative gap of 1e-10 whatever the conditioning: the way out
where coordinate steps crawl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms
from .linalg import LinAlgError, cholesky, cholesky_solve, copy_symmetric

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Barrier:
    """The numbers of the method."""

    #: the relative complementarity to end at: where K is nearly singular, an error of the dual is
    #: thousands of times that in the primal. Of 80 problems with up to 300 samples 3 take a second
    #: solve to a gap of 1e-11, and 9 with 1e-11 here
    tol: float = 1e-12
    #: the largest residual of the constraints, relative to the targets, at the end
    infeasibility: float = 1e-9
    #: steps at most; twenty are usual, nearly singular matrices take some forty
    steps: int = 60
    #: steps a solve usually takes, for estimates of its cost
    typical_steps: int = 18
    #: from this error on, steps that may pass without halving it: then rounding rules
    close: float = 1e-5
    patience: int = 3
    #: how much of the way to the boundary a step may go
    boundary: float = 0.995
    #: a variable is put to 0 or a bound where it is this much nearer to it than its multiplier is
    #: large, both in units of their means, and this near to it in units of the largest
    snap: float = 1e-3
    near: float = 1e-5


@dataclass(frozen=True)
class Interior:
    """Where the method ended.

    Attributes
    ----------
    snapped : array (n,)
        β at the end, with variables within rounding of zero or a bound put there.
    central : array (n,)
        β with the least duality gap on the way, strictly inside its bounds. Where K is nearly
        singular and costs are large, its residuals keep a smoothness that snapping destroys.
    """

    snapped: Array
    central: Array


def interior_point(
    K: Array,
    linear: Array,
    terms: DualTerms,
    total: float | None,
    interrupted: Callable[[], bool] = lambda: False,
    settings: Barrier | None = None,
) -> Interior:
    """The minimiser β of the dual with matrix K.

    ``total`` is the value that Σβ must keep, None without an offset. When ``interrupted`` says
    so, the best point so far is returned.
    """
    settings = settings or Barrier()
    n = len(linear)
    movable = np.flatnonzero(terms.upper > terms.lower)
    if len(movable) < n:  # samples of cost 0 stay at 0
        snapped, central = np.zeros(n), np.zeros(n)
        if len(movable) > 0:
            inner = interior_point(
                K[np.ix_(movable, movable)],
                linear[movable],
                terms.take(movable),
                total,
                interrupted,
                settings,
            )
            snapped[movable], central[movable] = inner.snapped, inner.central
        return Interior(snapped, central)
    program = _Program(K, linear, terms, total, settings)
    point = program.start()
    best, best_error, stalled = point, np.inf, 0
    most_central, least_gap = point, np.inf
    for _ in range(settings.steps):
        state = program.evaluate(point)
        if state.gap < least_gap:
            most_central, least_gap = point, state.gap
        stalls = 0.5 * best_error <= state.error and best_error < settings.close
        stalled = stalled + 1 if stalls else 0
        if state.error < best_error:
            best, best_error = point, state.error
        feasible = state.infeasibility <= settings.infeasibility
        solved = state.complementarity <= settings.tol and feasible
        # past a stall rounding rules: what follows only gets worse
        if solved or stalled > settings.patience or interrupted():
            break
        try:
            point = program.step(point, state)
        except LinAlgError:
            break
    return Interior(program.snapped(best), program.beta(most_central.z))


@dataclass
class _Point:
    """z = (p, m) of the sides that have room, room = bound − z, and the multipliers.

    ``room`` is kept beside z: bound − z would round to 0 where z comes close.
    """

    z: Array
    room: Array
    low: Array  # of z ≥ 0
    high: Array  # of room ≥ 0; 0 where there is no bound
    b: float


@dataclass
class _State:
    """Residuals and size of the complementarity at a point."""

    dual_residual: Array
    sum_residual: float
    mu: float
    complementarity: float
    infeasibility: float
    gap: float

    @property
    def error(self) -> float:
        return max(self.complementarity, self.infeasibility)


class _Program:
    """The quadratic program, with one index per side that has room."""

    def __init__(
        self,
        K: Array,
        linear: Array,
        terms: DualTerms,
        total: float | None,
        settings: Barrier,
    ) -> None:
        self.settings = settings
        self.K = K
        self.linear = linear
        self.terms = terms
        self.total = total
        plus = np.flatnonzero(terms.upper > 0)
        minus = np.flatnonzero(terms.lower < 0)
        self.index = np.concatenate([plus, minus])
        self.sign = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
        self.bound = np.concatenate([terms.upper[plus], -terms.lower[minus]])
        self.finite = np.isfinite(self.bound)
        self.kink = terms.kink[self.index]
        self.ridge = np.concatenate([terms.ridge_plus[plus], terms.ridge_minus[minus]])
        self.scale = max(float(np.abs(linear).max()), float(terms.kink.max()), 1e-300)
        self.pairs = len(self.index) + int(self.finite.sum())

    def start(self) -> _Point:
        """The middle of each box, and a plausible size where there is no bound."""
        largest = float(np.abs(self.linear).max()) or 1.0
        reach = largest / (float(np.diagonal(self.K).mean() + self.ridge.mean()) or 1.0)
        z = np.where(self.finite, 0.5 * np.where(self.finite, self.bound, 1.0), reach)
        room = np.where(self.finite, self.bound - z, 1.0)
        low = np.full(len(z), self.scale)
        return _Point(z, room, low, np.where(self.finite, self.scale, 0.0), 0.0)

    def combine(self, values: Array) -> Array:
        """Sums over the sides of each variable."""
        sums = np.bincount(self.index, weights=values, minlength=len(self.linear))
        return sums.astype(np.float64, copy=False)

    def beta(self, z: Array) -> Array:
        return self.combine(self.sign * z)

    def evaluate(self, at: _Point) -> _State:
        beta = self.beta(at.z)
        fitted = self.K @ beta
        dual_residual = (
            self.sign * (fitted - self.linear + at.b)[self.index]
            + self.kink
            + self.ridge * at.z
            - at.low
            + at.high
        )
        sum_residual = 0.0 if self.total is None else float(beta.sum()) - self.total
        products = float(at.z @ at.low + at.room @ at.high)
        size = abs(float(beta @ self.linear)) + float(beta @ fitted) + 1e-300
        infeasibility = max(
            float(np.abs(dual_residual).max()) / self.scale, abs(sum_residual) / float(at.z.sum())
        )
        return _State(
            dual_residual,
            sum_residual,
            products / self.pairs,
            products / size,
            infeasibility,
            self.duality_gap(beta, fitted, at.b),
        )

    def duality_gap(self, beta: Array, fitted: Array, b: float) -> float:
        """Σ g(β) + g*(r) − rβ with r = linear − Kβ − b: what the primal is above the dual."""
        residual = self.linear - fitted - b
        gaps = self.terms.value(beta) + self.terms.conjugate(residual) - residual * beta
        return float(gaps.sum())

    def step(self, at: _Point, state: _State) -> _Point:
        """One predictor-corrector step."""
        system = _System(self, at, state)
        zero = np.zeros(len(at.z))
        guess = system.direction(zero, zero)
        length = self.longest(at, guess)
        after = float(
            (at.z + length * guess.z) @ (at.low + length * guess.low)
            + (at.room + length * guess.room) @ (at.high + length * guess.high)
        )
        centre = state.mu * min((after / self.pairs / state.mu) ** 3, 1.0)
        move = system.direction(
            centre - guess.z * guess.low,
            np.where(self.finite, centre - guess.room * guess.high, 0.0),
        )
        # the Hessian couples both sides: one common length keeps the residual shrinking
        length = min(1.0, self.settings.boundary * self.longest(at, move))
        return _Point(
            at.z + length * move.z,
            at.room + length * move.room,
            at.low + length * move.low,
            at.high + length * move.high,
            at.b + length * move.b,
        )

    def longest(self, at: _Point, move: _Point) -> float:
        """How far along ``move`` everything stays positive, at most just past a full step."""
        pairs = [
            (at.z, move.z),
            (at.low, move.low),
            (at.room[self.finite], move.room[self.finite]),
            (at.high[self.finite], move.high[self.finite]),
        ]
        most = 1.0 / self.settings.boundary
        return min(most, *(_longest(value, step, most) for value, step in pairs))

    def snapped(self, at: _Point) -> Array:
        """β with the variables put to 0 or a bound whose multiplier says so."""
        snap, near = self.settings.snap, self.settings.near
        z = at.z
        at_zero = z < at.low * float(z.mean() / at.low.mean()) * snap
        at_bound = at.room < snap * at.high * z.mean() / max(float(at.high.mean()), 1e-300)
        z = np.where(at_zero & (z < near * z.max()), 0.0, z)
        reached = self.finite & at_bound & (at.room < near * self.bound)
        return self.beta(np.where(reached, self.bound, z))


class _System:
    """Newton's equations at a point, reduced to K + diagonal and factorised once."""

    def __init__(self, program: _Program, at: _Point, state: _State) -> None:
        self.program, self.at, self.state = program, at, state
        self.diagonal = program.ridge + at.low / at.z + at.high / at.room
        self.elastic = program.combine(1.0 / self.diagonal)
        if not np.isfinite(self.elastic).all() or not np.isfinite(self.diagonal).all():
            raise LinAlgError("the barrier has overflowed")
        matrix = copy_symmetric(program.K)
        np.einsum("ii->i", matrix)[:] += 1.0 / np.maximum(self.elastic, 1e-300)
        self.factor = cholesky(matrix)
        self.ones = None
        if program.total is not None:
            self.ones = cholesky_solve(self.factor, np.ones(len(program.linear)))

    def direction(self, target_low: Array, target_high: Array) -> _Point:
        """The step towards z·low = target_low, room·high = target_high."""
        program, at = self.program, self.at
        pull_low = target_low / at.z - at.low
        pull_high = target_high / at.room - at.high
        right = -self.state.dual_residual + pull_low - pull_high
        pushed = program.combine(program.sign * right / self.diagonal)
        dbeta = cholesky_solve(self.factor, pushed / self.elastic)
        db = 0.0
        if self.ones is not None:
            db = float((dbeta.sum() + self.state.sum_residual) / self.ones.sum())
            dbeta -= db * self.ones
        dfitted = (pushed - dbeta) / self.elastic  # = K dbeta + db
        dz = (right - program.sign * dfitted[program.index]) / self.diagonal
        droom = np.where(program.finite, -dz, 0.0)
        return _Point(
            dz,
            droom,
            pull_low - at.low * dz / at.z,
            np.where(program.finite, pull_high - at.high * droom / at.room, 0.0),
            db,
        )


def _longest(value: Array, step: Array, most: float) -> float:
    """How far value + t·step stays positive, at most so far."""
    falling = step < 0
    if not falling.any():
        return most
    return float((-value[falling] / step[falling]).min())
