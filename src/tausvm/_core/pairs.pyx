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

Without an offset Σβ may be anything. Then one more variable takes part, *nobody*: it has no kernel
row, no bounds and no terms, so that up = down = 0 there. A pair with nobody is a step of one
variable, and β is optimal iff max up ≤ 0 ≤ min down.

Both searches read the gradient and the derivatives of gᵢ for all variables. Where rows are in
float32 and the tolerance is far above what float32 makes of a gradient, a batch of steps has them in
float32 too: twice as many fit a register, and a step takes little more than half of the time. β
stays in float64, and so does the gradient between batches.
"""
cimport cython
from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_rows, working_row

cdef extern from "single.h" nogil:
    # in the precision of the rows
    int64_t update_pair(double*, const double*, const void*, const void*, double, int64_t, double*)
    int64_t second_index(const double*, const double*, const double*, const void*, double, double,
                         double, int64_t, double*)
    # all in float32
    int64_t raise_index(float*, const float*, const float*, const float*, float, int64_t, float*)
    int64_t lower_index(const float*, const float*, const float*, const float*, float, float, float,
                        int64_t, float*)

ctypedef fused real:
    float
    double

OPTIMAL = 0      # max up − min down ≤ tol
STEPS_DONE = 1   # the batch is used up
NEED_ROW = 2     # `needed` names the row of K to provide

#: curvatures of a pair that rounding cannot tell from 0
cdef double LEAST = 1e-12
cdef float LEAST_SINGLE = 1e-6
#: derivatives from here on are left to float64: float32 ends at 3e38
cdef double LARGEST_SINGLE = 1e30


cdef class PairState:
    """The working variables of a batch of pair steps.

    Parameters
    ----------
    beta, gradient : float64 arrays (m,), changed in place
    terms : float64 array (5, m): lower, upper, kink, ridge₋, ridge₊
    diagonal : float64 array (m,), K's diagonal
    single_from : float
        Steps to tolerances of at least this share of the largest derivative are searched for in
        float32, where rows are in it.
    fixed_sum : bool
        Whether Σβ keeps its value, as with an offset.
    """

    cdef double[::1] beta, gradient, diagonal
    cdef const double[:, ::1] terms
    cdef double[::1] slope_up, slope_down, curvature_down
    #: the same in float32, up to date while ``single``
    cdef float[::1] gradient32, slope_up32, slope_down32, curvature_down32
    cdef double single_from
    cdef bint single, fixed_sum
    cdef readonly double violation, up, down
    cdef readonly int64_t steps, needed

    def __init__(self, double[::1] beta, double[::1] gradient, const double[:, ::1] terms,
                 double[::1] diagonal, double single_from=INFINITY, bint fixed_sum=True):
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
        self.single_from = single_from
        self.single = False
        self.fixed_sum = fixed_sum
        self.gradient32 = None
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
        if self.single:
            self.slope_up32[k] = <float>self.slope_up[k]
            self.slope_down32[k] = <float>self.slope_down[k]
            self.curvature_down32[k] = <float>self.curvature_down[k]

    cdef bint fits_single(self, double tol) noexcept nogil:
        """Whether rounding to float32 leaves what a violation of ``tol`` is made of."""
        cdef Py_ssize_t k
        cdef double largest = 0
        for k in range(self.beta.shape[0]):
            largest = max(largest, fabs(self.gradient[k]))
            if isfinite(self.slope_up[k]):
                largest = max(largest, fabs(self.slope_up[k]))
            if isfinite(self.slope_down[k]):
                largest = max(largest, fabs(self.slope_down[k]))
        return tol >= self.single_from * largest and largest < LARGEST_SINGLE

    def enter_single(self):
        """Have the numbers of the searches in float32."""
        cdef Py_ssize_t k
        if self.gradient32 is None:
            scratch = np.empty((4, self.beta.shape[0]), dtype=np.float32)
            self.gradient32, self.slope_up32, self.slope_down32, self.curvature_down32 = scratch
        self.single = True
        for k in range(self.beta.shape[0]):
            self.gradient32[k] = <float>self.gradient[k]
            self.classify(k)

    cdef void leave_single(self) noexcept nogil:
        """Give the gradient in float64 what that in float32 has changed by."""
        cdef Py_ssize_t k
        for k in range(self.beta.shape[0]):
            self.gradient[k] += <double>self.gradient32[k] - <double>(<float>self.gradient[k])
        self.single = False

    cdef Py_ssize_t first(self, const real* row_i, const real* row_j, double step,
                          double* up) noexcept nogil:
        """Add step·(rowᵢ − rowⱼ) to the gradient; the variable with the largest up, and that."""
        cdef Py_ssize_t i, nobody = self.beta.shape[0]
        cdef float up32 = 0
        cdef bint found = False
        if real is float:
            if self.single:
                i = raise_index(&self.gradient32[0], &self.slope_up32[0], row_i, row_j,
                                <float>step, nobody, &up32)
                up[0] = up32
                found = True
        if not found:
            i = update_pair(&self.gradient[0], &self.slope_up[0], row_i, row_j, step, nobody, up)
        if not self.fixed_sum and not (i >= 0 and up[0] > 0):
            up[0] = 0
            return nobody
        return i

    cdef Py_ssize_t second(self, Py_ssize_t i, const real* row_i, double up,
                           double* down) noexcept nogil:
        """The partner of i with the largest gain; the smallest down of all."""
        cdef Py_ssize_t j, nobody = self.beta.shape[0]
        cdef double kept = 0, curvature = 0, gain, eta
        cdef float down32 = 0
        cdef bint found = False
        if i < nobody:
            kept = self.slope_down[i]
            curvature = self.diagonal[i] + self.terms[4 if self.beta[i] >= 0 else 3, i]
            # i is no partner of its own, whatever rounding makes of up − down
            self.slope_down[i] = -INFINITY
        if real is float:
            if self.single:
                if i < nobody:
                    self.slope_down32[i] = -INFINITY
                j = lower_index(&self.gradient32[0], &self.slope_down32[0],
                                &self.curvature_down32[0], row_i, <float>up, <float>curvature,
                                LEAST_SINGLE, nobody, &down32)
                if i < nobody:
                    self.slope_down32[i] = <float>kept
                down[0] = down32
                found = True
        if not found:
            j = second_index(&self.gradient[0], &self.slope_down[0], &self.curvature_down[0],
                             row_i, up, curvature, LEAST, nobody, down)
        if i < nobody:
            self.slope_down[i] = kept
        if self.fixed_sum or i == nobody:
            return j
        down[0] = min(down[0], 0)
        if j < 0:
            return nobody
        # by cross-multiplication, as the search compares gains
        gain = up + self.derivative(j) + self.slope_down[j]
        eta = max(curvature + self.curvature_down[j] - 2.0 * row_i[j], LEAST)
        return j if gain * gain * curvature > up * up * eta else nobody

    cdef double derivative(self, Py_ssize_t k) noexcept nogil:
        """(Kβ − y)ₖ as the searches have it."""
        return self.gradient32[k] if self.single else self.gradient[k]

    cdef double move(self, Py_ssize_t i, Py_ssize_t j, double slope, double eta) noexcept nogil:
        """Raise βᵢ and lower βⱼ to the minimum along the line; returns the step.

        ``slope`` < 0 is the derivative at the start, ``eta`` = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ.
        """
        cdef Py_ssize_t nobody = self.beta.shape[0]
        cdef double bi = self.beta[i] if i < nobody else 0, bj = self.beta[j] if j < nobody else 0
        cdef double curvature, room_i, room_j, room, step, total = 0
        cdef double end_i = INFINITY, end_j = -INFINITY
        cdef bint hit_i, hit_j
        while slope < 0:
            curvature = eta
            if i < nobody:
                if bi < 0:
                    curvature += self.terms[3, i]
                    end_i = self.terms[1, i] if self.terms[1, i] < 0 else 0.0
                else:
                    curvature += self.terms[4, i]
                    end_i = self.terms[1, i]
            if j < nobody:
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
        if i < nobody:
            self.beta[i] = bi
            self.classify(i)
        if j < nobody:
            self.beta[j] = bj
            self.classify(j)
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
        cdef double up_i = 0, down = 0, slope, eta, step
        cdef int64_t done = 0
        cdef int status = 1
        self.needed = -1
        if real is float:
            if self.fits_single(tol):
                self.enter_single()
        # nobody's row
        cdef real[::1] nothing = np.zeros(m, np.float32 if real is float else np.float64)
        with nogil:
            # a step of zero selects without moving anything
            i = self.first(&nothing[0], &nothing[0], 0.0, &up_i)
            while True:
                if i < 0:
                    self.violation = 0
                    status = 0
                    break
                if i < m and slots[i] < 0:
                    self.needed = i
                    status = 2
                    break
                row_i = (working_row(rows, slots, gather, gathering, i, scratch_i) if i < m
                         else &nothing[0])
                j = self.second(i, row_i, up_i, &down)
                self.violation = up_i - down
                self.up = up_i
                self.down = down
                if self.violation <= tol or j < 0:
                    status = 0
                    break
                if done >= max_steps:
                    status = 1
                    break
                if j < m and slots[j] < 0:
                    self.needed = j
                    status = 2
                    break
                slope, eta = -up_i, 0
                row_j = &nothing[0]
                if i < m:
                    eta = self.diagonal[i]
                if j < m:
                    row_j = working_row(rows, slots, gather, gathering, j, scratch_j)
                    slope -= self.derivative(j) + self.slope_down[j]
                    eta += self.diagonal[j] - 2.0 * row_i[j]
                step = self.move(i, j, slope, eta if eta > 0 else 0)
                done += 1
                i = self.first(row_i, row_j, step, &up_i)
            if self.single:
                self.leave_single()
        self.steps += done
        return status
