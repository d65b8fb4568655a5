"""What a solve is expected to cost, by the shape of its data.

Estimates are in nanoseconds of a processor of 2020; ``auto`` uses nothing of them but their ratios,
so that what it does depends on the problem alone and never on the clock. The interior-point method
is foretold to a factor of 1.5 (200 random shapes, :mod:`benchmarks.linear_shapes`), Newton's method
less surely: what it does is watched, and where it took longer it is given up for the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..problem import Problem
from .systems import Systems


@dataclass(frozen=True)
class Work:
    """The numbers behind the estimates: nanoseconds, and usual counts of steps."""

    #: an entry of X in a product, dense and sparse; a pass of coordinate descent is as four of them
    #: dense, and two and a half sparse
    dense_entry: float = 0.25
    sparse_entry: float = 1.0
    dense_pass: float = 4.0
    sparse_pass: float = 2.5
    #: an operation of a factorisation or of a product of dense matrices
    operation: float = 0.045
    #: a pair of entries in a product of sparse matrices
    pair: float = 1.0
    #: a pass of coordinate descent, whatever the data, and a row in it: the more rows, the more of
    #: what belongs to a row lies beyond the caches; half as much as can be at so many rows
    one_pass: float = 20e3
    pass_row: float = 30.0
    pass_row_far: float = 120.0
    far_rows: float = 40e3
    #: what passes cost that another solver goes on from: their certificate, and a start from it
    hand_over: float = 400e3
    #: a Newton step likewise, with its products, those of conjugate gradients counted apart
    newton_step: float = 200e3
    newton_row: float = 100.0
    newton_products: float = 3.0
    conjugate_products: float = 12.0
    #: likewise a step of the interior-point method
    interior_step: float = 300e3
    interior_row: float = 300.0
    interior_products: float = 8.0
    #: steps of the interior-point method: with corners; with a squared loss, and those more where
    #: rows are no more than features
    interior_corners: float = 12.0
    interior_squared: float = 4.0
    interior_wide: float = 6.0
    #: Newton steps with corners, those more where the Hessian is not a matrix, and those more that
    #: d/n asks for: the rows at a corner, some d of them, are found one after the other
    #: (10,000 × 10: 12 steps; 600 × 200: 150; 31,000 × 785: 100). The two last count by the share
    #: of the best constant's primal that the fit takes away: what is near to constant has little
    #: way to go, whatever the shape (14,631 × 1,225, C = 0.003, a third: 11 steps)
    newton_corners: float = 12.0
    newton_many: float = 48.0
    #: the share of those steps that, without the Hessian, end in a factorisation of the rows whose
    #: β lies between its bounds
    newton_factors: float = 0.25
    corners_wide: float = 400.0
    #: Newton steps with a squared loss, those more where rows are no more than features, and those
    #: that (d/n)² asks for where there is a tube
    newton_squared: float = 5.0
    squared_wide: float = 10.0
    tube_wide: float = 50.0


class Costs:
    """Estimates for one problem.

    Attributes
    ----------
    one_pass, hand_over : float
        A pass of coordinate descent, and what giving it up costs.
    newton_step, newton_least, newton_more : float
        A Newton step, the steps of a solve of what is near to constant, and those more of one that
        leaves nothing of the best constant's primal, in time. By which systems is for ``systems``
        to say.
    interior_point : float
        A solve by the interior-point method, infinite beyond an order of ``most``.
    factors : float
        What factorisations add to Newton's method where d of the rows are between bounds, or all.
    dearest_step : float
        A Newton step where conjugate gradients do not arrive, and all rows are factorised.
    """

    def __init__(self, problem: Problem, work: Work, systems: Systems, most: int) -> None:
        rows, terms = problem.operator, problem.terms
        n, d = problem.n, rows.n_features
        entry, passing = (
            (work.sparse_entry, work.sparse_pass)
            if rows.sparse
            else (work.dense_entry, work.dense_pass)
        )
        product = entry * rows.entries
        row = work.pass_row + work.pass_row_far * n / (n + work.far_rows)
        self.one_pass = work.one_pass + row * n + passing * product
        self.hand_over = work.hand_over + 2.0 * product
        pair = work.pair if rows.sparse else work.operation
        order = min(n, d)
        matrix = pair * rows.pairs(n <= d) if order <= most else math.inf
        factor = work.operation * order**3 / 3.0
        wide = min(1.0, d / n)

        steps = work.interior_corners
        if terms.smooth:
            steps = work.interior_squared + work.interior_wide * wide
        step = work.interior_step + work.interior_row * n + work.interior_products * product
        # the matrix of the rows outlives a step, that of the features does not
        self.interior_point = steps * (step + factor) + matrix * (1.0 if n <= d else steps)

        least = work.newton_corners
        steps = least + work.corners_wide * d / n
        if d > systems.direct:
            steps += work.newton_many
        if terms.smooth:
            steps = work.newton_squared + work.squared_wide * wide
            if terms.kink[0] > 0:
                steps += work.tube_wide * (d / n) ** 2
            least = steps
        step = work.newton_step + work.newton_row * n + work.newton_products * product
        if d <= systems.direct:
            step += work.operation * d**3 / 3.0
            step += pair * rows.pairs(False) / steps
        else:
            step += work.conjugate_products * product
        self.newton_step = step
        self.newton_least, self.newton_more = least * step, (steps - least) * step
        self.factors, self.dearest_step = 0.0, step
        if systems.direct < d and order <= systems.most_rows:
            if terms.smooth:
                self.dearest_step += factor
            else:
                self.factors = steps * work.newton_factors * factor
