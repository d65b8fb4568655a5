"""Objectives in extended precision, with a bound on what float64 can know of them.

Nothing here is the library's: kernels, losses and projections are written down again, from the
formulas of its documentation, in ``np.longdouble``.

    primal   ½‖f‖² + Σᵢ cᵢ ℓ(yᵢ − f(xᵢ) − b)
    dual     yᵀβ − ½βᵀKβ − Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 with a free offset]

Every loss is two slopes a row, a tube and a power::

    ℓ(r) = slope·t^power at t = max(|r| − ε, 0), slope = rise for r > 0 and fall for r < 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

L = np.longdouble
Long = NDArray[np.longdouble]

#: unit roundoff of what the library computes in
EPS = L(2.0**-53)
#: what a sum of n products in float64 may be off by, in roundoffs of the sum of their sizes
SUM = L(8)
#: so many times that error must be exceeded before predictions are said to be others
DOUBT = L(100)
#: objectives below this share of the best constant's primal count as 0
NOTHING = L(1e-14)


def long(values: Any) -> Long:
    return np.asarray(values).astype(L)


# ---- kernels ----


@dataclass(frozen=True)
class Gram:
    """K, and per entry the size that roundoff of it in float64 is relative to."""

    values: Long
    size: Long

    def take(self, rows: NDArray[np.intp]) -> Gram:
        index = np.ix_(rows, rows)
        return Gram(self.values[index], self.size[index])

    def plus(self, constant: float) -> Gram:
        return Gram(self.values + L(constant), self.size + L(constant))


def products(A: Long) -> Gram:
    """⟨a, b⟩ of all rows."""
    return Gram(A @ A.T, np.abs(A) @ np.abs(A).T)


def gram(kernel: Any, rows: Any, given: Any, gamma: float, degree: int, coef0: float) -> Gram:
    """The matrix of the training rows."""
    if callable(kernel):
        values = long(kernel(rows, rows))
        return Gram(values, np.abs(values))
    if kernel == "precomputed":
        values = long(given)
        return Gram(values, np.abs(values))
    X = long(rows)
    if kernel in ("linear", "poly", "sigmoid"):
        inner = products(X)
        if kernel == "linear":
            return inner
        argument = L(gamma) * inner.values + L(coef0)
        size = L(gamma) * inner.size + abs(L(coef0))
        if kernel == "sigmoid":
            return Gram(np.tanh(argument), 1 + size)
        return Gram(argument**degree, (1 + degree) * size**degree)
    distance = np.zeros((len(X), len(X)), dtype=L)
    for column in X.T:
        difference = np.abs(column[:, None] - column[None, :])
        distance += difference if kernel == "laplacian" else difference**2
    if kernel == "exponential":
        distance = np.sqrt(distance)
    values = np.exp(-L(gamma) * distance)
    # d² is known to a few roundoffs of itself: differences of floats are
    return Gram(values, values * (1 + 4 * L(gamma) * distance))


def scale_gamma(rows: Any, weight: Long) -> float:
    """1 / (d · variance of all entries), rows counted by weight; 1 where they are all equal."""
    X = long(rows)
    total = weight.sum() * X.shape[1]
    mean = (weight @ X.sum(axis=1)) / total
    variance = (weight @ ((X - mean) ** 2).sum(axis=1)) / total
    constant = np.ptp(X) == 0
    return 1.0 if constant or variance == 0 else float(1 / (X.shape[1] * variance))


def standard_deviation(y: Any, weight: Long) -> Long:
    """Weighted, over all columns; 1 where y is constant."""
    Y = long(y).reshape(len(weight), -1)
    if np.ptp(Y, axis=0).max() == 0:
        return L(1)
    Y = Y - Y.min(axis=0)
    mean = weight @ Y / weight.sum()
    return np.sqrt((weight @ ((Y - mean) ** 2).mean(axis=1)) / weight.sum())


# ---- losses ----


@dataclass(frozen=True)
class Loss:
    """cᵢ ℓ of every row; ``rise`` and ``fall`` have the costs in them."""

    rise: Long
    fall: Long
    epsilon: Long
    power: int

    @classmethod
    def pinball(cls, tau: float, cost: Long, epsilon: float = 0.0, power: int = 1) -> Loss:
        return cls(L(tau) * cost, (1 - L(tau)) * cost, L(epsilon), power)

    @classmethod
    def tube(cls, cost: Long, epsilon: float, power: int) -> Loss:
        return cls(cost, cost, L(epsilon), power)

    @classmethod
    def hinge(cls, tau: float, signs: Long, cost: Long) -> Loss:
        zero = np.zeros_like(cost)
        rise = np.where(signs > 0, 2 * (1 - L(tau)) * cost, zero)
        fall = np.where(signs < 0, 2 * L(tau) * cost, zero)
        return cls(rise, fall, L(0), 1)

    def slope(self, r: Long) -> Long:
        return np.where(r > 0, self.rise, self.fall)

    def values(self, r: Long) -> Long:
        return self.slope(r) * np.maximum(np.abs(r) - self.epsilon, 0) ** self.power

    def wobble(self, r: Long, error: Long) -> Long:
        """How much the values can change when r does by up to ``error``."""
        up, down = self.values(r + error), self.values(r - error)
        here = self.values(r)
        return np.maximum(np.maximum(up - here, down - here), np.maximum(here - up, here - down))

    def bounds(self) -> tuple[Long, Long]:
        if self.power == 1:
            return -self.fall, self.rise
        unbounded = L(np.inf)
        return (
            np.where(self.fall > 0, -unbounded, L(0)),
            np.where(self.rise > 0, unbounded, L(0)),
        )

    def conjugate(self, beta: Long) -> Long:
        """gᵢ(βᵢ) for β within its bounds."""
        out = self.epsilon * np.abs(beta)
        if self.power == 2:
            slope = self.slope(beta)
            out = out + np.where(beta == 0, 0, beta**2 / (4 * np.where(slope > 0, slope, 1)))
        return out

    def best_constant(self, y: Long, offset: bool) -> Long:
        """About the smallest Σ cᵢ ℓ(yᵢ − b), never below it."""
        if not offset:
            return self.values(y).sum()
        candidates = np.unique(np.concatenate([y, y - self.epsilon, y + self.epsilon]))
        costs = np.array([self.values(y - b).sum() for b in candidates])
        if self.power == 1:
            return costs.min()
        low = candidates[max(costs.argmin() - 1, 0)]
        high = candidates[min(costs.argmin() + 1, len(candidates) - 1)]
        for _ in range(80):  # it is convex in b
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if self.values(y - left).sum() < self.values(y - right).sum():
                high = right
            else:
                low = left
        return self.values(y - low).sum()


def projected(beta: Long, lower: Long, upper: Long, offset: bool) -> Long:
    """β in its box, with sum zero where the offset is free."""
    beta = np.clip(beta, lower, upper)
    if not offset:
        return beta

    def moved(shift: Long) -> Long:
        return np.clip(beta - shift, lower, upper)

    total = beta.sum()
    if total == 0:
        return beta
    sign = np.sign(total)
    high = abs(total)  # far enough once every bound has been met
    for _ in range(200):
        if sign * moved(sign * high).sum() <= 0:
            break
        high *= 2
    low = L(0)
    for _ in range(120):
        middle = (low + high) / 2
        if sign * moved(sign * middle).sum() > 0:
            low = middle
        else:
            high = middle
    beta = moved(sign * high)
    room = np.minimum(upper - beta, beta - lower)
    beta[np.argmax(room)] -= beta.sum()
    return beta


def balanced(beta: Long, lower: Long, upper: Long, offset: bool) -> Long:
    """β in its box, with sum zero by shrinking the heavier side: what is 0 stays 0."""
    beta = np.clip(beta, lower, upper)
    if not offset:
        return beta
    up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if up == 0 or down == 0:
        return np.zeros_like(beta)
    beta = np.where(beta > 0, beta * min(down / up, L(1)), beta * min(up / down, L(1)))
    room = np.where(np.abs(beta) > 0, np.minimum(upper - beta, beta - lower), 0)
    beta[np.argmax(room)] -= beta.sum()
    return beta


#: ways to a feasible β: whichever gives the better bound counts
REPAIRS = (projected, balanced)


# ---- verdicts ----


@dataclass(frozen=True)
class Truth:
    """Both objectives, what float64 can know of their difference, and what counts as nothing."""

    primal: Long
    dual: Long
    unknown: Long
    nothing: Long
    #: how far predictions are from Kβ + b beyond rounding, as a share of the largest part of f
    strayed: float = 0.0

    @property
    def gap(self) -> float:
        """The relative gap that is beyond doubt."""
        if not np.isfinite(self.primal):
            return np.inf
        # an estimator's numbers are float64, in which what is below this may be 0
        if self.primal <= max(self.nothing, L(np.finfo(np.float64).tiny)):
            return 0.0
        scale = max(abs(self.primal), abs(self.dual))
        sure = self.primal - self.dual - self.unknown
        return float(sure / scale) if sure > 0 else 0.0

    @property
    def blur(self) -> float:
        """The doubt, relative as the gap is."""
        scale = max(abs(self.primal), abs(self.dual))
        return float(self.unknown / scale) if scale > 0 else 0.0


def straying(distance: Long, error: Long, size: Long) -> float:
    """How far predictions are from where they should be, beyond any doubt."""
    largest = size.max(initial=0)
    beyond = np.maximum(np.abs(distance) - DOUBT * error, 0).max()
    return float(beyond / largest) if largest > 0 else float(beyond)


def kernel_truth(
    K: Gram,
    y: Long,
    loss: Loss,
    offset: bool,
    beta: Long,
    intercept: Long,
    predicted: Long,
    interpolated: Long | None = None,
    dual_of: Long | None = None,
) -> Truth:
    """The truth of a kernel machine: f = Σ βᵢ k(xᵢ, ·), as its predictions have it.

    ``interpolated`` is what β was interpolated between: its roundoff is relative to that.
    ``dual_of`` are the dual variables where they are not β, as with landmarks.
    """
    fitted = K.values @ beta
    size = K.size @ np.abs(beta)
    primal = beta @ fitted / 2 + loss.values(y - predicted).sum()
    error = SUM * EPS * (size + abs(intercept) + np.abs(y))
    duals = beta if dual_of is None else dual_of
    dual, gain_size = max(
        dual_value(K, y, loss, offset, repair(duals, *loss.bounds(), offset)) for repair in REPAIRS
    )
    unknown = loss.wobble(y - predicted, error).sum()
    unknown += SUM * EPS * (np.abs(beta) @ size + loss.values(y - predicted).sum() + gain_size)
    if interpolated is not None:
        unknown += SUM * EPS * (interpolated @ np.abs(y - predicted))
        error = error + SUM * EPS * (K.size @ interpolated)
    strayed = straying(predicted - fitted - intercept, error, size)
    return Truth(primal, dual, unknown, NOTHING * loss.best_constant(y, offset), strayed)


def dual_value(K: Gram, y: Long, loss: Loss, offset: bool, beta: Long) -> tuple[Long, Long]:
    """The dual of a feasible β, and the size its roundoff is relative to."""
    centre = np.sort(y)[len(y) // 2] if offset else L(0)  # Σβ = 0: any shift of y is allowed
    z = y - centre
    conjugate = loss.conjugate(beta).sum()
    quadratic = beta @ (K.values @ beta) / 2
    size = np.abs(z) @ np.abs(beta) + conjugate
    return z @ beta - quadratic - conjugate, size


def linear_dual(Z: Long, y: Long, loss: Loss, free: bool, beta: Long) -> tuple[Long, Long]:
    """The dual of a feasible β by the weights of the features, and the size of its roundoff."""
    z = y - (np.sort(y)[len(y) // 2] if free else L(0))
    conjugate = loss.conjugate(beta).sum()
    weights, sizes = beta @ Z, np.abs(beta) @ np.abs(Z)
    size = np.abs(z) @ np.abs(beta) + conjugate
    size += np.abs(weights) @ sizes + SUM * EPS * (sizes @ sizes)
    return z @ beta - weights @ weights / 2 - conjugate, size


def linear_truth(
    X: Long,
    y: Long,
    loss: Loss,
    free: bool,
    column: float,
    beta: Long,
    coef: Long,
    intercept: Long,
    predicted: Long,
) -> Truth:
    """The truth of a linear machine, whose w and β need not belong together.

    ``column`` is the constant beside the features where the offset is penalised, else 0.
    """
    penalised = (intercept / L(column)) ** 2 if column else L(0)
    primal = (coef @ coef + penalised) / 2 + loss.values(y - predicted).sum()
    error = SUM * EPS * (np.abs(X) @ np.abs(coef) + abs(intercept) + np.abs(y))
    Z = np.column_stack([X, np.full(len(X), L(column))]) if column else X
    dual, gain_size = max(
        linear_dual(Z, y, loss, free, repair(beta, *loss.bounds(), free)) for repair in REPAIRS
    )
    losses = loss.values(y - predicted).sum()
    unknown = loss.wobble(y - predicted, error).sum()
    unknown += SUM * EPS * (coef @ coef + penalised + losses + gain_size)
    strayed = straying(predicted - X @ coef - intercept, error, np.abs(X) @ np.abs(coef))
    return Truth(primal, dual, unknown, NOTHING * loss.best_constant(y, free), strayed)


# ---- several outputs ----


@dataclass(frozen=True)
class GroupLoss:
    """inf over ‖u‖₂ ≤ ε of Σⱼ ℓⱼ(rⱼ − uⱼ); ``outputs`` has slopes (n, p) and no tube."""

    outputs: Loss
    epsilon: Long

    def values(self, r: Long) -> Long:
        return self.outputs.values(r - self.inside(r)).sum(axis=1)

    def inside(self, r: Long) -> Long:
        """The best u: it shrinks with a multiplier λ, found by bisection of its logarithm."""
        if self.epsilon == 0:
            return np.zeros_like(r)
        slope, size = self.outputs.slope(r), np.abs(r)
        length = np.sqrt((r**2).sum(axis=1))
        short = length <= self.epsilon

        def at(multiplier: Long) -> Long:
            if self.outputs.power == 1:
                with np.errstate(divide="ignore", over="ignore"):
                    return np.sign(r) * np.minimum(size, slope / multiplier[:, None])
            return 2 * slope * r / (2 * slope + multiplier[:, None])

        steepest = np.maximum(slope.max(axis=1), L(1e-4000))
        if self.outputs.power == 1:
            reference = steepest / self.epsilon
        else:
            reference = steepest * np.maximum(length / self.epsilon, 1)
        low = np.full(len(r), L(-400))
        high = np.full(len(r), L(400))
        for _ in range(110):
            middle = (low + high) / 2
            u = at(reference * np.exp2(middle))
            large = np.sqrt((u**2).sum(axis=1)) > self.epsilon
            low, high = np.where(large, middle, low), np.where(large, high, middle)
        u = at(reference * np.exp2(high))
        return np.where(short[:, None], r, u)

    def wobble(self, r: Long, error: Long) -> Long:
        """How much the values can change when entries of r do by up to ``error``."""
        if self.outputs.power == 1:
            return (np.maximum(self.outputs.rise, self.outputs.fall) * error).sum(axis=1)
        return self.outputs.wobble(r - self.inside(r), error).sum(axis=1)

    def conjugate(self, alpha: Long) -> Long:
        lengths = np.sqrt((alpha**2).sum(axis=1))
        return self.epsilon * lengths + self.outputs.conjugate(alpha).sum(axis=1)

    def best_constant(self, y: Long, offset: bool) -> Long:
        """An upper bound: the best constants of the single outputs, without the tube."""
        columns = []
        for j in range(y.shape[1]):
            one = Loss(self.outputs.rise[:, j], self.outputs.fall[:, j], L(0), self.outputs.power)
            columns.append(one.best_constant(y[:, j], offset))
        return sum(columns, L(0))


def joint_dual(
    K: Gram, B: Long, y: Long, loss: GroupLoss, offset: bool, alpha: Long
) -> tuple[Long, Long]:
    """The dual of a feasible α, and the size its roundoff is relative to."""
    z = y - (np.sort(y, axis=0)[len(y) // 2] if offset else L(0))
    conjugate = loss.conjugate(alpha).sum()
    quadratic = (alpha * (K.values @ alpha @ B)).sum() / 2
    size = (np.abs(z) * np.abs(alpha)).sum() + conjugate
    return (z * alpha).sum() - quadratic - conjugate, size


def joint_truth(
    K: Gram,
    B: Long,
    y: Long,
    loss: GroupLoss,
    offset: bool,
    alpha: Long,
    intercept: Long,
    predicted: Long,
) -> Truth:
    """The truth of a joint machine: f = Σ k(xᵢ, ·) Bαᵢ."""
    fitted = K.values @ alpha @ B
    size = K.size @ np.abs(alpha) @ np.abs(B)
    losses = loss.values(y - predicted).sum()
    primal = (alpha * fitted).sum() / 2 + losses
    error = SUM * EPS * (size + np.abs(intercept) + np.abs(y))
    columns = list(zip(alpha.T, *(bound.T for bound in loss.outputs.bounds()), strict=True))
    dual, gain_size = max(
        joint_dual(K, B, y, loss, offset, np.column_stack([repair(*c, offset) for c in columns]))
        for repair in REPAIRS
    )
    unknown = loss.wobble(y - predicted, error).sum()
    unknown += SUM * EPS * ((np.abs(alpha) * size).sum() + losses + gain_size)
    strayed = straying(predicted - fitted - intercept, error, size)
    return Truth(primal, dual, unknown, NOTHING * loss.best_constant(y, offset), strayed)
