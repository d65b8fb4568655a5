/* The loop of the certificates of a path's pieces, over the records of a stretch. */
#ifndef TAUSVM_PIECES_H
#define TAUSVM_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "clones.h"

/* What one point adds to the differences of primal and dual at count records of a path, and to
 * twice those of the middles of the pieces between them. At a record, part of the way from the
 * first to the last, its beta is beta0 + part (beta1 - beta0) + away, its residual
 * r0 + part (r1 - r0) - bent - offset, and its bounds are straight lines in t. away is NULL for
 * points that stay on their line. scratch has room for 4 count numbers. */
TAUSVM_CLONES static void piece_sums_of_point(const double *restrict t, const double *restrict part,
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
