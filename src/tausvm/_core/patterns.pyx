# distutils: language = c
"""Squared losses of few samples to rounding, in float64.

Where samples are as few as in a small table a factorisation takes microseconds, and problems are
solved for good by Newton's method: once the signs of β are known, the rest is one linear system.
"""
from libc.math cimport isfinite
from libc.string cimport memcpy
import numpy as np

from libc.stdint cimport int64_t
from .checks cimport check
from .lapack cimport factorise_at, solve_at
from .parts cimport Shared

cdef extern from "products.h" nogil:
    double exact_product(const double*, const double*, int64_t)

#: patterns of signs that Newton's method may go through; it takes two to six of them
cdef int MOST_PATTERNS = 30


cdef class Patterns(Shared):
    """Squared losses: every problem from the signs of the one before it, or of its start.

    ::

        (K + ridge) β + b = y,  Σβ = 0 if b is free,  with the ridges of the signs of β

    Parameters
    ----------
    settings : Many
    """

    cdef double[::1] shifted, sides
    cdef unsigned char[::1] above

    def __init__(self, settings):
        super().__init__(settings.work)
        self.wide = settings.few

    cdef int run(self) except -1:
        cdef int64_t loss, c, k, n = self.part.n
        cdef const double* start
        check(self.part.weight is not None and n <= self.wide,
              "parts must be few samples of squared losses")
        self.shifted, self.sides = np.empty(n * n), np.empty(2 * n)
        self.above = np.empty(n, dtype=np.uint8)
        with nogil:
            for loss in range(self.part.losses):
                for k in range(n):
                    self.above[k] = self.part.y[k] > 0
                for c in range(self.costs.shape[0]):
                    if not self.wanted[loss, c] or self.over(loss, c):
                        continue
                    if self.begun[self.place, loss, c]:
                        start = &self.betas[self.place, loss, c, 0]
                        for k in range(n):
                            self.above[k] = start[k] > 0
                    self.settle(loss, c)
                    if self.look(n * n * n):
                        return 0
        return 0

    cdef void settle(self, int64_t loss, int64_t c) noexcept nogil:
        """Solve one problem; nothing is kept of it where rounding leaves no factor."""
        cdef int64_t k, turn, changed, n = self.part.n
        cdef double rise = self.part.ridges[loss, 0] / self.costs[c]
        cdef double fall = self.part.ridges[loss, 1] / self.costs[c]
        cdef double of_y, of_one, b = 0
        cdef double* beta = &self.betas[self.place, loss, c, 0]
        for turn in range(MOST_PATTERNS):
            memcpy(&self.shifted[0], self.exact, n * n * sizeof(double))
            for k in range(n):
                self.shifted[k * n + k] += (rise if self.above[k] else fall) / self.part.weight[k]
                self.sides[k] = self.part.y[k]
                self.sides[n + k] = 1
            if factorise_at(&self.shifted[0], <int>n, <int>n) != 0:
                return
            solve_at(&self.shifted[0], <int>n, <int>n, &self.sides[0],
                     2 if self.part.offset else 1)
            if self.part.offset:
                of_y, of_one = 0, 0
                for k in range(n):
                    of_y += self.sides[k]
                    of_one += self.sides[n + k]
                b = of_y / of_one
            changed = 0
            for k in range(n):
                beta[k] = self.sides[k] - (b * self.sides[n + k] if self.part.offset else 0)
                changed += self.above[k] != (beta[k] > 0)
                self.above[k] = beta[k] > 0
            if changed == 0 or rise == fall:
                break
        self.certify(loss, c, b, rise, fall)

    cdef void certify(self, int64_t loss, int64_t c, double b, double rise,
                      double fall) noexcept nogil:
        """Note a problem with its gap, each term of which is at least 0."""
        cdef int64_t k, n = self.part.n
        cdef double fitted, r, ridge, cost, gap = 0, primal = 0
        cdef const double* beta = &self.betas[self.place, loss, c, 0]
        for k in range(n):
            fitted = exact_product(self.exact + k * n, beta, n)
            r = self.part.y[k] - fitted - b
            ridge = (rise if beta[k] > 0 else fall) / self.part.weight[k]
            cost = 0.5 * self.part.weight[k] * r * r / (rise if r > 0 else fall)
            gap += cost + (0.5 * ridge * beta[k] - r) * beta[k]
            primal += cost + 0.5 * beta[k] * fitted
        if isfinite(gap):
            self.note(loss, c, b, gap, primal)
