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
from libc.math cimport INFINITY, NAN, fabs, sqrt
from libc.stdint cimport int8_t, int32_t, int64_t
import numpy as np

cdef extern from "path_loops.h" nogil:
    double path_dot(const double*, const double*, int64_t)
    void path_axpy(double, const double*, double*, int64_t)
    void path_rates(const double*, int64_t, const int32_t*, const double*, int64_t, const double*,
                    double, double*)
    int64_t path_first_to_enter(const double*, const double*, const double*, const double*, int64_t,
                             double, double*)
    double path_bend(const double*, const double*, const double*, const double*, const double*,
                     const double*, double, double, int64_t, double*)
    void path_piece_sums(const double*, const double*, const double*, int64_t, double, double,
                         const double*, double, double, const double*, const double*, double*,
                         double*, double*)
    void path_delete_row(double*, int64_t, int64_t, int64_t, double*, double*)
    void path_swept_column(const double*, int64_t, int64_t, const double*, const double*, int64_t,
                           double*)
    void path_swept_write(double*, int64_t, int64_t, const double*, double)

END = 0          # t reached its end
BATCH = 1        # as many kinks as were asked for
STALLED = 2      # too many kinks in a row without a step
INDEFINITE = 3   # the matrix is not positive semidefinite
GROW = 4         # the factor has no room for another free point
LOG_FULL = 5     # no room for the values of another kink
HARD = 6         # the next kink is beyond the accuracy of a swept matrix

cdef double INDEFINITENESS = 1e-6  # a Schur complement below minus this share is no rounding
cdef double REFINE = 8          # free points may leave the margin at this multiple of rounding
cdef double BEND_ROUNDING = 1e-10  # of a squared norm, as a share of its terms
cdef int64_t PAUSE_KINKS = 32      # kinks between two moments at which a walk can be ended
cdef int PUT_OFF_FULL = 7       # within ``run``: pivots wait to be applied
cdef double AT_END = 1e-14  # where all boxes close, many kinks come within rounding of the end


def piece_sums(const double[::1] t, const double[::1] part, const double[::1] offset,
               const double[::1] first_beta, const double[::1] last_beta,
               const double[:, ::1] away, const double[::1] first_residual,
               const double[::1] last_residual, const double[:, ::1] bent,
               const double[:, ::1] bounds):
    """Differences of primal and dual at the records of a stretch, and in the middles between them.

    One entry of the vectors and one row of ``bent`` and of ``bounds`` (lower₀, lower₁, upper₀,
    upper₁) a point; ``away`` has rows for the first of them, which leave their straight lines.
    ``t``, ``part`` and ``offset`` have an entry a record. Residuals are without the offset.
    """
    cdef int64_t v, count = t.shape[0], n_away = away.shape[0]
    out = np.zeros(count), np.zeros(count - 1)
    cdef double[::1] ends = out[0], middles = out[1], scratch = np.empty(4 * count)
    with nogil:
        for v in range(first_beta.shape[0]):
            path_piece_sums(&t[0], &part[0], &offset[0], count, first_beta[v], last_beta[v],
                            &away[v, 0] if v < n_away else NULL, first_residual[v],
                            last_residual[v], &bent[v, 0], &bounds[v, 0], &scratch[0], &ends[0],
                            &middles[0] if count > 1 else &scratch[0])
    return out[0], 0.5 * out[1]


cdef class PathCore:
    """The state of a path on a window of points, and batches of kinks from it.

    The arrays are worked on in place. ``K`` holds the window's kernel matrix, with a constant
    added where the offset is free (Σβ = 0 makes it cancel, and the free points' matrix then is
    regular wherever the system with the offset is). ``drive`` is K_·N s_N, the pull of the
    moving bounds of all points, within the window or not; ``drive_sum`` the sum Σ s_N.
    """
    cdef readonly double[:, ::1] K
    cdef readonly double[:, ::1] box
    cdef readonly double[::1] beta, residual, drive
    cdef readonly int8_t[::1] status
    cdef double[::1] side, root, rate, delta, ones, work, scratch
    cdef double[:, ::1] L
    cdef readonly int32_t[::1] free
    cdef int32_t[::1] passed
    cdef readonly int64_t size, n_kinks, n_values, n_passed
    cdef readonly double t, offset, drive_sum, offset_rate
    cdef bint has_offset
    cdef double independence
    cdef int64_t zero_steps, left_last
    cdef readonly double[::1] log_t, log_offset, values
    cdef readonly int32_t[::1] log_index, log_size, members
    cdef readonly int8_t[::1] log_status
    cdef readonly double[:, ::1] snapshots
    cdef double[:, ::1] residuals
    cdef readonly double[::1] snapshot_t, snapshot_offset
    cdef bint with_snapshots

    def __init__(self, K, box, beta, residual, drive, status, double offset, double drive_sum,
                 bint has_offset, int64_t capacity, double independence):
        cdef Py_ssize_t m = K.shape[0]
        self.K, self.box = K, box
        self.beta, self.residual, self.drive, self.status = beta, residual, drive, status
        self.side = np.asarray(status, dtype=np.float64)
        self.rate = np.zeros(m)
        self.root = np.sqrt(np.diagonal(K))
        self.t, self.offset, self.drive_sum, self.has_offset = 0.0, offset, drive_sum, has_offset
        self.independence = independence
        self.reserve(capacity)
        self.size = 0
        self.zero_steps, self.left_last, self.n_passed = 0, -1, 0
        self.passed = np.zeros(m + 1, dtype=np.int32)
        self.new_log(0, 0, False)

    def new_log(self, int64_t kinks, int64_t values, bint snapshots):
        """Forget the kinks logged so far, with room for new ones; with ``snapshots`` the β and
        the residuals of the whole window are kept at each of them, and before the first."""
        cdef int64_t rows = kinks + 1 if snapshots else 0
        self.with_snapshots = snapshots
        self.snapshots = np.empty((rows, self.K.shape[0]))
        self.residuals = np.empty((rows, self.K.shape[0]))
        self.snapshot_t, self.snapshot_offset = np.empty(rows), np.empty(rows)
        self.log_t, self.log_offset = np.empty(kinks), np.empty(kinks)
        self.log_index = np.empty(kinks, dtype=np.int32)
        self.log_size = np.empty(kinks, dtype=np.int32)
        self.log_status = np.empty(kinks, dtype=np.int8)
        self.values = np.empty(values)
        self.members = np.empty(values, dtype=np.int32)
        self.n_kinks, self.n_values = 0, 0
        if snapshots:
            self.keep(0)

    def reserve(self, int64_t capacity):
        """Room for this many free points; the factor is kept."""
        L = np.zeros((capacity, capacity))
        free = np.zeros(capacity, dtype=np.int32)
        if self.size > 0:
            L[:self.size, :self.size] = self.L[:self.size, :self.size]
            free[:self.size] = self.free[:self.size]
        self.L, self.free = L, free
        self.delta, self.ones = np.zeros(capacity), np.zeros(capacity)
        self.work, self.scratch = np.zeros(2 * capacity), np.zeros(capacity)

    def set_free(self, int32_t[::1] members, factor):
        """The free points and the Cholesky factor of their matrix."""
        if members.shape[0] > self.free.shape[0]:
            self.reserve(2 * members.shape[0])
        self.size = members.shape[0]
        np.asarray(self.free)[:self.size] = members
        np.asarray(self.L)[:self.size, :self.size] = factor
        for i in range(self.size):
            self.side[members[i]] = 0

    def start_at(self, double t):
        """Where the walk stands."""
        self.t = t

    def factor(self):
        """A copy of the factor of the free points' matrix."""
        return np.array(self.L[:self.size, :self.size])

    # ---- the margin system ----

    cdef void solve(self, double* x) noexcept nogil:
        """x ← K_MM⁻¹ x."""
        cdef int64_t i, m = self.size, stride = self.L.shape[1]
        cdef double* L = &self.L[0, 0]
        for i in range(m):
            x[i] = (x[i] - path_dot(L + i * stride, x, i)) / L[i * stride + i]
        for i in range(m - 1, -1, -1):
            x[i] /= L[i * stride + i]
            path_axpy(-x[i], L + i * stride, x, i)

    cdef double prepare_entry(self, int64_t i) noexcept nogil:
        """The row of the factor that point i would get, in ``scratch``; returns what is left of
        K_ii beside the free points, the square of its diagonal entry."""
        cdef int64_t k, m = self.size, stride = self.L.shape[1]
        cdef double* row = &self.scratch[0]
        cdef double* L = &self.L[0, 0]
        cdef const double* values = &self.K[i, 0]
        for k in range(m):
            row[k] = (values[self.free[k]] - path_dot(L + k * stride, row, k)) / L[k * stride + k]
        return values[i] - path_dot(row, row, m)

    cdef void append(self, int64_t i, double left) noexcept nogil:
        cdef int64_t k, m = self.size
        for k in range(m):
            self.L[m, k] = self.scratch[k]
        self.L[m, m] = sqrt(left)
        self.free[m] = <int32_t>i
        self.size = m + 1

    cdef void remove(self, int64_t place) noexcept nogil:
        cdef int64_t m = self.size, capacity = self.free.shape[0]
        path_delete_row(&self.L[0, 0], self.L.shape[1], m, place, &self.work[0],
                        &self.work[capacity])
        self.forget(place)

    cdef void forget(self, int64_t place) noexcept nogil:
        """Take a free point off the list."""
        cdef int64_t k, m = self.size
        for k in range(place, m - 1):
            self.free[k] = self.free[k + 1]
            self.delta[k] = self.delta[k + 1]
        self.size = m - 1

    cdef void directions(self, double pull) noexcept nogil:
        """δ, b′ and the rates of all residuals."""
        cdef int64_t k, m = self.size
        cdef double worst = 0
        for k in range(m):
            self.delta[k] = 0
            self.scratch[k] = -self.drive[self.free[k]]
        self.offset_rate = 0
        self.improve()
        self.rates()
        for k in range(m):
            worst = max(worst, fabs(self.rate[self.free[k]]) / self.root[self.free[k]])
        # the free points do not stay on the margin: a step of refinement
        if worst > REFINE * self.rounding(pull):
            for k in range(m):
                self.scratch[k] = self.rate[self.free[k]]
            self.improve()
            self.rates()

    cdef void improve(self) noexcept nogil:
        """Add the solution of the margin system for the rates in ``scratch`` to δ and b′."""
        cdef int64_t k, m = self.size
        cdef double total, weight = 0, change
        if m == 0:
            return
        self.solve(&self.scratch[0])
        if self.has_offset:
            total = self.drive_sum
            for k in range(m):
                self.ones[k] = 1
            self.solve(&self.ones[0])
            for k in range(m):
                total += self.delta[k] + self.scratch[k]
                weight += self.ones[k]
            change = total / weight
            self.offset_rate += change
            for k in range(m):
                self.scratch[k] -= change * self.ones[k]
        for k in range(m):
            self.delta[k] += self.scratch[k]

    cdef void rates(self) noexcept nogil:
        cdef int64_t m = self.size
        path_rates(&self.K[0, 0], self.K.shape[0], &self.free[0], &self.delta[0], m,
                   &self.drive[0], self.offset_rate, &self.rate[0])

    cdef bint must_pause(self) noexcept nogil:
        """Whether ``work_off`` must be called before the next kink."""
        return False

    def work_off(self, double pull):
        """What is done now and then outside the loop over kinks; False where that fails."""
        return True

    cdef double rounding(self, double pull) noexcept nogil:
        """What rounding makes of a rate that is zero, as a share of the root of K's diagonal."""
        cdef int64_t k
        for k in range(self.size):
            pull += fabs(self.delta[k]) * self.root[self.free[k]]
        return 2.2e-16 * pull

    # ---- events ----

    cdef inline double bound(self, int64_t i, int which) noexcept nogil:
        return self.bound_at(i, which, self.t)

    cdef inline double bound_at(self, int64_t i, int which, double t) noexcept nogil:
        cdef int row = 0 if which <= 0 else 2
        return self.box[row, i] + t * self.box[row + 1, i]

    cdef inline double slope(self, int64_t i, int which) noexcept nogil:
        return self.box[1 if which < 0 else 3, i]

    cdef void drive_by(self, int64_t i, double change) noexcept nogil:
        """The bound that point i is at moves; without a change it stands."""
        if change != 0:
            path_axpy(change, &self.K[i, 0], &self.drive[0], self.K.shape[0])
            self.drive_sum += change

    cdef void rest(self, int64_t place, int which) noexcept nogil:
        """A free point stays at its bound from here on."""
        cdef int64_t i = self.free[place]
        self.beta[i] = self.bound(i, which)
        self.residual[i] = 0
        self.status[i] = <int8_t>which
        self.side[i] = which
        self.drive_by(i, self.slope(i, which))
        self.remove(place)

    cdef void record(self, int64_t index, int status) noexcept nogil:
        """Log a kink: where, which point, and the values of the free points."""
        cdef int64_t k, at = self.n_kinks, start = self.n_values
        self.log_t[at] = self.t
        self.log_offset[at] = self.offset
        self.log_index[at] = <int32_t>index
        self.log_status[at] = <int8_t>status
        self.log_size[at] = <int32_t>self.size
        for k in range(self.size):
            self.members[start + k] = self.free[k]
            self.values[start + k] = self.beta[self.free[k]]
        if self.with_snapshots:
            self.keep(at + 1)
        self.n_values = start + self.size
        self.n_kinks = at + 1

    cdef void keep(self, int64_t row) noexcept nogil:
        """A snapshot of the window."""
        cdef int64_t k
        self.snapshot_t[row], self.snapshot_offset[row] = self.t, self.offset
        for k in range(self.K.shape[0]):
            self.snapshots[row, k] = (self.beta[k] if self.status[k] == 0
                                      else self.bound(k, self.status[k]))
            self.residuals[row, k] = self.residual[k]

    def bend(self, int64_t first, int64_t last):
        """How far f and b leave the straight line between two snapshots: the norm of what β at
        the most adds to f, and the most that b adds to its line."""
        cdef int64_t k, n = self.K.shape[0]
        cdef double length = self.snapshot_t[last] - self.snapshot_t[first]
        cdef double part, shift, square, terms, largest = 0, largest_shift = 0
        with nogil:
            for k in range(first + 1, last):
                part = (self.snapshot_t[k] - self.snapshot_t[first]) / length if length > 0 else 0
                shift = self.snapshot_offset[k] - self.snapshot_offset[first] - part * (
                    self.snapshot_offset[last] - self.snapshot_offset[first])
                square = path_bend(
                    &self.snapshots[first, 0], &self.snapshots[k, 0], &self.snapshots[last, 0],
                    &self.residuals[first, 0], &self.residuals[k, 0], &self.residuals[last, 0],
                    part, shift, n, &terms)
                largest = max(largest, square + BEND_ROUNDING * terms)
                largest_shift = max(largest_shift, fabs(shift))
        return sqrt(largest), largest_shift

    def beta_at(self, int64_t first, int64_t last, const int32_t[::1] points, int8_t[::1] status):
        """β of some points at the kinks from number ``first`` on, before ``last``, one row a kink.

        ``status`` holds the sets of these points before the first of them, and afterwards
        those after the last.
        """
        cdef int64_t k, j, row, n_points = points.shape[0], begin = 0
        cdef double t
        out = np.empty((last - first, n_points))
        place = np.full(self.K.shape[0], -1, dtype=np.int32)
        cdef double[:, ::1] values = out
        cdef int32_t[::1] places = place
        with nogil:
            for j in range(n_points):
                places[points[j]] = <int32_t>j
            for k in range(first):
                begin += self.log_size[k]
            for k in range(first, last):
                row, t = k - first, self.log_t[k]
                if self.log_index[k] >= 0 and places[self.log_index[k]] >= 0:
                    status[places[self.log_index[k]]] = self.log_status[k]
                for j in range(n_points):
                    values[row, j] = self.bound_at(points[j], status[j], t)
                for j in range(begin, begin + self.log_size[k]):
                    if places[self.members[j]] >= 0:
                        values[row, places[self.members[j]]] = self.values[j]
                begin += self.log_size[k]
        return out

    cdef void enter(self, int64_t i, double left) noexcept nogil:
        """A point at a bound becomes free; ``left`` is what ``prepare_entry`` gave for it."""
        cdef int which = self.status[i]
        self.drive_by(i, -self.slope(i, which))
        self.beta[i] = self.bound(i, which)
        self.status[i] = 0
        self.side[i] = 0
        self.residual[i] = 0
        self.append(i, left)
        self.record(i, 0)

    cdef int64_t next_to_enter(self, double pull, double* step, double* left) noexcept nogil:
        """The point that reaches the margin first and within ``step``, −1 if none does, −2 if
        the matrix turns out indefinite, −3 if it is too hard to tell; ``step`` is then how far
        that is.

        A point that depends on the free ones keeps its residual: where it seems to arrive, its
        rate is rounding, and it is passed over until the free points change. So is the point
        that has just left, which rounding might call back.
        """
        cdef int64_t i, k, n_passed = 0
        cdef double noise = self.rounding(pull), arrival
        if self.left_last >= 0:
            self.passed[0] = <int32_t>self.left_last
            self.side[self.left_last] = 0
            n_passed = 1
        while True:
            i = path_first_to_enter(&self.side[0], &self.residual[0], &self.rate[0],
                                    &self.root[0], self.K.shape[0], noise, &arrival)
            if i < 0 or arrival >= step[0]:
                i = -1
                break
            left[0] = self.prepare_entry(i)
            if left[0] > self.independence * self.K[i, i]:
                step[0] = arrival
                break
            if left[0] < -INDEFINITENESS * self.K[i, i]:
                i = -2
                break
            if left[0] != left[0]:
                i = -3
                break
            self.side[i] = 0
            self.passed[n_passed] = <int32_t>i
            n_passed += 1
            self.n_passed += 1
        for k in range(n_passed):
            self.side[self.passed[k]] = self.status[self.passed[k]]
        return i

    cdef int shift_offset(self) noexcept nogil:
        """No point is free to balance the moving bounds: the offset jumps to the next point."""
        cdef int64_t i, best = -1
        cdef double way = 1.0 if self.drive_sum > 0 else -1.0
        cdef double nearest = INFINITY
        for i in range(self.K.shape[0]):
            if self.side[i] == way and way * self.residual[i] < nearest and i != self.left_last:
                nearest = way * self.residual[i]
                best = i
        if best < 0:
            return 2
        self.record(-1, 0)
        if nearest > 0:
            self.offset += way * nearest
            for i in range(self.K.shape[0]):
                self.residual[i] -= way * nearest
        self.left_last = -1
        self.enter(best, self.prepare_entry(best))
        return 0

    def run(self, double end, int64_t most_kinks, double balance, double pull,
            int64_t most_zero_steps, pause=None):
        """Up to ``most_kinks`` kinks; returns one of END, BATCH, STALLED, INDEFINITE, GROW, LOG_FULL
        and HARD. ``balance`` is the Σs below which bounds count as balanced, ``pull`` the size of
        the terms in ``drive``: Σ|sⱼ|·√Kⱼⱼ. ``pause`` is asked every few kinks: a true answer ends
        the batch, an exception of it the walk."""
        cdef int status
        cdef int64_t first = self.n_kinks, last
        while True:
            last = min(first + most_kinks, self.n_kinks + PAUSE_KINKS)
            status = self.walk(end, last, balance, pull, most_zero_steps)
            if status == PUT_OFF_FULL:
                if not self.work_off(pull):
                    status = HARD
                    break
            elif status != 1 or self.n_kinks >= first + most_kinks:
                break
            if pause is not None and pause():
                status = 1
                break
        self.settle()
        return status

    cdef int walk(self, double end, int64_t last_kink, double balance, double pull,
                  int64_t most_zero_steps):
        cdef int64_t n = self.K.shape[0], k, i, entering, leaving, room
        cdef int status = 1, which = 0
        cdef bint at_end
        cdef double step, gap, speed, left = 0
        with nogil:
            while True:
                if self.n_kinks >= last_kink:
                    status = 1
                    break
                if self.must_pause():
                    status = PUT_OFF_FULL
                    break
                if self.size + 2 > self.free.shape[0]:
                    status = 4
                    break
                room = self.values.shape[0] - self.n_values
                if self.n_kinks + 2 > self.log_t.shape[0] or room < 2 * (self.size + 2):
                    status = 5
                    break
                if self.zero_steps > most_zero_steps:
                    status = 2
                    break
                if self.has_offset and self.size == 0 and fabs(self.drive_sum) > balance:
                    self.zero_steps += 1
                    status = self.shift_offset()
                    if status != 0:
                        break
                    continue
                self.directions(pull)
                step = end - self.t
                leaving = -1
                for k in range(self.size):
                    i = self.free[k]
                    speed = self.delta[k] - self.slope(i, 1)
                    if speed > 0:
                        gap = self.bound(i, 1) - self.beta[i]
                        gap = gap if gap > 0 else 0
                        if gap < step * speed:
                            step = gap / speed
                            leaving = k
                            which = 1
                    speed = self.slope(i, -1) - self.delta[k]
                    if speed > 0:
                        gap = self.beta[i] - self.bound(i, -1)
                        gap = gap if gap > 0 else 0
                        if gap < step * speed:
                            step = gap / speed
                            leaving = k
                            which = -1
                entering = self.next_to_enter(pull, &step, &left)
                if entering < -1:
                    status = 3 if entering == -2 else 6
                    break
                at_end = self.t + step >= end - AT_END
                if at_end:
                    step = end - self.t
                    entering, leaving = -1, -1
                # a step that rounding swallows is none: such kinks could follow each other for ever
                self.zero_steps = 0 if self.t + step > self.t else self.zero_steps + 1
                if step > 0:
                    self.t = end if at_end else self.t + step
                    for k in range(self.size):
                        self.beta[self.free[k]] += step * self.delta[k]
                    path_axpy(step, &self.rate[0], &self.residual[0], n)
                    for k in range(self.size):
                        self.residual[self.free[k]] = 0
                    self.offset += step * self.offset_rate
                if at_end:
                    self.record(-1, 0)
                    status = 0
                    break
                if entering < 0:
                    i = self.free[leaving]
                    self.rest(leaving, which)
                    self.record(i, which)
                    self.left_last = i
                else:
                    self.left_last = -1
                    self.enter(entering, left)
        return status

    cdef void settle(self):
        """Put the points at bounds where the bounds are now."""
        cdef int64_t i
        for i in range(self.K.shape[0]):
            if self.status[i] != 0:
                self.beta[i] = self.bound(i, self.status[i])


include "path_swept.pxi"
