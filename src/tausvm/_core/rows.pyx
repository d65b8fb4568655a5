# distutils: language = c
"""Products with rows of X, for the linear solvers.

Most functions work on a range of rows, [begin, end), so that a caller can stop or share out the work
between calls.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t

from .checks cimport check, check_places

ctypedef fused index:
    int32_t
    int64_t

ctypedef fused place:  # where a row begins
    int32_t
    int64_t


def has_duplicates(const index[::1] indices, const place[::1] indptr, int64_t[::1] last):
    """Whether a row names a column twice; ``last`` holds −1 for every column.

    Entries that are not there and columns beyond ``last`` are a ValueError.
    """
    cdef int64_t i, k, before = 0, d = last.shape[0]
    cdef bint valid = True, twice = False
    with nogil:
        for i in range(indptr.shape[0]):
            valid = valid and before <= indptr[i] <= indices.shape[0]
            before = indptr[i]
        for i in range(indptr.shape[0] - 1 if valid else 0):
            for k in range(indptr[i], indptr[i + 1]):
                valid = 0 <= indices[k] < d
                if not valid:
                    break
                twice = twice or last[indices[k]] == i
                last[indices[k]] = i
            if twice or not valid:
                break
    check(valid, "X must be a valid CSR matrix: its indptr must rise from 0 to its number of entries "
                 "at most, and its indices lie between 0 and its number of columns")
    return twice


cdef const void* address(array, bint* wide, str kinds) except? NULL:
    """Where the numbers of an array begin, and whether they have 64 bits each."""
    check(array.flags.c_contiguous and array.dtype.kind in kinds and array.dtype.itemsize in (4, 8)
          and array.dtype.isnative, "X must be contiguous, of 32 or 64 bits")
    wide[0] = array.dtype.itemsize == 8
    return <const void*><size_t>array.ctypes.data


cdef class Matrix:
    """A matrix, or some of its rows: C-contiguous or CSR without duplicates, never copied.

    Parameters
    ----------
    values : array (n, d), or the data of a CSR matrix; float32 or float64
    columns, begins : arrays or None
        Indices and indptr of a CSR matrix, int32 or int64 each, valid as :func:`has_duplicates`
        checks it.
    chosen : int64 array or None
        The rows that take part, in order; None for all.
    n_columns : int
    """

    def __init__(self, values, columns, begins, const int64_t[::1] chosen, int64_t n_columns):
        cdef bint wide_values = True, wide_columns = True, wide_begins = True
        self.kept = values, columns, begins, chosen
        self.table.n_columns = n_columns
        self.table.values = address(values, &wide_values, "f")
        self.table.columns = self.table.begins = NULL
        self.table.chosen = NULL
        if columns is None:
            check(values.ndim == 2 and values.shape[1] == n_columns, "X must have n_columns columns")
            self.n_rows = values.shape[0]
        else:
            self.table.columns = address(columns, &wide_columns, "i")
            self.table.begins = address(begins, &wide_begins, "i")
            self.n_rows = len(begins) - 1
        if chosen is not None:
            check_places(chosen, self.n_rows, "chosen must name rows")
            self.table.chosen = &chosen[0] if chosen.shape[0] > 0 else NULL
            self.n_rows = chosen.shape[0]
        self.table.wide_values = wide_values
        self.table.wide_columns = wide_columns
        self.table.wide_begins = wide_begins

    cdef int check_span(self, int64_t begin, int64_t end, Py_ssize_t n_numbers,
                        Py_ssize_t n_columns) except -1:
        """Rows [begin, end), with a number each in arrays of ``n_numbers``."""
        check(0 <= begin and end <= self.n_rows and end <= n_numbers,
              "begin and end must be within the rows and the numbers of the rows")
        return check(n_columns == self.table.n_columns, "w must have an entry for each column")

    def dots(self, const double[::1] w, double[::1] out, int64_t begin, int64_t end):
        """out[k] = xₖ·w."""
        cdef int64_t k
        self.check_span(begin, end, out.shape[0], w.shape[0])
        with nogil:
            for k in range(begin, end):
                out[k] = row_dot(&self.table, row_of(&self.table, k), &w[0])

    def sum(self, const double[::1] weight, double[::1] out, int64_t begin, int64_t end):
        """out += Σ weight[k] xₖ."""
        cdef int64_t k
        self.check_span(begin, end, weight.shape[0], out.shape[0])
        with nogil:
            for k in range(begin, end):
                if weight[k] != 0:
                    row_add(&self.table, row_of(&self.table, k), weight[k], &out[0])

    def squares(self, double[::1] out, int64_t begin, int64_t end):
        """out[k] = ‖xₖ‖²."""
        cdef int64_t k
        self.check_span(begin, end, out.shape[0], self.table.n_columns)
        with nogil:
            for k in range(begin, end):
                out[k] = row_square(&self.table, row_of(&self.table, k))

    def column_squares(self, const double[::1] weight, double[::1] out, int64_t begin, int64_t end):
        """out[j] += Σ weight[k] xₖⱼ²."""
        cdef int64_t k
        self.check_span(begin, end, weight.shape[0], out.shape[0])
        with nogil:
            for k in range(begin, end):
                if weight[k] != 0:
                    row_add_squares(&self.table, row_of(&self.table, k), weight[k], &out[0])

    cdef int check_chosen(self, const int64_t[::1] index, const double[::1] weight,
                          const double[:, ::1] out) except -1:
        check_places(index, min(self.n_rows, weight.shape[0]), "index must name rows")
        return check(out.shape[1] == self.table.n_columns, "out must have a column for each of X")

    def scaled(self, const int64_t[::1] index, const double[::1] weight, double[:, ::1] out):
        """out[k] = √|weight[i]| xᵢ with i = index[k], of a dense matrix."""
        cdef int64_t k
        self.check_chosen(index, weight, out)
        check(out.shape[0] == index.shape[0], "out must have a row for each of index")
        check(self.table.columns == NULL, "X must be dense")
        with nogil:
            for k in range(index.shape[0]):
                row_scale(&self.table, row_of(&self.table, index[k]), sqrt(fabs(weight[index[k]])),
                          &out[k, 0])

    def outer(self, const int64_t[::1] index, const double[::1] weight, double[:, ::1] out):
        """out += Σ weight[i] xᵢxᵢᵀ over i in index, of a CSR matrix."""
        cdef int64_t k
        self.check_chosen(index, weight, out)
        check(out.shape[0] == out.shape[1], "out must be square")
        check(self.table.columns != NULL, "X must be a CSR matrix")
        with nogil:
            for k in range(index.shape[0]):
                row_add_outer(&self.table, row_of(&self.table, index[k]), weight[index[k]],
                              &out[0, 0])
