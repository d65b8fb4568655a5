# distutils: language = c
"""The barriers of the joint interior-point method: bounds, halves and norms.

Each class holds the slacks and multipliers of one part of Σᵢ hᵢ, adds its curvature to the
blocks of Newton's equations and its pull to their right side, and works out its own step from
the step in α. Slacks s ≥ 0 with multipliers z ≥ 0 get Mehrotra's predictor-corrector,

    z·ds + s·dz = centre − s·z − ds·dz  (the products of the first guess),

second-order cones do too, in the scaling of Nesterov and Todd. Each product is aimed at a share
of what it was in the beginning: rows of little weight have small products, and would be
driven far off by a target for all. All have the methods

    whole                the sum of the products slack · multiplier in the beginning
    complementarity()    that sum now
    add_gradient(out)    out += what its multipliers and ridges add to the derivative by α
    prepare(...)         add its curvature to the blocks
    aim(centre, out)     out += its pull towards this share of the products; below 0: first guess
    follow(dalpha)       its own direction
    longest()            how far that can be followed, at most LONGEST
    after(length)        the complementarity after a step of this length
    step(length)         go that far
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t
import numpy as np

from .checks cimport check, check_places, single_or_double

#: the longest step a direction may be followed
LONGEST = 1.005
cdef double MOST = 1.005


cdef class Pairs:
    """Slacks and multipliers, elementwise, as flat arrays."""

    cdef readonly object s, z, begun
    cdef double[::1] sv, zv, ds, dz, pull, product
    cdef Py_ssize_t m

    def __init__(self, s, z):
        self.s = np.array(s, dtype=np.float64)
        self.z = np.array(z, dtype=np.float64)
        #: what a slack is measured by, a unit of its multiplier
        self.begun = self.s / self.z
        self.product = self.s * self.z
        self.sv, self.zv = self.s, self.z
        self.m = self.sv.shape[0]
        self.ds, self.dz, self.pull = np.zeros(self.m), np.zeros(self.m), np.zeros(self.m)

    cdef void aim(self, double centre) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.m):
            self.pull[k] = -self.zv[k]
            if centre >= 0:
                self.pull[k] += (centre * self.product[k] - self.ds[k] * self.dz[k]) / self.sv[k]

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

    def vanishing(self, double share):
        """Which slacks are below this share of their multiplier, both as begun."""
        return self.s / self.begun < share * self.z


cdef class Bounds:
    """sign·α ≤ end for some entries of α, which starts at ``alpha``; multipliers ``size``.

    ``entries`` are their places in α row by row; the two sides of a box are two of these.
    """

    cdef readonly Pairs pairs
    cdef readonly double whole
    cdef readonly object entries
    cdef readonly double sign
    cdef const int64_t[::1] at
    cdef Py_ssize_t m

    def __init__(self, entries, double sign, ends, alpha, double size):
        self.entries = np.ascontiguousarray(entries, dtype=np.int64)
        self.at = self.entries
        self.sign, self.m = sign, len(entries)
        self.pairs = Pairs(ends - sign * alpha, np.full(self.m, size))
        self.whole = self.pairs.after(0.0)

    def complementarity(self):
        return self.pairs.after(0.0)

    def reached(self, double share):
        """The entries on their way to the bound."""
        return self.entries[self.pairs.vanishing(share)]

    def add_gradient(self, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        for k in range(self.m):
            o[self.at[k]] += self.sign * self.pairs.zv[k]

    def prepare(self, double[:, ::1] d):
        cdef Py_ssize_t k
        cdef double* o = &d[0, 0]
        for k in range(self.m):
            o[self.at[k]] += self.pairs.zv[k] / self.pairs.sv[k]

    def aim(self, double centre, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        self.pairs.aim(centre)
        for k in range(self.m):
            o[self.at[k]] -= self.sign * self.pairs.pull[k]

    def follow(self, const double[:, ::1] dalpha):
        cdef Py_ssize_t k
        cdef const double* step = &dalpha[0, 0]
        for k in range(self.m):
            self.pairs.follow(k, -self.sign * step[self.at[k]])

    def longest(self):
        return self.pairs.longest()

    def after(self, double length):
        return self.pairs.after(length)

    def step(self, double length):
        self.pairs.step(length)


cdef class Half:
    """One side of :class:`Halves`: a part in [0, end] that costs kink·part + ½·ridge·part²; ``end``
    may be infinite."""

    cdef Pairs floor, ceiling
    cdef double[::1] ridge, kink
    #: where a finite end has its slack among those of ``ceiling``, −1 for none
    cdef int64_t[::1] slot
    cdef Py_ssize_t m

    def __init__(self, start, ends, ridge, kink, double size):
        self.m = len(start)
        self.ridge, self.kink = np.array(ridge), np.array(kink)
        finite = np.isfinite(ends)
        self.slot = np.where(finite, np.cumsum(finite) - 1, -1).astype(np.int64)
        self.floor = Pairs(start, np.full(self.m, size))
        rooms = (ends - start)[finite]
        self.ceiling = Pairs(rooms, np.full(len(rooms), size))

    cdef inline double gradient(self, Py_ssize_t k) noexcept nogil:
        cdef double total = self.kink[k] + self.ridge[k] * self.floor.sv[k] - self.floor.zv[k]
        if self.slot[k] >= 0:
            total += self.ceiling.zv[self.slot[k]]
        return total

    cdef inline double stiffness(self, Py_ssize_t k) noexcept nogil:
        cdef int64_t c = self.slot[k]
        cdef double total = self.ridge[k] + self.floor.zv[k] / self.floor.sv[k]
        if c >= 0:
            total += self.ceiling.zv[c] / self.ceiling.sv[c]
        return total

    cdef inline double pull(self, Py_ssize_t k) noexcept nogil:
        cdef int64_t c = self.slot[k]
        return self.floor.pull[k] - (self.ceiling.pull[c] if c >= 0 else 0.0)

    cdef inline void follow(self, Py_ssize_t k, double step) noexcept nogil:
        self.floor.follow(k, step)
        if self.slot[k] >= 0:
            self.ceiling.follow(self.slot[k], -step)

    cdef void aim(self, double centre) noexcept nogil:
        self.floor.aim(centre)
        self.ceiling.aim(centre)

    cdef double longest(self) noexcept nogil:
        return min(self.floor.longest(), self.ceiling.longest())

    cdef double after(self, double length) noexcept nogil:
        return self.floor.after(length) + self.ceiling.after(length)

    cdef void step(self, double length) noexcept nogil:
        self.floor.step(length)
        self.ceiling.step(length)

    def reached(self, double share):
        """Whether each part is on its way to its end."""
        slots = np.asarray(self.slot)
        out = np.zeros(self.m, dtype=bool)
        if self.ceiling.m:
            out[slots >= 0] = self.ceiling.vanishing(share)[slots[slots >= 0]]
        return out

    def cleared(self, double share):
        """Whether each part is on its way to 0."""
        return self.floor.vanishing(share)


cdef class Halves:
    """α = plus − minus, 0 ≤ plus ≤ upper, 0 ≤ minus ≤ −lower, with a ridge of its own each and a
    kink at 0.

    For entries of α, given by their places row by row; bounds may be infinite; multipliers
    ``size``. With G the rest of the derivative by α the two equations are
    G + kink + ridge₊·plus − z₊ + (multiplier of upper) = 0 and
    −G + kink + ridge₋·minus − z₋ + (that of lower) = 0. The first is that of α; ``excess`` is
    their sum, which the second must lose.
    """

    cdef readonly Half plus, minus
    cdef readonly double whole
    cdef readonly object entries
    cdef const int64_t[::1] at
    cdef double[::1] excess
    cdef Py_ssize_t m

    def __init__(self, entries, terms, double size):
        self.entries = np.ascontiguousarray(entries, dtype=np.int64)
        self.at = self.entries
        self.m = len(entries)
        lower, upper, kink, ridge_minus, ridge_plus = terms
        with np.errstate(divide="ignore"):
            rise = np.minimum(size / ridge_plus, 0.5 * upper)
            fall = np.minimum(size / ridge_minus, -0.5 * lower)
        # without a kink only the difference counts, and to begin at 0 saves a step or two
        least = np.minimum(rise, fall)
        self.plus = Half(np.where(kink > 0, rise, least), upper, ridge_plus, kink, size)
        self.minus = Half(np.where(kink > 0, fall, least), -lower, ridge_minus, kink, size)
        self.excess = np.zeros(self.m)
        self.whole = self.after(0.0)

    @property
    def values(self):
        """α at these entries."""
        return np.subtract(self.plus.floor.s, self.minus.floor.s)

    def complementarity(self):
        return self.after(0.0)

    def add_gradient(self, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        for k in range(self.m):
            o[self.at[k]] += self.plus.gradient(k)

    def prepare(self, double[:, ::1] d):
        cdef Py_ssize_t k
        cdef double* o = &d[0, 0]
        for k in range(self.m):
            self.excess[k] = self.plus.gradient(k) + self.minus.gradient(k)
            o[self.at[k]] += 1.0 / (1.0 / self.plus.stiffness(k) + 1.0 / self.minus.stiffness(k))

    def aim(self, double centre, double[:, ::1] out):
        cdef Py_ssize_t k
        cdef double* o = &out[0, 0]
        cdef double first, second
        self.plus.aim(centre)
        self.minus.aim(centre)
        for k in range(self.m):
            first, second = self.plus.stiffness(k), self.minus.stiffness(k)
            o[self.at[k]] += ((self.plus.pull(k) * second
                               - (self.minus.pull(k) - self.excess[k]) * first)
                              / (first + second))

    def follow(self, const double[:, ::1] dalpha):
        cdef Py_ssize_t k
        cdef const double* step = &dalpha[0, 0]
        cdef double first, both, down
        for k in range(self.m):
            # the two equations added: stiff₊ dp + stiff₋ dm = pull₊ + pull₋, and dp − dm = dα
            first = self.plus.stiffness(k)
            both = self.plus.pull(k) + self.minus.pull(k) - self.excess[k]
            down = (both - first * step[self.at[k]]) / (first + self.minus.stiffness(k))
            self.minus.follow(k, down)
            self.plus.follow(k, down + step[self.at[k]])

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
    """ε‖αᵢ‖: the cone tᵢ ≥ ‖αᵢ‖ with multipliers (ε, qᵢ), ‖qᵢ‖ ≤ ε; α starts at ``alpha``.

    W = η·[[w₀, w₁ᵀ], [w₁, I + w₁w₁ᵀ/(1 + w₀)]] maps (ε, q) and, inverted, (t, α) to the same
    point λ. With the cone's own t eliminated its curvature is
    η⁻²(I − 2w₁w₁ᵀ/(1 + 2‖w₁‖²)), the blocks' ``share`` and ``w``.
    """

    cdef readonly double whole
    cdef double epsilon
    cdef double[::1] t, dt, w0, eta, first, l0, product
    cdef double[:, ::1] alpha, q, dalpha, dq, w1, l1, pull
    cdef double[::1] work
    cdef Py_ssize_t n, p

    def __init__(self, alpha, double epsilon, products):
        n, p = alpha.shape
        self.n, self.p, self.epsilon = n, p, epsilon
        self.t = np.sqrt(np.square(alpha).sum(axis=1)) + products / epsilon
        self.product = epsilon * np.asarray(self.t)
        self.dt, self.w0, self.eta = np.zeros(n), np.zeros(n), np.zeros(n)
        self.first, self.l0 = np.zeros(n), np.zeros(n)
        self.alpha, self.q = np.array(alpha), np.zeros((n, p))
        self.dalpha, self.dq = np.zeros((n, p)), np.zeros((n, p))
        self.w1, self.l1, self.pull = np.zeros((n, p)), np.zeros((n, p)), np.zeros((n, p))
        self.work = np.zeros(4 * p)
        self.whole = self.after(0.0)

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
                d0 = (centre * self.product[i] - self.l0[i] * self.l0[i] - dot(l1, l1, p) - a0 * c0
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


def direction_matrix(const double[:, ::1] K, const int64_t[::1] rows, const double[:, ::1] left,
                     const double[:, ::1] right, single_or_double[::1, :] out):
    """The lower triangle of outᵢⱼ = K(rowsᵢ, rowsⱼ)·⟨leftᵢ, rightⱼ⟩, with 1 on the diagonal."""
    cdef Py_ssize_t i, j, k, m = rows.shape[0], p = left.shape[1]
    cdef const double* row
    cdef const double* a
    cdef double total
    check(left.shape[0] == m and right.shape[0] == m and right.shape[1] == p
          and out.shape[0] == m and out.shape[1] == m,
          "left, right and out must have a row a direction")
    check_places(rows, min(K.shape[0], K.shape[1]), "rows must name rows of K")
    with nogil:
        for j in range(m):
            row = &K[rows[j], 0]
            a = &right[j, 0]
            out[j, j] = 1.0
            for i in range(j + 1, m):
                total = 0.0
                for k in range(p):
                    total += left[i, k] * a[k]
                out[i, j] = <single_or_double>(total * row[rows[i]])
