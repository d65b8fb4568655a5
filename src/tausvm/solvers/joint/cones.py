"""The barriers of the interior-point method: bounds, halves and norms.

Every part of Σ hᵢ is one of these. Each holds its own slacks and multipliers, adds its
curvature to the blocks Dᵢ of Newton's equations and its pull to their right side, and works
out its own step from the step in α. Pairs (slack, multiplier) ≥ 0 get Mehrotra's
predictor-corrector; second-order cones do too, in the scaling of Nesterov and Todd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...losses.group import GroupTerms

Array = NDArray[np.float64]

#: how much of the way to the boundary a step may go
BOUNDARY = 0.995
#: the longest step a direction may be followed, before BOUNDARY
LONGEST = 1.0 / BOUNDARY


@dataclass
class Blocks:
    """Dᵢ = diag(dᵢ) + shareᵢ·(I − 2wᵢwᵢᵀ/(1 + 2‖wᵢ‖²)), p×p and positive definite."""

    d: Array
    share: Array | None = None
    w: Array | None = None

    def matrices(self) -> Array:
        """Dᵢ, shape (n, p, p)."""
        n, p = self.d.shape
        out = np.zeros((n, p, p))
        index = np.arange(p)
        out[:, index, index] = self.d
        if self.share is not None and self.w is not None:
            out[:, index, index] += self.share[:, None]
            factor = 2.0 * self.share / (1.0 + 2.0 * np.einsum("ij,ij->i", self.w, self.w))
            out -= factor[:, None, None] * self.w[:, :, None] * self.w[:, None, :]
        return out

    def inverses(self) -> Array:
        """Dᵢ⁻¹ by Sherman and Morrison's formula, free of cancellation."""
        n, p = self.d.shape
        out = np.zeros((n, p, p))
        index = np.arange(p)
        if self.share is None or self.w is None:
            out[:, index, index] = 1.0 / self.d
            return out
        whole = self.d + self.share[:, None]
        inverse = 1.0 / whole
        out[:, index, index] = inverse
        scaled = self.w * inverse
        left = 1.0 + 2.0 * np.einsum("ij,ij->i", self.w * self.w, self.d * inverse)
        out += (2.0 * self.share / left)[:, None, None] * scaled[:, :, None] * scaled[:, None, :]
        return out


class Part(Protocol):
    """What the method asks of a barrier."""

    #: how many complementarity pairs it has
    degree: int

    def complementarity(self) -> float:
        """The sum of the products slack · multiplier."""
        ...

    def gradient(self) -> Array | float:
        """What its multipliers and ridges add to the derivative by α."""
        ...

    def prepare(self, blocks: Blocks) -> None:
        """Add its curvature to the blocks."""
        ...

    def aim(self, centre: float | None) -> Array | float:
        """Its pull on the right side, towards products of ``centre``; None for the first guess.

        With a number, the products of the last direction found are corrected for.
        """
        ...

    def follow(self, dalpha: Array) -> None:
        """Its own direction, from that of α."""
        ...

    def longest(self) -> float:
        """How far its direction can be followed."""
        ...

    def after(self, length: float) -> float:
        """The complementarity after a step of this length."""
        ...

    def step(self, length: float) -> None:
        """Go that far."""
        ...


class Pairs:
    """Slacks s ≥ 0 with multipliers z ≥ 0, elementwise."""

    def __init__(self, s: Array, z: Array) -> None:
        self.s, self.z = s, z
        self.ds = self.dz = np.zeros_like(s)
        self.pull = np.zeros_like(s)

    def aim(self, centre: float | None) -> Array:
        """The multiplier's pull in dz = pull − (z/s)·ds."""
        if centre is None:
            self.pull = -self.z
        else:
            self.pull = (centre - self.ds * self.dz) / self.s - self.z
        return self.pull

    def follow(self, ds: Array) -> None:
        self.ds = ds
        self.dz = self.pull - self.z / self.s * ds

    def longest(self) -> float:
        return min(_longest(self.s, self.ds), _longest(self.z, self.dz))

    def after(self, length: float) -> float:
        return float(np.vdot(self.s + length * self.ds, self.z + length * self.dz))

    def step(self, length: float) -> None:
        self.s = self.s + length * self.ds
        self.z = self.z + length * self.dz


class Box:
    """lower ≤ α ≤ upper, both finite, with a ridge."""

    def __init__(self, terms: GroupTerms, size: float) -> None:
        outputs = terms.outputs
        self.ridge = outputs.ridge_plus
        self.lower, self.upper = outputs.lower, outputs.upper
        self.alpha = np.zeros(terms.shape)
        ones = np.full(terms.shape, size)
        self.high = Pairs(outputs.upper.copy(), ones)
        self.low = Pairs(-outputs.lower, ones)
        self.degree = 2 * ones.size

    def complementarity(self) -> float:
        return self.high.after(0.0) + self.low.after(0.0)

    def gradient(self) -> Array:
        return self.ridge * self.alpha + self.high.z - self.low.z

    def prepare(self, blocks: Blocks) -> None:
        blocks.d = blocks.d + self.ridge + self.high.z / self.high.s + self.low.z / self.low.s

    def aim(self, centre: float | None) -> Array:
        return self.low.aim(centre) - self.high.aim(centre)

    def follow(self, dalpha: Array) -> None:
        self.dalpha = dalpha
        self.high.follow(-dalpha)
        self.low.follow(dalpha)

    def longest(self) -> float:
        return min(self.high.longest(), self.low.longest())

    def after(self, length: float) -> float:
        return self.high.after(length) + self.low.after(length)

    def step(self, length: float) -> None:
        self.alpha = self.alpha + length * self.dalpha
        self.high.step(length)
        self.low.step(length)


class Halves:
    """α = plus − minus, both ≥ 0, with a ridge of its own each."""

    def __init__(self, terms: GroupTerms, size: float) -> None:
        outputs = terms.outputs
        self.ridges = outputs.ridge_plus, outputs.ridge_minus
        reach = size / np.maximum(*self.ridges)
        ones = np.full(terms.shape, size)
        self.plus, self.minus = Pairs(reach, ones), Pairs(reach.copy(), ones)
        self.degree = 2 * ones.size
        self.gap = np.zeros(terms.shape)

    def _residuals(self) -> tuple[Array, Array]:
        """ridge·half − multiplier, which must be −G and G at an optimum."""
        return (
            self.ridges[0] * self.plus.s - self.plus.z,
            self.ridges[1] * self.minus.s - self.minus.z,
        )

    def complementarity(self) -> float:
        return self.plus.after(0.0) + self.minus.after(0.0)

    def gradient(self) -> Array:
        return self._residuals()[0]

    def prepare(self, blocks: Blocks) -> None:
        self.stiff = (
            self.ridges[0] + self.plus.z / self.plus.s,
            self.ridges[1] + self.minus.z / self.minus.s,
        )
        self.soft = 1.0 / self.stiff[0] + 1.0 / self.stiff[1]
        first, second = self._residuals()
        # the equation of the minus half, with the derivative taken from the plus half's
        self.gap = first + second
        blocks.d = blocks.d + 1.0 / self.soft

    def aim(self, centre: float | None) -> Array:
        self.pulls = self.plus.aim(centre), self.minus.aim(centre) - self.gap
        # plus: stiff₊ dp + dG = −G₀ + pull₊, minus: stiff₋ dm − dG = G₀ + pull₋ − gap
        whole: Array = (self.pulls[0] / self.stiff[0] - self.pulls[1] / self.stiff[1]) / self.soft
        return whole

    def follow(self, dalpha: Array) -> None:
        # the two equations added: stiff₊ dp + stiff₋ dm = pull₊ + pull₋, and dp − dm = dα
        both = self.pulls[0] + self.pulls[1]
        dminus = (both - self.stiff[0] * dalpha) / (self.stiff[0] + self.stiff[1])
        self.minus.follow(dminus)
        self.plus.follow(dminus + dalpha)

    def longest(self) -> float:
        return min(self.plus.longest(), self.minus.longest())

    def after(self, length: float) -> float:
        return self.plus.after(length) + self.minus.after(length)

    def step(self, length: float) -> None:
        self.plus.step(length)
        self.minus.step(length)


class Norms:
    """ε‖αᵢ‖: the cone tᵢ ≥ ‖αᵢ‖ with multipliers (ε, qᵢ), ‖qᵢ‖ ≤ ε."""

    def __init__(self, terms: GroupTerms, product: float) -> None:
        n, p = terms.shape
        self.epsilon = terms.epsilon
        self.t = np.full(n, product / self.epsilon)
        self.alpha = np.zeros((n, p))
        self.q = np.zeros((n, p))
        self.dt: Array = np.zeros(n)
        self.dq: Array = np.zeros((n, p))
        self.degree = n

    def complementarity(self) -> float:
        return float(self.epsilon * self.t.sum() + np.vdot(self.alpha, self.q))

    def gradient(self) -> Array:
        return -self.q

    def prepare(self, blocks: Blocks) -> None:
        det_s = _determinant(self.t, self.alpha)
        det_z = _determinant(np.full_like(self.t, self.epsilon), self.q)
        root_s, root_z = np.sqrt(det_s), np.sqrt(det_z)
        s0, s1 = self.t / root_s, self.alpha / root_s[:, None]
        z0, z1 = self.epsilon / root_z, self.q / root_z[:, None]
        gamma = np.sqrt(0.5 * (1.0 + s0 * z0 + _dot(s1, z1)))
        self.w1 = (s1 - z1) / (2.0 * gamma)[:, None]
        self.w0 = np.sqrt(1.0 + _dot(self.w1, self.w1))
        self.eta = np.sqrt(root_s / root_z)
        self.scaled = self._scale(np.full_like(self.t, self.epsilon), self.q)
        blocks.share, blocks.w = 1.0 / self.eta**2, self.w1

    def _scale(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """W x."""
        along = _dot(self.w1, x1)
        body = x1 + (x0 + along / (1.0 + self.w0))[:, None] * self.w1
        return self.eta * (self.w0 * x0 + along), self.eta[:, None] * body

    def _unscale(self, x0: Array, x1: Array) -> tuple[Array, Array]:
        """W⁻¹ x."""
        along = _dot(self.w1, x1)
        body = x1 + (along / (1.0 + self.w0) - x0)[:, None] * self.w1
        return (self.w0 * x0 - along) / self.eta, body / self.eta[:, None]

    def aim(self, centre: float | None) -> Array:
        if centre is None:
            first, rest = np.full_like(self.t, -self.epsilon), -self.q
        else:
            l0, l1 = self.scaled
            a0, a1 = self._unscale(self.dt, self.dalpha)
            c0, c1 = self._scale(np.zeros_like(self.t), self.dq)
            d0 = centre - l0**2 - _dot(l1, l1) - a0 * c0 - _dot(a1, c1)
            d1 = -2.0 * l0[:, None] * l1 - a0[:, None] * c1 - c0[:, None] * a1
            x0 = (l0 * d0 - _dot(l1, d1)) / _determinant(l0, l1)
            x1 = (d1 - x0[:, None] * l1) / l0[:, None]
            first, rest = self._unscale(x0, x1)
        # the cone's own variable t is eliminated
        self.tilt = 2.0 * self.w0 / (1.0 + 2.0 * _dot(self.w1, self.w1))
        self.first = first
        pull: Array = rest + (self.tilt * first)[:, None] * self.w1
        self.pull = pull
        return pull

    def follow(self, dalpha: Array) -> None:
        self.dalpha = dalpha
        along = _dot(self.w1, dalpha)
        stretch = 1.0 + 2.0 * _dot(self.w1, self.w1)
        self.dt = self.first * self.eta**2 / stretch + self.tilt * along
        bend = dalpha - (2.0 * along / stretch)[:, None] * self.w1
        self.dq = self.pull - bend / self.eta[:, None] ** 2

    def longest(self) -> float:
        constant = np.full_like(self.t, self.epsilon)
        return min(
            _longest_in_cone(self.t, self.alpha, self.dt, self.dalpha),
            _longest_in_cone(constant, self.q, np.zeros_like(self.t), self.dq),
        )

    def after(self, length: float) -> float:
        t = self.t + length * self.dt
        product = np.vdot(self.alpha + length * self.dalpha, self.q + length * self.dq)
        return float(self.epsilon * t.sum() + product)

    def step(self, length: float) -> None:
        self.t = self.t + length * self.dt
        self.alpha = self.alpha + length * self.dalpha
        self.q = self.q + length * self.dq


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->i", a, b)


def _determinant(x0: Array, x1: Array) -> Array:
    length = np.sqrt(_dot(x1, x1))
    # a point that rounding has put on the boundary stays a hair inside
    return np.maximum((x0 - length) * (x0 + length), 1e-30 * x0 * x0)


def _longest(value: Array, step: Array) -> float:
    """How far value + t·step stays positive."""
    with np.errstate(divide="ignore"):
        ratio = np.where(step < 0, -value / np.where(step < 0, step, -1.0), LONGEST)
    return min(float(ratio.min()), LONGEST)


def _longest_in_cone(x0: Array, x1: Array, d0: Array, d1: Array) -> float:
    """How far x + t·d stays in the second-order cone."""
    a = d0 * d0 - _dot(d1, d1)
    b = x0 * d0 - _dot(x1, d1)
    c = _determinant(x0, x1)
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    # the smaller positive root of a·t² + 2b·t + c, in the form without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(b < 0, c / (root - b), np.where(a < 0, -(b + root) / a, LONGEST))
    first = np.where((b * b - a * c < 0) | ~(first > 0), LONGEST, first)
    return min(float(first.min()), _longest(x0, d0))
