# distutils: language = c
"""Who is visited in a pass of coordinate descent, and in which order."""
import numpy as np

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t, uint64_t

from .checks cimport check

cdef extern from "visits.h" nogil:
    void shuffle_items(int32_t*, int64_t, uint64_t*)


cdef class Visits:
    """Equal visits to the rows that take part, or visits in proportion to a preference.

    At first every row that has not left is visited once a pass. After :meth:`adapt` the rows that
    gain more than others are visited more often (Glasmachers and Dogan's adaptive coordinate
    frequencies), and none leaves.

    Parameters
    ----------
    n : int
        How many rows there are.
    block : int
        Rows of a block are neighbours in memory. The order is random among the blocks and inside
        each of them.
    seed : int
    rate : float
        A preference is multiplied by exp(rate·(gain/usual gain − 1)) at a visit.
    least, most : float
        Its bounds.

    Attributes
    ----------
    count : int
        How many rows take part.
    usual : float
        What a visit gains at the time, a mean over about n visits.
    adapting : bool
    """

    cdef int64_t n
    cdef int64_t block
    cdef double rate
    cdef float least
    cdef float most
    cdef uint64_t state
    # rows that take part; visits of a pass while preferences are followed
    cdef int32_t[::1] active
    cdef int32_t[::1] visits
    # whether a row has left
    cdef unsigned char[::1] left
    cdef float[::1] preference
    # how many visits a row should have had more than it had
    cdef float[::1] due
    cdef readonly int64_t count
    cdef readonly double usual
    cdef readonly bint adapting

    def __init__(self, int64_t n, int64_t block, uint64_t seed, double rate, float least, float most):
        check(0 < n < 2**31 and block > 0, "n must be between 1 and 2**31, and block positive")
        self.n, self.block = n, block
        self.rate, self.least, self.most = rate, least, most
        self.state = 2 * seed + 0x9E3779B97F4A7C15  # odd, so never 0
        self.active = np.empty(n, dtype=np.int32)
        self.left = np.empty(n, dtype=np.uint8)
        self.adapting, self.usual = False, 0.0
        self.restore()

    def restore(self):
        """All rows take part again, and all are due."""
        cdef int64_t i
        self.count = self.n
        for i in range(self.n):
            self.active[i] = i
            self.left[i] = 0
            if self.adapting:
                self.due[i] += 1

    def adapt(self):
        """Visit rows by what they gain from now on."""
        self.restore()
        self.preference = np.ones(self.n, dtype=np.float32)
        self.due = np.zeros(self.n, dtype=np.float32)
        # every row once and some again; what does not fit stays due
        self.visits = np.empty(self.n + self.n // 8 + 1, dtype=np.int32)
        self.adapting = True

    def order(self):
        """The rows of a pass in the order of their visits."""
        cdef int64_t count = self.deal() if self.adapting else self.count
        cdef int64_t k, j, first, size, at = 0, n_blocks = (count + self.block - 1) // self.block
        cdef const int32_t[::1] source = self.visits if self.adapting else self.active
        order = np.empty(count, dtype=np.int32)
        cdef int32_t[::1] out = order
        cdef int32_t[::1] blocks = np.arange(n_blocks if self.block > 1 else 0, dtype=np.int32)
        with nogil:
            if self.block == 1:
                out[:] = source[:count]
                shuffle_items(&out[0], count, &self.state)
            else:
                shuffle_items(&blocks[0], n_blocks, &self.state)
                for k in range(n_blocks):
                    first = blocks[k] * self.block
                    size = min(self.block, count - first)
                    for j in range(size):
                        out[at + j] = source[first + j]
                    shuffle_items(&out[at], size, &self.state)
                    at += size
        return order

    cdef int64_t deal(self):
        """As many visits to a row as are due; returns how many these are.

        A row's second visits come after everybody's first, which keeps them apart in a random order
        of blocks. Where there is no more room, the rest stays due.
        """
        cdef int64_t i, k, begin = 0, end = 0, count = 0, room = self.visits.shape[0]
        cdef double total = 0
        for i in range(self.n):
            total += self.preference[i]
        for i in range(self.n):
            self.due[i] += <float>(self.n / total * self.preference[i])
            if self.due[i] >= 1 and count < room:
                self.due[i] -= 1
                self.visits[count] = i
                count += 1
        while end < count:
            begin, end = end, count
            for k in range(begin, end):
                i = self.visits[k]
                if self.due[i] >= 1 and count < room:
                    self.due[i] -= 1
                    self.visits[count] = i
                    count += 1
        return count

    def learn(self, const int32_t[::1] order, const float[::1] gains):
        """Take note of what these visits gained; a negative number lets a row leave."""
        cdef int64_t k, i, kept = 0
        cdef double mean = 0, change
        cdef float preference
        check(order.shape[0] == gains.shape[0], "order and gains must have one length")
        with nogil:
            for k in range(order.shape[0]):
                i = order[k]
                if not self.adapting:
                    self.left[i] = gains[k] < 0
                    mean += max(gains[k], 0)
                    continue
                if self.usual > 0:
                    change = self.rate * (gains[k] / self.usual - 1)
                    preference = <float>(self.preference[i] * exp(min(change, 3)))
                    self.preference[i] = min(max(preference, self.least), self.most)
                self.usual += (gains[k] - self.usual) / self.n
            if not self.adapting:
                self.usual = mean / max(order.shape[0], 1)
                for k in range(self.count):
                    self.active[kept] = self.active[k]
                    kept += not self.left[self.active[k]]
                self.count = kept
