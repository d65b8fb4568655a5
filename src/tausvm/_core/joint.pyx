# distutils: language = c
"""Group terms of the joint problem: their responses, and primal-dual coordinate steps.

    h(a) = ε‖a‖₂ + Σⱼ ½·(ridge₊ if aⱼ > 0 else ridge₋)·aⱼ²   on lower ≤ a ≤ upper, a ∈ Rᵖ

The response to r ∈ Rᵖ is argmax_a ⟨a, r⟩ − h(a). It is 0 where ‖r‖ ≤ ε (coordinates that
cannot move left out); else, with s = ‖a‖/ε,

    |aⱼ| = min(|rⱼ|·s/(1 + s·ridgeⱼ), endⱼ),     Σⱼ min(|rⱼ|/(1 + s·ridgeⱼ), endⱼ/s)² = ε²,

whose left side falls in s. The coordinates reach their ends one after the other as s grows:
the stretch between two such knots that holds the root is found first, then the root itself,
in closed form without ridges and by safeguarded Newton steps with them. The proximal operator
of μh at z is the response to z/μ with ridges larger by 1/μ (Propositions 4 and 5).
"""
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check

cdef extern from "products.h" nogil:
    void add_multiple(double, const double*, double*, int64_t)

LOWER, UPPER, KINK, RIDGE_MINUS, RIDGE_PLUS = range(5)


#: an ε below this share of a residual is 0 to rounding, and its square may be none
cdef double TINY = 1e-20


cdef inline double height(const double* size, const double* end, const double* ridge,
                          Py_ssize_t p, double s, double* slope) noexcept nogil:
    """Σ min(size/(1 + s·ridge), end/s)² and its derivative."""
    cdef Py_ssize_t j
    cdef double total = 0.0, fall = 0.0, part, room
    for j in range(p):
        part = size[j] / (1.0 + s * ridge[j])
        room = end[j] / s
        if part <= room:
            total += part * part
            fall -= 2.0 * part * part * ridge[j] / (1.0 + s * ridge[j])
        else:
            total += room * room
            fall -= 2.0 * room * room / s
    slope[0] = fall
    return total


cdef double scale_of(const double* size, const double* end, const double* ridge, Py_ssize_t p,
                     double epsilon) noexcept nogil:
    """The s of the response; ‖size‖ > ε > 0 over coordinates with end > 0."""
    cdef Py_ssize_t j
    cdef double target = epsilon * epsilon, low = 0.0, high = INFINITY, knot, slope, value
    cdef double free = 0.0, ends = 0.0, reach = 0.0, s, step, steepest = 0.0
    cdef int tries
    # the stretch between knots that holds the root
    for j in range(p):
        knot = size[j] - end[j] * ridge[j]
        if not end[j] < INFINITY or knot <= 0.0:
            continue
        knot = end[j] / knot
        if knot <= low or knot >= high:
            continue
        if height(size, end, ridge, p, knot, &slope) > target:
            low = knot
        else:
            high = knot
    for j in range(p):
        knot = size[j] - end[j] * ridge[j] if end[j] < INFINITY else 0.0
        if knot > 0.0 and end[j] / knot <= low:
            ends += end[j] * end[j]
        else:
            free += size[j] * size[j]
            steepest = max(steepest, ridge[j])
            if ridge[j] > 0.0:
                reach += (size[j] / ridge[j]) * (size[j] / ridge[j])
    if steepest == 0.0:
        if free < target:
            return min(max(sqrt(ends / (target - free)), low), high)
        return high
    if not high < INFINITY:
        high = max(sqrt(ends + reach) / epsilon, low)
    # Newton on 1/√height, which is straight where all ridges are equal
    s = low
    if s == 0.0:
        s = (sqrt(free) - epsilon) / (epsilon * steepest)
        s = min(s, high)
    for tries in range(100):
        value = height(size, end, ridge, p, s, &slope)
        if value > target:
            low = max(low, s)
        elif value < target:
            high = min(high, s)
        else:
            break
        # d(1/√h) = −½ h^(−3/2) h′
        step = (1.0 / epsilon - 1.0 / sqrt(value)) / (-0.5 * slope / (value * sqrt(value)))
        if fabs(step) <= 1e-16 * s:
            break
        s += step
        if not (s > low and s < high):
            if high - low <= 4e-16 * high:
                s = 0.5 * (low + high)
                break
            s = 0.5 * (low + high)
    return s


cdef void respond(const double* r, const double* lower, const double* upper,
                  const double* ridge_minus, const double* ridge_plus, double extra,
                  Py_ssize_t p, double epsilon, double* work, double* a, double* u) noexcept nogil:
    """a = the response to r, u = its part within the ε-ball; ``work`` has room for 3p."""
    cdef Py_ssize_t j
    cdef double* size = work
    cdef double* end = work + p
    cdef double* ridge = work + 2 * p
    cdef double norm = 0.0, s, total
    for j in range(p):
        end[j] = upper[j] if r[j] > 0 else -lower[j]
        ridge[j] = (ridge_plus[j] if r[j] > 0 else ridge_minus[j]) + extra
        size[j] = fabs(r[j]) if end[j] > 0 else 0.0
        norm += size[j] * size[j]
        a[j] = 0.0
        u[j] = 0.0
    norm = sqrt(norm)
    if norm <= epsilon:
        for j in range(p):
            u[j] = r[j] if size[j] > 0 else 0.0
        return
    if epsilon <= TINY * norm:
        for j in range(p):
            if size[j] > 0:
                total = size[j] / ridge[j] if ridge[j] > 0 else INFINITY
                total = min(total, end[j])
                a[j] = total if r[j] > 0 else -total
        return
    s = scale_of(size, end, ridge, p, epsilon)
    norm = 0.0
    for j in range(p):
        if size[j] > 0:
            total = min(size[j] * s / (1.0 + s * ridge[j]), end[j])
            a[j] = total if r[j] > 0 else -total
            norm += total * total
    norm = sqrt(norm)
    if norm > 0:
        for j in range(p):
            u[j] = epsilon * (a[j] / norm)


def group_response(const double[:, ::1] residual, const double[:, :, ::1] terms,
                   const double[::1] extra, double epsilon,
                   double[:, ::1] response, double[:, ::1] shift):
    """Responses to the rows of ``residual``, and the u of ℓ_ε(r) = Σⱼ ℓⱼ(rⱼ − uⱼ), ‖u‖ ≤ ε.

    ``terms`` is (5, n, p); ``extra`` is added to the ridges, one number a row.
    """
    cdef Py_ssize_t i, n = residual.shape[0], p = residual.shape[1]
    cdef double[::1] work = np.empty(3 * p)
    if n == 0 or p == 0:
        return
    check(terms.shape[0] == 5 and terms.shape[1] == n and terms.shape[2] == p
          and extra.shape[0] == n and response.shape[0] == n and response.shape[1] == p
          and shift.shape[0] == n and shift.shape[1] == p,
          "terms, extra, response and shift must have the shape of residual")
    with nogil:
        for i in range(n):
            respond(&residual[i, 0], &terms[0, i, 0], &terms[1, i, 0], &terms[3, i, 0],
                    &terms[4, i, 0], extra[i], p, epsilon, &work[0], &response[i, 0],
                    &shift[i, 0])


cdef class PrimalDualSteps:
    """α, θ and the products of primal-dual coordinate descent, kept by increments.

    ``alpha`` and ``theta`` are the caller's arrays. ``stiffness`` is 1/μ, 0 for a step as long as the
    terms allow. ``weighted_sum`` is Σᵢ (θᵢ/νᵢ + αᵢ) and ``inverse_nu_sum`` 1/Σ(1/νᵢ), both over the
    samples that take part, so that the projection onto span(1) costs p operations. ``B`` is that of
    k·B, None for a general matrix-valued kernel.

    ∇s(α) is kept at the samples that take part alone, output by output, so that a step adds
    multiples of one row to p others.
    """

    cdef public object weighted_sum
    cdef public double inverse_nu_sum
    cdef double[:, ::1] alpha, theta, gradient
    cdef const double[:, :, ::1] terms
    cdef const double[:, ::1] B
    cdef const double[::1] nu, stiffness
    cdef const int64_t[::1] active
    cdef int64_t[::1] place
    cdef double[::1] buffer, values
    cdef double epsilon
    cdef bint separable, offset

    def __init__(self, double[:, ::1] alpha, double[:, ::1] theta,
                 const double[:, :, ::1] terms, double epsilon, const double[::1] nu,
                 const double[::1] stiffness, const double[:, ::1] B, bint offset):
        cdef Py_ssize_t n = alpha.shape[0], p = alpha.shape[1]
        check(p > 0 and theta.shape[0] == n and theta.shape[1] == p and terms.shape[0] == 5
              and terms.shape[1] == n and terms.shape[2] == p and nu.shape[0] == n
              and stiffness.shape[0] == n,
              "theta, terms, nu and stiffness must have the shape of alpha")
        self.separable = B is not None
        check(not self.separable or (B.shape[0] == p and B.shape[1] == p),
              "B must have a row and a column an output")
        self.alpha, self.theta, self.terms, self.epsilon = alpha, theta, terms, epsilon
        self.nu, self.stiffness, self.B, self.offset = nu, stiffness, B, offset
        self.weighted_sum = np.zeros(p)
        self.inverse_nu_sum = 0.0
        self.buffer = np.empty(8 * p)
        self.values = np.empty(n)
        self.place = np.empty(n, dtype=np.int64)
        self.active = np.empty(0, dtype=np.int64)

    def begin(self, const int64_t[::1] active, const double[:, ::1] gradient):
        """Let these samples take part, in ascending order; ``gradient``, (n, p), is of all."""
        cdef Py_ssize_t l
        check(gradient.shape[0] == self.alpha.shape[0] and gradient.shape[1] == self.alpha.shape[1],
              "gradient must have the shape of alpha")
        self.active = active
        self.gradient = np.ascontiguousarray(np.asarray(gradient)[np.asarray(active)].T)
        for l in range(active.shape[0]):
            self.place[active[l]] = l

    def run(self, const double[:, ::1] rows, const int64_t[::1] slots,
            const int64_t[::1] order):
        """A step at each of the samples ``order``, all of which take part.

        Row i of the scalar kernel is rows[slots[i]], n numbers where the kernel is k·B, and the
        p×(n·p) block of a general matrix-valued kernel otherwise.
        """
        cdef double[::1] weighted_sum = self.weighted_sum
        cdef double[:, ::1] alpha = self.alpha, theta = self.theta, gradient = self.gradient
        cdef const int64_t[::1] active = self.active
        cdef Py_ssize_t t, i, j, l, k, p = alpha.shape[1], n = alpha.shape[0]
        cdef Py_ssize_t m = active.shape[0], steps = order.shape[0]
        cdef double* work = &self.buffer[0]
        cdef double* z = work + 3 * p
        cdef double* new = work + 4 * p
        cdef double* shift = work + 5 * p
        cdef double* moved = work + 6 * p
        cdef double* mapped = work + 7 * p
        cdef double bar, largest, value
        cdef const double* row
        check(slots.shape[0] == n and rows.shape[1] == (n if self.separable else p * n * p),
              "rows must have a number a sample, or p times p of them, and slots one")
        with nogil:
            for t in range(steps):
                i = order[t]
                for j in range(p):
                    value = gradient[j, self.place[i]]
                    if self.offset:
                        bar = weighted_sum[j] * self.inverse_nu_sum
                        value += 2.0 * bar - theta[i, j]
                        weighted_sum[j] += (bar - theta[i, j]) / self.nu[i]
                        theta[i, j] = bar
                    z[j] = alpha[i, j] * self.stiffness[i] - value
                respond(z, &self.terms[0, i, 0], &self.terms[1, i, 0], &self.terms[3, i, 0],
                        &self.terms[4, i, 0], self.stiffness[i], p, self.epsilon, work, new, shift)
                largest = 0.0
                for j in range(p):
                    moved[j] = new[j] - alpha[i, j]
                    largest = max(largest, fabs(moved[j]))
                    alpha[i, j] = new[j]
                    if self.offset:
                        weighted_sum[j] += moved[j]
                if largest == 0.0:
                    continue
                row = &rows[slots[i], 0]
                if self.separable:
                    for j in range(p):
                        mapped[j] = 0.0
                        for k in range(p):
                            mapped[j] += self.B[j, k] * moved[k]
                    if m < n:
                        for l in range(m):
                            self.values[l] = row[active[l]]
                        row = &self.values[0]
                    for j in range(p):
                        add_multiple(mapped[j], row, &gradient[j, 0], m)
                    continue
                for k in range(p):
                    if moved[k] == 0.0:
                        continue
                    value = moved[k]
                    for j in range(p):
                        for l in range(m):
                            gradient[j, l] += value * row[k * n * p + active[l] * p + j]
