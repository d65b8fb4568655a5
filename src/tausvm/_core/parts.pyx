# distutils: language = c
"""Problems of several losses and C on parts of the data, such as the folds of a selection.

A part names the rows of a matrix that its machines are fitted on, and those that they are judged
by. :class:`Shared` goes from part to part: gathers the kernel values of its rows in float32 and has
a subclass solve all that is wanted of it. What is done in between takes microseconds, so that many
small parts cost little more than their arithmetic.
"""
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_places
from .validation cimport Judged, Validation

ctypedef fused real:
    float
    double

ctypedef fused gathered:
    float
    double


cdef void gather(const real[:, ::1] matrix, const int64_t[::1] rows, int64_t count, int64_t n,
                 gathered* out) noexcept:
    """out[r, k] = matrix[rows[r], rows[k]] for r < count, k < n; without rows their own numbers."""
    cdef int64_t r, k
    with nogil:
        for r in range(count):
            for k in range(n):
                out[r * n + k] = <gathered>(matrix[r, k] if rows is None
                                            else matrix[rows[r], rows[k]])


cdef class Part:
    """Rows that machines are fitted on, with the losses of C = 1, and rows that judge them.

    Parameters
    ----------
    y : array (n,)
    terms : array (losses, 5, n)
        Of C = 1.
    constants : array (losses,)
        What the best constant costs at C = 1.
    offset : bool
        Whether b is free.
    weight : array (n,) or None
        Where the losses are squared, without ε: the ridges of a sample are those of its loss
        divided by its weight.
    rows : int64 array (n + m,) or None
        Where the rows lie in a matrix of all of them, those to be fitted first; None where the
        matrix is that of the part.
    judged : Judged or None
        The m rows that judge.
    """

    def __init__(self, const double[::1] y, const double[:, :, ::1] terms,
                 const double[::1] constants, bint offset, weight=None,
                 const int64_t[::1] rows=None, Judged judged=None):
        self.n, self.losses = y.shape[0], terms.shape[0]
        check(terms.shape[1] == 5 and terms.shape[2] == self.n,
              "terms must have five numbers for each y")
        check(constants.shape[0] == self.losses, "constants must have a number for each loss")
        check(judged is None or judged.losses == self.losses, "judged must be of the same losses")
        check(rows is None or rows.shape[0] == self.n + (0 if judged is None else judged.m),
              "rows must have one for each y, and each that is judged by")
        self.y, self.terms, self.constants, self.offset = y, terms, constants, offset
        self.rows, self.judged = rows, judged
        self.weight = self.y32 = self.ridges = None
        if weight is not None:
            check(len(weight) == self.n, "weight must have a number for each y")
            self.weight = np.ascontiguousarray(weight, dtype=np.float32)
            self.y32 = np.asarray(y).astype(np.float32)
            # those of the largest weight, which is 1: rise and fall
            self.ridges = np.asarray(terms)[:, 4:2:-1].min(axis=2)


cdef class Shared:
    """Solves the problems of parts, those of one part together.

    Parameters
    ----------
    work : int
        Multiplications between two looks at whether to stop.
    """

    def __init__(self, int64_t work):
        self.room = work

    def solve(self, list parts, matrix, asked, results):
        """Solve what is asked of parts, into arrays with a row for each part.

        Parameters
        ----------
        parts : list of Part
        matrix : float32 or float64 array
            K of all rows; of the rows of a part with each other, and below them of those that
            judge, where it names no rows. Its values fit float32.
        asked : Asked
        results : PartResults
        """
        cdef const float[:, ::1] single = None
        cdef const double[:, ::1] double_ = None
        cdef Part part
        cdef int64_t p, count
        self.costs = asked.costs
        self.wanted = asked.wanted.view(np.uint8)
        self.gap, self.share = asked.goal.gap, asked.goal.share
        self.stop = asked.stop
        self.spent, self.halted = 0, self.stop()
        self.betas, self.intercepts = results.beta, results.intercept
        self.gaps, self.primals = results.gap, results.primal
        self.begun = results.begun.view(np.uint8)
        for array in (results.intercept, results.gap, results.primal, results.begun):
            check(array.shape == results.beta.shape[:3], "results must be of one shape")
        if matrix.dtype == np.float32:
            single = matrix
        else:
            double_ = matrix
        for p in range(len(parts)):
            if self.halted:
                break
            self.part, self.place, self.validation = parts[p], p, None
            part = self.part
            self.check_part(part, matrix.shape)
            if part.judged is not None:
                self.validation = Validation(part.judged, results.losses[p], asked.errors)
            count = part.n + (0 if part.judged is None else part.judged.m)
            self.hold(count, part.n)
            self.rows, self.exact = &self.scratch[0], &self.scratch64[0]
            if single is None:
                gather(double_, part.rows, count, part.n, &self.scratch[0])
            elif part.rows is None:
                self.rows = &single[0, 0]
            else:
                gather(single, part.rows, count, part.n, &self.scratch[0])
            if part.n <= self.wide and single is None:
                gather(double_, part.rows, part.n, part.n, &self.scratch64[0])
            elif part.n <= self.wide:
                gather(single, part.rows, part.n, part.n, &self.scratch64[0])
            self.judging = self.rows + part.n * part.n
            self.run()

    def check_part(self, Part part, tuple shape):
        """Whether a part fits what is asked, the results and the matrix."""
        cdef int64_t m = 0 if part.judged is None else part.judged.m
        check(part.n > 0 and self.wanted.shape[0] == part.losses
              and self.wanted.shape[1] == self.costs.shape[0],
              "wanted must have an entry for each loss and C")
        check(self.place < self.betas.shape[0] and self.betas.shape[1] == part.losses
              and self.betas.shape[2] == self.costs.shape[0] and self.betas.shape[3] >= part.n,
              "results must have an entry for each part, loss, C and y")
        if part.rows is None:
            check(shape[0] >= part.n + m and shape[1] == part.n,
                  "matrix must have a row for each y, and each that is judged by")
        else:
            check(shape[0] == shape[1], "matrix must be square")
            check_places(part.rows, shape[0], "rows must name rows of the matrix")

    cdef int hold(self, int64_t count, int64_t n) except -1:
        """Room for the kernel values of a part."""
        if self.scratch is None or self.scratch.shape[0] < count * n:
            self.scratch = np.empty(count * n, dtype=np.float32)
        needed = n * n if n <= self.wide else 1
        if self.scratch64 is None or self.scratch64.shape[0] < needed:
            self.scratch64 = np.empty(needed)
        return 0

    cdef int run(self) except -1:
        """Solve the problems of the part at hand."""
        return 0

    cdef bint look(self, int64_t work) except -1 nogil:
        """So much was done: whether it is time to stop."""
        self.spent += work
        if self.spent >= self.room:
            self.spent = 0
            with gil:
                self.halted = self.stop()
        return self.halted

    cdef void note(self, int64_t loss, int64_t cost, double b, double gap,
                   double primal) noexcept nogil:
        """A problem is solved, as well as it will be: its β is where it belongs."""
        self.intercepts[self.place, loss, cost] = b
        self.gaps[self.place, loss, cost] = gap
        self.primals[self.place, loss, cost] = primal
        if self.validation is not None:
            self.validation.judge(loss, cost, self.judging, &self.betas[self.place, loss, cost, 0],
                                  self.part.n, b)

    cdef bint over(self, int64_t loss, int64_t cost) noexcept nogil:
        """Whether a problem is not worth it, by those of smaller C."""
        return self.validation is not None and self.validation.over(loss, cost)
