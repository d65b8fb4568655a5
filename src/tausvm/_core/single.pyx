# distutils: language = c
"""One loss along C in single precision, to rough duality gaps that the walk watches itself.

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
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check

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


cdef class SinglePairs:
    """The walk along C of one loss on one matrix.

    Parameters
    ----------
    rows : float32 array (n, n)
        K.
    y : float64 array (n,)
    batch : float
        Steps a variable between two looks at the gap; later ones come after an eighth of the steps
        taken.
    most : float
        Steps a variable that a problem may take.
    """

    cdef const float[:, ::1] rows
    cdef const double[::1] y
    cdef float[::1] diagonal, slope_up, slope_down, lower, upper, kink, gradient32
    cdef double[::1] beta_
    cdef const double[:, ::1] terms
    cdef const double[::1] costs
    cdef double batch_, most, allowed, share, cost
    #: steps of this problem, and since the gradient was computed
    cdef int64_t steps, since
    cdef bint begun
    #: how many problems are done
    cdef readonly int64_t done
    cdef double gap_, primal_, offset_
    cdef readonly object beta, intercept, gap, primal, taken
    cdef double[:, ::1] betas
    cdef double[::1] intercepts, gaps, primals
    cdef int64_t[::1] counts

    def __init__(self, const float[:, ::1] rows, const double[::1] y, double batch, double most):
        n = len(y)
        check(rows.shape[0] == n and rows.shape[1] == n, "rows must be square, one for each y")
        self.rows = rows
        self.y = y
        self.batch_ = batch
        self.most = most
        self.diagonal = np.diagonal(rows).copy()
        self.slope_up = np.empty(n, dtype=np.float32)
        self.slope_down = np.empty(n, dtype=np.float32)
        self.lower = np.empty(n, dtype=np.float32)
        self.upper = np.empty(n, dtype=np.float32)
        self.kink = np.empty(n, dtype=np.float32)
        self.gradient32 = np.empty(n, dtype=np.float32)
        self.beta_ = np.zeros(n)

    def begin(self, const double[:, ::1] terms, const double[::1] costs, double allowed,
              double share):
        """Walk along ``costs``, ascending, from β = 0.

        ``terms`` are those of C = 1, without ridges. A problem ends at a duality gap of
        C·``allowed`` and of ``share`` times its primal objective.
        """
        cdef Py_ssize_t k, n = self.y.shape[0], count = costs.shape[0]
        check(terms.shape[0] >= 3 and terms.shape[1] == n, "terms must have an entry for each y")
        self.terms = terms
        self.costs = costs
        self.allowed = allowed
        self.share = share
        self.cost = 0
        self.done = 0
        self.since = 0
        self.begun = False
        self.beta = np.zeros((count, n))
        self.intercept = np.full(count, np.nan)
        self.gap = np.full(count, np.inf)
        self.primal = np.full(count, np.inf)
        self.taken = np.zeros(count, dtype=np.int64)
        self.betas, self.intercepts, self.gaps = self.beta, self.intercept, self.gap
        self.primals, self.counts = self.primal, self.taken
        for k in range(n):
            self.beta_[k] = 0
            self.gradient32[k] = <float>(-self.y[k])

    def start(self, const double[::1] beta):
        """Begin the next problem at a feasible β instead of at that of the one before."""
        check(beta.shape[0] == self.y.shape[0], "beta must have an entry for each y")
        check(self.costs is not None and self.done < self.costs.shape[0], "a problem must be left to start")
        self.beta_[:] = beta
        self.pose()
        self.refresh()
        self.begun = True

    def advance(self, int64_t until, int64_t budget):
        """Solve problems until ``until`` are done or ``budget`` steps were taken."""
        cdef float up = 0, down = 0
        cdef bint ended
        cdef int64_t each, limit, left = budget
        cdef Py_ssize_t n = self.y.shape[0]
        if n == 0 or self.costs is None:
            return
        with nogil:
            while self.done < min(until, <int64_t>self.costs.shape[0]):
                if not self.begun:
                    self.follow()
                    self.begun = True
                limit = <int64_t>(self.most * n)
                each = <int64_t>(self.batch_ * n) + 1
                ended = self.batch(0, &up, &down)
                self.assess(up, down)
                while not ended:
                    ended = self.gap_ <= min(self.cost * self.allowed, self.share * self.primal_)
                    if ended or self.steps >= limit or left <= 0:
                        break
                    left += self.steps
                    ended = self.batch(max(each, self.steps // 8), &up, &down)
                    left -= self.steps
                    self.assess(up, down)
                if not ended and self.steps < limit:
                    break
                self.note()

    cdef void note(self) noexcept nogil:
        """The problem is done."""
        self.betas[self.done, :] = self.beta_
        self.intercepts[self.done] = self.offset_
        self.gaps[self.done] = self.gap_
        self.primals[self.done] = self.primal_
        self.counts[self.done] = self.steps
        self.done += 1
        self.begun = False

    cdef void follow(self) noexcept nogil:
        """Begin the next problem at the best multiple of β."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        cdef double norm = 0, gain = 0, factor, fitted
        if self.cost > 0:
            for k in range(n):
                fitted = self.gradient32[k] + self.y[k]
                norm += self.beta_[k] * fitted
                gain += self.beta_[k] * self.y[k] - self.kink[k] * fabs(self.beta_[k])
            factor = self.costs[self.done] / self.cost
            if norm > 0:
                factor = min(max(gain / norm, 0.0), factor)
            for k in range(n):
                self.beta_[k] *= factor
                fitted = factor * (self.gradient32[k] + self.y[k])
                self.gradient32[k] = <float>(fitted - self.y[k])
        self.pose()
        if self.since > REFRESH * n:
            self.refresh()

    cdef void pose(self) noexcept nogil:
        """The bounds of the next problem; β is moved into them where rounding left it outside."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        self.cost = self.costs[self.done]
        self.steps = 0
        for k in range(n):
            self.lower[k] = <float>(self.cost * self.terms[0, k])
            self.upper[k] = <float>(self.cost * self.terms[1, k])
            self.kink[k] = <float>self.terms[2, k]
            self.beta_[k] = min(max(self.beta_[k], <double>self.lower[k]), <double>self.upper[k])
            self.classify(k)

    cdef void refresh(self) noexcept nogil:
        """The gradient from K and β."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        self.since = 0
        for k in range(n):
            self.gradient32[k] = <float>(row_product(&self.rows[k, 0], &self.beta_[0], n)
                                         - self.y[k])

    cdef void classify(self, Py_ssize_t k) noexcept nogil:
        """Derivatives of kink·|β| to both sides, infinite at a bound."""
        cdef double b = self.beta_[k]
        self.slope_up[k] = self.kink[k] if b >= 0 else -self.kink[k]
        self.slope_down[k] = self.kink[k] if b > 0 else -self.kink[k]
        if b >= self.upper[k]:
            self.slope_up[k] = INFINITY
        if b <= self.lower[k]:
            self.slope_down[k] = -INFINITY

    cdef double move(self, Py_ssize_t i, Py_ssize_t j, double slope, double eta) noexcept nogil:
        """Raise βᵢ and lower βⱼ to the minimum along the line, across their kinks."""
        cdef double bi = self.beta_[i], bj = self.beta_[j]
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
        self.beta_[i] = bi
        self.beta_[j] = bj
        return total

    cdef bint batch(self, int64_t count, float* up, float* down) noexcept nogil:
        """So many steps; whether none is left to take. ``up`` and ``down`` bound the offset."""
        cdef Py_ssize_t n = self.y.shape[0], i, j
        cdef float kept, step
        cdef double eta
        cdef int64_t done
        i = raise_index(&self.gradient32[0], &self.slope_up[0], &self.diagonal[0],
                        &self.diagonal[0], 0, n, up)
        for done in range(count + 1):
            if i < 0:
                return True
            # i is no partner of its own, whatever rounding makes of up − down
            kept = self.slope_down[i]
            self.slope_down[i] = -INFINITY
            j = lower_index(&self.gradient32[0], &self.slope_down[0], &self.diagonal[0],
                            &self.rows[i, 0], up[0], self.diagonal[i], LEAST, n, down)
            self.slope_down[i] = kept
            if j < 0 or up[0] <= down[0]:
                return True
            if done == count:
                return False
            eta = self.diagonal[i] + self.diagonal[j] - 2.0 * self.rows[i, j]
            step = <float>self.move(i, j, -(up[0] + self.gradient32[j] + self.slope_down[j]),
                                    max(eta, 0.0))
            self.classify(i)
            self.classify(j)
            self.steps += 1
            self.since += 1
            i = raise_index(&self.gradient32[0], &self.slope_up[0], &self.rows[i, 0],
                            &self.rows[j, 0], step, n, up)
        return False

    cdef void assess(self, float up, float down) noexcept nogil:
        """The offset that minimises the primal at this β, the primal and the gap."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        cdef double low = min(up, down), high = max(up, down), b, r, losses = 0
        cdef double norm = 0, gain = 0, kinks = 0, fitted
        cdef int halving
        if not isfinite(low) or not isfinite(high):
            b = low if isfinite(low) else high if isfinite(high) else 0.0
        else:
            for halving in range(HALVINGS):
                b = 0.5 * (low + high)
                if offset_pull(&self.gradient32[0], &self.lower[0], &self.upper[0],
                               &self.kink[0], <float>b, n) > 0:
                    low = b
                else:
                    high = b
            b = 0.5 * (low + high)
        for k in range(n):
            r = -<double>self.gradient32[k] - b
            fitted = self.gradient32[k] + self.y[k]
            norm += self.beta_[k] * fitted
            gain += self.beta_[k] * self.y[k]
            kinks += self.kink[k] * fabs(self.beta_[k])
            if r > self.kink[k]:
                losses += self.upper[k] * (r - self.kink[k])
            elif r < -self.kink[k]:
                losses += self.lower[k] * (r + self.kink[k])
        self.offset_ = b
        self.primal_ = 0.5 * norm + losses
        self.gap_ = self.primal_ - (gain - 0.5 * norm - kinks)
