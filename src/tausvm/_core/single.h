/* Searches of pair steps in single precision: eight numbers at a time, see single.pyx. */
#ifndef TAUSVM_SINGLE_H
#define TAUSVM_SINGLE_H

#include "loops.h"

/* gradient += step * (row_i - row_j), and the index of the largest up = -gradient - slope_up */
static inline int64_t raise_index_any(float *restrict gradient, const float *restrict slope_up,
                                      const float *restrict row_i, const float *restrict row_j,
                                      float step, int64_t n, float *restrict top)
{
    float best = -INFINITY;
    int64_t best_k = -1;
    for (int64_t k = 0; k < n; k++) {
        gradient[k] += step * (row_i[k] - row_j[k]);
        float up = -(gradient[k] + slope_up[k]);
        if (up > best) {
            best = up;
            best_k = k;
        }
    }
    *top = best;
    return best_k;
}

/* The index of the largest gain (up_i - down_j)^2 / curvature with down_j = -gradient_j -
 * slope_down_j < up_i, -1 where none is positive; bottom receives the smallest down_j. */
static inline int64_t lower_index_any(const float *restrict gradient,
                                      const float *restrict slope_down,
                                      const float *restrict diagonal, const float *restrict row_i,
                                      float up_i, float diagonal_i, float least, int64_t n,
                                      float *restrict gain, float *restrict bottom)
{
    float best = 0, best_q = 1, widest = -INFINITY;
    int64_t best_k = -1;
    for (int64_t k = 0; k < n; k++) {
        float r = up_i + gradient[k] + slope_down[k];
        float q = diagonal_i + diagonal[k] - 2.0f * row_i[k];
        q = q > least ? q : least;
        widest = r > widest ? r : widest;
        if (r > 0 && r * r * best_q > best * q) {
            best = r * r;
            best_q = q;
            best_k = k;
        }
    }
    *gain = best / best_q;
    *bottom = up_i - widest;
    return *gain > 0 ? best_k : -1;
}

#ifdef TAUSVM_AVX2

/* the first lane, in index order, with the largest value */
static inline AVX2 int64_t best_lane8(__m256 value, __m256i index, float *top)
{
    float v[8];
    int32_t k[8];
    _mm256_storeu_ps(v, value);
    _mm256_storeu_si256((__m256i *)k, index);
    int best = 0;
    for (int l = 1; l < 8; l++)
        if (v[l] > v[best] || (v[l] == v[best] && k[l] < k[best]))
            best = l;
    *top = v[best];
    return k[best];
}

static AVX2 int64_t raise_index_avx2(float *restrict gradient, const float *restrict slope_up,
                                     const float *restrict row_i, const float *restrict row_j,
                                     float step, int64_t n, float *restrict top)
{
    const __m256 t = _mm256_set1_ps(step), minus = _mm256_set1_ps(-0.0f);
    const __m256i width = _mm256_set1_epi32(16);
    __m256 best[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
    __m256i at[2] = {_mm256_set1_epi32(-1), _mm256_set1_epi32(-1)};
    __m256i ks[2] = {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                     _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (int l = 0; l < 2; l++) { /* two chains hide the latency of the compare */
            int64_t p = k + 8 * l;
            __m256 d = _mm256_sub_ps(_mm256_loadu_ps(row_i + p), _mm256_loadu_ps(row_j + p));
            __m256 g = _mm256_fmadd_ps(t, d, _mm256_loadu_ps(gradient + p));
            _mm256_storeu_ps(gradient + p, g);
            __m256 up = _mm256_xor_ps(minus, _mm256_add_ps(g, _mm256_loadu_ps(slope_up + p)));
            __m256 more = _mm256_cmp_ps(up, best[l], _CMP_GT_OQ);
            best[l] = _mm256_blendv_ps(best[l], up, more);
            at[l] = _mm256_blendv_epi8(at[l], ks[l], _mm256_castps_si256(more));
            ks[l] = _mm256_add_epi32(ks[l], width);
        }
    float top_a, top_b;
    int64_t a = best_lane8(best[0], at[0], &top_a), b = best_lane8(best[1], at[1], &top_b);
    if (top_b > top_a || (top_b == top_a && b < a)) {
        top_a = top_b;
        a = b;
    }
    b = raise_index_any(gradient + k, slope_up + k, row_i + k, row_j + k, step, n - k, &top_b);
    if (top_b > top_a) {
        top_a = top_b;
        a = k + b;
    }
    *top = top_a;
    return a;
}

static AVX2 int64_t lower_index_avx2(const float *restrict gradient,
                                     const float *restrict slope_down,
                                     const float *restrict diagonal, const float *restrict row_i,
                                     float up_i, float diagonal_i, float least, int64_t n,
                                     float *restrict gain, float *restrict bottom)
{
    const __m256 u = _mm256_set1_ps(up_i), q_i = _mm256_set1_ps(diagonal_i);
    const __m256 q_min = _mm256_set1_ps(least), two = _mm256_set1_ps(2.0f);
    const __m256 zero = _mm256_setzero_ps();
    const __m256i width = _mm256_set1_epi32(16);
    __m256 widest[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
    __m256 best[2] = {zero, zero}, best_q[2] = {_mm256_set1_ps(1.0f), _mm256_set1_ps(1.0f)};
    __m256i at[2] = {_mm256_set1_epi32(-1), _mm256_set1_epi32(-1)};
    __m256i ks[2] = {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                     _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (int l = 0; l < 2; l++) {
            int64_t p = k + 8 * l;
            __m256 r = _mm256_add_ps(_mm256_add_ps(u, _mm256_loadu_ps(gradient + p)),
                                     _mm256_loadu_ps(slope_down + p));
            __m256 q = _mm256_fnmadd_ps(two, _mm256_loadu_ps(row_i + p),
                                        _mm256_add_ps(q_i, _mm256_loadu_ps(diagonal + p)));
            q = _mm256_max_ps(q, q_min);
            widest[l] = _mm256_max_ps(widest[l], r);
            __m256 v = _mm256_max_ps(r, zero);
            v = _mm256_mul_ps(v, v);
            __m256 more = _mm256_cmp_ps(_mm256_mul_ps(v, best_q[l]), _mm256_mul_ps(best[l], q),
                                        _CMP_GT_OQ);
            best[l] = _mm256_blendv_ps(best[l], v, more);
            best_q[l] = _mm256_blendv_ps(best_q[l], q, more);
            at[l] = _mm256_blendv_epi8(at[l], ks[l], _mm256_castps_si256(more));
            ks[l] = _mm256_add_epi32(ks[l], width);
        }
    float top_a, top_b, wide, tail_bottom;
    int64_t a = best_lane8(_mm256_div_ps(best[0], best_q[0]), at[0], &top_a);
    int64_t b = best_lane8(_mm256_div_ps(best[1], best_q[1]), at[1], &top_b);
    if (top_b > top_a || (top_b == top_a && b < a)) {
        top_a = top_b;
        a = b;
    }
    best_lane8(_mm256_max_ps(widest[0], widest[1]), at[0], &wide);
    b = lower_index_any(gradient + k, slope_down + k, diagonal + k, row_i + k, up_i, diagonal_i,
                        least, n - k, &top_b, &tail_bottom);
    if (top_b > top_a) {
        top_a = top_b;
        a = k + b;
    }
    *gain = top_a;
    *bottom = up_i - wide < tail_bottom ? up_i - wide : tail_bottom;
    return top_a > 0 ? a : -1;
}
#endif

static int64_t raise_index(float *gradient, const float *slope_up, const float *row_i,
                           const float *row_j, float step, int64_t n, float *top)
{
    return BY_CPU(raise_index, gradient, slope_up, row_i, row_j, step, n, top);
}

static int64_t lower_index(const float *gradient, const float *slope_down, const float *diagonal,
                           const float *row_i, float up_i, float diagonal_i, float least, int64_t n,
                           float *bottom)
{
    float gain;
    return BY_CPU(lower_index, gradient, slope_down, diagonal, row_i, up_i, diagonal_i, least, n,
                  &gain, bottom);
}

/* the sum of what residuals -gradient - b pull at b: upper beyond the kink, lower below it */
static TAUSVM_CLONES double offset_pull(const float *restrict gradient,
                                        const float *restrict lower,
                                        const float *restrict upper,
                                        const float *restrict kink, float b, int64_t n)
{
    float sums[LANES] = {0};
    double total = 0;
    for (int64_t start = 0; start < n; start += 512) {
        int64_t end = n - start < 512 ? n : start + 512;
        int64_t full = start + (end - start) / LANES * LANES;
        for (int64_t from = start; from < full; from += LANES)
            for (int l = 0; l < LANES; l++) {
                float r = -gradient[from + l] - b;
                float high = r > kink[from + l] ? upper[from + l] : 0.0f;
                sums[l] += r < -kink[from + l] ? lower[from + l] : high;
            }
        for (int64_t k = full; k < end; k++) {
            float r = -gradient[k] - b;
            sums[0] += r > kink[k] ? upper[k] : (r < -kink[k] ? lower[k] : 0.0f);
        }
        for (int l = 0; l < LANES; l++) {
            total += sums[l];
            sums[l] = 0;
        }
    }
    return total;
}

/* the sum of row * beta */
static TAUSVM_CLONES double row_product(const float *restrict row, const double *restrict beta,
                                        int64_t n)
{
    double sums[LANES] = {0};
    int64_t full = n / LANES * LANES;
    for (int64_t from = 0; from < full; from += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += row[from + l] * beta[from + l];
    for (int64_t k = full; k < n; k++)
        sums[0] += row[k] * beta[k];
    for (int l = 1; l < LANES; l++)
        sums[0] += sums[l];
    return sums[0];
}

#endif
