# distutils: language = c
"""Coordinate descent on the dual of a linear machine: the steps of Algorithm 4."""
from libc.stdint cimport int32_t, int64_t

from .checks cimport check
from .rows cimport Matrix, Row, RowTable, row_add, row_dot, row_fetch, row_fetch_weights, row_of, \
    row_square
from .terms cimport Term, TermTable, term_of, term_table

cdef extern from "sweeps.h" nogil:
    ctypedef struct Met:
        double total
        double largest
        double gap
        double gained
    double coordinate_step(const Term*, double, double, double, double, Met*, double*)


cdef class Sweep:
    """The state of coordinate descent, and what a pass came across.

    A step changes βᵢ, w by Δβᵢxᵢ, b by column² Δβᵢ and Σβ by Δβᵢ; predictions are x·w + b.

    Parameters
    ----------
    matrix : Matrix
    y : array (n,)
    terms : array (5, n)
    squares : array (n,)
        The squared rows with column² added; a negative one is computed when it is needed.
    column : float
    beta, w : arrays (n,) and (d,)
        They are written to.

    Attributes
    ----------
    intercept, total : float
        b, and Σβ.
    early : bool
        Whether the weights of sparse rows are fetched while the row before is worked on.
    threshold : float
        Rows leave whose conditions (26)–(28) hold by more than this.
    violations, largest, gap, gained : float
        Of the pass since :meth:`begin`: the sum of the violations and the largest one, the samples'
        shares of the duality gap when they were met, and what the steps added to the dual.
    """

    cdef Matrix matrix
    cdef const double[::1] y
    cdef const double[:, :] numbers
    cdef double[::1] squares
    cdef double[::1] beta
    cdef double[::1] w
    cdef double column
    cdef Met met
    cdef public double intercept
    cdef public double total
    cdef public double threshold
    cdef public bint early

    def __init__(self, Matrix matrix not None, const double[::1] y, const double[:, :] terms,
                 double[::1] squares, double column, double[::1] beta, double[::1] w):
        cdef Py_ssize_t n = beta.shape[0]
        term_table(terms, n)
        check(matrix.n_rows == n and y.shape[0] == n and squares.shape[0] == n,
              "all arrays must have an entry for each beta")
        check(w.shape[0] == matrix.table.n_columns, "w must have an entry for each column")
        self.matrix, self.y, self.numbers = matrix, y, terms
        self.squares, self.beta, self.w, self.column = squares, beta, w, column
        self.intercept, self.total, self.threshold = 0.0, 0.0, float("inf")
        self.early = False
        self.begin()

    def begin(self):
        """Begin a pass: nothing has been met yet."""
        self.met.total = self.met.largest = self.met.gap = self.met.gained = 0.0

    @property
    def violations(self):
        return self.met.total

    @property
    def largest(self):
        return self.met.largest

    @property
    def gap(self):
        return self.met.gap

    @property
    def gained(self):
        return self.met.gained

    def run(self, const int32_t[::1] order, int64_t begin, int64_t end, float[::1] gains):
        """Steps 6.2 on order[begin:end]; ``gains`` is what each adds to the dual, −1 where the row
        leaves."""
        cdef int64_t s, i, n = self.beta.shape[0]
        cdef int32_t least = 0, most = -1
        cdef double gradient, next_beta, step, gain, b = self.intercept, total = self.total
        cdef double lift = self.column * self.column, threshold = self.threshold
        cdef const RowTable* rows = &self.matrix.table
        cdef const double* y = &self.y[0]
        cdef double* squares = &self.squares[0]
        cdef double* beta = &self.beta[0]
        cdef double* w = &self.w[0]
        cdef TermTable terms = term_table(self.numbers, n)
        cdef Term t
        cdef Row row
        cdef Met met = self.met
        cdef bint early = self.early and rows.columns != NULL
        check(0 <= begin and end <= order.shape[0] and order.shape[0] == gains.shape[0],
              "begin and end must be within the order, which must have as many gains")
        for s in range(begin, end):
            least = min(least, order[s])
            most = max(most, order[s])
        check(least >= 0 and most < n, "order must name samples")
        with nogil:
            for s in range(begin, end):
                if early and s + 1 < end:
                    row_fetch_weights(rows, row_of(rows, order[s + 1]), w)
                if early and s + 2 < end:
                    row_fetch(row_of(rows, order[s + 2]))
                i = order[s]
                row = row_of(rows, i)
                gradient = row_dot(rows, row, w) + b - y[i]
                if squares[i] < 0:
                    squares[i] = row_square(rows, row) + lift
                t = term_of(&terms, i)
                next_beta = coordinate_step(&t, beta[i], gradient, squares[i], threshold, &met, &gain)
                gains[s] = <float>gain
                step = next_beta - beta[i]
                if step != 0:
                    beta[i] = next_beta
                    row_add(rows, row, step, w)
                    b += lift * step
                    total += step
        self.intercept, self.total, self.met = b, total, met
