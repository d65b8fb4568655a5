"""The terms of the samples, five numbers each, for the loops of the linear solvers."""
from libc.stdint cimport int64_t

from .checks cimport check

cdef extern from "terms.h" nogil:
    ctypedef struct Term:
        double lower
        double upper
        double kink
        double ridge_minus
        double ridge_plus
    ctypedef struct TermTable:
        const double* numbers
        int64_t row
        int64_t column
    Term smoothed_term(const TermTable*, int64_t, double)
    Term term_of(const TermTable*, int64_t)
    double term_response(const Term*, double, double*)
    double term_value(const Term*, double)
    double term_conjugate(const Term*, double)


cdef inline TermTable term_table(const double[:, :] numbers, Py_ssize_t n) except *:
    """The terms of n samples; a column stride of 0 is the same term for all."""
    cdef TermTable table
    check(numbers.shape[0] == 5 and numbers.shape[1] == n and numbers.strides[0] % 8 == 0
          and numbers.strides[1] % 8 == 0, "terms must have five numbers for each sample")
    table.numbers = &numbers[0, 0]
    table.row, table.column = numbers.strides[0] // 8, numbers.strides[1] // 8
    return table
