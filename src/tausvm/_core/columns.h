/* One column of a family of least-squares problems that share a matrix, see columns.pyx.
 * Sums run in fixed lanes and are gathered in double every BLOCK numbers. */
#ifndef TAUSVM_COLUMNS_H
#define TAUSVM_COLUMNS_H

#include "loops.h"

#define SUM_LANES 16
#define SUM_BLOCK 1024

/* the ridge on the side of v */
#define SIDE(v) ((v) > 0 ? rise : fall)

/* Run TERM for k in [0, n) with lane l = k mod 16, and FLUSH after every block: the inner loop
 * has a fixed length, so that it becomes vector code with one sum a lane. */
#define IN_LANES(TERM, FLUSH)                                                          \
    for (int64_t start = 0; start < n; start += SUM_BLOCK) {                           \
        int64_t end = n - start < SUM_BLOCK ? n : start + SUM_BLOCK;                   \
        int64_t full = start + (end - start) / SUM_LANES * SUM_LANES;                  \
        for (int64_t from = start; from < full; from += SUM_LANES)                     \
            for (int l = 0; l < SUM_LANES; l++) {                                      \
                int64_t k = from + l;                                                  \
                TERM                                                                   \
            }                                                                          \
        for (int64_t k = full; k < end; k++) {                                         \
            int l = (int)(k - full);                                                   \
            TERM                                                                       \
        }                                                                              \
        FLUSH                                                                          \
    }

static inline double lane_sum(float *lanes)
{
    double sum = 0;
    for (int l = 0; l < SUM_LANES; l++) {
        sum += lanes[l];
        lanes[l] = 0;
    }
    return sum;
}

/* Of the residuals r = y - fitted - b: sum of r / ridge and of 1 / ridge, for a Newton step
 * of b. */
static TAUSVM_CLONES void column_pull(const float *restrict y, const float *restrict fitted,
                                      const float *restrict weight, float b, float rise,
                                      float fall, int64_t n, double *restrict pull,
                                      double *restrict bend)
{
    float pulls[SUM_LANES] = {0}, bends[SUM_LANES] = {0};
    float up = 1.0f / rise, down = 1.0f / fall;
    *pull = *bend = 0;
    IN_LANES({
        float r = y[k] - fitted[k] - b;
        float w = weight[k] * (r > 0 ? up : down);
        pulls[l] += w * r;
        bends[l] += w;
    }, {
        *pull += lane_sum(pulls);
        *bend += lane_sum(bends);
    })
}

/* The gradient of the dual, fitted + b - y + ridge * beta, with the duality gap and the primal
 * objective. Each term of the gap is >= 0, so that nothing cancels. */
static TAUSVM_CLONES void column_gap(const float *restrict y, const float *restrict fitted,
                                     const float *restrict weight,
                                     const float *restrict beta, float b, float rise,
                                     float fall, int64_t n, float *restrict gradient,
                                     double *restrict gap, double *restrict primal)
{
    float gaps[SUM_LANES] = {0}, norms[SUM_LANES] = {0}, losses[SUM_LANES] = {0};
    float up = 0.5f / rise, down = 0.5f / fall;
    *gap = *primal = 0;
    IN_LANES({
        float r = y[k] - fitted[k] - b;
        float ridge = SIDE(beta[k]) / weight[k];
        float loss = weight[k] * (r > 0 ? up : down) * r * r;
        gradient[k] = ridge * beta[k] - r;
        gaps[l] += loss + (0.5f * ridge * beta[k] - r) * beta[k];
        losses[l] += loss;
        norms[l] += beta[k] * fitted[k];
    }, {
        *gap += lane_sum(gaps);
        *primal += lane_sum(losses) + 0.5 * lane_sum(norms);
    })
}

/* sum of a * b */
static TAUSVM_CLONES double column_dot(const float *restrict a, const float *restrict b, int64_t n)
{
    float sums[SUM_LANES] = {0};
    double total = 0;
    IN_LANES({ sums[l] += a[k] * b[k]; }, { total += lane_sum(sums); })
    return total;
}

/* The sums of gradient * z and previous * z; previous becomes gradient. */
static TAUSVM_CLONES void column_descent(const float *restrict z,
                                         const float *restrict gradient,
                                         float *restrict previous, int64_t n,
                                         double *restrict now, double *restrict before)
{
    float nows[SUM_LANES] = {0}, befores[SUM_LANES] = {0};
    *now = *before = 0;
    IN_LANES({
        nows[l] += gradient[k] * z[k];
        befores[l] += previous[k] * z[k];
        previous[k] = gradient[k];
    }, {
        *now += lane_sum(nows);
        *before += lane_sum(befores);
    })
}

/* direction = keep * direction - z */
static TAUSVM_CLONES void column_turn(float *restrict direction, const float *restrict z,
                                      float keep, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        direction[k] = keep * direction[k] - z[k];
}

/* Along beta + t * direction: the sums of ridge * beta * direction and ridge * direction^2,
 * ridges at t. */
static TAUSVM_CLONES void column_slope(const float *restrict beta,
                                       const float *restrict direction,
                                       const float *restrict weight, float t, float rise,
                                       float fall, int64_t n, double *restrict slope,
                                       double *restrict bend)
{
    float slopes[SUM_LANES] = {0}, bends[SUM_LANES] = {0};
    *slope = *bend = 0;
    IN_LANES({
        float b = beta[k] + t * direction[k];
        float pull = SIDE(b) / weight[k] * direction[k];
        slopes[l] += pull * b;
        bends[l] += pull * direction[k];
    }, {
        *slope += lane_sum(slopes);
        *bend += lane_sum(bends);
    })
}

/* Eight numbers at a time, wherever they lie. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

static inline float eight_sum(eight v)
{
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

/* out[c, i] = the sum over k of rows[i, k] * vectors[c, k], for a square matrix and few vectors: four
 * rows at a time stay in the nearest cache while all vectors pass. A product of general matrices
 * would copy the rows first. */
static TAUSVM_CLONES void rows_times(const float *restrict rows, const float *restrict vectors,
                                     int64_t n, int64_t count, float *restrict out)
{
    int64_t full = n / 8 * 8;
    for (int64_t i = 0; i < n; i += 4) {
        const float *row[4];
        for (int r = 0; r < 4; r++)
            row[r] = rows + (i + r < n ? i + r : n - 1) * n;
        for (int64_t c = 0; c < count; c += 2) {
            const float *a = vectors + c * n;
            const float *b = c + 1 < count ? a + n : a;
            eight of_a[4] = {{0}, {0}, {0}, {0}}, of_b[4] = {{0}, {0}, {0}, {0}};
            for (int64_t k = 0; k < full; k += 8) {
                eight at_a = *(const eight *)(a + k), at_b = *(const eight *)(b + k);
                for (int r = 0; r < 4; r++) {
                    eight values = *(const eight *)(row[r] + k);
                    of_a[r] += values * at_a;
                    of_b[r] += values * at_b;
                }
            }
            for (int r = 0; r < 4 && i + r < n; r++) {
                float sum_a = eight_sum(of_a[r]), sum_b = eight_sum(of_b[r]);
                for (int64_t k = full; k < n; k++) {
                    sum_a += row[r][k] * a[k];
                    sum_b += row[r][k] * b[k];
                }
                out[c * n + i + r] = sum_a;
                if (c + 1 < count)
                    out[(c + 1) * n + i + r] = sum_b;
            }
        }
    }
}

/* a += t * b */
static TAUSVM_CLONES void column_add(float *restrict a, const float *restrict b, float t, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        a[k] += t * b[k];
}

#endif
