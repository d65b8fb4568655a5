# distutils: language = c
"""Losses along C in single precision, to rough duality gaps that the walk watches itself.

For C ascending, with bounds of C times those of C = 1,

    min_β  ½ βᵀKβ − yᵀβ + Σ kinkᵢ|βᵢ|,   C·lowerᵢ ≤ βᵢ ≤ C·upperᵢ,   Σ βᵢ = 0

    β ← s·β with the best s in [0, C/C_before]      (variables at their bounds stay there)
    repeat
        a batch of pair steps, as in ``pairs``
    until the duality gap is small enough

The gradient Kβ − y is kept in float32, which holds twice as many numbers in a register: good
enough for gaps of some permille. It is computed afresh where many steps have rounded it.
"""
from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy
import numpy as np

from libc.stdint cimport int64_t
from .parts cimport Shared

cdef extern from "single.h" nogil:
    int64_t raise_index(float*, const float*, const float*, const float*, float, int64_t, float*)
    int64_t lower_index(const float*, const float*, const float*, const float*, float, float, float,
                     int64_t, float*)
    double offset_pull(const float*, const float*, const float*, const float*, float, int64_t)
    double row_product(const float*, const double*, int64_t)

#: halvings of the interval in which the offset lies
cdef int HALVINGS = 12
#: a curvature of a pair that rounding cannot tell from 0
cdef float LEAST = 1e-6
#: the gradient is computed afresh after so many steps a variable: an eighth of their work
cdef int REFRESH = 4


cdef class SinglePairs(Shared):
    """The walks along C of the losses of parts.

    Parameters
    ----------
    settings : Many
        ``batch``: steps a variable between two looks at the gap; later ones come after an eighth of
        the steps taken.
    steps : float
        Steps a variable that a problem may take.
    """

    cdef float[::1] diagonal, slope_up, slope_down, lower, upper, kink, gradient
    cdef double[::1] beta
    cdef double batch_, most
    #: the loss at hand, and the C of its last problem
    cdef int64_t loss
    cdef double cost
    #: steps of this problem, and since the gradient was computed
    cdef int64_t steps, since
    cdef double gap_, primal_, offset_

    def __init__(self, settings, double steps):
        super().__init__(settings.work)
        self.batch_, self.most = settings.batch, steps

    cdef int run(self) except -1:
        cdef int64_t k, n = self.part.n
        scratch = np.empty((7, n), dtype=np.float32)
        self.diagonal, self.slope_up, self.slope_down, self.lower = scratch[:4]
        self.upper, self.kink, self.gradient = scratch[4:]
        self.beta = np.empty(n)
        with nogil:
            for k in range(n):
                self.diagonal[k] = self.rows[k * n + k]
            for self.loss in range(self.part.losses):
                if self.walk():
                    break
        return 0

    cdef bint walk(self) except -1 nogil:
        """All C of a loss that are wanted; whether it was time to stop."""
        cdef int64_t c, k, n = self.part.n
        self.cost, self.since = 0, 0
        for k in range(n):
            self.beta[k] = 0
            self.gradient[k] = <float>(-self.part.y[k])
        for c in range(self.costs.shape[0]):
            if not self.wanted[self.loss, c]:
                continue
            if self.over(self.loss, c):
                break
            self.follow(c)
            if self.solve_one():
                return True
            memcpy(&self.betas[self.place, self.loss, c, 0], &self.beta[0], n * sizeof(double))
            self.note(self.loss, c, self.offset_, self.gap_, self.primal_)
        return False

    cdef bint solve_one(self) except -1 nogil:
        """Steps until the gap is small enough or they are too many; whether it is time to stop."""
        cdef float up = 0, down = 0
        cdef int64_t before, n = self.part.n
        cdef int64_t limit = <int64_t>(self.most * n), each = <int64_t>(self.batch_ * n) + 1
        cdef double allowed = self.gap * self.cost * self.part.constants[self.loss]
        cdef bint ended = self.batch(0, &up, &down)
        self.assess(up, down)
        while not ended and self.steps < limit:
            if self.gap_ <= min(allowed, self.share * self.primal_):
                break
            before = self.steps
            ended = self.batch(max(each, self.steps // 8), &up, &down)
            self.assess(up, down)
            if self.look((self.steps - before) * n):
                return True
        return False

    cdef void follow(self, int64_t c) noexcept nogil:
        """Begin the next problem, at its start or at the best multiple of β."""
        cdef int64_t k, n = self.part.n
        cdef double norm = 0, gain = 0, factor, fitted
        if self.begun[self.place, self.loss, c]:
            memcpy(&self.beta[0], &self.betas[self.place, self.loss, c, 0], n * sizeof(double))
            self.pose(c)
            self.balance()
            self.refresh()
            return
        if self.cost > 0:
            for k in range(n):
                fitted = self.gradient[k] + self.part.y[k]
                norm += self.beta[k] * fitted
                gain += self.beta[k] * self.part.y[k] - self.kink[k] * fabs(self.beta[k])
            factor = self.costs[c] / self.cost
            if norm > 0:
                factor = min(max(gain / norm, 0.0), factor)
            for k in range(n):
                self.beta[k] *= factor
                fitted = factor * (self.gradient[k] + self.part.y[k])
                self.gradient[k] = <float>(fitted - self.part.y[k])
        self.pose(c)
        if self.since > REFRESH * n:
            self.refresh()

    cdef void pose(self, int64_t c) noexcept nogil:
        """The bounds of the next problem; β is moved into them where rounding left it outside."""
        cdef int64_t k, n = self.part.n
        self.cost = self.costs[c]
        self.steps = 0
        for k in range(n):
            self.lower[k] = <float>(self.cost * self.part.terms[self.loss, 0, k])
            self.upper[k] = <float>(self.cost * self.part.terms[self.loss, 1, k])
            self.kink[k] = <float>self.part.terms[self.loss, 2, k]
            self.beta[k] = min(max(self.beta[k], <double>self.lower[k]), <double>self.upper[k])
            self.classify(k)

    cdef void balance(self) noexcept nogil:
        """Take what Σβ is above or below 0 from all β, in proportion to the room they have."""
        cdef int64_t k, n = self.part.n
        cdef double excess = 0, room = 0, size = 0
        for k in range(n):
            excess += self.beta[k]
            size += fabs(self.beta[k])
        if fabs(excess) <= 1e-14 * size:
            return
        for k in range(n):
            room += (self.beta[k] - self.lower[k] if excess > 0 else self.upper[k] - self.beta[k])
        for k in range(n):
            self.beta[k] -= excess / room * (
                self.beta[k] - self.lower[k] if excess > 0 else self.upper[k] - self.beta[k])
            self.classify(k)

    cdef void refresh(self) noexcept nogil:
        """The gradient from K and β."""
        cdef int64_t k, n = self.part.n
        self.since = 0
        for k in range(n):
            self.gradient[k] = <float>(row_product(self.rows + k * n, &self.beta[0], n)
                                         - self.part.y[k])

    cdef void classify(self, int64_t k) noexcept nogil:
        """Derivatives of kink·|β| to both sides, infinite at a bound."""
        cdef double b = self.beta[k]
        self.slope_up[k] = self.kink[k] if b >= 0 else -self.kink[k]
        self.slope_down[k] = self.kink[k] if b > 0 else -self.kink[k]
        if b >= self.upper[k]:
            self.slope_up[k] = INFINITY
        if b <= self.lower[k]:
            self.slope_down[k] = -INFINITY

    cdef double move(self, int64_t i, int64_t j, double slope, double eta) noexcept nogil:
        """Raise βᵢ and lower βⱼ to the minimum along the line, across their kinks."""
        cdef double bi = self.beta[i], bj = self.beta[j]
        cdef double end_i, end_j, room_i, room_j, room, total = 0
        while slope < 0:
            end_i = 0.0 if bi < 0 and self.upper[i] >= 0 else self.upper[i]
            end_j = 0.0 if bj > 0 and self.lower[j] <= 0 else self.lower[j]
            room_i = end_i - bi
            room_j = bj - end_j
            room = min(room_i, room_j)
            if room <= 0:
                break
            if eta > 0 and -slope <= eta * room:
                total -= slope / eta
                bi -= slope / eta
                bj += slope / eta
                break
            total += room
            slope += eta * room
            bi = end_i if room_i <= room else bi + room
            bj = end_j if room_j <= room else bj - room
            if bi == 0 and self.upper[i] > 0 and room_i <= room:
                slope += 2 * self.kink[i]
            if bj == 0 and self.lower[j] < 0 and room_j <= room:
                slope += 2 * self.kink[j]
        self.beta[i] = bi
        self.beta[j] = bj
        return total

    cdef bint batch(self, int64_t count, float* up, float* down) noexcept nogil:
        """So many steps; whether none is left to take. ``up`` and ``down`` bound the offset."""
        cdef int64_t n = self.part.n, i, j
        cdef float kept, step
        cdef double eta
        cdef int64_t done
        i = raise_index(&self.gradient[0], &self.slope_up[0], &self.diagonal[0],
                        &self.diagonal[0], 0, n, up)
        for done in range(count + 1):
            if i < 0:
                return True
            # i is no partner of its own, whatever rounding makes of up − down
            kept = self.slope_down[i]
            self.slope_down[i] = -INFINITY
            j = lower_index(&self.gradient[0], &self.slope_down[0], &self.diagonal[0],
                            self.rows + i * n, up[0], self.diagonal[i], LEAST, n, down)
            self.slope_down[i] = kept
            if j < 0 or up[0] <= down[0]:
                return True
            if done == count:
                return False
            eta = self.diagonal[i] + self.diagonal[j] - 2.0 * self.rows[i * n + j]
            step = <float>self.move(i, j, -(up[0] + self.gradient[j] + self.slope_down[j]),
                                    max(eta, 0.0))
            self.classify(i)
            self.classify(j)
            self.steps += 1
            self.since += 1
            i = raise_index(&self.gradient[0], &self.slope_up[0], self.rows + i * n,
                            self.rows + j * n, step, n, up)
        return False

    cdef void assess(self, float up, float down) noexcept nogil:
        """The offset that minimises the primal at this β, the primal and the gap."""
        cdef int64_t k, n = self.part.n
        cdef double low = min(up, down), high = max(up, down), b, r, losses = 0
        cdef double norm = 0, gain = 0, kinks = 0, fitted
        cdef int halving
        if not isfinite(low) or not isfinite(high):
            b = low if isfinite(low) else high if isfinite(high) else 0.0
        else:
            for halving in range(HALVINGS):
                b = 0.5 * (low + high)
                if offset_pull(&self.gradient[0], &self.lower[0], &self.upper[0],
                               &self.kink[0], <float>b, n) > 0:
                    low = b
                else:
                    high = b
            b = 0.5 * (low + high)
        for k in range(n):
            r = -<double>self.gradient[k] - b
            fitted = self.gradient[k] + self.part.y[k]
            norm += self.beta[k] * fitted
            gain += self.beta[k] * self.part.y[k]
            kinks += self.kink[k] * fabs(self.beta[k])
            if r > self.kink[k]:
                losses += self.upper[k] * (r - self.kink[k])
            elif r < -self.kink[k]:
                losses += self.lower[k] * (r + self.kink[k])
        self.offset_ = b
        self.primal_ = 0.5 * norm + losses
        self.gap_ = self.primal_ - (gain - 0.5 * norm - kinks)
