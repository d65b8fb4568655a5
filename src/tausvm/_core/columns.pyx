# distutils: language = c
"""Conjugate gradients on many columns at a time, without the interpreter's lock.

Column c is the dual of a squared loss without ε at one C,

    min_β  ½ βᵀKβ − yᵀβ + ½ Σ (rise_c if βᵢ > 0 else fall_c) βᵢ² / weightᵢ    [Σβ = 0 if b is free]

The columns differ in their ridges alone, so that they share every product with K, which is then a
product of matrices:

    repeat for all columns that are not done
        b ← minimiser of the primal;  gradient ← Kβ + b − y + ridge β
        z ← an approximation of (K + ridge)⁻¹ gradient  (moved so that Σz = 0)
        direction ← −z + keep·direction                 (Polak–Ribière)
        β ← minimum of the dual along the direction
    until the duality gap is small enough

The ridge of a column takes two values whose ratio is that of τ and 1 − τ: with a good inverse three
to five steps do, whatever C. On few samples that is a Cholesky factor, which serves all columns with
similar ridges; on more of them landmarks are tried first, and factors take their place where those
are not good enough.

A column is a row of float32 matrices of shape (columns, n). The ``live`` ones, which the passes
work on, are the first rows; ``order`` tells which column a row is of.
"""
from libc.math cimport INFINITY, exp, fabs, floor, isfinite, log
from libc.string cimport memset
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check
from .inverses cimport FactorInverse, Inverse, LowRankInverse
from .lapack cimport multiply
from .parts cimport Shared

cdef extern from "columns.h" nogil:
    void column_pull(const float*, const float*, const float*, float, float, float, int64_t,
                     double*, double*)
    void column_gap(const float*, const float*, const float*, const float*, float, float, float,
                    int64_t, float*, double*, double*)
    double column_dot(const float*, const float*, int64_t)
    void column_descent(const float*, const float*, float*, int64_t, double*, double*)
    void column_turn(float*, const float*, float, int64_t)
    void column_slope(const float*, const float*, const float*, float, float, float, int64_t,
                      double*, double*)
    void column_add(float*, const float*, float, int64_t)
    void rows_times(const float*, const float*, int64_t, int64_t, float*)

#: Newton steps on one variable end at this share of the first slope
cdef double ENOUGH = 1e-3
cdef int MOST_STEPS = 20

#: the numbers of a column, rows of a table
cdef enum:
    RISE, FALL, ALLOWED, OFFSET, GAP, BEFORE, PRIMAL, DESCENT, LENGTH, FLAT_SUM, NUMBERS
#: and its vectors
cdef enum:
    BETA, FITTED, GRADIENT, PREVIOUS, DIRECTION, PRODUCT, Z, FLAT, VECTORS


cdef class Columns(Shared):
    """The columns of parts.

    Parameters
    ----------
    settings : Many
    """

    cdef object settings
    cdef int64_t count, live
    #: the loss and the C of a column, and its group of similar ridges
    cdef const int64_t[::1] loss, cost
    cdef int64_t[::1] group
    #: the column of a row; those at work, and those that wait
    cdef int64_t[::1] order, left, waiting
    cdef float[:, :, ::1] vectors
    cdef double[:, ::1] numbers
    #: between the two ridges of a column, at a typical weight; steps that it will take
    cdef double[::1] middle, ahead
    cdef LowRankInverse landmarks
    cdef FactorInverse factors

    def __init__(self, settings):
        super().__init__(settings.work)
        self.settings = settings

    cdef int run(self) except -1:
        cdef int64_t rest, n = self.part.n
        settings = self.settings
        check(self.part.weight is not None, "parts must have weights: their losses are squared")
        if self.place == 0:
            self.loss, self.cost = np.array(np.nonzero(self.wanted))
            self.count = self.loss.shape[0]
        if self.count == 0:
            return 0
        self.take_room()
        with nogil:
            self.pose()
        rest = self.count
        if n > min(settings.factor_first, settings.factor_order):
            self.take_landmarks()
            rest = self.by_landmarks(settings.factor_price * n if n <= settings.factor_order
                                     else INFINITY)
        return self.by_factors(rest)

    # ---- all columns ----

    cdef int take_room(self) except -1:
        """Arrays of the columns, those of the part before where they fit."""
        cdef int64_t n = self.part.n
        if (self.vectors is None or self.vectors.shape[1] != self.count
                or self.vectors.shape[2] != n):
            self.vectors = np.empty((VECTORS, self.count, n), dtype=np.float32)
            self.numbers = np.empty((NUMBERS, self.count))
            self.order, self.left, self.waiting, self.group = np.empty((4, self.count), np.int64)
            self.middle, self.ahead = np.empty((2, self.count))
            self.landmarks, self.factors = None, None
        return 0

    cdef void pose(self) noexcept nogil:
        """All columns, from 0 or where they start."""
        cdef int64_t c, k, loss, cost, begun = 0, n = self.part.n
        cdef double typical = 0
        cdef const double* start
        memset(&self.vectors[0, 0, 0], 0, VECTORS * self.count * n * sizeof(float))
        for k in range(n):
            typical += log(self.part.weight[k]) / n
        for c in range(self.count):
            loss, cost = self.loss[c], self.cost[c]
            self.order[c] = c
            self.left[c] = c
            self.numbers[RISE, c] = self.part.ridges[loss, 0] / self.costs[cost]
            self.numbers[FALL, c] = self.part.ridges[loss, 1] / self.costs[cost]
            self.numbers[ALLOWED, c] = self.gap * self.costs[cost] * self.part.constants[loss]
            self.numbers[OFFSET, c] = 0
            self.numbers[LENGTH, c] = 1
            self.middle[c] = exp(0.5 * log(self.numbers[RISE, c])
                                 + 0.5 * log(self.numbers[FALL, c]) - typical)
            if self.begun[self.place, loss, cost]:
                begun += 1
                start = &self.betas[self.place, loss, cost, 0]
                for k in range(n):
                    self.vectors[BETA, c, k] = <float>start[k]
        if begun > 0:
            multiply(False, <int>n, <int>self.count, <int>n, 1, self.rows,
                     &self.vectors[BETA, 0, 0], 0, &self.vectors[FITTED, 0, 0])

    cdef int64_t hopeful(self, int64_t rest) noexcept nogil:
        """How many of the first ``rest`` columns at work are worth going on with: they come first."""
        cdef int64_t k, kept = 0
        for k in range(rest):
            if not self.over(self.loss[self.left[k]], self.cost[self.left[k]]):
                self.left[kept] = self.left[k]
                kept += 1
        return kept

    cdef void leave(self, int64_t rest) noexcept nogil:
        """These columns get no further."""
        cdef int64_t k, row
        for k in range(rest):
            row = 0
            while self.order[row] != self.left[k]:
                row += 1
            self.finish(row)

    cdef void finish(self, int64_t row) noexcept nogil:
        """Keep where a column is, unless its numbers have overflowed."""
        cdef int64_t k, c = self.order[row]
        cdef double* beta = &self.betas[self.place, self.loss[c], self.cost[c], 0]
        if not isfinite(self.numbers[GAP, row]):
            return
        for k in range(self.part.n):
            beta[k] = self.vectors[BETA, row, k]
        self.note(self.loss[c], self.cost[c], self.numbers[OFFSET, row], self.numbers[GAP, row],
                  self.numbers[PRIMAL, row])

    # ---- inverses ----

    cdef int take_landmarks(self) except -1:
        """The preconditioner by landmarks."""
        cdef int n = <int>self.part.n
        least, most = self.settings.landmarks
        rank = min(n, max(least, min(most, int(self.settings.landmark_share * n))))
        if self.landmarks is None:
            self.landmarks = LowRankInverse(n, rank, self.count)
        with nogil:
            self.landmarks.of(self.rows)
            self.landmarks.serve(&self.middle[0], self.count)
        return 0

    cdef int64_t by_landmarks(self, double price) except -1:
        """Steps with landmarks while they promise to be cheaper than factors, at the price of so
        many steps each; how many columns are left to these, which come first."""
        cdef int64_t k, gone = 0, steps = 0, rest = self.count
        cdef int64_t probe = self.settings.probe, most = self.settings.iterations
        cdef double ratio = self.settings.factor_ratio
        while rest > 0 and steps < most and not self.halted:
            rest = self.advance(self.landmarks, rest, min(probe, most - steps), steps == 0)
            rest = self.foretold(self.hopeful(rest), probe, price, ratio, &gone)
            steps += probe
        if price == INFINITY:
            self.leave(rest)
            return 0
        for k in range(rest):
            self.waiting[gone + k] = self.left[k]
        self.left[:gone + rest] = self.waiting[:gone + rest]
        return gone + rest

    cdef int64_t foretold(self, int64_t rest, int64_t probe, double price, double ratio,
                          int64_t* gone) noexcept nogil:
        """Have those columns wait for factors that are foretold to take longer without; how many go
        on.

        A column will take so many steps more as its gap takes to fall at the rate of the last ones.
        Steps are of all columns at a time, and so many as the slowest takes; a factor serves those
        of similar ridges.
        """
        cdef int64_t k, at, c, best = 0
        cdef double cost, least, low = INFINITY, high = 0
        if price == INFINITY:
            return rest
        for k in range(rest):  # the slowest first
            c = self.left[k]
            self.ahead[c] = self.steps_ahead(c, probe)
            at = k
            while at > 0 and self.ahead[self.left[at - 1]] < self.ahead[c]:
                self.left[at] = self.left[at - 1]
                at -= 1
            self.left[at] = c
        least = self.ahead[self.left[0]] if rest > 0 else 0
        for k in range(1, rest + 1):
            low = min(low, self.middle[self.left[k - 1]])
            high = max(high, self.middle[self.left[k - 1]])
            cost = price * (1 + floor(log(high / low) / log(ratio)))
            if k < rest:
                cost += self.ahead[self.left[k]]
            if cost < least:
                least, best = cost, k
        for k in range(best):
            self.waiting[gone[0]] = self.left[k]
            gone[0] += 1
        for k in range(best, rest):
            self.left[k - best] = self.left[k]
        return rest - best

    cdef double steps_ahead(self, int64_t column, int64_t probe) noexcept nogil:
        """How many steps a column will take, by how its gap fell in the last ones."""
        cdef int64_t row = 0
        cdef double gap, fall
        while self.order[row] != column:
            row += 1
        gap = self.numbers[GAP, row]
        fall = log(self.numbers[BEFORE, row] / gap)
        if not fall > 0:
            return INFINITY
        return probe * log(gap / self.goal_of(row)) / fall

    cdef int by_factors(self, int64_t rest) except -1:
        """Solve columns by Cholesky factors, as many groups at a time as memory has room for."""
        cdef int64_t g, now, first = 0, n = self.part.n
        if rest == 0:
            return 0
        cdef int64_t groups = self.in_groups(rest, self.settings.factor_ratio)
        cdef int64_t most = min(groups, max(1, self.settings.factor_bytes // (4 * n * n)))
        if self.factors is None or self.factors.factors.shape[0] < most:
            self.factors = FactorInverse(<int>n, most, self.count)
        for g in range(most, groups + most, most):
            now = 0
            while first < rest and self.group[self.waiting[first]] < g:
                self.left[now] = self.waiting[first]
                first += 1
                now += 1
            now = self.hopeful(now)
            if self.halted:
                break
            if now == 0:
                continue
            inverse = self.factors
            if not self.factorised(now):  # rounding has cost the matrix its definiteness
                self.take_landmarks()
                inverse = self.landmarks
            self.leave(self.advance(inverse, now, self.settings.iterations, True))
        return 0

    cdef int64_t in_groups(self, int64_t rest, double ratio) noexcept nogil:
        """Have columns wait in groups that one factor serves, C ascending; how many groups."""
        cdef int64_t k, at, c, first = 0, groups = 0
        for k in range(rest):
            c = self.left[k]
            at = k
            while at > 0 and self.middle[self.waiting[at - 1]] < self.middle[c]:
                self.waiting[at] = self.waiting[at - 1]
                at -= 1
            self.waiting[at] = c
        for k in range(rest):
            c = self.waiting[k]
            if k == 0 or ratio * self.middle[c] < self.middle[self.waiting[first]]:
                first = k
                groups += 1
            self.group[c] = groups - 1
        return groups

    cdef bint factorised(self, int64_t now) noexcept nogil:
        """The factors of the columns at work; whether rounding leaves them."""
        cdef int64_t k = 0, first, c
        cdef double sum_of
        self.factors.groups = 0
        while k < now:
            first, sum_of = k, 0
            while k < now and self.group[self.left[k]] == self.group[self.left[first]]:
                c = self.left[k]
                self.factors.group[c] = self.factors.groups
                sum_of += log(self.middle[c])
                k += 1
            if not self.factors.add(self.rows, exp(sum_of / (k - first))):
                return False
        return True

    # ---- steps ----

    cdef int64_t advance(self, Inverse inverse, int64_t count, int64_t limit,
                         bint fresh) except -1:
        """Up to ``limit`` steps of the first columns at work; how many are left, which come first.

        Those that are not ``fresh`` go on as they did with the same inverse.
        """
        cdef int64_t k, row, step, n = self.part.n
        with nogil:
            for k in range(count):
                row = k
                while self.order[row] != self.left[k]:
                    row += 1
                self.swap(k, row)
            self.live = count
            if fresh:
                self.begin(inverse)
            for k in range(self.live):
                self.numbers[BEFORE, k] = self.numbers[GAP, k]
            for step in range(limit):
                if self.live == 0 or self.look(n * n * self.live):
                    break
                inverse.times(&self.order[0], <int>self.live, &self.vectors[GRADIENT, 0, 0],
                              &self.vectors[Z, 0, 0])
                self.turn()
                rows_times(self.rows, &self.vectors[DIRECTION, 0, 0], n, self.live,
                           &self.vectors[PRODUCT, 0, 0])
                self.advance_columns()
                self.assess()
            for k in range(self.live):
                self.left[k] = self.order[k]
        return self.live

    cdef void begin(self, Inverse inverse) noexcept nogil:
        """Have the live columns go on with another inverse."""
        cdef int64_t c, k, n = self.part.n
        cdef double total
        for c in range(self.live):
            self.numbers[DESCENT, c] = 0
            for k in range(n):
                self.vectors[Z, c, k] = 1
        if self.part.offset and self.live > 0:
            inverse.times(&self.order[0], <int>self.live, &self.vectors[Z, 0, 0],
                          &self.vectors[FLAT, 0, 0])
            for c in range(self.live):
                total = 0
                for k in range(n):
                    total += self.vectors[FLAT, c, k]
                self.numbers[FLAT_SUM, c] = total
        self.assess()

    cdef void swap(self, int64_t i, int64_t j) noexcept nogil:
        """Exchange two rows."""
        cdef int64_t v, k
        cdef float kept
        cdef double number
        cdef int64_t order = self.order[i]
        if i == j:
            return
        self.order[i] = self.order[j]
        self.order[j] = order
        for v in range(NUMBERS):
            number = self.numbers[v, i]
            self.numbers[v, i] = self.numbers[v, j]
            self.numbers[v, j] = number
        for v in range(VECTORS):
            for k in range(self.part.n):
                kept = self.vectors[v, i, k]
                self.vectors[v, i, k] = self.vectors[v, j, k]
                self.vectors[v, j, k] = kept

    cdef void assess(self) noexcept nogil:
        """Offsets that minimise the primal, the dual's gradient, the gap and the primal objective.

        Columns that are done, or that rounding leaves no descent, are moved behind the live ones.
        """
        cdef int64_t c, n = self.part.n
        for c in range(self.live):
            if self.part.offset:
                self.settle(c)
            column_gap(&self.part.y32[0], &self.vectors[FITTED, c, 0], &self.part.weight[0],
                       &self.vectors[BETA, c, 0], <float>self.numbers[OFFSET, c],
                       <float>self.numbers[RISE, c], <float>self.numbers[FALL, c], n,
                       &self.vectors[GRADIENT, c, 0], &self.numbers[GAP, c],
                       &self.numbers[PRIMAL, c])
        for c in range(self.live - 1, -1, -1):
            if self.is_done(c):
                self.finish(c)
                self.live -= 1
                self.swap(c, self.live)

    cdef bint is_done(self, int64_t c) noexcept nogil:
        cdef double gap = self.numbers[GAP, c]
        return not isfinite(gap) or self.numbers[LENGTH, c] == 0 or gap <= self.goal_of(c)

    cdef double goal_of(self, int64_t c) noexcept nogil:
        """The gap at which a column is done."""
        return min(self.numbers[ALLOWED, c], self.share * self.numbers[PRIMAL, c])

    cdef void settle(self, int64_t c) noexcept nogil:
        """The offset of a column, by Newton steps from where it was."""
        cdef double pull, bend, first = 0
        cdef int step
        for step in range(MOST_STEPS):
            column_pull(&self.part.y32[0], &self.vectors[FITTED, c, 0], &self.part.weight[0],
                        <float>self.numbers[OFFSET, c], <float>self.numbers[RISE, c],
                        <float>self.numbers[FALL, c], self.part.n, &pull, &bend)
            self.numbers[OFFSET, c] += pull / bend
            if step == 0:
                first = fabs(pull)
            if fabs(pull) <= ENOUGH * first:
                break

    cdef void turn(self) noexcept nogil:
        """New directions from ``z``, by the rule of Polak and Ribière.

        A multiple of ``flat`` keeps their sum at 0 where b is free.
        """
        cdef int64_t c, n = self.part.n
        cdef double shift, now, before, keep
        for c in range(self.live):
            if self.part.offset:
                shift = column_dot(&self.vectors[GRADIENT, c, 0], &self.vectors[FLAT, c, 0], n)
                shift /= self.numbers[FLAT_SUM, c]
                column_add(&self.vectors[Z, c, 0], &self.vectors[FLAT, c, 0], <float>(-shift), n)
            column_descent(&self.vectors[Z, c, 0], &self.vectors[GRADIENT, c, 0],
                           &self.vectors[PREVIOUS, c, 0], n, &now, &before)
            keep = 0
            if self.numbers[DESCENT, c] > 0 and now > before:
                keep = (now - before) / self.numbers[DESCENT, c]
            self.numbers[DESCENT, c] = now
            column_turn(&self.vectors[DIRECTION, c, 0], &self.vectors[Z, c, 0], <float>keep, n)

    cdef void advance_columns(self) noexcept nogil:
        """To the minimum of the dual along the directions, whose products with K are there."""
        cdef int64_t c, n = self.part.n
        cdef double t
        for c in range(self.live):
            t = self.length(c)
            self.numbers[LENGTH, c] = t
            column_add(&self.vectors[BETA, c, 0], &self.vectors[DIRECTION, c, 0], <float>t, n)
            column_add(&self.vectors[FITTED, c, 0], &self.vectors[PRODUCT, c, 0], <float>t, n)

    cdef double length(self, int64_t c) noexcept nogil:
        """The step of a column, 0 where rounding leaves no descent."""
        cdef int64_t n = self.part.n
        cdef float rise = <float>self.numbers[RISE, c], fall = <float>self.numbers[FALL, c]
        cdef float* beta = &self.vectors[BETA, c, 0]
        cdef float* direction = &self.vectors[DIRECTION, c, 0]
        cdef double curvature, linear, slope, bend, first, here, t
        cdef int step
        curvature = column_dot(direction, &self.vectors[PRODUCT, c, 0], n)
        column_slope(beta, direction, &self.part.weight[0], 0, rise, fall, n, &slope, &bend)
        first = column_dot(&self.vectors[GRADIENT, c, 0], direction, n)
        if not (first < 0 and curvature + bend > 0):
            return 0
        linear = first - slope
        t = -first / (curvature + bend)
        for step in range(MOST_STEPS):
            column_slope(beta, direction, &self.part.weight[0], <float>t, rise, fall, n, &slope, &bend)
            here = linear + t * curvature + slope
            if fabs(here) <= -ENOUGH * first:
                break
            t -= here / (curvature + bend)
        return max(t, 0.0)
