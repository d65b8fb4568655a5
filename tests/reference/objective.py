"""The primal problem and its dual as the table of the design has them, in plain NumPy.

    primal   min_{f, b}  ½‖f‖² + Σᵢ cᵢ ℓ_ε(yᵢ − f(xᵢ) − b)
    dual     max_β  yᵀβ − ½ βᵀKβ − Σᵢ gᵢ(βᵢ)      [Σβᵢ = 0 when b is free]

Every loss is a power (1 or 2) of what is left of the residual outside ±ε, with a cost for
each side and sample. Nothing here comes from the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SideCosts:
    """rise·t^power above the tube, fall·|t|^power below it, per sample."""

    power: int
    rise: Array
    fall: Array
    epsilon: float

    def value(self, residual: Array) -> Array:
        above = np.maximum(residual - self.epsilon, 0.0) ** self.power
        below = np.maximum(-residual - self.epsilon, 0.0) ** self.power
        return self.rise * above + self.fall * below


def side_costs(
    name: str, y: Array, cost: Array, tau: float = 0.5, epsilon: float = 0.0
) -> SideCosts:
    """The losses of the design's table by name."""
    one = np.ones(len(y))
    match name:
        case "epsilon_insensitive":
            return SideCosts(1, cost * one, cost * one, epsilon)
        case "squared_epsilon_insensitive":
            return SideCosts(2, cost * one, cost * one, epsilon)
        case "pinball":
            return SideCosts(1, tau * cost * one, (1 - tau) * cost * one, epsilon)
        case "squared_pinball":
            return SideCosts(2, tau * cost * one, (1 - tau) * cost * one, epsilon)
        case "hinge":
            positive, negative = 2 * (1 - tau) * cost, 2 * tau * cost
            return SideCosts(1, np.where(y > 0, positive, 0.0), np.where(y < 0, negative, 0.0), 0.0)
    raise ValueError(name)


def primal_objective(K: Array, y: Array, costs: SideCosts, beta: Array, b: float) -> float:
    """½βᵀKβ + Σ cᵢ ℓ(yᵢ − (Kβ)ᵢ − b)."""
    fitted = K @ beta
    return float(0.5 * beta @ fitted + costs.value(y - fitted - b).sum())


def dual_objective(K: Array, y: Array, costs: SideCosts, beta: Array) -> float:
    """yᵀβ − ½βᵀKβ − Σ gᵢ(βᵢ), for β in the domain of g."""
    terms = costs.epsilon * np.abs(beta)
    if costs.power == 2:
        side = np.where(beta > 0, costs.rise, costs.fall)
        terms = terms + np.divide(beta**2, 4 * side, out=np.zeros(len(y)), where=side > 0)
    return float(y @ beta - 0.5 * beta @ (K @ beta) - terms.sum())
