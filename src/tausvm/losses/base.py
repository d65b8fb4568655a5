"""What a loss is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from .terms import DualTerms

Array = NDArray[np.float64]


class Loss(ABC):
    """A convex loss of the residual r = y − f(x), cost 1.

    A new loss is a subclass with these methods and nothing else: solvers see only the
    five numbers of :meth:`dual_terms`. ``y`` matters to losses of labels (the hinge);
    losses of the residual alone ignore it.
    """

    @abstractmethod
    def value(self, residual: Array, y: Array | None = None) -> Array:
        """ℓ(r), elementwise."""

    @abstractmethod
    def conjugate(self, beta: Array, y: Array | None = None) -> Array:
        """ℓ*(β) = sup_r (rβ − ℓ(r)), +∞ outside its domain."""

    @abstractmethod
    def dual_terms(self, y: Array, cost: Array) -> DualTerms:
        """The terms gᵢ = (cᵢ ℓ)* of the dual, for costs cᵢ = C·wᵢ ≥ 0."""


def check_epsilon(epsilon: float) -> float:
    """ε as a float; a ValueError that names it otherwise."""
    if not isinstance(epsilon, Real) or not np.isfinite(epsilon) or epsilon < 0:
        raise ValueError(f"epsilon must be a finite number >= 0, got {epsilon!r}")
    return float(epsilon)


def check_tau(tau: float) -> float:
    """τ as a float; a ValueError that names it unless 0 < τ < 1."""
    if not isinstance(tau, Real) or not 0 < tau < 1:
        raise ValueError(f"tau must lie strictly between 0 and 1, got {tau!r}")
    return float(tau)


def excess(residual: Array, epsilon: float) -> Array:
    """sign(r)·max(|r| − ε, 0): what is left of a residual outside the ε-tube."""
    # + 0.0 turns −0 into 0
    return np.sign(residual) * np.maximum(np.abs(residual) - epsilon, 0.0) + 0.0


def reciprocal_cost(cost: Array) -> Array:
    """1/(2c), and 0 where c = 0: such a sample has both bounds at 0 instead."""
    positive = cost > 0
    with np.errstate(over="ignore"):
        return np.divide(0.5, cost, out=np.zeros_like(cost), where=positive)


def unbounded(cost: Array) -> Array:
    """∞, and 0 where c = 0."""
    return np.where(cost > 0, np.inf, 0.0)
