"""Newton's method from face to face of the dual: one linear system where the face is known.

A face says of every variable whether it is at a bound, at its kink or inside a smooth piece. On it
the dual is a quadratic, and its minimum solves

    K_FF δ_F + ridge_F δ_F + c = −(Kβ − y + g′(β))_F,   Σδ = 0          F the variables inside

A variable that leaves its piece there is put to the end that it passed, one at an end that pulls
inwards joins F, and the next system follows. Near a solution the face is that of the solution after
a few systems; where bounds do not bind, as with a large C, after the first one, from anywhere. Far
from one, faces may change more and more: then little or nothing is taken.

The first system takes a factor. Those after it differ by a few variables, and by as many columns of
work: see :class:`Systems`.

Where the way to the solution is too far for that, or K_FF singular, proximal steps have as short
ones as they need (:class:`ProximalFaces`):

    β⁺ = argmin_β  dual(β) + (σ/2)‖β − centre‖²,    centre ← β⁺,    σ ↓

Each is a problem of the same form: g gains a ridge σ, and y moves by σ·centre.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..losses.terms import RIDGE_MINUS, RIDGE_PLUS, DualTerms
from .linalg import LinAlgError, cholesky, cholesky_solve
from .monitor import Monitor
from .polishing import restore_sum
from .problem import Problem
from .working import Derivatives

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: bytes for every pair of variables inside their pieces: their matrix, and what it is filled from
BYTES_A_PAIR = 16.0


@dataclass(frozen=True)
class Faces:
    """The numbers of the method."""

    #: systems at most; those that arrive take one to ten
    systems: int = 30
    #: the share of its variables that the first system may turn, and what a system may turn as a
    #: share of the fewest before: attempts that turn more lead nowhere
    most: float = 0.35
    fall: float = 0.85
    #: systems in a row that may turn more than that where they take a few columns of work
    patience: int = 3
    #: factors of an attempt, for estimates of its cost: one, and what the other systems come to
    typical: float = 1.5
    #: an attempt is made where at most this share of the variables of a face are at an end and pull
    #: away from it: with 0.02 and 0.1 the geometric mean of 60 fits is 1 and 4 % longer, with 0
    #: cal_housing (2,500 rows, C = 100) takes 1.3 times as long
    pulling: float = 0.005
    #: a face is factorised anew where it differs from the factorised one by more than this share of
    #: its variables: a column of work costs 2m², a factor m³/3
    columns: float = 0.12
    #: the share of the gap that faces may leave and still count as progress
    worth: float = 0.5
    #: σ of the first proximal step, as a share of K's diagonal
    sigma: float = 1e-4
    #: what a step multiplies σ by at first; squared after a step of few systems, down to the
    #: steepest, and its root taken after one that failed
    sigma_fall: float = 0.1
    steepest: float = 0.01
    few_systems: int = 2
    #: proximal steps in a row that may fail
    failures: int = 1


@dataclass
class Face:
    """Where the variables are.

    Attributes
    ----------
    inside : bool array (n,)
        Those inside a smooth piece.
    sign : array (n,)
        +1 for pieces with β ≥ 0, −1 for those with β ≤ 0, where the kink or the ridge differs.
    beta : array (n,)
        The others at their ends, and a point of the pieces.
    slope : array (n,)
        Kβ − y.
    """

    inside: Mask
    sign: Array
    beta: Array
    slope: Array

    @classmethod
    def at(cls, problem: Problem, beta: Array, gradient: Array) -> Face:
        """That of a point, with the variables inside that pull away from their ends."""
        at = Derivatives.at(problem, beta, gradient)
        sign = np.where(beta != 0, np.sign(beta), np.where(at.up > at.offset, 1.0, -1.0))
        return cls(at.inside | at.pulling, sign, beta.copy(), gradient.copy())

    def ends(self, terms: DualTerms) -> tuple[Array, Array]:
        """The lower and the upper end of the pieces."""
        bent = (terms.kink > 0) | (terms.ridge_minus != terms.ridge_plus)
        low = np.where(bent & (self.sign > 0), np.maximum(terms.lower, 0.0), terms.lower)
        high = np.where(bent & (self.sign < 0), np.minimum(terms.upper, 0.0), terms.upper)
        return low, high

    def ridge(self, terms: DualTerms) -> Array:
        """That of each variable's piece."""
        return np.where(self.sign > 0, terms.ridge_plus, terms.ridge_minus)

    def minimise(self, problem: Problem, systems: Systems) -> float:
        """Go to the minimum of the face, in or beyond its pieces; returns the offset c."""
        terms, inside = problem.terms, np.flatnonzero(self.inside)
        if len(inside) == 0:
            raise LinAlgError("a face without a variable inside has no minimum to go to")
        ridge = self.ridge(terms)
        down = -(self.slope + self.sign * terms.kink + ridge * self.beta)[inside]
        if not problem.offset:
            step, offset = systems.solve(inside, ridge, down[:, None])[:, 0], 0.0
        else:
            right = np.column_stack([down, np.ones(len(inside))])
            solved = systems.solve(inside, ridge, right)
            offset = float((solved[:, 0].sum() + self.beta.sum()) / solved[:, 1].sum())
            step = solved[:, 0] - offset * solved[:, 1]
        if not np.isfinite(step).all():
            raise LinAlgError("the step has overflowed")
        self.move(problem, inside, self.beta[inside] + step)
        return offset

    def turn(self, problem: Problem, offset: float) -> int:
        """The face that the minimum of this one leads to; how many variables differ."""
        terms = problem.terms
        low, high = self.ends(terms)
        left = self.inside & ((self.beta < low) | (self.beta > high))
        # beyond 0 without a kink there is the other piece
        flip = left & (terms.kink == 0) & (self.beta > terms.lower) & (self.beta < terms.upper)
        gone = np.flatnonzero(left & ~flip)
        ends = np.where(self.beta[gone] < low[gone], low[gone], high[gone])
        settled = ~self.inside & (terms.upper > terms.lower)
        up = -self.slope - terms.slope_up(self.beta) > offset
        down = -self.slope - terms.slope_down(self.beta) < offset
        come = np.flatnonzero(settled & (up | down))
        self.move(problem, gone, ends)
        self.inside[gone] = False
        self.inside[come] = True
        at_zero = come[self.beta[come] == 0]
        self.sign[at_zero] = np.where(up[at_zero], 1.0, -1.0)
        self.sign[flip] *= -1.0
        return len(gone) + len(come) + int(np.count_nonzero(flip))

    def move(self, problem: Problem, index: Index, target: Array) -> None:
        """Set some variables, and Kβ − y by an exact product."""
        moved = np.zeros(problem.n)
        moved[index] = target - self.beta[index]
        self.slope += problem.operator.product(moved)
        self.beta[index] = target

    def project(self, problem: Problem) -> None:
        """Go to a feasible point nearby: of what rounding, or an end too early, left beyond."""
        feasible = np.clip(self.beta, *self.ends(problem.terms))
        if problem.offset:
            feasible = restore_sum(problem.terms, feasible, 0.0)
        moved = np.flatnonzero(feasible != self.beta)
        self.move(problem, moved, feasible[moved])


class Systems:
    """Solves (K_FF + ridge_F) x = r for changing faces F, by the factor of one of them.

    Let B be the face that was factorised, A the variables that have come since and R those that
    have gone. With V = (K_BB + ridge_B)⁻¹ [K_BA, E_R], a column for each of them, x solves

        [ K_BB + ridge_B   K_BA             E_R ] [ x_B ]   [ r_B ]
        [ K_AB             K_AA + ridge_A    0  ] [ x_A ] = [ r_A ]         x_R = 0
        [ E_Rᵀ              0                0  ] [  λ  ]   [  0  ]

    by its Schur complement, of the order of the changes. A variable whose ridge has changed has
    both gone and come.
    """

    def __init__(self, problem: Problem, settings: Faces) -> None:
        self.problem = problem
        self.settings = settings
        #: the variables of B in order, and their ridges
        self.base: Index = np.empty(0, dtype=np.int64)
        self.ridge: Array = np.empty(0)

    @property
    def few_columns(self) -> float:
        """By how many variables a face may differ from the base and take no factor of its own."""
        return self.settings.columns * len(self.base)

    def solve(self, inside: Index, ridge: Array, right: Array) -> Array:
        """x for the variables inside; ``ridge`` has one for every variable, r any columns."""
        come, gone = self._changes(inside, ridge)
        if len(come) + len(gone) > self.few_columns:
            self._factorise(inside, ridge)
            return cholesky_solve(self.factor, right)
        count = right.shape[1]
        full = np.zeros((self.problem.n, count))
        full[inside] = right
        on_base = full[self.base]
        on_base[gone] = 0.0
        solved = cholesky_solve(self.factor, on_base)
        if len(come) + len(gone) > 0:
            V, K_come = self._columns(come, gone)
            schur = np.vstack([K_come.T @ V, V[gone]])
            schur *= -1.0
            among = self.problem.operator.block(come, come)
            schur[: len(come), : len(come)] += among + np.diag(ridge[come])
            rest = np.vstack([full[come] - K_come.T @ solved, -solved[gone]])
            correction = np.linalg.solve(schur, rest)
            solved -= V @ correction
            solved[gone] = 0.0
            full[come] = correction[: len(come)]
        kept = np.ones(len(self.base), dtype=bool)
        kept[gone] = False
        full[self.base[kept]] = solved[kept]
        return full[inside]

    def _changes(self, inside: Index, ridge: Array) -> tuple[Index, Index]:
        """Variables that have come since the factor, and places of the base that have gone."""
        member = np.zeros(self.problem.n, dtype=bool)
        member[inside] = True
        kept = member[self.base] & (ridge[self.base] == self.ridge)
        member[self.base[kept]] = False
        return np.flatnonzero(member), np.flatnonzero(~kept)

    def _factorise(self, inside: Index, ridge: Array) -> None:
        A = self.problem.operator.block(inside, inside).T
        np.einsum("ii->i", A)[:] += ridge[inside]
        self.factor = cholesky(A)
        self.base, self.ridge = inside, ridge[inside]
        #: the columns of V so far, by variable; and those of K_BA
        self.solved: dict[tuple[int, bool], Array] = {}
        self.kernel: dict[int, Array] = {}

    def _columns(self, come: Index, gone: Index) -> tuple[Array, Array]:
        """V and K_BA."""
        new_come = np.array([k for k in come.tolist() if k not in self.kernel], dtype=np.int64)
        new_gone = [k for k in gone.tolist() if (k, False) not in self.solved]
        right = np.zeros((len(self.base), len(new_come) + len(new_gone)), order="F")
        if len(new_come):
            right[:, : len(new_come)] = self.problem.operator.block(new_come, self.base).T
        right[new_gone, len(new_come) + np.arange(len(new_gone))] = 1.0
        for k, column in zip(new_come.tolist(), right.T, strict=False):
            self.kernel[k] = column
        keys = [(k, True) for k in new_come.tolist()] + [(k, False) for k in new_gone]
        if keys:
            self.solved |= zip(keys, cholesky_solve(self.factor, right).T, strict=True)
        wanted = [(k, True) for k in come.tolist()] + [(k, False) for k in gone.tolist()]
        V = np.column_stack([self.solved[key] for key in wanted])
        K_come = [self.kernel[k] for k in come.tolist()]
        return V, np.column_stack(K_come) if K_come else np.empty((len(self.base), 0))


def newton_on_faces(
    problem: Problem, beta: Array, gradient: Array, monitor: Monitor, settings: Faces
) -> bool:
    """Go to the minimum of the face that β leads to; whether the gap fell by much.

    Where faces do not come to an end, the nearest feasible point of the last one is taken if it has
    a smaller gap. Changes β and gradient, which has to be exact.
    Raises LinAlgError where K of a face is singular: its minimum may be anywhere.
    """
    face = Face.at(problem, beta, gradient)
    before = problem.gap_from(beta, gradient)
    follow(problem, face, monitor, settings)
    if monitor.out_of_time():
        return False
    face.project(problem)
    after = problem.gap_from(face.beta, face.slope)
    if not after < before:
        return False
    beta[:], gradient[:] = face.beta, face.slope
    return after <= settings.worth * before


def follow(problem: Problem, face: Face, monitor: Monitor, settings: Faces) -> int:
    """From face to face, each where the minimum of the one before leads to.

    How many systems that took; 0 where they did not come to an end.
    """
    systems = Systems(problem, settings)
    fewest = settings.most / settings.fall * int(np.count_nonzero(face.inside))
    left = settings.patience
    for taken in range(1, settings.systems + 1):
        if monitor.out_of_time():
            return 0
        changed = face.turn(problem, face.minimise(problem, systems))
        if changed == 0:
            return taken
        slow = changed > settings.fall * fewest
        left = left - 1 if slow else settings.patience
        if left < 0 or (slow and changed > systems.few_columns):
            return 0
        fewest = min(changed, fewest)
    return 0


class ProximalFaces:
    """Proximal steps, each to a minimum that faces lead to, with a σ that falls as they get on.

    Changes β and gradient, which has to be exact, and takes nothing that raises the gap.

    Attributes
    ----------
    gap : float
        The relative one at β.
    inside : int
        The order of the next step's first system.
    ended : bool
        Whether too many steps in a row have failed.
    """

    def __init__(
        self, problem: Problem, beta: Array, gradient: Array, monitor: Monitor, settings: Faces
    ) -> None:
        self.problem = problem
        self.beta, self.gradient = beta, gradient
        self.monitor = monitor
        self.settings = settings
        self.sigma = settings.sigma * float(problem.operator.diagonal.mean())
        self.sigma_fall = settings.sigma_fall
        self.gap = problem.gap_from(beta, gradient)
        self._failed = 0
        self._pose()

    @property
    def ended(self) -> bool:
        return self._failed > self.settings.failures

    def _pose(self) -> None:
        """The next step's problem, β its centre, and the face to begin with."""
        numbers = self.problem.terms.numbers.copy()
        numbers[[RIDGE_MINUS, RIDGE_PLUS]] += self.sigma
        self.pull = self.sigma * self.beta
        y, offset = self.problem.y + self.pull, self.problem.offset
        self.smoothed = Problem(self.problem.operator, y, DualTerms(numbers), offset)
        self.face = Face.at(self.smoothed, self.beta, self.gradient - self.pull)
        self.inside = int(np.count_nonzero(self.face.inside))

    def step(self) -> None:
        """One step; a larger σ where it failed, else a smaller one."""
        face, settings = self.face, self.settings
        try:
            systems = follow(self.smoothed, face, self.monitor, settings)
            face.project(self.smoothed)
            slope = face.slope + self.pull
            gap = self.problem.gap_from(face.beta, slope)
        except LinAlgError:
            systems, gap = 0, np.inf
        if gap < self.gap:
            self.beta[:], self.gradient[:], self.gap = face.beta, slope, gap
        if systems > 0 and gap <= self.gap:
            if systems <= settings.few_systems:
                self.sigma_fall = max(self.sigma_fall**2, settings.steepest)
            self.sigma *= self.sigma_fall
            self._failed = 0
        else:
            self.sigma_fall **= 0.5
            self.sigma /= self.sigma_fall
            self._failed += 1
        self._pose()
