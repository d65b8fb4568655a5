# distutils: language = c
"""Losses that grow linearly to rounding, in float64, from rough solutions.

Variables between their bounds, and beside the kink at 0, are free; the others stay where they are.
With the derivative g′ of kink·|β| on the side where a free variable lies,

    K_FF d + b = −gradient_F − g′_F,  Σd = 0 if b is free

leads to the minimum of the face, and with the factor of K_FF at hand

    repeat
        go there, or until a variable meets its bound: fix it, which takes m² operations
        at the minimum free those that gain most by leaving their bounds
    until none gains anything

Every face has a smaller minimum than the one before. Steps of a few variables, which make the rough
solution, are cheap while much is to be gained; where little noise and a large C let them creep, a few
faces more are the end.
"""
from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.string cimport memmove
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check
from .lapack cimport factorise_at, forward_at, solve_at
from .parts cimport Shared

cdef extern from "products.h" nogil:
    double exact_product(const double*, const double*, int64_t)
    void rotate_column(double*, double*, double, double, int64_t)

#: the violation, as a share of y's size, that rounding leaves, and as one of Σ|β|
cdef double ROUNDED = 1e-12, ROUNDING = 2e-15
#: float32 leaves variables as near to their bounds, as a share of what is between these
cdef double NEAR = 1e-6
#: what is added to the diagonal of a singular matrix, as a share of it, and at most
cdef double LEAST_SHIFT = 1e-13, MOST_SHIFT = 1e-6
#: those are freed together that gain this share of the largest gain: fewer minima to go to
cdef double ALIKE = 0.5


cdef class Faces(Shared):
    """Goes on with the problems of parts that have a rough solution.

    Parameters
    ----------
    settings : Many
        ``faces``: how often a variable may be freed or fixed.
    order : int
        Samples of a part at most.
    only : bool
        Whether problems that have reached their goal stay as they are.
    """

    cdef double[::1] beta, gradient, low, high, kink
    #: of the free variables: the factor of their matrix, by columns of n, the way to the minimum
    #: beside a solution for ones, and what is left of the gradient
    cdef double[::1] factor, sides, rest
    #: which they are, in the order of the factor
    cdef int64_t[::1] free
    cdef unsigned char[::1] is_free
    #: on which side of its kink a free variable lies; 0 where it has none
    cdef signed char[::1] side
    cdef int64_t count
    cdef double b, tol, most
    #: whether this face's minimum is by a factor from scratch
    cdef bint only, renewed

    def __init__(self, settings, int64_t order, bint only):
        super().__init__(settings.work)
        self.wide, self.most, self.only = order, settings.faces, only

    cdef int run(self) except -1:
        cdef int64_t loss, c, n = self.part.n
        check(n <= self.wide, "parts must be of few samples")
        self.beta, self.gradient, self.low, self.high, self.kink, self.rest = np.empty((6, n))
        self.factor, self.sides = np.empty(n * n), np.empty(2 * n)
        self.free = np.empty(n, dtype=np.int64)
        self.is_free, self.side = np.empty(n, dtype=np.uint8), np.empty(n, dtype=np.int8)
        with nogil:
            for loss in range(self.part.losses):
                for c in range(self.costs.shape[0]):
                    if not isfinite(self.intercepts[self.place, loss, c]):
                        continue  # there is no rough solution
                    if self.only and self.is_reached(loss, c):
                        continue
                    self.pose(loss, c)
                    if self.descend():
                        return 0
                    self.certify(loss, c)
        return 0

    cdef bint is_reached(self, int64_t loss, int64_t c) noexcept nogil:
        cdef double allowed = self.gap * self.costs[c] * self.part.constants[loss]
        return self.gaps[self.place, loss, c] <= min(
            allowed, self.share * self.primals[self.place, loss, c])

    cdef void pose(self, int64_t loss, int64_t c) noexcept nogil:
        """A problem, near its rough solution: what lies next to a bound or a kink belongs there."""
        cdef int64_t k, n = self.part.n
        cdef double near
        for k in range(n):
            self.low[k] = self.costs[c] * self.part.terms[loss, 0, k]
            self.high[k] = self.costs[c] * self.part.terms[loss, 1, k]
            self.kink[k] = self.part.terms[loss, 2, k]
            self.beta[k] = self.betas[self.place, loss, c, k]
            near = NEAR * (self.high[k] - self.low[k])
            self.is_free[k] = False
            if self.beta[k] <= self.low[k] + near:
                self.beta[k] = self.low[k]
            elif self.beta[k] >= self.high[k] - near:
                self.beta[k] = self.high[k]
            elif self.kink[k] > 0 and fabs(self.beta[k]) <= near:
                self.beta[k] = 0
            else:
                self.is_free[k] = True
            self.side[k] = (self.beta[k] > 0) - (self.beta[k] < 0) if self.kink[k] > 0 else 0
        if self.part.offset:
            self.balance()
        self.refresh()

    cdef void balance(self) noexcept nogil:
        """Σβ = 0, by free variables first."""
        cdef int64_t k, turn, n = self.part.n
        cdef double excess = 0, move
        for k in range(n):
            excess += self.beta[k]
        for turn in range(2):
            for k in range(n):
                if excess == 0:
                    return
                if not self.is_free[k] and turn == 0:
                    continue
                if excess > 0:
                    move = min(excess, self.beta[k] - self.low[k])
                else:
                    move = max(excess, self.beta[k] - self.high[k])
                if move != 0:
                    self.beta[k] -= move
                    excess -= move
                    self.is_free[k] = self.low[k] < self.beta[k] < self.high[k]
                    self.side[k] = ((self.beta[k] > 0) - (self.beta[k] < 0)
                                    if self.kink[k] > 0 else 0)

    cdef void refresh(self) noexcept nogil:
        """The gradient from K and β, and what it rounds."""
        cdef int64_t k, n = self.part.n
        cdef double size = 0, target = 0, largest = 0
        for k in range(n):
            self.gradient[k] = exact_product(self.exact + k * n, &self.beta[0], n) - self.part.y[k]
            size += fabs(self.beta[k])
            target = max(target, fabs(self.part.y[k]))
            largest = max(largest, fabs(self.exact[k * n + k]))
        self.tol = ROUNDED * target + ROUNDING * size * largest

    cdef bint descend(self) except -1 nogil:
        """From face to face until none is better; whether it is time to stop."""
        cdef int64_t n = self.part.n, changes = <int64_t>(self.most * n)
        self.renewed = False
        if not self.factorised():
            return False
        while changes > 0:
            changes -= 1
            if self.look(n * n):
                return True
            self.to_minimum()
            if self.advance():
                continue
            self.refresh()
            if not self.release():
                return False
        return False

    # ---- faces ----

    cdef bint factorised(self) noexcept nogil:
        """The factor of all free variables; whether rounding leaves one."""
        cdef int64_t i, j, n = self.part.n
        cdef double shift = 0
        while shift <= MOST_SHIFT:
            self.count = 0
            for i in range(n):
                if self.is_free[i]:
                    self.free[self.count] = i
                    self.count += 1
            for j in range(self.count):
                for i in range(j, self.count):
                    self.factor[j * n + i] = self.exact[self.free[j] * n + self.free[i]]
                self.factor[j * n + j] *= 1 + shift
            if self.count == 0 or factorise_at(&self.factor[0], <int>self.count, <int>n) == 0:
                self.look_around()
                return True
            shift = max(LEAST_SHIFT, 100 * shift)
        return False

    cdef void look_around(self) noexcept nogil:
        """What is left of the gradient of the free variables."""
        cdef int64_t i, f
        for i in range(self.count):
            f = self.free[i]
            self.rest[i] = -self.gradient[f] - self.side[f] * self.kink[f]

    cdef void to_minimum(self) noexcept nogil:
        """b at the minimum of the face, and the way there, the first part of ``sides``."""
        cdef int64_t i, m = self.count
        cdef double of_rest = 0, of_one = 0
        self.b = 0
        if m == 0:
            return
        for i in range(m):
            self.sides[i] = self.rest[i]
            self.sides[m + i] = 1
        solve_at(&self.factor[0], <int>m, <int>self.part.n, &self.sides[0],
                 2 if self.part.offset else 1)
        if self.part.offset:
            for i in range(m):
                of_rest += self.sides[i]
                of_one += self.sides[m + i]
            self.b = of_rest / of_one
            for i in range(m):
                self.sides[i] -= self.b * self.sides[m + i]

    cdef bint advance(self) noexcept nogil:
        """Go there, or as far as bounds allow; whether one of them was met."""
        cdef int64_t i, f, met = -1
        cdef double t = 1, step, end, met_at = 0
        for i in range(self.count):
            f, step = self.free[i], self.sides[i]
            if step > 0:
                end = 0.0 if self.side[f] < 0 and self.high[f] >= 0 else self.high[f]
            else:
                end = 0.0 if self.side[f] > 0 and self.low[f] <= 0 else self.low[f]
            if t * fabs(step) > fabs(end - self.beta[f]):
                t, met, met_at = (end - self.beta[f]) / step, i, end
        for i in range(self.count):
            self.beta[self.free[i]] += t * self.sides[i]
            self.rest[i] -= t * (self.rest[i] - self.b)
        if met < 0:
            return False
        self.beta[self.free[met]] = met_at
        self.fix(met)
        return True

    cdef void fix(self, int64_t at) noexcept nogil:
        """A free variable is free no more: its row and column leave the factor.

        What the column was to the rows below goes into their own factor by rotations.
        """
        cdef int64_t i, j, n = self.part.n, m = self.count - 1
        cdef double* column
        cdef double pivot, turned
        self.is_free[self.free[at]] = False
        for i in range(at, m):
            self.sides[i] = self.factor[at * n + i + 1]
            self.free[i] = self.free[i + 1]
            self.rest[i] = self.rest[i + 1]
        for j in range(m):
            column = &self.factor[j * n]
            if j < at:
                memmove(column + at, column + at + 1, (m - at) * sizeof(double))
            else:
                memmove(column + j, column + n + j + 1, (m - j) * sizeof(double))
        for j in range(at, m):
            column = &self.factor[j * n]
            pivot = column[j]
            turned = sqrt(pivot * pivot + self.sides[j] * self.sides[j])
            column[j] = turned
            rotate_column(column + j + 1, &self.sides[j + 1], turned / pivot, self.sides[j] / pivot,
                          m - j - 1)
        self.count = m

    cdef void loosen(self, int64_t k, int direction) noexcept nogil:
        """Free a variable that is about to rise or to fall: one more row of the factor."""
        cdef int64_t i, n = self.part.n, m = self.count
        cdef double square, own = self.exact[k * n + k]
        self.is_free[k] = True
        self.side[k] = 0
        if self.kink[k] > 0:
            if self.beta[k] == 0:
                self.side[k] = direction
            else:
                self.side[k] = 1 if self.beta[k] > 0 else -1
        for i in range(m):
            self.sides[i] = self.exact[k * n + self.free[i]]
        if m > 0:
            forward_at(&self.factor[0], <int>m, <int>n, &self.sides[0])
        square = own
        for i in range(m):
            square -= self.sides[i] * self.sides[i]
            self.factor[i * n + m] = self.sides[i]
        self.factor[m * n + m] = sqrt(max(square, LEAST_SHIFT * own))
        self.free[m] = k
        self.count = m + 1

    cdef bint release(self) noexcept nogil:
        """Free what gains most by leaving its bound; whether there is anything to gain."""
        cdef int64_t k, n = self.part.n, rises = -1, falls = -1
        cdef double up = -INFINITY, down = INFINITY, gain, here, rest = 0
        for k in range(n):
            gain = -self.gradient[k]
            if self.is_free[k]:
                rest = max(rest, fabs(gain - self.side[k] * self.kink[k] - self.b))
                continue
            if self.beta[k] < self.high[k] and gain - self.slope_up(k) > up:
                up, rises = gain - self.slope_up(k), k
            if self.beta[k] > self.low[k] and gain - self.slope_down(k) < down:
                down, falls = gain - self.slope_down(k), k
        if self.count == 0 and self.part.offset:  # b is between the two, or both move
            if up - down <= self.tol:
                return False
            self.loosen(rises, 1)
            self.loosen(falls, -1)
            self.look_around()
            return True
        gain = max(up - self.b, self.b - down)
        if gain <= self.tol:
            if rest <= self.tol or self.renewed:
                return False
            self.renewed = True  # rounding may have spoilt the factor
            return self.factorised()
        self.renewed = False
        for k in range(n):
            if self.is_free[k]:
                continue
            here = -self.gradient[k] - self.b
            if self.beta[k] < self.high[k] and here - self.slope_up(k) >= ALIKE * gain:
                self.loosen(k, 1)
            elif self.beta[k] > self.low[k] and self.slope_down(k) - here >= ALIKE * gain:
                self.loosen(k, -1)
        self.look_around()
        return True

    cdef double slope_up(self, int64_t k) noexcept nogil:
        return self.kink[k] if self.beta[k] >= 0 else -self.kink[k]

    cdef double slope_down(self, int64_t k) noexcept nogil:
        return self.kink[k] if self.beta[k] > 0 else -self.kink[k]

    cdef void certify(self, int64_t loss, int64_t c) noexcept nogil:
        """Note a problem with its gap; b is between what may still rise and what may still fall."""
        cdef int64_t k, n = self.part.n
        cdef double up = -INFINITY, down = INFINITY, r, fitted, b = 0
        cdef double norm = 0, gain = 0, kinks = 0, losses = 0
        for k in range(n):
            r = -self.gradient[k]
            if self.beta[k] < self.high[k]:
                up = max(up, r - self.slope_up(k))
            if self.beta[k] > self.low[k]:
                down = min(down, r - self.slope_down(k))
        if self.part.offset:
            b = 0.5 * (up + down)
        for k in range(n):
            r = -self.gradient[k] - b
            fitted = self.gradient[k] + self.part.y[k]
            norm += self.beta[k] * fitted
            gain += self.beta[k] * self.part.y[k]
            kinks += self.kink[k] * fabs(self.beta[k])
            if r > self.kink[k]:
                losses += self.high[k] * (r - self.kink[k])
            elif r < -self.kink[k]:
                losses += self.low[k] * (r + self.kink[k])
            self.betas[self.place, loss, c, k] = self.beta[k]
        if isfinite(norm + losses):
            self.note(loss, c, b, norm + losses - gain + kinks, 0.5 * norm + losses)
