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
TAUSVM_CLONES static double path_dot(const double *restrict a, const double *restrict b, long n)
{
    double lane[PATH_LANES] = {0};
    long i = 0;
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
                                  long n)
{
    for (long i = 0; i < n; i++)
        y[i] += alpha * x[i];
}

/* out = -(start + shift + sum_j delta[j] K[rows[j], :]): how fast the residuals change */
TAUSVM_CLONES static void path_rates(const double *restrict K, long n, const int32_t *restrict rows,
                                   const double *restrict delta, long count,
                                   const double *restrict start, double shift,
                                   double *restrict out)
{
    for (long begin = 0; begin < n; begin += PATH_STRIP) {
        long m = n - begin < PATH_STRIP ? n - begin : PATH_STRIP;
        double *restrict o = out + begin;
        for (long i = 0; i < m; i++)
            o[i] = start[begin + i] + shift;
        long j = 0;
        for (; j + 4 <= count; j += 4) {
            const double *restrict a = K + (long)rows[j] * n + begin;
            const double *restrict b = K + (long)rows[j + 1] * n + begin;
            const double *restrict c = K + (long)rows[j + 2] * n + begin;
            const double *restrict d = K + (long)rows[j + 3] * n + begin;
            double da = delta[j], db = delta[j + 1], dc = delta[j + 2], dd = delta[j + 3];
            for (long i = 0; i < m; i++)
                o[i] += (da * a[i] + db * b[i]) + (dc * c[i] + dd * d[i]);
        }
        for (; j < count; j++) {
            const double *restrict a = K + (long)rows[j] * n + begin;
            double da = delta[j];
            for (long i = 0; i < m; i++)
                o[i] += da * a[i];
        }
        for (long i = 0; i < m; i++)
            o[i] = -o[i];
    }
}

/* The point at a bound whose residual reaches zero first. side is +1 at the upper bound
 * (residual > 0), -1 at the lower one, 0 for points that are free or must not enter. A speed
 * below noise * root[i] is rounding. */
static long path_first_to_enter(const double *restrict side, const double *restrict residual,
                                const double *restrict rate, const double *restrict root,
                                long n, double noise, double *step)
{
    double best_distance = INFINITY, best_speed = 1;
    long best = -1;
    for (long i = 0; i < n; i++) {
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

/* The least of sign * (start - change[k] - slope * time[k] - shift[k]) over k */
TAUSVM_CLONES static float path_least(const float *restrict change, const float *restrict time,
                                    const float *restrict shift, long n, float sign, float start,
                                    float slope)
{
    float lane[16];
    for (int k = 0; k < 16; k++)
        lane[k] = INFINITY;
    long j = 0;
    for (; j + 16 <= n; j += 16)
        for (int k = 0; k < 16; k++) {
            float value = sign * (start - change[j + k] - slope * time[j + k] - shift[j + k]);
            lane[k] = value < lane[k] ? value : lane[k];
        }
    for (; j < n; j++) {
        float value = sign * (start - change[j] - slope * time[j] - shift[j]);
        lane[0] = value < lane[0] ? value : lane[0];
    }
    float least = lane[0];
    for (int k = 1; k < 16; k++)
        least = lane[k] < least ? lane[k] : least;
    return least;
}

/* Delete row and column `gone` of A from its Cholesky factor, A = L L', L by rows with
 * `stride`: the rows below move up and plane rotations make them triangular again. */
static void path_delete_row(double *L, long stride, long size, long gone, double *cosine,
                            double *sine)
{
    for (long i = gone + 1; i < size; i++) {
        double *row = L + i * stride;
        double *to = row - stride;
        double left = row[gone];
        for (long k = 0; k < gone; k++)
            to[k] = row[k];
        for (long k = gone; k < i - 1; k++) {
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
