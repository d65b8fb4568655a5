"""The numbers of the joint interior-point method."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cones:
    """Of the barriers, and of the steps between them."""

    #: how much of the way to the boundary a step may go
    boundary: float = 0.995
    #: a side that reaches less than this share of the widest one is closed: what it could add to
    #: f is far below rounding, and its barrier would overflow
    negligible_reach: float = 1e-60
    #: an ε below this share of the residuals is 0 to rounding
    negligible_epsilon: float = 1e-20
    #: a slack is on its way to 0 where it is below this share of its multiplier, both in units of
    #: what they were in the beginning
    vanishing: float = 1e-3
    #: a row is put to zero where its share of the longest is below this times the share of ε that
    #: its residual leaves
    small_row: float = 1e-2
    #: both times this where rows or entries were put there that do not belong there
    strict: float = 1e-2
    #: solves to move the other entries along with those that are put to 0 or to a bound
    pulls: int = 2
    #: and what these may leave of their right side, as a share of it
    pull_accuracy: float = 1e-8


@dataclass(frozen=True)
class Equations:
    """Of the ways to solve Newton's equations with np unknowns."""

    #: unknowns up to which the matrix is written out without looking at its rank; at 150 of them
    #: (mcycle, 3 levels) that saves a fifth of a solve
    few: int = 300
    #: unknowns up to which it is where its rank is not small; a small rank saves half of the time
    #: at 400 of them and four fifths at 700 (mcycle, engel), and preconditioners cost a third more
    #: than they save at 330
    plain: int = 600
    #: unknowns up to which it is for a general kernel, and where rounding stops all other ways
    dense: int = 2400
    #: unknowns up to which the directions of k ⊗ B may be factorised where truncated factors are
    #: too rough: 100 MB in float32, a second a step
    preconditioned: int = 5000
    #: and there the share of that work that factors, exact or truncated, may take: at 1 an exact
    #: factor takes 2 to 3 times as long as a truncated one (500 rows, nine levels)
    truncated: float = 0.25
    #: share of the trace that a factor may leave out and still count as exact
    exact: float = 1e-13
    #: exact products that a set of truncated equations may cost, within bounds of floating-point
    #: operations; without truncation the solves of 500 rows and 9 levels (BostonHousing) take
    #: 13 to 14 times as long
    products: int = 300
    least_work: float = 1e9
    most_work: float = 2e10
    #: what conjugate gradients reduce the residual to, relative to the right side: at most this
    residual: float = 1e-4
    #: at most this share of the relative complementarity, which a step divides by up to a hundred
    following: float = 1e-3
    #: for the first guess of a step, which only says where to aim
    guess: float = 1e-2
    #: and no less than rounding lets them
    rounding: float = 1e-13
    #: and how many steps they may take
    conjugate_steps: int = 200
    #: rounding may take a positive definite matrix a hair below: the largest share of its diagonal
    #: to add
    lift: float = 1e-11
    #: the largest share of a diagonal of 1 that a preconditioner may add to it for rounding
    most_lift: float = 1e-2
    #: a direction that K reaches with at most this share of its curvature is left to conjugate
    #: gradients, which take 5 steps where 0.1 takes 10 (500 rows, three levels)
    reached: float = 1e-3
    #: floating-point operations of a factorisation in the time of one of a product with a vector
    product_cost: float = 8.0
    #: whether written-out equations are solved once more for what rounding left
    refined: bool = True

    def work(self, n: int, p: int) -> float:
        """Floating-point operations that a set of truncated equations may take."""
        return min(max(self.products * 2.0 * n * n * p, self.least_work), self.most_work)

    def reduced_work(self, n: int, p: int) -> float:
        """Floating-point operations that reduced equations of k ⊗ B may take.

        Where its own directions can be factorised, in float32, they must be cheaper than that.
        """
        if n * p > self.preconditioned:
            return self.work(n, p)
        return min(self.work(n, p), self.truncated * (n * p) ** 3 / 6.0)

    def accuracy(self, complementarity: float) -> float:
        """What a solution may leave of the right side at this relative complementarity."""
        return min(self.residual, max(self.following * complementarity, self.rounding))

    def worth(self, factorisation: float, step: float) -> int:
        """Steps of conjugate gradients that take as long as a factorisation, in operations each."""
        return int(min(max(factorisation / (self.product_cost * step), 4.0), self.conjugate_steps))

    def written_out(self) -> Equations:
        """The same, without factors where the matrix may be written out."""
        return replace(self, few=self.dense)
