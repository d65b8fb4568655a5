# distutils: language = c
"""Rows that machines are judged by: their losses, and which fits are no longer worth it."""
from libc.math cimport INFINITY, isnan, sqrt
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_places
from .terms cimport Term, TermTable, term_conjugate, term_of

cdef extern from "single.h" nogil:
    double row_product(const float*, const double*, int64_t)


cdef bint worse_by(const double* losses, const double* best, int64_t m, double errors,
                   double slack) noexcept nogil:
    """Whether losses exceed those of another model on the same m rows beyond doubt.

    They are compared row by row: much of what a fold does to a score it does to both.
    """
    cdef double mean = 0, squares = 0, level = 0
    cdef int64_t k
    for k in range(m):
        mean += losses[k] - best[k]
        level += best[k]
    mean /= m
    for k in range(m):
        squares += (losses[k] - best[k] - mean) * (losses[k] - best[k] - mean)
    return mean > errors * sqrt(squares) / m + slack * level / m


def clearly_worse(const double[:, ::1] losses, const double[::1] best, double errors,
                  double slack=0.0):
    """Which rows of losses, (models, rows), exceed those of another model beyond doubt.

    The mean of the differences is then above ``errors`` of its standard errors. ``slack`` is a
    share of the other model's loss that does not count.
    """
    cdef Py_ssize_t k, m = best.shape[0]
    check(losses.shape[1] == m and m > 0, "losses must have an entry for each of best")
    worse = np.zeros(losses.shape[0], dtype=bool)
    cdef unsigned char[::1] out = worse.view(np.uint8)
    with nogil:
        for k in range(losses.shape[0]):
            out[k] = worse_by(&losses[k, 0], &best[0], m, errors, slack)
    return worse


cdef class Validation:
    """The validation rows of problems of several losses and C.

    Parameters
    ----------
    predict : callable
        From rows of β, (fits, n), to values at the validation rows, (fits, m).
    rows : float32 array (m, n) or None
        Kernel values with the training rows, where they are held: with these the compiled walks
        judge by themselves.
    y : array (m,)
    terms : array (losses, 5, m)
        What residuals cost, one table a loss.
    costs : int
        How many C there are.
    bounds : (float, float)
        Between which predictions are clipped.
    errors : float
        Along C fits overfit when two in a row are worse than the best before them by so many
        standard errors; infinite for never.

    Attributes
    ----------
    losses : array (losses, costs, m)
        Of the rows; NaN where there is no fit.
    """

    def __init__(self, predict, const float[:, ::1] rows, const double[::1] y,
                 const double[:, :, ::1] terms, int64_t costs, tuple bounds, double errors):
        check(y.shape[0] > 0 and terms.shape[1] == 5 and terms.shape[2] == y.shape[0],
              "terms must have five numbers for each y")
        check(rows is None or rows.shape[0] == y.shape[0], "rows must have one for each y")
        self.predict = predict
        self.rows, self.y, self.terms = rows, y, terms
        self.low, self.high = bounds
        self.errors = errors
        self.losses = np.full((terms.shape[0], costs, y.shape[0]), np.nan)
        self.table = self.losses

    cdef void note(self, int64_t loss, int64_t cost, int64_t row, double value) noexcept nogil:
        """The loss of a row that is predicted so."""
        cdef TermTable table
        cdef Term term
        table.numbers = &self.terms[loss, 0, 0]
        table.row, table.column = self.y.shape[0], 1
        term = term_of(&table, row)
        value = min(max(value, self.low), self.high)
        self.table[loss, cost, row] = term_conjugate(&term, self.y[row] - value)

    cdef void judge(self, int64_t loss, int64_t cost, const double* beta, double b) noexcept nogil:
        """This problem is solved."""
        cdef int64_t k
        for k in range(self.y.shape[0]):
            self.note(loss, cost, k, b + row_product(&self.rows[k, 0], beta, self.rows.shape[1]))

    def ended(self, numbers, beta, intercept):
        """These problems, by their numbers of losses and of C, are solved."""
        cdef Py_ssize_t p, k
        cdef const int64_t[::1] losses, costs
        losses, costs = self.problems(numbers)
        cdef const double[:, :] values = (
            np.asarray(self.predict(beta), dtype=np.float64) + intercept[:, None])
        check(values.shape[0] == losses.shape[0] and values.shape[1] == self.y.shape[0],
              "beta and intercept must have a row for each problem")
        with nogil:
            for p in range(losses.shape[0]):
                for k in range(self.y.shape[0]):
                    self.note(losses[p], costs[p], k, values[p, k])

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
        cdef int64_t c, k, best = -1, worse = 0, m = self.y.shape[0]
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
            elif worse_by(&self.table[loss, c, 0], &self.table[loss, best, 0], m, self.errors, 0):
                worse += 1
                if worse >= 2:
                    return True
            else:
                worse = 0
        return False
