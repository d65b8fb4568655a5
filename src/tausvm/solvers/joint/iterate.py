"""A point of the interior-point method: α, b, the barriers, and a step from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...losses.group import GroupTerms
from ..linalg import LinAlgError
from .cones import BOUNDARY, LONGEST, Blocks, Bounds, Halves, barriers
from .systems import System

Array = NDArray[np.float64]

#: the centre to aim at for the first direction of a step
FIRST_GUESS = -1.0
#: a row settles at zero where its share of the longest is below this times the share of ε that
#: its residual leaves
SMALL = 1e-2


class Iterate:
    """α, b and the barriers at one point of the way.

    Parameters
    ----------
    y : array (n, p)
    terms : GroupTerms
    offset : bool
    system : System
        Newton's equations.
    product : callable or None
        α ↦ Kα; None where there is no kernel.
    """

    def __init__(
        self,
        y: Array,
        terms: GroupTerms,
        offset: bool,
        system: System,
        product: Callable[[Array], Array] | None,
    ) -> None:
        self.y, self.terms, self.system, self.product = y, terms, system, product
        n, p = y.shape
        self.b = np.median(y, axis=0) if offset else np.zeros(p)
        size = float(np.abs(y - self.b).mean()) + 1e-3 * terms.epsilon
        begun = barriers(terms, max(size, 1e-300))
        self.parts, self.alpha, self.ridge = begun.parts, begun.alpha, begun.ridge
        self.whole = sum(part.whole for part in self.parts)
        self.fitted = np.zeros((n, p))
        if product is not None and self.alpha.any():
            self.fitted = product(self.alpha)

    def residual(self) -> Array:
        """The derivative of the Lagrangian by α, 0 at an optimum."""
        total = self.fitted - self.y + self.b + self.ridge * self.alpha
        for part in self.parts:
            part.add_gradient(total)
        return total

    def complementarity(self) -> float:
        return sum(part.complementarity() for part in self.parts)

    def relative_complementarity(self) -> float:
        size = abs(float(np.vdot(self.alpha, self.y - self.b))) + float(
            np.vdot(self.alpha, self.fitted)
        )
        return self.complementarity() / max(size, 1e-300)

    def step(self) -> None:
        """One predictor-corrector step."""
        with np.errstate(all="ignore"):
            self._step()
        if not (np.isfinite(self.alpha).all() and np.isfinite(self.b).all()):
            raise LinAlgError("the step has overflowed")

    def _step(self) -> None:
        self.system.set_up(Blocks(self.parts, self.ridge.copy()))
        right = -self.residual()
        missing = -self.alpha.sum(axis=0)
        self._direction(right, missing, FIRST_GUESS)
        if self.parts:
            now = self.complementarity()
            after = sum(part.after(min(self._longest(), 1.0)) for part in self.parts)
            share = min(max(after / now, 0.0) ** 3, 1.0)
            self._direction(right, missing, share * now / self.whole)
        length = min(1.0, BOUNDARY * self._longest())
        self.alpha = self.alpha + length * self.dalpha
        self.b = self.b + length * self.db
        for part in self.parts:
            part.step(length)
        if self.product is not None:
            self.fitted = self.product(self.alpha)

    def _direction(self, right: Array, missing: Array, centre: float) -> None:
        pulled = right.copy()
        for part in self.parts:
            part.aim(centre, pulled)
        dalpha, self.db = self.system.solve(pulled, missing)
        self.dalpha = np.ascontiguousarray(dalpha)
        for part in self.parts:
            part.follow(self.dalpha)

    def _longest(self) -> float:
        return min([part.longest() for part in self.parts], default=LONGEST)

    def settled(self) -> Array:
        """α with rows put to 0 whose residual is shorter than ε, and entries to their bounds."""
        terms = self.terms
        upper, lower = terms.outputs.upper.ravel(), terms.outputs.lower.ravel()
        alpha = self.alpha.copy()
        flat = alpha.reshape(-1)
        for part in self.parts:
            if isinstance(part, Bounds):
                reached = part.reached()
                flat[reached] = (upper if part.sign > 0 else lower)[reached]
            elif isinstance(part, Halves):
                high, low = part.entries[part.plus.reached()], part.entries[part.minus.reached()]
                flat[high], flat[low] = upper[high], lower[low]
        if terms.epsilon > 0:
            residual = self.y - self.fitted - self.b
            length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            sizes = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
            room = 1.0 - length / terms.epsilon
            alpha[sizes < SMALL * room * sizes.max(initial=0.0)] = 0.0
        return alpha
