/* The loops of the path core over the points of a window, written so that gcc turns them into
 * vector code. Sums are kept in fixed lanes, so one machine gives the same bits on every run. */
#ifndef TAUSVM_PATH_LOOPS_H
#define TAUSVM_PATH_LOOPS_H

#include <math.h>
#include <stdint.h>

#include "products.h"

#define PATH_LANES 8
#define PATH_STRIP 1024 /* columns at a time: the sums stay in L1 while rows stream by */

/* a' b in eight lanes */
TAUSVM_CLONES static double path_dot(const double *restrict a, const double *restrict b, int64_t n)
{
    double lane[PATH_LANES] = {0};
    int64_t i = 0;
    for (; i + PATH_LANES <= n; i += PATH_LANES)
        for (int k = 0; k < PATH_LANES; k++)
            lane[k] += a[i + k] * b[i + k];
    double sum = 0;
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < PATH_LANES; k++)
        sum += lane[k];
    return sum;
}

/* x <- A^-1 x, A = L L' with L by rows */
TAUSVM_CLONES static void path_solve(const double *restrict L, int64_t stride, int64_t size,
                                     double *restrict x)
{
    for (int64_t i = 0; i < size; i++)
        x[i] = (x[i] - path_dot(L + i * stride, x, i)) / L[i * stride + i];
    for (int64_t i = size - 1; i >= 0; i--) {
        x[i] /= L[i * stride + i];
        add_multiple(-x[i], L + i * stride, x, i);
    }
}

/* The same for x and z together: each row of L comes from memory once */
TAUSVM_CLONES static void path_solve_two(const double *restrict L, int64_t stride, int64_t size,
                                         double *restrict x, double *restrict z)
{
    for (int64_t i = 0; i < size; i++) {
        const double *restrict row = L + i * stride;
        x[i] = (x[i] - path_dot(row, x, i)) / row[i];
        z[i] = (z[i] - path_dot(row, z, i)) / row[i];
    }
    for (int64_t i = size - 1; i >= 0; i--) {
        const double *restrict row = L + i * stride;
        x[i] /= row[i];
        add_multiple(-x[i], row, x, i);
        z[i] /= row[i];
        add_multiple(-z[i], row, z, i);
    }
}

/* out = -(start + shift + sum_j delta[j] K[rows[j], :]): how fast the residuals change */
TAUSVM_CLONES static void path_rates(const double *restrict K, int64_t n,
                                   const int64_t *restrict rows,
                                   const double *restrict delta, int64_t count,
                                   const double *restrict start, double shift,
                                   double *restrict out)
{
    for (int64_t begin = 0; begin < n; begin += PATH_STRIP) {
        int64_t m = n - begin < PATH_STRIP ? n - begin : PATH_STRIP;
        double *restrict o = out + begin;
        for (int64_t i = 0; i < m; i++)
            o[i] = start[begin + i] + shift;
        int64_t j = 0;
        /* eight rows at a time: nearly twice as fast as four */
        for (; j + 8 <= count; j += 8) {
            const double *restrict a = K + rows[j] * n + begin;
            const double *restrict b = K + rows[j + 1] * n + begin;
            const double *restrict c = K + rows[j + 2] * n + begin;
            const double *restrict d = K + rows[j + 3] * n + begin;
            const double *restrict e = K + rows[j + 4] * n + begin;
            const double *restrict f = K + rows[j + 5] * n + begin;
            const double *restrict g = K + rows[j + 6] * n + begin;
            const double *restrict h = K + rows[j + 7] * n + begin;
            double da = delta[j], db = delta[j + 1], dc = delta[j + 2], dd = delta[j + 3];
            double de = delta[j + 4], df = delta[j + 5], dg = delta[j + 6], dh = delta[j + 7];
            for (int64_t i = 0; i < m; i++)
                o[i] = (o[i] + ((da * a[i] + db * b[i]) + (dc * c[i] + dd * d[i]))) +
                       ((de * e[i] + df * f[i]) + (dg * g[i] + dh * h[i]));
        }
        for (; j + 4 <= count; j += 4) {
            const double *restrict a = K + rows[j] * n + begin;
            const double *restrict b = K + rows[j + 1] * n + begin;
            const double *restrict c = K + rows[j + 2] * n + begin;
            const double *restrict d = K + rows[j + 3] * n + begin;
            double da = delta[j], db = delta[j + 1], dc = delta[j + 2], dd = delta[j + 3];
            for (int64_t i = 0; i < m; i++)
                o[i] += (da * a[i] + db * b[i]) + (dc * c[i] + dd * d[i]);
        }
        for (; j < count; j++) {
            const double *restrict a = K + rows[j] * n + begin;
            double da = delta[j];
            for (int64_t i = 0; i < m; i++)
                o[i] += da * a[i];
        }
        for (int64_t i = 0; i < m; i++)
            o[i] = -o[i];
    }
}

/* The point at a bound whose residual reaches zero first. side is +1 at the upper bound
 * (residual > 0), -1 at the lower one, 0 for points that are free or must not enter. A speed
 * below noise * root[i] is rounding. */
static int64_t path_first_to_enter(const double *restrict side, const double *restrict residual,
                                const double *restrict rate, const double *restrict root,
                                int64_t n, double noise, double *step)
{
    double best_distance = INFINITY, best_speed = 1;
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        double speed = -side[i] * rate[i];
        double distance = side[i] * residual[i];
        if (speed > noise * root[i] && distance * best_speed < best_distance * speed) {
            best_distance = distance > 0 ? distance : 0;
            best_speed = speed;
            best = i;
        }
    }
    *step = best < 0 ? INFINITY : best_distance / best_speed;
    return best;
}

/* -g' (r + shift) + rounding * sum |g (r + shift)| where g and r are how far x and z are from the
 * straight lines between the rows (x0, x1) and (z0, z1) at `part` of the way */
TAUSVM_CLONES static double path_bend(const double *restrict x, const double *restrict x0,
                                      const double *restrict x1, const double *restrict z,
                                      const double *restrict z0, const double *restrict z1,
                                      int64_t n, double part, double shift, double rounding)
{
    double lane[PATH_LANES] = {0}, size[PATH_LANES] = {0};
    int64_t i = 0;
    for (; i + PATH_LANES <= n; i += PATH_LANES)
        for (int k = 0; k < PATH_LANES; k++) {
            int64_t at = i + k;
            double term = (x[at] - (x0[at] + part * (x1[at] - x0[at]))) *
                          (z[at] - (z0[at] + part * (z1[at] - z0[at])) + shift);
            lane[k] += term;
            size[k] += fabs(term);
        }
    double sum = 0, sizes = 0;
    for (; i < n; i++) {
        double term = (x[i] - (x0[i] + part * (x1[i] - x0[i]))) *
                      (z[i] - (z0[i] + part * (z1[i] - z0[i])) + shift);
        sum += term;
        sizes += fabs(term);
    }
    for (int k = 0; k < PATH_LANES; k++) {
        sum += lane[k];
        sizes += size[k];
    }
    return rounding * sizes - sum;
}

/* Delete row and column `gone` of A from its Cholesky factor, A = L L', L by rows with
 * `stride`: the rows below move up and plane rotations make them triangular again. */
static void path_delete_row(double *L, int64_t stride, int64_t size, int64_t gone, double *cosine,
                            double *sine)
{
    for (int64_t i = gone + 1; i < size; i++) {
        double *row = L + i * stride;
        double *to = row - stride;
        double left = row[gone];
        for (int64_t k = 0; k < gone; k++)
            to[k] = row[k];
        for (int64_t k = gone; k < i - 1; k++) {
            double right = row[k + 1];
            to[k] = cosine[k] * left + sine[k] * right;
            left = cosine[k] * right - sine[k] * left;
        }
        double right = row[i];
        double length = hypot(left, right);
        cosine[i - 1] = left / length;
        sine[i - 1] = right / length;
        to[i - 1] = length;
    }
}

#endif
