# distutils: language = c
"""Rows that machines are judged by: their losses, and which fits are no longer worth it."""
from libc.math cimport INFINITY, isnan, sqrt
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_places
from .terms cimport Term, TermTable, term_conjugate, term_of

cdef extern from "products.h" nogil:
    double row_product(const float*, const double*, int64_t)


cdef bint worse_by(const double* losses, const double* best, const int64_t* rows, int64_t folds,
                   int64_t stride, double errors, double slack) noexcept nogil:
    """Whether losses exceed those of another model on the same rows beyond doubt.

    They are compared row by row: much of what a fold does to a score it does to both. A fold has its
    first ``rows``, and begins ``stride`` numbers after the one before; those that one of the models
    lacks begin with NaN.
    """
    cdef double mean = 0, squares = 0, level = 0, apart
    cdef int64_t f, k, turn, m = 0
    for turn in range(2):
        for f in range(folds):
            if isnan(losses[f * stride]) or isnan(best[f * stride]):
                continue
            for k in range(f * stride, f * stride + rows[f]):
                apart = losses[k] - best[k]
                if turn == 1:
                    squares += (apart - mean) * (apart - mean)
                else:
                    mean += apart
                    level += best[k]
                    m += 1
        if m == 0:  # there is nothing to compare them by
            return False
        if turn == 0:
            mean /= m
    return mean > errors * sqrt(squares) / m + slack * level / m


def clearly_worse(const double[:, ::1] losses, const double[::1] best, double errors,
                  double slack=0.0):
    """Which rows of losses, (models, rows), exceed those of another model beyond doubt.

    The mean of the differences is then above ``errors`` of its standard errors. ``slack`` is a
    share of the other model's loss that does not count.
    """
    cdef int64_t k, m = best.shape[0]
    check(losses.shape[1] == m and m > 0, "losses must have an entry for each of best")
    worse = np.zeros(losses.shape[0], dtype=bool)
    cdef unsigned char[::1] out = worse.view(np.uint8)
    with nogil:
        for k in range(losses.shape[0]):
            out[k] = worse_by(&losses[k, 0], &best[0], &m, 1, 0, errors, slack)
    return worse


def in_the_race(const double[:, :, :, :, ::1] losses, const int64_t[::1] rows, double errors,
                double slack):
    """Which points are not clearly worse than the leader of their level, (levels, gammas, costs).

    ``losses`` are of (gammas, folds, levels, costs, rows), NaN where there is no fit; a fold has the
    first ``rows`` of them. The leader has the least loss among those on most folds. Others are
    compared with it on the folds that both have, as :func:`clearly_worse` does.
    """
    cdef int64_t g, l, c, folds, most, n_folds = losses.shape[1]
    cdef int64_t stride = losses.shape[2] * losses.shape[3] * losses.shape[4]
    cdef double total = 0, least
    cdef const double* here
    cdef const double* leader
    check(rows.shape[0] == n_folds, "rows must have a number for each fold")
    for g in range(n_folds):
        check(0 < rows[g] <= losses.shape[4], "rows must be numbers of losses")
    alive = np.zeros((losses.shape[2], losses.shape[0], losses.shape[3]), dtype=bool)
    cdef unsigned char[:, :, ::1] out = alive.view(np.uint8)
    with nogil:
        for l in range(losses.shape[2]):
            most, least, leader = 0, INFINITY, NULL
            for g in range(losses.shape[0]):
                for c in range(losses.shape[3]):
                    here = &losses[g, 0, l, c, 0]
                    folds = sum_of(here, &rows[0], n_folds, stride, &total)
                    out[l, g, c] = folds > 0
                    if folds > most or (folds == most and folds > 0 and total < least):
                        most, least, leader = folds, total, here
            for g in range(losses.shape[0]):
                for c in range(losses.shape[3]):
                    if out[l, g, c]:
                        out[l, g, c] = not worse_by(&losses[g, 0, l, c, 0], leader, &rows[0],
                                                    n_folds, stride, errors, slack)
    return alive


cdef int64_t sum_of(const double* losses, const int64_t* rows, int64_t folds, int64_t stride,
                    double* total) noexcept nogil:
    """The sum of the losses of a point; on how many folds."""
    cdef int64_t f, k, known = 0
    total[0] = 0
    for f in range(folds):
        if not isnan(losses[f * stride]):
            known += 1
            for k in range(f * stride, f * stride + rows[f]):
                total[0] += losses[k]
    return known


cdef class Judged:
    """The validation rows of a part of the data.

    Parameters
    ----------
    y : array (m,)
    terms : array (losses, 5, m)
        What residuals cost, one table a loss.
    bounds : (float, float)
        Between which predictions are clipped.
    """

    def __init__(self, const double[::1] y, const double[:, :, ::1] terms, tuple bounds):
        check(y.shape[0] > 0 and terms.shape[1] == 5 and terms.shape[2] == y.shape[0],
              "terms must have five numbers for each y")
        self.m, self.losses = y.shape[0], terms.shape[0]
        self.y, self.terms = y, terms
        self.low, self.high = bounds


cdef class Validation:
    """Judges problems of several losses and C by the validation rows of one part.

    Parameters
    ----------
    judged : Judged
    losses : array (losses, costs, at least m)
        Where the losses of the rows go; NaN where there is no fit.
    errors : float
        Along C fits overfit when two in a row are worse than the best before them by so many
        standard errors; infinite for never.
    """

    def __init__(self, Judged judged, losses, double errors):
        self.judged, self.errors = judged, errors
        self.losses = self.table = losses
        check(self.table.shape[0] == judged.losses and self.table.shape[2] >= judged.m,
              "losses must have an entry for each loss and row")

    cdef void note(self, int64_t loss, int64_t cost, int64_t row, double value) noexcept nogil:
        """The loss of a row that is predicted so."""
        cdef TermTable table
        cdef Term term
        table.numbers = &self.judged.terms[loss, 0, 0]
        table.row, table.column = self.judged.m, 1
        term = term_of(&table, row)
        value = min(max(value, self.judged.low), self.judged.high)
        self.table[loss, cost, row] = term_conjugate(&term, self.judged.y[row] - value)

    cdef void judge(self, int64_t loss, int64_t cost, const float* rows, const double* beta,
                    int64_t n, double b) noexcept nogil:
        """This problem is solved: ``rows`` are the kernel values of the m rows with n others."""
        cdef int64_t k
        for k in range(self.judged.m):
            self.note(loss, cost, k, b + row_product(rows + k * n, beta, n))

    def ended(self, numbers, values):
        """These problems, by their numbers of losses and of C, predict so, (problems, m)."""
        cdef Py_ssize_t p, k
        cdef const int64_t[::1] losses, costs
        cdef const double[:, :] at = values
        losses, costs = self.problems(numbers)
        check(at.shape[0] == losses.shape[0] and at.shape[1] == self.judged.m,
              "values must have a row for each problem")
        with nogil:
            for p in range(losses.shape[0]):
                for k in range(self.judged.m):
                    self.note(losses[p], costs[p], k, at[p, k])

    def hopeless(self, numbers):
        """Which of these come, along C, after two in a row that clearly overfit."""
        cdef Py_ssize_t p
        cdef const int64_t[::1] losses, costs
        losses, costs = self.problems(numbers)
        found = np.zeros(losses.shape[0], dtype=bool)
        cdef unsigned char[::1] out = found.view(np.uint8)
        with nogil:
            for p in range(losses.shape[0]):
                out[p] = self.over(losses[p], costs[p])
        return found

    def problems(self, numbers):
        """Problems as an array of losses and one of C, whose numbers are looked at."""
        losses, costs = (np.ascontiguousarray(part, dtype=np.int64) for part in numbers)
        check(losses.shape == costs.shape, "losses and costs must be as many")
        check_places(losses, self.table.shape[0], "losses must be numbers of losses")
        check_places(costs, self.table.shape[1], "costs must be numbers of C")
        return losses, costs

    cdef bint over(self, int64_t loss, int64_t cost) noexcept nogil:
        """Whether a problem comes after such an end."""
        cdef int64_t c, k, best = -1, worse = 0, m = self.judged.m
        cdef double total, least = INFINITY
        if self.errors == INFINITY:
            return False
        for c in range(cost):
            if isnan(self.table[loss, c, 0]):
                continue
            total = 0
            for k in range(m):
                total += self.table[loss, c, k]
            if best < 0 or total <= least:
                best = c
                least = total
                worse = 0
            elif worse_by(&self.table[loss, c, 0], &self.table[loss, best, 0], &m, 1, 0,
                          self.errors, 0):
                worse += 1
                if worse >= 2:
                    return True
            else:
                worse = 0
        return False
