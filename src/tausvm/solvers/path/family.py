"""A family of problems, one for every τ: only their boxes differ.

min_β  ½ βᵀKβ − yᵀβ,   lower(τ) ≤ β ≤ upper(τ)   [Σβ = 0 when b is free]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...losses import DualTerms
from ...operators.products import Products
from ..onedim import best_offset, project_onto_sum
from ..problem import ROUNDING, Certificate, Point, Problem, certificate
from ..units import Units
from .box import MovingBox

Array = NDArray[np.float64]

#: differences of two objectives up to this share of their size are rounding: towards the ends of a
#: path the objectives vanish, and what rounding makes of residuals does not
DIFFERENCE = 1e-15
#: a sum of β up to this share of their sizes is the rounding of a sum that is zero
UNBALANCED = 1e-14
#: a β nearer to its bound than this share of the box is at it, as a violation counts
AT_BOUND = 1e-8


@dataclass
class PathProblem:
    """The dual problem of every τ.

    Parameters
    ----------
    products : Products
        The kernel matrix, with its constant where the offset is penalised.
    y : array (n,)
    box : MovingBox
    offset : bool
        Whether b is free, and so Σβ = 0.
    units : Units
        What y and the box were divided by and moved; results are taken back.
    """

    products: Products
    y: Array
    box: MovingBox
    offset: bool
    units: Units = field(default_factory=Units)

    @classmethod
    def posed(
        cls, products: Products, y: Array, box: MovingBox, offset: bool, units: Units
    ) -> PathProblem:
        """The problem of targets and a box in the user's units, posed in units of its own."""
        return cls(products, units.targets(y), box.times(1.0 / units.scale), offset, units)

    @property
    def n(self) -> int:
        return len(self.y)

    def terms(self, tau: float) -> DualTerms:
        """The loss at τ, as five numbers a sample."""
        lower, upper = np.minimum(self.box.lower(tau), 0.0), np.maximum(self.box.upper(tau), 0.0)
        return DualTerms.build(self.n, lower=lower, upper=upper)

    def at(self, tau: float) -> Problem:
        """The problem of one level."""
        return Problem(
            self.products, self.y, self.terms(tau), self.offset, units=self.units, size=self.size
        )

    @cached_property
    def size(self) -> float:
        """The size of objectives: the best constant's primal at τ = ½."""
        terms = self.terms(0.5)
        constant = best_offset(terms, self.y) if self.offset else 0.0
        return float(terms.conjugate(self.y - constant).sum())

    # ---- certificates ----

    def certificate(self, beta: Array, b: float, tau: float) -> Certificate:
        """The certificate at τ of the function of this β with this b."""
        point = Point.of(beta, b)
        if self.offset and abs(float(beta.sum())) > UNBALANCED * float(np.abs(beta).sum()):
            # no bound for a free offset: the nearest β that is one
            point = Point(self.feasible(beta, tau), beta, b)
        return certificate(self.at(tau), point)

    def gap(self, found: Certificate) -> float:
        """The relative gap of a certificate, without what is rounding."""
        return float(self.relative(np.array(found.primal - found.dual), np.array(found.dual)))

    def relative(self, difference: Array, dual: Array) -> Array:
        """primal − dual, as a share of the larger of both in size."""
        primal = dual + difference
        # what is not a number counts
        counts = ~((primal <= ROUNDING * self.size) | (difference <= DIFFERENCE * self.size))
        larger = np.maximum(np.abs(primal), np.abs(dual))
        return np.divide(difference, larger, out=np.zeros_like(difference), where=counts)

    def violation(self, beta: Array, fitted: Array, tau: float) -> float:
        """The largest gain of the dual's one-sided derivatives, 0 at an optimum. The walk's boxes
        are a little narrower than these: points at their bounds are at the bounds of these."""
        residual = self.y - fitted
        lower, upper = self.box.lower(tau), self.box.upper(tau)
        near = AT_BOUND * (upper - lower)
        up = residual[beta < upper - near].max(initial=-np.inf)
        down = residual[beta > lower + near].min(initial=np.inf)
        return max(float(up - down if self.offset else max(up, -down)), 0.0)

    # ---- points that are feasible, and their offsets ----

    def feasible(self, beta: Array, tau: float, box: MovingBox | None = None) -> Array:
        """The point of the dual's domain at τ nearest to β."""
        box = self.box if box is None else box
        lower, upper = box.lower(tau), box.upper(tau)
        upper = np.maximum(lower, upper)
        if not self.offset:
            return np.clip(beta, lower, upper)
        return project_onto_sum(beta, lower, upper, 0.0)

    @cached_property
    def rounds_offsets(self) -> bool:
        """Whether an offset in the user's units is rounded more than one in the problem's own."""
        return bool(self.units.shift != 0)

    def settled_offset(self, fitted: Array, b: float, tau: float) -> float:
        """The best offset for this f, unless b is as good.

        An offset of a walk is exact up to rounding of Σβ times the kernel's size; where C is
        huge that costs.
        """
        if not self.offset:
            return b
        terms = self.terms(tau)
        best = best_offset(terms, self.y - fitted)
        losses = [terms.conjugate(self.y - fitted - c).sum() for c in (b, best)]
        return best if losses[1] < losses[0] else b

    def closing_offset(self, tau: float) -> float:
        """The offset at τ = 0 or 1 where Σβ = 0 leaves β = 0 alone: no residual may cost."""
        costly = self.box.upper(tau) > 0
        if costly.any():
            return float(self.y[costly].max())
        return float(self.y[self.box.lower(tau) < 0].min())
