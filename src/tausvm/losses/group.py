"""The group ε-insensitive loss: several outputs a sample, left alone or paid for together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core.joint import group_response
from .base import Loss
from .terms import LOWER, RIDGE_MINUS, RIDGE_PLUS, UPPER, DualTerms

Array = NDArray[np.float64]

#: ridges above this are those of a cost that counts as 0
STEEPEST = 1e290


@dataclass(frozen=True)
class GroupTerms:
    """The terms of the joint dual, one group of p outputs a sample:

        hᵢ(a) = ε‖a‖₂ + Σⱼ gᵢⱼ(aⱼ),     a ∈ Rᵖ

    with gᵢⱼ the terms of a loss of one output without its kink. Their conjugates are the
    primal losses made insensitive to residuals of Euclidean length up to ε,

        hᵢ*(r) = inf over ‖u‖₂ ≤ ε of Σⱼ cᵢ ℓⱼ(rⱼ − uⱼ),

    a search for one number a sample, done to rounding. All of a sample's aⱼ are 0 at an
    optimum where its residual is shorter than ε.

    Parameters
    ----------
    outputs : DualTerms
        Numbers of shape (5, n, p), kink 0.
    epsilon : float
    """

    outputs: DualTerms
    epsilon: float

    @classmethod
    def build(cls, losses: Sequence[Loss], y: Array, cost: Array, epsilon: float) -> GroupTerms:
        """The terms of one loss an output, for targets (n, p) and costs (n,)."""
        with np.errstate(over="ignore", divide="ignore"):
            tables = [
                loss.dual_terms(np.ascontiguousarray(column), cost).numbers
                for loss, column in zip(losses, y.T, strict=True)
            ]
        numbers = np.ascontiguousarray(np.stack(tables, axis=2))
        # a side that costs next to nothing reaches nowhere, and its ridge would overflow
        for end, ridge in ((LOWER, RIDGE_MINUS), (UPPER, RIDGE_PLUS)):
            steep = numbers[ridge] > STEEPEST
            numbers[end][steep] = numbers[ridge][steep] = 0.0
        return cls(DualTerms(numbers), float(epsilon))

    @property
    def shape(self) -> tuple[int, int]:
        """n and p."""
        _, n, p = self.outputs.numbers.shape
        return n, p

    def in_units(self, scale: float) -> GroupTerms:
        """The terms for targets divided by ``scale``, objectives divided by its square."""
        return GroupTerms(self.outputs.in_units(scale), self.epsilon / scale)

    def widened(self, factor: float) -> GroupTerms:
        """The terms with all bounds multiplied: those of a C that has the unit of y."""
        return GroupTerms(self.outputs.widened(factor), self.epsilon)

    def costing(self, factor: float) -> GroupTerms:
        """The terms of a loss that costs so many times as much."""
        numbers = self.outputs.numbers.copy()
        numbers[[LOWER, UPPER]] *= factor
        numbers[[RIDGE_MINUS, RIDGE_PLUS]] /= factor
        return GroupTerms(DualTerms(numbers), self.epsilon)

    def reaches(self, size: float = 1.0) -> tuple[Array, Array]:
        """How far −αᵢⱼ and αᵢⱼ go for residuals of this size: to a bound or as ridges allow."""
        numbers = self.outputs.numbers
        with np.errstate(divide="ignore", over="ignore"):
            falls = np.minimum(-numbers[LOWER], size / numbers[RIDGE_MINUS])
            rises = np.minimum(numbers[UPPER], size / numbers[RIDGE_PLUS])
        return falls, rises

    @property
    def widest(self) -> float:
        """The largest |αᵢⱼ| that a residual of size 1 can ask for."""
        return float(max(side.max() for side in self.reaches()))

    def take(self, index: NDArray[np.int64]) -> GroupTerms:
        """The terms of some samples."""
        return GroupTerms(self.outputs.take(index), self.epsilon)

    def wider(self, slack: float) -> GroupTerms:
        """The terms of a loss that is insensitive to so much more."""
        return GroupTerms(self.outputs, self.epsilon + slack)

    def total_value(self, alpha: Array) -> float:
        """Σᵢ hᵢ(αᵢ) for α within its bounds."""
        lengths = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
        return float(self.epsilon * lengths.sum() + self.outputs.value(alpha).sum())

    def _respond(self, residual: Array, extra: Array) -> tuple[Array, Array]:
        response, shift = np.empty(residual.shape), np.empty(residual.shape)
        group_response(
            np.ascontiguousarray(residual, dtype=np.float64),
            self.outputs.numbers,
            extra,
            self.epsilon,
            response,
            shift,
        )
        return response, shift

    def response(self, residual: Array) -> Array:
        """argmax over a of ⟨a, rᵢ⟩ − hᵢ(a), shape (n, p): a subgradient of the loss."""
        return self._respond(residual, np.zeros(len(residual)))[0]

    def conjugate(self, residual: Array) -> Array:
        """The primal losses hᵢ*(rᵢ), shape (n,).

        Evaluated as Σⱼ cᵢ ℓⱼ(rⱼ − uⱼ) at the best u with ‖u‖ ≤ ε, so that rounding of u can
        only make them larger.
        """
        _, shift = self._respond(residual, np.zeros(len(residual)))
        losses: Array = self.outputs.conjugate(residual - shift).sum(axis=1)
        return losses

    def total_loss(self, y: Array, fitted: Array, intercept: Array) -> float:
        """Σᵢ hᵢ*(yᵢ − fᵢ − b)."""
        return float(self.conjugate(y - fitted - intercept).sum())

    def prox(self, z: Array, step: Array) -> Array:
        """argmin over a of hᵢ(a) + ‖a − zᵢ‖²/(2·stepᵢ), shape (n, p).

        Proposition 4 of the paper where the terms are boxes, Proposition 5 (with its own weight
        for each of the two terms) where they are asymmetric squares.
        """
        return self._respond(z / step[:, None], 1.0 / step)[0]

    def violation(
        self, alpha: Array, y: Array, fitted: Array, intercept: Array, offset: bool
    ) -> float:
        """How far the residuals y − f − b are from the subgradients of h at α, in any entry.

        A residual shorter than ε is right for αᵢ = 0; elsewhere the entry
        rⱼ − εαⱼ/‖α‖ − ridge·αⱼ must be 0 inside the bounds, and point outwards at them.
        """
        terms, residual = self.outputs, y - fitted - intercept
        lengths = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
        zero = lengths == 0
        unit = alpha / np.where(zero, 1.0, lengths)[:, None]
        slope = residual - self.epsilon * unit - terms.ridge(alpha) * alpha
        slope = np.where(alpha >= terms.upper, np.minimum(slope, 0.0), slope)
        slope = np.where(alpha <= terms.lower, np.maximum(slope, 0.0), slope)
        worst = np.abs(slope[~zero]).max(initial=0.0)
        movable = np.where(residual > 0, terms.upper > 0, terms.lower < 0)
        pull = np.sqrt(np.square(np.where(movable, residual, 0.0)).sum(axis=1))
        return float(max(worst, (pull[zero] - self.epsilon).max(initial=0.0)))
