# distutils: language = c
"""Pair steps in single precision, to a rough duality gap that they watch themselves.

    min_β  ½ βᵀKβ − yᵀβ + Σ kinkᵢ|βᵢ|,   lowerᵢ ≤ βᵢ ≤ upperᵢ,   Σ βᵢ = 0

The steps are those of ``pairs``. The gradient Kβ − y is kept in float32, which holds twice as
many numbers in a register: good enough for gaps of some permille.
"""
from libc.math cimport INFINITY, fabs, isfinite
import numpy as np

include "checks.pxi"

cdef extern from "single.h" nogil:
    int64_t raise_index(float*, const float*, const float*, const float*, float, int64_t, float*)
    int64_t lower_index(const float*, const float*, const float*, const float*, float, float, float,
                     int64_t, float*)
    double offset_pull(const float*, const float*, const float*, const float*, float, int64_t)

#: halvings of the interval in which the offset lies
cdef int HALVINGS = 12
#: a curvature of a pair that rounding cannot tell from 0
cdef float LEAST = 1e-6


cdef class SinglePairs:
    """Pair steps on one matrix.

    Parameters
    ----------
    rows : float32 array (n, n)
        K.
    y : float64 array (n,)
    """

    cdef const float[:, ::1] rows
    cdef const double[::1] y
    cdef float[::1] diagonal, slope_up, slope_down, lower, upper, kink, gradient32
    cdef double[::1] beta_
    cdef readonly double gap, primal, offset
    cdef readonly int64_t steps

    def __init__(self, const float[:, ::1] rows, const double[::1] y):
        n = len(y)
        check(rows.shape[0] == n and rows.shape[1] == n, "rows must be square, one for each y")
        self.rows = rows
        self.y = y
        self.diagonal = np.diagonal(rows).copy()
        self.slope_up = np.empty(n, dtype=np.float32)
        self.slope_down = np.empty(n, dtype=np.float32)
        self.lower = np.empty(n, dtype=np.float32)
        self.upper = np.empty(n, dtype=np.float32)
        self.kink = np.empty(n, dtype=np.float32)
        self.gradient32 = -np.asarray(y, dtype=np.float32)
        self.beta_ = np.zeros(n)

    @property
    def beta(self):
        """β, a copy."""
        return np.array(self.beta_)

    @property
    def gradient(self):
        """Kβ − y as the steps see it, in float64."""
        return np.asarray(self.gradient32, dtype=np.float64)

    def begin(self, const double[::1] beta, const double[::1] gradient,
              const double[:, ::1] terms):
        """Start from a feasible β on the problem with these terms (no ridge)."""
        cdef Py_ssize_t k, n = self.y.shape[0]
        check(beta.shape[0] == n and gradient.shape[0] == n and terms.shape[0] >= 3
              and terms.shape[1] == n, "beta, gradient and terms must have an entry for each y")
        self.steps = 0
        for k in range(n):
            self.lower[k] = <float>terms[0, k]
            self.upper[k] = <float>terms[1, k]
            self.kink[k] = <float>terms[2, k]
            self.beta_[k] = min(max(beta[k], <double>self.lower[k]), <double>self.upper[k])
            self.gradient32[k] = <float>gradient[k]
            self.classify(k)

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
        self.offset = b
        self.primal = 0.5 * norm + losses
        self.gap = self.primal - (gain - 0.5 * norm - kinks)

    def run(self, double allowed, double share, int64_t each, int64_t most):
        """Steps until the gap is ``allowed`` and ``share`` of the primal objective.

        The gap is looked at every ``each`` steps. Returns whether there is nothing left to do;
        otherwise ``most`` steps have been taken.
        """
        cdef int64_t until = self.steps + most
        cdef float up = 0, down = 0
        cdef bint optimal
        if self.y.shape[0] == 0:
            return True
        with nogil:
            optimal = self.batch(0, &up, &down)
            self.assess(up, down)
            while not optimal and self.gap > min(allowed, share * self.primal):
                if self.steps >= until:
                    break
                optimal = self.batch(max(each, self.steps // 8), &up, &down)
                self.assess(up, down)
        return optimal or self.gap <= min(allowed, share * self.primal)
