# distutils: language = c
"""Coordinate steps on the dual without offset: one variable, or an exact pair.

    min_β  ½ βᵀKβ − yᵀβ + Σ gᵢ(βᵢ),   lowerᵢ ≤ βᵢ ≤ upperᵢ

Procedures 1 and 2 of the ER-SVM paper in β = α − β′: every pass updates the gradient
Kβ − y and finds the variable whose exact one-dimensional step gains most. Working sets:

    SINGLE   that variable alone (Algorithm 1)
    HALVES   WSS 1: the best of each half, or a pair with the previous two
    NEAREST  WSS 2: the best, with the best partner among its nearest neighbours
    ALL      the best of all pairs, n² of them a step: what the others approximate

:meth:`CoordinateState.watch` has the paper's duality gap S = T + C·E looked at after every step,
T by what the step changes and E afresh, as in Procedure 2.
"""
cimport cython
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_rows, working_row

cdef extern from "loops.h" nogil:
    double one_variable(double, double, double, double, double, double)
    # in the precision of the rows
    void update_gains(double*, const double*, const double*, int64_t, const double*, const void*,
                      const void*, double, double, int64_t, int64_t, int64_t*, double*)
    void update_box_gains(double*, const double*, int64_t, const double*, const double*,
                          const void*, const void*, double, double, int64_t, int64_t, int64_t*,
                          double*)

ctypedef fused real:
    float
    double

OPTIMAL = 0      # no variable gains more than tol
STEPS_DONE = 1   # the batch is used up
NEED_ROW = 2     # `needed` names the row of K to provide
RULED = 3        # the gap that is watched is at its goal

SINGLE = 1
HALVES = 2
NEAREST = 3
ALL = 4


cdef struct Pair:
    double beta_i
    double beta_j
    double gain


def _table(terms, diagonal):
    """The five numbers and the reciprocals of diagonal + ridge on both sides.

    Where that is zero the dual is linear: a huge reciprocal sends the variable to its bound.
    """
    table = np.empty((7, terms.shape[1]))
    table[:5] = terms
    curvature = terms[3:5] + diagonal
    table[5:] = 1.0 / np.maximum(curvature, 1e-300)
    return table


cdef class CoordinateState:
    """The working variables of a batch of coordinate steps; see PairState.

    ``neighbours`` is how many nearest points NEAREST looks at; the lists are found from
    the rows of K, by the distance K_ii + K_jj − 2 K_ij, when a point is first chosen.
    """

    cdef double[::1] beta, gradient, diagonal
    cdef double[:, ::1] terms
    cdef double[:, ::1] room
    cdef bint box
    cdef int64_t[:, ::1] nearest
    cdef int working_set
    cdef int64_t last_i, last_j
    cdef readonly double best_gain
    #: T = ⟨β, Kβ − y⟩ + Σ g(β), and the gap S = T + C·E, where they are watched
    cdef readonly double running, gap
    cdef double singular, goal, bound
    cdef bint watching
    cdef const double[::1] y
    #: C·τ and C·(1 − τ), the loss of a unit above and below
    cdef double[::1] above, below
    cdef readonly int64_t steps, needed

    def __init__(self, double[::1] beta, double[::1] gradient, const double[:, ::1] terms,
                 double[::1] diagonal, int working_set=1, int neighbours=15):
        cdef Py_ssize_t m = beta.shape[0]
        check(gradient.shape[0] == m and diagonal.shape[0] == m and terms.shape[0] == 5
              and terms.shape[1] == m, "beta, gradient, diagonal and terms must have equal lengths")
        check(1 <= working_set <= 4, "working_set must be SINGLE, HALVES, NEAREST or ALL")
        check(neighbours >= 1, "neighbours must be at least 1")
        self.beta = beta
        self.gradient = gradient
        self.terms = _table(np.asarray(terms), np.asarray(diagonal))
        self.diagonal = diagonal
        self.box = not np.any(np.asarray(terms)[2:])
        self.room = np.asarray(terms)[:2] - np.asarray(beta)
        self.working_set = working_set if m > 1 else 1
        self.nearest = np.full((m if self.working_set == 3 else 0,
                                min(neighbours, max(m - 1, 1))), -1, dtype=np.int64)
        self.best_gain = self.gap = INFINITY
        self.last_i = self.last_j = -1
        self.steps = 0
        self.needed = -1
        self.watching = False

    def watch(self, const double[::1] y, double goal, double bound=INFINITY):
        """Look at the gap S after every step, predictions clipped to ±bound, until it is at most
        ``goal``. The loss must be a square on either side, without kink or bounds."""
        cdef Py_ssize_t m = self.beta.shape[0]
        numbers = np.asarray(self.terms)
        check(y.shape[0] == m, "y must have an entry for each beta")
        check(not numbers[2].any() and np.isinf(numbers[:2]).all() and (numbers[3:5] > 0).all(),
              "a watched gap must be of squared losses without kink or bounds")
        self.y, self.goal, self.bound = y, goal, bound
        self.below, self.above = 0.5 / numbers[3], 0.5 / numbers[4]
        beta = np.asarray(self.beta)
        ridge = np.where(beta > 0, numbers[4], numbers[3])
        self.running = float(beta @ np.asarray(self.gradient) + 0.5 * (ridge * beta) @ beta)
        self.gap = self.running + self.losses()
        self.watching = True

    cdef double losses(self) noexcept nogil:
        """C·E: the losses at the predictions as they are, or clipped."""
        cdef Py_ssize_t k, q, m = self.beta.shape[0], whole = m - m % 8
        cdef double r, total = 0, bound = self.bound
        cdef bint clipped = bound < INFINITY
        cdef double[8] sums
        cdef double* gradient = &self.gradient[0]
        cdef const double* y = &self.y[0]
        cdef const double* above = &self.above[0]
        cdef const double* below = &self.below[0]
        for q in range(8):
            sums[q] = 0
        for k in range(0, whole, 8):  # eight sums side by side, for vector instructions
            if clipped:
                for q in range(8):
                    r = y[k + q] - min(max(gradient[k + q] + y[k + q], -bound), bound)
                    sums[q] += (above[k + q] if r > 0 else below[k + q]) * r * r
            else:
                for q in range(8):
                    r = -gradient[k + q]
                    sums[q] += (above[k + q] if r > 0 else below[k + q]) * r * r
        for k in range(whole, m):
            r = y[k] - min(max(gradient[k] + y[k], -bound), bound)
            total += (above[k] if r > 0 else below[k]) * r * r
        for q in range(8):
            total += sums[q]
        return total

    cdef double running_change(self, Py_ssize_t k, double b) noexcept nogil:
        """What T gains by βₖ ← b alone: the paper's −U, in β = α − β′."""
        cdef double d = b - self.beta[k]
        return (d * (2.0 * self.gradient[k] + self.y[k] + self.diagonal[k] * d)
                + self.term_change(k, b))

    cdef double term_change(self, Py_ssize_t k, double b) noexcept nogil:
        """g(b) − g(βₖ), by differences: steps far smaller than βₖ keep their digits."""
        cdef double old = self.beta[k]
        cdef double ridge_old = self.terms[4 if old > 0 else 3, k]
        cdef double ridge_new = self.terms[4 if b > 0 else 3, k]
        return (self.terms[2, k] * (fabs(b) - fabs(old)) + 0.5 * ridge_new * (b - old) * (b + old)
                + 0.5 * (ridge_new - ridge_old) * old * old)

    cdef double pair_gain(self, Py_ssize_t i, Py_ssize_t j, double k_ij, double b_i,
                          double b_j) noexcept nogil:
        """What the step to (b_i, b_j) lowers the dual by."""
        cdef double d_i = b_i - self.beta[i], d_j = b_j - self.beta[j]
        return -(d_i * (self.gradient[i] + 0.5 * self.diagonal[i] * d_i) + self.term_change(i, b_i)
                 + d_j * (self.gradient[j] + 0.5 * self.diagonal[j] * d_j)
                 + self.term_change(j, b_j) + k_ij * d_i * d_j)

    cdef double best_single(self, Py_ssize_t i, double c_i) noexcept nogil:
        return one_variable(c_i, self.terms[0, i], self.terms[1, i], self.terms[2, i],
                            self.terms[5, i], self.terms[6, i])

    cdef Pair solve_pair(self, Py_ssize_t i, Py_ssize_t j, double k_ij) noexcept nogil:
        """The exact minimiser in (βᵢ, βⱼ), all else fixed.

        Theorem 7's four cases are the four sign patterns: inside one of them the solution
        of the 2×2 system is the answer. With kinks and bounds it may also lie on an edge,
        where one variable is at 0 or at a bound and the other minimises alone.
        """
        cdef double c_i = (self.diagonal[i] * self.beta[i] + k_ij * self.beta[j]
                           - self.gradient[i])
        cdef double c_j = (self.diagonal[j] * self.beta[j] + k_ij * self.beta[i]
                           - self.gradient[j])
        cdef double a, b, r_i, r_j, det, b_i, b_j, value, edge
        cdef int case, sign_i, sign_j
        cdef Pair best
        for case in range(3 if self.box else 0, 4):
            sign_i = 1 if case & 1 else -1
            sign_j = 1 if case & 2 else -1
            a = self.diagonal[i] + self.terms[4 if sign_i > 0 else 3, i]
            b = self.diagonal[j] + self.terms[4 if sign_j > 0 else 3, j]
            det = a * b - k_ij * k_ij
            if det <= self.singular * a * b:
                continue
            r_i = c_i - sign_i * self.terms[2, i]
            r_j = c_j - sign_j * self.terms[2, j]
            b_i = (b * r_i - k_ij * r_j) / det
            b_j = (a * r_j - k_ij * r_i) / det
            if ((self.box or (sign_i * b_i >= 0 and sign_j * b_j >= 0))
                    and self.terms[0, i] <= b_i <= self.terms[1, i]
                    and self.terms[0, j] <= b_j <= self.terms[1, j]):
                best.beta_i = b_i
                best.beta_j = b_j
                best.gain = self.pair_gain(i, j, k_ij, b_i, b_j)
                return best
        best.beta_i = self.beta[i]
        best.beta_j = self.beta[j]
        best.gain = 0
        for case in range(8):
            # edges: a variable at its lower bound, zero, upper bound or where it stands
            if case < 4:
                edge = (self.terms[0, i] if case == 0 else 0.0 if case == 1
                        else self.terms[1, i] if case == 2 else self.beta[i])
                if not (self.terms[0, i] <= edge <= self.terms[1, i]) or fabs(edge) == INFINITY:
                    continue
                b_i = edge
                b_j = self.best_single(j, c_j - k_ij * b_i)
            else:
                edge = (self.terms[0, j] if case == 4 else 0.0 if case == 5
                        else self.terms[1, j] if case == 6 else self.beta[j])
                if not (self.terms[0, j] <= edge <= self.terms[1, j]) or fabs(edge) == INFINITY:
                    continue
                b_j = edge
                b_i = self.best_single(i, c_i - k_ij * b_j)
            value = self.pair_gain(i, j, k_ij, b_i, b_j)
            if value > best.gain:
                best.gain = value
                best.beta_i = b_i
                best.beta_j = b_j
        return best

    cdef double most_gain(self, Py_ssize_t i, Py_ssize_t j, double k_ij) noexcept nogil:
        """What a pair would gain if it had no bounds, at least as much as it can gain with
        them; 0 where j is at a bound that it would leave outwards, so that i moves alone."""
        cdef double q_i = self.diagonal[i], q_j = self.diagonal[j]
        cdef double g_i = self.gradient[i], g_j = self.gradient[j]
        cdef double det = q_i * q_j - k_ij * k_ij
        cdef double way_j = g_i * k_ij - g_j * q_i
        if det <= 1e-10 * q_i * q_j:
            return INFINITY
        if (way_j > 0 and self.room[1, j] <= 0) or (way_j < 0 and self.room[0, j] >= 0):
            return 0
        return 0.5 * (g_i * (g_i * q_j - g_j * k_ij) - g_j * way_j) / det

    cdef void find_nearest(self, Py_ssize_t i, const real* row) noexcept nogil:
        """The points nearest to i in the feature space, by insertion into a short list."""
        cdef Py_ssize_t k, p, count = 0, most = self.nearest.shape[1]
        cdef double d
        cdef double* distance = &self.diagonal[0]
        for k in range(self.beta.shape[0]):
            if k == i:
                continue
            d = distance[k] - 2.0 * row[k]
            if count == most:
                p = self.nearest[i, count - 1]
                if d >= distance[p] - 2.0 * row[p]:
                    continue
                p = count - 1
            else:
                p = count
                count += 1
            while p > 0 and d < (distance[self.nearest[i, p - 1]]
                                 - 2.0 * row[self.nearest[i, p - 1]]):
                self.nearest[i, p] = self.nearest[i, p - 1]
                p -= 1
            self.nearest[i, p] = k

    cdef void gains(self, const real* row_i, const real* row_j, double step_i, double step_j,
                    int64_t* first, double* gain_i, int64_t* second, double* gain_j) noexcept nogil:
        """Move the gradient and find the best variable, or the best of each half."""
        cdef Py_ssize_t part, m = self.beta.shape[0], begin = 0
        cdef Py_ssize_t end = m if self.working_set == 1 else m // 2
        cdef int64_t* index = first
        cdef double* gain = gain_i
        for part in range(1 if self.working_set == 1 else 2):
            if part == 1:
                begin, end = end, m
                index, gain = second, gain_j
            if self.box:
                update_box_gains(&self.gradient[0], &self.room[0, 0], m, &self.diagonal[0],
                                 &self.terms[6, 0], row_i, row_j, step_i, step_j, begin, end,
                                 index, gain)
            else:
                update_gains(&self.gradient[0], &self.beta[0], &self.terms[0, 0], m,
                             &self.diagonal[0], row_i, row_j, step_i, step_j, begin, end,
                             index, gain)

    def run(self, const real[:, :] rows, const int64_t[::1] slots, const int64_t[::1] gather,
            double tol, int64_t max_steps):
        """Up to ``max_steps`` steps; returns OPTIMAL, STEPS_DONE, NEED_ROW (see PairState) or RULED."""
        cdef Py_ssize_t m = self.beta.shape[0], half = m // 2
        if m == 0:
            self.best_gain = 0
            return OPTIMAL
        check_rows(rows.shape[1], rows.strides[1], sizeof(real), rows.shape[0], slots, gather, m)
        cdef bint gathering = gather is not None
        cdef real[::1] scratch_i, scratch_j
        if self.working_set == 4:
            missing = np.flatnonzero(np.asarray(slots) < 0)
            if len(missing):  # every pair is looked at, so every row is needed
                self.needed = missing[0]
                return NEED_ROW
        if gathering:
            scratch_i, scratch_j = np.empty((2, m), np.float32 if real is float else np.float64)
        cdef const real* row_i
        cdef const real* row_j
        cdef const real* row_all
        cdef Py_ssize_t i = 0, j = 0, k, p, q, anchor
        cdef int64_t first = 0, second = 0
        cdef double gain_i = 0, gain_j = 0, step_i, step_j, value, top_gain
        cdef Pair trial, best
        cdef int64_t done = 0
        cdef int status = 1
        cdef int kind = self.working_set
        cdef int c
        self.needed = -1
        # a determinant relative to a·b that the rows' rounding cannot tell from 0
        self.singular = 1e-6 if real is float else 1e-14
        with nogil:
            # a zero step along the diagonal selects without moving anything
            self.gains(<const double*>&self.diagonal[0], &self.diagonal[0], 0.0, 0.0, &first,
                       &gain_i, &second, &gain_j)
            while True:
                i = first
                top_gain = gain_i
                if kind != 1:
                    j = second
                    if gain_j > gain_i:
                        i = second
                        j = first
                        top_gain = gain_j
                self.best_gain = top_gain
                if self.watching and self.gap <= self.goal:
                    status = 3
                    break
                if top_gain <= tol:
                    status = 0
                    break
                if done >= max_steps:
                    status = 1
                    break
                if slots[i] < 0 or (kind != 1 and slots[j] < 0):
                    self.needed = i if slots[i] < 0 else j
                    status = 2
                    break
                row_i = working_row(rows, slots, gather, gathering, i, scratch_i)
                step_j = 0
                row_j = row_i
                if kind == 1:
                    value = self.best_single(i, self.diagonal[i] * self.beta[i]
                                             - self.gradient[i])
                    step_i = value - self.beta[i]
                    if self.watching:
                        self.running += self.running_change(i, value)
                    self.beta[i] = value
                else:
                    row_j = working_row(rows, slots, gather, gathering, j, scratch_j)
                    best = self.solve_pair(i, j, row_i[j])
                    anchor = i
                    q = j
                    # WSS 1: the new directions with the old ones
                    for c in range(4 if kind == 2 else 2):
                        k = i if c < 2 else j
                        p = self.last_i if c % 2 == 0 else self.last_j
                        if p < 0 or p == k or slots[p] < 0:
                            continue
                        if self.box and self.most_gain(
                                k, p, row_i[p] if c < 2 else row_j[p]) <= best.gain:
                            continue
                        trial = self.solve_pair(k, p, row_i[p] if c < 2 else row_j[p])
                        if trial.gain > best.gain:
                            best = trial
                            anchor = k
                            q = p
                    if kind == 3:
                        # WSS 2: keep i, look among its neighbours
                        if self.nearest[i, 0] < 0:
                            self.find_nearest(i, row_i)
                        for k in range(self.nearest.shape[1]):
                            p = self.nearest[i, k]
                            if self.box and self.most_gain(i, p, row_i[p]) <= best.gain:
                                continue
                            trial = self.solve_pair(i, p, row_i[p])
                            if trial.gain > best.gain:
                                best = trial
                                q = p
                    if kind == 4:
                        # the baseline: every pair there is
                        for k in range(m):
                            row_all = working_row(rows, slots, gather, gathering, k, scratch_j)
                            for p in range(k):
                                if self.box and self.most_gain(k, p, row_all[p]) <= best.gain:
                                    continue
                                trial = self.solve_pair(k, p, row_all[p])
                                if trial.gain > best.gain:
                                    best = trial
                                    anchor = k
                                    q = p
                        i, j = anchor, q
                        row_i = working_row(rows, slots, gather, gathering, i, scratch_i)
                        row_j = working_row(rows, slots, gather, gathering, j, scratch_j)
                    if slots[q] < 0:
                        self.needed = q
                        status = 2
                        break
                    if kind == 4:
                        pass
                    elif anchor != i:
                        i, j = anchor, q
                        row_i = row_j
                        row_j = working_row(rows, slots, gather, gathering, j, scratch_i)
                    elif q != j:
                        j = q
                        row_j = working_row(rows, slots, gather, gathering, j, scratch_j)
                    step_i = best.beta_i - self.beta[i]
                    step_j = best.beta_j - self.beta[j]
                    if self.watching:
                        self.running += (self.running_change(i, best.beta_i)
                                         + self.running_change(j, best.beta_j)
                                         + 2.0 * row_i[j] * step_i * step_j)
                    self.beta[i] = best.beta_i
                    self.beta[j] = best.beta_j
                    self.last_i = i
                    self.last_j = j
                done += 1
                self.room[0, i] = self.terms[0, i] - self.beta[i]
                self.room[1, i] = self.terms[1, i] - self.beta[i]
                if kind != 1:
                    self.room[0, j] = self.terms[0, j] - self.beta[j]
                    self.room[1, j] = self.terms[1, j] - self.beta[j]
                self.gains(row_i, row_j, step_i, step_j, &first, &gain_i, &second, &gain_j)
                if self.watching:
                    self.gap = self.running + self.losses()
        self.steps += done
        return status
