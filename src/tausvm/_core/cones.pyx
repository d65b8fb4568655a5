# distutils: language = c
"""The barriers of the joint interior-point method: bounds, halves and norms.

Each class holds the slacks and multipliers of one part of Σᵢ hᵢ, adds its curvature to the
blocks of Newton's equations and its pull to their right side, and works out its own step from
the step in α. Slacks s ≥ 0 with multipliers z ≥ 0 get Mehrotra's predictor-corrector,

    z·ds + s·dz = centre − s·z − ds·dz  (the products of the first guess),

second-order cones do too, in the scaling of Nesterov and Todd. All have the methods

    complementarity()    the sum of the products slack · multiplier
    add_gradient(out)    out += what its multipliers and ridges add to the derivative by α
    prepare(...)         add its curvature to the blocks
    aim(centre, out)     out += its pull towards products of `centre`; below 0: the first guess
    follow(dalpha)       its own direction
    longest()            how far that can be followed, at most LONGEST
    after(length)        the complementarity after a step of this length
    step(length)         go that far
"""
from libc.math cimport sqrt
import numpy as np

#: the longest step a direction may be followed
LONGEST = 1.005
cdef double MOST = 1.005


cdef class Pairs:
    """Slacks and multipliers, elementwise, as flat arrays."""

    cdef readonly object s, z
    cdef double[::1] sv, zv, ds, dz, pull
    cdef Py_ssize_t m

    def __init__(self, s, z):
        self.s = np.array(s, dtype=np.float64).ravel()
        self.z = np.array(z, dtype=np.float64).ravel()
        self.sv, self.zv = self.s, self.z
        self.m = self.sv.shape[0]
        self.ds, self.dz, self.pull = np.zeros(self.m), np.zeros(self.m), np.zeros(self.m)

    cdef void aim(self, double centre) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.m):
            self.pull[k] = -self.zv[k]
            if centre >= 0:
                self.pull[k] += (centre - self.ds[k] * self.dz[k]) / self.sv[k]

    cdef inline void follow(self, Py_ssize_t k, double ds) noexcept nogil:
        self.ds[k] = ds
        self.dz[k] = self.pull[k] - self.zv[k] / self.sv[k] * ds

    cdef double longest(self) noexcept nogil:
        cdef Py_ssize_t k
        cdef double most = MOST
        for k in range(self.m):
            if self.ds[k] < 0:
                most = min(most, -self.sv[k] / self.ds[k])
            if self.dz[k] < 0:
                most = min(most, -self.zv[k] / self.dz[k])
        return most

    cdef double after(self, double length) noexcept nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.m):
            total += (self.sv[k] + length * self.ds[k]) * (self.zv[k] + length * self.dz[k])
        return total

    cdef void step(self, double length) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.m):
            self.sv[k] += length * self.ds[k]
            self.zv[k] += length * self.dz[k]

    def ratio(self):
        """A slack below this times its multiplier is on its way to 0."""
        return 1e-3 * float(self.s.mean()) / max(float(self.z.mean()), 1e-300)


cdef class Box:
    """lower ≤ α ≤ upper, both finite, with a ridge; (n, p) arrays, multipliers ``size``."""

    cdef readonly Pairs high, low
    cdef readonly long degree
    cdef double[::1] alpha, ridge, dalpha
    cdef Py_ssize_t m

    def __init__(self, lower, upper, ridge, double size):
        self.m = lower.size
        self.high = Pairs(upper, np.full(self.m, size))
        self.low = Pairs(-lower, np.full(self.m, size))
        self.alpha = np.zeros(self.m)
        self.dalpha = np.zeros(self.m)
        self.ridge = np.array(ridge, dtype=np.float64).ravel()
        self.degree = 2 * self.m

    def complementarity(self):
        return self.high.after(0.0) + self.low.after(0.0)

    def add_gradient(self, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        for k in range(self.m):
            o[k] += self.ridge[k] * self.alpha[k] + self.high.zv[k] - self.low.zv[k]

    def prepare(self, double[:, ::1] d):
        cdef Py_ssize_t k
        cdef double* o = &d[0, 0]
        cdef Pairs high = self.high, low = self.low
        for k in range(self.m):
            o[k] += self.ridge[k] + high.zv[k] / high.sv[k] + low.zv[k] / low.sv[k]

    def aim(self, double centre, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        self.high.aim(centre)
        self.low.aim(centre)
        for k in range(self.m):
            o[k] += self.low.pull[k] - self.high.pull[k]

    def follow(self, const double[:, ::1] dalpha):
        cdef Py_ssize_t k
        cdef const double* step = &dalpha[0, 0]
        for k in range(self.m):
            self.dalpha[k] = step[k]
            self.high.follow(k, -step[k])
            self.low.follow(k, step[k])

    def longest(self):
        return min(self.high.longest(), self.low.longest())

    def after(self, double length):
        return self.high.after(length) + self.low.after(length)

    def step(self, double length):
        cdef Py_ssize_t k
        for k in range(self.m):
            self.alpha[k] += length * self.dalpha[k]
        self.high.step(length)
        self.low.step(length)


cdef class Halves:
    """α = plus − minus, both ≥ 0, with a ridge of its own each; multipliers ``size``.

    With G the rest of the derivative by α the two equations are G + ridge₊·plus − z₊ = 0 and
    −G + ridge₋·minus − z₋ = 0. The first is that of α; ``excess`` is their sum, which the
    second must lose.
    """

    cdef readonly Pairs plus, minus
    cdef readonly long degree
    cdef double[::1] ridge_plus, ridge_minus, excess
    cdef Py_ssize_t m

    def __init__(self, ridge_minus, ridge_plus, double size):
        self.m = ridge_plus.size
        self.ridge_plus = np.array(ridge_plus, dtype=np.float64).ravel()
        self.ridge_minus = np.array(ridge_minus, dtype=np.float64).ravel()
        start = size / np.maximum(self.ridge_plus, self.ridge_minus)
        self.plus = Pairs(start, np.full(self.m, size))
        self.minus = Pairs(start, np.full(self.m, size))
        self.excess = np.zeros(self.m)
        self.degree = 2 * self.m

    def complementarity(self):
        return self.plus.after(0.0) + self.minus.after(0.0)

    def add_gradient(self, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        for k in range(self.m):
            o[k] += self.ridge_plus[k] * self.plus.sv[k] - self.plus.zv[k]

    cdef inline double stiff_plus(self, Py_ssize_t k) noexcept nogil:
        return self.ridge_plus[k] + self.plus.zv[k] / self.plus.sv[k]

    cdef inline double stiff_minus(self, Py_ssize_t k) noexcept nogil:
        return self.ridge_minus[k] + self.minus.zv[k] / self.minus.sv[k]

    def prepare(self, double[:, ::1] d):
        cdef Py_ssize_t k
        cdef double* o = &d[0, 0]
        for k in range(self.m):
            self.excess[k] = (self.ridge_plus[k] * self.plus.sv[k] - self.plus.zv[k]
                              + self.ridge_minus[k] * self.minus.sv[k] - self.minus.zv[k])
            o[k] += 1.0 / (1.0 / self.stiff_plus(k) + 1.0 / self.stiff_minus(k))

    def aim(self, double centre, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        cdef double first, second
        self.plus.aim(centre)
        self.minus.aim(centre)
        for k in range(self.m):
            first, second = self.stiff_plus(k), self.stiff_minus(k)
            o[k] += ((self.plus.pull[k] * second - (self.minus.pull[k] - self.excess[k]) * first)
                     / (first + second))

    def follow(self, const double[:, ::1] dalpha):
        cdef Py_ssize_t k
        cdef const double* step = &dalpha[0, 0]
        cdef double first, both, down
        for k in range(self.m):
            # the two equations added: stiff₊ dp + stiff₋ dm = pull₊ + pull₋, and dp − dm = dα
            first = self.stiff_plus(k)
            both = self.plus.pull[k] + self.minus.pull[k] - self.excess[k]
            down = (both - first * step[k]) / (first + self.stiff_minus(k))
            self.minus.follow(k, down)
            self.plus.follow(k, down + step[k])

    def longest(self):
        return min(self.plus.longest(), self.minus.longest())

    def after(self, double length):
        return self.plus.after(length) + self.minus.after(length)

    def step(self, double length):
        self.plus.step(length)
        self.minus.step(length)


cdef inline double dot(const double* a, const double* b, Py_ssize_t p) noexcept nogil:
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(p):
        total += a[j] * b[j]
    return total


cdef inline double determinant(double x0, const double* x1, Py_ssize_t p) noexcept nogil:
    cdef double length = sqrt(dot(x1, x1, p))
    # a point that rounding has put on the boundary stays a hair inside
    return max((x0 - length) * (x0 + length), 1e-30 * x0 * x0)


cdef double reach_in_cone(double x0, const double* x1, double d0, const double* d1,
                          Py_ssize_t p, double most) noexcept nogil:
    """How far x + t·d stays in the second-order cone."""
    cdef double a = d0 * d0 - dot(d1, d1, p)
    cdef double b = x0 * d0 - dot(x1, d1, p)
    cdef double c = determinant(x0, x1, p)
    cdef double square = b * b - a * c
    if d0 < 0:
        most = min(most, -x0 / d0)
    if square < 0:
        return most
    # the smaller positive root of a·t² + 2b·t + c, in the form without cancellation
    square = sqrt(square)
    if b < 0:
        return min(most, c / (square - b))
    if a < 0:
        return min(most, -(b + square) / a)
    return most


cdef class Norms:
    """ε‖αᵢ‖: the cone tᵢ ≥ ‖αᵢ‖ with multipliers (ε, qᵢ), ‖qᵢ‖ ≤ ε.

    W = η·[[w₀, w₁ᵀ], [w₁, I + w₁w₁ᵀ/(1 + w₀)]] maps (ε, q) and, inverted, (t, α) to the same
    point λ. With the cone's own t eliminated its curvature is
    η⁻²(I − 2w₁w₁ᵀ/(1 + 2‖w₁‖²)), the blocks' ``share`` and ``w``.
    """

    cdef readonly long degree
    cdef double epsilon
    cdef double[::1] t, dt, w0, eta, first, l0
    cdef double[:, ::1] alpha, q, dalpha, dq, w1, l1, pull
    cdef double[::1] work
    cdef Py_ssize_t n, p

    def __init__(self, Py_ssize_t n, Py_ssize_t p, double epsilon, double product):
        self.n, self.p, self.epsilon = n, p, epsilon
        self.t = np.full(n, product / epsilon)
        self.dt, self.w0, self.eta = np.zeros(n), np.zeros(n), np.zeros(n)
        self.first, self.l0 = np.zeros(n), np.zeros(n)
        self.alpha, self.q = np.zeros((n, p)), np.zeros((n, p))
        self.dalpha, self.dq = np.zeros((n, p)), np.zeros((n, p))
        self.w1, self.l1, self.pull = np.zeros((n, p)), np.zeros((n, p)), np.zeros((n, p))
        self.work = np.zeros(4 * p)
        self.degree = n

    def complementarity(self):
        return self.after(0.0)

    def add_gradient(self, double[:, ::1] out):
        cdef Py_ssize_t i, j
        for i in range(self.n):
            for j in range(self.p):
                out[i, j] -= self.q[i, j]

    def prepare(self, double[::1] share, double[:, ::1] w):
        cdef Py_ssize_t i, j, p = self.p
        cdef double root_s, root_z, gamma, square
        for i in range(self.n):
            root_s = sqrt(determinant(self.t[i], &self.alpha[i, 0], p))
            root_z = sqrt(determinant(self.epsilon, &self.q[i, 0], p))
            gamma = (self.t[i] * self.epsilon + dot(&self.alpha[i, 0], &self.q[i, 0], p))
            gamma = 2.0 * sqrt(0.5 * (1.0 + gamma / (root_s * root_z)))
            square = 0.0
            for j in range(p):
                w[i, j] = (self.alpha[i, j] / root_s - self.q[i, j] / root_z) / gamma
                self.w1[i, j] = w[i, j]
                square += w[i, j] * w[i, j]
            self.w0[i] = sqrt(1.0 + square)
            self.eta[i] = sqrt(root_s / root_z)
            share[i] = root_z / root_s
            self.l0[i] = self.scale(i, self.epsilon, &self.q[i, 0], &self.l1[i, 0])

    cdef inline double scale(self, Py_ssize_t i, double x0, const double* x1,
                             double* out) noexcept nogil:
        """W x."""
        cdef Py_ssize_t j
        cdef double along = dot(&self.w1[i, 0], x1, self.p)
        for j in range(self.p):
            out[j] = self.eta[i] * (x1[j] + (x0 + along / (1.0 + self.w0[i])) * self.w1[i, j])
        return self.eta[i] * (self.w0[i] * x0 + along)

    cdef inline double unscale(self, Py_ssize_t i, double x0, const double* x1,
                               double* out) noexcept nogil:
        """W⁻¹ x."""
        cdef Py_ssize_t j
        cdef double along = dot(&self.w1[i, 0], x1, self.p)
        for j in range(self.p):
            out[j] = (x1[j] + (along / (1.0 + self.w0[i]) - x0) * self.w1[i, j]) / self.eta[i]
        return (self.w0[i] * x0 - along) / self.eta[i]

    def aim(self, double centre, double[:, ::1] out):
        cdef Py_ssize_t i, j, p = self.p
        cdef double* a1 = &self.work[0]
        cdef double* c1 = a1 + p
        cdef double* x1 = a1 + 2 * p
        cdef double* rest = a1 + 3 * p
        cdef double* l1
        cdef double a0, c0, d0, x0, first, tilt
        for i in range(self.n):
            if centre < 0:
                first = -self.epsilon
                for j in range(p):
                    rest[j] = -self.q[i, j]
            else:
                l1 = &self.l1[i, 0]
                a0 = self.unscale(i, self.dt[i], &self.dalpha[i, 0], a1)
                c0 = self.scale(i, 0.0, &self.dq[i, 0], c1)
                d0 = (centre - self.l0[i] * self.l0[i] - dot(l1, l1, p) - a0 * c0
                      - dot(a1, c1, p))
                # λ∘x = d: the right side d₁ goes into x₁ first
                for j in range(p):
                    x1[j] = -2.0 * self.l0[i] * l1[j] - a0 * c1[j] - c0 * a1[j]
                x0 = (self.l0[i] * d0 - dot(l1, x1, p)) / determinant(self.l0[i], l1, p)
                for j in range(p):
                    x1[j] = (x1[j] - x0 * l1[j]) / self.l0[i]
                first = self.unscale(i, x0, x1, rest)
            self.first[i] = first
            tilt = self.tilt(i)
            for j in range(p):
                self.pull[i, j] = rest[j] + tilt * first * self.w1[i, j]
                out[i, j] += self.pull[i, j]

    cdef inline double tilt(self, Py_ssize_t i) noexcept nogil:
        return 2.0 * self.w0[i] / (2.0 * self.w0[i] * self.w0[i] - 1.0)

    def follow(self, const double[:, ::1] dalpha):
        cdef Py_ssize_t i, j, p = self.p
        cdef double along, stretch, square
        for i in range(self.n):
            along = dot(&self.w1[i, 0], &dalpha[i, 0], p)
            stretch = 1.0 + 2.0 * dot(&self.w1[i, 0], &self.w1[i, 0], p)
            square = self.eta[i] * self.eta[i]
            self.dt[i] = self.first[i] * square / stretch + self.tilt(i) * along
            for j in range(p):
                self.dalpha[i, j] = dalpha[i, j]
                self.dq[i, j] = (self.pull[i, j]
                                 - (dalpha[i, j] - 2.0 * along / stretch * self.w1[i, j]) / square)

    def longest(self):
        cdef Py_ssize_t i, p = self.p
        cdef double most = MOST
        for i in range(self.n):
            most = reach_in_cone(self.t[i], &self.alpha[i, 0], self.dt[i], &self.dalpha[i, 0],
                                 p, most)
            most = reach_in_cone(self.epsilon, &self.q[i, 0], 0.0, &self.dq[i, 0], p, most)
        return most

    def after(self, double length):
        cdef Py_ssize_t i, j
        cdef double total = 0.0
        for i in range(self.n):
            total += self.epsilon * (self.t[i] + length * self.dt[i])
            for j in range(self.p):
                total += ((self.alpha[i, j] + length * self.dalpha[i, j])
                          * (self.q[i, j] + length * self.dq[i, j]))
        return total

    def step(self, double length):
        cdef Py_ssize_t i, j
        for i in range(self.n):
            self.t[i] += length * self.dt[i]
            for j in range(self.p):
                self.alpha[i, j] += length * self.dalpha[i, j]
                self.q[i, j] += length * self.dq[i, j]


def block_matrices(const double[:, ::1] d, const double[::1] share, const double[:, ::1] w,
                   double[:, :, ::1] out):
    """out = diag(dᵢ) + shareᵢ·(I − 2wᵢwᵢᵀ/(1 + 2‖wᵢ‖²)); an empty share for the diagonal alone."""
    cdef Py_ssize_t i, j, k, n = d.shape[0], p = d.shape[1]
    cdef bint norms = share.shape[0] > 0
    cdef double factor
    for i in range(n):
        factor = 0.0
        if norms:
            factor = 2.0 * share[i] / (1.0 + 2.0 * dot(&w[i, 0], &w[i, 0], p))
        for j in range(p):
            for k in range(p):
                out[i, j, k] = -factor * w[i, j] * w[i, k] if norms else 0.0
            out[i, j, j] += d[i, j] + (share[i] if norms else 0.0)


def block_inverses(const double[:, ::1] d, const double[::1] share, const double[:, ::1] w,
                   double[:, :, ::1] out):
    """The inverses of those matrices by Sherman and Morrison's formula, free of cancellation."""
    cdef Py_ssize_t i, j, k, n = d.shape[0], p = d.shape[1]
    cdef bint norms = share.shape[0] > 0
    cdef double factor, left
    for i in range(n):
        factor = 0.0
        if norms:
            left = 1.0
            for j in range(p):
                left += 2.0 * w[i, j] * w[i, j] * d[i, j] / (d[i, j] + share[i])
            factor = 2.0 * share[i] / left
        for j in range(p):
            for k in range(p):
                out[i, j, k] = 0.0
                if norms:
                    out[i, j, k] = (factor * (w[i, j] / (d[i, j] + share[i]))
                                    * (w[i, k] / (d[i, k] + share[i])))
            out[i, j, j] += 1.0 / (d[i, j] + (share[i] if norms else 0.0))
