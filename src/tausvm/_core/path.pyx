# distutils: language = c
"""Kinks of a solution path: a dual problem whose bounds move on straight lines.

    min_β  ½ βᵀKβ − yᵀβ,   lower₀ + t·lower₁ ≤ β ≤ upper₀ + t·upper₁   [Σβ = 0]

For growing t every point is at its lower bound (residual r = y − Kβ − b < 0), at its upper
bound (r > 0) or free (r = 0): the sets R, L and M of the quantile-path paper for positive
labels. Between kinks the points at bounds move with them, the free points M keep r = 0,

    K_MM δ + b′·1 = −K_MN s_N,    [Σδ = −Σ s_N]        s: the slopes of the bounds

and all residuals change at the rate r′ = −(K_·N s_N + K_·M δ + b′). The next kink is where a
residual reaches zero (19) or a free variable its bound (21), (23).
"""
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int8_t, int64_t
import numpy as np

from .checks cimport check, check_places

cdef extern from "path_loops.h" nogil:
    double path_dot(const double*, const double*, int64_t)
    void add_multiple(double, const double*, double*, int64_t)
    void path_solve(const double*, int64_t, int64_t, double*)
    void path_solve_two(const double*, int64_t, int64_t, double*, double*)
    void path_rates(const double*, int64_t, const int64_t*, const double*, int64_t, const double*,
                    double, double*)
    int64_t path_first_to_enter(const double*, const double*, const double*, const double*, int64_t,
                                double, double*)
    double path_bend(const double*, const double*, const double*, const double*, const double*,
                     const double*, int64_t, double, double, double)
    void path_delete_row(double*, int64_t, int64_t, int64_t, double*, double*)

cpdef enum Outcome:
    END         # t reached its end
    BATCH       # as many kinks as were asked for
    STALLED     # too many kinks in a row without a step
    INDEFINITE  # the matrix is not positive semidefinite
    ON          # within a walk: it goes on

cdef enum:
    NOBODY = -1
    NOT_DEFINITE = -2
    PAUSE_KINKS = 32  # between two looks at the clock and at Ctrl-C

cdef double EPS = 2.220446049250313e-16
cdef double AT_END = 1e-14  # where all boxes close, many kinks come within rounding of the end


cdef class FreePoints:
    """The free points M, in the order in which they came, and the factor L Lᵀ = K_MM."""
    cdef double[:, ::1] L
    cdef int64_t[::1] index
    cdef int64_t size
    cdef double[::1] row, cosine, sine

    def __init__(self, int64_t capacity, const int64_t[::1] index, factor):
        self.size = index.shape[0]
        L, places = np.zeros((capacity, capacity)), np.zeros(capacity, dtype=np.int64)
        L[:self.size, :self.size] = factor
        places[:self.size] = index
        self.L, self.index = L, places
        self.row, self.cosine, self.sine = np.empty((3, capacity))

    cdef void solve(self, double* x) noexcept nogil:
        """x ← K_MM⁻¹ x."""
        path_solve(&self.L[0, 0], self.L.shape[1], self.size, x)

    cdef void solve_two(self, double* x, double* z) noexcept nogil:
        """The same for two at the price of little more than one: L is read once."""
        path_solve_two(&self.L[0, 0], self.L.shape[1], self.size, x, z)

    cdef double left_of(self, const double* values, int64_t i) noexcept nogil:
        """What the free points leave of K_ii, given row i of K; prepares its row of the factor."""
        cdef int64_t k
        for k in range(self.size):
            self.row[k] = (values[self.index[k]] - path_dot(&self.L[k, 0], &self.row[0], k)) / (
                self.L[k, k])
        return values[i] - path_dot(&self.row[0], &self.row[0], self.size)

    cdef void append(self, int64_t i, double left) noexcept nogil:
        """A point for which ``left_of`` gave ``left`` becomes free."""
        cdef int64_t k, m = self.size
        for k in range(m):
            self.L[m, k] = self.row[k]
        self.L[m, m] = sqrt(left)
        self.index[m] = i
        self.size = m + 1

    cdef void remove(self, int64_t place) noexcept nogil:
        cdef int64_t k, m = self.size
        path_delete_row(&self.L[0, 0], self.L.shape[1], m, place, &self.cosine[0], &self.sine[0])
        for k in range(place, m - 1):
            self.index[k] = self.index[k + 1]
        self.size = m - 1


def largest_bends(const double[::1] t, const double[::1] offset, const double[:, ::1] beta,
                  const double[:, ::1] residual, const int64_t[::1] left,
                  const int64_t[::1] right, double rounding):
    """How far records between two others leave the straight line, for pairs ``left``, ``right``.

    Of gᵀKg with g the way of β from its line the root of the largest, and the largest way of the
    offset from its own: two arrays. ``rounding`` is the share of its terms that rounding may add.
    """
    cdef Py_ssize_t c, k, count = left.shape[0], records = t.shape[0], width = beta.shape[1]
    cdef int64_t a, b
    cdef double length, part, shift, most, farthest
    check(offset.shape[0] == records and beta.shape[0] == records
          and residual.shape[0] == records and residual.shape[1] == width
          and right.shape[0] == count, "records must have a time, an offset and rows of values")
    check_places(left, records, "left must name records")
    check_places(right, records, "right must name records")
    out = np.zeros((2, count))
    cdef double[:, ::1] found = out
    with nogil:
        for c in range(count):
            a, b, most, farthest = left[c], right[c], 0.0, 0.0
            length = t[b] - t[a]
            for k in range(a + 1, b):
                part = (t[k] - t[a]) / length if length > 0 else 0.0
                shift = offset[k] - offset[a] - part * (offset[b] - offset[a])
                farthest = max(farthest, fabs(shift))
                if width > 0:
                    most = max(most, path_bend(
                        &beta[k, 0], &beta[a, 0], &beta[b, 0], &residual[k, 0], &residual[a, 0],
                        &residual[b, 0], width, part, shift, rounding))
            found[0, c], found[1, c] = sqrt(most), farthest
    return out


cdef class PathCore


cdef class KinkLog:
    """The kinks of a batch, in order.

    Attributes
    ----------
    count : int
    t, offset : arrays (count,)
    index, status : int64 and int8 arrays (count,)
        The point whose set changed, −1 where none did, and its new set.
    begin : int64 array (count + 1,)
        Where the free points of a kink stand in ``members`` and ``values``.
    members, values : int64 array and array
        Places of the free points, and their β.
    residual : array (count, n) or (0, n)
        Of all points, where that was asked for.
    """
    cdef double[::1] _t, _offset, _values
    cdef int64_t[::1] _index, _begin, _members
    cdef int8_t[::1] _status
    cdef double[:, ::1] _residual
    cdef readonly int64_t count

    def __init__(self, int64_t kinks, int64_t most_free, int64_t n, bint residuals):
        self._t, self._offset = np.empty((2, kinks))
        self._index, self._begin = np.empty(kinks, np.int64), np.zeros(kinks + 1, np.int64)
        self._status = np.empty(kinks, np.int8)
        self._members = np.empty(kinks * most_free, np.int64)
        self._values = np.empty(kinks * most_free)
        self._residual = np.empty((kinks if residuals else 0, n))
        self.count = 0

    cdef void add(self, PathCore core, int64_t index, int status) noexcept nogil:
        cdef int64_t k, at = self.count, start = self._begin[at]
        self._t[at], self._offset[at] = core.t, core.offset
        self._index[at], self._status[at] = index, <int8_t>status
        for k in range(core.free.size):
            self._members[start + k] = core.free.index[k]
            self._values[start + k] = core.beta[core.free.index[k]]
        if self._residual.shape[0] > 0:
            for k in range(self._residual.shape[1]):
                self._residual[at, k] = core.residual[k]
        self._begin[at + 1] = start + core.free.size
        self.count = at + 1

    def beta_after(self, int64_t first, int64_t last, const int64_t[::1] column,
                   int8_t[::1] sets, const double[:, ::1] box):
        """β after the kinks from number ``first`` on, before ``last``: one row a kink.

        ``column`` has the column of every point, −1 for those that are not asked for; no kink may
        be of one of these. ``sets`` and ``box`` are of the columns, the sets those before the
        first kink, and afterwards those after the last.
        """
        cdef int64_t j, k, width = sets.shape[0]
        cdef int row
        out = np.empty((last - first, width))
        cdef double[:, ::1] beta = out
        if not 0 <= first <= last <= self.count or box.shape[1] != width:
            raise ValueError("kinks must be logged ones, and box have a column for each set")
        with nogil:
            for k in range(first, last):
                if self._index[k] >= 0:
                    sets[column[self._index[k]]] = self._status[k]
                for j in range(width):
                    row = 2 if sets[j] > 0 else 0
                    beta[k - first, j] = box[row, j] + self._t[k] * box[row + 1, j]
                for j in range(self._begin[k], self._begin[k + 1]):
                    beta[k - first, column[self._members[j]]] = self._values[j]
        return out

    @property
    def t(self):
        return np.asarray(self._t)[:self.count]

    @property
    def offset(self):
        return np.asarray(self._offset)[:self.count]

    @property
    def index(self):
        return np.asarray(self._index)[:self.count]

    @property
    def status(self):
        return np.asarray(self._status)[:self.count]

    @property
    def begin(self):
        return np.asarray(self._begin)[:self.count + 1]

    @property
    def members(self):
        return np.asarray(self._members)[:self._begin[self.count]]

    @property
    def values(self):
        return np.asarray(self._values)[:self._begin[self.count]]

    @property
    def residual(self):
        return np.asarray(self._residual)[:self.count]


cdef class PathCore:
    """Batches of kinks on a window of points.

    Parameters
    ----------
    K : array (n, n)
        The window's kernel matrix, with a constant added where the offset is free (Σβ = 0 makes
        it cancel, and the free points' matrix then is regular wherever the system with the
        offset is).
    box : array (4, n)
        Rows lower₀, lower₁, upper₀, upper₁.
    has_offset : bool
    kinks : int
        How many a batch has at most.
    settings : PathSettings
        Its ``independence``, ``indefiniteness``, ``refine`` and ``zero_steps``.
    """
    cdef const double[:, ::1] K
    cdef const double[:, ::1] box
    cdef bint has_offset
    cdef double independence, indefiniteness, refine
    cdef int64_t most_zero_steps, most_kinks
    # where the walk stands
    cdef double t, offset
    cdef double[::1] beta, residual
    cdef int8_t[::1] status
    cdef FreePoints free
    # how it goes on: the pull K_·N s_N of the moving bounds, Σ s_N, and the size of its terms
    cdef double[::1] drive, delta, ones, change, rate, root
    cdef double drive_sum, pull, offset_rate
    # who may enter: the status as a number, 0 for those who must not
    cdef double[::1] side
    cdef int64_t[::1] passed
    cdef int64_t left_last, zero_steps
    cdef readonly KinkLog log

    def __init__(self, const double[:, ::1] K, const double[:, ::1] box, bint has_offset,
                 int64_t kinks, settings):
        cdef Py_ssize_t n = K.shape[0]
        if K.shape[1] != n or box.shape[0] != 4 or box.shape[1] != n:
            raise ValueError("K must be square, and box have four rows of as many numbers")
        self.K, self.box, self.has_offset, self.most_kinks = K, box, has_offset, kinks
        self.independence, self.indefiniteness = settings.independence, settings.indefiniteness
        self.refine, self.most_zero_steps = settings.refine, n + settings.zero_steps
        self.root = np.sqrt(np.diagonal(K))
        self.rate, self.passed = np.zeros(n), np.zeros(n + 1, dtype=np.int64)

    def start(self, double t, double offset, double[::1] beta, double[::1] residual,
              int8_t[::1] status, const int64_t[::1] free, factor):
        """Where the walk begins; the arrays are worked on in place."""
        cdef Py_ssize_t n = self.K.shape[0]
        cdef int64_t most_free = min(n, free.shape[0] + self.most_kinks) + 1
        if not (beta.shape[0] == residual.shape[0] == status.shape[0] == n):
            raise ValueError("beta, residual and status must have an entry for each point")
        if free.shape[0] and not (0 <= np.min(free) and np.max(free) < n):
            raise ValueError("free must hold places of points")
        self.t, self.offset = t, offset
        self.beta, self.residual, self.status = beta, residual, status
        self.side = np.asarray(status, dtype=np.float64)
        self.free = FreePoints(most_free, free, factor)
        self.delta, self.ones, self.change = np.zeros((3, most_free))
        self.left_last, self.zero_steps = NOBODY, 0

    def drive_with(self, double[::1] drive, double total, double pull):
        """How the bounds move: K_·N s_N of all points, within the window or not, Σ s_N, and
        Σ|sⱼ|·√Kⱼⱼ, the size of the terms in it."""
        if drive.shape[0] != self.K.shape[0]:
            raise ValueError("drive must have an entry for each point")
        self.drive, self.drive_sum, self.pull = drive, total, pull

    def run(self, double end, bint residuals, pause=None):
        """Walk a batch, which ``log`` holds then; returns an :class:`Outcome`.

        ``residuals`` asks for all residuals at every kink. ``pause`` is asked every few kinks: a
        true answer ends the batch, an exception of it the walk.
        """
        cdef int outcome = ON
        # where the offset jumps, a kink takes two records
        self.log = KinkLog(self.most_kinks + 2, self.delta.shape[0], self.K.shape[0], residuals)
        while outcome == ON:
            outcome = self.walk(end, min(self.most_kinks, self.log.count + PAUSE_KINKS))
            if outcome == ON and pause is not None and pause():
                outcome = BATCH
        return outcome

    cdef int walk(self, double end, int64_t until):
        cdef int outcome = ON
        with nogil:
            while outcome == ON and self.log.count < until:
                outcome = self.kink(end)
        return BATCH if outcome == ON and self.log.count >= self.most_kinks else outcome

    cdef int kink(self, double end) noexcept nogil:
        """One kink: directions, the first event, the step to it."""
        cdef int64_t i, leaving, entering
        cdef int which = 0
        cdef double step = end - self.t, left = 0
        if self.zero_steps > self.most_zero_steps:
            return STALLED
        if self.has_offset and self.free.size == 0 and self.drive_sum != 0:
            return self.shift_offset()
        self.directions()
        leaving = self.first_to_leave(&step, &which)
        entering = self.next_to_enter(&step, &left)
        if entering == NOT_DEFINITE:
            return INDEFINITE
        if self.t + step >= end - AT_END:
            self.advance(end - self.t)
            self.t = end
            self.log.add(self, NOBODY, 0)
            return END
        # a step that rounding swallows is none: such kinks could follow each other for ever
        self.zero_steps = 0 if self.t + step > self.t else self.zero_steps + 1
        self.advance(step)
        if entering == NOBODY:
            i = self.free.index[leaving]
            self.leave(leaving, which)
            self.log.add(self, i, which)
            self.left_last = i
        else:
            self.left_last = NOBODY
            self.enter(entering, left)
        return ON

    # ---- directions ----

    cdef void directions(self) noexcept nogil:
        """δ, b′ and the rates of all residuals."""
        cdef int64_t k, m = self.free.size
        cdef double worst = 0
        self.offset_rate = 0
        for k in range(m):
            self.delta[k] = 0
            self.change[k] = -self.drive[self.free.index[k]]
            self.ones[k] = 1
        if m > 0:
            if self.has_offset:
                self.free.solve_two(&self.change[0], &self.ones[0])
            else:
                self.free.solve(&self.change[0])
            self.improve()
        self.rates()
        for k in range(m):
            worst = max(worst, fabs(self.rate[self.free.index[k]]) / self.root[self.free.index[k]])
        # the free points do not stay on the margin: a step of refinement
        if worst > self.refine * self.rounding():
            for k in range(m):
                self.change[k] = self.rate[self.free.index[k]]
            self.free.solve(&self.change[0])
            self.improve()
            self.rates()

    cdef void improve(self) noexcept nogil:
        """Add ``change`` to δ, and to b′ what keeps Σδ = −Σs."""
        cdef int64_t k, m = self.free.size
        cdef double total = self.drive_sum, weight = 0, b = 0
        if self.has_offset:
            for k in range(m):
                total += self.delta[k] + self.change[k]
                weight += self.ones[k]
            b = total / weight
            self.offset_rate += b
        for k in range(m):
            self.delta[k] += self.change[k] - b * self.ones[k]

    cdef void rates(self) noexcept nogil:
        path_rates(&self.K[0, 0], self.K.shape[0], &self.free.index[0], &self.delta[0],
                   self.free.size, &self.drive[0], self.offset_rate, &self.rate[0])

    cdef double rounding(self) noexcept nogil:
        """What rounding makes of a rate that is zero, as a share of the root of K's diagonal."""
        cdef int64_t k
        cdef double terms = self.pull
        for k in range(self.free.size):
            terms += fabs(self.delta[k]) * self.root[self.free.index[k]]
        return EPS * terms

    # ---- events ----

    cdef inline double bound(self, int64_t i, int which) noexcept nogil:
        cdef int row = 0 if which <= 0 else 2
        return self.box[row, i] + self.t * self.box[row + 1, i]

    cdef inline double slope(self, int64_t i, int which) noexcept nogil:
        return self.box[1 if which < 0 else 3, i]

    cdef int64_t first_to_leave(self, double* step, int* which) noexcept nogil:
        """The place of the free point that reaches a bound first and within ``step``, −1 if none
        does; ``step`` is then how far that is, and ``which`` the side."""
        cdef int64_t i, k, leaving = NOBODY
        cdef int side
        cdef double speed, distance
        for k in range(self.free.size):
            i = self.free.index[k]
            for side in range(1, -2, -2):
                speed = side * (self.delta[k] - self.slope(i, side))
                if speed > 0:
                    distance = max(side * (self.bound(i, side) - self.beta[i]), 0)
                    if distance < step[0] * speed:
                        step[0], leaving, which[0] = distance / speed, k, side
        return leaving

    cdef int64_t next_to_enter(self, double* step, double* left) noexcept nogil:
        """The point that reaches the margin first and within ``step``, −1 if none does, −2 if
        the matrix turns out indefinite; ``step`` is then how far that is, and ``left`` what the
        free points leave of its diagonal entry.

        A point that depends on the free ones keeps its residual: where it seems to arrive, its
        rate is rounding, and it is passed over until the free points change. So is the point
        that has just left, which rounding might call back.
        """
        cdef int64_t i, k, n_passed = 0
        cdef double noise = self.rounding(), arrival
        if self.left_last != NOBODY:
            self.passed[0] = self.left_last
            self.side[self.left_last] = 0
            n_passed = 1
        while True:
            i = path_first_to_enter(&self.side[0], &self.residual[0], &self.rate[0],
                                    &self.root[0], self.K.shape[0], noise, &arrival)
            if i < 0 or arrival >= step[0]:
                i = NOBODY
                break
            left[0] = self.free.left_of(&self.K[i, 0], i)
            if left[0] > self.independence * self.K[i, i]:
                step[0] = arrival
                break
            if left[0] < -self.indefiniteness * self.K[i, i]:
                i = NOT_DEFINITE
                break
            self.side[i] = 0
            self.passed[n_passed] = i
            n_passed += 1
        for k in range(n_passed):
            self.side[self.passed[k]] = self.status[self.passed[k]]
        return i

    # ---- steps ----

    cdef void advance(self, double step) noexcept nogil:
        cdef int64_t k
        if step <= 0:
            return
        self.t += step
        for k in range(self.free.size):
            self.beta[self.free.index[k]] += step * self.delta[k]
        add_multiple(step, &self.rate[0], &self.residual[0], self.K.shape[0])
        for k in range(self.free.size):
            self.residual[self.free.index[k]] = 0
        self.offset += step * self.offset_rate

    cdef void enter(self, int64_t i, double left) noexcept nogil:
        """A point at a bound becomes free; ``left`` is what ``left_of`` gave for it."""
        cdef int which = self.status[i]
        self.drive_by(i, -self.slope(i, which))
        self.beta[i] = self.bound(i, which)
        self.set_side(i, 0)
        self.free.append(i, left)
        self.log.add(self, i, 0)

    cdef void leave(self, int64_t place, int which) noexcept nogil:
        """A free point stays at its bound from here on."""
        cdef int64_t i = self.free.index[place]
        self.set_side(i, which)
        self.drive_by(i, self.slope(i, which))
        self.free.remove(place)

    cdef void set_side(self, int64_t i, int which) noexcept nogil:
        """A point changes its set, which it does at the margin."""
        self.residual[i] = 0
        self.status[i] = <int8_t>which
        self.side[i] = which

    cdef void drive_by(self, int64_t i, double change) noexcept nogil:
        """The bound that point i is at begins to move, or to stand; many bounds always stand."""
        if change != 0:
            add_multiple(change, &self.K[i, 0], &self.drive[0], self.K.shape[0])
            self.drive_sum += change

    cdef int shift_offset(self) noexcept nogil:
        """No point is free to balance the moving bounds: the offset jumps to the next point."""
        cdef int64_t i, best = NOBODY
        cdef double way = 1.0 if self.drive_sum > 0 else -1.0
        cdef double nearest = INFINITY
        self.zero_steps += 1
        for i in range(self.K.shape[0]):
            if self.side[i] == way and way * self.residual[i] < nearest and i != self.left_last:
                nearest = way * self.residual[i]
                best = i
        if best == NOBODY:
            return STALLED
        self.log.add(self, NOBODY, 0)
        if nearest > 0:
            self.offset += way * nearest
            for i in range(self.K.shape[0]):
                self.residual[i] -= way * nearest
        self.left_last = NOBODY
        self.enter(best, self.free.left_of(&self.K[best, 0], best))
        return ON
