# distutils: language = c
"""Sums over points for the certificates of a path's pieces."""
from libc.stdint cimport int64_t
import numpy as np

cdef extern from "pieces.h" nogil:
    void piece_sums_of_point(const double*, const double*, const double*, int64_t, double, double,
                             const double*, double, double, const double*, const double*, double*,
                             double*, double*)


cdef class PieceSums:
    """Differences of primal and dual at the records of a stretch, and in the middles between them.

    Parameters
    ----------
    t, part : arrays (n_records,)
        Where the records are, and how far that is from the first to the last, in [0, 1].
    beta : array (2, n_points)
        At the first record and at the last.
    residual : array (2, n_points)
        The same without the offset.
    away : array (n_away, n_records)
        How far β of the first n_away points is from the straight line between the two.
    bent : array (n_points, n_records)
        How far f is from its straight line.
    bounds : array (n_points, 4)
        lower₀, lower₁, upper₀, upper₁.
    """
    cdef const double[::1] t, part
    cdef const double[:, ::1] beta, residual, away, bent, bounds

    def __init__(self, t, part, beta, residual, away, bent, bounds):
        self.t, self.part = t, part
        self.beta, self.residual, self.bounds = beta, residual, bounds
        self.away, self.bent = away, bent
        cdef Py_ssize_t n = self.beta.shape[1], count = self.t.shape[0]
        if not (self.part.shape[0] == self.away.shape[1] == self.bent.shape[1] == count
                and self.residual.shape[1] == self.bent.shape[0] == self.bounds.shape[0] == n
                and self.beta.shape[0] == self.residual.shape[0] == 2
                and self.away.shape[0] <= n and self.bounds.shape[1] == 4 and count > 0):
            raise ValueError("a stretch's arrays must have a row a point and a column a record")

    def with_offset(self, const double[::1] offset):
        """The differences (n_records,), and those of the middles (n_records − 1,)."""
        cdef int64_t v, count = self.t.shape[0], n_away = self.away.shape[0]
        if offset.shape[0] != count:
            raise ValueError("offset must have an entry a record")
        ends, middles = np.zeros(count), np.zeros(count)
        cdef double[::1] at_ends = ends, between = middles, scratch = np.empty(4 * count)
        with nogil:
            for v in range(self.beta.shape[1]):
                piece_sums_of_point(
                    &self.t[0], &self.part[0], &offset[0], count, self.beta[0, v],
                    self.beta[1, v], &self.away[v, 0] if v < n_away else NULL,
                    self.residual[0, v], self.residual[1, v], &self.bent[v, 0],
                    &self.bounds[v, 0], &scratch[0], &at_ends[0], &between[0])
        return ends, 0.5 * middles[:count - 1]
