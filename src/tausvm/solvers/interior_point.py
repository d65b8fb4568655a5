"""A primal-dual interior-point method for the dual on a dense matrix.

With β = p − m, 0 ≤ p ≤ upper, 0 ≤ m ≤ −lower, the dual is a quadratic program,

    min ½(p−m)ᵀK(p−m) − linearᵀ(p−m) + kinkᵀ(p+m) + ½ p·ridge₊·p + ½ m·ridge₋·m
    [Σ(p−m) = total]

Mehrotra's predictor-corrector steps need one Cholesky factor of K + diagonal each, and
some twenty steps end at a relative gap of 1e-10 whatever the conditioning: the way out
where coordinate steps crawl.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import DualTerms
from .linalg import LinAlgError, cholesky, cholesky_solve

Array = NDArray[np.float64]

STEPS = 60
#: from this error on, steps that may pass without halving it
CLOSE = 1e-5
PATIENCE = 3
#: what a solve usually takes, for the cost estimate
TYPICAL_STEPS = 18


def interior_point(
    K: Array, linear: Array, terms: DualTerms, total: float | None, tol: float = 1e-10
) -> Array:
    """The minimiser β of the dual with matrix K, to a relative complementarity of ``tol``.

    ``total`` is the value that Σβ must keep, None without an offset. Variables that end
    within rounding of zero or a bound are put there.
    """
    n = len(linear)
    movable = np.flatnonzero(terms.upper > terms.lower)
    if len(movable) < n:  # samples of cost 0 stay at 0
        beta = np.zeros(n)
        if len(movable) > 0:
            beta[movable] = interior_point(
                K[np.ix_(movable, movable)], linear[movable], terms.take(movable), total, tol
            )
        return beta
    sides = _Sides(terms)
    z = sides.start(linear, K)
    scale = max(float(np.abs(linear).max()), float(terms.kink.max()), 1e-300)
    low = np.full(len(z), scale)  # multipliers of z ≥ 0
    high = np.where(sides.finite, scale, 0.0)  # and of z ≤ bound
    b = 0.0
    # updated beside z: bound − z would round to 0 where z comes close
    room = np.where(sides.finite, sides.bound - z, 1.0)
    fitted = K @ sides.beta(z, n)
    best, best_error, stalled = (z, room, low, high), np.inf, 0
    for _ in range(STEPS):
        beta = sides.beta(z, n)
        dual_residual = (
            sides.sign * (fitted - linear + b)[sides.index]
            + sides.kink
            + sides.ridge * z
            - low
            + high
        )
        sum_residual = 0.0 if total is None else float(beta.sum()) - total
        pairs = len(z) + int(sides.finite.sum())
        mu = float(z @ low + (room * high)[sides.finite].sum()) / pairs
        size = abs(float(beta @ linear)) + float(beta @ fitted) + 1e-300
        infeasible = max(
            float(np.abs(dual_residual).max()) / scale, abs(sum_residual) / float(z.sum())
        )
        error = max(mu * pairs / size, infeasible)
        stalled = stalled + 1 if 0.5 * best_error <= error and best_error < CLOSE else 0
        if error < best_error:
            best, best_error = (z, room, low, high), error
        if mu * pairs <= tol * size and infeasible <= 1e-9:
            break
        if stalled > PATIENCE:  # rounding rules: what follows only gets worse
            break
        diagonal = sides.ridge + low / z + high / room
        elastic = sides.combine(1.0 / diagonal, n)
        if not np.isfinite(elastic).all() or not np.isfinite(diagonal).all():
            break
        matrix = np.array(K, order="F")
        np.einsum("ii->i", matrix)[:] += 1.0 / np.maximum(elastic, 1e-300)
        try:
            factor = cholesky(matrix)
        except LinAlgError:
            break
        ones = cholesky_solve(factor, np.ones(n)) if total is not None else None

        def direction(
            target_low: Array, target_high: Array
        ) -> tuple[Array, Array, Array, float, Array]:
            """Newton's step towards z·low = target_low, room·high = target_high."""
            rhs = -dual_residual + target_low / z - low - (target_high / room - high)  # noqa: B023
            pushed = sides.combine(sides.sign * rhs / diagonal, n)  # noqa: B023
            dbeta = cholesky_solve(factor, pushed / elastic)  # noqa: B023
            db = 0.0
            if ones is not None:  # noqa: B023
                db = float((dbeta.sum() + sum_residual) / ones.sum())  # noqa: B023
                dbeta -= db * ones  # noqa: B023
            dfitted = (pushed - dbeta) / elastic - db  # noqa: B023
            dz = (rhs - sides.sign * (dfitted + db)[sides.index]) / diagonal  # noqa: B023
            dlow = target_low / z - low - low * dz / z  # noqa: B023
            dhigh = np.where(  # noqa: B023
                sides.finite, target_high / room - high + high * dz / room, 0.0  # noqa: B023
            )
            return dz, dlow, dhigh, db, dfitted

        zero = np.zeros(len(z))
        dz, dlow, dhigh, _, _ = direction(zero, zero)
        length = min(
            _longest(z, dz),
            _longest(low, dlow),
            sides.longest(room, -dz),
            sides.longest(high, dhigh),
        )
        after = float(
            (z + length * dz) @ (low + length * dlow)
            + ((room - length * dz) * (high + length * dhigh))[sides.finite].sum()
        )
        centre = mu * min((after / pairs / mu) ** 3, 1.0)
        dz, dlow, dhigh, db, dfitted = direction(
            centre - dz * dlow, np.where(sides.finite, centre + dz * dhigh, 0.0)
        )
        primal_length = 0.995 * min(_longest(z, dz), sides.longest(room, -dz))
        dual_length = 0.995 * min(_longest(low, dlow), sides.longest(high, dhigh))
        # the Hessian couples both sides: one common length keeps the residual shrinking
        length = min(1.0, primal_length, dual_length)
        z = z + length * dz
        room = np.where(sides.finite, room - length * dz, 1.0)
        low = low + length * dlow
        high = high + length * dhigh
        b += length * db
        fitted = K @ sides.beta(z, n)
    z, room, low, high = best
    at_zero = z < low * float(z.mean() / low.mean()) * 1e-3
    at_bound = sides.finite & (room < 1e-3 * high * z.mean() / max(high.mean(), 1e-300))
    z = np.where(at_zero & (z < 1e-5 * z.max()), 0.0, z)
    z = np.where(at_bound & (room < 1e-5 * sides.bound), sides.bound, z)
    return sides.beta(z, n)


def _longest(value: Array, step: Array) -> float:
    """How far value + t·step stays positive, at most 1/0.995 of the way."""
    falling = step < 0
    if not falling.any():
        return 1.0 / 0.995
    return min(float((-value[falling] / step[falling]).min()), 1.0 / 0.995)


class _Sides:
    """p and m as one vector z ≥ 0 of the sides that have room."""

    def __init__(self, terms: DualTerms) -> None:
        plus = np.flatnonzero(terms.upper > 0)
        minus = np.flatnonzero(terms.lower < 0)
        self.index = np.concatenate([plus, minus])
        self.sign = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
        self.bound = np.concatenate([terms.upper[plus], -terms.lower[minus]])
        self.finite = np.isfinite(self.bound)
        self.kink = terms.kink[self.index]
        self.ridge = np.concatenate([terms.ridge_plus[plus], terms.ridge_minus[minus]])

    def start(self, linear: Array, K: Array) -> Array:
        reach = float(np.abs(linear).max()) / max(float(np.diagonal(K).mean()), 1e-12)
        reach = min(max(reach, 1e-6), 1e6)
        return np.where(self.finite, 0.5 * np.where(self.finite, self.bound, 1.0), reach)

    def combine(self, values: Array, n: int) -> Array:
        return np.bincount(self.index, weights=values, minlength=n)

    def beta(self, z: Array, n: int) -> Array:
        return self.combine(self.sign * z, n)

    def longest(self, value: Array, step: Array) -> float:
        """How far the sides with a bound keep value + t·step positive."""
        return _longest(value[self.finite], step[self.finite])
