"""A point of the interior-point method: α, b, the barriers, and a step from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...losses.group import GroupTerms
from ..linalg import LinAlgError
from .cones import LONGEST, Blocks, Bounds, Halves, barriers
from .settings import Cones
from .systems import System

Array = NDArray[np.float64]

#: in place of a centre to aim at: the first direction of a step has none
FIRST_GUESS = -1.0


class Iterate:
    """α, b and the barriers at one point of the way.

    Parameters
    ----------
    y : array (n, p)
    terms : GroupTerms
    offset : bool
    system : System
        Newton's equations, with the kernel matrix where there is one.
    cones : Cones
        The numbers of its steps.
    total : float
        What Σα must be, of every output, with offsets.
    """

    def __init__(
        self,
        y: Array,
        terms: GroupTerms,
        offset: bool,
        system: System,
        cones: Cones,
        total: float = 0.0,
    ) -> None:
        self.y, self.terms, self.system, self.cones = y, terms, system, cones
        self.total = total
        n, p = y.shape
        self.b = np.median(y, axis=0) if offset else np.zeros(p)
        size = float(np.abs(y - self.b).mean()) + 1e-3 * terms.epsilon
        begun = barriers(terms, max(size, 1e-300), cones)
        self.parts, self.alpha, self.ridge = begun.parts, begun.alpha, begun.ridge
        self.whole = sum(part.whole for part in self.parts)
        self.fitted = np.zeros((n, p))
        #: whether the equations are set up for this point
        self._ready = False
        if self.alpha.any():
            self._fit()

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
        self._set_up()
        right = -self.residual()
        missing = self.total - self.alpha.sum(axis=0)
        self._direction(right, missing, FIRST_GUESS)
        if self.parts and self.whole > 0:
            now = self.complementarity()
            after = sum(part.after(min(self._longest(), 1.0)) for part in self.parts)
            # nothing is left of it where all parts have met their corners to the last bit
            share = min(max(after / now, 0.0) ** 3, 1.0) if now > 0 else 0.0
            self._direction(right, missing, share * now / self.whole)
        length = min(1.0, self.cones.boundary * self._longest())
        self.alpha = self.alpha + length * self.dalpha
        self.b = self.b + length * self.db
        for part in self.parts:
            part.step(length)
        self._fit()
        self._ready = False

    def _set_up(self) -> None:
        """Newton's equations at this point."""
        if not self._ready:
            self.blocks = Blocks(self.parts, self.ridge.copy())
            self.system.set_up(self.blocks)
            self._ready = True

    def _fit(self) -> None:
        if self.system.operator is not None:
            self.fitted = self.system.operator.product(self.alpha)

    def _direction(self, right: Array, missing: Array, centre: float) -> None:
        equations = self.system.equations
        self.system.accuracy = equations.guess
        if centre != FIRST_GUESS or not self.parts:
            self.system.accuracy = equations.accuracy(self.relative_complementarity())
        pulled = right.copy()
        for part in self.parts:
            part.aim(centre, pulled)
        dalpha, self.db = self.system.solve(pulled, missing)
        self.dalpha = np.ascontiguousarray(dalpha)
        for part in self.parts:
            part.follow(self.dalpha)

    def _longest(self) -> float:
        return min([part.longest() for part in self.parts], default=LONGEST)

    def settled(self, caution: float = 1.0) -> tuple[Array, Array]:
        """The snapped α and b, with the other entries moved along.

        What is snapped moves by little, but f by as much everywhere: the other entries take that
        back in a step of Newton's, and the gap stays that of the point before. The step is pulled
        at the snapped entries until they move as they should, which takes few solves since they
        are stiff.
        """
        alpha = self.snapped(caution)
        moved = alpha - self.alpha
        if self.system.operator is None or not moved.any():
            return alpha, self.b
        fixed = moved != 0.0
        right, missing = np.zeros(moved.shape), self.total - self.alpha.sum(axis=0)
        step = np.zeros(moved.shape)
        with np.errstate(all="ignore"):
            try:
                self._set_up()
                self.system.accuracy = self.cones.pull_accuracy
                for _ in range(self.cones.pulls):
                    lacking = np.where(fixed, moved - step, 0.0)
                    right += np.where(fixed, self.blocks.times(lacking), 0.0)
                    step, db = self.system.solve(right, missing)
            except LinAlgError:
                return alpha, self.b
        if not (np.isfinite(step).all() and np.isfinite(db).all()):
            return alpha, self.b
        return np.where(fixed, alpha, self.alpha + step), self.b + db

    def snapped(self, caution: float = 1.0) -> Array:
        """α with rows put to 0 whose residual is shorter than ε, and entries to their bounds."""
        terms, vanishing = self.terms, caution * self.cones.vanishing
        upper, lower = terms.outputs.upper.ravel(), terms.outputs.lower.ravel()
        alpha = self.alpha.copy()
        flat = alpha.reshape(-1)
        for part in self.parts:
            if isinstance(part, Bounds):
                reached = part.reached(vanishing)
                flat[reached] = (upper if part.sign > 0 else lower)[reached]
            elif isinstance(part, Halves):
                high = part.entries[part.plus.reached(vanishing)]
                low = part.entries[part.minus.reached(vanishing)]
                flat[high], flat[low] = upper[high], lower[low]
                if self.terms.outputs.kink.any():
                    zero = part.plus.cleared(vanishing) & part.minus.cleared(vanishing)
                    flat[part.entries[zero]] = 0.0
        if terms.epsilon > 0:
            residual = self.y - self.fitted - self.b
            length = np.sqrt(np.einsum("ij,ij->i", residual, residual))
            sizes = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
            room = 1.0 - length / terms.epsilon
            alpha[sizes < caution * self.cones.small_row * room * sizes.max(initial=0.0)] = 0.0
        return alpha
