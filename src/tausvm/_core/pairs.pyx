# distutils: language = c
"""Pair steps on the dual with Σβ = 0.

    min_β  ½ βᵀKβ − yᵀβ + Σ gᵢ(βᵢ),   lowerᵢ ≤ βᵢ ≤ upperᵢ,   Σ βᵢ = const

One variable rises and one falls by the same amount. ``gradient`` is Kβ − y; with the
one-sided derivatives of gᵢ,

    upᵢ = −gradientᵢ − g′₊(βᵢ)   (−∞ at the upper bound)
    downⱼ = −gradientⱼ − g′₋(βⱼ)   (+∞ at the lower bound)

β is optimal iff max up ≤ min down. The first index has the largest up, the second the
largest second-order gain; the step is the exact minimiser along eᵢ − eⱼ across the kinks
of |βᵢ| and |βⱼ| (all cases of the SMO-SVR note's Tables 2 and 4, zero curvature included).
"""
cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_rows, working_row

cdef extern from "loops.h" nogil:
    # in the precision of the rows
    int64_t update_pair(double*, const double*, const void*, const void*, double, int64_t, double*)
    int64_t second_index(const double*, const double*, const double*, const void*, double, double,
                         double, int64_t, double*)

ctypedef fused real:
    float
    double

OPTIMAL = 0      # max up − min down ≤ tol
STEPS_DONE = 1   # the batch is used up
NEED_ROW = 2     # `needed` names the row of K to provide


cdef class PairState:
    """The working variables of a batch of pair steps.

    Parameters
    ----------
    beta, gradient : float64 arrays (m,), changed in place
    terms : float64 array (5, m): lower, upper, kink, ridge₋, ridge₊
    diagonal : float64 array (m,), K's diagonal
    """

    cdef double[::1] beta, gradient, diagonal
    cdef const double[:, ::1] terms
    cdef double[::1] slope_up, slope_down, curvature_down
    cdef readonly double violation, up, down
    cdef readonly int64_t steps, needed

    def __init__(self, double[::1] beta, double[::1] gradient, const double[:, ::1] terms,
                 double[::1] diagonal):
        cdef Py_ssize_t k, m = beta.shape[0]
        check(gradient.shape[0] == m and diagonal.shape[0] == m and terms.shape[0] == 5
              and terms.shape[1] == m, "beta, gradient, diagonal and terms must have equal lengths")
        self.beta = beta
        self.gradient = gradient
        self.terms = terms
        self.diagonal = diagonal
        self.slope_up = np.empty(m)
        self.slope_down = np.empty(m)
        self.curvature_down = np.empty(m)
        self.violation = INFINITY
        self.up = INFINITY
        self.down = -INFINITY
        self.steps = 0
        self.needed = -1
        for k in range(m):
            self.classify(k)

    cdef void classify(self, Py_ssize_t k) noexcept nogil:
        """Derivatives of g at βₖ to both sides, and the curvature of the way down."""
        cdef double b = self.beta[k]
        cdef double kink = self.terms[2, k]
        cdef double ridge_minus = self.terms[3, k]
        cdef double ridge_plus = self.terms[4, k]
        if b >= self.terms[1, k]:
            self.slope_up[k] = INFINITY
        elif b >= 0:
            self.slope_up[k] = kink + ridge_plus * b
        else:
            self.slope_up[k] = -kink + ridge_minus * b
        if b <= self.terms[0, k]:
            self.slope_down[k] = -INFINITY
        elif b > 0:
            self.slope_down[k] = kink + ridge_plus * b
        else:
            self.slope_down[k] = -kink + ridge_minus * b
        self.curvature_down[k] = self.diagonal[k] + (ridge_plus if b > 0 else ridge_minus)

    cdef double move(self, Py_ssize_t i, Py_ssize_t j, double slope, double eta) noexcept nogil:
        """Raise βᵢ and lower βⱼ to the minimum along the line; returns the step.

        ``slope`` < 0 is the derivative at the start, ``eta`` = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ.
        """
        cdef double bi = self.beta[i], bj = self.beta[j]
        cdef double curvature, room_i, room_j, room, step, total = 0
        cdef double end_i, end_j
        cdef bint hit_i, hit_j
        while slope < 0:
            curvature = eta
            if bi < 0:
                curvature += self.terms[3, i]
                end_i = self.terms[1, i] if self.terms[1, i] < 0 else 0.0
            else:
                curvature += self.terms[4, i]
                end_i = self.terms[1, i]
            if bj > 0:
                curvature += self.terms[4, j]
                end_j = self.terms[0, j] if self.terms[0, j] > 0 else 0.0
            else:
                curvature += self.terms[3, j]
                end_j = self.terms[0, j]
            room_i = end_i - bi
            room_j = bj - end_j
            room = room_i if room_i < room_j else room_j
            if room <= 0:
                break
            if curvature > 0 and -slope <= curvature * room:
                step = -slope / curvature
                bi += step
                bj -= step
                total += step
                break
            hit_i = room_i <= room
            hit_j = room_j <= room
            total += room
            slope += curvature * room
            bi = end_i if hit_i else bi + room
            bj = end_j if hit_j else bj - room
            # past zero the derivative of kink·|β| jumps by twice the kink
            if hit_i and bi == 0 and self.terms[1, i] > 0:
                slope += 2 * self.terms[2, i]
            if hit_j and bj == 0 and self.terms[0, j] < 0:
                slope += 2 * self.terms[2, j]
        self.beta[i] = bi
        self.beta[j] = bj
        return total

    def run(self, const real[:, :] rows, const int64_t[::1] slots, const int64_t[::1] gather,
            double tol, int64_t max_steps):
        """Up to ``max_steps`` pair steps; returns OPTIMAL, STEPS_DONE or NEED_ROW.

        Row k of the working problem is ``rows[slots[k]]``, or its columns ``gather`` if that
        is given. A negative slot is a row that is not there yet: ``needed`` names it.
        """
        cdef Py_ssize_t m = self.beta.shape[0]
        if m == 0:
            self.violation = 0
            return OPTIMAL
        check_rows(rows.shape[1], rows.strides[1], sizeof(real), rows.shape[0], slots, gather, m)
        cdef bint gathering = gather is not None
        cdef real[::1] scratch_i, scratch_j
        if gathering:
            scratch_i, scratch_j = np.empty((2, m), np.float32 if real is float else np.float64)
        cdef const real* row_i
        cdef const real* row_j
        cdef Py_ssize_t i, j
        cdef double up_i = 0, down = 0, slope, eta, step, kept
        cdef int64_t done = 0
        cdef int status = 1
        cdef double floor_ = 1e-12
        self.needed = -1
        with nogil:
            # a zero step along the diagonal selects without moving anything
            i = update_pair(&self.gradient[0], &self.slope_up[0], &self.diagonal[0],
                            &self.diagonal[0], 0.0, m, &up_i)
            while True:
                if i < 0:
                    self.violation = 0
                    status = 0
                    break
                if slots[i] < 0:
                    self.needed = i
                    status = 2
                    break
                row_i = working_row(rows, slots, gather, gathering, i, scratch_i)
                # i is no partner of its own, whatever rounding makes of up − down
                kept = self.slope_down[i]
                self.slope_down[i] = -INFINITY
                j = second_index(&self.gradient[0], &self.slope_down[0], &self.curvature_down[0],
                                 row_i, up_i,
                                 self.diagonal[i] + self.terms[4 if self.beta[i] >= 0 else 3, i],
                                 floor_, m, &down)
                self.slope_down[i] = kept
                self.violation = up_i - down
                self.up = up_i
                self.down = down
                if self.violation <= tol or j < 0:
                    status = 0
                    break
                if done >= max_steps:
                    status = 1
                    break
                if slots[j] < 0:
                    self.needed = j
                    status = 2
                    break
                row_j = working_row(rows, slots, gather, gathering, j, scratch_j)
                slope = -(up_i + self.gradient[j] + self.slope_down[j])
                eta = self.diagonal[i] + self.diagonal[j] - 2.0 * row_i[j]
                if eta < 0:
                    eta = 0
                step = self.move(i, j, slope, eta)
                self.classify(i)
                self.classify(j)
                done += 1
                i = update_pair(&self.gradient[0], &self.slope_up[0], row_i, row_j, step, m, &up_i)
        self.steps += done
        return status
