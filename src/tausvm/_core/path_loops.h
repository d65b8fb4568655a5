/* The loops of the path core over the points of a window, written so that gcc turns them into
 * vector code. Sums are kept in fixed lanes, so one machine gives the same bits on every run. */
#ifndef TAUSVM_PATH_LOOPS_H
#define TAUSVM_PATH_LOOPS_H

#include <math.h>
#include <stdint.h>

#include "clones.h"

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

/* y += alpha x */
TAUSVM_CLONES static void path_axpy(double alpha, const double *restrict x, double *restrict y,
                                  int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += alpha * x[i];
}

/* out = -(start + shift + sum_j delta[j] K[rows[j], :]): how fast the residuals change */
TAUSVM_CLONES static void path_rates(const double *restrict K, int64_t n,
                                   const int32_t *restrict rows,
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
        for (; j + 4 <= count; j += 4) {
            const double *restrict a = K + (int64_t)rows[j] * n + begin;
            const double *restrict b = K + (int64_t)rows[j + 1] * n + begin;
            const double *restrict c = K + (int64_t)rows[j + 2] * n + begin;
            const double *restrict d = K + (int64_t)rows[j + 3] * n + begin;
            double da = delta[j], db = delta[j + 1], dc = delta[j + 2], dd = delta[j + 3];
            for (int64_t i = 0; i < m; i++)
                o[i] += (da * a[i] + db * b[i]) + (dc * c[i] + dd * d[i]);
        }
        for (; j < count; j++) {
            const double *restrict a = K + (int64_t)rows[j] * n + begin;
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

/* The squared norm g'Kg of the bend g = b - (b0 + part (b1 - b0)) of a vector b between b0 and
 * b1. The residuals r, r0 and r1 tell K g = -(r - (r0 + part (r1 - r0)) + shift) where g is not
 * zero. terms is the sum of its terms without signs. */
TAUSVM_CLONES static double path_bend(const double *restrict b0, const double *restrict b,
                                    const double *restrict b1, const double *restrict r0,
                                    const double *restrict r, const double *restrict r1,
                                    double part, double shift, int64_t n, double *terms)
{
    double sum[PATH_LANES] = {0}, size[PATH_LANES] = {0};
    int64_t i = 0;
    for (; i + PATH_LANES <= n; i += PATH_LANES)
        for (int k = 0; k < PATH_LANES; k++) {
            int64_t j = i + k;
            double g = b[j] - b0[j] - part * (b1[j] - b0[j]);
            double term = g * (r[j] - r0[j] - part * (r1[j] - r0[j]) + shift);
            sum[k] -= term;
            size[k] += fabs(term);
        }
    for (; i < n; i++) {
        double g = b[i] - b0[i] - part * (b1[i] - b0[i]);
        double term = g * (r[i] - r0[i] - part * (r1[i] - r0[i]) + shift);
        sum[0] -= term;
        size[0] += fabs(term);
    }
    *terms = 0;
    double total = 0;
    for (int k = 0; k < PATH_LANES; k++) {
        total += sum[k];
        *terms += size[k];
    }
    return total;
}

/* Column k of S - sum_l weight[l] u_l u_l', for the lower triangle S by rows and vectors u_l that
 * are the rows of U */
TAUSVM_CLONES static void path_swept_column(const double *restrict S, int64_t n, int64_t k,
                                          const double *restrict U, const double *restrict weight,
                                          int64_t count, double *restrict out)
{
    const double *restrict row = S + k * n;
    for (int64_t j = 0; j <= k; j++)
        out[j] = row[j];
    for (int64_t j = k + 1; j < n; j++)
        out[j] = S[j * n + k];
    int64_t l = 0;
    for (; l + 4 <= count; l += 4) {
        const double *restrict a = U + l * n;
        const double *restrict b = a + n;
        const double *restrict c = b + n;
        const double *restrict d = c + n;
        double wa = weight[l] * a[k], wb = weight[l + 1] * b[k];
        double wc = weight[l + 2] * c[k], wd = weight[l + 3] * d[k];
        for (int64_t j = 0; j < n; j++)
            out[j] -= (wa * a[j] + wb * b[j]) + (wc * c[j] + wd * d[j]);
    }
    for (; l < count; l++) {
        const double *restrict a = U + l * n;
        double wa = weight[l] * a[k];
        for (int64_t j = 0; j < n; j++)
            out[j] -= wa * a[j];
    }
}

/* Write scale * column into row and column k of the lower triangle */
static void path_swept_write(double *restrict S, int64_t n, int64_t k,
                             const double *restrict column, double scale)
{
    for (int64_t j = 0; j < k; j++)
        S[k * n + j] = scale * column[j];
    for (int64_t j = k + 1; j < n; j++)
        S[j * n + k] = scale * column[j];
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

/* What one point adds to the differences of primal and dual at count records of a path, and to
 * twice those of the middles of the pieces between them. At a record, part of the way from the
 * first to the last, its beta is beta0 + part (beta1 - beta0) + away, its residual
 * r0 + part (r1 - r0) - bent - offset, and its bounds are straight lines in t. away is NULL for
 * points that stay on their line. scratch has room for 4 count numbers. */
TAUSVM_CLONES static void path_piece_sums(const double *restrict t, const double *restrict part,
                                        const double *restrict offset, int64_t count, double beta0,
                                        double beta1, const double *restrict away, double r0,
                                        double r1, const double *restrict bent,
                                        const double *restrict bounds, double *restrict scratch,
                                        double *restrict ends, double *restrict middles)
{
    double *restrict above = scratch, *restrict below = scratch + count;
    double *restrict plus = scratch + 2 * count, *restrict minus = scratch + 3 * count;
    double slope = beta1 - beta0, rate = r1 - r0;
    for (int64_t i = 0; i < count; i++)
        above[i] = beta0 + part[i] * slope;
    if (away)
        for (int64_t i = 0; i < count; i++)
            above[i] += away[i];
    for (int64_t i = 0; i < count; i++) {
        double beta = above[i], r = r0 + part[i] * rate - bent[i] - offset[i];
        double low = beta - (bounds[0] + t[i] * bounds[1]);
        double high = bounds[2] + t[i] * bounds[3] - beta;
        above[i] = high > 0 ? high : 0;
        below[i] = low > 0 ? low : 0;
        plus[i] = r > 0 ? r : 0;
        minus[i] = r > 0 ? 0 : -r;
        ends[i] += above[i] * plus[i] + below[i] * minus[i];
    }
    for (int64_t i = 1; i < count; i++)
        middles[i - 1] += (above[i - 1] * plus[i] + above[i] * plus[i - 1]) +
                          (below[i - 1] * minus[i] + below[i] * minus[i - 1]);
}

#endif
