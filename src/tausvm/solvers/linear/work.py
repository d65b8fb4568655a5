"""What a solve is expected to cost, by the shape and the stiffness of its problem.

Estimates are in nanoseconds of one processor; ``auto`` uses nothing of them but their ratios, so
that what it does depends on the problem alone and never on the clock. All numbers are fits to 800
random shapes (:mod:`benchmarks.linear_shapes`, seeds 50 to 80, tol 1e-4). In these the
interior-point method took 0.6 to 1.55 times what is foretold (5 to 95 % of the shapes), Newton's
method a third to three times, coordinate descent a fifth to five times: what those two do is
watched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ...operators import LinearOperator, Tally
from ..problem import EPS, Problem
from .systems import Systems, direct_operations


@dataclass(frozen=True)
class Growth:
    """Steps as a product of powers.

    They are base · (d/n)^wide · stiffness^(stiff + tube·min(1, d/n)), the last where there is a
    tube: the rows within it are found one after the other.
    """

    base: float
    wide: float
    stiff: float
    tube: float


@dataclass(frozen=True)
class Prices:
    """Nanoseconds of what solvers do, for dense rows or for sparse ones."""

    #: an entry of X in a product, and in a pass of coordinate descent
    entry: float
    passed: float
    #: a pair of entries multiplied in products of rows, and in products of columns
    row_pair: float
    column_pair: float
    #: an entry of X, and one of their matrix, in setting up the products of rows
    gathered: float
    placed: float
    #: an entry of X in a step of the interior-point method, by rows and by columns
    by_rows: float
    by_columns: float
    #: an entry of the matrix of columns in such a step
    entry_of_columns: float
    #: usual steps of Newton's method with many features (:attr:`Systems.direct`): squared losses,
    #: and those with corners
    squared: Growth
    corners: Growth


@dataclass(frozen=True)
class Work:
    """The numbers behind the estimates: nanoseconds, and usual counts of steps."""

    dense: Prices = field(
        default_factory=lambda: Prices(
            entry=0.15,
            passed=0.22,
            row_pair=0.03,
            column_pair=0.03,
            gathered=1.2,
            placed=3.4,
            by_rows=0.25,
            by_columns=3.3,
            entry_of_columns=3.9,
            squared=Growth(8.7, -0.04, -0.01, 0.16),
            corners=Growth(26.0, -0.19, 0.01, 0.19),
        )
    )
    sparse: Prices = field(
        default_factory=lambda: Prices(
            entry=0.6,
            passed=1.05,
            row_pair=0.84,
            column_pair=0.66,
            gathered=60.0,
            placed=7.0,
            by_rows=1.2,
            by_columns=3.3,
            entry_of_columns=0.7,
            squared=Growth(7.4, 0.34, 0.10, 0.22),
            corners=Growth(36.0, 0.26, 0.27, 0.17),
        )
    )
    #: an operation of a factorisation
    operation: float = 0.03
    #: the rows that tell the mean ‖x‖²
    sample: int = 1000
    #: the stiffness that Newton's steps depend on lies between these
    least_stiffness: float = 1.0
    most_stiffness: float = 1e6

    #: a pass of coordinate descent, whatever the data, and a row in it
    one_pass: float = 30e3
    pass_row: float = 42.0
    #: what passes cost that another solver goes on from: their certificate, and a start from it
    hand_over: float = 250e3
    #: passes to a gap of 1e-4 are as a power of the condition of XXᵀ + D, by what is known of rows
    #: at random, with so many times less stiffness; so many for a condition of 1, of squared losses
    #: and of those with corners; so many times as many with a free offset
    squared_passes: float = 4.0
    corner_passes: float = 10.0
    conditioning: float = 1.4
    softness: float = 60.0
    offset_passes: float = 1.5

    #: a Newton step, whatever the data, and a row in it
    newton_step: float = 200e3
    newton_row: float = 48.0
    #: its products where the Hessian is a matrix or most steps end in a factorisation, and with
    #: conjugate gradients, for squared losses and for those with corners
    few_products: float = 4.0
    squared_products: float = 11.0
    corner_products: float = 8.0
    #: the share of the steps that factorise where many features are dense
    factorised: float = 0.75
    #: usual Newton steps with few features
    squared: Growth = Growth(6.1, 0.08, 0.01, 0.09)
    corners: Growth = Growth(29.0, 0.17, 0.04, 0.12)

    #: a step of the interior-point method, whatever the data, and a row in it, by columns and rows
    interior_step: float = 250e3
    interior_row: float = 140.0
    interior_row_by_rows: float = 300.0
    #: an operation of its factorisations, which are of larger matrices than those of Newton's
    interior_operation: float = 0.026
    #: its usual steps, with corners and with a squared loss, and those more where features are as
    #: many as rows
    interior_corners: float = 12.0
    interior_corners_wide: float = -5.6
    interior_squared: float = 4.0
    interior_squared_wide: float = 3.8


class Costs:
    """Estimates for one problem, in nanoseconds.

    Attributes
    ----------
    one_pass, hand_over : float
        A pass of coordinate descent, and what giving it up costs.
    passes : float
        Passes to a tolerance, usually.
    newton : float
        A solve by Newton's method.
    interior_point : float
        A solve by the interior-point method, infinite beyond an order of ``most``.
    smooth, few : bool
        Whether the loss has no corners, and the features are few.
    """

    def __init__(
        self, problem: Problem, work: Work, systems: Systems, most: int, tol: float
    ) -> None:
        rows, terms = problem.operator, problem.terms
        self.work, self.smooth, self.tube = work, terms.smooth, bool(terms.kink[0] > 0)
        self.prices = work.sparse if rows.sparse else work.dense
        n, d = problem.n, rows.n_features
        self.one_pass = work.one_pass + work.pass_row * n + self.prices.passed * rows.entries
        self.hand_over = work.hand_over + 2.0 * self.prices.entry * rows.entries
        self.stiffness = stiffness(problem, work.sample)
        self.passes = self._passes(n / d, problem.offset) * digits(tol) / 4.0
        self.few = d <= systems.direct
        self.newton = self._newton(rows)
        self.interior_point = self._interior_point(rows) if min(n, d) <= most else math.inf

    def _passes(self, tall: float, offset: bool) -> float:
        """Passes by the condition of XXᵀ + D, whose eigenvalues lie as those of random rows do."""
        work = self.work
        # beyond that float64 sees no ridge
        reach = min(self.stiffness / work.softness, 1.0 / EPS)
        root = math.sqrt(tall)
        condition = (1.0 + reach * (1.0 + root) ** 2) / (1.0 + reach * max(1.0 - root, 0.0) ** 2)
        base = work.squared_passes if self.smooth else work.corner_passes
        return base * condition**work.conditioning * (work.offset_passes if offset else 1.0)

    def _newton(self, rows: LinearOperator) -> float:
        work, prices = self.work, self.prices
        n, d = len(rows), rows.n_features
        growth = work if self.few else prices
        usual = growth.squared if self.smooth else growth.corners
        stiff = min(max(self.stiffness, work.least_stiffness), work.most_stiffness)
        power = usual.stiff + usual.tube * min(1.0, d / n) * self.tube
        products, operations = work.few_products, 0.0
        if self.few:
            operations = direct_operations(d)
        elif not rows.sparse:
            operations = work.factorised * min(n, d) ** 3 / 3.0
        else:
            products = work.squared_products if self.smooth else work.corner_products
        step = work.newton_step + work.newton_row * n + products * prices.entry * rows.entries
        step += work.operation * operations
        return step * usual.base * (d / n) ** usual.wide * stiff**power

    def _interior_point(self, rows: LinearOperator) -> float:
        work, prices = self.work, self.prices
        n, d, entries = len(rows), rows.n_features, rows.entries
        order, wide = min(n, d), min(1.0, d / n)
        steps = work.interior_corners + work.interior_corners_wide * wide
        if self.smooth:
            steps = work.interior_squared + work.interior_squared_wide * wide
        step = work.interior_step + work.interior_operation * order**3 / 3.0
        if n <= d:  # the matrix of the rows outlives a step, that of the features does not
            step += work.interior_row_by_rows * n + prices.by_rows * entries
            once = prices.gathered * entries + prices.row_pair * rows.pairs(True)
            return steps * step + once + prices.placed * order**2
        step += work.interior_row * n + prices.by_columns * entries
        step += prices.column_pair * rows.pairs(False) + prices.entry_of_columns * order**2
        return steps * step

    def spent(self, tally: Tally) -> float:
        """What a solver has taken that was counted."""
        work, prices = self.work, self.prices
        return (
            prices.entry * tally.entries
            + prices.column_pair * tally.pairs
            + work.operation * tally.operations
            + work.newton_row * tally.rows
            + work.newton_step * tally.steps
        )


def digits(tol: float) -> float:
    """The digits of a tolerance: 4 for 1e-4, no fewer than 1."""
    return max(1.0, -math.log10(tol)) if 0 < tol < 1 else 1.0


def stiffness(problem: Problem, sample: int) -> float:
    """How far the rows reach: ‖x‖² next to the loss, which is what makes a problem hard.

    Of squared losses that is the mean ‖x‖² over the ridge, 2C‖x‖² where both sides have the same
    cost; with corners C‖x‖² over the spread of the targets. Where it is below 1 a row hardly
    moves its own residual, and few passes are enough whatever else.
    """
    step = max(1, problem.n // sample)
    some = problem.operator.take(np.arange(0, problem.n, step))
    square = float(some.squares().mean()) + problem.column**2
    lower, upper, _, ridge_minus, ridge_plus = problem.terms.numbers[:, ::step]
    if problem.terms.smooth:
        ridge = 0.5 * float(ridge_minus.mean() + ridge_plus.mean())
        return square / ridge if ridge > 0 else math.inf
    ends = np.maximum(upper, -lower)
    ends = ends[np.isfinite(ends)]
    spread = float(problem.y[::step].std())
    return square * float(ends.mean()) / spread if spread > 0 and len(ends) else math.inf
