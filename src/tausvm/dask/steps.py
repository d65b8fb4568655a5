"""From one pass to the next: where a job goes by the sums over all rows.

A job asks for sums at a point, is told them, and asks again until its gap is small enough. Squared
losses take Newton steps (:class:`SmoothSteps`), losses with corners a problem of the same kind on
the rows near a corner (:class:`CornerSteps`). All numbers are in units of the targets' own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..solvers import Held, Point, Problem, SolverOptions, SolverResult, Status, solve
from ..solvers.domain import balanced
from ..solvers.linalg import conjugate_gradients
from ..solvers.linear import LinearNewton
from ..solvers.linear.systems import Model, bordered_step
from ..solvers.result import Progress, rank, relative_gap
from ..solvers.solver import Solver
from .settings import Plan
from .sums import Ask, Job, Look, Rows, Setting, Sums, responded

Array = NDArray[np.float64]

#: sums of one more ask at a point of a job: a pass
OnePass = Callable[[Ask], Sums]


class Sample:
    """The client's sample as one job sees it, without the fold left out.

    Parameters
    ----------
    setting : Setting
    rows : Rows
        The sample of all rows.
    n : int
        How many rows it stands for.
    job : Job
    """

    def __init__(self, setting: Setting, rows: Rows, n: int, job: Job) -> None:
        kept = rows.fold != job.fold
        self.setting, self.job = setting, job
        self.rows = rows if kept.all() else rows.take(kept)
        #: rows of the training set for each of the sample
        self.factor = n / len(rows)
        self.whole = len(rows) == n
        #: the sample alone, and in the place of all rows
        self.problem = setting.problem(self.rows, job)
        self.scaled = setting.problem(self.rows, job, self.factor)
        self.reaches = setting.reaches(self.problem.operator)

    def solve(self, solver: str | Solver, options: SolverOptions, start: Point | None) -> Point:
        """The solution in the place of all rows."""
        found = solve(self.scaled, solver, options, start)
        return Point(found.beta, found.function, float(found.intercept))

    def error(self, at: Point, solver: str | Solver, options: SolverOptions) -> float:
        """About how far predictions are from those of all rows: √ of the mean square.

        The difference of what the two halves of the sample say is twice that.
        """
        if self.whole:
            return 0.0
        half = len(self.rows) // 2
        parts = [self.rows.take(slice(None, half)), self.rows.take(slice(half, None))]
        points = []
        for part in parts:
            share = self.factor * len(self.rows) / len(part)
            problem = self.setting.problem(part, self.job, share)
            found = solve(
                problem,
                solver,
                options,
                Point(problem.feasible(np.zeros(problem.n)), at.function, at.intercept),
            )
            points.append((found.function, float(found.intercept)))
        (w, b), (v, a) = points
        return 0.5 * self.move(w - v, b - a)

    def move(self, w: Array, b: float) -> float:
        """√ of the mean square of xᵀw + b, each in units of its row's reach."""
        values = (self.problem.values(w) + b) / self.reaches
        return float(np.sqrt(np.mean(np.square(values))))

    def residual(self, w: Array, b: float) -> Array:
        out: Array = self.problem.y - self.problem.values(w) - b
        return out

    def distances(self, w: Array, b: float) -> Array:
        """How far the rows lie from a corner in units of their reach, in order."""
        terms = self.problem.terms
        return np.sort(np.abs(np.abs(self.residual(w, b)) - terms.kink) / self.reaches)


@dataclass
class Best:
    """The best point that was certified."""

    w: Array
    b: float
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    @property
    def rank(self) -> tuple[float, float]:
        return rank(self.gap, self.primal)


class Steps(ABC):
    """The way of one job from pass to pass."""

    name = ""

    def __init__(self, sample: Sample, start: Point, plan: Plan, options: SolverOptions) -> None:
        self.sample, self.plan, self.options = sample, plan, options
        self.setting, self.job = sample.setting, sample.job
        self.status = Status.MAX_ITER
        self.done = False
        self.best: Best | None = None
        #: the highest dual value known; that of β = 0 to begin with
        self.dual = 0.0
        self.trace: list[Progress] = []
        self.started = options.clock()
        self.w = start.function
        self.b = self._settled(float(start.intercept))

    @property
    def d(self) -> int:
        return len(self.w)

    @property
    def direct(self) -> bool:
        """Whether XᵀDX is a matrix."""
        return self.d <= self.plan.direct

    @abstractmethod
    def ask(self) -> Ask:
        """What the next pass is to bring."""

    @abstractmethod
    def told(self, sums: Sums, found: Look, one_pass: OnePass) -> None:
        """Go on by what it brought."""

    def _settled(self, b: float) -> float:
        """A b that predictions can have, rounded as it is in the user's units."""
        return float(self.setting.units.settled(b)) if self.setting.free else b

    @property
    def _bend(self) -> float:
        column = self.setting.column
        return 1.0 / column**2 if column > 0 else 0.0

    def _primal(self, loss: float) -> float:
        value = 0.5 * float(self.w @ self.w) + 0.5 * self._bend * self.b**2 + loss
        return self._rounded(value)

    def _dual(self, value: float, pulled: Array, total: float) -> float:
        """yᵀβ − Σ g(β) − ½‖Σβx‖², with the share of a penalised offset."""
        value -= 0.5 * float(pulled @ pulled) + 0.5 * (self.setting.column * total) ** 2
        return self._rounded(value)

    def _rounded(self, value: float) -> float:
        """0 for what rounding leaves of a perfect fit."""
        return 0.0 if abs(value) <= self.sample.scaled.negligible else value

    def _certified(self, primal: float, n_passes: int) -> bool:
        """Note the point with its primal and the best dual known; whether that is enough."""
        objective = self.setting.units.objective
        seconds = self.options.clock() - self.started
        self.trace.append(Progress(n_passes, seconds, objective(primal), objective(self.dual)))
        here = Best(self.w.copy(), self.b, primal, self.dual)
        if self.best is not None:
            self.best.dual = self.dual
        if self.best is None or here.rank < self.best.rank:
            self.best = here
        if self.best.gap <= self.options.tol:
            self.status, self.done = Status.SOLVED, True
        elif not np.isfinite(primal):
            self.status, self.done = Status.NUMERICAL_ERROR, True
        return self.done

    def _step(self, sums: Sums, pulled: Array, total: float) -> tuple[Array, float]:
        """Newton's step by the matrix of the sums."""
        assert sums.matrix is not None
        return bordered_step(sums.matrix.copy(), self._model(pulled, total))

    def _model(self, pulled: Array, total: float) -> Model:
        return Model(
            rows=self.sample.problem.operator,
            slope=np.empty(0),
            sigma=0.0,
            gradient=self.w - pulled,
            border=self.setting.free or self.setting.column > 0,
            offset_gradient=self._bend * self.b - total,
            bend=self._bend,
        )

    def result(self, n_passes: int) -> SolverResult:
        """The best point with its certificate, in the user's units; no β of n rows is kept."""
        assert self.best is not None
        units, best = self.setting.units, self.best
        return SolverResult(
            beta=np.empty(0),
            intercept=float(units.offset(best.b)) if self.setting.free else best.b * units.scale,
            fitted=np.empty(0),
            status=self.status,
            primal_objective=units.objective(best.primal),
            dual_objective=units.objective(best.dual),
            dual_gap=best.gap,
            kkt_violation=float("nan"),
            n_iter=n_passes,
            seconds=self.options.clock() - self.started,
            solver=self.name,
            trace=self.trace,
            function=units.coefficients(best.w),
        )


class SmoothSteps(Steps):
    """Newton's method for squared losses.

    The responses β of all rows at (w, b) are a dual point. Where b is free and Σβ is not yet 0,
    what is left of it is taken from the rows of the sample, whose β the client knows: the dual
    value that is told is that of a feasible point.
    """

    name = "newton on partitions"

    def __init__(self, sample: Sample, start: Point, plan: Plan, options: SolverOptions) -> None:
        super().__init__(sample, start, plan, options)
        #: where the step began, its primal and slope, and the step with its length
        self.base: tuple[Array, float, float, float] | None = None
        self.step, self.rise, self.length = np.zeros(self.d), 0.0, 0.0

    def ask(self) -> Ask:
        return Ask(self.job, self.w, self.b, matrix=self.direct)

    def told(self, sums: Sums, found: Look, one_pass: OnePass) -> None:
        primal = self._primal(sums.loss)
        self.dual = max(self.dual, self._feasible_dual(sums))
        if self._certified(primal, len(self.trace) + 2):
            return
        model = self._model(sums.pulled, sums.total)
        if self.base is not None and not primal < self.base[2]:
            self._shorten(model)
            return
        if self.direct:
            self.step, self.rise = self._step(sums, sums.pulled, sums.total)
        else:
            wanted = 0.25 * self.options.tol * abs(primal)
            self.step, self.rise = self._by_products(model, sums, wanted, one_pass)
        slope = float(model.gradient @ self.step) + model.offset_gradient * self.rise
        self.base, self.length = (self.w, self.b, primal, slope), 1.0
        self._move()

    def _move(self) -> None:
        assert self.base is not None
        self.w = self.base[0] + self.length * self.step
        self.b = self._settled(self.base[1] + self.length * self.rise)

    def _shorten(self, model: Model) -> None:
        """Back on the line, to where its slope would be 0 between the two known ones."""
        assert self.base is not None
        first = self.base[3]
        last = float(model.gradient @ self.step) + model.offset_gradient * self.rise
        share = first / (first - last) if last > first else 0.5
        self.length *= float(np.clip(share, 0.05, 0.7))
        if not (first < 0 and self.length > 1e-6):
            self.status, self.done = Status.NUMERICAL_ERROR, True
            return
        self._move()

    def _feasible_dual(self, sums: Sums) -> float:
        """The dual at the responses, with Σβ = 0 where b is free."""
        if not self.setting.free:
            return self._dual(sums.value, sums.pulled, sums.total)
        problem = self.sample.problem
        beta, _ = responded(problem, self.sample.residual(self.w, self.b))
        moved = balanced(problem.terms, beta, float(beta.sum()) - sums.total)
        value = float((moved - beta) @ problem.y)
        value += problem.terms.total_value(beta) - problem.terms.total_value(moved)
        pulled = sums.pulled + problem.operator.function(moved - beta)
        return self._dual(sums.value + value, pulled, 0.0)

    def _by_products(
        self, model: Model, sums: Sums, wanted: float, one_pass: OnePass
    ) -> tuple[Array, float]:
        """By conjugate gradients, a pass each, preconditioned by the diagonal of all rows.

        They end where the square of the gradient, twice the gap, is ``wanted``, or little is left.
        """
        d = self.d
        assert sums.product is not None
        diagonal = sums.product + np.append(np.ones(d), model.bend)
        border = model.border and diagonal[d] > 0
        if not border:
            diagonal[d] = 1.0

        def product(v: Array) -> Array:
            found = one_pass(Ask(self.job, self.w, self.b, product=v)).product
            assert found is not None
            out: Array = found + np.append(v[:d], model.bend * v[d])
            if not border:
                out[d] = 0.0
            return out

        right = np.append(-model.gradient, -model.offset_gradient if border else 0.0)
        target = max(self.plan.reduction**2 * float(right @ right), wanted)
        found, _ = conjugate_gradients(
            product,
            right,
            lambda residual: residual / diagonal,
            lambda residual, _: float(residual @ residual) <= target,
            self.plan.most_products,
        )
        return found[:d], float(found[d])


class CornerSteps(Steps):
    """Losses with corners: rows near one come to the client, the others are held.

    A row far from its corner has its β at a bound, or 0, for certain. With p = Σβx and h = Σβ of
    the rows held, the problem on the others is one of the same kind
    (:class:`~tausvm.solvers.Held`), and a dual point of it makes one of all rows. The next pass
    gives the primal at its solution, and so the gap, and the rows near a corner there.

    Where more rows would come than the client may hold, the point is improved first: by Newton's
    steps with the curvature of the loss smeared over the band.
    """

    name = "rows near corners"

    def __init__(
        self, sample: Sample, start: Point, plan: Plan, options: SolverOptions, error: float
    ) -> None:
        super().__init__(sample, start, plan, options)
        self.n = len(sample.rows) * sample.factor
        #: how far from a corner rows should take part, and how far they did in the last pass
        self.radius = self.taken = max(plan.width * error, self._least_radius())
        #: the best point so far with its primal, and the step away from it with its length
        self.base: tuple[Array, float, float] | None = None
        self.step, self.rise, self.length = np.zeros(self.d), 0.0, 0.0
        self.gather = False
        #: whether Newton's steps still make the band narrower
        self.narrows = self.direct
        #: passes for which the band was cut to what the client may hold
        self.cut = 0
        #: how many times more rows came than the sample had told
        self.excess = 1.0
        self.inner_share = plan.inner_share
        if sample.whole:  # its solution is a dual point of all rows
            problem, beta = sample.scaled, start.beta
            value = float(beta @ problem.y) - problem.terms.total_value(beta)
            self.dual = max(self.dual, self._dual(value, problem.function(beta), float(beta.sum())))

    def _least_radius(self) -> float:
        """So that some rows a feature are within."""
        distances = self.sample.distances(self.w, self.b)
        fewest = self.plan.rows_a_feature * min(self.d, self.n) + self.plan.more_rows
        at = min(int(np.ceil(fewest / self.sample.factor)), len(distances) - 1)
        return float(distances[at]) or float(distances[-1]) or 1.0

    def _expected(self, radius: float) -> float:
        """The megabytes that rows within a radius are expected to take."""
        sample = self.sample
        distances = sample.distances(self.w, self.b)
        share = float(np.searchsorted(distances, radius, side="right")) / len(distances)
        return share * self._megabytes

    @property
    def _megabytes(self) -> float:
        """What all rows would take."""
        return self.excess * self.sample.rows.megabytes * self.sample.factor

    def ask(self) -> Ask:
        room = self.plan.expected_share * self.setting.room
        self.taken, self.gather = self.radius, True
        if self._expected(self.radius) > room:
            self.gather = not self.narrows
            if self.gather:
                self._cut(room)
        return Ask(self.job, self.w, self.b, self.taken, self.gather, not self.gather)

    def _cut(self, room: float) -> None:
        """A band as wide as the client may hold."""
        distances = self.sample.distances(self.w, self.b)
        at = int(len(distances) * room / self._megabytes)
        self.taken = float(distances[min(at, len(distances) - 1)])
        self.cut += 1
        if self.cut > self.plan.most_cut or self._expected(self.taken) > self.setting.room:
            raise self._refusal(int(self.n * self._expected(self.radius) / self._megabytes))

    def told(self, sums: Sums, found: Look, one_pass: OnePass) -> None:
        primal = self._primal(sums.loss)
        if self._certified(primal, len(self.trace) + 2):
            return
        if self.base is not None and not primal < self.base[2]:
            self._shorten()
        elif not self.gather:
            self.base = self.w, self.b, primal
            self._narrow(sums)
        elif found.rows is None:  # more than the sample had told
            self.excess *= self.plan.widening
        else:
            self.base = self.w, self.b, primal
            self._reduced(sums, found.rows, primal)

    def _shorten(self) -> None:
        """Back towards the best point: the step is downhill there, however narrow the band was."""
        assert self.base is not None
        if not self.gather:
            self.narrows = False
        self.length /= self.plan.widening
        self.radius = max(self.radius, self.plan.widening * self.taken)
        self.inner_share *= 0.5
        if self.length < self.plan.shortest:
            # held rows are in the way, and rounding; once more from the best point itself
            self.w, self.b, _ = self.base
            self.base = None
            return
        self._move()

    def _move(self) -> None:
        assert self.base is not None
        self.w = self.base[0] + self.length * self.step
        self.b = self._settled(self.base[1] + self.length * self.rise)

    def _refusal(self, count: int) -> MemoryError:
        return MemoryError(
            f"{count} rows lie near the corners of the loss, more than client_megabytes="
            f"{self.plan.client_megabytes:g} of the plan can hold; raise it, take a smaller C or "
            "a squared loss, or fit a sample"
        )

    def _narrow(self, sums: Sums) -> None:
        """A Newton step with the curvature of the band."""
        self.step, self.rise = self._step(sums, sums.pulled, sums.total)
        self.length = 1.0
        moved = self.sample.move(self.step, self.rise)
        self._move()
        radius = max(self.plan.width * self.plan.left * moved, self._least_radius())
        self.narrows = self.narrows and radius <= self.plan.narrower * self.radius
        self.radius = min(radius, self.radius)

    def _reduced(self, sums: Sums, parts: Sequence[Rows], primal: float) -> None:
        """Solve on the rows gathered, with the others held."""
        rows = Rows.joined(parts) if parts else None
        if rows is not None:
            kept = rows.fold != self.job.fold
            rows = rows if kept.all() else rows.take(kept)
        if rows is None or len(rows) == 0 or not self._can_balance(rows, sums.total):
            self.base = None
            self.radius *= self.plan.widening
            self.narrows = False
            return
        whole = self.setting.problem(rows, self.job)
        problem = Problem(
            whole.operator,
            whole.y,
            whole.terms,
            whole.offset,
            whole.column,
            held=Held(sums.pulled, sums.total),
        )
        beta, _ = responded(problem, problem.y - problem.values(self.w) - self.b)
        start = Point(problem.feasible(beta), self.w, self.b)
        # relative to the primal of all rows, of which that of these is a part
        size = abs(primal - sums.value)
        tol = self.inner_share * self.options.tol * abs(primal) / size if size > 0 else 1e-9
        options = self.options.with_(tol=min(max(tol, 1e-13), 0.1), callback=None)
        found = solve(problem, LinearNewton(), options, start)
        pulled, total = problem.function(found.beta), sums.total + float(found.beta.sum())
        value = sums.value + float(found.beta @ problem.y) - problem.terms.total_value(found.beta)
        self.dual = max(self.dual, self._dual(value, pulled, total))
        self.step, self.rise = found.function - self.w, float(found.intercept) - self.b
        self.length = 1.0
        self._move()
        self.radius = max(self.sample.move(self.step, self.rise), self._least_radius())

    def _can_balance(self, rows: Rows, held: float) -> bool:
        """Whether these rows can make up Σβ = 0 with the others where they are."""
        if not self.setting.free:
            return True
        terms = self.setting.problem(rows, self.job).terms
        return bool(terms.lower.sum() < -held < terms.upper.sum())
