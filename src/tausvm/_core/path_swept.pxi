# The path core for many free points: part of path.pyx.
from scipy.linalg.blas import dsymv, dsyrk
from scipy.linalg.lapack import dpotri, dtrtrs

cdef int64_t PUT_OFF = 64          # pivots that wait before they are applied together
cdef double ACCURATE = 1e-7     # a Schur complement below this share is left to a factor
cdef double SWEPT_ROUNDING = 10  # rounding of rates, beside that of a fresh evaluation
cdef double LOST = 1e6          # rates further off than this multiple of rounding are lost


cdef class SweptCore(PathCore):
    """Kinks on the window's matrix swept on the free points M, instead of a factor of K_MM:

        S = [ −P    V ]      P = K_MM⁻¹,  V = P K_MN
            [ Vᵀ    K_NN − K_NM V ]

    A point that enters or leaves is one pivot k with the column c = S_·k and d = c_k,

        S ← S − c cᵀ/d,   S_·k ← ±c/d,   S_kk ← −1/d

    and the same pivot changes δ, the rates and b′, which are one more column of S. Pivots are
    put off: a column then costs one vector for each of them, and they are applied together in
    a symmetric product, at the speed of matrix products. Rates are evaluated afresh then.
    """
    cdef double[:, ::1] S, U
    cdef double[::1] weight, column, swept_drive, swept_ones
    cdef int64_t waiting
    cdef double pending
    cdef bint broken

    def sweep(self, factor):
        """S for the free points, given the Cholesky factor of their matrix."""
        cdef int64_t n = self.K.shape[0], m = self.size
        K, free = np.asarray(self.K), np.asarray(self.free)[:m]
        in_order = (free == np.arange(m)).all()
        if not in_order:
            others = np.ones(n, dtype=bool)
            others[free] = False
            order = np.r_[free, np.flatnonzero(others)]
            K = K[np.ix_(order, order)]
        factor = np.asfortranarray(factor)
        half = dtrtrs(factor, K[m:, :m].T, lower=1)[0]
        S = np.empty((n, n))  # the lower triangle counts
        S[:m, :m] = -dpotri(factor, lower=1)[0]
        S[m:, :m] = dtrtrs(factor, half, lower=1, trans=1)[0].T
        S[m:, m:] = dsyrk(-1.0, half, 1.0, K[m:, m:].T, trans=1).T
        columns = np.column_stack([self.drive, np.ones(n)])
        inner = dtrtrs(factor, dtrtrs(factor, columns[free], lower=1)[0], lower=1, trans=1)[0]
        columns -= (np.asarray(self.K)[:m] if in_order else np.asarray(self.K)[free]).T @ inner
        columns[free] = inner
        if not in_order:
            S = np.tril(S)
            S += np.tril(S, -1).T
            place = np.argsort(order)
            S = S[np.ix_(place, place)]
        self.S = S
        self.swept_drive, self.swept_ones = np.ascontiguousarray(columns.T)
        self.U, self.weight = np.empty((PUT_OFF, n)), np.empty(PUT_OFF)
        self.column = np.empty(n)
        self.waiting, self.pending, self.broken = 0, 0.0, False

    def swept(self):
        """S, with the pivots that wait."""
        vectors = np.asarray(self.U)[:self.waiting]
        S = np.tril(self.S)
        S += np.tril(S, -1).T
        return S - (vectors.T * np.asarray(self.weight)[:self.waiting]) @ vectors

    # ---- the margin system ----

    cdef double prepare_entry(self, int64_t i) noexcept nogil:
        path_swept_column(&self.S[0, 0], self.K.shape[0], i, &self.U[0, 0], &self.weight[0],
                          self.waiting, &self.column[0])
        return self.column[i] if self.column[i] > ACCURATE * self.K[i, i] else NAN

    cdef void append(self, int64_t i, double left) noexcept nogil:
        if self.pending != 0:
            path_axpy(self.pending, &self.column[0], &self.swept_drive[0], self.K.shape[0])
        self.pivot(i, 1.0)
        self.free[self.size] = <int32_t>i
        self.size += 1

    cdef void remove(self, int64_t place) noexcept nogil:
        cdef int64_t i = self.free[place]
        self.swept_drive[i] += self.pending
        path_swept_column(&self.S[0, 0], self.K.shape[0], i, &self.U[0, 0], &self.weight[0],
                          self.waiting, &self.column[0])
        if self.column[i] < 0:
            self.pivot(i, -1.0)
        else:
            self.broken = True
        self.forget(place)

    cdef void pivot(self, int64_t k, double way) noexcept nogil:
        """Sweep, or undo the sweep, on k, whose column is in ``column``."""
        cdef int64_t l, n = self.K.shape[0]
        cdef double d = self.column[k]
        cdef double drive = self.swept_drive[k] / d, ones = self.swept_ones[k] / d
        for l in range(self.waiting):
            self.U[l, k] = 0
        path_swept_write(&self.S[0, 0], n, k, &self.column[0], way / d)
        self.S[k, k] = -1 / d
        self.column[k] = 0
        self.weight[self.waiting] = 1 / d
        for l in range(n):
            self.U[self.waiting, l] = self.column[l]
        self.waiting += 1
        path_axpy(-drive, &self.column[0], &self.swept_drive[0], n)
        self.swept_drive[k] = way * drive
        if self.has_offset:
            path_axpy(-ones, &self.column[0], &self.swept_ones[0], n)
            self.swept_ones[k] = way * ones

    cdef void drive_by(self, int64_t i, double change) noexcept nogil:
        PathCore.drive_by(self, i, change)
        self.pending = change

    cdef void directions(self, double pull) noexcept nogil:
        cdef int64_t k, i, n = self.K.shape[0]
        cdef double total, weight = 0
        self.offset_rate = 0
        if self.has_offset and self.size > 0:
            total = self.drive_sum
            for k in range(self.size):
                total -= self.swept_drive[self.free[k]]
                weight += self.swept_ones[self.free[k]]
            self.offset_rate = total / weight
        for i in range(n):
            self.rate[i] = -self.swept_drive[i]
        if self.has_offset:
            path_axpy(-self.offset_rate, &self.swept_ones[0], &self.rate[0], n)
        for k in range(self.size):
            i = self.free[k]
            self.delta[k] = self.rate[i]
            self.rate[i] = 0

    cdef double rounding(self, double pull) noexcept nogil:
        return SWEPT_ROUNDING * PathCore.rounding(self, pull)

    # ---- now and then ----

    cdef bint must_pause(self) noexcept nogil:
        return self.waiting == PUT_OFF or self.broken

    def work_off(self, double pull):
        """Apply the pivots that wait, and evaluate δ and the rates afresh."""
        if self.broken:
            return False
        weight = np.asarray(self.weight)[:self.waiting]
        vectors = np.asarray(self.U)[:self.waiting] * np.sqrt(np.abs(weight))[:, None]
        S = np.asarray(self.S).T
        for sign, chosen in ((-1.0, weight > 0), (1.0, weight < 0)):
            if chosen.any():
                dsyrk(sign, vectors[chosen].T, 1.0, S, overwrite_c=1)
        self.waiting = 0
        self.directions(pull)
        return self.refined(pull)

    cdef bint refined(self, double pull):
        """Whether the free points stay on the margin; a step of refinement where they do not."""
        cdef int64_t k, i, m = self.size, attempt
        cdef double worst, change, noise, weight
        error = np.zeros(self.K.shape[0])
        cdef double[::1] out = error
        cdef double[::1] ones = self.swept_ones
        for attempt in range(2):
            self.rates()
            worst = 0
            for k in range(m):
                worst = max(worst, fabs(self.rate[self.free[k]]) / self.root[self.free[k]])
            noise = PathCore.rounding(self, pull)
            if worst <= REFINE * noise or attempt == 1 or m == 0:
                break
            error[:] = 0
            for k in range(m):
                out[self.free[k]] = self.rate[self.free[k]]
            solved = dsymv(-1.0, np.asarray(self.S).T, error)
            error[:] = solved
            change = 0
            if self.has_offset:
                change, weight = self.drive_sum, 0
                for k in range(m):
                    change += self.delta[k] + out[self.free[k]]
                    weight += ones[self.free[k]]
                change /= weight
            for k in range(m):
                self.delta[k] += out[self.free[k]] - change * ones[self.free[k]]
            self.offset_rate += change
        for i in range(self.K.shape[0]):
            self.swept_drive[i] = -self.rate[i] - self.offset_rate * ones[i] * self.has_offset
        for k in range(m):
            i = self.free[k]
            self.swept_drive[i] = -self.delta[k] - self.offset_rate * ones[i] * self.has_offset
        return worst <= LOST * noise
