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
from .checks cimport check, check_places
from .validation cimport Validation

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
    """The walks along C of some losses on one matrix.

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
    beta : array (losses, costs, n)
    intercept, gap, primal : arrays (losses, costs)
        Where solutions go.
    """

    cdef const float[:, ::1] rows
    cdef const double[::1] y
    cdef float[::1] diagonal, slope_up, slope_down, lower, upper, kink, gradient32
    cdef double[::1] beta_
    cdef const double[:, ::1] terms, starts
    cdef const double[::1] costs
    cdef const int64_t[::1] wanted
    cdef double batch_, most, allowed, share, cost
    #: steps of this problem, and since the gradient was computed
    cdef int64_t loss, steps, since
    cdef bint begun
    cdef Validation validation
    #: how many problems are done, and how many there are
    cdef readonly int64_t done, count
    cdef double gap_, primal_, offset_
    cdef double[:, :, ::1] betas
    cdef double[:, ::1] intercepts, gaps, primals

    def __init__(self, const float[:, ::1] rows, const double[::1] y, double batch, double most,
                 double[:, :, ::1] beta, double[:, ::1] intercept, double[:, ::1] gap,
                 double[:, ::1] primal):
        n = len(y)
        check(rows.shape[0] == n and rows.shape[1] == n, "rows must be square, one for each y")
        check(beta.shape[2] == n, "beta must have an entry for each y")
        shape = beta.shape[0], beta.shape[1]
        check((intercept.shape[0], intercept.shape[1]) == shape
              and (gap.shape[0], gap.shape[1]) == shape
              and (primal.shape[0], primal.shape[1]) == shape,
              "results must have an entry for each loss and C")
        self.rows = rows
        self.y = y
        self.batch_ = batch
        self.most = most
        self.betas, self.intercepts, self.gaps, self.primals = beta, intercept, gap, primal
        scratch = np.zeros((7, n), dtype=np.float32)
        scratch[0] = np.diagonal(rows)
        self.diagonal, self.slope_up, self.slope_down, self.lower = scratch[:4]
        self.upper, self.kink, self.gradient32 = scratch[4:]
        self.beta_ = np.zeros(n)

    def begin(self, int64_t loss, const double[:, ::1] terms, const double[::1] costs,
              const int64_t[::1] wanted, double allowed, double share,
              const double[:, ::1] starts=None, Validation validation=None):
        """Walk along ``costs[wanted]``, ascending, from β = 0.

        ``terms`` are those of C = 1, without ridges. A problem ends at a duality gap of
        C·``allowed`` and of ``share`` times its primal objective. A row of ``starts`` whose first
        number is finite is where its problem starts, instead of at the one before. The walk ends
        where it overfits by the validation rows.
        """
        cdef Py_ssize_t k, n = self.y.shape[0]
        check(terms.shape[0] >= 3 and terms.shape[1] == n, "terms must have an entry for each y")
        check(0 <= loss < self.betas.shape[0] and costs.shape[0] == self.betas.shape[1],
              "loss and costs must be those of the results")
        check_places(wanted, costs.shape[0], "wanted must name costs")
        check(starts is None or (starts.shape[0] == wanted.shape[0] and starts.shape[1] == n),
              "starts must have a row for each problem wanted")
        if validation is not None:
            check(validation.rows is not None and validation.rows.shape[1] == n,
                  "validation must have a kernel value for each y")
            validation.problems((np.full(len(wanted), loss), wanted))
        self.loss, self.terms, self.costs, self.wanted = loss, terms, costs, wanted
        self.starts, self.validation = starts, validation
        self.allowed, self.share = allowed, share
        self.cost = 0
        self.done, self.count = 0, wanted.shape[0] if n > 0 else 0
        self.since = 0
        self.begun = False
        for k in range(n):
            self.beta_[k] = 0
            self.gradient32[k] = <float>(-self.y[k])

    def advance(self, int64_t budget):
        """Solve problems until all are done or ``budget`` steps were taken."""
        cdef float up = 0, down = 0
        cdef bint ended
        cdef int64_t each, limit, left = budget
        cdef Py_ssize_t n = self.y.shape[0]
        with nogil:
            while self.done < self.count:
                if not self.begun:
                    if (self.validation is not None
                            and self.validation.over(self.loss, self.wanted[self.done])):
                        self.count = self.done
                        break
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
        cdef int64_t k = self.wanted[self.done]
        self.betas[self.loss, k, :] = self.beta_
        self.intercepts[self.loss, k] = self.offset_
        self.gaps[self.loss, k] = self.gap_
        self.primals[self.loss, k] = self.primal_
        if self.validation is not None:
            self.validation.judge(self.loss, k, &self.beta_[0], self.offset_)
        self.done += 1
        self.begun = False

    cdef void follow(self) noexcept nogil:
        """Begin the next problem, at its start or at the best multiple of β."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        cdef double norm = 0, gain = 0, factor, fitted
        if self.starts is not None and isfinite(self.starts[self.done, 0]):
            self.beta_[:] = self.starts[self.done]
            self.pose()
            self.balance()
            self.refresh()
            return
        if self.cost > 0:
            for k in range(n):
                fitted = self.gradient32[k] + self.y[k]
                norm += self.beta_[k] * fitted
                gain += self.beta_[k] * self.y[k] - self.kink[k] * fabs(self.beta_[k])
            factor = self.costs[self.wanted[self.done]] / self.cost
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
        self.cost = self.costs[self.wanted[self.done]]
        self.steps = 0
        for k in range(n):
            self.lower[k] = <float>(self.cost * self.terms[0, k])
            self.upper[k] = <float>(self.cost * self.terms[1, k])
            self.kink[k] = <float>self.terms[2, k]
            self.beta_[k] = min(max(self.beta_[k], <double>self.lower[k]), <double>self.upper[k])
            self.classify(k)

    cdef void balance(self) noexcept nogil:
        """Take what Σβ is above or below 0 from all β, in proportion to the room they have."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        cdef double excess = 0, room = 0, size = 0
        for k in range(n):
            excess += self.beta_[k]
            size += fabs(self.beta_[k])
        if fabs(excess) <= 1e-14 * size:
            return
        for k in range(n):
            room += (self.beta_[k] - self.lower[k] if excess > 0 else self.upper[k] - self.beta_[k])
        for k in range(n):
            self.beta_[k] -= excess / room * (
                self.beta_[k] - self.lower[k] if excess > 0 else self.upper[k] - self.beta_[k])
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
