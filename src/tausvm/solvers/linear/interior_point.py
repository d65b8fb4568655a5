"""``interior_point``: some twenty steps whatever C, the scales of the features and the loss.

The steps are those of the kernel machines (:mod:`tausvm.solvers.joint`) with one level. Their
equations are those of XXᵀ plus a diagonal, which are of the order of the rows or, by
(XXᵀ + D)⁻¹ = D⁻¹ − D⁻¹X(I + XᵀD⁻¹X)⁻¹XᵀD⁻¹, of the features, whichever are fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...operators import LinearOperator
from ..barrier import one_sided
from ..joint.cones import Blocks
from ..joint.iterate import Iterate
from ..joint.settings import Cones, Equations
from ..joint.systems import System
from ..linalg import LinAlgError, cholesky_solve, lifted_cholesky
from ..monitor import Estimate, Monitor
from ..problem import Point, Problem
from ..result import SolverOptions, SolverResult, Status, relative_gap
from ..solver import Solver
from .steps import certifiable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearInteriorPoint(Solver):
    """Predictor-corrector steps on all rows, each with one factorisation.

    An iteration is a step. A start is kept where nothing better is found: the steps begin at the
    centre of all bounds.
    """

    name: ClassVar[str] = "interior_point"
    #: the largest order of the equations: a matrix and its factor take 400 MB
    most: int = 5000
    #: steps at most; fifteen to thirty are usual
    steps: int = 100
    #: steps in a row that may fail to halve the gap before the method gives up
    patience: int = 12
    cones: Cones = field(default_factory=Cones)
    equations: Equations = field(default_factory=Equations)

    def serves(self, problem: Problem) -> bool:
        """Whether the equations are small enough."""
        return min(problem.n, problem.operator.n_features) <= self.most

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        if not self.serves(problem):
            raise ValueError(
                f"solver='interior_point' needs at most {self.most} rows or features, got "
                f"{problem.n} rows and {problem.operator.n_features} features; use solver='auto'"
            )
        monitor = Monitor(problem, options, self.name)
        point = self.watched(problem, monitor)
        if start is not None and monitor.status is not Status.SOLVED and monitor.certifiable():
            monitor.certify(start)
        return monitor.result(point, monitor.n_iter)

    def watched(self, problem: Problem, monitor: Monitor) -> Point:
        """The last point of a solve under a monitor that may have been watching already."""
        point = problem.constant_point(monitor.out_of_time)
        with monitor:
            if not monitor.limited():
                point = self._walk(problem, monitor, point)
        return point

    def _walk(self, problem: Problem, monitor: Monitor, point: Point) -> Point:
        """Steps until the monitor says stop or rounding rules."""
        kind = RowSystem if problem.n <= problem.operator.n_features else FeatureSystem
        system = kind(problem, self.equations)
        y, terms = one_sided(problem.y, problem.terms)
        iterate = Iterate(y[:, None], terms, problem.offset, system, self.cones)
        best, failures = np.inf, 0
        for _ in range(self.steps):
            beta, b = iterate.alpha[:, 0], float(iterate.b[0])
            if problem.column > 0:
                b = problem.penalised_intercept(beta)
            own = None if problem.offset else b  # the best one where it is free
            primal = problem.primal_value(system.w, system.fitted, b)
            dual = problem.dual_value(beta, system.w)
            point = Point(problem.feasible(beta), system.w, own)
            estimate = Estimate(primal, dual, rounding=-np.inf)  # failures are counted here
            if relative_gap(primal, dual) <= monitor.options.tol:
                # β on its way to a bound belongs there, where that costs no more than it may
                settled = certifiable(problem, Point(iterate.snapped()[:, 0], system.w, own))
                if monitor.check(settled, monitor.n_iter, estimate):
                    return settled
            if monitor.check(point, monitor.n_iter, estimate):
                return point
            failures = failures + 1 if primal - dual > 0.5 * best else 0
            best = min(best, primal - dual) if primal > dual else best
            if failures > self.patience:
                break
            try:
                iterate.step()
            except LinAlgError:
                break
            monitor.n_iter += 1
        monitor.status = Status.NUMERICAL_ERROR
        return point


class LinearSystem(System):
    """Newton's equations of a linear machine, (XXᵀ + D) dα + db = R and Σdα = missing.

    ``w`` and ``fitted`` are those of the last α that was multiplied.
    """

    def __init__(self, problem: Problem, equations: Equations) -> None:
        super().__init__(equations)
        self.rows: LinearOperator = problem.operator
        self.offset, self.column = problem.offset, problem.column
        self.operator: Any = self
        self.w, self.fitted = np.zeros(self.rows.n_features), np.zeros(problem.n)

    def product(self, alpha: Array) -> Array:
        """XXᵀα, with the constant column's part where there is one."""
        beta = np.ascontiguousarray(alpha[:, 0])
        self.w = self.rows.function(beta)
        self.fitted = self.rows.values(self.w)
        return (self.fitted + self.column**2 * beta.sum())[:, None]


class RowSystem(LinearSystem):
    """By the inner products of the rows."""

    def __init__(self, problem: Problem, equations: Equations) -> None:
        super().__init__(problem, equations)
        self.whole = self.rows.inner_products(problem.n).T
        self.whole += self.column**2
        self.room = np.empty_like(self.whole)

    def set_up(self, blocks: Blocks) -> None:
        self.rows.pause()
        np.copyto(self.room, self.whole)
        np.einsum("ii->i", self.room)[:] += blocks.d[:, 0]
        self.factor = lifted_cholesky(self.room, self.equations.lift)
        if self.offset:
            self.flat = cholesky_solve(self.factor, np.ones(len(self.whole)))

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        x = cholesky_solve(self.factor, right[:, 0])
        db = np.zeros(1)
        if self.offset:
            db = (x.sum() - missing) / self.flat.sum()
            x = x - db * self.flat
        return x[:, None], db


class FeatureSystem(LinearSystem):
    """By the products of the features, with the offset or the constant column as one more.

    With u = Xᵀdα the equations are (I + XᵀD⁻¹X)u + XᵀD⁻¹1 db = XᵀD⁻¹R and
    1ᵀD⁻¹X u + 1ᵀD⁻¹1 db = 1ᵀD⁻¹R − missing, and dα = D⁻¹(R − Xu − db).
    """

    def set_up(self, blocks: Blocks) -> None:
        self.rows.pause()
        d = self.rows.n_features
        self.diagonal = blocks.d[:, 0].copy()
        self.inverse = 1.0 / self.diagonal
        constant = 1.0 if self.offset else self.column
        order = d + (constant > 0)
        whole = np.empty((order, order), order="F")
        whole[:d, :d] = self.rows.outer(self.inverse)
        np.einsum("ii->i", whole)[:d] += 1.0
        if constant > 0:
            whole[:d, d] = whole[d, :d] = constant * self.rows.function(self.inverse)
            whole[d, d] = constant**2 * self.inverse.sum() + (not self.offset)
        self.constant = constant
        self.factor = lifted_cholesky(whole, self.equations.lift)

    def _once(self, right: Array, missing: float) -> tuple[Array, float]:
        d = self.rows.n_features
        pushed = self.inverse * right
        known = self.rows.function(pushed)
        if self.constant > 0:
            known = np.append(known, self.constant * pushed.sum() - missing * self.offset)
        unknown = cholesky_solve(self.factor, known)
        rise = self.constant * float(unknown[d]) if self.constant > 0 else 0.0
        return self.inverse * (right - self.rows.values(unknown[:d]) - rise), rise

    def solve(self, right: Array, missing: Array) -> tuple[Array, Array]:
        flat, lacking = right[:, 0], float(missing[0])
        x, db = self._once(flat, lacking)
        # once more, for what rounding left
        own = self.rows.product(x) + self.diagonal * x
        own += db if self.offset else self.column**2 * x.sum()
        dx, more = self._once(flat - own, lacking - float(x.sum()))
        return (x + dx)[:, None], np.array([db + more if self.offset else 0.0])
