"""Rows of X, dense or CSR, for the loops of the linear solvers."""
from libc.stdint cimport int64_t

cdef extern from "rows.h" nogil:
    ctypedef struct RowTable:
        const void* values
        const void* columns
        const void* begins
        const int64_t* chosen
        int64_t n_columns
        int wide_values
        int wide_columns
        int wide_begins
    ctypedef struct Row:
        pass
    Row row_of(const RowTable*, int64_t)
    double row_dot(const RowTable*, Row, const double*)
    void row_add(const RowTable*, Row, double, double*)
    double row_square(const RowTable*, Row)
    void row_add_squares(const RowTable*, Row, double, double*)
    void row_scale(const RowTable*, Row, double, double*)
    void row_add_outer(const RowTable*, Row, double, double*)
    void row_fetch(Row)
    void row_fetch_weights(const RowTable*, Row, const double*)


cdef class Matrix:
    cdef RowTable table
    cdef int64_t n_rows
    # the arrays that the table points into
    cdef tuple kept
    cdef int check_span(self, int64_t, int64_t, Py_ssize_t, Py_ssize_t) except -1
    cdef int check_chosen(self, const int64_t[::1], const double[::1], const double[:, ::1]) except -1
