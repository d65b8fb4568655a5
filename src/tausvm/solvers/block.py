"""Decomposition: the unsettled variables on a small matrix of their own.

    repeat
        W ← the variables inside a smooth piece and those that violate most
        solve the dual restricted to W on its own Gram matrix   (steps of pairs)
        gradient += K[:, W] Δβ_W                                (one pass over |W| rows)
        where steps promise to take longer: the system of the face that β leads to   (faces)
        when steps have cost as much as a direct solve on W: the direct solve
    until the duality gap, recomputed from the data, is small enough

Plain SMO reads two rows of n numbers a step; here a step reads two rows of |W| numbers that
lie together, and the n-vector is touched once a block. Where many tiny steps would be left
on a settled set, the interior-point method ends it, or Newton's where the loss is smooth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .cores import Core, Rows, core_on
from .faces import BYTES_A_PAIR as FACE_BYTES
from .faces import Faces, ProximalFaces, newton_on_faces
from .joint.factors import pivoted_cholesky
from .linalg import LinAlgError, NotDefinite
from .monitor import Monitor
from .newton import Descent, Newton, serves
from .polishing import BYTES_A_PAIR, Gain, Polishing, interior_step
from .problem import Point, Problem
from .result import SolverOptions, SolverResult, Status
from .solver import Solver
from .trail import Trail
from .working import Derivatives, starting_point

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: how Newton's method solves its systems
ITERATED, FACTORED = "iterated", "factored"


@dataclass(frozen=True)
class Block(Solver):
    """Decomposition: the unsettled variables on a small matrix of their own.

    Costs are in nanoseconds on a core of some 3 GHz; only their ratios matter.
    """

    name: ClassVar[str] = "block"

    #: the fewest variables of a block; None for ``small_block``, or ``large_block`` from
    #: ``many_samples`` on, where blocks have to be gathered from longer rows
    block_size: int | None = None
    small_block: int = 512
    large_block: int = 1024
    many_samples: int = 4000
    #: a block has this many times the variables inside a smooth piece, so that others can join
    growth: float = 1.1
    #: the share of all variables from which on a block is everybody, and nothing is gathered
    everybody: float = 0.7
    #: what a block's own violation is lowered to, as a share of the violation before it
    inner_tolerance: float = 0.1
    #: steps a block may take per variable in it; fewer on all variables, where nothing has to be
    #: gathered and the gap can be looked at again: one for each power of ten that it is above the
    #: tolerance, and at most so many
    inner_steps: int = 40
    whole_steps: int = 4
    #: pairs are searched for in float32 down to violations of this share of the largest derivative;
    #: a thousand steps round a gradient by some 1e-6 of it
    single_from: float = 1e-5
    #: blocks in a row without a single step after which a solve is given up, and what the
    #: tolerance of a block is multiplied with after each
    most_idle: int = 5
    idle_tightening: float = 0.01
    #: blocks between two direct solves at least: they find the variables that the next one needs
    blocks_between: int = 2
    #: the share of a direct solve's cost that steps take before it is thought of
    first_look: float = 0.25
    #: nanoseconds of a step a variable of the block, and so many more for a thousand of them, whose
    #: rows no cache holds
    pair_cost: float = 0.42
    long_cost: float = 0.07
    #: nanoseconds an entry of rows that are added to the gradient, and of a block beside its steps
    row_cost: float = 0.25
    block_cost: float = 2e5
    #: nanoseconds of a direct solve: of each n³/3 and n² of a factor, of a step beside it, of each
    #: entry of exact rows; 50 to 2,400 samples within a factor of two
    factor_cost: float = 0.02
    square_cost: float = 1.6
    step_cost: float = 1.2e5
    exact_cost: float = 2.0
    #: products with K that judge a direct solve, of as many exact rows as have β ≠ 0
    products: int = 2
    #: the share of a face's order up to which a rank of K is small, and is looked for where the
    #: face is singular
    small_rank: float = 0.3
    #: operations on the kernel matrix between two moments at which Ctrl-C is seen: some tens of ms
    batch: float = 2e7
    faces: Faces = field(default_factory=Faces)
    polishing: Polishing = field(default_factory=Polishing)
    #: direct solves of smooth losses, and patterns of them at most
    newton: Newton = field(default_factory=Newton)
    patterns: int = 20

    def __post_init__(self) -> None:
        if self.block_size is not None and self.block_size < 2:
            raise ValueError(f"block_size must be at least 2, got {self.block_size!r}")

    def cost_of_step(self, size: int) -> float:
        """Nanoseconds of a step in a block of this size."""
        return size * (self.pair_cost + self.long_cost * size / 1000.0)

    def solve(
        self, problem: Problem, options: SolverOptions, start: Point | None = None
    ) -> SolverResult:
        monitor = Monitor(problem, options, self.name)
        beta, gradient = starting_point(problem, start)
        blocks = _Blocks(problem, self, monitor)
        n_iter = 0
        with monitor:
            while True:
                at = Derivatives.at(problem, beta, gradient)
                offset = at.offset
                if blocks.solved_directly:  # where C is large, the best offset is worth its sort
                    offset = problem.best_intercept(gradient + problem.y)
                if monitor.check_gradient(beta, gradient, n_iter, offset):
                    if monitor.status is not Status.NUMERICAL_ERROR or not blocks.last_resort():
                        break
                    monitor.resume()
                if monitor.exact is not None:  # the gradient was replaced by the exact one
                    at = Derivatives.at(problem, beta, gradient)
                # the gap falls about as the violation does: no need to go far below what is asked
                enough = min(0.5 * options.tol / monitor.gap, 0.5)
                blocks.step(beta, gradient, at, enough)
                n_iter += 1
                if blocks.idle > self.most_idle or blocks.exhausted:
                    monitor.status = Status.NUMERICAL_ERROR
                    break
        return monitor.result(Point.of(beta), n_iter)


class _Blocks:
    """Chooses blocks and solves them, by steps or directly."""

    def __init__(self, problem: Problem, settings: Block, monitor: Monitor) -> None:
        self.problem = problem
        self.settings = settings
        self.monitor = monitor
        many = problem.n >= settings.many_samples
        wanted = settings.block_size or (settings.large_block if many else settings.small_block)
        self.smallest = min(wanted, problem.n, problem.operator.capacity)
        #: samples with β ≠ 0
        self.support = 0
        #: nanoseconds of steps since the last direct solve, and these at every block with the gap
        self.work = 0.0
        self.trail = Trail()
        #: how much the last direct solve lowered the gap's logarithm a nanosecond; 0 for none
        self.speed = 0.0
        self.whole_state: Core | None = None
        #: blocks in a row in which no step gained enough
        self.idle = 0
        #: direct solves so far; whether the last one brought nothing; whether one on all variables
        #: did so, from the exact gradient
        self.directs = 0
        self.hopeless = False
        self.exhausted = False
        #: the gap that direct solves and proximal steps left last: other steps may raise it
        self.left = np.inf
        #: attempts at faces in a row that led nowhere, and the fewest variables inside whose
        #: matrix was singular
        self.misses, self.singular = 0, problem.n + 1
        #: K's, where that is known to be small
        self.rank = problem.n
        #: the least gap that direct solves on all variables left; whether any was tried, and
        #: whether β comes from one
        self.least_whole = np.inf
        self.tried = False
        self.solved_directly = False
        #: Newton's methods for a smooth loss that have not failed yet
        self.newton_ways: list[str] = []
        if serves(problem) and problem.operator.whole:
            fits = settings.newton.bytes_a_pair * problem.n**2 <= problem.operator.spare_bytes
            iterated = [ITERATED] if problem.n > settings.newton.few else []
            self.newton_ways = iterated + ([FACTORED] if fits else [])

    def step(self, beta: Array, gradient: Array, at: Derivatives, enough: float) -> None:
        """One block, which changes β and gradient."""
        problem, gram, settings = self.problem, self.problem.operator, self.settings
        free = np.count_nonzero(at.inside)
        size = max(self.smallest, int(settings.growth * free) + 64)
        self.support = int(np.count_nonzero(beta))
        unsettled = at.unsettled(size)
        self.trail.note(self.work, max(self.monitor.gap, 1e-300))
        self.solved_directly = (self.face_is_due(at) and self.on_faces(beta, gradient)) or (
            self.direct_is_due(at, len(unsettled)) and self.direct(beta, gradient, unsettled)
        )
        if self.solved_directly:
            self.whole_state = None  # it remembers where β was
            return
        size = min(size, gram.capacity, int((gram.spare_bytes / gram.rows.itemsize) ** 0.5))
        share = max(settings.inner_tolerance, enough) * settings.idle_tightening**self.idle
        if size >= settings.everybody * problem.n and gram.whole:
            everything = np.arange(problem.n)
            gram.require(everything)
            if self.whole_state is None:
                self.whole_state = self.core(everything, beta, gradient)
            above = np.log10(max(self.monitor.gap / self.monitor.options.tol, 1.0))
            steps = int(np.clip(above, 1, settings.whole_steps))
            if settings.cost_of_step(problem.n) * problem.n <= settings.block_cost:
                # steps cost less than to look at them: all the way
                share = enough * settings.idle_tightening**self.idle
            self.run(self.whole_state, gram.rows, gram.slots, share * at.violation, steps)
            return
        self.whole_state = None
        block = unsettled if size >= len(unsettled) else at.unsettled(size)
        matrix = gram.held_block(block)
        local_beta, local_gradient = beta[block], gradient[block]
        state = self.core(block, local_beta, local_gradient)
        steps = settings.inner_steps
        self.run(state, matrix, np.arange(len(block)), share * at.violation, steps)
        delta = local_beta - beta[block]
        moved = np.flatnonzero(delta)
        beta[block] = local_beta
        gram.add_rows(block[moved], delta[moved], gradient)
        self.work += settings.row_cost * len(moved) * problem.n

    def core(self, index: Index, beta: Array, gradient: Array) -> Core:
        return core_on(self.problem, index, beta, gradient, single_from=self.settings.single_from)

    def run(self, state: Core, rows: Rows, slots: Index, tol: float, steps_each: int) -> None:
        """Steps of the core until the violation is ``tol``; their cost in nanoseconds is noted."""
        size, settings = rows.shape[1], self.settings
        before = state.steps
        batch = max(500, int(settings.batch / size))
        # few variables may take as many steps as cost what a block does beside them
        a_step = settings.cost_of_step(size)
        left = max(steps_each * size, int(settings.block_cost / a_step))
        while left > 0 and state.run(rows, slots, None, tol, min(batch, left)):
            left -= batch
        taken = state.steps - before
        self.work += a_step * taken + settings.block_cost
        if taken > 0:
            self.idle = 0
        else:  # much is violated but little to gain, as next to a bound: look closer, or solve
            self.idle += 1
            self.work = max(self.work, self.direct_cost(size))

    def face_is_due(self, at: Derivatives) -> bool:
        """Whether steps would take longer than the systems of faces, whose first ones often lead
        nowhere: an attempt then is worth twice the steps before it."""
        settings = self.settings
        pulling = int(np.count_nonzero(at.pulling))
        inside = int(np.count_nonzero(at.inside)) + pulling
        if self.newton_ways or pulling > settings.faces.pulling * inside:
            return False
        if FACE_BYTES * inside**2 > self.problem.operator.spare_bytes:
            return False
        cost = self.face_cost(inside)
        if not 0 < settings.first_look * cost * 2.0**self.misses <= self.work:
            return False
        return bool(self.trail.work_left(self.monitor.options.tol) > cost)

    def face_cost(self, inside: int) -> float:
        """Nanoseconds, roughly, of an attempt that begins with a system of this order."""
        settings = self.settings
        a_factor = settings.factor_cost * inside**3 / 3 + settings.square_cost * inside**2
        exact = settings.exact_cost * inside * (inside + self.problem.n)
        attempt = settings.faces.typical * (a_factor + exact + 2 * settings.step_cost)
        return attempt + settings.exact_cost * self.support * self.problem.n

    def on_faces(self, beta: Array, gradient: Array) -> bool:
        """Newton's method on faces, from the exact gradient; whether it helped."""
        self.whole_state = None
        if not self.newton_on_faces(beta, gradient, self.exactly_at(beta, gradient)):
            self.misses += 1
            return False
        self.misses = 0
        self.work, self.trail = 0.0, Trail()
        return True

    def newton_on_faces(self, beta: Array, gradient: Array, at: Derivatives) -> bool:
        """The same from derivatives that are exact, by proximal steps where the face of the
        solution is too far or K of a face singular."""
        inside = int(np.count_nonzero(at.inside | at.pulling))
        if inside < self.singular:
            faces = self.settings.faces
            try:
                if newton_on_faces(self.problem, beta, gradient, self.monitor, faces):
                    return True
            except NotDefinite as error:
                self.singular = inside
                self.look_for_rank(inside, error.order)
            except LinAlgError:
                self.singular = inside
        return self.proximal(beta, gradient)

    def look_for_rank(self, inside: int, order: int) -> None:
        """Whether K is of small rank, or has but a few rows that are alike: a face's matrix of
        order ``inside`` was singular from the order ``order`` on."""
        settings, operator = self.settings, self.problem.operator
        most = int(settings.small_rank * inside)
        if order > most or self.rank < len(operator):
            return
        everything = np.arange(len(operator))
        exact = settings.polishing.barrier.equations.exact
        L, left = pivoted_cholesky(
            lambda some: operator.block(some, everything),
            operator.diagonal,
            most,
            exact,
            operator.pause,
        )
        if left.sum() <= exact * operator.diagonal.sum():
            self.rank = L.shape[1]

    def proximal(self, beta: Array, gradient: Array) -> bool:
        """Proximal steps, until they promise to take longer than a direct solve would; whether
        they helped."""
        faces, tol = self.settings.faces, self.monitor.options.tol
        steps = ProximalFaces(self.problem, beta, gradient, self.monitor, faces)
        before, trail, work = steps.gap, Trail(), 0.0
        direct = self.direct_cost(self.problem.n)
        if self.rank < steps.inside:  # they hold no face together that is that singular
            return False
        while not steps.ended and steps.gap > tol and not self.monitor.out_of_time():
            trail.note(work, max(steps.gap, 1e-300))
            if work > self.settings.first_look * direct and trail.work_left(tol) > direct:
                break
            work += self.face_cost(steps.inside)
            steps.step()
        self.work += work
        helped = steps.gap <= faces.worth * min(before, self.left)
        self.left = min(self.left, steps.gap)
        return helped

    def direct_cost(self, size: int) -> float:
        """Nanoseconds, roughly, of a direct solve on ``size`` variables."""
        settings, size = self.settings, min(size, self.problem.n)
        if self.newton_ways:
            newton = settings.newton
            first = self.newton_ways[0] == ITERATED
            return newton.iterated_cost(self.problem.n) if first else newton.cost(self.problem.n)
        cubes = size**3 / 3
        if self.rank < size:  # equations of that order, of products of n rows
            cubes = self.rank**2 * size + self.rank**3 / 3
        a_factor = settings.factor_cost * cubes + settings.square_cost * size**2
        steps = settings.polishing.barrier.typical_steps
        exact = settings.exact_cost * self.problem.n * (size + settings.products * self.support)
        return steps * (a_factor + settings.step_cost) + exact

    def last_resort(self) -> bool:
        """Whether a direct solve may go on where steps gain nothing any more: if none was tried."""
        if self.tried or not np.isfinite(self.monitor.gap):
            return False
        self.tried, self.work = True, np.inf
        return True

    def direct_is_due(self, at: Derivatives, size: int) -> bool:
        """Whether steps would take longer than direct solves, or lower the gap more slowly.

        They are taken first, and their end is foretold from how the gap fell, once they have cost a
        share of a direct solve. That settles its own variables and brings others into play, which
        steps then find: they get a few blocks each time. Where more variables are unsettled than
        one solve takes, it takes several; and as many as the one before tells, had each its fall.
        """
        if self.work == np.inf:
            return True
        a_solve = self.direct_cost(size)
        tol = self.monitor.options.tol
        if self.work >= self.settings.first_look * a_solve:
            unsettled = np.count_nonzero(at.inside | at.pulling)
            cost = a_solve * max(unsettled / size, 1.0)
            if self.speed > 0.0:
                cost = max(cost, np.log(max(self.monitor.gap / tol, 1.0)) / self.speed)
            # the fall may slow down, and rounded rows promise too much
            return bool(self.work + self.trail.work_left(tol) > cost)
        if self.speed == 0.0 or len(self.trail.entries) <= self.settings.blocks_between:
            return False
        return self.trail.fall < self.speed * self.work

    def direct(self, beta: Array, gradient: Array, block: Index) -> bool:
        """A direct solve on the unsettled variables, if memory allows; whether it helped.

        The first one on a few takes the gradient as it is, rounded rows and all. Later ones
        start from the exact gradient, and go to all variables where fewer brought nothing. Those
        that pull after it may lead to the face of the solution. If not, steps find who else has to
        move; where steps raised the gap after the solve before, this one goes on with those.
        """
        self.tried = True
        if self.newton_ways:
            return self.descend(beta, gradient)
        if self.hopeless or self.rank < len(block):  # as cheap on all where the rank is small
            block = np.arange(self.problem.n)
        if not self.fits(block):
            self.work, self.speed = -np.inf, 0.0
            return False
        if self.directs > 0 or len(block) == self.problem.n:
            np.subtract(self.problem.operator.product(beta), self.problem.y, out=gradient)
        gain = self.interior_step(beta, gradient, block)
        self.hopeless = not gain.some and self.directs > 1
        if not gain.some:
            return False
        fall = np.log(gain.gap_before / max(min(gain.gap_after, gain.gap_before), 1e-300))
        self.speed = fall / self.direct_cost(len(block))
        self.work, self.trail = 0.0, Trail()
        spoilt = gain.gap_before > self.left
        while gain.worthwhile and gain.gap_after > self.monitor.options.tol:
            at = self.exactly_at(beta, gradient)
            if self.newton_on_faces(beta, gradient, at) or not spoilt or self.exhausted:
                break
            block = np.union1d(block, np.flatnonzero(at.pulling))
            if self.monitor.out_of_time() or not self.fits(block):
                break
            gain = self.interior_step(beta, gradient, block)
        self.left = gain.gap_after
        return True

    def fits(self, block: Index) -> bool:
        """Whether memory allows a direct solve."""
        return BYTES_A_PAIR * len(block) ** 2 <= self.problem.operator.spare_bytes

    def exactly_at(self, beta: Array, gradient: Array) -> Derivatives:
        """Make the gradient exact; the derivatives there."""
        np.subtract(self.problem.operator.product(beta), self.problem.y, out=gradient)
        return Derivatives.at(self.problem, beta, gradient)

    def interior_step(self, beta: Array, gradient: Array, block: Index) -> Gain:
        """The interior-point method on some variables; on all, whether more of it may help."""
        self.directs += 1
        polishing = self.settings.polishing
        gain = interior_step(self.problem, beta, gradient, block, self.monitor, polishing)
        if len(block) == self.problem.n:
            self.monitor.certify_gradient(beta, gradient)
            again = gain.gap_after > gain.worth * self.least_whole
            self.exhausted = again or not gain.worthwhile
            self.least_whole = min(self.least_whole, gain.gap_after)
        return gain

    def descend(self, beta: Array, gradient: Array) -> bool:
        """Newton's method on a smooth loss, on all variables; whether it helped.

        A few patterns take less than the interior-point method does: by conjugate gradients where
        the kernel's rank or C is small enough for them, else by factors, once steps have cost as
        much as one. Where they bring nothing, that method is next.
        """
        problem, tol = self.problem, self.monitor.options.tol
        way, found = self.newton_ways.pop(0), None
        if way == ITERATED:
            found = self.settings.newton.promising(problem)
            if found is None:
                return False
        start = problem.operator.product(beta) - problem.y
        before = after = problem.gap_from(beta, start)
        descent = Descent(problem, self.monitor, self.settings.newton, beta.copy(), start)
        descent.by(found)
        for _ in range(self.settings.patterns):
            if descent.step() is None or self.monitor.out_of_time():
                break
            after = problem.gap_from(descent.beta, descent.gradient)
            if after <= 0.5 * tol:
                break
        if after <= tol:
            self.newton_ways.insert(0, way)  # what rounding left of it may need another
        self.work, self.trail = 0.0, Trail()
        if after >= before:
            return False
        beta[:], gradient[:] = descent.beta, descent.gradient
        return True
